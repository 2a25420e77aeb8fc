"""help(), the page of the library, the stub and its types: one text, complete and true."""

import ast
import doctest
import inspect
import re
import subprocess
import sys

import pytest
from conftest import ROOT, python

import spectral_moments as sm
from spectral_moments import reference

matplotlib = pytest.importorskip("matplotlib")
FUNCTIONS = [n for n in sm.__all__ if inspect.isfunction(getattr(sm, n))]
CLASSES = [n for n in sm.__all__ if inspect.isclass(getattr(sm, n))]


def members():
    "Every public function and method, by name."
    for name in FUNCTIONS:
        yield name, getattr(sm, name)
    for name in CLASSES:
        for key, member in vars(getattr(sm, name)).items():
            function = getattr(member, "__func__", member)
            if inspect.isfunction(function) and not key.startswith("_"):
                yield f"{name}.{key}", function


def test_help_tells_every_parameter_and_the_return():
    for name, function in members():
        notes, returned = reference.signature_notes(function)
        parameters = {k: v for k, v in notes.items() if k not in ("self", "cls")}
        assert all(parameters.values()), f"{name}: a parameter without a comment"
        for key, note in parameters.items():
            assert f"\n{key} : " in function.__doc__, name
            assert " ".join(note.split())[:30] in " ".join(function.__doc__.split()), name
        if name in FUNCTIONS:
            assert returned and "\nReturns\n-------\n" in function.__doc__, name


def test_help_of_classes_tells_fields_or_parameters():
    for name in CLASSES:
        cls = getattr(sm, name)
        if reference.has_fields(cls):
            assert "\nAttributes\n----------\n" in cls.__doc__
        elif "__init__" in vars(cls):
            assert "\nParameters\n----------\n" in cls.__doc__


@pytest.mark.parametrize("name", sm.__all__)
@pytest.mark.filterwarnings("ignore::spectral_moments.results.EstimateWarning")
def test_every_public_name_has_an_example_that_runs(name, tmp_path, monkeypatch):
    text = reference.example(name)
    assert text, f"write an example for {name} in nbs/93_reference.ipynb"
    assert text in getattr(sm, name).__doc__
    if "torch" in text:
        pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(matplotlib, "get_backend", lambda: "agg")
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    said = []
    with matplotlib.rc_context({"backend": "agg"}):
        assert runner.run(test, out=said.append).failed == 0, "".join(said)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def test_help_in_a_fresh_process():
    code = "import spectral_moments as sm; help(sm.estimate); help(sm.Stream.update)"
    said = python("-c", code).stdout
    assert "population : tuple[int | None, int | None] | None, default None" in said
    assert "rows : ArrayLike" in said and "\n    Examples\n    --------\n" in said
    code = "import spectral_moments as sm; est = sm.estimate([[1.0, 2], [3, 4]], 1); "
    said = python("-W", "ignore", "-c", code + "help(est.interval)").stdout
    assert "nominal coverage" in said, "a result is documented although its class was not"


def test_without_sources_there_is_still_help(monkeypatch):
    def no_source(_):
        raise OSError

    monkeypatch.setattr(inspect, "getsource", no_source)
    text = reference.docstring("naive", sm.naive)
    assert text.startswith("Moments of the sample covariance") and "Examples" in text


def test_the_page_of_the_library_is_complete():
    page = (ROOT / "nbs/api.md").read_text(encoding="utf-8")
    shown = re.findall(r"auto(?:function|class):: spectral_moments\.(\w+)\n", page)
    assert len(shown) == len(set(shown)) and set(shown) <= set(sm.__all__)
    sys.path.insert(0, str(ROOT / "_ext"))
    docments = __import__("docments")
    sys.path.pop(0)
    source = [page]
    docments.complete_page(None, "nbs/api", source)  # what the page leaves out is added
    shown = re.findall(r"auto(?:function|class):: spectral_moments\.(\w+)\n", source[0])
    assert sorted(shown) == sm.__all__
    assert "automodule" not in page


