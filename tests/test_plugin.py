"""The naive estimator at extremes and for every kind of input."""

import numpy as np
import pytest
import torch
from conftest import direct_traces, normal

from spectral_moments import EstimateWarning, naive
from spectral_moments.engine.sources import Pair
from spectral_moments.teaching.naive_moments import (
    marchenko_pastur_moments,
    plain_means,
    without_mean,
)


@pytest.mark.parametrize("shape", [(4, 7), (7, 4), (5, 5), (1, 3), (3, 1)])
def test_against_rational_arithmetic(shape):
    phi = normal(shape, 1)
    n_max = min(shape)
    truth = [float(value) for value in direct_traces(phi, n_max)]
    np.testing.assert_allclose(naive(phi, n_max), truth, rtol=1e-13)


@pytest.mark.parametrize("size", [1e-140, 1e-30, 1.0, 1e30, 1e150])
@pytest.mark.filterwarnings("ignore::spectral_moments.results.EstimateWarning")
def test_no_overflow_on_the_way(size):
    phi = normal((5, 8), 2)
    powers = np.array([np.longdouble(size) ** (2 * n) for n in range(1, 6)])
    wanted = naive(phi, 5) * powers
    inside = (wanted > 1e-290) & (wanted < 1e308)
    result = naive(size * phi, 5)
    np.testing.assert_allclose(result[inside], wanted[inside].astype(float), rtol=1e-12)
    assert np.isnan(result[~inside]).all()  # beyond doubles, and told


def test_high_orders_stay_in_range():
    phi = normal((150, 200), 3)
    with pytest.warns(EstimateWarning, match="beyond the range of doubles"):
        result = naive(phi / 2, 150) * 4.0 ** np.arange(1, 151)
    eigenvalues = np.linalg.eigvalsh(phi @ phi.T / phi.size).astype(np.longdouble)
    wanted = [(eigenvalues**n).sum() for n in range(1, 151)]
    representable = ~np.isnan(result)
    assert representable[:100].all() and not representable[-1]
    np.testing.assert_allclose(
        result[representable], np.array(wanted, float)[representable], rtol=1e-10
    )


def test_zero_matrix():
    np.testing.assert_array_equal(naive(np.zeros((3, 4)), 3), 0)


@pytest.mark.parametrize(
    "convert", [np.asfortranarray, np.ndarray.tolist, torch.from_numpy, np.float32]
)
def test_kinds_of_input(convert):
    phi = np.random.default_rng(4).integers(-3, 4, (4, 6)).astype(float)
    np.testing.assert_allclose(naive(convert(phi), 3), naive(phi, 3), rtol=1e-12)
    np.testing.assert_allclose(naive(phi[None], 3), naive(phi, 3), rtol=1e-14)


def test_input_is_not_modified():
    phi = normal((4, 6), 5)
    before = phi.copy()
    phi.flags.writeable = False
    naive(phi, 3)
    np.testing.assert_array_equal(phi, before)


def test_two_matrices():
    one, two = normal((4, 6), 6), normal((4, 6), 7)
    K = two @ one.T / 24
    expected = [np.trace(np.linalg.matrix_power(K, n)) for n in (1, 2, 3)]
    np.testing.assert_allclose(plain_means(Pair(one, two), 3).values, expected, rtol=1e-12)
    turned = plain_means(Pair(one.T, two.T), 3).values
    np.testing.assert_allclose(turned, expected, rtol=1e-12)


def test_gaps_are_counted():
    phi = normal((6, 5), 8)
    gaps = np.where(phi > 1, np.nan, phi)
    seen, filled = 1.0 * ~np.isnan(gaps), np.nan_to_num(gaps)
    K, C = filled @ filled.T, seen @ seen.T
    expected = [
        np.trace(np.linalg.matrix_power(K, n)) / np.trace(np.linalg.matrix_power(C, n))
        for n in (1, 2, 3)
    ]
    np.testing.assert_allclose(naive(gaps, 3), expected, rtol=1e-12)


def test_mean_is_that_of_what_was_seen():
    phi = normal((6, 5), 9) + 3
    gaps = np.where(phi > 4, np.nan, phi)
    seen = 1.0 * ~np.isnan(gaps)
    pair = Pair(np.nan_to_num(gaps), np.nan_to_num(gaps), (seen, seen))
    expected = np.nan_to_num(gaps - np.nanmean(gaps, axis=0))
    np.testing.assert_allclose(without_mean(pair).enter, expected, rtol=1e-12, atol=1e-15)
    plain = without_mean(Pair(phi, phi))
    assert plain.leave is plain.enter and plain.counts is None
    np.testing.assert_allclose(plain.enter, phi - phi.mean(0), rtol=1e-12, atol=1e-15)


def test_marchenko_pastur_second_and_third_moment():
    c = 0.3
    np.testing.assert_allclose(
        marchenko_pastur_moments(3, 10, 3),
        [1, (1 + c) / 3, (1 + 3 * c + c**2) / 9],
        rtol=1e-14,
    )
