"""What no reader needs to see of the chapter on error bars."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectral_moments import RBF, Linear, all_cycles
from spectral_moments import estimate as centred_estimate
from spectral_moments.engine import choice
from spectral_moments.engine.reduction import Axis
from spectral_moments.errors import (
    SCALES,
    Scale,
    at_each,
    axes_covariance,
    axis_error,
    error_shape,
    interval,
    normal_units,
    usable,
)
from spectral_moments.results import Estimate, Quantity, from_moments, holm, power_words


def estimate(phi, n_max, **options):
    """Moments of the operator itself: the mean stays unless asked for."""
    return centred_estimate(phi, n_max, **{"center": False, **options})


def influences(values, deviations):
    """Means over the cycles through each of N rows, from the deviations without it."""
    m, n = values[:, None], np.arange(1, len(values) + 1)[:, None]
    return m - (deviations.shape[1] / n - 1) * deviations


# --- influences and errors of an estimate -------------------------------------------------


@pytest.mark.parametrize(
    ("T", "options"),
    [(1, {}), (2, {}), *((1, dict(population=x)) for x in ((None, 40), (50, 15)))],
)
def test_small_matrices_are_deleted_literally(T, options):
    """Against brute force, at 12 x 15; the derivative alone is off by up to a factor."""
    rng, shape = np.random.default_rng(1), (12, 15)
    phi = Linear(5).sample(*shape, rng) + 1 + 0.3 * rng.standard_normal((T, *shape))
    est = centred_estimate(phi, 3, **options)
    for axis, name in enumerate(("inputs", "features")):
        size = (options.get("population") or (None, None))[axis]
        left = np.sqrt(1 - shape[axis] / size) if size else 1.0
        for unit in range(shape[axis]):
            part = np.delete(phi, unit, axis=axis + 1)
            without = centred_estimate(part, 3, stderr=False, **options) if left else est
            expected = left * (without.values - est.values)
            found = est.axes[name].deviations[:, unit]
            np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-10)


def test_derivative_or_deletion(monkeypatch):
    """Where deletions are too many, centred rows are right to first order."""
    phi = Linear(5).sample(12, 16, random_state=12) + np.arange(16)
    literal = centred_estimate(phi, 3)
    monkeypatch.setattr(choice, "LITERAL", 0)
    linear = centred_estimate(phi, 3)
    exact, near = literal.parts["inputs"], linear.parts["inputs"]
    np.testing.assert_allclose(
        linear.parts["features"], literal.parts["features"], rtol=1e-7
    )
    np.testing.assert_allclose(near, exact, rtol=0.3)
    np.testing.assert_allclose(near[0], exact[0], rtol=1e-7)


def test_centred_errors_against_the_spread():
    """Not below the spread at twelve rows, where version 0.1 had .88 of it."""
    process, rng = Linear(5), np.random.default_rng(3)
    found = [estimate(process.sample(12, 16, rng) + 1, 2, center=True) for _ in range(150)]
    spread = np.std([est.values for est in found], axis=0)
    mean = np.sqrt(np.mean([est.stderr**2 for est in found], axis=0))
    assert (mean > 0.95 * spread).all() and (mean < 1.6 * spread).all()


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
    product = used_up.derive(lambda m: m[0] * m[3])
    assert np.isfinite(product.value) and np.isinf(product.stderr)
    assert np.isinf(centred_estimate(np.random.default_rng(8).random((6, 9)), 3).stderr[2])


# --- expected_stderr ----------------------------------------------------------------------


def test_expected_stderr():
    est = estimate(Linear(5).sample(30, 40, random_state=1), 3)
    np.testing.assert_allclose(est.expected_stderr(30, 40).middle, est.stderr, rtol=1e-12)
    sizes = (10**9, 40), (30, 10**9)
    more_rows, more_columns = (est.expected_stderr(*size).middle for size in sizes)
    np.testing.assert_allclose(more_rows, est.parts["features"], rtol=1e-3)
    np.testing.assert_allclose(more_columns, est.parts["inputs"], rtol=1e-3)
    n = np.arange(1, 4)
    for P in (12, 300):
        rows = est.parts["inputs"] ** 2 * ((P - 1) / (P - n) * (30 - n) / 29) ** 2 * 30 / P
        found = est.expected_stderr(P, 40).middle ** 2 - est.parts["features"] ** 2
        np.testing.assert_allclose(found, rows, rtol=1e-8)
    assert np.isinf(est.expected_stderr(3, 40).middle).tolist() == [False, False, True]
    with pytest.raises(ValueError, match="inputs = 0"):
        est.expected_stderr(0, 40)
    with pytest.raises(TypeError, match="features must be a whole number"):
        est.expected_stderr(30, 1.5)


def test_expected_stderr_without_errors():
    none = estimate(np.random.default_rng(1).standard_normal((9, 9)), 2, stderr=False)
    assert np.isnan(none.expected_stderr(20, 20)).all()


def test_expected_stderr_of_no_dimension():
    "Where there is no dimension, there is none to expect."
    est = from_moments([1.0, -0.5], [0.1, 0.4], shape=(1, 30, 40))
    axes = {
        kind: Axis(np.vstack([np.r_[x, -x], np.r_[x, -x] / 2]))
        for kind, x in (("inputs", np.full(15, 0.01)), ("features", np.full(20, 0.01)))
    }
    est = replace(est, axes=axes)
    assert np.isnan(est.dimension().value)
    assert np.isnan(est.expected_stderr(60, of="dimension")).all()


def test_expected_stderr_of_groups():
    """Groups are the units that vary; twice the rows are twice the groups."""
    phi, labels = Linear(5).sample(40, 30, random_state=2), np.arange(40) // 2
    est = estimate(phi, 2, groups=labels, random_state=0)
    np.testing.assert_allclose(est.expected_stderr(40, 30).middle, est.stderr, rtol=1e-10)
    n, units = np.arange(1, 3), 20
    factor = ((39 / (40 - n)) / (19 / (units - n))) ** 2 / 2
    rows = est.expected_stderr(80, 30).middle ** 2 - est.parts["features"] ** 2
    np.testing.assert_allclose(rows, factor * est.parts["inputs"] ** 2, rtol=1e-8)


class Gains:
    """Rows of random gains."""

    def sample(self, P, Q, rng):
        return np.exp(0.5 * rng.standard_normal((P, 1))) * Linear(6).sample(P, Q, rng)


@pytest.mark.parametrize(("process", "most"), [(RBF(3), 1.6), (Linear(7), 2.5)])
def test_expected_stderr_of_the_dimension(process, most):
    "As the dimension of many matrices spreads; too long where all eigenvalues are equal."
    draw = lambda P, Q, k: process.sample(P, Q, np.random.default_rng([71, k]))
    est = estimate(draw(40, 50, 0), 2)
    forecast = lambda *size: est.expected_stderr(*size, of="dimension")
    assert forecast().middle == pytest.approx(est.dimension().stderr)
    assert forecast(80).middle < forecast(80, 25).middle < forecast(40, 25).middle
    found = [estimate(draw(80, 100, k), 2).dimension().value for k in range(1, 61)]
    small = [estimate(draw(40, 50, k), 2) for k in range(61, 81)]
    told = [x.expected_stderr(80, 100, of="dimension") for x in small]
    spread = np.std(found, ddof=1)
    assert np.mean([x.low < spread < x.high for x in told]) >= 0.9
    assert 0.8 * spread < np.median([x.middle for x in told]) < most * spread
    assert str(forecast(80)).splitlines()[0].split() == ["low", "middle", "high"]
    with pytest.raises(ValueError, match="of = 'rank' is not"):
        est.expected_stderr(80, of="rank")


@pytest.mark.parametrize(("process", "least"), [(Linear(7), 0.9), (Gains(), 0.65)])
def test_the_range_of_expected_errors(process, least):
    """From 30 x 40 to 60 x 80; of rows in gains it is too narrow, and a note says so."""
    draw = lambda shape, k: process.sample(*shape, np.random.default_rng([70, k]))
    values = [all_cycles(draw((60, 80), k), 2) for k in range(150)]
    spread = np.std(values, axis=0, ddof=1)
    inside = []
    for k in range(200, 230):
        low, middle, high = estimate(draw((30, 40), k), 2).expected_stderr(60, 80)
        assert (low < middle).all() and (middle < high).all()
        inside.append((low < spread) & (spread < high))
    assert np.mean(inside) > least


# --- shape of the error -------------------------------------------------------------------


def test_error_shape_by_definition():
    rng = np.random.default_rng(4)
    rows, columns = rng.exponential(size=(3, 9)), rng.standard_normal((3, 12))
    a, degrees = error_shape({"inputs": Axis(rows), "features": Axis(columns)})
    for n in range(3):
        u = [np.sqrt((len(d) - 1) / len(d)) * (d.mean() - d) for d in (rows[n], columns[n])]
        v = sum((x**2).sum() for x in u)
        assert a[n] == pytest.approx(sum((x**3).sum() for x in u) / 6 / v**1.5)
        loose = sum((x**4).sum() - (x**2).sum() ** 2 / len(x) for x in u)
        assert degrees[n] == pytest.approx(min(2 * v**2 / loose, 8 + 11))


def test_error_shape_of_nothing():
    zero, unknown = np.zeros((1, 5)), np.full((1, 5), np.nan)
    for side in (zero, unknown):
        a, degrees = error_shape({"a": Axis(side), "b": Axis(side)})
        assert a[0] == 0 and degrees[0] == np.inf
    for size in (1e-200, 1e200):  # no overflow, no underflow
        d = size * np.random.default_rng(5).exponential(size=(1, 20))
        a, degrees = error_shape({"a": Axis(d), "b": Axis(d)})
        assert 0 < abs(a[0]) < 1 / 6 and 1 < degrees[0] <= 38


def test_acceleration_has_the_sign_of_the_tail():
    """A row whose removal lowers the estimate most makes the error skewed upwards."""
    strong = np.zeros((1, 50))
    strong[0, 7] = -1.0  # the estimate without it is lower
    a, degrees = error_shape({"a": Axis(strong), "b": Axis(np.zeros((1, 50)))})
    assert 0.15 < a[0] <= 1 / 6 and degrees[0] == 3  # never fewer, unless units are
    few = {"trials": Axis(np.array([[-1.0, 0.2, 0.8]])), "b": Axis(np.zeros((1, 50)))}
    assert error_shape(few)[1][0] == 2


def test_jackknife_of_the_mean_is_its_standard_error():
    x = np.random.default_rng(10).standard_normal((2, 30))
    deviations = (x.sum(1, keepdims=True) - x) / 29 - x.mean(1, keepdims=True)
    covariance = axes_covariance({"inputs": Axis(deviations)})
    np.testing.assert_allclose(covariance, np.cov(x) / 30, rtol=1e-12)
    np.testing.assert_allclose(axis_error(Axis(deviations)) ** 2, covariance.diagonal())
    # three rows that stand for ten each, instead of each of them ten times
    few = Axis(deviations[:, :3], np.full(3, 10.0))
    many = Axis(np.repeat(deviations[:, :3], 10, axis=1))
    np.testing.assert_allclose(axis_error(few), axis_error(many), rtol=1e-12)


def test_a_covariance_is_an_axis():
    root = np.random.default_rng(11).standard_normal((3, 3))
    units = normal_units(root @ root.T)
    assert units.shape == (3, 6)
    found = axes_covariance({"probes": Axis(units)})
    np.testing.assert_allclose(found, root @ root.T, rtol=1e-9)
    assert error_shape({"probes": Axis(units)})[1].tolist() == [np.inf] * 3  # well known


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
    """At few degrees of freedom the interval is wider, never below one degree."""
    ends = [interval([1.0], [0.1], degrees=d) for d in (0.5, 1, 3, 10, 1e9, np.inf)]
    width = [(high - low)[0] for low, high in ends]
    assert width[0] == width[1] > width[2] > width[3] > width[4] == width[5]


def test_interval_of_an_estimate_uses_its_deviations():
    est = estimate(
        np.exp(np.random.default_rng(7).standard_normal((30, 1))) * np.ones(25), 2
    )
    low, high = est.interval()
    plain = interval(est.values, est.stderr)
    assert (high > plain[1]).all()
    bare = from_moments(est.values, est.stderr)
    np.testing.assert_allclose(bare.interval(), plain, rtol=1e-9)


# --- which orders to use ------------------------------------------------------------------


def test_usable():
    values, errors = [1.0, 0.5, -0.3, 0.1, np.nan], [0.1, 0.25, 0.1, 0.2, 0.1]
    assert usable(values, errors).tolist() == [True, False, False, False, False]
    assert usable([1.0, 0.5, 0.3], [0.1, 0.4, 0.01]).tolist() == [True, False, False]


# --- numbers made of moments --------------------------------------------------------------


def by_definition(f, est, power):
    """(bias-corrected place, standard error there, plain place) of f, unit by unit."""
    h = lambda v: np.log(v) if not power else np.sign(v) * abs(v) ** power
    s, bias, variance = h(f(est.values)), 0.0, 0.0
    for axis in est.axes.values():
        each = np.array([h(f(est.values + d)) for d in axis.deviations.T])
        bias += (len(each) - 1) * (each.mean() - s)
        variance += (len(each) - 1) / len(each) * ((each - each.mean()) ** 2).sum()
    divided = power != 0 and bias * s > 0
    return (s / (1 + bias / s) if divided else s - bias), np.sqrt(variance), s


@pytest.mark.parametrize("scale", [*SCALES, 1 / 3])
def test_derive_by_definition(scale):
    est = estimate(Linear(4).sample(18, 25, random_state=1), 3)
    f = lambda m: m[0] ** 2 / m[1]
    power = SCALES[scale].power if isinstance(scale, str) else scale
    found = est.derive(f, scale)
    at, error, plain = by_definition(f, est, power)
    assert found.at == pytest.approx(at, rel=1e-9)
    assert found.error == pytest.approx(error, rel=1e-9)
    assert found.plain == pytest.approx(f(est.values))
    step = 1e-6 * at
    slope = (Scale(power).back(at + step) - Scale(power).back(at - step)) / (2 * step)
    assert found.stderr == pytest.approx(abs(slope) * error, rel=1e-6)
    low, high = found.interval()
    wider = found.interval(0.99)
    assert wider[0] < low < found.value < high < wider[1]
    one_by_one = est.derive(lambda m: float(m[0]) ** 2 / float(m[1]), scale)
    assert one_by_one.value == pytest.approx(found.value, rel=1e-12)
    linear = est.derive(f, scale, linear=True)
    assert linear.error == pytest.approx(found.error, rel=0.3)


def test_at_each_is_not_fooled_by_a_square():
    moments = np.arange(9.0).reshape(3, 3) + 1
    weights = np.array([1.0, -1.0, 2.0])
    np.testing.assert_allclose(at_each(lambda m: m @ weights, moments), weights @ moments)
    np.testing.assert_allclose(at_each(lambda m: m.sum(), moments), moments.sum(axis=0))
    assert at_each(lambda m: m[0], np.ones((2, 5000))).shape == (5000,)


def test_linear_ignores_what_f_does_not_use():
    est = from_moments([1.0, 0.2, 0.1], [0.1, 0.02, np.inf])
    found = est.derive(lambda m: m[0] - m[1], linear=True)
    assert found.stderr == pytest.approx(np.hypot(0.1, 0.02), rel=1e-6)


def test_dimension_is_one_number():
    """On the scale of its reciprocal, never negative, of any order."""
    est = estimate(Linear(20).sample(60, 80, random_state=2), 4)
    found = est.dimension()
    same = est.derive(lambda m: m[0] ** 2 / m[1], "reciprocal")
    assert found.value == pytest.approx(same.value, rel=1e-12)
    assert found.interval() == pytest.approx(same.interval())
    assert est.to_dict()["dimension"]["value"] == found.value
    assert f"{found.name}: {found}" in str(est)
    third = est.derive(lambda m: (m[2] / m[0] ** 3) ** (1 / (1 - 3)), "reciprocal")
    assert est.dimension(3).value == pytest.approx(third.value, rel=1e-9)
    exact = from_moments(20 * np.array([1.0, 1.0, 1.0]) * 0.7 ** np.arange(1, 4))
    assert [exact.dimension(n).value for n in (2, 3)] == pytest.approx([20, 20])
    with pytest.raises(ValueError, match="order = 5 needs m\\(5\\)"):
        est.dimension(5)
    with pytest.raises(ValueError, match="order = 2 needs"):
        from_moments([1.0]).dimension()


def test_dimension_where_the_second_moment_is_not_known():
    unknown = from_moments([1.0, -0.01], [0.01, 0.02]).dimension()
    low, high = unknown.interval()
    assert np.isnan(unknown.value) and np.isnan(unknown.stderr)
    assert 20 < low < 50 and high == np.inf and str(unknown).startswith("at least")
    assert unknown.to_dict()["value"] is None and unknown.to_dict()["high95"] is None
    open_end = from_moments([1.0, 0.02], [0.01, 0.02]).dimension()
    assert open_end.value > 0 and "95%: at least" in str(open_end)
    nothing = from_moments([1.0, -0.9], [0.01, 0.02]).dimension()
    assert np.isnan(nothing.interval()).all() and str(nothing) == "not known"


def test_dimension_of_noisy_trials_covers_and_is_never_negative():
    rng, truth, hits = np.random.default_rng(3), 5.0, []
    for _ in range(40):
        phi = Linear(5).sample(40, 40, rng) + 3 * rng.standard_normal((2, 40, 40))
        found = estimate(phi, 2).dimension()
        low, high = found.interval()
        hits.append(low <= truth <= high)
        assert not found.value < 0 and 0 < low < np.inf
    assert np.mean(hits) > 0.85


def test_quantities_print_format_and_convert():
    est = estimate(Linear(5).sample(40, 50, random_state=4), 2)
    q = est.dimension()
    low, high = q.interval()
    assert str(q) == f"{q.value:.4g} +- {q.stderr:.2g} (95%: {low:.3g} to {high:.3g})"
    assert f"{q}" == str(q) and f"{q:.2f}" == f"{q.value:.2f}" and float(q) == q.value
    assert set(q.to_dict()) == {"value", "stderr", "low95", "high95", "plain"}
    bare = estimate(Linear(5).sample(40, 50, random_state=4), 2, stderr=False).dimension()
    assert str(bare).endswith("(no standard error)") and bare.value == q.plain


def test_quantities_of_one_call_are_paired():
    est = estimate(Linear(5).sample(40, 50, random_state=5), 3)
    first, second = est.derive(lambda m: m[0]), est.derive(lambda m: m[1])
    difference, ratio = first - second, second / first
    direct = est.derive(lambda m: m[0] - m[1])
    assert difference.value == pytest.approx(direct.value)
    assert difference.stderr == pytest.approx(direct.stderr, rel=1e-9)
    same = est.derive(lambda m: m[1] / m[0], "log")
    assert ratio.stderr / ratio.value == pytest.approx(same.stderr / same.value, rel=0.05)
    assert (first - first).stderr == 0 and (first / first).stderr == 0
    other = estimate(Linear(5).sample(40, 50, random_state=6), 3).derive(lambda m: m[0])
    assert (first - other).stderr == pytest.approx(np.hypot(first.stderr, other.stderr))
    assert (first - 1).value == pytest.approx(first.value - 1)
    assert (first / 2).stderr == pytest.approx(first.stderr / 2)
    reciprocal = est.dimension() - est.dimension(3)
    assert reciprocal.value == pytest.approx(est.dimension().value - est.dimension(3).value)
    assert np.isnan((first / Quantity(-1.0)).value)


def test_words_of_two_systems():
    rng = np.random.default_rng(7)
    words = [("a",), ("b",), ("a", "a"), ("a", "b"), ("b", "b")]
    values = np.array([1.0, 2.0, 0.2, 0.1, 0.9])
    axes = {
        k: Axis(0.01 * rng.standard_normal((5, 30))) for k in ("inputs", "features of a")
    }
    shapes = {"a": (1, 30, 40), "b": (1, 30, 50)}
    est = Estimate(values, axes, words, shapes, ["all_cycles"] * 5)
    assert est.orders.tolist() == [1, 1, 2, 2, 2] and "a b" in str(est)
    ratio = est.derive(lambda m: m[3] / np.sqrt(m[2] * m[4]))
    assert ratio.plain == pytest.approx(0.1 / np.sqrt(0.18)) and ratio.stderr > 0
    assert est.dimension(system="b").plain == pytest.approx(4 / 0.9)
    assert est.to_dict()["words"][3] == ["a", "b"] and est.to_dict()["dimension"] is None
    assert power_words(2) == [("phi",), ("phi", "phi")]


def test_holm():
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, np.nan]), [0.03, 0.06, 0.06, np.nan])
    np.testing.assert_allclose(holm([0.9, 0.8]), [1, 1])


# --- the module ---------------------------------------------------------------------------


def test_refused():
    est = from_moments([1.0, 0.1], [0.1, 0.01])
    for call in (est.interval, est.dimension().interval):
        with pytest.raises(ValueError, match="level = 95 must lie between 0 and 1"):
            call(95)
    with pytest.raises(ValueError, match="scale = 'cube' is not one of identity"):
        est.derive(lambda m: m[0], "cube")


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("center", "gaps"), [(True, 0), (False, 0), (False, 0.05)])
def test_units_of_a_finite_population_meet_themselves_once(center, gaps, axis):
    "More units than are left out literally, of unequal size, half of them seen."
    size, rng = 110, np.random.default_rng(5 + axis)
    shape = (size, 1) if axis == 0 else (1, size)
    phi = Linear(15).sample(*((size, 90) if axis == 0 else (90, size)), random_state=rng)
    phi = phi * np.exp(0.8 * rng.standard_normal(shape)) + 0.3
    phi[rng.random(phi.shape) < gaps] = np.nan
    population = (2 * size, None) if axis == 0 else (None, 2 * size)
    options = dict(center=center, population=population)
    est = centred_estimate(phi, 3, **options)
    told = axis_error(est.axes[["inputs", "features"][axis]])
    less = (np.delete(phi, unit, axis) for unit in range(size))
    less = [centred_estimate(x, 3, stderr=False, **options).values for x in less]
    literal = np.sqrt((1 - 1 / 2) * (size - 1) * np.var(less, axis=0))
    np.testing.assert_allclose(told[:2], literal[:2], rtol=0.015)
    assert 1 <= told[2] / literal[2] < 1.2  # of order 3 the mean over units is exact
