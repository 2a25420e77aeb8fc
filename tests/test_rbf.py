"""The RBF process: extremes, fuzzing, independent formulas, bad input."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from spectral_moments.processes import RBF, ReLU


def covariance(seed, d, floor=0.1):
    A = np.random.default_rng(seed).normal(size=(d, d))
    return A @ A.T + floor * np.eye(d)


@pytest.mark.parametrize("eta", [1e-299, 1e299])
def test_no_overflow_at_the_limits(eta):
    process = RBF(2, input_cov=[eta, 1.0])
    assert np.isfinite(process.log_moments(200)).all()
    assert np.isfinite(process.eigenvalues(20)).all()


def test_forms_of_a_covariance_agree():
    truth = RBF(3, input_cov=2.0, kernel_cov=0.5)
    matrix = 2 * np.eye(3)
    numbers = 2, np.float32(2), [2, 2, 2], np.full(3, 2.0)
    for input_cov in (*numbers, matrix, matrix.astype(int)):
        process = RBF(3, input_cov=input_cov, kernel_cov=[0.5, 0.5, 0.5])
        np.testing.assert_array_equal(process.moments(9), truth.moments(9))
        np.testing.assert_array_equal(process.eigenvalues(99), truth.eigenvalues(99))
    full = covariance(0, 3)
    rotated = RBF(3, input_cov=full, kernel_cov=full / 4)  # equal eta
    assert_allclose(rotated.eigenvalues(99), truth.eigenvalues(99), rtol=1e-9)


def test_eigenfunctions_are_orthonormal_and_expand_the_kernel():
    process = RBF(1, input_cov=2.0, kernel_cov=0.7)
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    x, weights = np.sqrt(2.0) * nodes[:, None], weights / weights.sum()
    e = process.eigenfunctions(x, 40)
    assert_allclose(e[:, :8].T * weights @ e[:, :8], np.eye(8), atol=1e-9)
    y = np.linspace(-2, 2, 5)[:, None]
    expanded = process.eigenfunctions(y, 60) * process.eigenvalues(60)
    assert_allclose(
        expanded @ process.eigenfunctions(y, 60).T, process.kernel(y, y), atol=1e-6
    )


@pytest.mark.parametrize("name", ["input_cov", "kernel_cov"])
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (0.0, "not positive definite"),
        (-1.0, "not positive definite"),
        ([1.0, -1e-9], "must be positive"),
        ([[1.0, 2.0], [2.0, 1.0]], "add a small multiple of the identity"),
        (np.ones((2, 2)), "not positive definite"),
        ([[1.0, 0.5], [0.4, 1.0]], "not symmetric"),
        (np.nan, "finite"),
        ([1.0, np.inf], "finite"),
        ([1.0, 2.0, 3.0], "2 variances"),
        (np.eye(3), "2 x 2 matrix"),
        ([], "shape"),
        ([[1.0, 2.0], [3.0]], "must be real numbers"),
        ("wide", "must be real numbers"),
        (1j, "must be real numbers"),
    ],
)
def test_bad_covariances(name, bad, message):
    with pytest.raises(ValueError, match=message) as caught:
        RBF(2, **{name: bad})
    assert str(caught.value).startswith(name)


def test_bad_arguments():
    for wrong in (np.zeros((3, 5)), [1.0, 2.0], "rows"):
        with pytest.raises(ValueError, match="x (must be|have|has)|inputs have shape"):
            RBF(2).eigenfunctions(wrong, 2)
    for wrong in (dict(dim=2), dict(dim=3, scale=-1)):
        with pytest.raises(ValueError, match="dim|scale"):
            ReLU(**wrong)
