"""Orders one and two from sums that add: against direct sums and literal deletions."""

import functools
import itertools

import numpy as np
import pytest
from conftest import cycle_mean, normal

import spectral_moments as sm
from spectral_moments.engine import data as engine_data
from spectral_moments.engine import methods
from spectral_moments.engine.arrays import sum_blocks
from spectral_moments.engine.average import Options
from spectral_moments.engine.data import open_data
from spectral_moments.engine.pair_sums import (
    add_sums,
    make_reader,
    pair_means,
    pair_moments,
)
from spectral_moments.stream import scale_sums

GROUPS = np.array([2, 0, 1, 1, 3, 2, 4, 2, 5, 0])  # scattered, of sizes 1 to 3
WORDS = {1: (("a",), ("a", "a")), 2: (("a",), ("a", "a"), ("a", "b"), ("b", "b"), ("b",))}


def recorded(P=10, widths=(4, 3), T=1, seed=0):
    "Repeats of systems with a mean: dict by name."
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(P, 3))
    return {
        s: z @ rng.normal(size=(3, Q)) + 0.3 * rng.normal(size=(T, P, Q)) + 2
        for s, Q in zip("ab", widths)
    }


def opened(trials, **options):
    return open_data(trials, trials=True, **options)


@pytest.mark.parametrize("center", [False, True], ids=["", "centred"])
@pytest.mark.parametrize("T", [1, 2, 3], ids="{} repeats".format)
@pytest.mark.parametrize("R", [None, 9], ids=["", "population"])
def test_shared_features_are_the_definition(center, T, R):
    "What `test_doors` does not have: columns of both systems are the same features."
    trials, words = recorded(6, (4, 4), T), WORDS[2]
    data = opened(trials, center=center, population=R, shared=True)
    found = pair_means(data, words, Options(deviations=False))
    assert found.methods == ["all rows"] * len(words) and not found.replicates
    splits = [((0,), (T - 1,))]
    if T == 3:
        splits = [((t,), tuple({0, 1, 2} - {t})) for t in range(3)]
    options = dict(center=center, population=dict.fromkeys("ab", R), shared=True)
    exponents = [sum(2 * data.matrices[s].scale_exponent for s in word) for word in words]
    for word, value, power in zip(words, found.values, exponents):
        halves = [
            {s: tuple(x[list(half)].mean(0) for half in split) for s, x in trials.items()}
            for split in splits
        ]
        expected = np.mean([cycle_mean(each, word, **options) for each in halves])
        assert np.ldexp(value, power) == pytest.approx(expected, rel=1e-9)


def summed(data, words, origin=None):
    "Moments from sums over pieces of rows about some origin."
    reader = make_reader(data, words)
    if origin is not None:
        far = np.random.default_rng(1).normal(size=len(reader.origin))
        reader = reader._replace(origin=reader.origin + origin * far)
    arrays = [x.trials for x in data.matrices.values()]
    sums = sum_blocks(reader, arrays, engine_data.row_pieces(data), add_sums)
    return pair_moments(data, words, reader, sums)


def assert_same(one, two, rtol=1e-8):
    np.testing.assert_allclose(one.values, two.values, rtol=rtol)
    assert [*one.replicates] == [*two.replicates]
    for kind, known in one.replicates.items():
        size = abs(known.deviations).max()
        other = two.replicates[kind].deviations
        np.testing.assert_allclose(other, known.deviations, rtol=rtol, atol=rtol * size)


@pytest.mark.parametrize("groups", [None, np.repeat(np.arange(20), [1, 4] * 10)])
@pytest.mark.parametrize("T", [1, 2])
def test_the_origin_and_the_pieces_do_not_matter(groups, T, monkeypatch):
    words = WORDS[2]
    data = opened(recorded(50, T=T), groups=groups)
    one = summed(data, words)
    assert_same(one, summed(data, words, origin=10.0), rtol=1e-7)
    monkeypatch.setattr(engine_data, "PIECE", 16)
    assert len(engine_data.row_pieces(data)) >= 10
    assert_same(one, summed(data, words))


