"""The comment beside a parameter is its documentation."""

import inspect
import re
from typing import NamedTuple

_LINE = re.compile(r"\s*(\*{0,2}\w+)(?:: (.+?))?(?: ?= ?.*?)?,?(?:  # (.*))?$")
_END = re.compile(r"\s*\)(?: -> (.+?))?:?(?:  # (.*))?$")
_ONE = re.compile(  # def name(parameter: type = default) -> type:  # comment -> comment
    r"\s*def \w+\((?:self, |cls, )?(\*{0,2}(?!self|cls)\w+)(?:: ([^,]+?))?(?: ?= ?[^,]*)?\)"
    r"(?: -> (.+?))?:(?:  # (.*?)(?: -> (.*))?)?$"
)


class Parameter(NamedTuple):
    "Type and comment of a parameter, or of what is returned."

    kind: str = ""  # its type, as it is written
    comment: str = ""  # what it means


def read_parameters(
    lines: list[str],  # of a signature or of the fields of a class, without the first
) -> dict[str, Parameter]:  # by name, "return" for what is returned
    "Read types and comments of parameters or fields."
    found, name = {}, None
    for line in lines:
        text = line.strip()
        if text.startswith("#") and name:
            comment = f"{found[name].comment} {text[1:].strip()}".strip()
            found[name] = found[name]._replace(comment=comment)
        elif end := _END.match(line):
            found["return"] = Parameter(end[1] or "", end[2] or "")
            break
        elif text.startswith(("def ", "@", '"')) or not (match := _LINE.match(line)):
            name = None
        else:
            name, kind, comment = match.groups("")
            found[name] = Parameter(kind, comment)
    return found


def parameter_comments(
    value,  # a function, or a class with fields
) -> dict[str, Parameter]:  # by name, "return" for what is returned
    "Read types and comments in the signature of a function, or next to fields of a class."
    try:
        source = inspect.getsource(value)
    except (OSError, TypeError):  # there is none
        return {}
    lines = re.sub(r"\n\s*\| ", " | ", source).splitlines()  # a type on two lines
    if inspect.isclass(value):
        fields = getattr(value, "__annotations__", {})
        found = read_parameters(lines[1:])
        return {name: about for name, about in found.items() if name in fields}
    while lines and not lines[0].lstrip().startswith("def "):  # decorators
        lines = lines[1:]
    if not lines:  # a lambda
        return {}
    if lines[0].rstrip().endswith("("):
        return read_parameters(lines[1:])
    if one_line := _ONE.match(lines[0]):
        name, kind, return_kind, comment, return_comment = one_line.groups("")
        returned = Parameter(return_kind, return_comment)
        return {name: Parameter(kind, comment), "return": returned}
    return {"return": Parameter(comment=lines[0].partition("  # ")[2])}


def documented(
    value,  # a function or a class
):  # the same
    "Add the comments of the signature to the docstring, for `help()`."
    if inspect.isclass(value):
        for name, member in inspect.getmembers(value):
            member = getattr(member, "__func__", member)  # of a class method
            if inspect.isfunction(member) and not name.startswith("_"):
                documented(member)
    found, text = parameter_comments(value), inspect.cleandoc(value.__doc__ or "")
    if inspect.isfunction(value):  # types as they are written
        for name, about in found.items():
            if about.kind and name.lstrip("*") in value.__annotations__:
                value.__annotations__[name.lstrip("*")] = about.kind
    elif not found and inspect.isclass(value) and "__init__" in vars(value):
        found = parameter_comments(value.__init__)
    returned = found.pop("return", Parameter()).comment
    listed = [f"\n    {name}: {x.comment}" for name, x in found.items() if x.comment]
    if "\nParameters:\n" not in text and "\nReturns: " not in text:
        text += "\n\nParameters:" + "".join(listed) if listed else ""
        text += f"\n\nReturns: {returned}" if returned else ""
        value.__doc__ = text
    return value
