"""The experiment runner: same numbers for any number of workers, and after a restart."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import RESULTS, python

from spectral_moments import comparison
from spectral_moments.comparison import (
    STUDIES,
    Table,
    compare,
    draw_samples,
    one_matrix,
    read_study,
    run_study,
    signed_root,
    stored_sizes,
    summary,
    tabulate,
    worker_pool,
)
from spectral_moments.processes import Linear

SETTINGS = dict(estimators=["naive", "increasing", "all_cycles"], n_max=6, seed=3)
SIZES = {(9, 12): 40, (15, 7): 30}


def run(*arguments):
    "The command line in a process of its own."
    return python("-W", "error", "-m", "spectral_moments.comparison", *arguments)


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


def test_checkpoint_is_used_for_its_settings_and_kept_for_others(samples, tmp_path):
    path, few = tmp_path / "x", {(9, 12): 40}
    draw = lambda settings: draw_samples(
        Linear(3), few, n_jobs=1, checkpoint=path, **settings
    )
    first = draw(SETTINGS)
    np.testing.assert_array_equal(first[9, 12], samples[9, 12])
    text = path.read_text()
    header, *lines = text.splitlines()
    for i, line in enumerate(lines):
        key, block = json.loads(line)
        lines[i] = json.dumps([key, (2 * np.array(block)).tolist()])
    path.write_text("\n".join([header, *lines, ""]))
    np.testing.assert_array_equal(draw(SETTINGS)[9, 12], 2 * samples[9, 12])
    path.write_text(text)
    other = draw(SETTINGS | {"seed": 4})
    assert not (other[9, 12] == samples[9, 12]).all()
    assert (tmp_path / "x.1").read_text() == text


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
    assert str(table.where(n=2)) == "n\n2"  # of the columns that are worth it


def test_table_prints_and_plots(samples):
    table = Table(tabulate(samples, Linear(3).moments(6), SETTINGS["estimators"]))
    some = table.where(P=9, quantity="moment", n=2)
    head, *lines = str(some).splitlines()
    assert head.split()[:6] == ["P", "Q", "method", "quantity", "n", "truth"]
    assert len(lines) == 3 and lines[0].split()[2:5] == ["naive", "moment", "2"]
    from matplotlib.figure import Figure

    for column in ("mean", "bias", "variance", "mse"):
        ax = table.where(P=9).plot(Figure().subplots(), column=column)
        _, labels = ax.get_legend_handles_labels()
        assert labels == ["naive", "increasing", "all cycles"]


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
    with worker_pool(1):
        assert os.environ["OMP_NUM_THREADS"] == os.environ["MKL_NUM_THREADS"] == "1"
    assert os.environ["OMP_NUM_THREADS"] == "3" and "MKL_NUM_THREADS" not in os.environ


# ends itself by the signal of Ctrl-C when the first block is in the file, so that the test
# does not depend on how fast the blocks are
INTERRUPTED = """
import os, signal, sys
from spectral_moments import comparison

def add(self, key, part, add=comparison.Checkpoint.add):
    add(self, key, part)
    os.kill(os.getpid(), signal.SIGINT)

if __name__ == "__main__":
    comparison.Checkpoint.add = add
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also in the background
    sys.exit(comparison.main())
