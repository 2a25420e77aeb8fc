"""Feasible moments, eigenvalues, dimension: fuzzing, a peer package, messages."""

import math

import dimensionality
import numpy as np
import pytest
from conftest import spectra
from hypothesis import given, settings
from hypothesis import strategies as st

import spectral_moments as sm
from spectral_moments import all_cycles, estimate
from spectral_moments.processes import RBF, Linear, power_sums
from spectral_moments.results import from_moments
from spectral_moments.spectrum import moment_problem as problem

# --- the dimension ---


@pytest.mark.parametrize("shape", [(10, 7), (50, 80), (80, 50), (200, 30)])
@pytest.mark.parametrize("mean", [0.0, 3.0])
def test_denominator_is_that_of_the_package_dimensionality(shape, mean):
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((shape[0], 3)), rng.standard_normal((shape[1], 3))
    phi = x @ w.T + 0.1 * rng.standard_normal(shape) + mean * rng.standard_normal(shape[1])
    parts = dimensionality.participation_ratio(phi, return_parts=True)
    np.testing.assert_allclose(all_cycles(phi, 2, center=True)[1], parts["B"], rtol=1e-9)


def test_nearly_the_package_dimensionality_on_large_matrices():
    phi = Linear(4).sample(300, 400, 2)
    found = sm.participation_ratio(phi)
    assert found.value == pytest.approx(dimensionality.participation_ratio(phi), rel=0.01)


@pytest.mark.parametrize("options", [{}, {"center": False}, {"population": (None, 40)}])
def test_one_dimension_everywhere(options):
    phi = RBF(2).sample(30, 40, 4)
    est = estimate(phi, 4, **options)
    others = [sm.renyi_dimension(est, 2), sm.participation_ratio(phi, **options)]
    others.append(sm.dimension_sweep(phi, (0.5,), n_draws=2, **options).whole)
    for found in others:
        assert found.to_dict() == pytest.approx(est.dimension().to_dict(), rel=1e-9)
    drawn = sm.plot_dimensions(est, n_max=2).lines[0].get_ydata()
    assert drawn == pytest.approx([est.dimension().value])


@pytest.mark.parametrize(
    ("eigenvalues", "ratio"), [(np.geomspace(1, 0.05, 8), 1.0), (np.ones(8), math.sqrt(2))]
)
def test_standard_error_against_the_spread(eigenvalues, ratio):
    # equal eigenvalues maximise the ratio: no first-order term, twice the variance
    rng = np.random.default_rng(7)
    truth, found = eigenvalues.sum() ** 2 / (eigenvalues**2).sum(), []
    for _ in range(150):
        x, w = rng.standard_normal((40, 8)), rng.standard_normal((50, 8))
        q = sm.participation_ratio(x * np.sqrt(eigenvalues) @ w.T)
        low, high = q.interval(0.9)
        found.append([q.value, q.stderr, low < truth < high])
    values, errors, covered = np.array(found).T
    assert errors.mean() / values.std(ddof=1) == pytest.approx(ratio, rel=0.15)
    assert covered.mean() > 0.85
    assert values.mean() == pytest.approx(truth, rel=0.05)


@given(spectra)
@settings(max_examples=30, deadline=None)
def test_renyi_dimensions_decrease(eigenvalues):
    m = power_sums(eigenvalues, 6)
    values = [sm.renyi_dimension(m, n).value for n in range(2, 7)]
    assert (np.diff(values) <= 1e-9 * values[0]).all()
    assert values[-1] >= 1 - 1e-9 and values[0] <= len(eigenvalues) * (1 + 1e-9)


def test_trials_and_gaps():
    rng, process = np.random.default_rng(10), Linear(6)
    phi = process.sample(150, 160, 1)
    trials = phi + rng.standard_normal((4, *phi.shape))
    gaps = np.where(rng.random(trials.shape) < 0.1, np.nan, trials)
    for data in (trials, gaps):
        found = sm.participation_ratio(data, random_state=1)
        assert abs(found.value - 6) < 4 * found.stderr < 6
    assert sm.participation_ratio(trials.mean(axis=0)).value > 6.3  # the noise counts


