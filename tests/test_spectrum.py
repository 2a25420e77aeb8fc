"""Feasible moments, the dimension, recovery: definitions, a peer package, messages."""

import dimensionality
import numpy as np
import pytest
from conftest import spectra
from hypothesis import given, settings
from hypothesis import strategies as st

import spectral_moments as sm
from spectral_moments.processes import RBF, Linear, power_sums
from spectral_moments.spectrum import feasible as module
from spectral_moments.spectrum.bounds import eigenvalue_grid
from spectral_moments.teaching import recovery

# --- the dimension ------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(10, 7), (50, 80), (200, 30)])
@pytest.mark.parametrize("mean", [0.0, 3.0])
def test_denominator_is_that_of_the_package_dimensionality(shape, mean):
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((shape[0], 3)), rng.standard_normal((shape[1], 3))
    phi = x @ w.T + 0.1 * rng.standard_normal(shape) + mean * rng.standard_normal(shape[1])
    parts = dimensionality.participation_ratio(phi, return_parts=True)
    np.testing.assert_allclose(sm.all_cycles(phi, 2, center=True)[1], parts["B"], rtol=1e-9)


@pytest.mark.parametrize("options", [{}, {"center": False}, {"population": 40}])
def test_one_dimension_everywhere(options):
    phi = RBF(2).sample(30, 40, 4)
    est = sm.estimate(phi, 4, **options)
    others = [sm.participation_ratio(phi, **options)]
    others.append(sm.dimension_by_size(phi, (0.5,), n_draws=2, **options).whole)
    for found in others:
        pair = [[q.value, q.stderr, *q.interval()] for q in (found, est.dimension())]
        np.testing.assert_allclose(*pair, rtol=1e-9)


def test_the_participation_ratio_keeps_the_notes_of_its_estimate():
    rng = np.random.default_rng(1)
    movie = np.repeat(rng.standard_normal((12, 40)), 5, axis=0)
    movie = movie + 0.05 * rng.standard_normal(movie.shape)
    found, est = sm.participation_ratio(movie), sm.estimate(movie, 2)
    assert est.notes and found.notes == est.notes
    assert all(note in str(found) for note in est.notes)
    with pytest.raises(ValueError, match=r"participation_ratio\(\) has no option 'centre'"):
        sm.participation_ratio(movie, centre=True)


# --- feasible moments ---------------------------------------------------------------------


def with_errors(m, error=0.05):
    return sm.from_moments(m, error * abs(np.asarray(m)))


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
@settings(max_examples=30, deadline=None)
def test_feasible_moments_are_moments(eigenvalues, k, seed):
    rng, m = np.random.default_rng(seed), power_sums(eigenvalues, k)
    stderr = m * np.linspace(0.05, 1.5, k)
    noisy = m + stderr * rng.standard_normal(k)
    noisy[0] = abs(noisy[0])
    found = sm.feasible(sm.from_moments(noisy, stderr))
    assert (found.values >= 0).all() and is_feasible(found.values)
    powers = found.grid ** np.arange(k)[:, None]
    np.testing.assert_allclose(powers @ found.trace, found.values, rtol=1e-9)
    assert found.trace.min() >= 0 and (np.diff(found.eigenvalues(20)) <= 1e-12).all()


@pytest.mark.parametrize("scale", [1e-9, 1e7])
def test_feasible_scales(scale):
    est = sm.estimate(RBF(3).sample(40, 60, 1), 4, center=False)
    n = np.arange(1, 5)
    C = est.covariance * scale ** np.add.outer(n, n)
    moved = sm.from_moments(est.values * scale**n, covariance=C)
    one, other = sm.feasible(est), sm.feasible(moved)
    np.testing.assert_allclose(other.values, one.values * scale**n, rtol=1e-6)
    np.testing.assert_allclose(other.eigenvalues(5), scale * one.eigenvalues(5), rtol=1e-5)


def test_feasible_keeps_good_moments_and_repairs_bad_ones():
    m = power_sums([1.0, 0.5, 0.2, 0.2], 6)
    np.testing.assert_allclose(sm.feasible(with_errors(m, 1e-5)).values, m, rtol=1e-4)
    bad, error = m.copy(), m * [0.01, 0.01, 0.01, 0.01, 2.0, 0.01]
    bad[4] = -0.1
    repaired = sm.feasible(sm.from_moments(bad, error)).values
    np.testing.assert_allclose(repaired, m, rtol=0.05)  # the others determine it


