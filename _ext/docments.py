"""Sphinx extension: comments beside parameters (docments) become their documentation.

The text is the one that `help()` shows, from `nbs/93_reference.ipynb`. Labels of equations
in docstrings become links to the equations.
"""

import inspect
import re

import spectral_moments as public
from spectral_moments.reference import (
    example,
    field_notes,
    has_fields,
    parameter_type,
    return_type,
    signature_notes,
)


def to_rst(text, escape=True):
    "Words in backticks as code, labels of equations as links, other marks as they are."
    parts = re.split(r"(?<![`:])`([^`]+)`(?!`)", text)
    for i, part in enumerate(parts):
        if i % 2:
            parts[i] = f"equation :eq:`{part}`" if part.startswith("eq-") else f"``{part}``"
        elif escape:
            parts[i] = re.sub(r"([\\*|_])", r"\\\1", part)
    return "".join(parts)


def short_name(name):
    "The public name of an object, with its method: Stream.update."
    return name.partition(".")[2]


def parameters(name, function):
    "Comments and types of the parameters as fields of a list."
    notes, result = signature_notes(function)
    known = inspect.signature(function).parameters
    for key, note in notes.items():
        if not note:
            continue
        yield f":param {to_rst(key)}: {to_rst(note)}"
        kind = parameter_type(name, known[key.lstrip("*")])
        kind = re.sub(r"Literal\[.*?\]", "str", kind)
        if kind != "Any":
            yield f":type {to_rst(key)}: ``{kind}``"
    if result:
        yield f":returns: {to_rst(result)}"
        if return_type(name) != "Any":
            yield f":rtype: ``{return_type(name)}``"


def add_notes(app, what, name, obj, options, lines):
    "Rewrite what autodoc read from the docstring, and add what stands in comments."
    ruled = [i for i, line in enumerate(lines) if line and not line.strip("-")]
    if ruled:  # completed for help(): the same text follows in another form
        del lines[ruled[0] - 1 :]
    lines[:] = [to_rst(line, escape=False) for line in lines]
    if what not in ("function", "method", "class"):
        return
    added = []
    try:
        if what != "class":
            added += parameters(short_name(name), obj)
        elif has_fields(obj):
            added.append(":Fields:")
            for field, note in field_notes(obj).items():
                added.append(f"   * **{field}**" + (f" -- {to_rst(note)}" if note else ""))
        else:
            added += parameters(short_name(name), obj.__init__)
    except (TypeError, OSError):  # there is no source, as for an inherited __init__
        return
    shown = example(short_name(name))
    if shown:
        added = ["*Example*", "", *shown.splitlines(), "", *added]
    lines.extend(["", *added, ""])


def skip_fields(app, what, name, obj, skip, options):
    "Fields of named tuples are listed with their comments, and not a second time."
    return True if type(obj).__name__ == "_tuplegetter" else None


def complete_page(app, docname, source):
    "Public names that the page of the library leaves out, at its end."
    if docname != "nbs/api":
        return
    pattern = r"auto(?:function|class):: spectral_moments\.(\w+)\n"
    left = sorted(set(public.__all__) - set(re.findall(pattern, source[0])))
    lines = [
        f".. auto{'class' if inspect.isclass(getattr(public, name)) else 'function'}:: "
        f"spectral_moments.{name}\n"
        for name in left
    ]
    if lines:
        source[0] += f"\n## More\n\n```{{eval-rst}}\n{''.join(lines)}```\n"


def setup(app):
    app.connect("source-read", complete_page)
    app.connect("autodoc-process-docstring", add_notes)
    app.connect("autodoc-skip-member", skip_fields)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
