"""What no reader needs to see of the chapter on error bars."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectral_moments import Estimate, EstimateWarning, Linear, all_cycles, estimate
from spectral_moments.teaching.cycles import mean_over_disjoint
from spectral_moments.errors import (
    doubts,
    error_shape,
    few_carry,
    interval,
    moment_ratio,
    usable,
)

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{EstimateWarning.__module__}.EstimateWarning"
)


def influences(values, without):
    """Means over the cycles through each of N rows, from the estimates without it."""
    m, n = values[:, None], np.arange(1, len(values) + 1)[:, None]
    return m + (without.shape[1] / n - 1) * (m - without)


def left_out(phi, n_max, axis, **options):
    """Estimates without each row or column, shape (n_max, number)."""
    parts = [np.delete(phi, i, axis=axis) for i in range(phi.shape[axis])]
    return np.array([all_cycles(part, n_max, **options) for part in parts]).T


# --- influences and errors of an estimate -------------------------------------------------


@pytest.mark.parametrize("shape", [(6, 7), (9, 6), (12, 30)])
def test_replicates_leave_one_out(shape):
    phi = np.random.default_rng(1).standard_normal(shape)
    est = estimate(phi, 4)
    for axis, found in enumerate(est.replicates):
        expected = left_out(phi, 4, axis)
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)
        g = influences(est.values, found)
        np.testing.assert_allclose(g.mean(axis=1), est.values, rtol=1e-8, atol=1e-10)
    parts = [
        (N - 1) * np.var(left_out(phi, 4, axis), axis=1) for axis, N in enumerate(shape)
    ]
    np.testing.assert_allclose(est.stderr_rows**2, parts[0], rtol=1e-8)
    np.testing.assert_allclose(est.stderr_columns**2, parts[1], rtol=1e-8)
    np.testing.assert_allclose(est.stderr**2, sum(parts), rtol=1e-8)
    np.testing.assert_allclose(est.covariance.diagonal(), sum(parts), rtol=1e-8)


def test_order_of_rows_does_not_matter():
    rng = np.random.default_rng(2)
    phi = rng.standard_normal((20, 25)) + 1
    shuffled = phi[rng.permutation(20)][:, rng.permutation(25)]
    one, other = estimate(phi, 4).stderr, estimate(shuffled, 4).stderr
    np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.parametrize("P", [12, 20])
def test_centred_errors(P):
    """Columns exact, rows to first order, and not too small on average."""
    phi = Linear(5).sample(P, 16, random_state=P) + np.arange(16)
    est = estimate(phi, 3, center=True)
    exact = [
        np.sqrt((N - 1) * np.var(left_out(phi, 3, axis, center=True), axis=1))
        for axis, N in enumerate(phi.shape)
    ]
    np.testing.assert_allclose(est.stderr_columns, exact[1], rtol=1e-7)
    np.testing.assert_allclose(est.stderr_rows, exact[0], rtol=0.2)
    np.testing.assert_allclose(est.stderr_rows[0], exact[0][0], rtol=1e-7)


def test_centred_errors_against_the_spread():
    """Not below the spread at twelve rows, where version 0.1 had .88 of it."""
    process, rng = Linear(5), np.random.default_rng(3)
    found = [estimate(process.sample(12, 16, rng) + 1, 2, center=True) for _ in range(200)]
    spread = np.std([est.values for est in found], axis=0)
    mean = np.sqrt(np.mean([est.stderr**2 for est in found], axis=0))
    assert (mean > 0.95 * spread).all()


def test_degenerate_matrices():
    constant = estimate(np.full((5, 6), 3.0), 3)
    assert (constant.stderr < 1e-9 * constant.values).all()
    low, high = constant.interval()
    np.testing.assert_allclose(low, high, rtol=1e-6)
    used_up = estimate(np.random.default_rng(8).standard_normal((4, 6)), 4)
    assert np.isfinite(used_up.stderr[:3]).all() and np.isinf(used_up.stderr[3])
    low, high = used_up.interval()
    assert (
        low[3] == -np.inf and high[3] == np.inf and np.isfinite([low[:3], high[:3]]).all()
    )
    assert "lower n_max" in " ".join(used_up.notes)
    value, error = moment_ratio(abs(used_up.values), used_up.covariance, (1, 0, 0, 1))
    assert np.isfinite(value) and np.isinf(error)


def test_scaling():
    phi = np.random.default_rng(5).standard_normal((12, 14)) + 1
    plain, n = estimate(phi, 3), np.arange(1, 4)
    for factor in (2.0**-40, 3.0, 2.0**40):
        scaled = estimate(factor * phi, 3)
        np.testing.assert_allclose(
            scaled.stderr, plain.stderr * factor ** (2 * n), rtol=1e-7
        )
        for a, b in zip(plain.interval(), scaled.interval(), strict=True):
            np.testing.assert_allclose(b, a * factor ** (2 * n), rtol=1e-7)


# --- expected_stderr ----------------------------------------------------------------------


def test_expected_stderr():
    est = estimate(Linear(5).sample(30, 40, random_state=1), 3)
    np.testing.assert_allclose(est.expected_stderr(30, 40), est.stderr, rtol=1e-12)
    more_rows, more_columns = est.expected_stderr(10**9, 40), est.expected_stderr(30, 10**9)
    np.testing.assert_allclose(more_rows, est.stderr_columns, rtol=1e-3)
    np.testing.assert_allclose(more_columns, est.stderr_rows, rtol=1e-3)
    n = np.arange(1, 4)
    for P in (12, 300):
        rows = est.stderr_rows**2 * ((P - 1) / (P - n) * (30 - n) / 29) ** 2 * 30 / P
        found = est.expected_stderr(P, 40) ** 2 - est.stderr_columns**2
        np.testing.assert_allclose(found, rows, rtol=1e-8)
    assert np.isinf(est.expected_stderr(3, 40)).tolist() == [False, False, True]
    with pytest.raises(ValueError, match="P = 0"):
        est.expected_stderr(0, 40)
    with pytest.raises(TypeError, match="Q must be a whole number"):
        est.expected_stderr(30, 1.5)


def test_expected_stderr_without_errors():
    none = estimate(np.random.default_rng(1).standard_normal((9, 9)), 2, stderr=False)
    assert np.isnan(none.expected_stderr(20, 20)).all()
    given_parts = Estimate(
        np.ones(2),
        np.ones(2),
        ["increasing"] * 2,
        (1, 10, 10),
        stderr_rows=np.ones(2),
        stderr_columns=np.ones(2),
    )
    assert (given_parts.expected_stderr(1000, 1000) < 0.2).all()


def test_expected_stderr_of_groups():
    """Groups are the units that vary; twice the rows are twice the groups."""
    phi, labels = Linear(5).sample(40, 30, random_state=2), np.arange(40) // 2
    est = estimate(phi, 2, groups=labels, random_state=0)
    np.testing.assert_allclose(est.expected_stderr(40, 30), est.stderr, rtol=1e-10)
    n, units = np.arange(1, 3), 20
    factor = ((39 / (40 - n)) / (19 / (units - n))) ** 2 / 2
    rows = est.expected_stderr(80, 30) ** 2 - est.stderr_columns**2
    np.testing.assert_allclose(rows, factor * est.stderr_rows**2, rtol=1e-8)


# --- shape of the error -------------------------------------------------------------------


def test_error_shape_by_definition():
    rng = np.random.default_rng(4)
    rows, columns = rng.exponential(size=(3, 9)), rng.standard_normal((3, 12))
    a, degrees = error_shape(rows, columns)
    for n in range(3):
        u = [np.sqrt((len(d) - 1) / len(d)) * (d.mean() - d) for d in (rows[n], columns[n])]
        v = sum((x**2).sum() for x in u)
        assert a[n] == pytest.approx(sum((x**3).sum() for x in u) / 6 / v**1.5)
        loose = sum((x**4).sum() - (x**2).sum() ** 2 / len(x) for x in u)
        assert degrees[n] == pytest.approx(min(2 * v**2 / loose, 8 + 11))


def test_error_shape_of_nothing():
    zero, unknown = np.zeros((1, 5)), np.full((1, 5), np.nan)
    for side in (zero, unknown):
        a, degrees = error_shape(side, side)
        assert a[0] == 0 and degrees[0] == np.inf
    for size in (1e-200, 1e200):  # no overflow, no underflow
        d = size * np.random.default_rng(5).exponential(size=(1, 20))
        a, degrees = error_shape(d, d)
        assert 0 < abs(a[0]) < 1 / 6 and 1 < degrees[0] <= 38


def test_acceleration_has_the_sign_of_the_tail():
    """A row whose removal lowers the estimate most makes the error skewed upwards."""
    strong = np.zeros((1, 50))
    strong[0, 7] = -1.0  # the estimate without it is lower
    a, degrees = error_shape(strong, np.zeros((1, 50)))
    assert 0.15 < a[0] <= 1 / 6 and degrees[0] < 3


def test_few_carry():
    rng = np.random.default_rng(6)
    even = rng.standard_normal((2, 200))
    assert few_carry(even) is None
    even[1, 5] = 100
    assert few_carry(even).startswith("3 of 200 rows carry 9")
    assert "10 of 1000 columns" in few_carry(
        np.r_[rng.standard_normal(10) * 100, rng.standard_normal(990)][None], "columns"
    )
    assert few_carry(even[:, :30]) is None  # too few to tell
    unknown = np.full((1, 60), np.nan)
    assert few_carry(unknown) is None and few_carry(np.zeros((2, 60))) is None


# --- intervals ----------------------------------------------------------------------------

POSITIVE = st.floats(1e-6, 1e6)


@given(
    st.lists(st.tuples(st.floats(-1e6, 1e6), POSITIVE), min_size=1, max_size=8),
    st.floats(-1 / 6, 1 / 6),
    st.floats(0, 1e4),
)
def test_intervals_hold_the_estimate(pairs, acceleration, degrees):
    values, errors = np.array(pairs).T
    how = dict(acceleration=acceleration, degrees=degrees)
    low, high = interval(values, errors, **how)
    wide_low, wide_high = interval(values, errors, level=0.99, **how)
    assert (low <= values).all() and (values <= high).all()
    assert (wide_low <= low).all() and (high <= wide_high).all()


def test_interval_scales_with_the_moments():
    values, errors = np.array([1.0, 0.5, 0.3, -0.1, 0.01]), np.full(5, 0.05)
    how = dict(acceleration=0.05, degrees=12)
    plain, scaled = (np.array(interval(k * values, k * errors, **how)) for k in (1, 7))
    np.testing.assert_allclose(scaled, 7 * plain, rtol=1e-12)


def test_interval_extremes():
    low, high = interval([0.0, 0.0, 1.0, 0.5], [0.0, 1.0, np.inf, 0.0])
    assert (low[0], high[0]) == (0, 0)
    np.testing.assert_allclose([low[3], high[3]], 0.5, rtol=1e-12)
    assert low[1] < 0 < high[1] and (low[2], high[2]) == (-np.inf, np.inf)
    nan_low, nan_high = interval([1.0, np.nan, 1.0], [0.1, 0.1, np.nan])
    assert np.isnan(nan_low[1:]).all() and np.isnan(nan_high[1:]).all()
    low, high = interval([-5.0], [1.0])  # far below zero, and still an interval
    assert low[0] < -5 < high[0]


def test_student_quantiles():
    """At few degrees of freedom the interval is wider, never below three degrees."""
    ends = [interval([1.0], [0.1], degrees=d) for d in (0.5, 3, 10, 1e9, np.inf)]
    width = [(high - low)[0] for low, high in ends]
    assert width[0] == width[1] > width[2] > width[3] == width[4]


def test_interval_of_an_estimate_uses_its_replicates():
    est = estimate(
        np.exp(np.random.default_rng(7).standard_normal((30, 1))) * np.ones(25), 2
    )
    low, high = est.interval()
    plain = interval(est.values, est.stderr)
    assert (high > plain[1]).all()
    bare = Estimate(est.values, est.stderr, est.methods, est.shape)
    np.testing.assert_array_equal(bare.interval(), plain)


def test_coverage_on_skewed_rows():
    """Rows of lognormal gains, few of them: the old interval fails this check."""
    rng, truth, hits = np.random.default_rng(9), 5 * np.exp(1.0), []
    for _ in range(200):
        gains = np.exp(0.5 * rng.standard_normal(20))[:, None]
        est = estimate(gains * Linear(5).sample(20, 30, rng), 2)
        low, high = est.interval()
        hits.append((low[1] <= truth <= high[1], old_root_interval(est, 2, truth)))
    new, old = np.mean(hits, axis=0)
    assert new > 0.86 and old < 0.83


def old_root_interval(est, n, truth):
    """Whether the interval of version 0.1, on the scale of the root, holds the truth."""
    m, step = est.values[n - 1], 1.96 / n * est.stderr[n - 1] / est.values[n - 1]
    return m * (1 - step) ** n <= truth <= m * (1 + step) ** n


# --- doubts -------------------------------------------------------------------------------


def test_usable_and_doubts():
    values, errors = [1.0, 0.5, -0.3, 0.1, np.nan], [0.1, 0.25, 0.1, 0.2, 0.1]
    assert usable(values, errors).tolist() == [True, False, False, False, False]
    said = doubts(values, errors)
    assert [text[:4] for text in said] == ["m(2)", "m(3)", "m(4)", "m(5)"]
    assert doubts([1.0], [0.1]) == []
    good_after_bad = [1.0, 0.5, 0.3], [0.1, 0.4, 0.01]
    assert usable(*good_after_bad).tolist() == [True, False, False]
    assert doubts(*good_after_bad)[1] == "m(3): not usable, because m(2) is not"


@given(st.lists(st.tuples(st.floats(-2, 2), st.floats(0, 2)), min_size=1, max_size=7))
def test_every_unusable_order_is_named(pairs):
    values, errors = np.array(pairs).T
    named = {int(text[2 : text.index(")")]) for text in doubts(values, errors)}
    assert named == set(np.flatnonzero(~usable(values, errors)) + 1)


# --- ratios -------------------------------------------------------------------------------


def test_ratio_by_finite_differences():
    est = estimate(np.random.default_rng(13).standard_normal((30, 40)) + 1, 4)
    values, covariance, powers = est.values, est.covariance, np.array([2.0, -1.0, 0.5])
    value, error = moment_ratio(values, covariance, powers)
    assert value == pytest.approx(np.prod(values[:3] ** powers))
    gradient = []
    for n in range(3):
        up, down = values.copy(), values.copy()
        up[n], down[n] = 1.000001 * values[n], 0.999999 * values[n]
        change = np.prod(up[:3] ** powers) - np.prod(down[:3] ** powers)
        gradient.append(change / (up[n] - down[n]))
    expected = np.sqrt(np.array(gradient) @ covariance[:3, :3] @ gradient)
    assert error == pytest.approx(expected, rel=1e-6)


def test_negative_moments_warn():
    with pytest.warns(RuntimeWarning, match=r"m\(2\) not positive, so the ratio is NaN"):
        assert np.isnan(moment_ratio([1.0, -0.1], np.eye(2), (2, -1))).all()
    with pytest.warns(RuntimeWarning, match=r"m\(2\), m\(3\) not positive"):
        assert np.isnan(moment_ratio([1.0, -0.1, 0.0], np.eye(3), (1, 1, 1))).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        moment_ratio([1.0, 0.5, -1.0], np.eye(3), (1, 1))  # an order that is not used


# --- the module ---------------------------------------------------------------------------


def test_imports_point_one_way():
    code = (
        "import sys, spectral_moments.errors; "
        "names = ('reduction', 'estimation', 'kernel', 'results'); "
        "assert not any('spectral_moments.' + name in sys.modules for name in names)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_influence_is_the_mean_over_cycles_through_a_row():
    phi, n = np.random.default_rng(15).standard_normal((5, 4)), 3
    est = estimate(phi, n)
    whole = mean_over_disjoint(phi, n)
    for i, g in enumerate(influences(est.values, est.replicates[0])[n - 1]):
        rest = mean_over_disjoint(np.delete(phi, i, axis=0), n)
        assert g == pytest.approx((whole - (1 - n / 5) * rest) * 5 / n, rel=1e-8, abs=1e-10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: interval([1.0, 0.2], [0.1]), "both must be arrays"),
        (lambda: interval([[1.0]], [[0.1]]), "both must be arrays"),
        (lambda: interval([1.0], [-0.1]), "negative entries"),
        (lambda: interval([1.0], [0.1], level=95), "between 0 and 1"),
        (lambda: usable([1.0], [0.1, 0.2]), "both must be arrays"),
        (lambda: moment_ratio([1.0, 0.2], np.eye(2), (2, -1, 1)), "do not fit"),
        (lambda: moment_ratio([1.0, 0.2], np.eye(3), (2, -1)), "do not fit"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()