def test_a_spectrum_is_deterministic_and_keeps_errors_and_notes():
    est = sm.estimate(RBF(3).sample(40, 60, 2), 4, center=False)
    one, other = sm.feasible(est), sm.feasible(est)
    np.testing.assert_array_equal(one.values, other.values)
    np.testing.assert_allclose(one.moments.stderr, est.stderr, rtol=1e-9)
    assert one.notes == est.notes and "Moments adjusted so that a spectrum" in str(one)
    assert len(one.eigenvalues()) == max(1, round(one.measure[1].sum()))
    assert len(one.to_dict()["rows"]) == 4


def test_orders_without_errors_are_left_out_or_refused():
    m = power_sums([1.0, 0.5, 0.2], 5)
    est = sm.from_moments(m, np.append(0.1 * m[:3], [np.nan, np.inf]))
    assert len(sm.feasible(est).values) == 3
    bare = sm.estimate(RBF(2).sample(20, 20, 0), 2, stderr=False)
    for wrong in (m, bare):  # says what to do: it is the result of estimate already
        with pytest.raises(ValueError, match="stderr=True"):
            sm.feasible(wrong)
    with pytest.raises(ValueError, match="not positive"):
        sm.feasible(sm.from_moments(-m, m))


def test_maximum_entropy_of_sharp_moments_is_near_the_truth():
    for process in (Linear(5), sm.PowerLaw(1.0)):
        truth = process.eigenvalues(5)
        one = sm.feasible(with_errors(process.moments(7), 1e-6)).eigenvalues(5)
        assert abs(one - truth).sum() < 0.05 * truth.sum()


def test_with_the_trace_alone_eigenvalues_form_a_geometric_sequence():
    s, one = eigenvalue_grid(150), np.ones(1)
    width = np.append(0, np.diff([0, *(s[1:-1] + s[2:]) / 2, 1]))
    even = module.maximum_entropy(7 * one, 0.1 * one, np.ones((1, len(s))), np.eye(1), s)
    np.testing.assert_allclose(even, 7 * width, rtol=1e-9)
    moments = sm.from_moments(7 * one, one)
    found = module.Spectrum(None, moments, s, even, even).eigenvalues(12)
    np.testing.assert_allclose(found[1:] / found[:-1], np.exp(-1 / 7), rtol=0.02)


# --- recovery by the paper's linear program -----------------------------------------------


@given(spectra, st.integers(1, 6), st.floats(1.0, 3.0))
@settings(max_examples=30, deadline=None)
def test_the_measure_of_the_program_fits_exact_moments(eigenvalues, k, stretch):
    upper, count = stretch * eigenvalues[0], len(eigenvalues)
    m, n = power_sums(eigenvalues, k), np.arange(1, k + 1)
    grid, p = recovery.spectral_measure(m, count, upper, n_grid=200)
    assert p.min() >= 0 and p.sum() == pytest.approx(1) and grid[-1] == upper
    residual = abs(m / count - p @ grid[:, None] ** n) / upper**n
    assert residual.sum() <= (n / (2 * 199)).sum() + 1e-8  # to the nearest grid point


@given(spectra, st.sampled_from([2, 4, 6]), st.floats(0, 0.05), st.integers(0, 100))
@settings(max_examples=30, deadline=None)
def test_the_error_bound_of_recovery_holds(eigenvalues, k, noise, seed):
    m, rng = power_sums(eigenvalues, k), np.random.default_rng(seed)
    perturbed, count = m * (1 + noise * rng.uniform(-1, 1, k)), len(eigenvalues)
    found = recovery.recovered_eigenvalues(perturbed, count, 1.2, n_grid=100)
    bound = recovery.recovery_bound(abs(perturbed - m), count, 1.2, n_grid=100)
    assert abs(found - eigenvalues).sum() <= bound and (np.diff(found) <= 0).all()


def test_quantiles_of_a_known_measure():
    # two atoms on the grid, three quarters and one quarter of the mass
    m = 8 * (0.25 * 1.0 ** np.arange(1, 5) + 0.75 * 0.5 ** np.arange(1, 5))
    found = recovery.recovered_eigenvalues(m, 8, 2.0, n_grid=5)
    np.testing.assert_allclose(found, [1, 1, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5], atol=1e-9)
    with pytest.raises(ValueError, match="upper = 0.1 is too small"):
        recovery.recovered_eigenvalues(m, 8, 0.1)
    np.testing.assert_allclose(recovery.newton_eigenvalues([1.5, 1.25]), [1.0, 0.5])
