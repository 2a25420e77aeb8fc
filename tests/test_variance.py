"""What no reader needs to see of the chapter on consistency and the variance bound."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectral_moments import Discrete, increasing
from spectral_moments.teaching.variance import (
    chebyshev_radius,
    cycle_variance,
    meeting_probability,
    variance_bound,
)


def test_integrability_lemma():
    rng = np.random.default_rng(10)
    for _ in range(20):
        process = Discrete(rng.standard_normal((3, 4)))
        absolute = Discrete(abs(process.table))
        bound = process.moments(1) ** np.arange(1, 7)
        assert (absolute.moments(6) <= bound * (1 + 1e-12)).all()


@given(st.integers(1, 12), st.integers(0, 500), st.integers(0, 500))
def test_meeting_probability(n, P, Q):
    P, Q = P + n, Q + n
    x = n**2 * (1 / P + 1 / Q)
    found = meeting_probability(n, P, Q)
    assert 0 < found <= min(1, x * (1 + 1e-12))
    assert found >= 1 - np.exp(-x) - 1e-12  # the direction that the paper has wrong
    if min(P, Q) < 2 * n:
        assert found == 1


def test_bound_and_radius():
    assert variance_bound(2, 10, 20, 3.0) == pytest.approx(4 * 0.15 * 3)
    np.testing.assert_allclose(chebyshev_radius([0.04, 1.0], 0.25), [0.4, 2.0])


def test_variance_of_a_cycle():
    process = Discrete([[1.0, 2.0], [0.0, -1.0]])
    squares = process.expectation(lambda phi: increasing(phi**2, 2, n_jobs=1), 2, 2)
    np.testing.assert_allclose(squares, Discrete(process.table**2).moments(2), rtol=1e-12)
    phi = np.random.default_rng(11).standard_normal((6, 6))
    expected = increasing(phi**2, 3) - increasing(phi, 3) ** 2
    np.testing.assert_allclose(cycle_variance(phi, 3), expected, rtol=1e-12)


def test_the_bound_holds_exactly():
    """Over every sample of a population, at every size and order that can be enumerated."""
    process = Discrete([[1.0, -1.0], [0.5, 3.0]], input_probs=[0.6, 0.4])
    V = Discrete(process.table**2, input_probs=[0.6, 0.4]).moments(3)
    V -= process.moments(3) ** 2
    for P, Q in ((3, 3), (3, 5), (5, 4)):
        second = process.expectation(lambda phi: increasing(phi, 3, n_jobs=1) ** 2, P, Q)
        variance = second - process.moments(3) ** 2
        sharp = [meeting_probability(n, P, Q) * V[n - 1] for n in (1, 2, 3)]
        assert (variance <= sharp).all()


def test_imports_point_one_way():
    """The module asks for the front door only when it is used."""
    code = (
        "import sys, spectral_moments.teaching.variance; "
        "assert 'spectral_moments.estimation' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: meeting_probability(5, 4, 9), "exceeds min"),
        (lambda: meeting_probability(1.5, 4, 9), "whole number"),
        (lambda: chebyshev_radius(0.1, 0), "between 0 and 1"),
        (lambda: chebyshev_radius(0.1, 1.5), "between 0 and 1"),
        (lambda: cycle_variance(np.ones((3, 4)), 4), "exceeds min"),
        (lambda: cycle_variance([[1.0, np.nan]], 1), "NaN"),
    ],
)
def test_errors(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
