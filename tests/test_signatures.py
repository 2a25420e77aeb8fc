"""help() and the types: what stands in the signatures, complete."""

import inspect
import re

from conftest import python

import spectral_moments as sm
from spectral_moments import public_names
from spectral_moments.signatures import parameter_comments, read_parameters

PUBLIC = {name: getattr(sm, name) for name in public_names.PUBLIC}


def functions():
    "Every public function and method, by name."
    for name, value in PUBLIC.items():
        if inspect.isfunction(value):
            yield name, value
        elif inspect.isclass(value):
            ours = [x for x in value.__mro__ if x.__module__.startswith("spectral_moments")]
            members = {key: x for base in reversed(ours) for key, x in vars(base).items()}
            for key, member in members.items():
                member = getattr(member, "__func__", member)
                if inspect.isfunction(member) and (key == "__init__" or key[0] != "_"):
                    yield f"{name}.{key}", member


def test_every_parameter_is_explained():
    missing = []
    for name, function in functions():
        made = function.__code__.co_filename[0] == "<"  # by dataclasses
        if made or function.__name__ == "<lambda>" or name.startswith("ArgumentError"):
            continue
        found = {k for k, x in parameter_comments(function).items() if x.comment}
        for parameter in inspect.signature(function).parameters.values():
            shown = str(parameter).partition(":")[0].partition("=")[0]
            if shown not in ("self", "cls", *found):
                missing.append(f"{name}: {shown}")
        assert function.__doc__ or name.endswith("__init__"), name
    assert not missing


def test_comments():
    lines = ["    a,  # one", "    b: str = '#',  # two", "    # and more", "    *c,"]
    found = read_parameters([*lines, ") -> int:  # four"])
    assert found["a"] == ("", "one") and found["b"] == ("str", "two and more")
    assert found["return"] == ("int", "four") and found["*c"] == ("", "")
    assert parameter_comments(len) == parameter_comments(3) == {}
    assert parameter_comments(lambda x: x) == {}


def test_help_in_a_fresh_process():
    code = "import spectral_moments as sm; help(sm.estimate); help(sm.Stream.update)"
    both = python("-c", f"{code}; print('~' * 9); help(sm)").stdout
    text, _, page = both.partition("~" * 9)
    for name in ("population", "groups", "rows"):
        assert f"    {name}: " in text
    assert page.index("sm.estimate(phi)") < 400
    assert page.count("\n") < 60, "help(sm) fits one screen"
    for name in PUBLIC:
        assert re.search(rf"\b{name}\b", page), name
