"""Sphinx extension: comments beside parameters (docments) become their documentation."""

import inspect

from fastcore.docments import docments


def add_parameters(app, what, name, obj, options, lines):
    if what not in ("function", "method", "class"):
        return
    target = obj.__init__ if inspect.isclass(obj) else obj
    try:
        notes = docments(target, returns=True)
    except (TypeError, ValueError, OSError, SyntaxError):
        return
    notes.pop("self", None)
    result = notes.pop("return", None)
    lines[:] = [line.replace("`", "``") if "``" not in line else line for line in lines]
    fields = [f":param {key}: {note}" for key, note in notes.items() if note]
    if result and not inspect.isclass(obj):
        fields.append(f":returns: {result}")
    if fields:
        lines.extend(
            [
                "",
                *(
                    field.replace("\n", " ").replace("`", "``").replace("*", r"\*")
                    for field in fields
                ),
                "",
            ]
        )


def setup(app):
    app.connect("autodoc-process-docstring", add_parameters)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
