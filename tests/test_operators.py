"""Processes with known answers."""

import numpy as np
import pytest

import spectral_moments as sm
from spectral_moments.processes import (
    RBF,
    Discrete,
    Linear,
    LinearPair,
    PowerLaw,
    Process,
    ReLU,
    power_sums,
)


@pytest.mark.parametrize(
    "process",
    [Linear(3, scale=0.4), PowerLaw(1.5, 30), Discrete([[1, 2], [0, 1]]), RBF(1), ReLU(3)],
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


def test_pair_interface():
    pair = LinearPair(4, 0.6)
    phi, psi = pair.sample(5, 6, 7, random_state=1)
    assert phi.shape == (5, 6) and psi.shape == (5, 7)
    np.testing.assert_array_equal(phi, pair.sample(5, 6, 7, random_state=1)[0])
    drawn = [sm.alignment(*pair.sample(60, 80, 80, k)).value for k in range(12)]
    error = np.std(drawn, ddof=1) / np.sqrt(12)
    assert abs(np.mean(drawn) - pair.alignment()) < 4 * error
    with pytest.raises(ValueError, match="Q2 = 0"):
        pair.sample(5, 6, 0)


def test_discrete():
    table = np.array([[1.0, -1.0], [2.0, 0.5], [0.0, 3.0]])
    probs = dict(input_probs=[0.5, 0.3, 0.2], feature_probs=[0.4, 0.6])
    process = Discrete(table, **probs)
    weighted = np.sqrt(probs["input_probs"])[:, None] * table
    sigma = np.linalg.svd(weighted * np.sqrt(probs["feature_probs"]), compute_uv=False)
    np.testing.assert_allclose(process.eigenvalues(2), sigma**2, rtol=1e-12)
    cycles = lambda x: np.array([x[0, 0] ** 2, x[0, 0] * x[1, 0] * x[1, 1] * x[0, 1]])
    exact = process.expectation(cycles, 2, 2)
    np.testing.assert_allclose(exact, process.moments(2), rtol=1e-12)
    table[:] = 7  # the process keeps its own
    np.testing.assert_allclose(process.eigenvalues(2), sigma**2, rtol=1e-12)
    rare = Discrete([[0.0], [1.0]], input_probs=[0.9, 0.1])
    share = rare.sample(20_000, 1, random_state=1).mean()
    assert abs(share - 0.1) < 4 * np.sqrt(0.09 / 20_000)


@pytest.mark.parametrize(
    ("process", "name", "wrong"),
    [
        (Linear, "scale", [0.0, -1.0, np.nan, np.inf]),
        (PowerLaw, "exponent", [-1, 0, np.inf, np.nan]),
        (PowerLaw, "rank", [0]),
        (Discrete, "input_probs", [[0.5, 0.6], [1.5, -0.5], [1.0], [[0.5, 0.5]]]),
        (Discrete, "input_probs", [[np.nan, 1], ["a", "b"]]),
    ],
)
def test_refused(process, name, wrong):
    good = {
        Linear: dict(dim=2),
        PowerLaw: dict(exponent=1),
        Discrete: dict(table=np.eye(2)),
    }
    for value in wrong:
        with pytest.raises(ValueError, match=name):
            process(**good[process] | {name: value})


def test_power_law_process():
    law = PowerLaw(1.5, 30, scale=0.2)
    np.testing.assert_allclose(law.eigenvalues(40)[:30], 0.2 * np.arange(1.0, 31) ** -1.5)
    assert law.eigenvalues(40)[30:].max() == 0 and len(law.eigenvalues()) == 30
    assert repr(law) == "PowerLaw(exponent=1.5, rank=30, scale=0.2)"
