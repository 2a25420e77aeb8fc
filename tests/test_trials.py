"""What no reader of the chapter on trials needs to see."""

import numpy as np
import pytest
from conftest import normal

import spectral_moments as sm
from spectral_moments.teaching.paper_algorithms import algorithm_a1

PUBLIC = (sm.naive, sm.kong_valiant, sm.increasing, sm.all_cycles)


@pytest.mark.parametrize("estimator", PUBLIC)
def test_two_trials_are_both_alternations(estimator):
    trials = normal((2, 6, 5), 4) + 0.3
    value = estimator(trials, 3)
    np.testing.assert_allclose(estimator(trials[::-1], 3), value, rtol=1e-9)
    if estimator is sm.increasing:
        both = (algorithm_a1(*trials, 3) + algorithm_a1(*trials[::-1], 3)) / 2
        np.testing.assert_allclose(value[1:], both, rtol=1e-10)
    np.testing.assert_allclose(
        sm.increasing(trials, 1)[0], (trials[0] * trials[1]).mean(), rtol=1e-12
    )


@pytest.mark.parametrize("T", [2, 3, 4, 5])
@pytest.mark.parametrize("estimator", PUBLIC)
def test_equal_trials_are_one_matrix(estimator, T):
    phi = normal((8, 6), 5) + 0.5
    value = estimator(np.stack([phi] * T), 3)
    np.testing.assert_allclose(value, estimator(phi, 3), rtol=1e-9)
    np.testing.assert_array_equal(estimator(phi[None], 3), estimator(phi, 3))


@pytest.mark.parametrize("T", [2, 3, 4])
def test_invariances(T):
    trials, orders = normal((T, 7, 9), 6) + 0.5, np.arange(1, 5)
    for estimator in (sm.increasing, sm.all_cycles):
        value = estimator(trials, 4)
        flipped = trials[:, ::-1, ::-1].transpose(0, 2, 1)
        np.testing.assert_allclose(estimator(flipped, 4), value, rtol=1e-9)
        np.testing.assert_array_equal(
            estimator(0.125 * trials, 4), 0.125 ** (2 * orders) * value
        )
        order = np.random.default_rng(T).permutation(T)
        np.testing.assert_allclose(estimator(trials[order], 4), value, rtol=1e-9)


def test_splits_of_many_trials_are_no_draw():
    "Where nothing else is drawn, no seed moves the answer."
    trials = normal((7, 30, 12), 7) + normal((30, 12), 8)
    one, other = (sm.estimate(trials, 2, random_state=s).values for s in (1, 2))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("T", [3, 4])
def test_few_trials_of_a_whole_population_know_their_error_badly(T):
    "Only trials tell of an error, so their number is what the interval goes by."
    rng, hits = np.random.default_rng(6), []
    signal = rng.standard_normal((24, 3)) @ rng.standard_normal((3, 16))
    truth = np.trace(np.linalg.matrix_power(signal.T @ signal / signal.size, 2))
    for _ in range(150):
        trials = signal + rng.standard_normal((T, 24, 16))
        est = sm.estimate(trials, 2, population=(24, 16), center=False)
        low, high = est.interval()
        hits.append(low[1] < truth < high[1])
    assert np.mean(hits) > 0.93  # .88, .93 by a law that counts rows and columns too


@pytest.mark.parametrize(
    ("shared", "most"), [((), 1.5), ((2,), 2.5)], ids=["entries", "rows"]
)
def test_errors_of_two_trials_of_a_whole_population(shared, most):
    "Nothing but noise is drawn: the error is its spread; twice that if rows share it."
    rng = np.random.default_rng(71)
    signal = rng.standard_normal((24, 3)) @ rng.standard_normal((3, 16))
    shape = [1 if axis in shared else n for axis, n in enumerate((2, 24, 16))]
    found = [
        sm.estimate(signal + rng.standard_normal(shape), 2, population=(24, 16))
        for _ in range(40)
    ]
    spread = np.std([est.values for est in found], axis=0)
    error = np.sqrt(np.mean([est.stderr**2 for est in found], axis=0))
    assert (error > 0.75 * spread).all() and (error < most * spread).all()
