"""The RBF process: extremes, fuzzing, independent formulas, bad input."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from spectral_moments.estimation import increasing
from spectral_moments.figures import mean_and_error
from spectral_moments.processes import RBF, ReLU
from spectral_moments.teaching.rbf_spectrum import (
    hermite_functions,
    lightest_indices,
    log_moments,
    log_rates,
    principal_axes,
    relu_levels,
)

EXTREMES = [10.0**k for k in range(-12, 13)] + [0.3, 0.75, 1.9999, 2.0, 2.0001, 4.0]


def covariance(seed, d, floor=0.1):
    A = np.random.default_rng(seed).normal(size=(d, d))
    return A @ A.T + floor * np.eye(d)


# --- accuracy against 50 digits -----------------------------------------------------------


def exact_rates(eta):
    s = 2 / (1 + mpmath.sqrt(1 + 4 * mpmath.mpf(eta)))
    return s, 1 - s


@pytest.mark.parametrize("eta", EXTREMES)
def test_moments_and_eigenvalues_to_full_accuracy(eta):
    process = RBF(1, input_cov=eta)
    moments, logs, lam = (
        process.moments(200),
        process.log_moments(200),
        process.eigenvalues(500),
    )
    assert moments[0] == 1
    with mpmath.workdps(50):
        s, r = exact_rates(eta)
        for n in [*range(2, 21), 50, 100, 150, 200]:
            exact = s**n / (1 - r**n)
            assert abs(logs[n - 1] / mpmath.log(exact) - 1) < 1e-15
            if exact > 1e-307:
                assert abs(moments[n - 1] / exact - 1) < 3e-13
        for u in (0, 1, 2, 5, 10, 20, 50, 100, 200, 499):
            exact = s * r**u
            if exact > 1e-307:
                assert abs(lam[u] / exact - 1) < 3e-13


def test_moments_of_mixed_extremes():
    eta = 10.0 ** np.linspace(-12, 12, 20)
    process = RBF(20, input_cov=eta)
    with mpmath.workdps(50):
        for n in (2, 3, 10, 200):
            exact = mpmath.fsum(
                mpmath.log(s**n / (1 - r**n)) for s, r in map(exact_rates, eta)
            )
            assert abs(process.log_moments(n)[-1] / exact - 1) < 1e-15
    assert process.moments(200)[-1] == 0  # too small for a double, and no warning


@pytest.mark.parametrize("eta", [1e-299, 1e299])
def test_no_overflow_at_the_limits(eta):
    process = RBF(2, input_cov=[eta, 1.0])
    assert np.isfinite(process.log_moments(200)).all()
    assert np.isfinite(process.eigenvalues(20)).all()
    with pytest.raises(ValueError, match="input_cov and kernel_cov differ"):
        RBF(1, input_cov=1e200, kernel_cov=1e-200)


def test_graded_matrices_keep_small_eta():
    d = 5
    scale = 10.0 ** np.linspace(-4, 4, d)
    C = covariance(0, d, floor=1.0)
    S_x, S = C * np.outer(scale, scale), covariance(1, d, floor=1.0)
    with mpmath.workdps(60):
        matrix = mpmath.matrix(S_x) * mpmath.inverse(mpmath.matrix(S))
        exact = sorted(
            (float(mpmath.re(v)) for v in mpmath.eig(matrix, left=False, right=False)),
            reverse=True,
        )
    assert_allclose(RBF(d, input_cov=S_x, kernel_cov=S).eta, exact, rtol=1e-6)


# --- against other formulas ---------------------------------------------------------------


@given(st.integers(1, 5), st.integers(0, 2**32 - 1), st.integers(1, 12))
@settings(max_examples=60, deadline=None)
def test_moments_are_the_determinant_of_the_chain(d, seed, n):
    S_x, S = covariance(seed, d, floor=0.3), covariance(seed + 1, d, floor=0.3)
    C = np.roll(np.eye(n), 1, axis=1)
    M = np.kron(np.eye(n), np.linalg.inv(S_x)) + np.kron(
        2 * np.eye(n) - C - C.T, np.linalg.inv(S)
    )
    log_m = -(n * np.linalg.slogdet(S_x)[1] + np.linalg.slogdet(M)[1]) / 2
    assert_allclose(
        RBF(d, input_cov=S_x, kernel_cov=S).log_moments(n)[-1], log_m, rtol=1e-9, atol=1e-9
    )


@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
@settings(max_examples=60, deadline=None)
def test_eigenvalues_of_rasmussen_and_williams(input_cov, kernel_cov):
    a, b = 1 / (4 * input_cov), 1 / (2 * kernel_cov)  # section 4.3.1 of their book
    A = a + b + math.sqrt(a**2 + 2 * a * b)
    expected = math.sqrt(2 * a / A) * (b / A) ** np.arange(20)
    assert_allclose(
        RBF(1, input_cov=input_cov, kernel_cov=kernel_cov).eigenvalues(20),
        expected,
        rtol=1e-11,
    )


@given(st.integers(1, 4), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_a_change_of_coordinates_changes_nothing(d, seed):
    S_x, S = covariance(seed, d, floor=0.5), covariance(seed + 1, d, floor=0.5)
    A = np.random.default_rng(seed).normal(size=(d, d)) + 3 * np.eye(d)
    if np.linalg.cond(A) > 1e3:
        return
    one, two = (
        RBF(d, input_cov=S_x, kernel_cov=S),
        RBF(d, input_cov=A @ S_x @ A.T, kernel_cov=A @ S @ A.T),
    )
    assert_allclose(two.log_moments(6), one.log_moments(6), rtol=1e-7, atol=1e-12)
    x = np.random.default_rng(seed).normal(size=(4, d))
    assert_allclose(two.kernel(x @ A.T, x @ A.T), one.kernel(x, x), rtol=1e-6, atol=1e-12)


def test_forms_of_a_covariance_agree():
    truth = RBF(3, input_cov=2.0, kernel_cov=0.5)
    for input_cov in (
        2,
        np.float32(2),
        [2, 2, 2],
        np.full(3, 2.0),
        2 * np.eye(3),
        2 * np.eye(3, dtype=int),
    ):
        process = RBF(3, input_cov=input_cov, kernel_cov=[0.5, 0.5, 0.5])
        np.testing.assert_array_equal(process.moments(9), truth.moments(9))
        np.testing.assert_array_equal(process.eigenvalues(99), truth.eigenvalues(99))
    rotated = RBF(
        3, input_cov=covariance(0, 3), kernel_cov=covariance(0, 3) / 4
    )  # full matrices, equal eta
    assert_allclose(rotated.eigenvalues(99), truth.eigenvalues(99), rtol=1e-9)


def test_the_caller_keeps_the_covariance():
    cov = covariance(0, 2)
    before = cov.copy()
    process = RBF(2, input_cov=cov)
    np.testing.assert_array_equal(cov, before)
    cov[:] = 0
    assert_allclose(process.input_cov, before, rtol=1e-15)


# --- enumeration --------------------------------------------------------------------------


@given(st.lists(st.floats(0.05, 3), min_size=1, max_size=4), st.integers(1, 200))
@settings(max_examples=60, deadline=None)
def test_indices_come_in_order_and_once(weights, count):
    weights = np.sort(weights)
    found = list(itertools.islice(lightest_indices(weights), count))
    assert len(set(found)) == count
    cost = np.array(found) @ weights
    assert (np.diff(cost) >= -1e-9).all()
    seen = set(
        found
    )  # every index is there once all that cost less are: its predecessors are
    assert all(
        (*u[:i], u[i] - 1, *u[i + 1 :]) in seen
        or cost[-1] - 1e-9 <= np.dot(u, weights) + 1e-9
        for u in found
        for i in range(len(u))
        if u[i]
    )


@pytest.mark.parametrize(
    "eta", [[1.0, 1.0, 1.0], [2.0, 2.0, 0.3], [5.0, 0.7, 0.01], [0.2, 0.2, 3.0]]
)
def test_eigenvalues_against_a_grid(eta):
    log_s, log_r = log_rates(np.array(eta))
    grid = np.array(list(itertools.product(range(60), repeat=3)))
    brute = np.sort(np.exp(log_s.sum() + grid @ log_r))[::-1]
    process = RBF(3, input_cov=eta)
    for count in (1, 2, 3, 10, 500):
        lam = process.eigenvalues(count)
        assert_allclose(lam, brute[:count], rtol=1e-12)
        u = process.multi_indices(count)
        assert len({tuple(row) for row in u.tolist()}) == count
        values = np.exp(log_s.sum() + u @ np.sort(log_r)[::-1])
        assert_allclose(values, lam, rtol=1e-12)
    assert process.operator_norm == pytest.approx(brute[0], rel=1e-13)


@pytest.mark.parametrize(
    "eta",
    [np.ones(20), np.linspace(0.1, 3, 20), np.repeat([0.3, 2.0], 10), np.full(20, 1e6)],
)
def test_many_eigenvalues_in_many_dimensions(eta):
    lam = RBF(20, input_cov=eta).eigenvalues(10_000)
    assert lam.shape == (10_000,)
    assert (np.diff(lam) <= 0).all()
    assert lam[0] < 1
    assert lam.sum() < 1


def test_huge_levels_are_not_written_out():
    process = RBF(1000)
    assert process.multi_indices(1500).shape == (1500, 1000)
    assert process.multi_indices(1500).sum(axis=1).max() == 2
    lam = RBF(200, input_cov=0.01).eigenvalues(30_000)
    assert_allclose(
        lam[-1] / lam[0], np.exp(3 * log_rates(np.float64(0.01))[1]), rtol=1e-12
    )


# --- eigenfunctions -----------------------------------------------------------------------


@pytest.mark.parametrize("eta", [1e-12, 1e-3, 1.0, 30.0])
def test_high_degrees_stay_orthonormal(eta):
    q = np.sqrt(1 + 4 * eta)
    t, width = np.linspace(-40, 40, 20_001, retstep=True)
    e = hermite_functions(t, 100, q) * np.exp(-(t**2) / 4)[:, None] / (2 * np.pi) ** 0.25
    assert_allclose(width * e.T @ e, np.eye(101), atol=1e-9)


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_eigenfunctions_by_quadrature(d, seed):
    S_x, S = covariance(seed, d), covariance(seed + 10, d, floor=0.5)
    process = RBF(d, input_cov=S_x, kernel_cov=S)
    nodes, weights = np.polynomial.hermite_e.hermegauss(120 if d == 1 else 90)
    grid = (
        np.stack(np.meshgrid(*[nodes] * d), axis=-1).reshape(-1, d)
        @ np.linalg.cholesky(S_x).T
    )
    weights = math.prod(np.meshgrid(*[weights / weights.sum()] * d)).ravel()
    e, lam = process.eigenfunctions(grid, 8), process.eigenvalues(8)
    assert_allclose(e.T @ (weights[:, None] * e), np.eye(8), atol=1e-7)
    y = np.random.default_rng(seed).multivariate_normal(np.zeros(d), S_x, size=10)
    Te = process.kernel(y, grid) @ (weights[:, None] * e)
    assert_allclose(Te, lam * process.eigenfunctions(y, 8), atol=1e-7)


def test_axes_diagonalise_both():
    for d, seed in itertools.product((2, 4), (1, 2, 3)):
        S_x, S = covariance(seed, d), covariance(seed + 20, d)
        eta, axes = principal_axes(S_x, S)
        assert_allclose(axes @ S_x @ axes.T, np.eye(d), atol=1e-8)
        assert_allclose(
            np.linalg.inv(axes @ S @ axes.T), np.diag(eta), atol=1e-8 * eta.max()
        )


# --- samples ------------------------------------------------------------------------------


def test_samples_follow_the_seed():
    process = RBF(3, input_cov=covariance(1, 3), kernel_cov=[1.0, 2.0, 3.0])
    first = process.sample(5, 7, random_state=1)
    assert first.shape == (5, 7)
    assert abs(first).max() <= np.sqrt(2)
    np.testing.assert_array_equal(first, process.sample(5, 7, random_state=1))
    np.testing.assert_array_equal(
        first, process.sample(5, 7, random_state=np.random.default_rng(1))
    )
    assert (first != process.sample(5, 7, random_state=2)).all()
    assert process.sample(np.int64(2), np.int32(3)).shape == (2, 3)


@pytest.mark.parametrize(
    ("input_cov", "kernel_cov"),
    [(1.0, 0.25), ([0.5, 3.0], covariance(2, 2)), (covariance(1, 2), covariance(2, 2))],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_samples_have_the_moments(input_cov, kernel_cov, seed):
    process = RBF(2, input_cov=input_cov, kernel_cov=kernel_cov)
    wrong = RBF(2, input_cov=np.multiply(1.5, input_cov), kernel_cov=kernel_cov)
    rng, P, Q = np.random.default_rng(seed), 40, 50

    def second_moment(
        phi,
    ):  # the mean over all cycles of two distinct rows and two distinct columns
        cycles = (phi @ phi.T) ** 2 - phi**2 @ phi.T**2
        return (cycles.sum() - np.trace(cycles)) / (P * (P - 1) * Q * (Q - 1))

    mean, error = mean_and_error(
        [second_moment(process.sample(P, Q, rng)) for _ in range(200)]
    )
    assert abs(mean - process.moments(2)[1]) < 4 * error
    assert (
        abs(mean - wrong.moments(2)[1]) > 4 * error
    )  # the check can tell a wrong covariance


# --- bad input ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["input_cov", "kernel_cov"])
@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (0.0, "not positive definite"),
        (-1.0, "not positive definite"),
        ([1.0, -1e-9], "must be positive"),
        ([[1.0, 2.0], [2.0, 1.0]], "add a small multiple of the identity"),
        (np.ones((2, 2)), "not positive definite"),
        ([[1.0, 0.5], [0.4, 1.0]], r"\[0, 1\] is 0.5 but \[1, 0\] is 0.4"),
        ([[1.0, 0.3], [0.0, 1.0]], "not symmetric"),
        (np.nan, "infinite or NaN"),
        ([1.0, np.inf], "infinite or NaN"),
        ([1.0, 2.0, 3.0], "but dim = 2"),
        (np.eye(3), "2 x 2 matrix"),
        (np.ones((1, 2, 2)), "shape"),
        ([], "shape"),
        ([[1.0, 2.0], [3.0]], "same length"),
    ],
)
def test_bad_covariances(name, bad, says):
    with pytest.raises(ValueError, match=says) as caught:
        RBF(2, **{name: bad})
    assert str(caught.value).startswith(name)


@pytest.mark.parametrize("bad", ["wide", 1j, None, [[1.0, 1j], [0, 1]], True])
def test_covariances_that_are_not_real_numbers(bad):
    with pytest.raises(TypeError, match="kernel_cov has dtype"):
        RBF(2, kernel_cov=bad)


def test_variances_of_different_size_are_no_error():
    scale = np.array([1e-6, 1.0, 1e6])
    correlation = np.array([[1, 0.5, 0.2], [0.5, 1, 0.5], [0.2, 0.5, 1]])
    cov = correlation * np.outer(scale, scale)
    assert_allclose(RBF(3, input_cov=cov, kernel_cov=cov).eta, 1, rtol=1e-12)
    assert RBF(2, input_cov=np.diag([1e-12, 1e12])).eta.tolist() == [1e12, 1e-12]


def test_rounding_errors_in_symmetry_are_forgiven():
    cov = covariance(3, 3)
    cov[0, 1] *= 1 + 1e-14
    assert RBF(3, input_cov=cov).dim == 3
    assert RBF(2, input_cov=[[1.0, 1e-17], [3e-17, 2.0]]).dim == 2


@pytest.mark.parametrize(
    ("call", "kind", "says"),
    [
        (lambda: RBF(0), ValueError, "dim"),
        (lambda: RBF(2.0), TypeError, "dim"),
        (lambda: RBF(True), TypeError, "dim"),
        (lambda: RBF(2).moments(0), ValueError, "n_max"),
        (lambda: RBF(2).eigenvalues(0), ValueError, "count"),
        (lambda: RBF(2).multi_indices(1.5), TypeError, "count"),
        (lambda: RBF(2).sample(0, 3), ValueError, "P = 0"),
        (lambda: RBF(2).sample(3, -1), ValueError, "Q = -1"),
        (lambda: RBF(2).sample(3, 3, "seed"), TypeError, "random_state"),
        (
            lambda: RBF(2).kernel(np.ones(2), np.ones((1, 2))),
            ValueError,
            r"x has shape \(2,\)",
        ),
        (
            lambda: RBF(2).kernel(np.ones((1, 2)), np.ones((1, 3))),
            ValueError,
            r"y has shape \(1, 3\)",
        ),
        (lambda: RBF(2).eigenfunctions(np.ones((4, 3)), 2), ValueError, "x has shape"),
    ],
)
def test_bad_arguments(call, kind, says):
    with pytest.raises(kind, match=says):
        call()


def test_log_moments_of_one_dimension_add_up():
    eta = np.array([3.0, 0.2, 0.2])
    assert_allclose(
        log_moments(eta, 9), sum(log_moments(np.array([e]), 9) for e in eta), rtol=1e-14
    )


@pytest.mark.parametrize("dim", [3, 4, 7, 20])
def test_relu_process(dim):
    process = ReLU(dim, scale=2.0)
    values = process.eigenvalues(300)
    assert (np.diff(values) <= 0).all() and values.min() > 0
    np.testing.assert_allclose(
        values[0], 2 * (process.moments(60)[-1] / 2**60) ** (1 / 60), rtol=1e-6
    )
    m = process.moments(4)
    assert m[0] == 2 and (values.sum() < 2)
    np.testing.assert_allclose((values[:, None] ** [2, 3, 4]).sum(axis=0), m[1:], rtol=1e-3)
    draws = [increasing(process.sample(20, 25, seed), 3, n_jobs=1) for seed in range(300)]
    error = np.std(draws, axis=0, ddof=1) / np.sqrt(len(draws))
    assert (abs(np.mean(draws, axis=0) - process.moments(3)) < 4 * error).all()


def test_relu_multiplicities():
    values, sizes = relu_levels(3, 10)
    np.testing.assert_array_equal(sizes, [1, 3, 5, 9, 13, 17, 21])  # 2 l + 1
    assert sizes @ values < 1 < sizes @ values + 0.01
    assert len(ReLU(10).eigenvalues(1)) == 1
    with pytest.raises(ValueError, match="dim"):
        ReLU(2)
    with pytest.raises(ValueError, match="scale"):
        ReLU(3, scale=-1)
