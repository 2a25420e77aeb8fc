"""Feasible moments, eigenvalues, dimension: fuzzing, a peer package, messages."""

import math
from types import SimpleNamespace

import dimensionality
import numpy as np
import pytest
import torch
from conftest import estimate, spectra
from hypothesis import given, settings
from hypothesis import strategies as st

import spectral_moments as sm
from spectral_moments import EstimateWarning, all_cycles
from spectral_moments.spectrum.moment_problem import (
    Spectrum,
    moment_grid,
    moments_and_covariance,
    most_even,
)
from spectral_moments.processes import RBF, Linear, power_sums
from spectral_moments.spectrum.feasible import (
    WithError,
    error_factor,
    feasible,
    nearest_point,
    participation_ratio,
    recover_eigenvalues,
    renyi_dimension,
)
from spectral_moments.spectrum.sweeps import dimension_sweep, plot_dimensions

pytestmark = pytest.mark.filterwarnings("ignore::spectral_moments.results.EstimateWarning")

# --- participation ratio ---


def plain_ratio(phi, center):
    m = all_cycles(phi, 2, center=center)
    return m[0] ** 2 / m[1]


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
    found = participation_ratio(phi, center=True)
    assert found.value == pytest.approx(dimensionality.participation_ratio(phi), rel=0.01)


def test_ratio_invariances():
    phi = RBF(2).sample(30, 40, 4)
    rng = np.random.default_rng(5)
    moved = 1e-60 * phi[rng.permutation(30)][:, rng.permutation(40)]
    for center in (False, True):
        np.testing.assert_allclose(
            participation_ratio(moved, center=center),
            participation_ratio(phi, center=center),
            rtol=1e-9,
        )
    shifted = phi + rng.standard_normal(40)
    np.testing.assert_allclose(
        participation_ratio(shifted, center=True).value,
        participation_ratio(phi, center=True).value,
        rtol=1e-10,
    )


@pytest.mark.parametrize("center", [False, True])
def test_dimension_is_the_jackknife(center):
    phi = RBF(2).sample(40, 50, 6)
    whole, variance = plain_ratio(phi, center), 0.0
    value = whole
    for axis in (0, 1):
        N = phi.shape[axis]
        parts = [plain_ratio(np.delete(phi, i, axis), center) for i in range(N)]
        value += (N - 1) * (whole - np.mean(parts))
        variance += (N - 1) / N * ((parts - np.mean(parts)) ** 2).sum()
    found = participation_ratio(phi, center=center)
    # centred, the estimates without a row are linearised
    np.testing.assert_allclose(
        found, (value, np.sqrt(variance)), rtol=0.03 if center else 1e-7
    )


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize(
    ("eigenvalues", "ratio"), [(np.geomspace(1, 0.05, 8), 1.0), (np.ones(8), math.sqrt(2))]
)
def test_standard_error_against_the_spread(eigenvalues, ratio, center):
    # equal eigenvalues maximise the ratio: no first-order term, twice the variance
    rng = np.random.default_rng(7)
    truth, found = eigenvalues.sum() ** 2 / (eigenvalues**2).sum(), []
    for _ in range(400):
        x, w = rng.standard_normal((60, 8)), rng.standard_normal((80, 8))
        found.append(participation_ratio(x * np.sqrt(eigenvalues) @ w.T, center=center))
    values, errors = np.array(found).T
    assert errors.mean() / values.std(ddof=1) == pytest.approx(ratio, rel=0.15)
    assert np.mean(abs(values - truth) < 1.645 * errors) > 0.85
    assert values.mean() == pytest.approx(truth, rel=0.05)


def test_kinds_of_input():
    phi = RBF(2).sample(12, 15, 8)
    expected = participation_ratio(phi)
    read_only = phi.copy()
    read_only.setflags(write=False)
    same = (phi.tolist(), np.asfortranarray(phi), read_only, torch.tensor(phi), phi[None])
    for given_as in same:
        assert participation_ratio(given_as) == pytest.approx(expected, rel=1e-12)
    assert isinstance(expected, WithError)
    single = participation_ratio(phi.astype(np.float32))
    assert single == pytest.approx(expected, rel=1e-4)


def test_ratio_of_moments_and_estimates():
    m = power_sums([1.0, 0.5], 3)
    assert participation_ratio(m).value == pytest.approx(1.5**2 / 1.25)
    assert np.isnan(participation_ratio(m).stderr)
    phi = RBF(2).sample(60, 80, 9)
    est = estimate(phi, 3)
    worst = SimpleNamespace(values=est.values, stderr=est.stderr)
    assert participation_ratio(est).stderr < participation_ratio(worst).stderr
    relative = 2 * est.stderr[0] / est.values[0] + est.stderr[1] / est.values[1]
    assert participation_ratio(worst).stderr == pytest.approx(
        relative * participation_ratio(worst).value
    )
    assert participation_ratio(phi).stderr == pytest.approx(
        participation_ratio(est).stderr, rel=0.1
    )


