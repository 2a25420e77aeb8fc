"""What the studies share, and that each of them runs."""

import importlib.util
import json
import os
import shutil
import subprocess

import numpy as np
import pytest
from comparison import STUDIES as COMPARISONS
from conftest import RESULTS, ROOT, load_study, python, silent, succeed

from spectral_moments import RBF, naive, participation_ratio

APART = {"common", "recordings"}  # no studies
STUDIES = sorted({path.stem for path in ROOT.glob("studies/*.py")} - APART)
FAST = ("alignment", "cycles_rmse", "error_bars", "noise")
SETTINGS = {"n_matrices": 6, "shape": [2, 3], "cases": {"a": {"n_matrices": 5}}}


@pytest.fixture(scope="module")
def common():
    return load_study("common")


def draws(run):
    "A study of random numbers."
    one = lambda index: {"x": np.random.default_rng([run.seed, index]).random(2)}
    found = run.repeat("draws", one, run.settings["n_matrices"])
    return {"sum": np.sum([part["x"] for part in found], axis=0)}


@pytest.fixture
def study(common, tmp_path):
    "A function that runs the study with some arguments and returns the exit code."

    def run(*arguments, measure=draws):
        options = dict(quick={"n_matrices": 3}, arguments=["--output", str(tmp_path)])
        options["arguments"] += arguments
        return common.main("x/toy.py", "A toy.", measure, SETTINGS, 7, **options)

    return run


def stored(folder):
    return json.loads((folder / "toy.json").read_text())


def test_file_says_what_it_is(study, tmp_path):
    assert study() == 0
    found = stored(tmp_path)
    assert found["command"] == "python studies/toy.py"
    assert (found["seed"], found["settings"]) == (7, SETTINGS)
    assert found["versions"].keys() >= {"python", "spectral_moments", "numpy", "numba"}
    assert found["seconds"] >= 0 and found["commits"] and found["processor"]
    first = [np.random.default_rng([7, index]).random(2).tolist() for index in (0, 1)]
    assert found["first_draws"] == {"draws": first}
    expected = sum(np.random.default_rng([7, index]).random(2) for index in range(6))
    np.testing.assert_allclose(found["sum"], expected, rtol=1e-14)
    assert os.listdir(tmp_path) == ["toy.json"]


@pytest.mark.parametrize(
    ("arguments", "words", "count", "seed"),
    [
        (["--seed", "8"], " --seed 8", 6, 8),
        (["--repetitions", "9"], " --repetitions 9", 9, 7),
        (["--quick"], " --quick", 3, 7),
    ],
)
def test_arguments(study, tmp_path, arguments, words, count, seed):
    assert study(*arguments, "--jobs", "2") == 0
    found = stored(tmp_path)
    assert found["command"] == f"python studies/toy.py{words}"
    assert (found["settings"]["n_matrices"], found["seed"]) == (count, seed)
    nested = found["settings"]["cases"]["a"]["n_matrices"]
    assert nested == (9 if "--repetitions" in arguments else 5)


def test_jobs_do_not_change_the_numbers(study, tmp_path):
    study("--jobs", "1")
    alone = stored(tmp_path)
    study("--jobs", "3")
    assert stored(tmp_path) | {"seconds": 0} == alone | {"seconds": 0}


def test_interrupted_and_resumed(study, tmp_path, capsys):
    done = []

    def measure(run, last=3):
        def one(index):
            if index == last:
                raise KeyboardInterrupt
            done.append(index)
            return np.random.default_rng([run.seed, index]).random(2)

        return {"all": run.repeat("draws", one, run.settings["n_matrices"])}

    assert study(measure=measure) == 130
    assert "continues where it stopped" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["toy.partial"] and done == [0, 1, 2]
    for seed in ("8", "9"):  # other runs
        assert study("--seed", seed, measure=lambda run: measure(run, 1)) == 130
    names = ["toy.partial", "toy.partial.1", "toy.partial.2"]
    assert sorted(os.listdir(tmp_path)) == names
    os.replace(tmp_path / "toy.partial.1", tmp_path / "toy.partial")
    done.clear()
    assert study(measure=lambda run: measure(run, None)) == 0
    assert done == [3, 4, 5]  # the first three are not computed again
    expected = [np.random.default_rng([7, index]).random(2).tolist() for index in range(6)]
    assert stored(tmp_path)["all"] == expected


