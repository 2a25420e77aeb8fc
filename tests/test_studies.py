"""What the studies share, and that each of them runs."""

import json
import os

import numpy as np
import pytest
from conftest import RESULTS, ROOT, load_study, python, silent, succeed

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
    assert stored(tmp_path) == alone


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
    assert study("--seed", "8", measure=lambda run: measure(run, 1)) == 130  # another run
    assert sorted(os.listdir(tmp_path)) == ["toy.partial", "toy.partial.1"]
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


def test_counts(common):
    tree = {"rows": [3, 9], "a": {"repetitions": 2, "n_max": 7}, "n_sketches": 4}
    assert common.counts(tree) == {
        ("rows",): 9,
        ("a", "repetitions"): 2,
        ("n_sketches",): 4,
    }
    assert common.merged(tree, {"a": {"n_max": 1}})["a"] == {"repetitions": 2, "n_max": 1}
    assert tree["a"]["n_max"] == 7
    run = common.Run(SETTINGS, 1, report=silent)
    assert run.once("a", lambda x, y: [x, y], 1, y=2) == [1, 2]


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
    for name in ("auto_choice", "feature_learning"):
        assert "--force" in succeed(ROOT / "studies" / f"{name}.py", "--help").stdout


@pytest.mark.parametrize("name", FAST)
def test_quick_run(name, tmp_path):
    done = python(ROOT / "studies" / f"{name}.py", "--quick", "--output", tmp_path)
    path = tmp_path / f"{name}.json"
    assert (done.returncode, done.stdout) == (0, f"{path}\n"), done.stderr
    found, kept = (json.loads(p.read_text()) for p in (path, RESULTS / path.name))
    assert found.keys() == kept.keys() and os.listdir(tmp_path) == [path.name]


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
    again.finish()
    assert not path.exists()


def test_checkpoint_of_other_settings_is_kept(common, tmp_path):
    path = tmp_path / "x"
    for seed in (1, 2, 3):
        store = common.Checkpoint(path, {"seed": seed})
        assert store.parts == {}
        store.add((0,), [seed])
    assert sorted(os.listdir(tmp_path)) == ["x", "x.1", "x.2"]
    os.replace(tmp_path / "x.1", path)
    assert common.Checkpoint(path, {"seed": 1}).parts == {(0,): [1]}
    path.write_text("")
    assert common.Checkpoint(path, {"seed": 1}).parts == {}


def test_checkpoint_without_a_file(common):
    store = common.Checkpoint(None, {})
    store.add((1,), 2)
    assert store.parts == {(1,): 2}
    store.finish()