@given(spectra)
@settings(max_examples=30, deadline=None)
def test_renyi_dimensions_decrease(eigenvalues):
    m = power_sums(eigenvalues, 6)
    values = [renyi_dimension(m, n).value for n in range(2, 7)]
    assert (np.diff(values) <= 1e-9 * values[0]).all()
    assert values[-1] >= 1 - 1e-9 and values[0] <= len(eigenvalues) * (1 + 1e-9)


def test_trials_and_gaps():
    rng, process = np.random.default_rng(10), Linear(6)
    phi = process.sample(150, 160, 1)
    trials = phi + rng.standard_normal((4, *phi.shape))
    gaps = np.where(rng.random(trials.shape) < 0.1, np.nan, trials)
    for data in (trials, gaps):
        value, error = participation_ratio(data, random_state=1)
        assert abs(value - 6) < 4 * error < 6
    assert participation_ratio(trials.mean(axis=0)).value > 6.3  # the noise counts


def test_no_answer_without_a_positive_denominator():
    phi = np.array([[1.0, -1.0], [1.0, 1.0]])
    for data in (phi, np.zeros((5, 5))):
        with pytest.warns(EstimateWarning):
            assert np.isnan(participation_ratio(data).value)


# --- what a caller is told ---


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: participation_ratio([1.0, 0.5], center=True),
            "needs the measurement matrix",
        ),
        (
            lambda: participation_ratio([1.0, 0.5], population=(None, 5)),
            "population needs the measurement matrix",
        ),
        (lambda: participation_ratio(np.ones((3, 5)), center=True), "4 distinct rows"),
        (lambda: participation_ratio(np.ones((5, 1))), "n_max = 2 exceeds"),
        (lambda: renyi_dimension([1.0, 0.5], 3), r"needs m\(3\)"),
        (lambda: renyi_dimension([1.0, 0.5], 1), "order = 1 is too small"),
    ],
)
def test_messages(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# --- feasible moments ---


def with_errors(m, error=0.05):
    return SimpleNamespace(values=np.asarray(m), stderr=error * abs(np.asarray(m)))


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
    found = feasible(SimpleNamespace(values=noisy, stderr=stderr))
    assert (found.values >= 0).all() and is_feasible(found.values)
    n = np.arange(k)
    np.testing.assert_allclose(
        found.grid ** n[:, None] @ found.trace, found.values, rtol=1e-9
    )
    assert found.trace.min() >= 0 and (np.diff(found.eigenvalues(20)) <= 1e-12).all()


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e7])
def test_feasible_scales(scale):
    est = estimate(RBF(3).sample(40, 60, 1), 5)
    n = np.arange(1, 6)
    moved = SimpleNamespace(
        values=est.values * scale**n,
        stderr=est.stderr * scale**n,
        covariance=est.covariance * scale ** np.add.outer(n, n),
    )
    one, other = feasible(est), feasible(moved)
    np.testing.assert_allclose(other.values, one.values * scale**n, rtol=1e-6)
    np.testing.assert_allclose(other.eigenvalues(5), scale * one.eigenvalues(5), rtol=1e-5)


def test_feasible_keeps_good_moments_and_repairs_bad_ones():
    m = power_sums([1.0, 0.5, 0.2, 0.2], 6)
    np.testing.assert_allclose(feasible(with_errors(m, 1e-5)).values, m, rtol=1e-4)
    bad = m.copy()
    bad[4] = -0.1
    stderr = m * [0.01, 0.01, 0.01, 0.01, 2.0, 0.01]
    repaired = feasible(SimpleNamespace(values=bad, stderr=stderr)).values
    np.testing.assert_allclose(repaired[[0, 1, 2, 3, 5]], m[[0, 1, 2, 3, 5]], rtol=0.03)
    assert repaired[4] == pytest.approx(m[4], rel=0.05)  # the others tell it


def test_nearest_point_is_the_least_squares_solution():
    rng = np.random.default_rng(3)
    rows = moment_grid(60) ** np.arange(5)[:, None]
    S = np.cov(rng.standard_normal((5, 30)))
    root = np.linalg.cholesky(S)
    for _ in range(20):
        y = rng.standard_normal(5) + 1
        nu, H = nearest_point(y, rows, root)
        gradient = np.linalg.solve(S, y - rows @ nu) @ rows
        assert nu.min() >= 0 and gradient.max() < 1e-8
        np.testing.assert_allclose(H @ y, rows @ nu, atol=1e-8)  # linear near y
        np.testing.assert_allclose(H @ H, H, atol=1e-7)  # a projection