def test_smaller_study_does_not_replace_a_larger_one(study, tmp_path, capsys):
    assert study() == 0
    before = (tmp_path / "toy.json").read_bytes()
    for arguments, message in (
        (["--quick"], "n_matrices = 6, and 3 would replace it"),
        (["--repetitions", "5"], "n_matrices = 6, and 5 would replace it"),
        (["--repetitions", "1"], "must be at least 2"),
        (["--repetitions", "1", "--force"], "must be at least 2"),
    ):
        with pytest.raises(SystemExit, match="2"):
            study(*arguments, measure=None)  # refused before anything is computed
        assert message in capsys.readouterr().err
    assert (tmp_path / "toy.json").read_bytes() == before
    assert study("--quick", "--force") == 0
    assert stored(tmp_path)["settings"]["n_matrices"] == 3
    (tmp_path / "toy.json").write_text("damaged")
    assert study("--quick") == 0


def test_failure_keeps_the_old_file(study, tmp_path):
    assert study() == 0
    before = (tmp_path / "toy.json").read_bytes()
    with pytest.raises(AttributeError):  # what JSON cannot hold
        study(measure=lambda run: {"x": object()})
    assert (tmp_path / "toy.json").read_bytes() == before


@pytest.mark.parametrize("name", STUDIES)
def test_stored_studies_are_protected(common, name):
    module = load_study(name)
    if name == "comparison":  # has a test of its own
        return
    path = RESULTS / f"{name}.json"
    common.refuse_smaller(path, module.SETTINGS)
    small = common.with_repetitions(module.SETTINGS, 2)
    small = common.merged(small, {"rows": [10]} if "rows" in module.SETTINGS else {})
    with pytest.raises(ValueError, match=f"{name}.json has .*--force"):
        common.refuse_smaller(path, small)


def test_parts(common, tmp_path):
    parts = {name: (draws, SETTINGS, 7, {"n_matrices": 3}) for name in ("", "one", "two")}
    options = ["--quick", "--output", str(tmp_path)]
    run = lambda *names: common.main_parts(
        "toy.py", "", parts, arguments=[*names, *options]
    )
    assert run("one") == 0 and os.listdir(tmp_path) == ["toy_one.json"]
    command = json.loads((tmp_path / "toy_one.json").read_text())["command"]
    assert command == "python studies/toy.py one --quick"
    assert run() == 0  # all of them
    assert sorted(os.listdir(tmp_path)) == ["toy.json", "toy_one.json", "toy_two.json"]


def test_help():
    assert "--force" in succeed(ROOT / "studies/feature_learning.py", "--help").stdout


@pytest.mark.parametrize("name", FAST)
def test_quick_run(name, tmp_path):
    done = python(ROOT / "studies" / f"{name}.py", "--quick", "--output", tmp_path)
    path = tmp_path / f"{name}.json"
    assert (done.returncode, done.stdout) == (0, f"{path}\n"), done.stderr
    found, kept = (json.loads(p.read_text()) for p in (path, RESULTS / path.name))
    assert found.keys() >= kept.keys() and os.listdir(tmp_path) == [path.name]


# --- what is stored is what the commands draw ---------------------------------------------

FILES = {f"comparison_{name}": ("comparison", name) for name in COMPARISONS}
APART |= {"comparison", "feature_learning", "scale"}  # have tests of their own below
FILES |= {name: (name, None) for name in STUDIES if name not in APART}
OWN = {"feature_learning", "feature_learning_centred", "peers", "scale"}
HOSTILE = {"doors", "hostile"}  # in test_hostile.py
SECONDS = {"benchmarks"}  # nothing but seconds
FIELDS = ("command", "seed", "settings", "commits", "versions", "date", "processor")
FIELDS += ("seconds",)


