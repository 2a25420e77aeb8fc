"""Sphinx extension: comments beside parameters (docments) become their documentation.

Read from the source, so that a comment may continue on the next line, and a default may
take several. Labels of equations in docstrings become links to the equations.
"""

import ast
import dataclasses
import inspect
import io
import re
import textwrap
import tokenize


def read_source(obj):
    "Syntax tree of a function or class, and its comments by line."
    source = textwrap.dedent(inspect.getsource(inspect.unwrap(obj)))
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    comments = {
        token.start[0]: token.string.lstrip("#: ").rstrip()
        for token in tokens
        if token.type == tokenize.COMMENT
    }
    return ast.parse(source).body[0], comments, tokens


def join(comments, start, end):
    "The comments of the lines from `start` to before `end` in one line."
    return " ".join(comments[n] for n in range(start, end) if n in comments)


def closing_line(tokens):
    "Line of the colon that ends the head of a function."
    depth, begun = 0, False
    for token in tokens:
        begun = begun or token.string == "def"
        depth += (token.string in ("(", "[", "{")) - (token.string in (")", "]", "}"))
        if begun and depth == 0 and token.string == ":":
            return token.start[0]
    raise ValueError("no function")


def signature_notes(function):
    "Comments of the parameters by name, and the comment on what is returned."
    node, comments, tokens = read_source(function)
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return {}, ""
    a, stars = node.args, {}
    if a.vararg:
        stars[a.vararg] = "*"
    if a.kwarg:
        stars[a.kwarg] = "**"
    parameters = [*a.posonlyargs, *a.args, *a.kwonlyargs, *stars]
    parameters.sort(key=lambda p: (p.lineno, p.col_offset))
    close = closing_line(tokens)
    ends = [p.lineno for p in parameters[1:]] + [close]
    notes = {
        stars.get(p, "") + p.arg: join(comments, p.lineno, end)
        for p, end in zip(parameters, ends)
    }
    return notes, join(comments, close, node.body[0].lineno)


def has_fields(cls):
    "Whether the fields of a class are written in its body."
    return dataclasses.is_dataclass(cls) or hasattr(cls, "_fields")


def field_notes(cls):
    "Comments of the fields of a data class or named tuple by name."
    node, comments, _ = read_source(cls)
    ends = [statement.lineno for statement in node.body[1:]] + [node.end_lineno + 1]
    return {
        statement.target.id: join(comments, statement.lineno, end)
        for statement, end in zip(node.body, ends)
        if isinstance(statement, ast.AnnAssign)
    }


def to_rst(text, escape=True):
    "Words in backticks as code, labels of equations as links, other marks as they are."
    parts = re.split(r"(?<![`:])`([^`]+)`(?!`)", text)
    for i, part in enumerate(parts):
        if i % 2:
            parts[i] = f"equation :eq:`{part}`" if part.startswith("eq-") else f"``{part}``"
        elif escape:
            parts[i] = re.sub(r"([\\*|_])", r"\\\1", part)
    return "".join(parts)


def add_notes(app, what, name, obj, options, lines):
    "Rewrite what autodoc read from the docstring, and add what stands in comments."
    lines[:] = [to_rst(line, escape=False) for line in lines]
    if what not in ("function", "method", "class"):
        return
    fields, notes, result = {}, {}, ""
    try:
        if what != "class":
            notes, result = signature_notes(obj)
        elif has_fields(obj):
            fields = field_notes(obj)
        else:
            notes, _ = signature_notes(obj.__init__)
    except (TypeError, OSError):  # there is no source, as for an inherited __init__
        return
    added = [f":param {to_rst(key)}: {to_rst(note)}" for key, note in notes.items() if note]
    if result:
        added.append(f":returns: {to_rst(result)}")
    if fields:
        added.append(":Fields:")
        added += [f"   * **{key}** -- {to_rst(note)}" for key, note in fields.items()]
    lines.extend(["", *added, ""])


def skip_fields(app, what, name, obj, skip, options):
    "Fields of named tuples are listed with their comments, and not a second time."
    return True if type(obj).__name__ == "_tuplegetter" else None


def setup(app):
    app.connect("autodoc-process-docstring", add_notes)
    app.connect("autodoc-skip-member", skip_fields)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
