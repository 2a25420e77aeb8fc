"""Increasing cycles: the compiled recurrence against the same in numpy, and deletions."""

import itertools
import math

import numpy as np
import pytest
from conftest import normal
from hypothesis import given, settings
from hypothesis import strategies as st

import spectral_moments as sm
from spectral_moments.engine.data import open_data
from spectral_moments.engine.increasing import (
    count_cycles,
    increasing_means,
    increasing_sums,
)
from spectral_moments.engine.views import draw_view

ORDERS = (1, 2, 5, 11)  # each length is compiled once


def plain_state(right, left, starts, n_max):
    """The streaming recurrence in numpy, shape (n_max, Q, lanes)."""
    R = np.zeros((n_max, right.shape[1], starts.shape[1]))
    for a in range(len(right)):
        c = np.zeros((n_max + 1, starts.shape[1]))
        c[0] = starts[a]
        for b in range(right.shape[1]):
            r = R[:, b].copy()
            R[:, b] += c[:-1] * left[a, b]
            c[1:] += r * right[a, b]
    return R


def plain_sums(right, left, n_max):
    """Sums over increasing cycles by the recurrence in numpy."""
    R = plain_state(right, left, np.eye(len(right)), n_max)
    return np.einsum("kbh,hb->k", R, right)


def matrices(shape, seed, single):
    """Positive entries: no cancellation, so that a relative tolerance is meant."""
    right, left = np.random.default_rng(seed).random((2, *shape))
    return right, right if single else left


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    P=st.integers(1, 20),
    Q=st.integers(1, 20),
    seed=st.integers(0, 1000),
    single=st.booleans(),
    n_jobs=st.integers(1, 3),
    data=st.data(),
)
def test_sums_and_influences(P, Q, seed, single, n_jobs, data):
    n_max = data.draw(st.sampled_from([n for n in ORDERS if n <= min(P, Q)]))
    right, left = matrices((P, Q), seed, single)
    expected = plain_sums(right, left, n_max)
    sums = increasing_sums(right, left, n_max, n_jobs=n_jobs)
    np.testing.assert_allclose(sums.total, expected, rtol=1e-12)
    assert sums.rows is None and sums.columns is None
    total, rows, columns = increasing_sums(
        right, left, n_max, influences=True, n_jobs=n_jobs
    )
    np.testing.assert_allclose(total, expected, rtol=1e-12)
    assert rows.shape == (n_max, P) and columns.shape == (n_max, Q)
    atol = 1e-9 * expected
    for axis, through in enumerate((rows, columns)):
        np.testing.assert_allclose(
            through.sum(axis=1), np.arange(1, n_max + 1) * expected, rtol=1e-9
        )
        i = seed % through.shape[1]
        without = [np.delete(x, i, axis) for x in (right, left)]
        assert (abs(plain_sums(*without, n_max) + through[:, i] - expected) <= atol).all()


def test_more_columns_than_marks():
    """The way back with blocks wider than the cache would have them."""
    phi = np.random.default_rng(2).random((6, 900))
    total, rows, columns = increasing_sums(phi, phi, 5, influences=True)
    np.testing.assert_allclose(total, plain_sums(phi, phi, 5), rtol=1e-12)
    np.testing.assert_allclose(columns.sum(axis=1), np.arange(1, 6) * total, rtol=1e-11)
    expected = total - increasing_sums(*[np.delete(phi, 3, 0)] * 2, 5).total
    np.testing.assert_allclose(rows[:, 3], expected, rtol=1e-11)


# --- means over cycles --------------------------------------------------------------------


def direct_mean(left, right, n, seen=None):
    "The mean over increasing rows and columns, term by term, of what is measured."
    seen = np.ones(left.shape) if seen is None else seen
    left, right = np.where(seen, left, 0.0), np.where(seen, right, 0.0)
    total = count = 0.0
    for i in itertools.combinations(range(len(left)), n):
        for a in itertools.combinations(range(left.shape[1]), n):
            edges = [(i[k], a[k]) for k in range(n)], [(i[k], a[k - 1]) for k in range(n)]
            total += math.prod(left[e] for e in edges[0]) * math.prod(
                right[e] for e in edges[1]
            )
            count += math.prod(seen[e] for e in edges[0] + edges[1])
    return total / count


def means(x, n_max, **options):
    data = open_data({"phi": x}, center=False, **options)
    data.matrices["phi"].scale_exponent = 0
    split = {2: ((0,), (1,))} if options else None
    words = [("phi",) * n for n in range(1, n_max + 1)]
    return increasing_means(draw_view(data, split=split), words)


@pytest.mark.parametrize("case", ["", "gaps", "repeats"])
def test_means_and_deviations_by_the_definition(case):
    x = normal((2, 6, 7), 3) + 0.5
    if case == "gaps":
        x[:, [0, 2], [1, 4]] = np.nan
    given = x if case == "repeats" else x[0]
    right, left = x if case == "repeats" else (x[0], x[0])
    seen, options = ~np.isnan(x[0]), dict(trials=True) if case == "repeats" else {}
    found = means(given, 3, **options)
    exact = [direct_mean(left, right, n, seen) for n in (1, 2, 3)]
    np.testing.assert_allclose(found.values, exact, rtol=1e-12)
    for kind, axis in (("inputs", 0), ("features", 1)):
        assert found.deviations[kind].shape == (3, x.shape[1 + axis])
        for unit in (0, 3, 5):
            less = [np.delete(y, unit, axis) for y in (left, right, seen)]
            less = [direct_mean(*less[:2], n, less[2]) for n in (1, 2, 3)]
            change = np.subtract(less, exact)
            np.testing.assert_allclose(found.deviations[kind][:, unit], change, atol=1e-12)


@pytest.mark.parametrize(("shape", "n_max"), [((6, 8), 5), ((1200, 1100), 90)])
def test_numbers_of_cycles(shape, n_max):
    "Also beyond the range of doubles."
    exponent, numbers = count_cycles(shape, n_max)
    assert (exponent != 0) == (n_max == 90) and np.isfinite(numbers).all()
    for n in (1, 2, n_max):
        exact = math.comb(shape[0], n) * math.comb(shape[1], n)
        found = math.log2(numbers[n - 1]) - 2 * n * exponent
        assert found == pytest.approx(math.log2(exact), rel=1e-13)
    ones = means(np.ones((40, 50)), 7)
    np.testing.assert_allclose(ones.values, 1.0, rtol=1e-12)
    np.testing.assert_allclose(ones.deviations["inputs"], 0.0, atol=1e-12)


def test_the_mean_over_all_orders_is_all_cycles():
    x = normal((4, 4), 2) + 1
    each = [
        [direct_mean(y, y, n) for n in (1, 2, 3)]
        for rows in itertools.permutations(range(4))
        for columns in itertools.permutations(range(4))
        for y in [x[list(rows)][:, list(columns)]]
    ]
    np.testing.assert_allclose(np.mean(each, axis=0), sm.all_cycles(x, 3), rtol=1e-10)