def git(*words):
    "What git says of the repository, in words; none without git or a checkout."
    if not shutil.which("git"):
        return []
    options = dict(capture_output=True, text=True, cwd=ROOT, check=False)
    return subprocess.run(["git", *words], **options).stdout.split()


def test_every_file_says_how_it_was_made():
    "All fields, and commits of this history where it is here."
    whole = git("rev-parse", "--is-shallow-repository") == ["false"]
    history = git("rev-list", "HEAD") if whole else []
    offenders = {}
    for path in sorted(RESULTS.glob("*.json")):
        about = json.loads(path.read_text())
        for part, record in about.get("benchmarks", {"": about}).items():
            missing = [name for name in FIELDS if name not in record]
            commits = record.get("commits", [])
            strange = [c for c in commits if not any(x.startswith(c) for x in history)]
            if missing or "note" in record or (history and strange):
                offenders[path.stem] = f"{part}: without {missing}, from {commits}"
    assert not offenders


class FoundError(Exception):
    "What a study draws first."


@pytest.mark.parametrize("file", sorted(FILES))
@pytest.mark.filterwarnings("ignore::spectral_moments.results.EstimateWarning")
def test_first_draws(common, file):
    study, part = FILES[file]
    stored, module = common.read(file), load_study(study)
    settings, seed = module.STUDIES[part] if part else (module.SETTINGS, module.SEED)
    assert (stored["seed"], stored["settings"]) == (seed, json.loads(json.dumps(settings)))
    assert stored["command"] == f"python studies/{study}.py{' ' + part if part else ''}"
    if hasattr(module, "load") and not load_study("recordings").available():
        pytest.skip("the recordings are not here")

    class First(common.Run):
        def repeat(self, name, function, count, **options):
            super().repeat(name, function, 1)
            raise FoundError(name)

    run = First(settings, seed, report=silent)
    with pytest.raises(FoundError):
        module.measure(run)
    ((name, found),) = run.first.items()
    assert len(found[0]) > 0
    new, old = (np.array(x[0], float) for x in (found, stored["first_draws"][name]))
    np.testing.assert_allclose(new, old, rtol=1e-6, atol=1e-12)


def test_every_file_is_drawn_again():
    known = {*FILES, *OWN, *HOSTILE, *SECONDS}
    assert {path.stem for path in RESULTS.glob("*.json")} == known


@pytest.mark.filterwarnings("ignore::spectral_moments.results.EstimateWarning")
def test_first_networks(common):
    "The first layers of chapter 17, before they learn."
    study = load_study("feature_learning")
    try:
        study.load_fashion_mnist()
    except FileNotFoundError:
        pytest.skip("Fashion-MNIST is not installed")

    def layer(width, seed):
        known = study.SETTINGS["fashion"]
        networks, (split,) = study.drawn("fashion", known, width, [seed])
        return networks.hidden(split.test_images)[0]

    for part in ("", "centred"):
        stored = common.read(f"feature_learning{part and '_' + part}")
        settings, seed = study.PARTS[part][1:3]
        assert (stored["settings"], stored["seed"]) == (settings, seed)
        assert stored["command"] == f"python studies/feature_learning.py {part}".strip()
    first = common.read("feature_learning")["first_draws"]
    for seed, known in zip((0, study.TOGETHER), first["groups"]):  # of the first two groups
        phi = layer(1024, seed)
        found = naive(phi / np.sqrt(np.mean(phi**2)), 7)
        np.testing.assert_allclose(found, known[:7], rtol=1e-6)
    first = common.read("feature_learning_centred")["first_draws"]
    for width, known in zip(study.CENTRED["widths"], first["widths"]):
        ratio = participation_ratio(layer(width, 0))
        np.testing.assert_allclose([ratio.value, ratio.stderr], known[:2], rtol=1e-6)


