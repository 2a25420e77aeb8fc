"""The naive estimator at extremes and for every kind of input."""

import numpy as np
import pytest
import torch
from conftest import direct_traces, normal

from spectral_moments import naive
from spectral_moments.plugin import marchenko_pastur_moments, unit_scale


@pytest.mark.parametrize("shape", [(4, 7), (7, 4), (5, 5), (1, 3), (3, 1)])
def test_against_rational_arithmetic(shape):
    phi = normal(shape, 1)
    n_max = min(shape)
    truth = [float(value) for value in direct_traces(phi, n_max)]
    np.testing.assert_allclose(naive(phi, n_max), truth, rtol=1e-13)


@pytest.mark.parametrize("size", [1e-140, 1e-30, 1.0, 1e30, 1e150])
def test_no_overflow_on_the_way(size):
    phi = normal((5, 8), 2)
    with np.errstate(over="ignore", under="ignore"):
        wanted = naive(phi, 5) * np.array(
            [np.longdouble(size) ** (2 * n) for n in range(1, 6)]
        )
        wanted = wanted.astype(float)
        result = naive(size * phi, 5)
    np.testing.assert_allclose(result, wanted, rtol=1e-12)
    assert not np.isnan(result).any()


def test_high_orders_stay_in_range():
    phi = normal((150, 200), 3)
    result = naive(phi, 150)
    eigenvalues = np.linalg.eigvalsh(phi @ phi.T / phi.size).astype(np.longdouble)
    wanted = [(eigenvalues**n).sum() for n in range(1, 151)]
    representable = np.array(wanted) > 1e-300
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
    np.testing.assert_allclose(naive(convert(phi), 3), naive(phi, 3), rtol=1e-14)
    np.testing.assert_allclose(naive(phi[None], 3), naive(phi, 3), rtol=1e-14)


def test_input_is_not_modified():
    phi = normal((4, 6), 5)
    before = phi.copy()
    phi.flags.writeable = False
    naive(phi, 3)
    np.testing.assert_array_equal(phi, before)


def test_unit_scale_is_exact():
    phi = normal((3, 3), 6) * 1e-200
    scaled, exponent = unit_scale(phi)
    assert 0.5 <= abs(scaled).max() < 1
    np.testing.assert_array_equal(np.ldexp(scaled, exponent), phi)


def test_marchenko_pastur_second_and_third_moment():
    c = 0.3
    np.testing.assert_allclose(
        marchenko_pastur_moments(3, 10, 3),
        [1, (1 + c) / 3, (1 + 3 * c + c**2) / 9],
        rtol=1e-14,
    )
