"""Bounds over all spectra that fit, and the linear program: fuzzing, coverage, messages."""

from types import SimpleNamespace

import numpy as np
import pytest
from conftest import spectra
from hypothesis import given, settings
from hypothesis import strategies as st

import spectral_moments as sm
from spectral_moments.processes import power_sums
from spectral_moments.results import from_moments
from spectral_moments.spectrum import moment_problem
from spectral_moments.spectrum.moment_problem import recovery_bound, spectral_measure

# --- the linear program ---


@given(spectra, st.integers(1, 6), st.floats(1.0, 3.0))
@settings(max_examples=40, deadline=None)
def test_measure_fits_exact_moments(eigenvalues, k, stretch):
    upper, count = stretch * eigenvalues[0], len(eigenvalues)
    m = power_sums(eigenvalues, k)
    grid, p = spectral_measure(m, count, upper=upper, n_grid=200)
    assert grid.shape == p.shape == (200,)
    assert grid[0] == 0 and grid[-1] == upper
    assert p.min() >= 0 and p.sum() == pytest.approx(1)
    n = np.arange(1, k + 1)
    residual = abs(m / count - p @ grid[:, None] ** n) / upper**n
    rounding = n / (2 * 199)  # every eigenvalue moved to the nearest grid point
    assert residual.sum() <= rounding.sum() + 1e-8


@given(spectra, st.integers(1, 8), st.integers(1, 30))
@settings(max_examples=40, deadline=None)
def test_recovered_eigenvalues_are_a_spectrum(eigenvalues, k, extra):
    count = len(eigenvalues) + extra
    found = sm.recover_eigenvalues(power_sums(eigenvalues, k), count, upper=1.5, n_grid=60)
    assert found.shape == (count,)
    assert (np.diff(found) <= 0).all()
    assert found.min() >= 0 and found.max() <= 1.5


@given(spectra, st.sampled_from([2, 4, 6]), st.floats(0, 0.05), st.integers(0, 100))
@settings(max_examples=40, deadline=None)
def test_error_bound_holds(eigenvalues, k, noise, seed):
    m = power_sums(eigenvalues, k)
    rng = np.random.default_rng(seed)
    perturbed = m * (1 + noise * rng.uniform(-1, 1, k))
    count, upper = len(eigenvalues), 1.2
    found = sm.recover_eigenvalues(perturbed, count, upper=upper, n_grid=100)
    bound = recovery_bound(abs(perturbed - m), count, upper=upper, n_grid=100)
    assert abs(found - eigenvalues).sum() <= bound


def test_quantiles_of_a_known_measure():
    # two atoms on the grid, three quarters and one quarter of the mass
    m = 8 * (0.25 * 1.0 ** np.arange(1, 5) + 0.75 * 0.5 ** np.arange(1, 5))
    found = sm.recover_eigenvalues(m, 8, upper=2.0, n_grid=5)
    np.testing.assert_allclose(found, [1, 1, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5], atol=1e-9)


def test_weights_from_standard_errors():
    m = power_sums([1.0, 0.5, 0.5], 4)
    fit = dict(count=3, upper=1.3)
    wrong = m * [1, 1, 1, 1.5]
    loose = from_moments(wrong, m * [1e-4, 1e-4, 1e-4, np.inf])
    ignored = sm.recover_eigenvalues(loose, **fit)
    without = sm.recover_eigenvalues(wrong, weights=[1, 1, 1, 0] / m / 1e-4, **fit)
    np.testing.assert_array_equal(ignored, without)
    grid, p = spectral_measure(loose, **fit)
    n = np.arange(1, 4)
    np.testing.assert_allclose(3 * p @ grid[:, None] ** n, m[:3], rtol=1e-5)
    exact = from_moments(m, np.zeros(4))  # no division by zero
    both = (sm.recover_eigenvalues(x, **fit) for x in (exact, m))
    np.testing.assert_allclose(*both, atol=0.02)