"""


def test_command_line_interrupted_and_resumed(tmp_path):
    arguments = ["small_dim2", "--repetitions", "27"]
    whole = run(*arguments, "--jobs", "2", "--output", tmp_path / "whole")
    assert (whole.returncode, whole.stderr) == (0, "")
    path = Path(whole.stdout.strip())
    assert path == tmp_path / "whole" / "comparison_small_dim2.json"

    twice = tmp_path / "twice"
    again = [*arguments, "--jobs", "1", "--output", twice]
    partial = twice / "comparison_small_dim2.partial"
    stopped = python("-c", INTERRUPTED, *again)
    assert (stopped.returncode, stopped.stdout) == (130, "")
    assert stopped.stderr.endswith("continues where it stopped\n")
    assert partial.read_text().count("\n") == 2  # the settings and the first of 2 blocks
    assert os.listdir(twice) == [partial.name]

    assert run(*again).returncode == 0
    assert (twice / path.name).read_bytes() == path.read_bytes()
    assert not partial.exists()

    settings, table = read_study(path)
    assert settings["command"].endswith("comparison small_dim2 --repetitions 27")
    assert settings["sizes"] == [[30, 60, 27]] and settings["seed"] == 77
    assert set(table.count) <= set(range(28)) and 27 in table.count


@pytest.fixture
def in_process(monkeypatch):
    "Studies without worker processes, which take seconds to start."

    def samples(process, sizes, *, checkpoint, n_jobs, progress, **settings):
        Path(checkpoint).touch()
        return {
            size: np.array([one_matrix(process, size, i, **settings) for i in range(count)])
            for size, count in sizes.items()
        }

    monkeypatch.setattr(comparison, "draw_samples", samples)


def test_smaller_study_does_not_replace_a_larger_one(tmp_path, capsys, in_process):
    options = ["--quiet", "--jobs", "1", "--output", str(tmp_path)]
    call = lambda n, *more: comparison.main(
        ["small_dim2", *options, *more, "--repetitions", n]
    )
    path = tmp_path / "comparison_small_dim2.json"
    assert call("5") == 0
    before = path.read_bytes()
    assert call("4") == 1
    assert "more matrices of size (30, 60)" in capsys.readouterr().err
    assert path.read_bytes() == before and os.listdir(tmp_path) == [path.name]
    assert call("5") == 0 and path.read_bytes() == before
    assert call("6") == 0 and stored_sizes(path) == {(30, 60): 6}
    assert call("4", "--force") == 0 and stored_sizes(path) == {(30, 60): 4}
    path.write_text("damaged")
    assert stored_sizes(path) == {} and call("3") == 0


def test_figures_are_drawn_from_what_is_stored(tmp_path, monkeypatch, capsys):
    def refuse(*_, **__):
        raise AssertionError("nothing is to be computed")

    monkeypatch.setattr(comparison, "compare", refuse)
    stored = ["--output", str(RESULTS)]
    for name in ("small_dim4", "main"):
        path = tmp_path / f"{name}.png"
        assert comparison.main([name, "--figure", str(path), *stored]) == 0
        assert path.read_bytes().startswith(b"\x89PNG")
        assert capsys.readouterr().out == f"{path}\n"
    path.write_bytes(b"old")
    for wrong, message in (("x.xyz", "unknown ending"), ("no/x.png", "No such file")):
        assert comparison.main(["main", "--figure", str(tmp_path / wrong), *stored]) == 1
        assert message in capsys.readouterr().err
    monkeypatch.setattr(comparison, "draw_moments", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        comparison.main(["main", "--figure", str(path), *stored])
    assert path.read_bytes() == b"old"
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert comparison.main(["main", "--figure", str(path), *stored]) == 1
    assert "spectral_moments[plot]" in capsys.readouterr().err


def test_figure_computes_what_is_missing(tmp_path, in_process):
    options = ["--quiet", "--jobs", "1", "--output", str(tmp_path), "--repetitions"]
    call = ["small_dim2", "--figure", str(tmp_path / "x.svg"), *options]
    stored = tmp_path / "comparison_small_dim2.json"
    for repetitions, expected in (("4", 4), ("3", 4), ("5", 5)):
        assert comparison.main([*call, repetitions]) == 0
        assert stored_sizes(stored) == {(30, 60): expected}
    before = stored.read_bytes()
    assert comparison.main(call[:-1]) == 0 and stored.read_bytes() == before


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
    path, study = RESULTS / f"comparison_{name}.json", STUDIES[name]
    assert path.stat().st_size < 200_000

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    settings = json.loads(path.read_text(), parse_constant=refuse)
    assert settings["command"] == f"python -m spectral_moments.comparison {name}"
    assert settings["process"] == study["process"] and settings["seed"] == study["seed"]
    assert settings["sizes"] == [[*size, count] for size, count in study["sizes"].items()]
    _, table = read_study(path)
    assert {len(values) for values in table.columns.values()} == {len(table)}
