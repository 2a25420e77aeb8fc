"""Kong and Valiant's estimator: direct sums, extremes, exact unbiasedness on one side."""

import numpy as np
import pytest
from conftest import direct_rows, normal
from hypothesis import given, settings
from hypothesis import strategies as st

from spectral_moments import kong_valiant


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**32))
def test_against_direct_sum(P, Q, seed):
    phi = np.random.default_rng(seed).uniform(
        0.5, 2, (P, Q)
    )  # positive: no cancellation in the oracle
    n_max = min(P, Q)
    rows = [direct_rows(phi, n) for n in range(1, n_max + 1)]
    columns = [direct_rows(phi.T, n) for n in range(1, n_max + 1)]
    np.testing.assert_allclose(kong_valiant(phi, n_max), rows, rtol=1e-12)
    np.testing.assert_allclose(
        kong_valiant(phi, n_max, sampled="columns"), columns, rtol=1e-12
    )


@pytest.mark.parametrize("size", [1e-30, 1e30])
@pytest.mark.parametrize("sampled", ["rows", "columns"])
def test_scaling(size, sampled):
    phi = normal((6, 8), 1)
    scaled = kong_valiant(size * phi, 4, sampled=sampled)
    wanted = kong_valiant(phi, 4, sampled=sampled) * size ** (2 * np.arange(1, 5))
    np.testing.assert_allclose(scaled, wanted, rtol=1e-11)


def test_high_orders_stay_in_range():
    phi = np.random.default_rng(2).uniform(0.9, 1.1, (120, 130))
    assert np.isfinite(kong_valiant(phi, 120)).all()
    np.testing.assert_allclose(kong_valiant(np.ones((120, 130)), 120), 1, rtol=1e-10)


def test_read_only_and_order_of_memory():
    phi = np.asfortranarray(normal((5, 7), 3))
    phi.flags.writeable = False
    np.testing.assert_allclose(
        kong_valiant(phi, 4), kong_valiant(phi.tolist(), 4), rtol=1e-14
    )


@pytest.mark.parametrize("sampled", ["row", "both", None, 0])
def test_sampled_refused(sampled):
    with pytest.raises(ValueError, match="sampled = .* must be 'rows' or 'columns'"):
        kong_valiant(np.ones((3, 3)), 2, sampled=sampled)