@pytest.mark.parametrize("groups", [None, GROUPS], ids=["", "groups"])
def test_parts_are_added_in_any_order(groups):
    trials, words = recorded(), WORDS[2]
    data, units = opened(trials, groups=groups), np.arange(10) if groups is None else groups
    reader, parts = make_reader(data, words), []
    for some in ([4, 1], [0, 2, 5], [3, *range(6, 10)]):
        rows = np.flatnonzero(np.isin(units, some))
        labels = None if groups is None else np.unique(groups[rows], return_inverse=True)[1]
        parts.append(reader(labels, *[x.trials[:, rows] for x in data.matrices.values()]))
    expected = pair_means(data, words, Options())
    for order in itertools.permutations(parts):
        total = functools.reduce(add_sums, order)
        assert_same(pair_moments(data, words, reader, total), expected)
    last = add_sums(parts[0], add_sums(parts[1], parts[2]))
    assert_same(pair_moments(data, words, reader, last), expected)


def test_sums_are_scaled_by_powers_of_two():
    trials, words = recorded(), WORDS[2]
    reader = make_reader(opened(trials), words)._replace(origin=np.zeros(7))
    blocks = [x for x in trials.values()]
    one = [scale_sums(sums, 3) for sums in reader(None, *blocks)]
    two = reader(None, *[8.0 * x for x in blocks])
    for x, y in zip(one[0][:4], two[0][:4]):
        np.testing.assert_array_equal(x, y)
    for key, known in one[0].products.items():
        for x, y in zip(known, two[0].products[key]):
            np.testing.assert_array_equal(x, y)


def test_missing_and_infinite_entries_are_seen():
    x = normal((12, 4))
    data = opened({"a": x[None]})
    data.matrices["a"].trials[0, 3, 2] = np.nan  # where they were not counted
    assert pair_means(data, WORDS[1], Options()) is None
    data.matrices["a"].trials[0, 3, 2] = np.inf
    with pytest.raises(ValueError, match="infinite entries"), np.errstate(all="ignore"):
        pair_means(data, WORDS[1], Options())
    data = opened({"V1": normal((1, 12, 4)), "IT": normal((1, 12, 4), 1)})
    data.matrices["IT"].trials = np.full((1, 12, 4), np.inf)
    with pytest.raises(ValueError, match="V1 or IT has"), np.errstate(all="ignore"):
        pair_means(data, (("V1",),), Options())


def test_a_row_far_larger_than_the_others(monkeypatch):
    x = normal((600, 6)) @ normal((6, 8), 1)
    for size, gone in ((1e3, False), (1e12, True)):
        x[540, 3] = size
        expected = sm.estimate(x, stderr=False).values
        with monkeypatch.context() as patch:
            patch.setattr(methods, "TALLEST", 64)
            found = sm.estimate(x, stderr=False)
        assert found.methods == ["all rows", "all rows"]
        assert any("m(2) lost all digits" in note for note in found.notes) == gone
        shown = expected[:1] if gone else expected
        np.testing.assert_allclose(found.values[: len(shown)], shown, rtol=1e-9)
        assert np.isnan(found.values[1]) == gone


@pytest.mark.parametrize("columns", [1, 2])
def test_as_many_columns_as_a_cycle_has(columns, monkeypatch):
    monkeypatch.setattr(methods, "TALLEST", 4)
    monkeypatch.setattr(methods, "TALLEST_RATIO", 0)
    found = sm.estimate(normal((30, columns)), columns)  # numpy does not warn
    assert np.isinf(found.stderr[-1]) and np.isfinite(found.values[-1])


def test_dask_reads_groups_as_they_come(nothing_loaded):
    from_array = pytest.importorskip("dask.array").from_array
    x, names = normal((40, 5)), np.repeat([f"movie {k}" for k in (3, 0, 9, 1)], 10)
    found = sm.estimate(from_array(x, chunks=(7, 5)), 1, groups=names)
    assert found.methods == ["all rows"]
    np.testing.assert_allclose(found.values, sm.estimate(x, 1, groups=names).values)
