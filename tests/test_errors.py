"""The jackknife, intervals and scales, against their definitions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from spectral_moments import errors
from spectral_moments.errors import (
    SCALES,
    ErrorDistribution,
    Replicates,
    Scale,
    covariance,
    error_distribution,
    evaluate,
    influence,
    jackknife,
    moment_intervals,
    normal_replicates,
    quantiles,
    standard_error,
    total_error,
    usable,
)

RNG = np.random.default_rng(3)
INPUTS = Replicates(RNG.standard_normal((3, 20)))
FEATURES = Replicates(0.3 * RNG.standard_normal((3, 30)) ** 3)
BOTH = {"inputs": INPUTS, "features": FEATURES}


def jackknife_variance(deviations):
    "The textbook: (N - 1) / N times the sum of squares about the mean."
    N = deviations.shape[-1]
    centred = deviations - deviations.mean(axis=-1, keepdims=True)
    return (N - 1) / N * (centred**2).sum(axis=-1)


def test_standard_errors_add_in_squares():
    np.testing.assert_allclose(
        standard_error(INPUTS) ** 2, jackknife_variance(INPUTS.deviations), rtol=1e-12
    )
    parts = [jackknife_variance(x.deviations) for x in BOTH.values()]
    np.testing.assert_allclose(total_error(BOTH) ** 2, sum(parts), rtol=1e-12)
    np.testing.assert_allclose(np.diag(covariance(BOTH)), sum(parts), rtol=1e-12)
    pairs = [influence(x)[0] @ influence(x)[2] for x in BOTH.values()]
    np.testing.assert_allclose(covariance(BOTH)[0, 2], sum(pairs), rtol=1e-12)


def test_a_unit_that_stands_for_three_is_three_units():
    "Multiplicities give what copies of the units give, up to (N - 1) / N of the copies."
    some = RNG.standard_normal((2, 8))
    stands = Replicates(some, np.full(8, 3.0))
    copies = Replicates(np.repeat(some, 3, axis=1))
    np.testing.assert_allclose(standard_error(stands), standard_error(copies), rtol=1e-12)
    assert stands.n_units == copies.n_units == 24
    one, other = ({"inputs": x} for x in (stands, copies))
    one, other = error_distribution(one), error_distribution(other)
    for name in ("acceleration", "effective_units", "largest_share"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-12)


def test_unknown_errors_are_infinite():
    unknown = Replicates(np.array([[1.0, np.inf, 2.0], [1.0, 2.0, 3.0]]))
    assert np.isinf(standard_error(unknown)).tolist() == [True, False]
    assert np.isinf(standard_error(Replicates(np.ones((2, 1))))).all()
    assert np.isinf(covariance({"inputs": unknown})[0, 0])
    found = error_distribution({"inputs": unknown})
    assert np.isinf(found.error[0]) and found.acceleration[0] == 0


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_no_square_leaves_the_range(size):
    with np.errstate(all="raise", under="ignore"):
        found = standard_error(Replicates(size * INPUTS.deviations))
        np.testing.assert_allclose(found, size * standard_error(INPUTS), rtol=1e-12)
        large = {"inputs": Replicates(size * INPUTS.deviations)}
        same = error_distribution({"inputs": INPUTS})
        scaled = error_distribution(large)
    np.testing.assert_allclose(scaled[1:], same[1:], rtol=1e-9)


def test_normal_replicates_have_the_covariance():
    known = np.cov(RNG.standard_normal((4, 9))) * np.outer(*[10.0 ** np.arange(4)] * 2)
    found = covariance({"given": normal_replicates(known)})
    np.testing.assert_allclose(found, known, rtol=1e-9)
    known[1, 1] = np.inf
    assert np.isinf(standard_error(normal_replicates(known))).tolist() == [0, 1, 0, 0]


def test_acceleration_and_degrees_by_definition():
    "Third and fourth sums written out; draws enter the variance only."
    draws = normal_replicates(np.eye(3))
    found = error_distribution({**BOTH, "draws": draws})
    u = [math.sqrt(1 - 1 / x.n_units) * -(x.deviations - x.deviations.mean(1)[:, None])
         for x in BOTH.values()]  # fmt: skip
    v = sum((x**2).sum(1) for x in u) + 1
    third = sum((x**3).sum(1) for x in u)
    spread = sum((x**4).sum(1) - (x**2).sum(1) ** 2 / x.shape[1] for x in u)
    np.testing.assert_allclose(found.error, np.sqrt(v), rtol=1e-12)
    np.testing.assert_allclose(found.acceleration, third / 6 / v**1.5, rtol=1e-12)
    degrees = np.clip(2 * v**2 / spread, errors.MIN_DEGREES, 20 + 30 - 2)
    np.testing.assert_allclose(found.degrees, degrees, rtol=1e-12)
    single = Replicates(np.eye(1, 50))
    assert error_distribution({"inputs": single}).degrees == errors.MIN_DEGREES


def test_quantiles():
    down, up = quantiles(0.05)
    assert down == up == pytest.approx(stats.norm.ppf(0.975), rel=1e-5)
    t = stats.t.ppf(0.995, 7)
    down, up = quantiles(0.01, 0.1, 7)
    assert (down, up) == pytest.approx((t / (1 + 0.1 * t), t / (1 - 0.1 * t)))
    assert quantiles(0.05, 5.0)[1] == pytest.approx(3 * stats.norm.ppf(0.975), rel=1e-5)


def test_intervals_of_moments_by_definition():
    m, s, n = np.array([1.0, 0.5, 0.2, -0.01, 0.1]), np.array([0.1, 0.1, 0.1, 0.02, 0.3]), 5
    low, high = moment_intervals(m, np.arange(1, n + 1), ErrorDistribution(s, 0.0, np.inf))
    z = stats.norm.ppf(0.975)
    assert low[:3] == pytest.approx(
        [(1 - z * s[k] / m[k] / (k + 1)) ** (k + 1) * m[k] for k in range(3)], rel=1e-5
    )
    assert high[:3] == pytest.approx(m[:3] * np.exp(z * s[:3] / m[:3]), rel=1e-5)
    assert low[3:] == pytest.approx(m[3:] - z * s[3:], rel=1e-5)
    rho = errors.LOG_SCALE
    assert high[3] == pytest.approx(m[3] + s[3] * math.expm1(z * rho) / rho, rel=1e-5)
    near = [
        moment_intervals([x], [2], ErrorDistribution([0.15], 0, np.inf))[1][0]
        for x in (0.1 - 1e-9, 0.1 + 1e-9)
    ]
    assert near[0] == pytest.approx(near[1], rel=1e-6)  # continuous at r = 3/2


# --- which orders are certain -------------------------------------------------------------


def test_usable():
    assert usable([1, 1, 1], [0.1, 0.4, 0.1]).tolist() == [True, False, False]
    assert usable([1, -1], [0.1, 0.1]).tolist() == [True, False]
    assert usable([1], [np.nan]).tolist() == [False]
    assert usable([1, 1], [0.1, 0.1], np.array([0.2, 0.6])).tolist() == [True, False]


def test_largest_share_and_effective_units():
    deviations = np.zeros((2, 10))
    deviations[0, 3], deviations[1] = 3.0, np.arange(10)
    sources = {"inputs": Replicates(deviations), "features": Replicates(0 * deviations)}
    one = (deviations[1] - 4.5) ** 2
    expected = [0.9, one.max() / one.sum()]  # a single deviation is centred as well
    share = lambda sources: error_distribution(sources).largest_share
    np.testing.assert_allclose(share(sources), expected, rtol=1e-12)
    draws = normal_replicates(np.diag([1e6, 1e6]))  # no unit of a sample
    assert (share({**sources, "draws": draws}) < 1e-3).all()
    assert share({"given": normal_replicates(np.eye(2))}).tolist() == [0, 0]
    deviations[:, 4] = -deviations[:, 3]
    deviations[:, 5:] = deviations[:, :3] = 0  # two units of equal influence
    for other in ({}, {"draws": draws}):
        found = error_distribution({"inputs": Replicates(deviations), **other})
        np.testing.assert_allclose(found.effective_units, 2)


# --- scales and functions of moments ------------------------------------------------------


@given(st.sampled_from([*SCALES.values(), Scale(1 / 3)]), st.floats(0.1, 10))
def test_scales_go_there_and_back(scale, at):
    value = float(scale.back(at))
    assert float(scale.to(value)) == pytest.approx(at, rel=1e-9)
    step = 1e-6 * at
    slope = (scale.back(at + step) - scale.back(at - step)) / (2 * step)
    assert float(scale.derivative(at)) == pytest.approx(float(slope), rel=1e-5)


def test_past_the_end_of_a_reciprocal():
    assert np.isnan(SCALES["reciprocal"].back([-1.0, 0.0])).all()
    assert SCALES["identity"].back(-2.0) == -2 and SCALES["root"].to(-4.0) == -2


def test_evaluate_is_not_fooled_by_a_square():
    moments, weights = np.arange(9.0).reshape(3, 3) + 1, np.array([1.0, -1.0, 2.0])
    np.testing.assert_allclose(evaluate(lambda m: m @ weights, moments), weights @ moments)
    np.testing.assert_allclose(evaluate(lambda m: m.sum(), moments), moments.sum(axis=0))
    assert evaluate(lambda m: m[0], np.ones((2, 5000))).shape == (5000,)
    assert evaluate(lambda m: math.sqrt(m[0]), moments).tolist() == [1, 2**0.5, 3**0.5]


VALUES = np.array([2.0, 0.5, 0.3])


@pytest.mark.parametrize("multiplicity", [None, 3.0])
@pytest.mark.parametrize("power", [1.0, 0.5, 0.0, -1.0, 1 / 3])
def test_jackknife_by_definition(power, multiplicity):
    "The function at each unit, its bias and its spread, source by source."
    f, scale = lambda m: m[0] ** 2 / m[1], Scale(power)
    there = lambda m: math.log(f(m)) if power == 0 else f(m) ** power
    sources = {key: x._replace(deviations=0.01 * x.deviations) for key, x in BOTH.items()}
    if multiplicity:
        sources = {
            k: x._replace(multiplicity=np.full(int(x.n_units), 3.0))
            for k, x in sources.items()
        }
    transformed, uncorrected, replicates = jackknife(f, VALUES, sources, scale)
    bias = variance = 0.0
    for source in sources.values():
        d, N = source.deviations, source.n_units
        d = d - d.mean(axis=1, keepdims=True) if multiplicity else d
        change = np.array([there(VALUES + x) for x in d.T]) - there(VALUES)
        bias += (N - 1) * change.mean()
        spread = ((change - change.mean()) ** 2).mean()
        variance += (N - 1) * spread
    plain = there(VALUES)
    divided = power and bias * plain > 0
    at = plain / (1 + bias / plain) if divided else plain - bias
    assert uncorrected == pytest.approx(plain, rel=1e-12)
    assert transformed == pytest.approx(at, rel=1e-9)
    error = total_error(replicates)[0]
    assert error == pytest.approx(math.sqrt(variance), rel=1e-9)
    linear = jackknife(f, VALUES, sources, scale, linear=True)
    assert total_error(linear[2])[0] == pytest.approx(error, rel=0.05)


def test_linear_ignores_what_f_does_not_use():
    known = normal_replicates(np.diag([0.01, 0.0004, np.inf]))
    options = dict(scale=SCALES["identity"], linear=True)
    found = jackknife(lambda m: m[0] - m[1], VALUES, {"given": known}, **options)
    assert total_error(found[2])[0] == pytest.approx(math.hypot(0.1, 0.02), rel=1e-6)
