"""help(), the page of the library, the stub and its types: one text, complete and true."""

import ast
import doctest
import inspect
import re
import subprocess
import sys
from operator import attrgetter

import pytest
from conftest import ROOT, python, succeed

import spectral_moments as sm
from spectral_moments import reference

matplotlib = pytest.importorskip("matplotlib")
NAMES = [*sm.__all__]
NAMES += [f"{module}.{n}" for module, names in reference.MODULES.items() for n in names]


def public(name):
    "A public name of the package, or of a module that is used by its name."
    return attrgetter(name)(sm)


FUNCTIONS = [n for n in NAMES if inspect.isfunction(public(n))]
CLASSES = [n for n in NAMES if inspect.isclass(public(n))]


def members():
    "Every public function and method, by name."
    for name in FUNCTIONS:
        yield name, public(name)
    for name in CLASSES:
        for key, member in vars(public(name)).items():
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
        cls = public(name)
        if reference.has_fields(cls):
            assert "\nAttributes\n----------\n" in cls.__doc__
        elif "__init__" in vars(cls) and name not in reference.FROM:
            assert "\nParameters\n----------\n" in cls.__doc__


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore::spectral_moments.results.EstimateWarning")
def test_every_public_name_has_an_example_that_runs(name, tmp_path, monkeypatch):
    text = reference.example(name)
    assert text, f"write an example for {name} in nbs/93_reference.ipynb"
    assert text in public(name).__doc__
    if "torch" in text:
        pytest.importorskip("torch")
    if "sm.recordings" in text and not sm.recordings.available():
        pytest.skip("the recordings are not here")
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


def test_help_in_a_module_that_is_used_by_its_name():
    "However it is imported, and without a look at the package's own names."
    code = "from spectral_moments.{} import {}; print({}.__doc__)"
    for module, name, told in (
        ("comparison", "compare", "sizes : Mapping[tuple[int, int], int]"),
        ("recordings", "load", "Returns\n-------\nRecording"),
        ("sklearn", "SpectralMoments", "n_max : int, default 2"),
    ):
        said = succeed("-c", code.format(module, name, name)).stdout
        assert told in said and "\nExamples\n--------\n" in said


def test_without_sources_there_is_still_help(monkeypatch):
    def no_source(_):
        raise OSError

    monkeypatch.setattr(inspect, "getsource", no_source)
    text = reference.docstring("naive", sm.naive)
    assert text.startswith("Moments of the sample covariance") and "Examples" in text


def test_the_page_of_the_library_is_complete():
    page = (ROOT / "nbs/api.md").read_text(encoding="utf-8")
    directive = r"auto(?:function|class):: spectral_moments\.([\w.]+)\n"
    shown = re.findall(directive, page)
    assert len(shown) == len(set(shown)) and set(shown) <= set(NAMES)
    sys.path.insert(0, str(ROOT / "_ext"))
    docments = __import__("docments")
    sys.path.pop(0)
    source = [page]
    docments.complete_page(None, "nbs/api", source)  # what the page leaves out is added
    assert sorted(re.findall(directive, source[0])) == sorted(NAMES)
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

FOLDER = ROOT / "spectral_moments"


def test_the_stubs_are_those_of_the_package():
    fresh = reference.stubs({name: getattr(sm, name) for name in sm.__all__})
    assert {path.name for path in FOLDER.glob("*.pyi")} == set(fresh)
    for name, text in fresh.items():
        assert (FOLDER / name).read_text(encoding="utf-8") == text, "run make export"
        body = ast.parse(text).body
        found = {n.name for n in body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
        assert found == set(reference.MODULES.get(name.partition(".")[0], sm.__all__))
    assert (FOLDER / "py.typed").exists()


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
print(sm.alignments({"a": phi, "b": phi})["a", "b"])
with sm.watch(None, "layer") as watched:
    assert_type(watched.dimension().values, npt.NDArray[np.float64])
assert_type(sm.record(None, "layer", phi).T, sm.Activations)
table = sm.comparison.compare(sm.Linear(5), {(20, 30): 4}, n_max=2, seed=1)
assert_type(table.where(n=2), sm.comparison.Table)
print(len(table), table.mse)
assert_type(sm.recordings.load("IT").trials, npt.NDArray[np.float64])
print(sm.sklearn.SpectralMoments(3).fit(phi).moments_)
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
    "sm.comparison.compare(sm.Linear(5))": "call-arg",
    'sm.sklearn.SpectralMoments("3")': "arg-type",
    "sm.recordings.load(5)": "arg-type",
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
    assert ".pyi:" not in done.stdout, "an error in a stub"
    found = re.findall(r"^(\w+)\.py:(\d+): error: .*\[([\w-]+)\]$", done.stdout, re.M)
    assert {(file, line) for file, line, _ in found} == {
        ("wrong", str(4 + i)) for i in range(len(WRONG))
    }, done.stdout + done.stderr
    for i, kind in enumerate(WRONG.values()):
        assert ("wrong", str(4 + i), kind) in found
