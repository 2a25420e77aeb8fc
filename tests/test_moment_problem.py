"""Bounds over all spectra that fit the moments: fuzzing, coverage, messages."""

from types import SimpleNamespace

import numpy as np
import pytest
from conftest import spectra
from hypothesis import given, settings
from hypothesis import strategies as st

import spectral_moments as sm
from spectral_moments.processes import power_sums
from spectral_moments.spectrum import bounds
from spectral_moments.spectrum.bounds import largest_eigenvalue_bounds

# --- the largest eigenvalue ---------------------------------------------------------------


@given(spectra, st.integers(1, 12))
@settings(max_examples=60, deadline=None)
def test_norm_between_bounds(eigenvalues, k):
    low, high = largest_eigenvalue_bounds(power_sums(eigenvalues, k))
    top = eigenvalues[0]
    assert low <= top * (1 + 1e-12) and top <= high * (1 + 1e-12)


def test_bounds_are_wider_with_errors():
    m = power_sums([1.0, 0.5, 0.2], 5)
    exact, est = largest_eigenvalue_bounds(m), sm.from_moments(m, 0.05 * m)
    loose, looser = (largest_eigenvalue_bounds(est, level=x) for x in (0.95, 0.999))
    assert looser.low < loose.low < exact.low < exact.high < loose.high < looser.high
    assert str(bounds.Bounds(0.123456, 2.0)) == "0.1235 to 2"
    assert largest_eigenvalue_bounds(sm.from_moments([1.0, 0.1], [0.1, 0.5])).low == 0


def test_intervals_hold_at_once():
    m = power_sums([1.0, 0.5, 0.2], 5)
    est = sm.from_moments(m, 0.05 * m)
    found = bounds.joint_intervals(est, 0.95)
    np.testing.assert_allclose(found, est.interval(0.99), rtol=1e-9)  # 5% among five


def test_orders_without_errors_are_left_out():
    m = power_sums([1.0, 0.5], 3)
    partly = sm.from_moments(m, [0.1, 0.1, np.inf])
    two, f = sm.from_moments(m[:2], [0.1, 0.1]), ridge(0.1)
    assert largest_eigenvalue_bounds(partly) == largest_eigenvalue_bounds(two)
    assert sm.function_bounds(partly, f) == sm.function_bounds(two, f)
    assert largest_eigenvalue_bounds([*m[:2], np.nan]) == largest_eigenvalue_bounds(m[:2])


# --- functions ----------------------------------------------------------------------------


def ridge(number):
    return lambda s: s / (s + number)


@given(spectra, st.integers(1, 8), st.floats(1e-4, 30))
@settings(max_examples=40, deadline=None)
def test_dimension_at_a_ridge_between_bounds(eigenvalues, k, number):
    truth = (eigenvalues / (eigenvalues + number)).sum()
    low, high = sm.function_bounds(power_sums(eigenvalues, k), ridge(number), n_grid=150)
    assert low <= truth * (1 + 1e-6) and truth <= high * (1 + 1e-6)


FUNCTIONS = [np.tanh, np.sqrt, lambda s: s**1.3, lambda s: s * np.cos(3 * s)]


@given(spectra, st.integers(1, 6), st.sampled_from(FUNCTIONS))
@settings(max_examples=40, deadline=None)
def test_functions_between_bounds(eigenvalues, k, f):
    low, high = sm.function_bounds(power_sums(eigenvalues, k), f, n_grid=80)
    truth = f(eigenvalues).sum()
    assert low <= truth + 1e-6 * abs(truth) and truth <= high + 1e-6 * abs(truth)


def test_bounds_scale():
    m, n = power_sums([1.0, 0.4, 0.1], 4), np.arange(1, 5)
    one = sm.function_bounds(m, ridge(0.2))
    for scale in (1e-8, 1e5):
        scaled = sm.function_bounds(m * scale**n, ridge(0.2 * scale))
        np.testing.assert_allclose(scaled, one, rtol=1e-6)


# --- each eigenvalue ----------------------------------------------------------------------


@given(spectra, st.integers(1, 6))
@settings(max_examples=10, deadline=None)
def test_eigenvalues_between_their_bounds(eigenvalues, k):
    count = len(eigenvalues) + 2
    low, high = sm.eigenvalue_bounds(power_sums(eigenvalues, k), count)
    truth = np.pad(eigenvalues, (0, 2))
    assert (low <= truth * (1 + 1e-6)).all() and (truth <= high * (1 + 1e-6)).all()
    assert (np.diff(low) <= 0).all() and (np.diff(high) <= 1e-12).all()


# --- messages -----------------------------------------------------------------------------

NEGATIVE = sm.from_moments([1.0, -5.0], [0.1, 0.1])
CLASH = sm.from_moments([1.0, 0.1, 0.09], [0.01, 0.001, 0.001])
UNKNOWN = sm.from_moments([1.0], [np.inf])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: largest_eigenvalue_bounds(NEGATIVE), "no spectrum has"),
        (lambda: largest_eigenvalue_bounds([1.0], level=95), "level = 95"),
        (lambda: largest_eigenvalue_bounds(UNKNOWN), r"m\(1\) is not known"),
        (lambda: sm.function_bounds([np.nan, 1.0], np.sqrt), r"m\(1\) is not known"),
        (lambda: sm.function_bounds([[1.0]], np.sqrt), "pass a list"),
        (lambda: sm.function_bounds(CLASH, np.sqrt), "no spectrum has"),
        (lambda: sm.eigenvalue_bounds([1.0, 0.5], 0), "count = 0"),
        (lambda: sm.eigenvalue_bounds([1e150, 1e-320], 3), "the range of doubles"),
    ],
)
def test_messages(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_failed_solve_says_so(monkeypatch):
    failed = SimpleNamespace(status=4, message="numerical difficulties.")
    monkeypatch.setattr("scipy.optimize.linprog", lambda *a, **k: failed)
    with pytest.raises(sm.ArgumentError, match="numerical difficulties"):
        sm.function_bounds([1.0, 0.5], np.sqrt)
