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
    value = estimator(trials, 3, trials=True)
    np.testing.assert_allclose(estimator(trials[::-1], 3, trials=True), value, rtol=1e-9)
    np.testing.assert_allclose(value[0], (trials[0] * trials[1]).mean(), rtol=1e-12)
    if estimator is sm.increasing:
        both = (algorithm_a1(*trials, 3) + algorithm_a1(*trials[::-1], 3)) / 2
        np.testing.assert_allclose(value[1:], both, rtol=1e-10)


@pytest.mark.parametrize("T", [2, 3, 4, 5])
@pytest.mark.parametrize("estimator", PUBLIC)
def test_equal_trials_are_one_matrix(estimator, T):
    phi = normal((8, 6), 5) + 0.5
    value = estimator(np.stack([phi] * T), 3, trials=True)
    np.testing.assert_allclose(value, estimator(phi, 3), rtol=1e-9)
    np.testing.assert_array_equal(estimator(phi[None], 3, trials=True), estimator(phi, 3))


@pytest.mark.parametrize("T", [2, 3, 4])
def test_invariances(T):
    trials, orders = normal((T, 7, 9), 6) + 0.5, np.arange(1, 5)
    for estimator in (sm.increasing, sm.all_cycles):
        value = estimator(trials, 4, trials=True)
        flipped = trials[:, ::-1, ::-1].transpose(0, 2, 1)
        np.testing.assert_allclose(estimator(flipped, 4, trials=True), value, rtol=1e-9)
        scaled = estimator(0.125 * trials, 4, trials=True)
        np.testing.assert_array_equal(scaled, 0.125 ** (2 * orders) * value)
        order = np.random.default_rng(T).permutation(T)
        shuffled = estimator(trials[order], 4, trials=True)
        np.testing.assert_allclose(shuffled, value, rtol=1e-9)


def test_splits_of_many_trials_are_no_draw():
    "Where nothing else is drawn, no seed moves the answer."
    trials = normal((7, 30, 12), 7) + normal((30, 12), 8)
    options = dict(trials=True)
    one, other = (sm.estimate(trials, random_state=s, **options).values for s in (1, 2))
    np.testing.assert_array_equal(one, other)
