"""The package as a whole: light to import, complete, and its README runs."""

import ast
import doctest
import os
import re

import numpy as np
import pytest
from conftest import ROOT, python

import spectral_moments as sm
from spectral_moments.public_names import PUBLIC, REMOVED, RENAMED, STUB

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
FOLDER = ROOT / "spectral_moments"


NETWORKS = {"watch", "record", "inverse_dimension"}


def test_estimators_need_neither_torch_nor_matplotlib():
    code = (
        "import sys, spectral_moments as sm; "
        f"[getattr(sm, name) for name in {sorted({*PUBLIC} - NETWORKS)}]; "
        "print(*sorted({'torch', 'matplotlib', 'sklearn'} & set(sys.modules)))"
    )
    result = python("-c", code)
    assert (result.returncode, result.stdout.strip()) == (0, ""), result.stderr


def test_the_first_call_loads_no_compiler():
    "numba and scipy.optimize take longer to load than the first answer takes."
    code = (
        "import sys, time, numpy as np, spectral_moments as sm\n"
        "began = time.process_time()\n"
        "print(sm.participation_ratio(np.random.default_rng(1).random((90, 70))).value)\n"
        "assert not {'numba', 'scipy.optimize'} & {*sys.modules}\n"
        "assert time.process_time() - began < 2"
    )
    done = python("-W", "ignore", "-c", code, env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr


def test_without_torch_and_sklearn():
    code = (
        "import sys; sys.modules['torch'] = sys.modules['sklearn'] = None; "
        "import spectral_moments as sm; help(sm); assert not {*dir(sm)} & NAMES\n"
        "try: sm.NAME\nexcept ImportError as error: print(error)"
    )
    names = {*NETWORKS, "networks", "sklearn"}
    for name, extra in (("record", "torch"), ("networks", "torch"), ("sklearn", "sklearn")):
        text = code.replace("NAMES", repr(names)).replace("NAME", name)
        done = python("-c", text)
        remedy = f"needs {extra}; pip install 'spectral_moments[{extra}]'\n"
        assert done.stdout.endswith(f"sm.{name} {remedy}"), done.stderr


ENGINE = "data views graphs contraction all_cycles increasing average pair_sums methods"
ENGINE = [f"engine.{name}" for name in ENGINE.split()]
ORDER = ("checks", "engine.arrays", "errors", *ENGINE, "results", "estimation", "stream")
# `errors`: records of deviations, which the engine fills, and what follows from them


def imports(path):
    "The modules of this package that a module imports where it is loaded."
    package = "spectral_moments." + path.relative_to(FOLDER).parent.as_posix()
    package = package.replace("/", ".").rstrip(".")
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.level:
            parts = package.split(".")[: len(package.split(".")) - node.level + 1]
            module = ".".join([*parts, node.module] if node.module else parts)
            yield module.removeprefix("spectral_moments").removeprefix(".")


def test_imports_point_one_way():
    for place, name in enumerate(ORDER):
        later = {*ORDER[place + 1 :]} & {*imports(FOLDER / f"{name.replace('.', '/')}.py")}
        assert not later, f"{name} imports {later}"
    for folder, other in (("engine", "teaching"), ("teaching", "engine")):
        for path in (FOLDER / folder).glob("*.py"):
            assert not [x for x in imports(path) if x.startswith(other)], path


def test_public_names():
    assert len(PUBLIC) == 29
    modules = {path.stem for path in FOLDER.glob("*.py")}
    for name in PUBLIC:
        assert getattr(sm, name).__doc__, name
        assert name not in modules, "a module would shadow the public name"
    assert {*PUBLIC} <= {*dir(sm)} and not hasattr(sm, "no_such_name")
    for name in {*STUB} - {*PUBLIC}:
        assert getattr(sm, name).__name__ == f"spectral_moments.{name}"
    assert sm.processes.Discrete and sm.spectrum.power_laws.power_law is sm.power_law


@pytest.mark.parametrize("name", RENAMED)
def test_renamed(name):
    with pytest.warns(DeprecationWarning, match=f"sm.{name} is now sm.") as caught:
        value = getattr(sm, name)
    assert callable(value) and caught[0].filename == __file__


def test_removed():
    for names, instead in REMOVED.items():
        for name in names.split():
            with pytest.raises(AttributeError, match=f"sm.{name} was removed") as caught:
                getattr(sm, name)
            assert instead in str(caught.value) and name not in STUB
        for public in re.findall(r"sm\.(\w+)", instead):
            assert getattr(sm, public)


@pytest.mark.parametrize("name", ["participation_ratio", "compare", "alignments", "report"])
def test_misspelt_options(name):
    phi = np.eye(9)
    given = phi if name == "participation_ratio" else {"a": phi, "b": phi}
    with pytest.raises(TypeError, match=rf"^{name}\(\) has no option 'centre'; did you"):
        getattr(sm, name)(given, centre=True)


def test_readme():
    "Every Python block of the README runs, in one namespace, and prints what it says."
    text = (ROOT / "README.md").read_text("utf-8").replace("±", "+-")  # no terminal here
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.S))
    examples = doctest.DocTestParser().get_doctest(code, {}, "README", "README.md", 0)
    assert examples.examples
    assert doctest.DocTestRunner(optionflags=FLAGS).run(examples).failed == 0


@pytest.mark.parametrize("name", PUBLIC)
def test_examples(name):
    "The examples of a public name print what they say."
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    names = {"sm": sm, "np": np}
    finder = doctest.DocTestFinder(recurse=False)
    for found in finder.find(getattr(sm, name), name, globs=names):
        assert runner.run(found).failed == 0


def test_every_chapter_is_in_the_book():
    toc = (ROOT / "_toc.yml").read_text()
    for path in (ROOT / "nbs").glob("*.ipynb"):
        assert f"nbs/{path.stem}\n" in toc, f"{path.name} is not in _toc.yml"


EST = sm.estimate(sm.Linear(3).sample(12, 9, random_state=0), 3)
PAIR = sm.alignments({x: sm.Linear(3).sample(12, 9, random_state=0) for x in "ab"})


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: EST.derive(len, scale=[1]), "scale"),
        (lambda: PAIR.ceiling(len), "subjects"),
        (lambda: PAIR.ceiling([["b"], "a"]), "subjects"),
        (lambda: PAIR.pairs(np.ones(3)), "of"),
        (lambda: sm.power_law(EST, law={}), "law"),
        (lambda: sm.compare({"a": EST, "b": EST}, paired=[1]), "paired"),
        (lambda: sm.compare({"a": EST, "b": EST}, paired="rows"), "paired"),
        (lambda: sm.compare({"old": [np.eye(3)], "young": np.eye(3)}), "estimates"),
        (lambda: sm.kong_valiant(np.eye(3), 2, sampled=np.ones(3)), "sampled"),
        (lambda: sm.dimension_by_size(np.eye(9), []), "shares"),
        (lambda: sm.function_bounds(EST, 3), "function"),
        (lambda: sm.from_moments([1.0], stderr=3), "stderr"),
        (lambda: sm.power_law(EST, 3), "orders"),
        (lambda: sm.PowerLaw(np.ones(3)), "exponent"),
        (lambda: sm.noise.noise_moments(np.ones((2, 9, 9)), groups=[[1], [2]]), "groups"),
        (lambda: sm.feasible(sm.estimate(1e150 * sm.Linear(3).sample(20, 9))), "est"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(call, argument):
    with pytest.raises(sm.ArgumentError) as caught:
        call()
    assert caught.value.argument == argument
