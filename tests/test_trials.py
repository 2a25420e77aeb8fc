"""What no reader of the chapter on trials needs to see."""

import inspect
import itertools
import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectral_moments import one_sided, partitions, plugin, recursion
from spectral_moments import trials as across
from spectral_moments.trials import (
    admissible_sequences,
    as_trials,
    assignment_sums,
    count_admissible,
    cross_all_cycles,
    cross_increasing,
    cross_kong_valiant,
    cross_naive,
    follow_sequences,
    is_admissible,
    product_of_entries,
    random_pairs,
    random_sequences,
    smoothed_noise,
    wide_assignment_sums,
)

PUBLIC = {
    "naive": plugin.naive,
    "kong_valiant": one_sided.kong_valiant,
    "increasing": recursion.increasing,
    "all_cycles": partitions.all_cycles,
}


def normal(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def direct(trials, n, choose=itertools.combinations):
    """Mean over cycles and admissible sequences, term by term."""
    T, P, Q = trials.shape
    choices = list(choose(range(P), n)), list(choose(range(Q), n))
    values = [
        product_of_entries(trials, *choice)
        for choice in itertools.product(*choices, admissible_sequences(T, n))
    ]
    return sum(values) / len(values)


# ------------------------------------------------------------------ against the oracle


@settings(max_examples=15, deadline=None)
@given(
    T=st.integers(2, 4),
    P=st.integers(1, 4),
    Q=st.integers(1, 4),
    seed=st.integers(0, 1000),
    dtype=st.sampled_from(["f8", "f4", "i2", "?"]),
    layout=st.sampled_from(["C", "F"]),
    data=st.data(),
)
def test_direct_sum(T, P, Q, seed, dtype, layout, data):
    n_max = data.draw(st.integers(1, min(P, Q, 3 if T < 4 else 2)))
    trials = np.asarray(3 * normal((T, P, Q), seed), dtype=dtype, order=layout)
    exact = np.vectorize(Fraction)(trials.astype(float))
    estimate = cross_increasing(trials, n_max, n_jobs=1)
    for n in range(1, n_max + 1):
        size = float(direct(abs(exact), n))
        assert abs(estimate[n - 1] - float(direct(exact, n))) <= 1e-12 * size


@pytest.mark.parametrize("T", [2, 3, 4, 5, 7])
@pytest.mark.parametrize(("P", "Q"), [(1, 1), (4, 4), (5, 3), (17, 33), (33, 18)])
def test_kernel_against_transfer_matrices(T, P, Q):
    """Sum over paths by explicit loops over rows, columns and trials."""
    trials, n_max = normal((T, P, Q), T), min(P, Q, 4)
    apart = 1 - np.eye(T)
    total = np.zeros(n_max)
    for h, s in itertools.product(range(P), range(T)):
        R = np.zeros((n_max, Q, T))
        R[0, :, s] = trials[s, h]
        for a in range(h + 1, P):
            x = trials[:, a].T  # (Q, T)
            entered = np.cumsum(x * (R @ apart), axis=1)
            before = np.zeros_like(R)
            before[:, 1:] = entered[:, :-1]
            R[1:] += x * (before[:-1] @ apart)
        closing = trials[:, h].T @ (apart * apart[s][:, None])
        total += np.einsum("kbt,bt->k", R, closing)
    bound = assignment_sums(abs(trials), n_max)
    assert (abs(assignment_sums(trials, n_max) - total) <= 1e-12 * bound).all()


def test_two_alternations_are_the_two_starts():
    trials = normal((2, 9, 12))
    one, other = (assignment_sums(trials, 4, starts=(s,)) for s in (0, 1))
    np.testing.assert_allclose(one + other, assignment_sums(trials, 4), rtol=1e-11)
    np.testing.assert_allclose(assignment_sums(trials[::-1], 4, starts=(0,)), other)
    kernel = recursion.lane_sums(trials[1], trials[0], 4).sum(axis=1)
    np.testing.assert_allclose(one, kernel, rtol=1e-11)


def test_wide_numbers():
    trials = normal((3, 4, 4), 1)
    np.testing.assert_allclose(
        np.ldexp(*wide_assignment_sums(trials, 4)), assignment_sums(trials, 4), rtol=1e-10
    )


# ------------------------------------------------------------------ invariances


@pytest.mark.parametrize("T", [2, 3])
def test_invariances(T):
    trials, orders = normal((T, 7, 9)) + 0.5, np.arange(1, 5)
    estimate = cross_increasing(trials, 4)
    flipped = trials[:, ::-1, ::-1].transpose(0, 2, 1)
    np.testing.assert_allclose(cross_increasing(flipped, 4), estimate, rtol=1e-10)
    np.testing.assert_allclose(
        cross_increasing(-3 * trials, 4), 9.0**orders * estimate, rtol=1e-10
    )
    np.testing.assert_array_equal(
        cross_increasing(0.125 * trials, 4), 0.125 ** (2 * orders) * estimate
    )
    for estimator in (cross_naive, cross_all_cycles):
        swapped = estimator(trials.transpose(0, 2, 1), 4)
        np.testing.assert_allclose(swapped, estimator(trials, 4), rtol=1e-10)


@pytest.mark.parametrize("name", PUBLIC)
def test_equal_trials_are_one_matrix(name):
    phi = normal((8, 6)) + 0.5
    value = getattr(across, name)(np.stack([phi] * 3), 3)
    np.testing.assert_allclose(value, PUBLIC[name](phi, 3), rtol=1e-10)


def test_threads_and_permutations():
    trials = normal((3, 40, 30))
    for options in ({}, {"n_permutations": 3, "random_state": 5}):
        one, two = (cross_increasing(trials, 5, n_jobs=n, **options) for n in (1, 2))
        np.testing.assert_array_equal(one, two)
    again = cross_increasing(trials, 5, n_permutations=3, random_state=5)
    np.testing.assert_array_equal(again, one)
    other = cross_increasing(trials, 5, n_permutations=3, random_state=6)
    assert abs(other[2:] - one[2:]).max() > 0
    np.testing.assert_allclose(other[:2], one[:2], rtol=1e-9)  # orders 1, 2 do not depend


def test_progress(capsys, monkeypatch):
    trials = normal((3, 9, 8))
    shown = cross_increasing(trials, 2, progress=True)
    assert "block" in capsys.readouterr().err
    np.testing.assert_array_equal(shown, cross_increasing(trials, 2))
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match=r"spectral_moments\[progress\]"):
        cross_increasing(trials, 2, progress=True)


