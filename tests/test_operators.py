"""Processes with known answers, and spectra from exact moments."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from spectral_moments import (
    RBF,
    Discrete,
    Linear,
    LinearPair,
    PowerLaw,
    Process,
    RBFPair,
    ReLU,
    increasing,
)
from spectral_moments.processes import power_sums
from spectral_moments.teaching.operators import newton_eigenvalues

TABLES = hnp.arrays(
    "f8", hnp.array_shapes(min_dims=2, max_dims=2, max_side=4), elements=st.floats(-3, 3)
)


@given(TABLES, st.integers(0, 2**32))
def test_discrete_moments_are_traces(table, seed):
    rng = np.random.default_rng(seed)
    rho_x, rho_w = (rng.dirichlet(np.ones(size)) for size in table.shape)
    process = Discrete(table, input_probs=rho_x, feature_probs=rho_w)
    T = (table * rho_w) @ table.T * rho_x
    traces = [np.trace(np.linalg.matrix_power(T, n)) for n in range(1, 5)]
    np.testing.assert_allclose(process.moments(4), traces, rtol=1e-10, atol=1e-12)
    flipped = Discrete(table.T, input_probs=rho_w, feature_probs=rho_x)
    np.testing.assert_allclose(flipped.moments(4), traces, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "process",
    [
        Linear(3, scale=0.4),
        PowerLaw(1.5, 30),
        Discrete([[1.0, 2.0], [0.0, 1.0], [3.0, 1.0]]),
        RBF(1),
        ReLU(3),
    ],
    ids=lambda process: type(process).__name__,
)
def test_process_interface(process):
    assert isinstance(process, Process)
    phi = process.sample(5, 7, random_state=1)
    assert phi.shape == (5, 7)
    np.testing.assert_array_equal(phi, process.sample(5, 7, random_state=1))
    assert not np.array_equal(phi, process.sample(5, 7, random_state=2))
    many = process.eigenvalues(3000)
    np.testing.assert_allclose(process.moments(4)[1:], power_sums(many, 4)[1:], rtol=1e-7)
    assert len(many) == 3000 and (np.diff(many) <= 0).all()
    np.testing.assert_allclose(process.eigenvalues(1), many[:1], rtol=1e-12)
    if isinstance(process, (RBF, ReLU)):  # there is no end to them
        with pytest.raises(TypeError, match="count"):
            process.eigenvalues()
    for call in (process.eigenvalues, process.moments):
        with pytest.raises(ValueError, match="= 0"):
            call(0)
    with pytest.raises(ValueError, match="P = 0"):
        process.sample(0, 3)
    with pytest.raises(TypeError, match="Q must be a whole number"):
        process.sample(3, 2.5)


@pytest.mark.parametrize("pair", [LinearPair(4, 0.6, mean=1.0), RBFPair(2, (0.5, 2.0))])
def test_pair_interface(pair):
    phi, psi = pair.sample(5, 6, 7, random_state=1)
    assert phi.shape == (5, 6) and psi.shape == (5, 7)
    np.testing.assert_array_equal(phi, pair.sample(5, 6, 7, random_state=1)[0])
    assert pair.moment("ab") == pytest.approx(pair.moment(("b", "a")))
    assert 0 < pair.alignment() < 1
    with pytest.raises(ValueError, match="Q2 = 0"):
        pair.sample(5, 6, 0)


def test_discrete_keeps_its_own_table():
    table = np.ones((2, 2))
    process = Discrete(table)
    table[:] = 7
    np.testing.assert_allclose(process.moments(2), 1)


def test_sample_frequencies():
    process = Discrete([[0.0], [1.0]], input_probs=[0.9, 0.1])
    share = process.sample(20_000, 1, random_state=1).mean()
    assert abs(share - 0.1) < 4 * np.sqrt(0.09 / 20_000)


@pytest.mark.parametrize(
    "probs", [[0.5, 0.6], [1.5, -0.5], [1.0], [[0.5, 0.5]], [np.nan, 1.0]]
)
def test_probabilities_refused(probs):
    with pytest.raises(ValueError, match="input_probs must hold 2"):
        Discrete(np.ones((2, 3)), input_probs=probs)


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf])
def test_scale_refused(scale):
    with pytest.raises(ValueError, match="scale"):
        Linear(2, scale=scale)


def test_newton():
    known = np.array([2.0, 1.1, 0.4])
    np.testing.assert_allclose(newton_eigenvalues(power_sums(known, 3)), known, rtol=1e-10)


def test_power_law_process():
    law = PowerLaw(1.5, 30, scale=0.2)
    np.testing.assert_allclose(law.eigenvalues(40)[:30], 0.2 * np.arange(1.0, 31) ** -1.5)
    assert law.eigenvalues(40)[30:].max() == 0 and len(law.eigenvalues()) == 30
    np.testing.assert_allclose(law.moments(4), power_sums(law.eigenvalues(), 4))
    assert law.sample(3, 4, 1).shape == (3, 4)
    np.testing.assert_array_equal(law.sample(3, 4, 1), law.sample(3, 4, 1))
    draws = [increasing(law.sample(20, 25, seed), 3, n_jobs=1) for seed in range(400)]
    error = np.std(draws, axis=0, ddof=1) / np.sqrt(len(draws))
    assert (abs(np.mean(draws, axis=0) - law.moments(3)) < 4 * error).all()
    for bad in (dict(exponent=-1), dict(exponent=np.inf), dict(exponent=1, scale=0)):
        with pytest.raises(ValueError):
            PowerLaw(**bad)
    with pytest.raises(ValueError, match="rank"):
        PowerLaw(1.0, 0)
