"""Sphinx extension: run the chapters, several at once, and hide nbdev's `#|` lines.

Every build runs every cell. A cell that fails stops the build with its traceback.
"""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from sphinx.util import logging

TIMEOUT = 300  # seconds for one cell
log = logging.getLogger(__name__)


def without_directives(notebook):
    "Drop nbdev's lines, and cells that hold nothing else: they would be empty boxes."
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            lines = "".join(cell["source"]).splitlines(keepends=True)
            kept = (line for line in lines if not line.startswith("#|"))
            cell["source"] = "".join(kept).lstrip("\n")
    notebook["cells"] = [c for c in notebook["cells"] if "".join(c["source"]).strip()]
    return notebook


def executed(path):
    "The chapter with its outputs, as JSON."
    notebook = nbformat.from_dict(without_directives(json.loads(path.read_text("utf-8"))))
    where = {"metadata": {"path": str(path.parent)}}
    try:
        NotebookClient(notebook, timeout=TIMEOUT, resources=where).execute()
    except Exception as error:
        raise RuntimeError(f"{path.name} failed\n{error}") from None
    log.info("%s ran", path.name)
    return json.dumps(notebook)


def start(app, env, docnames):
    "Start one chapter a core; the longest files first, so that none is left to the end."
    paths = {name: Path(env.doc2path(name)) for name in docnames}
    paths = {name: path for name, path in paths.items() if path.suffix == ".ipynb"}
    app.pool = ThreadPoolExecutor(os.cpu_count())
    order = sorted(paths, key=lambda name: -paths[name].stat().st_size)
    app.chapters = {name: app.pool.submit(executed, paths[name]) for name in order}


def read(app, docname, source):
    "Sphinx reads a chapter: wait until it has run, or stop them all if it failed."
    if docname in app.chapters:
        try:
            source[0] = app.chapters.pop(docname).result()
        except RuntimeError:
            app.pool.shutdown(cancel_futures=True)
            raise


def setup(app):
    app.connect("env-before-read-docs", start)
    app.connect("source-read", read)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
