"""The comparison of estimators: errors of its tables."""

import numpy as np
from comparison import select, signed_root, summary, tabulate


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
