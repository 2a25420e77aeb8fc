"""The comparison of estimators: errors of its tables, and the stored studies."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from benchmarking import compare_estimators
from comparison import STUDIES, read_study, select, signed_root, summary, tabulate
from conftest import RESULTS

from spectral_moments.processes import RBF


def test_standard_errors_of_the_table():
    entry = lambda phi, n_max: phi[:n_max, 0]  # of mean zero, beside a truth of one half
    process = SimpleNamespace(sample=RBF(1).sample, moments=lambda n_max: [0.5])
    options = dict(estimators={"x": entry}, repetitions=50)
    rows = []
    for seed in range(200):
        table = compare_estimators(process, (2, 2), 1, random_state=seed, **options)
        rows.append(table.loc["x", 1])
    for name in ("bias", "sd", "rmse"):
        values, errors = (np.array([row[k] for row in rows]) for k in (name, f"{name}_se"))
        assert 0.75 < np.sqrt(np.mean(errors**2)) / values.std() < 1.25, name


def test_standard_errors_of_a_summary():
    x = np.random.default_rng(1).gamma(2.0, size=(1500, 400))
    rows = [summary(sample, 1.5) for sample in x]
    for name in ("bias", "variance", "mse", "q05", "q50", "q95"):
        values = np.array([row[name] for row in rows])
        errors = np.array([row[f"{name}_se"] for row in rows])
        assert 0.85 < np.sqrt(np.mean(errors**2)) / values.std() < 1.15, name
    means = [np.mean([row[name] for row in rows]) for name in ("bias", "variance", "mse")]
    np.testing.assert_allclose(means, [0.5, 2, 2.25], rtol=0.01)


def test_roots_with_the_sign_kept_and_with_negatives_dropped():
    np.testing.assert_allclose(signed_root(np.array([-8.0, 0, 8]), 3), [-2, 0, 2])
    values = np.array([[[1.0, 4.0]], [[1.0, -4.0]], [[1.0, 16.0]]])
    table = tabulate({(2, 2): values}, np.array([1.0, 4.0]), ["increasing"])
    kept, dropped = (select(table, n=2, quantity=k) for k in ("root", "positive_root"))
    assert len(table) == 6 and (kept["count"], dropped["count"]) == (3, 2)
    np.testing.assert_allclose(kept.mse, (0 + 16 + 4) / 3)
    np.testing.assert_allclose(dropped.mse, (0 + 4) / 2)


@pytest.mark.parametrize("name", STUDIES)
def test_stored_study_is_the_one_of_the_module(name):
    path, (settings, seed) = RESULTS / f"comparison_{name}.json", STUDIES[name]
    stored = json.loads(path.read_text())
    assert stored["command"] == f"python studies/comparison.py {name}"
    assert (stored["settings"], stored["seed"]) == (settings, seed)
    table = read_study(path)[1]
    assert select(table, method="all_cycles").n.max() == 4