# ------------------------------------------------------------------ extremes


@pytest.mark.parametrize("scale", [1e-300, 1e-100, 1e100, 1e300])
@pytest.mark.parametrize("T", [2, 3])
def test_extreme_scales(scale, T):
    trials = 1 + 0.1 * normal((T, 5, 6))
    reference = {name: getattr(across, name)(trials, 3) for name in PUBLIC}
    with np.errstate(over="ignore", under="ignore"):
        for name, value in reference.items():
            scaled = getattr(across, name)(scale * trials, 3)
            expected = value * np.float64(scale) ** np.array([2, 4, 6])
            np.testing.assert_allclose(scaled, expected, rtol=1e-9)


def test_high_order():
    ones = np.ones((3, 60, 61))
    np.testing.assert_allclose(cross_increasing(ones, 60), np.ones(60), rtol=1e-10)
    np.testing.assert_allclose(cross_naive(ones, 60), np.ones(60), rtol=1e-10)
    np.testing.assert_allclose(cross_kong_valiant(ones, 60), np.ones(60), rtol=1e-10)
    assert np.isfinite(cross_increasing(normal((4, 60, 60)), 60)).all()


def test_entries_of_very_different_size():
    trials = np.full((2, 3, 3), 1e-40)
    trials[:, 0, 0] = 1e100
    exact = np.vectorize(Fraction)(trials)
    expected = [float(direct(exact, n)) for n in (1, 2, 3)]
    np.testing.assert_allclose(cross_increasing(trials, 3), expected, rtol=1e-10)
    assert (cross_increasing(np.zeros((2, 4, 5)), 3) == 0).all()
    assert (cross_naive(np.zeros((2, 4, 5)), 3) == 0).all()


def test_cancellation_is_reported():
    trials = normal((2, 40, 50)) + 0.5
    trials[:, 3, 4] = 1e6
    with pytest.warns(RuntimeWarning, match="nearly equal"):
        cross_all_cycles(trials, 4)


# ------------------------------------------------------------------ sequences


def test_admissible():
    assert is_admissible((0, 1)) and not is_admissible((0, 0))
    assert not is_admissible((0, 1, 2, 0)) and is_admissible((0, 1, 0, 2))
    assert count_admissible(1, 3) == 0 == len(admissible_sequences(1, 3))


@pytest.mark.parametrize("T", [2, 3, 6])
def test_random_sequences(T):
    sequences, closing = random_sequences(T, 200, 5, random_state=1)
    for t, last in zip(sequences, closing, strict=True):
        assert all(is_admissible((*t[: 2 * n + 1], last[n])) for n in range(5))
    assert set(closing.ravel()) == set(sequences.ravel()) == set(range(T))
    again = random_sequences(T, 200, 5, random_state=1)
    np.testing.assert_array_equal(again[0], sequences)
    np.testing.assert_array_equal(again[1], closing)


def test_one_trial_everywhere_is_the_plain_sum():
    phi = normal((1, 6, 7))
    zeros = np.zeros((6, 7), dtype=np.int64), np.zeros((6, 4), dtype=np.int64)
    sums = follow_sequences(phi, *zeros)
    numbers = [math.comb(6, n) * math.comb(7, n) for n in range(1, 5)]
    np.testing.assert_allclose(sums / numbers, recursion.increasing(phi[0], 4), rtol=1e-10)


