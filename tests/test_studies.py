"""The runner of the studies, and that what is stored is what they draw."""

import importlib
import json
import os

import common
import numpy as np
import pytest
from common import RESULTS, Part, differences, read
from conftest import ROOT

from spectral_moments import RBF, naive

STUDIES = "comparison noise spectrum feature_learning error_bars cortex alignment"
STUDIES = [*STUDIES.split(), "exponents", "functions"]
PARTS = [(name, label) for name in STUDIES for label in importlib.import_module(name).PARTS]
FAST = [("comparison", label) for label in ("small_dim10", "small_dim4", "small_dim2")]
FAST += [("error_bars", "usable"), ("cortex", "one_trial")]


def draws(run):
    "A study of random numbers."
    one = lambda index: {"x": np.random.default_rng([run.seed, index]).random(2)}
    found = run.repeat("draws", one, run.settings["n_matrices"])
    return {"sum": np.sum([part["x"] for part in found], axis=0)}


TOY = {"one": Part(draws, {"n_matrices": 6}, 7), "two": Part(draws, {"n_matrices": 3}, 8)}


@pytest.fixture
def toy(tmp_path, monkeypatch):
    "A function that runs the toy from the command line, and one that reads what it stored."
    monkeypatch.setattr(common, "RESULTS", tmp_path)
    run = lambda *arguments: common.main("x/toy.py", "A toy.", TOY, list(arguments))
    return run, lambda: json.loads((tmp_path / "toy.json").read_text())


def test_file_says_how_it_was_made(toy, tmp_path):
    run, stored = toy
    assert run("one") == run("two") == 0
    found = stored()["one"]
    assert found["command"] == "python studies/toy.py one" and found["seed"] == 7
    assert found["versions"].keys() >= {"python", "spectral_moments", "numpy", "numba"}
    assert found["seconds"] >= 0 and found["commits"] and found["processor"]
    first = [np.random.default_rng([7, index]).random(2).tolist() for index in (0, 1)]
    assert found["first_draws"] == {"draws": first}
    expected = sum(np.random.default_rng([7, index]).random(2) for index in range(6))
    np.testing.assert_allclose(found["sum"], expected, rtol=1e-14)
    assert os.listdir(tmp_path) == ["toy.json"]
    run("one")
    assert list(stored()) == ["one", "two"] and stored()["two"]["seed"] == 8
    with pytest.raises(SystemExit):
        run("three")


def test_check(toy, tmp_path, capsys):
    run, stored = toy
    run()
    assert run("--check") == 0
    other = stored()
    other["one"]["first_draws"]["draws"][1][0] += 1e-3
    other["two"]["settings"] = {"n_matrices": 2}
    (tmp_path / "toy.json").write_text(json.dumps(other))
    capsys.readouterr()
    assert run("--check") == 1
    shown = capsys.readouterr().out.splitlines()
    assert shown == [
        "toy one differs in draws of draws",
        "toy two differs in seed or settings",
    ]


def test_interrupted_and_resumed(tmp_path):
    done, last = [], [3]

    def one(index):
        if index == last[0]:
            raise KeyboardInterrupt
        done.append(index)
        return np.random.default_rng([7, index]).random(2)

    part = Part(lambda run: {"all": run.repeat("draws", one, 6)}, {}, 7)
    compute = lambda: common.compute("toy", tmp_path / "toy.json", "one", part)
    with pytest.raises(KeyboardInterrupt):
        compute()
    assert os.listdir(tmp_path) == ["toy_one.partial"] and done == [0, 1, 2]
    with (tmp_path / "toy_one.partial").open("a") as file:
        file.write('\n["draws", 3, 0.1')  # cut off
    last[0] = None
    compute()
    assert done == [0, 1, 2, 3, 4, 5]  # the first three are not computed again
    expected = [np.random.default_rng([7, index]).random(2).tolist() for index in range(6)]
    assert json.loads((tmp_path / "toy.json").read_text())["one"]["all"] == expected


# --- what is stored is what the commands draw ---------------------------------------------


def test_one_file_for_each_study():
    names = {path.stem for path in RESULTS.glob("*.json")}
    assert names == {*STUDIES, "benchmarks"}


@pytest.mark.parametrize(("name", "label"), PARTS)
def test_stored_part_is_the_one_of_the_study(name, label):
    stored, part = read(name, label), importlib.import_module(name).PARTS[label]
    assert stored["command"] == f"python studies/{name}.py {label}"
    asked = json.loads(json.dumps([part.seed, part.settings]))
    assert [stored["seed"], stored["settings"]] == asked


@pytest.mark.parametrize(("name", "label"), FAST)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # spread of equal draws
def test_first_draws(name, label):
    study = importlib.import_module(name)
    if hasattr(study, "load") and not importlib.import_module("recordings").available():
        pytest.skip("the recordings are not here")
    assert list(differences(study.PARTS[label], read(name, label))) == []


def test_first_matrices_of_peers():
    stored, process = read("benchmarks", "peers"), RBF(3, kernel_cov=0.25)
    drawn = (np.random.default_rng([0, 25, i]) for i in range(stored["draws"]))
    found = [naive(process.sample(25, 50, rng), 4) for rng in drawn]
    mean = np.mean(found, axis=0) / process.moments(4)
    kept = stored["moments"]["naive by SVD"][0]["mean"]
    np.testing.assert_allclose(mean[2], kept, rtol=1e-3)  # four digits are stored


def test_pages_say_what_they_were_made_of():
    "Whatever reads a stored file prints its command, seed, commit and date."
    for path in sorted(ROOT.glob("nbs/*.ipynb")):
        text = path.read_text()
        if "results/" in text or "import common" in text or "import read" in text:
            assert "source(" in text, path.name
