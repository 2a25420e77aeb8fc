"""No answer of the default call depends on the seed by more than a tenth of its error."""

import itertools

import numpy as np
import pytest
from conftest import normal

import spectral_moments as sm

P, Q = 36, 16
ROWS, COLUMNS = np.arange(P) // 3, np.arange(Q) // 2


def recorded(gaps):
    "Three frames of each of twelve movies, with a mean response, perhaps with gaps."
    rng = np.random.default_rng(8)
    x = rng.normal(size=(12, 4))[ROWS] @ rng.normal(size=(4, Q))
    x += 1 + 0.5 * rng.normal(size=(P, Q))
    x[rng.random(x.shape) < gaps] = np.nan
    return x


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("gaps", "options", "most"),
    [
        (0, dict(groups=ROWS), 1e-9),  # no draw
        (0, dict(column_groups=COLUMNS), 1e-9),
        (0, dict(groups=ROWS, column_groups=COLUMNS), 0.1),
        (0.05, {}, 0.1),
    ],
)
def test_seeds_hardly_matter(gaps, options, most):
    "With groups of one side there is no draw; elsewhere there are enough of them."
    x = recorded(gaps)
    found = [sm.estimate(x, random_state=seed, **options) for seed in range(4)]
    spread = np.std([est.values for est in found], axis=0, ddof=1)
    assert (spread < most * found[0].stderr).all()


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
