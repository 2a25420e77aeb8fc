"""Orders one and two from sums that add: against direct sums and literal deletions."""

import functools
import itertools

import numpy as np
import pytest
from conftest import cycle_mean, normal

from spectral_moments.engine import data as engine_data
from spectral_moments.engine.arrays import sum_blocks
from spectral_moments.engine.data import open_data
from spectral_moments.engine.pair_sums import (
    add_sums,
    make_reader,
    pair_means,
    pair_moments,
)
from spectral_moments.errors import Replicates, standard_error
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
@pytest.mark.parametrize("groups", [None, GROUPS], ids=["", "groups"])
@pytest.mark.parametrize("T", [1, 2, 3], ids="{} repeats".format)
@pytest.mark.parametrize("R", [None, 9], ids=["", "population"])
@pytest.mark.parametrize("systems", ["one", "two", "shared"])
def test_values_are_the_definition(center, groups, T, R, systems):
    trials = recorded(
        10 if groups is not None else 6, (4, 4) if systems == "shared" else (4, 3), T
    )
    trials = {"a": trials["a"]} if systems == "one" else trials
    shared, words = systems == "shared", WORDS[len(trials)]
    finite = dict.fromkeys("ab" if shared else "a", R)
    given = R if len(trials) == 1 or shared else {"a": R}
    data = opened(trials, center=center, groups=groups, population=given, shared=shared)
    found = pair_means(data, words, deviations=False)
    assert found.methods == ["all rows"] * len(words) and not found.replicates
    splits = (
        [((0,), (T - 1,))] if T < 3 else [((t,), tuple({0, 1, 2} - {t})) for t in range(3)]
    )
    exponents = [sum(2 * data.matrices[s].scale_exponent for s in word) for word in words]
    for word, value, power in zip(words, found.values, exponents):
        each = []
        for right, left in splits:
            halves = {
                s: (x[list(right)].mean(0), x[list(left)].mean(0))
                for s, x in trials.items()
            }
            options = dict(rows=groups, center=center, population=finite, shared=shared)
            each.append(cycle_mean(halves, word, **options))
        assert np.ldexp(value, power) == pytest.approx(np.mean(each), rel=1e-9)


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
    expected = pair_means(data, words)
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
        np.testing.assert_array_equal(known, two[0].products[key])


@pytest.mark.parametrize("center", [False, True], ids=["", "centred"])
@pytest.mark.parametrize("grouped", [False, True], ids=["", "groups"])
@pytest.mark.parametrize("T", [1, 2])
@pytest.mark.parametrize("R", [None, 40], ids=["", "population"])
def test_deviations_are_those_of_deletions(center, grouped, T, R):
    "Exact if the mean is kept, else to first order."
    trials, words = recorded(80, (24, 20), T), WORDS[2]
    groups = np.arange(80) // 2 if grouped else np.arange(80)
    population = None if R is None else {"a": R}

    def values(rows=groups >= 0, columns=slice(None)):
        some = {"a": trials["a"][:, rows][:, :, columns], "b": trials["b"][:, rows]}
        known = groups[rows] if grouped else None
        data = opened(some, center=center, groups=known, population=population)
        for s in "ab":  # in one unit
            data.matrices[s].scale_exponent = 0
        return pair_means(data, words)

    whole = values()
    literal = {"inputs": [values(groups != g).values for g in np.unique(groups)]}
    literal["features of a"] = [
        values(columns=np.arange(24) != a).values for a in range(24)
    ]
    for kind, each in literal.items():
        factor = np.sqrt(1 - 24 / R) if R and kind != "inputs" else 1.0
        changes, known = factor * (np.array(each) - whole.values).T, whole.replicates[kind]
        if center or (R and kind != "inputs"):
            error = standard_error(Replicates(changes))
            np.testing.assert_allclose(standard_error(known), error, rtol=0.1, atol=1e-9)
        else:
            np.testing.assert_allclose(known.deviations, changes, rtol=1e-7, atol=1e-9)


def test_missing_and_infinite_entries_are_seen():
    x = normal((12, 4))
    data = opened({"a": x[None]})
    data.matrices["a"].trials[0, 3, 2] = np.nan  # where they were not counted
    assert pair_means(data, WORDS[1]) is None
    data.matrices["a"].trials[0, 3, 2] = np.inf
    with pytest.raises(ValueError, match="infinite entries"), np.errstate(all="ignore"):
        pair_means(data, WORDS[1])