def test_random_pairs():
    trials = normal((3, 6, 8))
    value = random_pairs(trials, 3, n_pairs=5, random_state=1)
    np.testing.assert_array_equal(
        value, random_pairs(trials, 3, n_pairs=5, random_state=1, n_jobs=1)
    )
    many = random_pairs(trials[:2], 3, n_pairs=60, random_state=0, n_jobs=1)
    ways = [assignment_sums(trials[:2], 3, starts=(s,)) for s in (0, 1)]
    cycles = [math.comb(6, n) * math.comb(8, n) for n in (1, 2, 3)]
    share = (many * cycles - ways[1])[1:] / (ways[0] - ways[1])[1:]
    np.testing.assert_allclose(share, share[0])  # how often trial 0 came first
    assert 0.3 < share[0] < 0.7


def test_smoothed_noise():
    noise = smoothed_noise(3, 400, 30, random_state=2, box=5)
    assert noise.shape == (3, 400, 30)
    assert abs(noise.var() - 1) < 0.05
    assert abs((noise[..., 5:] * noise[..., :-5]).mean()) < 0.03
    assert abs((noise[..., 4:] * noise[..., :-4]).mean() - 0.2) < 0.03


# ------------------------------------------------------------------ input and errors


@pytest.mark.parametrize("name", PUBLIC)
def test_public_functions(name):
    public, one = getattr(across, name), PUBLIC[name]
    given, expected = inspect.signature(public), inspect.signature(one)
    assert given == expected
    phi = normal((5, 6))
    for same in (phi, phi[None], phi.tolist(), [phi], np.asfortranarray(phi)):
        np.testing.assert_array_equal(public(same, 3), one(phi, 3))
    trials = normal((2, 5, 6))
    trials.setflags(write=False)
    across_trials = public(trials, 3)
    for same in (trials.tolist(), list(trials), tuple(trials), np.asfortranarray(trials)):
        np.testing.assert_array_equal(public(same, 3), across_trials)
    single = public(trials.astype(np.float32), 3)
    np.testing.assert_allclose(single, across_trials, rtol=1e-3, atol=1e-4)
    assert across_trials.dtype == np.float64 and across_trials.shape == (3,)


@pytest.mark.parametrize("name", PUBLIC)
def test_bad_input(name):
    public = getattr(across, name)
    with pytest.raises(ValueError, match=r"different shapes, \(3, 4\), \(3, 5\)"):
        public([np.ones((3, 4)), np.ones((3, 5))], 2)
    with pytest.raises(ValueError, match="NaN"):
        public(np.full((2, 3, 4), np.nan), 2)
    with pytest.raises(ValueError, match="infinite"):
        public(np.full((2, 3, 4), np.inf), 2)
    with pytest.raises(ValueError, match="empty"):
        public(np.empty((0, 3, 4)), 2)
    with pytest.raises(ValueError, match="4 axes"):
        public(np.ones((1, 2, 3, 4)), 2)
    with pytest.raises(ValueError, match="min"):
        public(np.ones((2, 3, 4)), 4)
    with pytest.raises(TypeError, match="complex"):
        public(np.ones((2, 3, 4)) * 1j, 2)
    with pytest.raises(TypeError, match="n_max"):
        public(np.ones((2, 3, 4)), 2.0)


def test_other_errors():
    ones = np.ones((2, 3, 4))
    for call in (cross_increasing, cross_naive, cross_kong_valiant, cross_all_cycles):
        with pytest.raises(ValueError, match="single trial"):
            call(ones[:1], 2)
    with pytest.raises(ValueError, match="sampled"):
        across.kong_valiant(ones, 2, sampled="features")
    with pytest.raises(ValueError, match="n_pairs"):
        random_pairs(ones, 2, n_pairs=0)
    with pytest.raises(ValueError, match="n_permutations"):
        cross_increasing(ones, 2, n_permutations=-1)
    with pytest.raises(ValueError, match="highest order of this estimator"):
        across.all_cycles(np.ones((2, 8, 8)), 6)
    assert as_trials(np.ones((3, 4))).shape == (1, 3, 4)


def test_torch():
    torch = pytest.importorskip("torch")
    trials = torch.tensor(normal((3, 6, 7)), requires_grad=True)
    for name in ("naive", "kong_valiant", "increasing"):
        value = getattr(across, name)(trials, 3)
        expected = getattr(across, name)(trials.detach().numpy(), 3)
        np.testing.assert_array_equal(value, expected)
    moments = across.all_cycles(trials, 3)
    np.testing.assert_allclose(
        moments.detach(), across.all_cycles(trials.detach().numpy(), 3), rtol=1e-9
    )
    (gradient,) = torch.autograd.grad(moments[1], trials)
    step = np.zeros((3, 6, 7))
    step[1, 2, 3] = 1e-3
    up, down = (
        across.all_cycles(trials.detach().numpy() + sign * step, 2)[1] for sign in (1, -1)
    )
    np.testing.assert_allclose(gradient[1, 2, 3], (up - down) / 2e-3, rtol=1e-6)
    one = across.all_cycles(trials[:1], 2)
    assert one.requires_grad