def test_first_matrices_of_peers(common):
    stored, process = common.read("peers"), RBF(3, kernel_cov=0.25)
    drawn = (np.random.default_rng([0, 25, i]) for i in range(stored["draws"]))
    found = [naive(process.sample(25, 50, rng), 4) for rng in drawn]
    mean = np.mean(found, axis=0) / process.moments(4)
    by_order = stored["moments"]["naive by SVD"]
    kept = [by_order[str(n)][0]["mean"] for n in (2, 3, 4)]
    np.testing.assert_allclose(mean[1:], kept, rtol=1e-3)  # four digits are stored


def test_first_rows_of_scale(common):
    "The workers are given these rows; their first moment by its definition."
    pytest.importorskip("dask.array")
    study = load_study("scale")
    shape, chunk = study.SETTINGS["shapes"][0], study.SETTINGS["chunk"]
    rows = np.asarray(study.array(shape, chunk)[chunk : chunk + 100])
    found = study.first_rows(shape, chunk, 1)
    np.testing.assert_allclose(found[0], np.var(rows, axis=0, ddof=1).mean(), rtol=1e-12)
    stored = common.read("scale")
    for index, known in enumerate(stored["first_draws"]["first rows"]):
        np.testing.assert_allclose(study.first_rows(shape, chunk, index), known, rtol=1e-6)


def test_scale_follows_from_its_seconds(common):
    stored, study = common.read("scale"), load_study("scale")
    assert (stored["seed"], stored["settings"]) == (study.SEED, study.SETTINGS)
    chunks = study.SETTINGS["schedule"]["chunks"]
    rates = study.fitted(stored["runs"], stored["schedule"], chunks)
    assert rates == pytest.approx(stored["rates"])
    paper = study.PAPER | study.on_paper(rates, **study.PAPER)
    assert paper == pytest.approx(stored["paper"])


def test_pages_say_what_they_were_made_of():
    "Whatever reads a stored file prints its command, seed, commit and date."
    for path in sorted(ROOT.glob("nbs/*.ipynb")):
        text = path.read_text()
        if "results/" in text or "import read" in text or "made, read" in text:
            assert "source(" in text, path.name


def test_source(common, capsys):
    about = dict(command="python studies/x.py", seed=3, commits=["a", "b", "c"], seconds=30)
    common.source(about | {"date": "2026-01-02"}, "12 seeds")
    line = "12 seeds; python studies/x.py; seed 3; commit a to c; 2026-01-02; 0.5 minutes"
    assert capsys.readouterr().out == line + "\n"


def test_reproduced_numbers_are_compared(tmp_path):
    path = ROOT / "tools" / "reproduce.py"
    spec = importlib.util.spec_from_file_location("reproduce", path)
    reproduce = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reproduce)
    stored = {"date": "x", "a": [1.0, float("nan")], "b": {"c": 2}}
    assert "the same" in reproduce.compared(stored, stored | {"date": "y"})
    assert "1 of 3 numbers differ: a 0" in reproduce.compared(
        stored, stored | {"a": [1.1, float("nan")]}
    )
    (tmp_path / "x.json").write_text(json.dumps({"commits": ["a"]}))
    assert reproduce.made_here(tmp_path / "x.json", "a")
    assert not reproduce.made_here(tmp_path / "x.json", "b")


# --- checkpoints --------------------------------------------------------------------------


def test_checkpoint(common, tmp_path):
    path, part = tmp_path / "x", np.array([[1.5, np.nan], [1e-300, np.inf]])
    common.Checkpoint(path, {"seed": 1}).add((4, "a"), part)
    common.Checkpoint(path, {"seed": 1}).add((4, "b"), part / 3)
    again = common.Checkpoint(path, {"seed": 1})
    np.testing.assert_array_equal(again.parts[4, "a"], part)
    np.testing.assert_array_equal(again.parts[4, "b"], part / 3)  # to the last bit
    text = path.read_text()
    for damage in (text[:-5], text[:-1], text + "[1", text.replace('[4, "b"]', "[4")):
        path.write_text(damage)
        assert (4, "a") in common.Checkpoint(path, {"seed": 1}).parts
    path.write_text("")
    assert common.Checkpoint(path, {"seed": 1}).parts == {}
    again.finish()
    assert not path.exists()