def test_every_parameter_has_a_type():
    untyped = [
        f"{name}.{p.name}"
        for name, function in members()
        for p in inspect.signature(function).parameters.values()
        if p.name not in ("self", "cls", *reference.TYPES)
        and f"{name}.{p.name}" not in reference.TYPES
    ]
    assert not untyped, "give their types in nbs/93_reference.ipynb"


@pytest.mark.filterwarnings("ignore::spectral_moments.results.EstimateWarning")
def test_types_of_results_are_those_that_are_told():
    phi = sm.Linear(5).sample(40, 30, random_state=1)
    est = sm.estimate(phi, 3)
    for name, found in {
        "estimate": est,
        "naive": sm.naive(phi, 2),
        "compare": sm.compare({"a": est}),
        "feasible": sm.feasible(est),
        "operator_norm": sm.operator_norm(est),
        "effective_dimension": sm.effective_dimension(est, 0.1),
        "spectral_bounds": sm.spectral_bounds(est, lambda s: s),
        "participation_ratio": sm.participation_ratio(phi),
        "renyi_dimension": sm.renyi_dimension(est),
        "alignment": sm.alignment(phi, phi[:, :20]),
        "Estimate.dimension": est.dimension(),
        "Estimate.to_dict": est.to_dict(),
    }.items():
        told = {"Floats": "ndarray"}.get(reference.return_type(name))
        told = told or reference.return_type(name).partition("[")[0]
        assert type(found).__name__ == told, name


# --- the stub -----------------------------------------------------------------------------

STUB = ROOT / "spectral_moments/__init__.pyi"


def test_the_stub_is_the_one_of_the_package():
    fresh = reference.stub({name: getattr(sm, name) for name in sm.__all__})
    assert STUB.read_text(encoding="utf-8") == fresh, "run make export"
    tree = ast.parse(fresh)
    defined = {n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    assert sorted(defined) == sm.__all__
    assert (STUB.parent / "py.typed").exists()


RIGHT = """
from typing import assert_type
import numpy as np
import numpy.typing as npt
import spectral_moments as sm

phi = sm.Linear(5).sample(20, 30, random_state=1)
est = sm.estimate(phi, 3, center=True, population=(None, 30), random_state=0)
assert_type(est, sm.Estimate)
assert_type(est.values, npt.NDArray[np.float64])
assert_type(est.dimension().value, float)
low, high = est.interval(0.9)
assert_type(low, npt.NDArray[np.float64])
assert_type(sm.Stream(30, 2).update(phi).estimate(), sm.Estimate)
assert_type(sm.operator_norm(est), sm.Bounds)
assert_type(sm.alignment(phi, [[1.0, 2.0]]).value, float)
assert_type(sm.Stream.load("file", n_jobs=2), sm.Stream)
for rows in sm.row_batches("x.npy", size=3):
    print(rows.shape)
"""
WRONG = {
    'sm.estimate(phi, "3")': "arg-type",
    "sm.estimate(phi, 3, True)": "call-arg",
    'sm.estimate(phi, method="best")': "arg-type",
    "sm.estimate(phi, population=5)": "arg-type",
    "sm.estimate(phi, centre=True)": "call-arg",
    "sm.no_such_name(phi)": "attr-defined",
    "sm.estimate(phi).no_such_field": "attr-defined",
    "sm.Stream()": "call-arg",
}


def test_a_type_checker_agrees(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "right.py").write_text(RIGHT)
    begin = "import numpy as np\nimport spectral_moments as sm\nphi = np.ones((3, 4))\n"
    (tmp_path / "wrong.py").write_text(begin + "".join(f"{line}\n" for line in WRONG))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache"),
            *("--no-error-summary", "right.py", "wrong.py"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"MYPYPATH": str(ROOT), "PATH": ""},
    )
    found = re.findall(r"^(\w+)\.py:(\d+): error: .*\[([\w-]+)\]$", done.stdout, re.M)
    assert {(file, line) for file, line, _ in found} == {
        ("wrong", str(4 + i)) for i in range(len(WRONG))
    }, done.stdout + done.stderr
    for i, kind in enumerate(WRONG.values()):
        assert ("wrong", str(4 + i), kind) in found
