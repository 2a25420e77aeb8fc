"""What no reader of the chapter on the recursion needs to see."""

import sys
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectral_moments.cycles import mean_over_increasing
from spectral_moments.recursion import (
    COLS,
    LANES,
    ROWS,
    algorithm_1,
    choose_exponent,
    cumulative,
    increasing,
    increasing_sums,
    lane_sums,
    pack_tiles,
    permuted_estimates,
    size_bounds,
    size_logs,
    streaming,
    walk_lanes,
    wide_sums,
)


def normal(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def binomials(P, Q, n_max):
    return np.array([float(comb(P, n) * comb(Q, n)) for n in range(1, n_max + 1)])


def assert_close(value, expected, phi, rtol=1e-12):
    """Equal up to `rtol` of the same quantity for |phi|, which bounds the rounding."""
    bound = increasing(abs(phi), len(expected))
    assert (abs(value - expected) <= rtol * bound).all()


# ------------------------------------------------------------------ the ladder


@settings(max_examples=30, deadline=None)
@given(
    P=st.integers(1, 7),
    Q=st.integers(1, 7),
    seed=st.integers(0, 1000),
    rung=st.sampled_from([algorithm_1, cumulative, streaming]),
    data=st.data(),
)
def test_rungs_and_direct_sum(P, Q, seed, rung, data):
    n_max = data.draw(st.integers(1, min(P, Q, 4)))
    phi = abs(normal((P, Q), seed))
    exact = np.vectorize(Fraction)(phi)
    expected = [float(mean_over_increasing(exact, n)) for n in range(1, n_max + 1)]
    np.testing.assert_allclose(rung(phi, n_max), expected, rtol=1e-13)


@settings(max_examples=20, deadline=None)
@given(
    P=st.integers(1, 30), Q=st.integers(1, 30), seed=st.integers(0, 1000), data=st.data()
)
def test_rungs_among_themselves(P, Q, seed, data):
    n_max = data.draw(st.integers(1, min(P, Q, 9)))
    phi = normal((P, Q), seed)
    value, bound = streaming(phi, n_max), streaming(abs(phi), n_max)
    for other in (
        cumulative(phi, n_max),
        streaming(phi[::-1, ::-1].T, n_max),
        streaming(-1.7 * phi, n_max) / 1.7 ** (2 * np.arange(1, n_max + 1)),
    ):
        assert (abs(other - value) <= 1e-12 * bound).all()


# ======================================================================================
# To be removed, with the last section of the chapter. What is promised of `increasing`
# (kinds of input, range, permutations, threads) belongs to the tests of the front door;
# two matrices, any start and any closure are tested in test_kernel.py.
# ======================================================================================


# ------------------------------------------------------------------ against the oracles


@settings(max_examples=40, deadline=None)
@given(
    P=st.integers(1, 7),
    Q=st.integers(1, 7),
    seed=st.integers(0, 1000),
    dtype=st.sampled_from(["f8", "f4", "f2", "i1", "u2", "i8", "?"]),
    layout=st.sampled_from(["C", "F"]),
    data=st.data(),
)
def test_direct_sum(P, Q, seed, dtype, layout, data):
    n_max = data.draw(st.integers(1, min(P, Q, 4)))
    phi = np.asarray(abs(3 * normal((P, Q), seed)), dtype=dtype, order=layout)
    exact = np.vectorize(Fraction)(phi.astype(float))
    expected = [float(mean_over_increasing(exact, n)) for n in range(1, n_max + 1)]
    np.testing.assert_allclose(increasing(phi, n_max), expected, rtol=1e-14)


@settings(max_examples=30, deadline=None)
@given(
    P=st.integers(2, 70), Q=st.integers(2, 70), seed=st.integers(0, 1000), data=st.data()
)
def test_all_rungs(P, Q, seed, data):
    n_max = data.draw(st.integers(1, min(P, Q, 12)))
    phi = normal((P, Q), seed)
    value = increasing(phi, n_max)
    assert_close(cumulative(phi, n_max), value, phi)
    assert_close(streaming(phi, n_max), value, phi)
    if P * Q < 150:
        assert_close(algorithm_1(phi, n_max), value, phi)
        mantissa, exponent = wide_sums(phi, n_max)
        assert_close(np.ldexp(mantissa, exponent) / binomials(P, Q, n_max), value, phi)


@settings(max_examples=25, deadline=None)
@given(
    P=st.integers(1, 40), Q=st.integers(1, 40), seed=st.integers(0, 1000), data=st.data()
)
def test_flip_transpose_and_scaling(P, Q, seed, data):
    n_max = data.draw(st.integers(1, min(P, Q, 9)))
    phi = normal((P, Q), seed)
    value = increasing(phi, n_max)
    assert_close(increasing(phi[::-1, ::-1].T, n_max), value, phi)
    scaled = increasing(-1.7 * phi, n_max) / 1.7 ** (2 * np.arange(1, n_max + 1))
    assert_close(scaled, value, phi)


# ------------------------------------------------------------------ kinds of input


def test_kinds_of_input(tmp_path):
    torch = pytest.importorskip("torch")
    phi = normal((9, 12)).astype("f4").astype("f8")
    expected = increasing(phi, 4)
    read_only = phi.copy()
    read_only.flags.writeable = False
    stored = np.memmap(tmp_path / "phi", dtype="f8", mode="w+", shape=phi.shape)
    stored[:] = phi
    wide = np.zeros((18, 36))
    wide[::2, ::3] = phi
    for given_phi in (
        phi.tolist(),
        phi.astype("f4"),
        np.asfortranarray(phi),
        read_only,
        stored,
        wide[::2, ::3],
        torch.tensor(phi, requires_grad=True),
    ):
        np.testing.assert_array_equal(increasing(given_phi, 4), expected)
    np.testing.assert_array_equal(stored, phi)  # never written to


def test_smallest_sizes():
    assert increasing([[3.0]], 1) == pytest.approx(9.0)
    np.testing.assert_allclose(increasing([[1.0, 2.0, 3.0]], 1), [14 / 3], rtol=1e-15)
    np.testing.assert_allclose(
        increasing([[1.0, 2.0], [3.0, 4.0]], 2), [7.5, 24], rtol=1e-15
    )
    phi = normal((5, 5))
    product = np.prod(np.diag(phi)) * np.prod(np.diag(phi, -1)) * phi[0, 4]
    np.testing.assert_allclose(increasing(phi, 5)[4], product, rtol=1e-13)  # a single cycle


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (dict(n_max=7), ValueError, "n_max = 7 .* 6 x 8 matrix"),
        (dict(n_max=2.0), TypeError, "n_max must be a whole number"),
        (dict(n_max=2, n_permutations=-1), ValueError, "n_permutations = -1 is too small"),
        (dict(n_max=2, n_permutations=1.5), TypeError, "n_permutations must be a whole"),
        (dict(n_max=2, n_jobs=0), ValueError, "n_jobs = 0 is too small"),
        (dict(n_max=2, random_state="x"), TypeError, "random_state must be"),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        increasing(np.ones((6, 8)), **arguments)


def test_bad_matrices():
    for bad in (np.ones(3), [[np.nan, 1]], [[np.inf, 1]], [[1j]], np.ones((0, 2))):
        with pytest.raises((ValueError, TypeError), match="phi"):
            increasing(bad, 1)
    with pytest.raises(ValueError, match="n_permutations = 0 is too small"):
        permuted_estimates(np.ones((3, 3)), 2, n_permutations=0)


# ------------------------------------------------------------------ range


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_entries_of_extreme_size(size):
    phi = normal((40, 50), 1)
    expected = increasing(phi, 4)
    np.testing.assert_allclose(
        increasing(size * phi, 4) / size ** np.arange(2.0, 9, 2), expected, rtol=1e-11
    )


def test_float32_at_the_edge_of_its_range():
    phi = (1e37 * abs(normal((8, 9), 2))).astype("f4")
    expected = increasing(phi.astype("f8") / 1e37, 4)
    np.testing.assert_allclose(
        increasing(phi, 4) / 1e37 ** np.arange(2.0, 9, 2), expected, rtol=1e-12
    )


@pytest.mark.parametrize("size", [1e-308, 1e-200, 1e-60, 1e60, 1e150, 1e307])
def test_beyond_doubles_is_inf_or_zero(size):
    for phi in (
        size * normal((7, 9), 3),
        size * np.eye(6),
        size * abs(normal((30, 20), 4)),
    ):
        for value in (
            increasing(phi, 4),
            increasing(phi, 4, n_permutations=5, random_state=1),
        ):
            assert not np.isnan(value).any()
    values = increasing(np.full((5, 6), size), 4)
    with np.errstate(over="ignore", under="ignore"):
        np.testing.assert_allclose(
            values, size ** np.arange(2.0, 9, 2), rtol=1e-12, atol=1e-320
        )


def test_order_60():
    np.testing.assert_allclose(
        increasing(np.full((200, 200), -1e2), 60), 1e4 ** np.arange(1.0, 61), rtol=1e-11
    )
    phi = normal((200, 200), 5)
    value = increasing(phi, 60)
    assert np.isfinite(value).all() and (value != 0).all()
    np.testing.assert_array_equal(increasing(phi / 4, 60), value / 16.0 ** np.arange(1, 61))


def rational_moments(phi, n_max):
    exact = np.vectorize(Fraction)(phi)
    return [mean_over_increasing(exact, n) for n in range(1, n_max + 1)]


def as_double(x):
    try:
        return float(x)
    except OverflowError:
        return np.inf


@pytest.mark.parametrize("spread", [10, 40, 70, 100, 150])
@pytest.mark.parametrize("side", ["rows", "columns", "both"])
def test_rows_and_columns_of_very_different_sizes(spread, side):
    rng = np.random.default_rng(spread)
    phi = abs(normal((6, 7), 6))
    if side != "columns":
        phi *= 10.0 ** rng.uniform(-spread, spread, (6, 1))
    if side != "rows":
        phi *= 10.0 ** rng.uniform(-spread, spread, (1, 7))
    expected = [as_double(x) for x in rational_moments(phi, 4)]
    np.testing.assert_allclose(increasing(phi, 4), expected, rtol=1e-13)


def test_two_large_rows_among_small_ones():
    phi = (
        abs(normal((6, 7), 7)) * np.array([1e-90, 1e90, 1e-90, 1e90, 1e-90, 1e-90])[:, None]
    )
    expected = [as_double(x) for x in rational_moments(phi, 5)]
    assert np.isinf(expected[1]) and np.isfinite(expected[3])
    np.testing.assert_allclose(increasing(phi, 5), expected, rtol=1e-13)


def test_large_diagonal():
    """Far below the bound on its size, and large: the fast way would underflow."""
    for size in (1e75, 1e150, 1e200):
        phi = np.ones((6, 6)) + np.diag(np.full(6, size))
        expected = [as_double(x) for x in rational_moments(phi, 3)]
        np.testing.assert_allclose(increasing(phi, 3), expected, rtol=1e-13)


def test_zeros():
    np.testing.assert_array_equal(increasing(np.zeros((4, 5)), 3), np.zeros(3))
    phi = normal((8, 9), 8)
    phi[[0, 3, 4, 5, 6, 7]] = 0
    value = increasing(phi, 5)
    assert (value[2:] == 0).all() and (value[:2] != 0).all()
    np.testing.assert_array_equal(
        increasing(1e-100 * np.eye(300), 5)[1:], np.zeros(4)
    )  # at once


def test_bounds_hold():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        phi = rng.standard_normal((9, 11)) * np.exp(4 * rng.standard_normal((9, 1)))
        sums = increasing(abs(phi), 6) * binomials(9, 11, 6)
        assert (np.log2(sums) <= size_bounds(*size_logs(phi), 6)[1:] + 1e-9).all()
    assert choose_exponent(phi, 6)[1]


def test_safe_way_is_taken_when_needed():
    phi = abs(normal((6, 7), 7)) * np.array([1e-290, 1e290, 1e-290, 1e290, 1, 1])[:, None]
    scale = choose_exponent(phi, 6)
    assert not scale[1]
    mantissa, exponent = increasing_sums(phi, 6, scale)
    assert np.isfinite(mantissa).all() and (mantissa != 0).all()


# ------------------------------------------------------------------ permutations, threads


def test_seed_decides_and_threads_do_not():
    phi = normal((70, 90), 9)
    first = increasing(phi, 5, n_permutations=3, random_state=7, n_jobs=1)
    for n_jobs in (2, 5, None):
        again = increasing(phi, 5, n_permutations=3, random_state=7, n_jobs=n_jobs)
        np.testing.assert_array_equal(again, first)
    assert (increasing(phi, 5, n_permutations=3, random_state=8) != first)[2:].all()
    generator = np.random.default_rng(7)
    np.testing.assert_array_equal(
        increasing(phi, 5, n_permutations=3, random_state=generator), first
    )
    assert (increasing(phi, 5, n_permutations=3, random_state=generator) != first)[2:].all()


def test_mean_of_permuted_estimates():
    phi = normal((12, 8), 10)
    single = permuted_estimates(phi, 4, n_permutations=6, random_state=1)
    assert single.shape == (6, 4)
    mean = increasing(phi, 4, n_permutations=6, random_state=1)
    np.testing.assert_allclose(mean, single.mean(axis=0), rtol=1e-12)


def test_progress_bar_advances(capsys):
    pytest.importorskip("tqdm")
    phi = normal((40, 50), 11)
    value = increasing(phi, 3, n_permutations=2, random_state=1, progress=True)
    assert "6/6" in capsys.readouterr().err
    np.testing.assert_array_equal(
        value, increasing(phi, 3, n_permutations=2, random_state=1)
    )
    assert capsys.readouterr().err == ""


def test_progress_without_tqdm(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match=r"spectral_moments\[progress\]"):
        increasing(np.ones((3, 3)), 2, progress=True)


# ------------------------------------------------------------ promises of `walk_lanes`


def recurrence(enter, leave, start, close, n_max):
    """The streaming recurrence for one lane, in plain Python."""
    P, Q = enter.shape
    R = np.zeros((n_max, Q))
    for a in range(P):
        c = np.zeros(n_max + 1)
        c[0] = start[a]
        for b in range(Q):
            r = R[:, b].copy()
            R[:, b] += c[:-1] * leave[a, b]
            c[1:] += r * enter[a, b]
    return R @ close


@pytest.mark.parametrize("n_max", [2, 3, 8])
def test_two_matrices_any_start_any_closure(n_max):
    P, Q = 21, 33
    enter, leave = normal((P, Q), 1), normal((P, Q), 2)
    start, close = normal((P, LANES), 3), normal((Q, LANES), 4)
    expected = [
        recurrence(enter, leave, start[:, j], close[:, j], n_max) for j in range(LANES)
    ]
    x, y = pack_tiles(enter), pack_tiles(leave)
    start = np.pad(start, ((0, len(x) * ROWS - P), (0, 0)))
    close = np.pad(close, ((0, x.shape[1] * COLS - Q), (0, 0)))
    at_end = np.full(LANES, len(x))
    sums = walk_lanes(x, y, np.arange(len(x)), start, at_end, close, n_max)
    np.testing.assert_allclose(sums, np.transpose(expected), rtol=1e-10, atol=1e-9)


def test_two_trials():
    """Enter rows by one trial and leave them by the other."""
    one, two = normal((18, 20), 1), normal((18, 20), 2)
    sums = lane_sums(two, one, 4)
    expected = [recurrence(two, one, np.eye(18)[h], two[h], 4) for h in range(18)]
    np.testing.assert_allclose(sums, np.transpose(expected), rtol=1e-10, atol=1e-9)


def test_closure_factorisation():
    """Phi = A B' gives the sums of increasing cycles from any factorisation."""
    phi, n_max = normal((20, 30), 3), 4
    u, s, v = np.linalg.svd(phi, full_matrices=False)
    x, total = pack_tiles(phi), 0
    for j in range(0, len(s), LANES):
        start, close = (
            np.zeros((len(x) * ROWS, LANES)),
            np.zeros((x.shape[1] * COLS, LANES)),
        )
        part = slice(j, min(j + LANES, len(s)))
        width = part.stop - part.start
        start[:20, :width], close[:30, :width] = (u * s)[:, part], v.T[:, part]
        at_end = np.full(LANES, len(x))
        total += walk_lanes(x, x, np.arange(len(x)), start, at_end, close, n_max).sum(
            axis=1
        )
    np.testing.assert_allclose(
        total / binomials(20, 30, n_max), increasing(phi, n_max), rtol=1e-9
    )


def cyclic_sums(phi, n_max):
    """Sums over the cycles from each row through the following ones in cyclic order."""
    P, Q = phi.shape
    alone = np.zeros((ROWS * P, Q))  # each row in a tile row of its own, for the last steps
    alone[::ROWS] = phi
    whole = pack_tiles(phi)
    x, sums = np.concatenate([whole, pack_tiles(alone)]), []
    for h in range(0, P, LANES):
        count = min(LANES, P - h)
        around = np.roll(np.arange(len(whole)), -(h // ROWS))
        first, rest = around[: -(-count // ROWS)], around[-(-count // ROWS) :]
        steps = np.concatenate([first, rest, len(whole) + h + np.arange(count)])
        stop = np.full(LANES, len(steps))
        stop[:count] = len(whole) + np.arange(count)  # a lane closes as it comes home
        close = np.zeros((x.shape[1] * COLS, LANES))
        close[:Q, :count] = phi[h : h + count].T
        sums.append(walk_lanes(x, x, steps, np.eye(LANES), stop, close, n_max)[:, :count])
    return np.concatenate(sums, axis=1)


@pytest.mark.parametrize("P", [5, 16, 37])
def test_cyclic_start(P):
    phi, n_max = normal((P, 23), 4), 4
    expected = [
        lane_sums(np.roll(phi, -h, axis=0), np.roll(phi, -h, axis=0), n_max)[:, 0]
        for h in range(P)
    ]
    np.testing.assert_allclose(
        cyclic_sums(phi, n_max), np.transpose(expected), rtol=1e-9, atol=1e-8
    )
