"""Sphinx extension: drop nbdev's `#|` lines from the chapters before a reader sees them."""

import json


def strip_directives(app, docname, source):
    if not app.env.doc2path(docname).endswith(".ipynb"):
        return
    notebook = json.loads(source[0])
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            lines = "".join(cell["source"]).splitlines(keepends=True)
            cell["source"] = "".join(
                line for line in lines if not line.startswith("#|")
            ).lstrip("\n")
    # a cell that held nothing but directives would be shown as an empty box
    notebook["cells"] = [
        c
        for c in notebook["cells"]
        if c["cell_type"] != "code" or "".join(c["source"]).strip()
    ]
    source[0] = json.dumps(notebook)


def setup(app):
    app.connect("source-read", strip_directives)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
