"""Cycles through blocks: direct sums, groups, influences, range, memory."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from conftest import peak_memory

from spectral_moments.engine import blocks as module
from spectral_moments.engine.blocks import balance, block_means, block_shares, even_edges
from spectral_moments.engine.graphs import elementary_symmetric
from spectral_moments.engine.sources import Pair


def normal(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize("shape", [(9, 13), (13, 9)])
@pytest.mark.parametrize("two", [False, True])
@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
def test_without_each_row_and_column(shape, two, counted, grouped):
    "Deleting a row or a column, or a group of them, by computing again without it."
    enter = normal(shape, 1) + 1
    leave = normal(shape, 2) + 1 if two else enter
    counts = None
    if counted:
        seen = [(np.random.default_rng(k).random(shape) < 0.9) * 1.0 for k in (3, 4)]
        counts = seen[0], seen[1] if two else seen[0]
        enter, leave = enter * counts[0], leave * counts[1]
        leave = leave if two else enter
    edges = [even_edges(size, 5 if grouped else size) for size in shape]
    names = dict(row_edges=edges[0], column_edges=edges[1])
    found = block_means(Pair(enter, leave, counts), 3, replicates=True, **names)
    for side, replicates in enumerate(found.without.values()):
        assert replicates.shape == (3, len(edges[side]) - 1)
        for block in range(replicates.shape[1]):
            low, high = edges[side][block : block + 2]
            left = [np.delete(x, np.s_[low:high], side) for x in (enter, leave)]
            left[1] = left[1] if two else left[0]
            if counted:
                both = [np.delete(x, np.s_[low:high], side) for x in counts]
                left.append((both[0], both[1] if two else both[0]))
            rest = [*edges]
            rest[side] = np.delete(edges[side], block + 1)
            rest[side] = np.where(
                np.arange(len(rest[side])) > block, rest[side] - (high - low), rest[side]
            )
            again = block_means(Pair(*left), 3, row_edges=rest[0], column_edges=rest[1])
            np.testing.assert_allclose(replicates[:, block], again.values, rtol=1e-8)


@pytest.mark.parametrize("span", [1, 3])
def test_lanes_may_walk_apart(monkeypatch, span):
    phi = normal((30, 40), 3)
    whole = block_means(Pair(phi, phi), 4, replicates=True)
    wide = 1 * 8 * 4 * 40 * 4
    monkeypatch.setattr(module, "STATE", span * wide)
    apart = block_means(Pair(phi, phi), 4, replicates=True)
    np.testing.assert_allclose(whole.values, apart.values, rtol=1e-8)
    for kind, one in whole.without.items():
        atol = 1e-12 * abs(one).max()
        np.testing.assert_allclose(one, apart.without[kind], rtol=1e-8, atol=atol)


def test_memory_is_that_of_a_few_blocks(monkeypatch):
    phi = normal((600, 500), 4)
    monkeypatch.setattr(module, "STATE", 2**22)
    assert peak_memory(block_means, Pair(phi, phi), 4, replicates=True) < 12 * phi.nbytes


def test_numbers_beyond_doubles(monkeypatch):
    "More cycles than doubles can count: matrices are shrunk by a power of two."
    numbers = [math.comb(4000, n) * math.comb(5000, n) for n in range(1, 81)]
    scale = balance(numbers)
    assert scale.shift < 0 and np.isfinite(scale.numbers).all() and scale.numbers.min() > 0
    for n in (1, 40, 80):
        exact = math.log2(numbers[n - 1]) + 2 * n * scale.shift
        np.testing.assert_allclose(np.log2(scale.numbers[n - 1]), exact, rtol=1e-12)
    assert balance([3, 5]).shift == 0
    phi = normal((20, 30), 5)
    plain = block_means(Pair(phi, phi), 4, replicates=True)

    def shrunk(numbers):
        units = [x * 2.0 ** (-6 * n) for n, x in enumerate(numbers, 1)]
        return module.Balance(-3, np.array(units))

    monkeypatch.setattr(module, "balance", shrunk)
    found = block_means(Pair(phi, phi), 4, replicates=True)
    np.testing.assert_array_equal(plain.values, found.values)
    for kind, one in plain.without.items():
        np.testing.assert_array_equal(one, found.without[kind])


def test_shares_of_choices():
    sizes = [2, 1, 3]
    for n in (1, 2, 3):
        members = [(b, i) for b, size in enumerate(sizes) for i in range(size)]
        chosen = [
            c for c in itertools.combinations(members, n) if len({b for b, _ in c}) == n
        ]
        assert elementary_symmetric(Counter(sizes), 3)[n] == len(chosen)
        shares = [sum((b, 0) in c for c in chosen) / len(chosen) for b in range(3)]
        np.testing.assert_allclose(block_shares(sizes, 3)[n - 1], shares, rtol=1e-14)
