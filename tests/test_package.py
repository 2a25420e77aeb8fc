"""The package as a whole: light to import, complete, and its README runs."""

import doctest
import re
import sys

import numpy as np
import pytest
from conftest import ROOT, python

import spectral_moments
from spectral_moments.layers import need_torch

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def test_estimators_need_neither_torch_nor_matplotlib():
    code = (
        "import sys, spectral_moments as sm; [getattr(sm, name) for name in sm.__all__]; "
        "print(*sorted({'torch', 'matplotlib', 'sklearn', 'tqdm'} & set(sys.modules)))"
    )
    result = python("-c", code)
    assert (result.returncode, result.stdout.strip()) == (0, ""), result.stderr


def test_without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    need_torch.cache_clear()  # another test may have found it
    with pytest.raises(ImportError, match=r"pip install 'spectral_moments\[torch\]'"):
        spectral_moments.record(None, "", [1])


@pytest.mark.parametrize(
    ("module", "others"),
    [
        ("errors", "engine.reduction estimation results"),
        ("teaching.variance", "estimation"),
    ],
)
def test_imports_point_one_way(module, others):
    code = f"import sys, spectral_moments.{module} as _; print(*sys.modules)"
    known = python("-c", code).stdout.split()
    assert f"spectral_moments.{module}" in known
    assert not {f"spectral_moments.{name}" for name in others.split()} & {*known}


def test_public_names():
    modules = {path.stem for path in (ROOT / "spectral_moments").glob("*.py")}
    for name in spectral_moments.__all__:
        assert getattr(spectral_moments, name).__doc__, name
        assert name not in modules, "a module would shadow the public name"
    assert set(spectral_moments.__all__) <= set(dir(spectral_moments))
    assert not hasattr(spectral_moments, "no_such_name")


def test_readme():
    "Every Python block of the README runs, in one namespace, and prints what it says."
    text = (ROOT / "README.md").read_text()
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.S))
    examples = doctest.DocTestParser().get_doctest(code, {}, "README", "README.md", 0)
    assert examples.examples
    assert doctest.DocTestRunner(optionflags=FLAGS).run(examples).failed == 0


@pytest.mark.parametrize("name", spectral_moments.__all__)
def test_examples(name):
    "The examples of a public name print what they say."
    names = {"sm": spectral_moments, "np": np}
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    thing = getattr(spectral_moments, name)
    for found in doctest.DocTestFinder(recurse=False).find(thing, name, globs=names):
        assert runner.run(found).failed == 0


def test_every_chapter_is_in_the_book():
    toc = (ROOT / "_toc.yml").read_text()
    for path in (ROOT / "nbs").glob("*.ipynb"):
        assert f"nbs/{path.stem}\n" in toc, f"{path.name} is not in _toc.yml"
