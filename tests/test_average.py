"""Means over blocks of rows, random pairs, random members, permutations; their errors."""

import itertools

import numpy as np
import pytest
from conftest import cycle_mean, normal

import spectral_moments as sm
from spectral_moments.engine.all_cycles import word_means
from spectral_moments.engine.average import (
    Method,
    Moments,
    Options,
    average,
    join_moments,
    random_blocks,
    spread_of_draws,
)
from spectral_moments.engine.data import AxisInfo, open_data
from spectral_moments.engine.views import draw_view
from spectral_moments.errors import Replicates, standard_error

POWERS = tuple(("phi",) * n for n in (1, 2, 3))


@pytest.mark.parametrize("groups", [None, np.random.default_rng(0).integers(0, 90, 1000)])
def test_blocks_are_disjoint_random_and_hold_whole_groups(groups):
    axis = AxisInfo(1000, groups)
    blocks = random_blocks(axis, 130, np.random.default_rng(1))
    assert len(blocks) == 7 and all((np.diff(rows) > 0).all() for rows in blocks)
    np.testing.assert_array_equal(np.sort(np.concatenate(blocks)), np.arange(1000))
    if groups is not None:
        assert sum(len({*groups[rows]}) for rows in blocks) == len({*groups})
    middles = [rows.mean() for rows in blocks]  # rows of the whole, not consecutive ones
    assert max(middles) - min(middles) < 300
    (one,) = random_blocks(AxisInfo(100), 130, np.random.default_rng(1))
    np.testing.assert_array_equal(one, np.arange(100))


@pytest.mark.parametrize("grouped", [False, True], ids=["", "groups"])
def test_the_mean_over_blocks(grouped):
    "Values are means over blocks, by their rows; each unit is in one block."
    x = normal((20, 4)) + 0.5
    groups = np.repeat(np.arange(12), [1, 2] * 4 + [2] * 4) if grouped else None
    data = open_data({"phi": x}, groups=groups, center=False)
    data.matrices["phi"].scale_exponent = 0
    method = Method(word_means, "blocks of rows", block_size=10)
    found = average(data, method, POWERS, Options(rng=np.random.default_rng(5)))
    blocks = random_blocks(data.inputs, 10, np.random.default_rng(5))
    units = np.arange(20) if groups is None else groups
    each, deviations = [], np.zeros((3, units.max() + 1))
    for rows in blocks:
        mean = lambda keep: [
            cycle_mean({"phi": x[keep]}, w, rows=units[keep]) for w in POWERS
        ]
        each.append(mean(rows))
        for unit in np.unique(units[rows]):
            change = np.subtract(mean(rows[units[rows] != unit]), each[-1])
            deviations[:, unit] = len(rows) / 20 * change
    shares = [len(rows) / 20 for rows in blocks]
    np.testing.assert_allclose(found.values, shares @ np.array(each), rtol=1e-9)
    known = found.replicates["inputs"].deviations
    np.testing.assert_allclose(known, deviations, rtol=1e-8, atol=1e-12)


def pairings(rows):
    "All ways to put rows in pairs."
    if not rows:
        yield []
    for k in range(1, len(rows)):
        rest = rows[1:k] + rows[k + 1 :]
        yield from ([(rows[0], rows[k]), *others] for others in pairings(rest))


def test_random_pairs_are_centred_in_the_mean():
    "The mean over all pairings, not only some, is the centred mean over all cycles."
    x, words, found = normal((6, 4), 3) + 2, POWERS[:2], []
    data = open_data({"phi": x})
    for pairs in pairings([*range(6)]):
        order = np.ravel(pairs)
        part = data.take(order)
        view = draw_view(part, pairs=True)
        assert not view.center
        np.testing.assert_array_equal(view.units["inputs"][1], [1, 3, 5])
        found.append(word_means(view, words).values)
    truth = [cycle_mean({"phi": x}, word, center=True) for word in words]
    scale = 2.0 ** (2 * data.matrices["phi"].scale_exponent * np.arange(1, 3))
    np.testing.assert_allclose(np.mean(found, axis=0) * scale, truth, rtol=1e-10)


def test_random_members_are_groups_in_the_mean():
    "The mean over all choices of members is that over groups that count equally."
    groups, x = np.array([0, 0, 1, 1, 1, 2, 3]), normal((7, 5), 4) + 0.5
    members = [np.flatnonzero(groups == g) for g in range(4)]
    each = [
        [cycle_mean({"phi": x[list(rows)]}, word) for word in POWERS]
        for rows in itertools.product(*members)
    ]
    truth = [cycle_mean({"phi": x}, word, rows=groups) for word in POWERS]
    np.testing.assert_allclose(np.mean(each, axis=0), truth, rtol=1e-10)
    data = open_data({"phi": x}, groups=groups, center=False)
    data.matrices["phi"].scale_exponent = 0
    method = Method(word_means, "", members=True, draws=200)
    found = average(data, method, POWERS, Options(rng=np.random.default_rng(0)))
    error = standard_error(found.replicates["draws"])
    assert (error > 0).all() and (abs(found.values - truth) < 4 * error).all()


