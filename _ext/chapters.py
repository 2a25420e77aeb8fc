"""Sphinx extension: run the chapters, several at once, hide nbdev's `#|` lines, and label
every fold by what is in it.

Every build runs every cell. A cell that fails stops the build with its traceback. A chapter
that ran to its end leaves a fingerprint of all that it depends on; run as a script, this
file prints the names of the notebooks that `nbdev_test` can skip, as a regular expression.
"""

import ast
import hashlib
import json
import os
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.metadata import distributions
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from sphinx.util import logging

ROOT = Path(__file__).resolve().parents[1]
RAN = ROOT / "_build" / "ran"  # fingerprints of chapters whose cells all passed
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


def content(cell):
    "What a folded cell holds, in a few words."
    if "figure" in cell["metadata"].get("mystnb", {}):
        return "the figure"
    body = ast.parse("".join(cell["source"])).body
    definitions = (ast.FunctionDef, ast.ClassDef)
    names = [node.name for node in body if isinstance(node, definitions)]
    if all(isinstance(node, (ast.Import, ast.ImportFrom)) for node in body[:3]):
        return "imports and set-up"
    if names:
        return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    if any(isinstance(node, ast.Assert) for part in body for node in ast.walk(part)):
        return "checks"
    return "what is printed below"


def with_labels(notebook):
    "Name the folds of a chapter by their content, unless the cell names its own."
    for cell in notebook["cells"]:
        tags = set(cell["metadata"].get("tags", []))
        if cell["cell_type"] == "code" and tags & {"hide-input", "hide-cell"}:
            settings = cell["metadata"].setdefault("mystnb", {})
            label = settings.get("code_prompt_show") or f"Code: {content(cell)}"
            settings |= {"code_prompt_show": label, "code_prompt_hide": label}
    return notebook


@cache
def surroundings():
    "What every chapter depends on: Python, what is installed, the package, stored results."
    places = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    installed = sorted({f"{d.name} {d.version}" for d in distributions(path=[*places])})
    found = hashlib.sha256(f"{sys.version} {installed}".encode())
    for folder in ("spectral_moments", "studies", "results"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                found.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return found


def fingerprint(text):
    "A hash of a chapter and of what it depends on."
    found = surroundings().copy()
    found.update(text.encode())
    return found.hexdigest()


def ran(path):
    "Whether the book ran all cells of a chapter, as it is now."
    mark = RAN / path.stem
    return mark.exists() and mark.read_text() == fingerprint(path.read_text("utf-8"))


def executed(path):
    "The chapter with its outputs, as JSON."
    text = path.read_text("utf-8")
    notebook = nbformat.from_dict(with_labels(without_directives(json.loads(text))))
    where = {"metadata": {"path": str(path.parent)}}
    try:
        NotebookClient(notebook, timeout=TIMEOUT, resources=where).execute()
    except Exception as error:
        raise RuntimeError(f"{path.name} failed\n{error}") from None
    RAN.mkdir(parents=True, exist_ok=True)
    (RAN / path.stem).write_text(fingerprint(text))
    log.info("%s ran", path.name)
    return json.dumps(notebook)


def start(app, env, docnames):
    "Start one chapter a core; the longest files first, so that none is left to the end."
    paths = {name: Path(env.doc2path(name)) for name in docnames}
    paths = {name: path for name, path in paths.items() if path.suffix == ".ipynb"}
    surroundings()  # as they are before any chapter runs
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


if __name__ == "__main__":
    paths = sorted((ROOT / "nbs").glob("*.ipynb"))
    names = [path.name for path in paths if ran(path)]
    print(f"{len(names)} of {len(paths)} chapters ran with the book", file=sys.stderr)
    print("|".join(["^[_.]", *(f"^{name}$" for name in names)]))
