"""What no reader of the chapter on trials needs to see."""

import itertools
import math

import numpy as np
import pytest

import spectral_moments as sm
from spectral_moments.engine.reduction import trial_splits
from spectral_moments.teaching.paper_algorithms import (
    admissible_sequences,
    algorithm_a1,
    algorithm_a2,
    count_admissible,
    is_admissible,
    product_of_entries,
    smoothed_noise,
)

PUBLIC = (sm.naive, sm.kong_valiant, sm.increasing, sm.all_cycles)


def normal(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def direct(trials, n, sequence, choose=itertools.combinations):
    "Mean over cycles for one sequence of trials, term by term."
    rows, columns = (list(choose(range(size), n)) for size in trials.shape[1:])
    pairs = itertools.product(rows, columns)
    return np.mean([product_of_entries(trials, *pair, sequence) for pair in pairs])


# --- sequences ----------------------------------------------------------------------------


def test_admissible():
    assert is_admissible((0, 1)) and not is_admissible((0, 0))
    assert not is_admissible((0, 1, 2, 0)) and is_admissible((0, 1, 0, 2))
    assert count_admissible(1, 3) == 0 == len(admissible_sequences(1, 3))
    for T, n in itertools.product((2, 3, 4), (1, 2, 3)):
        assert len(admissible_sequences(T, n)) == count_admissible(T, n)


# --- the paper's algorithms ---------------------------------------------------------------


@pytest.mark.parametrize("shape", [(2, 2), (5, 4), (4, 6), (3, 9)])
def test_algorithm_a1(shape):
    trials, n_max = normal((2, *shape), 1), min(*shape, 4)
    expected = [direct(trials, n, (0, 1) * n) for n in range(2, n_max + 1)]
    np.testing.assert_allclose(algorithm_a1(*trials, n_max), expected, rtol=1e-10)


def test_algorithm_a2_follows_admissible_sequences(monkeypatch):
    "Mean over start rows of the sequences it draws, which are read off its choices."
    trials, drawn = normal((4, 5, 4), 2), []

    class Recorder:
        def choice(self, options):
            drawn.append(options[len(drawn) % len(options)])
            return drawn[-1]

    monkeypatch.setattr(
        "spectral_moments.teaching.paper_algorithms.check_random_state",
        lambda _: Recorder(),
    )
    values = algorithm_a2(trials, 3)
    each = np.array(drawn).reshape(5, 7)  # t_1, then t_2, t_3, t_r, t_4, t_5, t_r
    expected = np.zeros(2)
    for h, t in enumerate(each):
        for n, sequence in ((2, t[[0, 1, 2, 3]]), (3, t[[0, 1, 2, 4, 5, 6]])):
            assert is_admissible(tuple(sequence))
            cycles = [
                (rows, columns)
                for rows in itertools.combinations(range(5), n)
                for columns in itertools.combinations(range(4), n)
                if rows[0] == h
            ]
            total = sum(product_of_entries(trials, *pair, sequence) for pair in cycles)
            expected[n - 2] += total / (math.comb(5, n) * math.comb(4, n))
    np.testing.assert_allclose(values, expected, rtol=1e-10)


def test_algorithm_a2_with_two_trials():
    trials = normal((2, 4, 4), 3)
    again = [algorithm_a2(trials, 3, random_state=7) for _ in range(2)]
    np.testing.assert_array_equal(*again)
    assert abs(algorithm_a2(trials, 3, random_state=8) - again[0]).max() > 0


# --- halves -------------------------------------------------------------------------------


@pytest.mark.parametrize("T", [2, 3, 4])
def test_halves_are_means_over_sequences(T):
    "All cycles by halves, multiplied out: sequences that alternate between the halves."
    trials = normal((T, 4, 3), T)
    for n in (1, 2):
        means = []
        for first, second in trial_splits(T, None):
            steps = itertools.product(*[first, second] * n)
            sequences = list(steps)
            assert all(map(is_admissible, sequences))
            means.append(
                np.mean([direct(trials, n, s, itertools.permutations) for s in sequences])
            )
        np.testing.assert_allclose(sm.all_cycles(trials, n)[-1], np.mean(means), rtol=1e-9)


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


def test_many_trials_use_random_splits():
    trials = normal((7, 6, 5), 7) + 1
    one, two, other = (sm.increasing(trials, 2, random_state=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert abs(one - other).max() > 0


@pytest.mark.parametrize("estimator", PUBLIC)
def test_input(estimator):
    trials = normal((2, 5, 6), 8)
    trials.setflags(write=False)
    value = estimator(trials, 3)
    for same in (trials.tolist(), list(trials), tuple(trials), np.asfortranarray(trials)):
        np.testing.assert_array_equal(estimator(same, 3), value)
    with pytest.raises(ValueError, match="only NaN"):
        estimator(np.full((2, 3, 4), np.nan), 2)
    with pytest.raises(ValueError, match="4 axes"):
        estimator(np.ones((1, 2, 3, 4)), 2)
    with pytest.raises(ValueError):
        estimator([np.ones((3, 4)), np.ones((3, 5))], 2)


def test_torch():
    torch = pytest.importorskip("torch")
    trials = torch.tensor(normal((3, 6, 7), 9), requires_grad=True)
    moments = sm.all_cycles(trials, 3)
    plain = trials.detach().numpy()
    np.testing.assert_allclose(moments.detach(), sm.all_cycles(plain, 3), rtol=1e-8)
    (gradient,) = torch.autograd.grad(moments[1], trials)
    step = np.zeros((3, 6, 7))
    step[1, 2, 3] = 1e-3
    up, down = (sm.all_cycles(plain + sign * step, 2)[1] for sign in (1, -1))
    np.testing.assert_allclose(gradient[1, 2, 3], (up - down) / 2e-3, rtol=1e-6)


# --- noise --------------------------------------------------------------------------------


def test_smoothed_noise():
    noise = smoothed_noise(3, 400, 30, random_state=2, box=5)
    assert noise.shape == (3, 400, 30)
    assert abs(noise.var() - 1) < 0.05
    assert abs((noise[..., 5:] * noise[..., :-5]).mean()) < 0.03
    assert abs((noise[..., 4:] * noise[..., :-4]).mean() - 0.2) < 0.03


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