CENTRED_GAPS = normal((30, 12), 5) @ normal((12, 12), 6) + 1
CENTRED_GAPS[normal((30, 12), 7) > 1.7] = np.nan


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("x", "n_max", "options"),
    [
        (normal((24, 10), 1), 4, dict(groups=np.arange(24) // 2)),
        (normal((24, 10), 2), 3, dict(column_groups=np.arange(10) // 2)),
        (CENTRED_GAPS, 3, {}),
        (normal((20, 12), 3) + 1, 5, dict(center=False)),
        (normal((20, 12), 3) + 1, 3, dict(method="increasing", n_permutations=8)),
    ],
    ids=["groups", "column groups", "gaps", "permutations", "pairs"],
)
def test_what_is_left_to_the_seed_is_in_the_error(x, n_max, options):
    "The spread of the draws says how far other seeds would be."
    found = [sm.estimate(x, n_max, random_state=seed, **options) for seed in range(9)]
    spread = np.std([est.values[-1] for est in found], ddof=1)
    stated = np.mean([est.error_by_source["draws"][-1] for est in found])
    assert stated / 2 < spread < 2 * stated  # nine seeds tell it to a quarter
    exact = [k for k, label in enumerate(found[0].methods) if label == "all cycles"]
    assert (found[0].error_by_source["draws"][exact] == 0).all()
    np.testing.assert_array_equal(found[0].values[exact], found[1].values[exact])
    again = sm.estimate(x, n_max, random_state=3, **options)
    np.testing.assert_array_equal(again.values, found[3].values)
    np.testing.assert_array_equal(again.stderr, found[3].stderr)


def test_draws_that_are_not_known_do_not_count():
    drawn = np.random.default_rng(0).normal(size=(32, 2))
    drawn[8:, 0] = np.nan
    expected = [
        drawn[:8, 0].std(ddof=1) / np.sqrt(8),
        drawn[:, 1].std(ddof=1) / np.sqrt(32),
    ]
    np.testing.assert_allclose(standard_error(spread_of_draws(drawn)), expected, rtol=1e-12)


def test_words_of_several_methods_come_in_their_order():
    "What one method does not draw has no Monte Carlo error; those of two methods add."
    rng = np.random.default_rng(2)
    inputs = rng.normal(size=(3, 10))
    drawn = [spread_of_draws(rng.normal(size=(20, size))) for size in (1, 2)]
    parts = []
    for words, spread in zip(([1], [2, 0]), drawn):
        numbers = np.array(words) + 1.0
        replicates = {"inputs": Replicates(inputs[words]), "draws": spread}
        labels, lost = [f"m{k:.0f}" for k in numbers], np.zeros(len(words), dtype=bool)
        moments = Moments(numbers, replicates, numbers / 10, labels, lost)
        parts.append((tuple(POWERS[k] for k in words), moments))
    found = join_moments(parts, POWERS)
    np.testing.assert_array_equal(found.values, [1, 2, 3])
    np.testing.assert_array_equal(found.rounding, np.arange(1, 4) / 10)
    assert found.methods == ["m1", "m2", "m3"]
    np.testing.assert_array_equal(found.replicates["inputs"].deviations, inputs)
    errors = [*standard_error(drawn[1])[::-1], *standard_error(drawn[0])]
    known = standard_error(found.replicates["draws"])
    np.testing.assert_allclose(known, np.array(errors)[[0, 2, 1]], rtol=1e-9)


@pytest.mark.filterwarnings("ignore")
def test_errors_of_pairs_and_permutations():
    "By the derivative, from few draws: about as long as those of all cycles."
    x = normal((60, 5), 8) @ normal((5, 40), 9) + normal((60, 40), 10)
    exact = sm.estimate(x, 3)
    drawn = sm.estimate(x, 3, method="increasing")
    for kind in ("inputs", "features"):
        ratio = drawn.error_by_source[kind] / exact.error_by_source[kind]
        assert (ratio > 0.6).all() and (ratio < 1.8).all(), (kind, ratio)
    one = sm.estimate(x, 3, method="increasing", n_permutations=1)
    assert "draws" not in one.replicates
