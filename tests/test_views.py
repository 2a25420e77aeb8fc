"""Halves of repeats, random pairs, members and permutations, as two matrices."""

import itertools

import numpy as np
import pytest
import torch
from conftest import normal

from spectral_moments.engine.data import open_data
from spectral_moments.engine.views import draw_view, trial_splits

GROUPS = np.array([0, 0, 1, 2, 2, 2, 3, 4, 5])
COLUMNS = np.array([0, 1, 1, 2, 3])
X = np.ldexp(np.arange(45.0).reshape(9, 5) + 1, -5)  # every entry is known by its value


def where(x, matrix):
    "Row and column of entries in a matrix all of whose entries differ."
    places = np.array([np.argwhere(matrix == y)[0] for y in np.ravel(x)])
    return places.reshape(*x.shape, 2)


def opened(x=X, **options):
    data = open_data({"phi": x}, **options)
    data.matrices["phi"].scale_exponent = 0
    return data


@pytest.mark.parametrize("T", range(2, 10))
def test_halves_of_repeats(T):
    splits = trial_splits(T)
    for right, left in splits:
        assert sorted(right + left) == list(range(T)) and abs(len(right) - len(left)) <= 1
    assert len({frozenset(split) for split in splits}) == len(splits)
    if T <= 4:  # all of them
        halves = [set(h) for h in itertools.combinations(range(T), T // 2)]
        assert len(splits) == (len(halves) if T % 2 else len(halves) // 2)
        assert all({*split[0]} in halves or {*split[1]} in halves for split in splits)
    if T % 2 == 0 or T <= 4:
        counts = np.bincount([t for split in splits for t in split[0]], minlength=T)
        if T % 2:  # every repeat is as often alone
            assert counts.min() == counts.max()
    both = trial_splits(T, both=True)
    assert {(b, a) for a, b in splits} <= {*both} and len(both) == 2 * len(splits)


def test_one_repeat_is_one_matrix():
    factors = draw_view(opened()).factors["phi"]
    assert factors.left is factors.right
    assert factors.left_observed is factors.right_observed is None
    np.testing.assert_array_equal(factors.right, X)
    assert trial_splits(1) == [None]
    gaps = X.copy()
    gaps[3, 2] = np.nan
    factors = draw_view(opened(gaps)).factors["phi"]
    assert factors.left is factors.right  # squares are squares
    np.testing.assert_array_equal(factors.right, np.nan_to_num(gaps))
    np.testing.assert_array_equal(factors.right_observed, ~np.isnan(gaps))


def test_halves_with_missing_repeats():
    "The mean over the repeats of a half in which an entry was measured."
    x = normal((3, 4, 3))
    x[0, 0, 0] = x[1, 1, 1] = x[2, 1, 1] = x[1, 2, 2] = np.nan
    data = opened(x, trials=True)
    factors = draw_view(data, split={3: ((0,), (1, 2))}).factors["phi"]
    np.testing.assert_array_equal(factors.right, np.nan_to_num(x[0]))
    np.testing.assert_array_equal(factors.right_observed, ~np.isnan(x[0]))
    expected = (x[1] + x[2]) / 2
    expected[1, 1], expected[2, 2] = 0.0, x[2, 2, 2]
    np.testing.assert_allclose(factors.left, expected, rtol=1e-15)
    assert factors.left_observed[1, 1] == 0 and factors.left_observed.sum() == 11


def test_random_members():
    "One of each group, all of them as likely, columns too."
    data, rng = opened(groups=GROUPS, column_groups=COLUMNS), np.random.default_rng(0)
    rows, columns = np.zeros(9), np.zeros(5)
    for _ in range(600):
        view = draw_view(data, rng, members=True)
        x = view.factors["phi"].right
        axis = view.axes["inputs"]
        assert x.shape == (6, 4) and axis.size == axis.n_units == 6 and axis.groups is None
        place = where(x, X)
        np.testing.assert_array_equal(GROUPS[place[:, 0, 0]], view.units["inputs"][0])
        np.testing.assert_array_equal(COLUMNS[place[0, :, 1]], view.units["features"][0])
        rows[place[:, 0, 0]] += 1
        columns[place[0, :, 1]] += 1
    np.testing.assert_allclose(rows / 600, 1 / np.bincount(GROUPS)[GROUPS], atol=0.08)
    np.testing.assert_allclose(columns / 600, 1 / np.bincount(COLUMNS)[COLUMNS], atol=0.08)


@pytest.mark.parametrize("grouped", [False, True])
def test_random_pairs(grouped):
    "Differences of rows of different units; each unit is in at most one pair."
    groups = GROUPS if grouped else None
    data, rng = opened(groups=groups), np.random.default_rng(1)
    for _ in range(20):
        view = draw_view(data, rng, pairs=True, members=grouped)
        one, two = view.units["inputs"]
        assert len({*one, *two}) == 2 * len(one) == (6 if grouped else 8)
        assert not view.center
        if not grouped:
            expected = (X[one] - X[two]) * np.sqrt(0.5)
            np.testing.assert_allclose(view.factors["phi"].right, expected, rtol=1e-14)
    gaps = X.copy()
    gaps[3, 2] = np.nan
    factors = draw_view(opened(gaps), rng, pairs=True).factors["phi"]
    assert (factors.right[factors.right_observed == 0] == 0).all()


def test_permutations_and_systems():
    "All systems have the same rows; those that share columns have the same columns."
    rng = np.random.default_rng(2)
    for shared in (False, True):
        data = open_data({"a": X, "b": -X}, shared=shared)
        view = draw_view(data, rng, shuffled=True)
        a, b = (
            where(abs(view.factors[s].right), np.ldexp(X, -data.matrices[s].scale_exponent))
            for s in "ab"
        )
        np.testing.assert_array_equal(a[:, 0, 0], b[:, 0, 0])
        np.testing.assert_array_equal(a[:, 0, 0], view.units["inputs"][0])
        assert np.array_equal(a[0, :, 1], b[0, :, 1]) == shared
        assert sorted(a[:, 0, 0]) == list(range(9)) and sorted(a[0, :, 1]) == list(range(5))


def test_some_rows_of_tensors_and_noise():
    counts = np.arange(45.0).reshape(9, 5)
    variance = normal((9, 5)) ** 2
    data = opened(torch.tensor(counts), noise=variance, center=False)
    view = draw_view(data, rows=np.array([1, 4, 6]))
    assert isinstance(view.factors["phi"].right, torch.Tensor)
    np.testing.assert_array_equal(view.factors["phi"].right.numpy(), counts[[1, 4, 6]])
    np.testing.assert_array_equal(view.factors["phi"].noise.parameter, variance[[1, 4, 6]])
    paired = draw_view(data, np.random.default_rng(0), pairs=True)
    assert paired.factors["phi"].noise is None  # a difference of counts is no count