def test_unknown_errors():
    m = power_sums([1.0, 0.5], 3)
    assert sm.operator_norm(from_moments(m)) == sm.operator_norm(m)
    partly, two = from_moments(m, [0.1, 0.1, np.inf]), from_moments(m[:2], [0.1, 0.1])
    assert sm.operator_norm(partly, level=0.9) == sm.operator_norm(two, level=0.9)
    assert sm.effective_dimension(partly, 0.1) == sm.effective_dimension(two, 0.1)


@pytest.mark.parametrize("k", [1, 4, 10])
def test_all_eigenvalues_at_the_upper_bound(k):
    eigenvalues = np.full(7, 0.1)  # their sum exceeds 7 * 0.1 by rounding
    grid, p = spectral_measure(power_sums(eigenvalues, k), 7, upper=0.1)
    assert p.min() >= 0 and p[-1] == pytest.approx(1)


def test_negative_moments_are_accepted():
    found = sm.recover_eigenvalues([1.0, 0.2, -0.01], 10, upper=0.5)
    assert found.min() >= 0


# --- operator norm ---


@given(spectra, st.integers(1, 12))
@settings(max_examples=60, deadline=None)
def test_norm_between_bounds(eigenvalues, k):
    low, high = sm.operator_norm(power_sums(eigenvalues, k))
    top = eigenvalues[0]
    assert low <= top * (1 + 1e-12) and top <= high * (1 + 1e-12)


def test_norm_of_rank_one_is_exact():
    found = sm.operator_norm(0.7 ** np.arange(1, 6))
    np.testing.assert_allclose(found, (0.7, 0.7), rtol=1e-12)


def test_norm_is_wider_with_errors():
    m = power_sums([1.0, 0.5, 0.2], 5)
    exact = sm.operator_norm(m)
    loose = sm.operator_norm(from_moments(m, 0.05 * m))
    looser = sm.operator_norm(from_moments(m, 0.05 * m), level=0.999)
    assert looser.low < loose.low < exact.low < exact.high < loose.high < looser.high
    assert isinstance(exact, sm.Bounds)


def test_norm_without_usable_ratio_has_low_zero():
    est = from_moments([1.0, 0.1], [0.1, 0.5])
    assert sm.operator_norm(est).low == 0


# --- effective dimension ---


@given(spectra, st.integers(1, 8), st.floats(1e-4, 30))
@settings(max_examples=60, deadline=None)
def test_effective_dimension_between_bounds(eigenvalues, k, ridge):
    truth = (eigenvalues / (eigenvalues + ridge)).sum()
    low, high = sm.effective_dimension(power_sums(eigenvalues, k), ridge, n_grid=150)
    assert low <= truth * (1 + 1e-6) and truth <= high * (1 + 1e-6)


def test_more_moments_tighten_the_bounds():
    m = power_sums(np.geomspace(1, 0.01, 15), 8)
    widths = [np.ptp(sm.effective_dimension(m[:k], 0.1, upper=1.1)) for k in (1, 2, 4, 8)]
    assert (np.diff(widths) < 0).all()


def test_effective_dimension_scales():
    m = power_sums([1.0, 0.4, 0.1], 4)
    one = sm.effective_dimension(m, 0.2)
    for scale in (1e-8, 1e5):
        scaled = sm.effective_dimension(m * scale ** np.arange(1, 5), 0.2 * scale)
        np.testing.assert_allclose(scaled, one, rtol=1e-6)


# --- bounds ---


@given(spectra, st.integers(1, 6))
@settings(max_examples=20, deadline=None)
def test_eigenvalues_between_their_bounds(eigenvalues, k):
    count = len(eigenvalues) + 2
    low, high = sm.eigenvalue_bounds(
        power_sums(eigenvalues, k), count, n_grid=60, n_steps=15
    )
    truth = np.pad(eigenvalues, (0, 2))
    assert (low <= truth * (1 + 1e-6)).all() and (truth <= high * (1 + 1e-6)).all()
    assert (np.diff(low) <= 0).all() and (np.diff(high) <= 1e-12).all()


