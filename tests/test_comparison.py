"""The experiment runner: same numbers for any number of workers, and after a restart."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from spectral_moments import comparison
from spectral_moments.comparison import (
    STUDIES,
    Checkpoint,
    Table,
    compare,
    draw_samples,
    one_matrix,
    read_study,
    run_study,
    signed_root,
    summary,
    tabulate,
)
from spectral_moments.operators import Linear

STORED = Path(__file__).resolve().parent.parent / "results"
COMMAND = [sys.executable, "-W", "error", "-m", "spectral_moments.comparison"]
SETTINGS = dict(estimators=["naive", "increasing", "all_cycles"], n_max=6, seed=3)
SIZES = {(9, 12): 40, (15, 7): 30}


def run(*arguments):
    "The command line in a process of its own."
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True)


@pytest.fixture(scope="module")
def samples():
    return draw_samples(Linear(3), SIZES, n_jobs=2, **SETTINGS)


def assert_same(a, b):
    assert a.keys() == b.keys()
    for size in a:
        np.testing.assert_array_equal(a[size], b[size])


def test_result_does_not_depend_on_the_number_of_workers(samples, tmp_path):
    alone = draw_samples(Linear(3), SIZES, n_jobs=1, checkpoint=tmp_path / "x", **SETTINGS)
    assert_same(alone, samples)
    # resumed from a file that was cut in the middle of a line
    text = (tmp_path / "x").read_text()
    (tmp_path / "x").write_text(text[: len(text) // 2])
    assert_same(
        draw_samples(Linear(3), SIZES, n_jobs=2, checkpoint=tmp_path / "x", **SETTINGS),
        samples,
    )


def test_samples_are_those_of_one_matrix(samples):
    for size, values in samples.items():
        assert values.shape == (SIZES[size], 3, 6)
        for index in (0, 24, 25, len(values) - 1):
            expected = one_matrix(Linear(3), size, index, **SETTINGS)
            np.testing.assert_allclose(values[index], expected, rtol=1e-9)
    assert np.isnan(samples[9, 12][:, 2, 5]).all()  # no all_cycles beyond order 5
    assert len(np.unique(samples[9, 12][:, 0, 0])) == 40  # no seed is used twice


def test_checkpoint_of_other_settings_is_not_used(tmp_path):
    store = Checkpoint(tmp_path / "x", {"seed": 1})
    store.add((4, 5, 0, 1), np.array([[[1.5, np.nan]]]))
    np.testing.assert_array_equal(
        Checkpoint(tmp_path / "x", {"seed": 1}).blocks[4, 5, 0, 1], [[[1.5, np.nan]]]
    )
    assert Checkpoint(tmp_path / "x", {"seed": 2}).blocks == {}
    assert Checkpoint(tmp_path / "x", {"seed": 1}).blocks == {}  # it was overwritten
    (tmp_path / "x").write_text("")
    assert Checkpoint(tmp_path / "x", {"seed": 1}).blocks == {}


def test_standard_errors_of_a_summary():
    x = np.random.default_rng(1).gamma(2.0, size=(1500, 400))
    rows = [summary(sample, 1.5) for sample in x]
    for name in ("bias", "variance", "mse", "q05", "q25", "q50", "q75", "q95"):
        values = np.array([row[name] for row in rows])
        errors = np.array([row[f"{name}_se"] for row in rows])
        assert 0.85 < np.sqrt(np.mean(errors**2)) / values.std() < 1.15, name
    means = {name: np.mean([row[name] for row in rows]) for name in rows[0]}
    np.testing.assert_allclose(
        [means["bias"], means["variance"], means["mse"]], [0.5, 2, 2.25], rtol=0.01
    )
    assert means["negative"] == 0 and summary(-x[0], 0.0)["negative"] == 1


def test_roots_with_the_sign_kept_and_with_negatives_dropped():
    np.testing.assert_allclose(signed_root(np.array([-8.0, 0, 8]), 3), [-2, 0, 2])
    values = np.array([[[1.0, 4.0]], [[1.0, -4.0]], [[1.0, 16.0]]])
    table = Table(tabulate({(2, 2): values}, np.array([1.0, 4.0]), ["increasing"]))
    assert len(table) == 6
    kept, dropped = (table.where(n=2, quantity=name) for name in ("root", "positive_root"))
    assert (kept.count, dropped.count) == (3, 2)
    np.testing.assert_allclose(kept.mse, (0 + 16 + 4) / 3)
    np.testing.assert_allclose(dropped.mse, (0 + 4) / 2)
    np.testing.assert_allclose([*kept.negative, *dropped.negative], [1 / 3, 0])


def test_excess_is_the_difference_of_mean_squared_errors(samples):
    table = Table(tabulate(samples, Linear(3).moments(6), SETTINGS["estimators"]))
    for size in SIZES:
        P, Q = size
        ours, theirs = (
            table.where(P=P, Q=Q, quantity="moment", method=method)
            for method in ("increasing", "naive")
        )
        np.testing.assert_allclose(theirs.excess, theirs.mse - ours.mse, atol=1e-15)
        np.testing.assert_array_equal(ours.excess, 0)
    best = table.where(quantity="moment", method="all_cycles", n=[1, 2])
    np.testing.assert_allclose(best.excess, 0, atol=1e-9)  # equal up to order 2


def test_table():
    table = Table([dict(n=1, x=2.0), dict(n=2, x=3.0)])
    assert len(table + table) == 4 and table.where(n=2).x == [3.0]
    with pytest.raises(AttributeError, match="no column 'y'"):
        _ = table.y


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (dict(estimators=["increasing", "median"]), ValueError, "estimator 'median'"),
        (dict(estimators="increasing"), ValueError, "pass a list of names"),
        (dict(estimators=["naive"]), ValueError, "must include 'increasing'"),
        (dict(sizes=[(8, 9)]), TypeError, "dictionary"),
        (dict(sizes={}), TypeError, "dictionary"),
        (dict(sizes={(8, 9): 1}), ValueError, "must be at least 2"),
        (dict(sizes={(8, 4): 9}), ValueError, "too small for n_max = 5"),
        (dict(sizes={(8, 9, 2): 9}), ValueError, "two whole numbers"),
        (dict(sizes={8: 9}), ValueError, "two whole numbers"),
        (dict(n_jobs=0), ValueError, "n_jobs = 0"),
        (dict(seed=-1), ValueError, "seed = -1"),
    ],
)
def test_errors(changes, error, message):
    arguments = dict(sizes={(8, 9): 9}, n_max=5) | changes
    with pytest.raises(error, match=message):
        compare(Linear(2), **arguments)


def test_an_error_in_a_worker_reaches_the_caller():
    with pytest.raises(AttributeError, match="sample"):
        draw_samples(Table({"n": []}), {(8, 9): 2}, n_jobs=1, n_max=2)


def test_progress_bar_needs_tqdm(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match=r"spectral_moments\[progress\]"):
        compare(Linear(2), {(8, 9): 9}, progress=True)


def test_environment_is_restored(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    with comparison._workers(1):
        assert os.environ["OMP_NUM_THREADS"] == os.environ["MKL_NUM_THREADS"] == "1"
    assert os.environ["OMP_NUM_THREADS"] == "3" and "MKL_NUM_THREADS" not in os.environ


def test_command_line_interrupted_and_resumed(tmp_path):
    arguments = ["small_dim2", "--repetitions", "75"]
    whole = run(*arguments, "--jobs", "2", "--output", str(tmp_path / "whole"))
    assert (whole.returncode, whole.stderr) == (0, "")
    path = Path(whole.stdout.strip())
    assert path == tmp_path / "whole" / "comparison_small_dim2.json"

    twice = tmp_path / "twice"
    again = [*arguments, "--jobs", "1", "--output", str(twice)]
    partial = twice / "comparison_small_dim2.partial"
    with subprocess.Popen([*COMMAND, *again], stderr=subprocess.PIPE, text=True) as process:
        while not partial.exists() or partial.read_text().count("\n") < 2:
            assert process.poll() is None, "it ended before it could be interrupted"
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert "continues where it stopped" in process.communicate(timeout=30)[1]
    assert process.returncode == 130
    assert partial.read_text().count("\n") < 4 and not (twice / path.name).exists()
    assert run(*again).returncode == 0
    assert (twice / path.name).read_bytes() == path.read_bytes()
    assert not partial.exists()

    settings, table = read_study(path)
    assert settings["command"].endswith("comparison small_dim2 --repetitions 75")
    assert settings["sizes"] == [[30, 60, 75]] and settings["seed"] == 77
    assert set(table.count) <= set(range(76)) and 75 in table.count


def test_command_line_help_and_errors(tmp_path):
    result = run("--help")
    assert result.returncode == 0 and all(name in result.stdout for name in STUDIES)
    result = run("no_such_study")
    assert result.returncode == 2 and "small_dim2" in result.stderr
    (tmp_path / "file").touch()
    for arguments, message in (
        (["main", "--repetitions", "1"], "must be at least 2"),
        (["main", "--jobs", "0"], "n_jobs = 0"),
        (["main", "--output", str(tmp_path / "file")], "error: "),
    ):
        assert comparison.main(["--quiet", *arguments]) == 1, message
    with pytest.raises(ValueError, match="unknown study 'best'; choose one of main"):
        run_study("best")


@pytest.mark.parametrize("name", STUDIES)
def test_stored_study_is_the_one_of_the_module(name):
    path, study = STORED / f"comparison_{name}.json", STUDIES[name]
    assert path.stat().st_size < 200_000

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    settings = json.loads(path.read_text(), parse_constant=refuse)
    assert settings["command"] == f"python -m spectral_moments.comparison {name}"
    assert settings["process"] == study["process"] and settings["seed"] == study["seed"]
    assert settings["sizes"] == [[*size, count] for size, count in study["sizes"].items()]
    _, table = read_study(path)
    assert {len(values) for values in table.columns.values()} == {len(table)}