def test_no_answer_without_a_positive_denominator():
    phi = np.array([[1.0, -1.0], [1.0, 1.0]])
    for data in (phi, np.zeros((5, 5))):
        assert np.isnan(sm.participation_ratio(data, center=False).value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sm.participation_ratio([1.0, 0.5]), "1 axes|2 axes|must have 2"),
        (lambda: sm.participation_ratio(np.ones((3, 5))), "4 distinct rows"),
        (lambda: sm.participation_ratio(np.ones((5, 1))), "n_max = 2 exceeds"),
        (lambda: sm.renyi_dimension([1.0, 0.5], 3), r"needs m\(3\)"),
        (lambda: sm.renyi_dimension([1.0, 0.5], 1), "order = 1 is too small"),
        (lambda: sm.plot_dimensions(from_moments([1, 1, 1], [2, 2, 2])), "not usable"),
    ],
)
def test_messages(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# --- sm.feasible moments ---


def with_errors(m, error=0.05):
    return from_moments(m, error * abs(np.asarray(m)))


def is_feasible(m):
    "Hankel matrices of a moment sequence are positive semidefinite, up to rounding."
    if m[1] == 0:
        return not m[1:].any()
    scaled = m / (m[-1] / m[-2]) ** np.arange(1, len(m) + 1)
    for first in (0, 1):
        size = (len(m) - first + 1) // 2
        H = scaled[np.add.outer(np.arange(size), np.arange(size)) + first]
        if np.linalg.eigvalsh(H).min() < -1e-9 * np.trace(H):
            return False
    return True


@given(spectra, st.integers(2, 7), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_feasible_moments_are_moments(eigenvalues, k, seed):
    rng, m = np.random.default_rng(seed), power_sums(eigenvalues, k)
    stderr = m * np.linspace(0.05, 1.5, k)
    noisy = m + stderr * rng.standard_normal(k)
    noisy[0] = abs(noisy[0])
    found = sm.feasible(from_moments(noisy, stderr))
    assert (found.values >= 0).all() and is_feasible(found.values)
    n = np.arange(k)
    np.testing.assert_allclose(
        found.grid ** n[:, None] @ found.trace, found.values, rtol=1e-9
    )
    assert found.trace.min() >= 0 and (np.diff(found.eigenvalues(20)) <= 1e-12).all()


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e7])
def test_feasible_scales(scale):
    est = estimate(RBF(3).sample(40, 60, 1), 5, center=False)
    n = np.arange(1, 6)
    C = est.covariance * scale ** np.add.outer(n, n)
    moved = from_moments(est.values * scale**n, covariance=C)
    one, other = sm.feasible(est), sm.feasible(moved)
    np.testing.assert_allclose(other.values, one.values * scale**n, rtol=1e-6)
    np.testing.assert_allclose(other.eigenvalues(5), scale * one.eigenvalues(5), rtol=1e-5)


def test_feasible_keeps_good_moments_and_repairs_bad_ones():
    m = power_sums([1.0, 0.5, 0.2, 0.2], 6)
    np.testing.assert_allclose(sm.feasible(with_errors(m, 1e-5)).values, m, rtol=1e-4)
    bad = m.copy()
    bad[4] = -0.1
    stderr = m * [0.01, 0.01, 0.01, 0.01, 2.0, 0.01]
    repaired = sm.feasible(from_moments(bad, stderr)).values
    np.testing.assert_allclose(repaired[[0, 1, 2, 3, 5]], m[[0, 1, 2, 3, 5]], rtol=0.03)
    assert repaired[4] == pytest.approx(m[4], rel=0.05)  # the others tell it


def test_spectrum_is_deterministic_and_keeps_the_errors():
    est = estimate(RBF(3).sample(40, 60, 2), 5, center=False)
    one, other = sm.feasible(est), sm.feasible(est)
    np.testing.assert_array_equal(one.values, other.values)
    np.testing.assert_allclose(one.moments.stderr, est.stderr, rtol=1e-9)
    spread = np.sqrt(one.linearised.diagonal())
    assert (spread <= 1.05 * est.stderr).all()
    low, high = one.moments.interval(0.9)
    assert (low < one.values).all() and (one.values < high).all()
    number = one.measure[1]
    assert len(one.eigenvalues()) == max(1, round(number.sum()))


def test_unknown_orders_are_left_out():
    m = power_sums([1.0, 0.5, 0.2], 5)
    est = from_moments(m, np.append(0.1 * m[:3], [np.nan, np.inf]))
    assert len(problem.moments_and_covariance(est)[0]) == len(sm.feasible(est).values) == 3
    with pytest.raises(ValueError, match="standard errors"):
        sm.feasible(m)
    with pytest.raises(ValueError, match="not positive"):
        sm.feasible(from_moments(-m, m))


def test_recovery_without_count_and_upper():
    est = estimate(sm.PowerLaw(1.0).sample(60, 80, 3), 4)
    np.testing.assert_array_equal(
        sm.recover_eigenvalues(est), sm.feasible(est).eigenvalues()
    )
    np.testing.assert_array_equal(
        sm.recover_eigenvalues(est, 7), sm.feasible(est).eigenvalues(7)
    )
    with pytest.raises(ValueError, match="needs count"):
        sm.recover_eigenvalues(est, upper=1.0)
    with pytest.raises(ValueError, match="upper"):
        sm.recover_eigenvalues(est, 3, weights=np.ones(4))


def test_the_measure_of_maximum_entropy_of_sharp_moments_is_near_the_truth():
    for process in (Linear(5), sm.PowerLaw(1.0)):
        truth = process.eigenvalues(5)
        one = sm.feasible(with_errors(process.moments(7), 1e-6)).eigenvalues(5)
        assert abs(one - truth).sum() < 0.05 * truth.sum()


def test_with_the_trace_alone_eigenvalues_form_a_geometric_sequence():
    s = problem.moment_grid(150)
    width = np.append(0, np.diff([0, *(s[1:-1] + s[2:]) / 2, 1]))
    one = np.ones(1)
    even = problem.maximum_entropy(
        7 * one, 0.1 * one, np.ones((1, len(s))), np.eye(1), width
    )
    np.testing.assert_allclose(even, 7 * width, rtol=1e-9)
    spectrum = sm.Spectrum(None, from_moments(7 * one, one), np.eye(1), s, even)
    found = spectrum.eigenvalues(12)
    np.testing.assert_allclose(found[1:] / found[:-1], np.exp(-1 / 7), rtol=0.02)
