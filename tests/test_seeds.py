"""No answer of the default call depends on the seed by more than a tenth of its error."""

import itertools

import numpy as np
import pytest
from conftest import normal

import spectral_moments as sm
from spectral_moments.diagnostics import drawn_notes
from spectral_moments.engine import choice
from spectral_moments.engine.graphs import word_means
from spectral_moments.engine.reduction import Axis, Reduced, _spread
from spectral_moments.engine.sources import View, open_source
from spectral_moments.errors import axis_error

P, Q = 36, 16
ROWS, COLUMNS = np.arange(P) // 3, np.arange(Q) // 2
UNEQUAL = np.repeat(np.arange(14), [1, 2, 4, 3, 2, 3, 3, 2, 4, 3, 2, 3, 3, 1])


def recorded(gaps):
    "Three frames of each of twelve movies, with a mean response, perhaps with gaps."
    rng = np.random.default_rng(8)
    x = rng.normal(size=(12, 4))[ROWS] @ rng.normal(size=(4, Q))
    x += 1 + 0.5 * rng.normal(size=(P, Q))
    x[rng.random(x.shape) < gaps] = np.nan
    return x


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("gaps", "n_max", "options", "most"),
    [
        (0, 4, dict(groups=ROWS), 1e-9),  # no draw
        (0, 4, dict(column_groups=COLUMNS), 1e-9),
        (0, 3, dict(groups=UNEQUAL), 1e-9),
        (0, 4, dict(groups=UNEQUAL), 0.1),
        (0, 4, dict(groups=ROWS, column_groups=COLUMNS), 0.1),
        (0, 6, dict(center=False), 0.1),
        (0.05, 4, {}, 0.1),
        (0.05, 4, dict(groups=ROWS), 0.1),
        (0.05, 3, dict(groups=UNEQUAL), 0.1),
    ],
)
def test_seeds_hardly_matter(gaps, n_max, options, most):
    "With groups of one side there is no draw; elsewhere there are enough of them."
    x = recorded(gaps)
    found = [sm.estimate(x, n_max, random_state=seed, **options) for seed in range(4)]
    spread = np.std([est.values for est in found], axis=0, ddof=1)
    error = np.mean([est.stderr for est in found], axis=0)
    assert (spread < most * error).all()


def test_what_is_left_to_the_seed_is_in_the_error():
    "The spread of the draws tells how far other seeds would be."
    x = recorded(0.05)
    found = [sm.estimate(x, 3, groups=ROWS, random_state=seed) for seed in range(6)]
    spread = np.std([est.values[2] for est in found], ddof=1)
    stated = np.mean([est.parts["draws"][2] for est in found])
    assert stated / 2 < spread < 2 * stated  # six seeds tell it to a third
    assert (found[0].parts["draws"][:2] == 0).all()  # no draw


def test_a_note_where_the_seed_matters():
    assert drawn_notes({"m(3)": 0.08}) == []
    (note,) = drawn_notes({"m(3)": 0.08, "m(4)": 0.31})
    assert "m(4):" in note and "31% of their errors" in note


def pairings(rows):
    "All ways to put rows in pairs."
    if not rows:
        yield []
    for k in range(1, len(rows)):
        rest = rows[1:k] + rows[k + 1 :]
        yield from ([(rows[0], rows[k]), *others] for others in pairings(rest))


def test_the_mean_over_all_pairs_of_rows_is_known():
    "What makes a filled matrix a control variate: its mean over all draws is centred."
    source, words = open_source(normal((6, 4), 3) + 2), (("phi",), ("phi",) * 2)
    means = []
    for pairs in pairings([*range(6)]):
        view = View(*map(np.array, zip(*pairs)))
        means.append(word_means({"phi": view.pair(source)}, words).values)
    truth = word_means({"phi": View().pair(source)}, words, center=True).values
    np.testing.assert_allclose(np.mean(means, axis=0), truth, rtol=1e-12)


def distinct(count, size):
    "All ordered choices of `size` of `count` units, an array (choices, size)."
    return np.array(list(itertools.permutations(range(count), size)))


def centred_fourth(single, double, columns, units):
    "m(4) about the mean by its definition: rows split in two, or not, over distinct units."
    total = 0.0
    for split in itertools.product((0, 1), repeat=4):
        chosen = distinct(units, 4 + sum(split)).T
        second = iter(chosen[4:])
        second = [next(second) if apart else None for apart in split]
        found = 0.0
        for c in columns:
            factors = (
                single[chosen[k], c[k]] * single[second[k], c[k - 1]]
                if split[k]
                else double[chosen[k], c[k], c[k - 1]]
                for k in range(4)
            )
            found += np.prod(list(factors), axis=0).mean() / len(columns)
        total += (-1) ** sum(split) * found
    return total


def test_groups_of_rows_at_order_four():
    "All cycles of order 4, centred, over distinct groups: no random pairs are needed."
    x, groups = normal((16, 4), 1) + 1, np.arange(16) // 2
    parts = x.reshape(8, 2, 4)
    double = np.einsum("gic,gid->gcd", parts, parts) / 2
    truth = centred_fourth(parts.mean(axis=1), double, distinct(4, 4), 8)
    found = sm.estimate(x, 4, method="all_cycles", groups=groups, stderr=False)
    assert found.values[3] == pytest.approx(truth, rel=1e-9)


def test_groups_of_columns_at_order_four():
    "The same over distinct groups of features."
    x, groups = normal((8, 8), 2) - 1, np.arange(8) // 2
    columns = [c for c in distinct(8, 4) if len({*groups[c]}) == 4]
    truth = centred_fourth(x, x[:, :, None] * x[:, None, :], columns, 8)
    found = sm.estimate(x, 4, method="all_cycles", column_groups=groups, stderr=False)
    assert found.values[3] == pytest.approx(truth, rel=1e-9)


def test_draws_that_are_not_known_do_not_count():
    drawn = np.random.default_rng(0).normal(size=(32, 1))
    drawn[8:] = np.nan
    expected = drawn[:8].std(ddof=1) / np.sqrt(8)
    np.testing.assert_allclose(axis_error(Axis(_spread(drawn))), expected, rtol=1e-12)


def test_an_order_that_is_never_known_does_not_keep_the_others_drawing():
    known = Axis(np.array([[1.0, -1.0], [np.nan, np.nan]]))
    found = Reduced(
        np.array([2.0, np.nan]), dict(inputs=known, draws=Axis(np.zeros((2, 4))))
    )
    assert choice._settled(found, 32)


@pytest.mark.filterwarnings("ignore")
def test_draws_that_were_asked_for_are_in_the_error():
    "A given number of permutations: the error holds how far others would be."
    x = recorded(0)
    options = dict(method="increasing", n_permutations=12, center=False)
    found = [sm.estimate(x, 4, random_state=seed, **options) for seed in range(8)]
    spread = np.std([est.values for est in found], axis=0, ddof=1)[1:]
    stated = np.mean([est.parts["draws"] for est in found], axis=0)[1:]
    assert (stated > spread / 2).all() and (stated < 2 * spread).all()
    none = sm.estimate(x, 4, **options | dict(n_permutations=1))
    assert "draws" not in none.parts


def test_noise_of_a_known_law_is_not_paired():
    "The difference of two counts is no count: order 5 does not come from pairs of rows."
    counts = np.random.default_rng(0).poisson(3, (30, 20))
    assert sm.estimate(counts, 5, noise="poisson").methods[-1] == "increasing"
