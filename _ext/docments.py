"""Sphinx extension: comments beside parameters (docments) become their documentation.

The text is the one that `help()` shows, read by `spectral_moments.signatures`. Labels of
equations in docstrings become links to the equations.
"""

import inspect
import re

import spectral_moments as public
from spectral_moments.public_names import PUBLIC
from spectral_moments.signatures import parameter_comments


def to_rst(text, escape=True):
    "Words in backticks as code, labels of equations as links, other marks as they are."
    parts = re.split(r"(?<![`:])`([^`]+)`(?!`)", text)
    for i, part in enumerate(parts):
        if i % 2:
            parts[i] = f"equation :eq:`{part}`" if part.startswith("eq-") else f"``{part}``"
        elif escape:
            parts[i] = re.sub(r"([\\*|_])", r"\\\1", part)
    return "".join(parts)


def parameters(function):
    "Comments and types of the parameters as fields of a list."
    found = parameter_comments(function)
    returned = found.pop("return", None)
    for name, note in found.items():
        if note.comment:
            yield f":param {to_rst(name)}: {to_rst(note.comment)}"
            if note.kind:
                yield f":type {to_rst(name)}: ``{note.kind}``"
    if returned and returned.comment:
        yield f":returns: {to_rst(returned.comment)}"
    if returned and returned.kind:
        yield f":rtype: ``{returned.kind}``"


def add_notes(app, what, name, obj, options, lines):
    "Rewrite what autodoc read from the docstring, and add what stands in comments."
    for end in ("Parameters:", "Returns:"):  # completed for help(): another form follows
        begins = [i for i, line in enumerate(lines) if line.startswith(end)]
        del lines[begins[0] if begins else len(lines) :]
    lines[:] = [to_rst(line, escape=False) for line in lines]
    if what not in ("function", "method", "class"):
        return
    if what == "class":
        fields = {name: note.comment for name, note in parameter_comments(obj).items()}
        added = [f"   * **{name}** -- {to_rst(note)}" for name, note in fields.items()]
        added = [":Fields:", *added] if added else list(parameters(obj.__init__))
    else:
        added = list(parameters(obj))
    lines.extend(["", *added, ""])


def skip_fields(app, what, name, obj, skip, options):
    "Fields of named tuples are listed with their comments, and not a second time."
    return True if type(obj).__name__ == "_tuplegetter" else None


def complete_page(app, docname, source):
    "Public names that the page of the library leaves out, at its end."
    if docname != "nbs/api":
        return
    pattern = r"auto(?:function|class):: spectral_moments\.(\w+)\n"
    left = sorted(set(PUBLIC) - set(re.findall(pattern, source[0])))
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