@given(spectra, st.integers(1, 6), st.sampled_from([0, 1, 2, 3]))
@settings(max_examples=30, deadline=None)
def test_spectral_functions_between_bounds(eigenvalues, k, which):
    functions = [np.tanh, np.sqrt, lambda s: s**1.3, lambda s: s * np.cos(3 * s)]
    f = functions[which]
    low, high = sm.spectral_bounds(power_sums(eigenvalues, k), f, n_grid=80)
    truth = f(eigenvalues).sum()
    assert low <= truth + 1e-6 * abs(truth) and truth <= high + 1e-6 * abs(truth)


def test_bounds_print_shortly():
    assert str(sm.Bounds(0.123456, 2.0)) == "0.1235 .. 2"


def test_rank_makes_the_entropy_finite():
    eigenvalues = np.geomspace(1, 0.05, 20)
    m, total = power_sums(eigenvalues, 5), eigenvalues.sum()
    entropy = lambda s: -(s / total) * np.log(s / total)
    free, limited = (sm.spectral_bounds(m, entropy, rank=rank) for rank in (None, 50))
    assert free.high == np.inf and limited.high < np.log(50) + 0.05
    assert limited.low <= entropy(eigenvalues).sum() <= limited.high
    assert free.low > np.log(sm.renyi_dimension(m, 2).value) - 0.05  # PR <= e^entropy


# --- what a caller is told ---

NEGATIVE = from_moments([1.0, -5.0], [0.1, 0.1])
CLASH = from_moments([1.0, 0.1, 0.09], [0.01, 0.001, 0.001])
UNKNOWN = from_moments([1.0], [np.inf])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sm.recover_eigenvalues([1.0, np.nan], 3, upper=1), "that are NaN"),
        (lambda: sm.recover_eigenvalues([[1.0]], 3, upper=1), "must be a vector"),
        (lambda: sm.recover_eigenvalues([], 3, upper=1), "must be a vector"),
        (lambda: sm.recover_eigenvalues([1.0], 0, upper=1), "count = 0 is too small"),
        (
            lambda: sm.recover_eigenvalues([1.0], 2, upper=-1),
            "upper = -1.0 must be positive",
        ),
        (lambda: sm.recover_eigenvalues([1.0], 2, upper=0.4), "raise upper or count"),
        (lambda: sm.recover_eigenvalues([1.0], 2, upper=1, n_grid=1), "n_grid = 1"),
        (lambda: sm.recover_eigenvalues([1.0], 2, upper=1, weights=[1, 2]), "has shape"),
        (
            lambda: sm.recover_eigenvalues([1.0], 2, upper=1, weights=[0]),
            "positive for some",
        ),
        (lambda: sm.recover_eigenvalues([1.0], 2, upper=1, weights=[-1]), "non-negative"),
        (lambda: sm.operator_norm(NEGATIVE), "negative beyond its error"),
        (lambda: sm.operator_norm([1.0], level=95), "level = 95"),
        (lambda: sm.operator_norm(UNKNOWN), r"stderr of m\(1\) is not finite"),
        (lambda: sm.effective_dimension([1.0], 0), "ridge = 0.0 must be positive"),
        (lambda: sm.effective_dimension([1.0, 0.5], 0.1, upper=0.2), "no spectrum has"),
        (lambda: sm.effective_dimension(CLASH, 0.1, upper=0.2), "no spectrum has moments"),
    ],
)
def test_messages(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_failed_solve_says_so(monkeypatch):
    failed = SimpleNamespace(status=4, message="numerical difficulties.")
    monkeypatch.setattr(moment_problem, "linprog", lambda *a, **k: failed)
    said = r"not solved: numerical difficulties\. Use fewer"
    with pytest.raises(RuntimeError, match=said):
        sm.recover_eigenvalues([1.0, 0.5], 3, upper=1.0)
    failed.status = 2
    with pytest.raises(RuntimeError, match="rounding made it infeasible"):
        sm.recover_eigenvalues([1.0, 0.5], 3, upper=1.0)