def test_errors_follow_the_fit():
    m, fit = np.array([1.0, 2.0, -1.0, 0.0, 9.0, 0.0]), np.array([1.0, 1.0, 1, 1, 1, 0])
    np.testing.assert_allclose(error_factor(m, fit), [1, 0.5, 3, 3, 1 / 3, 1 / 3])


def test_spectrum_is_deterministic_and_keeps_the_errors():
    est = estimate(RBF(3).sample(40, 60, 2), 5)
    one, other = feasible(est), feasible(est)
    np.testing.assert_array_equal(one.values, other.values)
    np.testing.assert_allclose(one.stderr, est.stderr, rtol=1e-12)
    spread = np.sqrt(one.linearised.diagonal())
    assert (spread <= 1.05 * est.stderr).all()
    low, high = one.interval(0.9)
    assert (low < one.values).all() and (one.values < high).all()
    np.testing.assert_array_equal(one.moments, one.values)
    number = one.measure[1]
    assert len(one.eigenvalues()) == max(1, round(number.sum()))


def test_unknown_orders_are_left_out():
    m = power_sums([1.0, 0.5, 0.2], 5)
    est = SimpleNamespace(values=m, stderr=np.append(0.1 * m[:3], [np.nan, np.inf]))
    assert len(moments_and_covariance(est)[0]) == len(feasible(est).values) == 3
    with pytest.raises(ValueError, match="standard errors"):
        feasible(m)
    with pytest.raises(ValueError, match="not positive"):
        feasible(SimpleNamespace(values=-m, stderr=m))


def test_recovery_without_count_and_upper():
    est = sm.estimate(sm.PowerLaw(1.0).sample(60, 80, 3), 4, random_state=0)
    np.testing.assert_array_equal(recover_eigenvalues(est), feasible(est).eigenvalues())
    np.testing.assert_array_equal(recover_eigenvalues(est, 7), feasible(est).eigenvalues(7))
    with pytest.raises(ValueError, match="needs count"):
        recover_eigenvalues(est, upper=1.0)
    with pytest.raises(ValueError, match="upper"):
        recover_eigenvalues(est, 3, weights=np.ones(4))


@pytest.mark.parametrize("process", [RBF(3), Linear(6), sm.PowerLaw(1.0), sm.ReLU(4)])
def test_the_most_even_measure_nearly_has_the_moments(process):
    est, n = estimate(process.sample(60, 80, 1), 6), np.arange(6)
    found = feasible(est)
    assert (found.even >= 0).all() and found.even[0] == 0
    miss = found.grid ** n[:, None] @ found.even - found.values
    assert (abs(miss) < found.stderr).all()
    points = lambda trace: (trace > 1e-3 * trace.max()).sum()
    assert points(found.even) > points(found.trace)


def test_the_most_even_measure_of_sharp_moments_is_near_the_truth():
    for process in (Linear(5), sm.PowerLaw(1.0)):
        truth = process.eigenvalues(5)
        one = feasible(with_errors(process.moments(7), 1e-6)).eigenvalues(5)
        assert abs(one - truth).sum() < 0.05 * truth.sum()


def test_with_the_trace_alone_eigenvalues_form_a_geometric_sequence():
    s = moment_grid(150)
    width = np.append(0, np.diff([0, *(s[1:-1] + s[2:]) / 2, 1]))
    one = np.ones(1)
    even = most_even(7 * one, 0.1 * one, np.ones((1, len(s))), np.eye(1), width)
    np.testing.assert_allclose(even, 7 * width, rtol=1e-9)
    spectrum = Spectrum(7 * one, one, np.eye(1), np.eye(1), s, even)
    found = spectrum.eigenvalues(12)
    np.testing.assert_allclose(found[1:] / found[:-1], np.exp(-1 / 7), rtol=0.02)


# --- plots ---


def test_plots_of_spectrum_and_dimension():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    phi = RBF(2).sample(60, 80, 4)
    est = estimate(phi, 4)
    assert feasible(est).plot(count=5).get_yscale() == "log"
    assert plot_dimensions(est).get_xlabel() == "order $n$"
    sweep = dimension_sweep(phi, (0.3, 0.6), n_draws=5, random_state=1)
    assert sweep.values.shape == (2, 5) and sweep.shapes == [(18, 24), (36, 48)]
    assert sweep.whole == pytest.approx(np.divide(*all_cycles(phi, 2) ** [2, 1]))
    assert len(sweep.plot().get_xticks()) == 2
    assert str(sweep).split("\n")[2].split()[:3] == ["18", "x", "24"]
    with pytest.raises(ValueError, match="not usable"):
        plot_dimensions(SimpleNamespace(values=np.ones(3), stderr=2 * np.ones(3)))
    plt.close("all")
