"""The comparison: the public table, and the stored studies behind the chapter."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from comparison import (
    STUDIES,
    measure,
    one_matrix,
    read_study,
    select,
    signed_root,
    summary,
    tabulate,
)
from conftest import RESULTS, load_study

import spectral_moments as sm
from spectral_moments.processes import RBF, Linear

SETTINGS = dict(estimators=["naive", "increasing", "all_cycles"], n_max=6, seed=3)
SIZES = {(9, 12): 40, (15, 7): 30}


@pytest.fixture(scope="module")
def samples():
    some = lambda *which: one_matrix(Linear(3), *which, **SETTINGS)
    each = lambda shape, count: np.array([some(shape, i) for i in range(count)])
    return {shape: each(shape, count) for shape, count in SIZES.items()}


@pytest.fixture(scope="module")
def table(samples):
    return tabulate(samples, Linear(3).moments(6), SETTINGS["estimators"])


# --- compare_estimators -------------------------------------------------------------------


def test_compare_estimators_prints_and_plots():
    table = sm.compare_estimators(Linear(3), (9, 8), 2, repetitions=5)
    head, *lines = str(table).splitlines()
    assert head.split()[:5] == ["P", "Q", "estimator", "n", "truth"] and len(lines) == 10
    assert head.endswith("repetitions") and lines[0].endswith(" 5")
    from matplotlib.figure import Figure

    for column in ("bias", "sd", "rmse"):
        ax = table.plot(Figure().subplots(), column=column)
        _, labels = ax.get_legend_handles_labels()
        assert len(labels) == 5 and labels[0] == "naive, 9 x 8"


def test_standard_errors_of_the_table():
    entry = lambda phi, n_max: phi[:n_max, 0]  # of mean zero, beside a truth of one half
    process = SimpleNamespace(sample=RBF(1).sample, moments=lambda n_max: [0.5])
    options = dict(estimators={"x": entry}, repetitions=50)
    row = lambda seed: sm.compare_estimators(
        process, (2, 2), 1, random_state=seed, **options
    ).rows[0]
    rows = [*map(row, range(300))]
    for name in ("bias", "sd", "rmse"):
        values, errors = (np.array([row[k] for row in rows]) for k in (name, f"{name}_se"))
        assert 0.75 < np.sqrt(np.mean(errors**2)) / values.std() < 1.25, name


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(estimators=["median"]), "names from naive"),
        (dict(estimators="naive"), "list of names"),
        (dict(repetitions=1), "repetitions = 1"),
        (dict(n_max=0), "n_max = 0"),
        (dict(shapes=(8, 2)), "n_max"),
    ],
)
def test_compare_estimators_refuses(changes, message):
    with pytest.raises(ValueError, match=message):
        sm.compare_estimators(Linear(2), **dict(shapes=(8, 9), repetitions=3) | changes)


# --- the tables of the chapter ------------------------------------------------------------


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
    table = tabulate({(2, 2): values}, np.array([1.0, 4.0]), ["increasing"])
    kept, dropped = (select(table, n=2, quantity=k) for k in ("root", "positive_root"))
    assert len(table) == 6 and (kept["count"], dropped["count"]) == (3, 2)
    np.testing.assert_allclose(kept.mse, (0 + 16 + 4) / 3)
    np.testing.assert_allclose(dropped.mse, (0 + 4) / 2)
    np.testing.assert_allclose([*kept.negative, *dropped.negative], [1 / 3, 0])


def test_a_study_is_stored_and_read(tmp_path):
    common = load_study("common")
    settings, seed = STUDIES["small_dim2"]
    parts = {"small_dim2": (measure, settings, seed, {"repetitions": 3})}
    options = ["small_dim2", "--quick", "--output", str(tmp_path)]
    assert common.main_parts("comparison.py", "x", parts, arguments=options) == 0
    about, table = read_study(tmp_path / "comparison_small_dim2.json")
    assert about["command"] == "python studies/comparison.py small_dim2 --quick"
    assert set(table["count"]) <= {2, 3} and about["settings"]["repetitions"] == 3
    drawing = dict(estimators=settings["estimators"], n_max=7, seed=seed)
    process = RBF(**settings["process"])
    x = np.array([one_matrix(process, (30, 60), i, **drawing) for i in range(3)])
    kept = select(table, method="naive", quantity="moment")
    np.testing.assert_allclose(kept["mean"], x[:, 0].mean(axis=0), rtol=1e-5)


@pytest.mark.parametrize("name", STUDIES)
def test_stored_study_is_the_one_of_the_module(name):
    path, (settings, seed) = RESULTS / f"comparison_{name}.json", STUDIES[name]
    assert path.stat().st_size < 200_000

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    stored = json.loads(path.read_text(), parse_constant=refuse)
    assert stored["command"] == f"python studies/comparison.py {name}"
    assert (stored["settings"], stored["seed"]) == (settings, seed)
    common = load_study("common")
    common.refuse_smaller(path, settings)
    with pytest.raises(ValueError, match="--force"):
        common.refuse_smaller(path, common.with_repetitions(settings, 2))
    assert len(read_study(path)[1]) == len(stored["columns"]["n"])
