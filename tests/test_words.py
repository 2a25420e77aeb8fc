"""Words, units, companions: against sums over all index tuples, in expectation, deleted."""

import math

import numpy as np
import pytest
from conftest import word_mean

import spectral_moments as sm
from spectral_moments.engine.choice import plan
from spectral_moments.engine.graphs import Units, word_means
from spectral_moments.engine.reduction import FAMILIES, Family
from spectral_moments.engine.sources import Means, Pair
from spectral_moments.engine.systems import open_design
from spectral_moments.figures import line

EQUAL, UNEQUAL = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 0, 1, 2, 2, 3])


def data(shapes=((6, 4), (6, 3)), seed=0):
    "Two systems with means, by name."
    rng = np.random.default_rng(seed)
    return {s: rng.standard_normal(shape) + 0.3 for s, shape in zip("ab", shapes)}


def spaces_of(systems, shared=False):
    alone = shared or len(systems) == 1
    return {name: "features" if alone else f"features of {name}" for name in systems}


def found(systems, words, rows=None, columns=(), counts=None, shared=False, **options):
    "`word_means` of arrays, or of pairs of arrays that enter and leave rows."
    pairs, spaces = {}, spaces_of(systems, shared)
    for name, x in systems.items():
        count = (counts or {}).get(name)
        binary = count is None or bool(np.isin(count, (0, 1)).all())
        enter, leave = x if isinstance(x, tuple) else (x, x)
        if count is not None:
            enter, leave = enter * count, leave * count
        same = not isinstance(x, tuple)
        given = None if count is None else (count, count)
        pairs[name] = Pair(enter, enter if same else leave, given, binary=binary)
    units = {"inputs": Units(len(enter), rows)}
    for name, pair in pairs.items():
        groups = dict(columns).get(name)
        units[spaces[name]] = Units(pair.shape[1], groups)
    return word_means(pairs, tuple(words), spaces=spaces, units=units, **options)


def check(systems, words, shared=False, columns=(), **options):
    words = [tuple(word) for word in words]
    values = found(systems, words, shared=shared, columns=columns, **options).values
    spaces, grouped = spaces_of(systems, shared), dict(columns)
    two = {s: x if isinstance(x, tuple) else (x, x) for s, x in systems.items()}
    units = {s: [(spaces[s], k) for k in grouped.get(s, range(9))] for s in two}
    expected = [word_mean(two, word, units, **options) for word in words]
    np.testing.assert_allclose(values, expected, rtol=1e-9)


# --- against the definition ---------------------------------------------------------------


@pytest.mark.parametrize("rows", [None, EQUAL, UNEQUAL], ids=["", "equal", "unequal"])
@pytest.mark.parametrize("grouped", [False, True], ids=["", "columns"])
def test_powers(rows, grouped):
    columns = {"a": np.array([0, 0, 1, 2])} if grouped else {}
    one = {"a": data()["a"]}
    check(one, ["a", "aa", "aaa"], rows=rows, columns=columns)
    check(
        one, ["a", "aa"] if rows is None else ["a"], rows=rows, columns=columns, center=True
    )


@pytest.mark.parametrize("rows", [None, UNEQUAL], ids=["", "groups"])
@pytest.mark.parametrize("shared", [False, True], ids=["", "shared"])
def test_two_systems(rows, shared):
    systems = data(((6, 4), (6, 4) if shared else (6, 3)))
    check(systems, ["ab", "aab", "abab"], rows=rows, shared=shared)
    if rows is None:
        check(systems, ["aa", "ab", "bb"], center=True, shared=shared)


@pytest.mark.parametrize("groups", [np.arange(8) // 2, np.array([0, 0, 0, 1, 1, 2, 3, 3])])
def test_centred_groups(groups):
    "Four units of rows: as many as a centred word of two letters needs."
    systems = data(((8, 3), (8, 2)), seed=1)
    check(systems, ["aa", "ab", "bb"], rows=groups, center=True)
    check(
        {"a": systems["a"]},
        ["aa"],
        rows=groups,
        columns={"a": np.array([0, 1, 1])},
        center=True,
    )


@pytest.mark.parametrize("center", [False, True], ids=["", "centred"])
@pytest.mark.parametrize("weighted", [False, True], ids=["gaps", "weights"])
@pytest.mark.parametrize("rows", [None, np.array([0, 0, 1, 2, 3, 4])], ids=["", "groups"])
def test_counted(weighted, rows, center):
    rng, systems = np.random.default_rng(2), data(((6, 4), (6, 3)), seed=2)
    counts = {s: 1.0 * (rng.random(x.shape) > 0.15) for s, x in systems.items()}
    if weighted:
        weights = np.sqrt(rng.random(6) + 0.2)[:, None]
        counts = {s: known * weights for s, known in counts.items()}
    check(systems, ["a", "aa", "ab"], rows=rows, counts=counts, center=center)


@pytest.mark.parametrize("center", [False, True], ids=["", "centred"])
def test_two_halves_of_the_trials(center):
    systems = data()
    halves = {
        s: (x, x + np.random.default_rng(3).random(x.shape)) for s, x in systems.items()
    }
    check(halves, ["aa", "ab"], center=center)
    check({"a": halves["a"]}, ["a", "aa"], rows=UNEQUAL)


def test_a_word_may_be_asked_twice():
    twice = found(data(), [("a", "b"), ("a", "b")]).values
    assert twice[0] == twice[1] != 0


def test_populations_of_words():
    "All features of one system were measured: its columns may meet."
    systems = data()
    values = found(
        systems, [("a", "b"), ("a", "a")], population={"features of a": 4}
    ).values
    K, L = (x @ x.T / x.shape[1] for x in systems.values())
    apart = ~np.eye(6, dtype=bool)
    np.testing.assert_allclose(values, [(K * y)[apart].mean() for y in (L, K)], rtol=1e-10)


# --- expectations -------------------------------------------------------------------------


def test_groups_are_unbiased():
    "Both rows of a group share a draw, which is no draw from the other rows."
    process = sm.Discrete([[1.0, -1.0, 2.0], [0.5, 3.0, 1.0]], input_probs=[0.6, 0.4])
    groups = np.array([0, 0, 1, 1, 1, 2, 3])
    repeat = lambda phi: phi[groups] * np.array([1, -1, 1, 1, -1, 1, 1])[:, None]
    words = [("a",), ("a", "a")]
    mean = process.expectation(
        lambda phi: found({"a": repeat(phi)}, words, rows=groups).values, 4, 2
    )
    np.testing.assert_allclose(mean, process.moments(2), rtol=1e-10)
    wrong = process.expectation(lambda phi: found({"a": repeat(phi)}, words).values, 4, 2)
    assert abs(wrong[1] / process.moments(2)[1] - 1) > 0.1  # negative control


@pytest.mark.parametrize("groups", [None, np.array([0, 0, 1, 2, 2, 3])], ids=["", "groups"])
def test_centred_gaps_are_unbiased_given_the_mask(groups):
    process = sm.Discrete([[1.0, -1.0, 2.0], [0.5, 3.0, 1.0]], input_probs=[0.6, 0.4])
    centred = process.table - process.input_probs @ process.table
    truth = sm.Discrete(centred, input_probs=process.input_probs).moments(2)
    groups = np.arange(5) if groups is None else groups
    seen = np.ones((len(groups), 2))
    seen[0, 1] = 0

    def moments(phi):
        options = dict(rows=groups, counts={"a": seen}, center=True)
        return found({"a": phi[groups]}, [("a",), ("a", "a")], **options).values

    mean = process.expectation(moments, int(groups.max()) + 1, 2)
    np.testing.assert_allclose(mean, truth, rtol=1e-9)


def test_a_shift_of_the_columns_changes_no_centred_sum():
    rng = np.random.default_rng(5)
    x, shift = rng.standard_normal((12, 7)), 100 * rng.standard_normal(7)
    seen = 1.0 * (rng.random(x.shape) > 0.15)
    groups, words = np.repeat(np.arange(7), [3, 1, 2, 1, 2, 1, 2]), [("a",), ("a", "a")]
    weights = np.sqrt(rng.random(12) + 0.3)[:, None]
    for options in (
        dict(rows=groups),
        dict(counts={"a": seen}),
        dict(counts={"a": seen * weights}),
        dict(rows=groups, counts={"a": seen}),
    ):
        one, two = (found({"a": y}, words, center=True, **options) for y in (x, x + shift))
        np.testing.assert_allclose(one.values, two.values, rtol=1e-8)


# --- without each unit --------------------------------------------------------------------


@pytest.mark.parametrize("gaps", [False, True], ids=["", "gaps"])
@pytest.mark.parametrize("grouped", [False, True], ids=["", "groups"])
def test_deviations_equal_deletions(grouped, gaps):
    rng, systems = np.random.default_rng(6), data(((14, 9), (14, 7)), seed=6)
    counts = {s: 1.0 * (rng.random(x.shape) > 0.1) for s, x in systems.items()}
    counts = counts if gaps else None
    rows = (
        np.array([0, 0, 1, 2, 2, 3, 4, 4, 4, 5, 6, 7, 8, 9]) if grouped else np.arange(14)
    )
    words = [("a", "a"), ("a", "b"), ("a", "a", "b")]

    def asked(keep, columns=slice(None), **options):
        take = lambda s, x: x[keep][:, columns] if s == "a" else x[keep]
        part = {s: take(s, x) for s, x in systems.items()}
        known = counts and {s: take(s, x) for s, x in counts.items()}
        groups = np.unique(rows[keep], return_inverse=True)[1] if grouped else None
        return found(part, words, rows=groups, counts=known, **options)

    whole = asked(rows >= 0, replicates=True)
    for unit in range(rows.max() + 1):
        without = asked(rows != unit).values
        np.testing.assert_allclose(whole.without["inputs"][:, unit], without, rtol=1e-9)
    for column in range(9):
        without = asked(rows >= 0, np.arange(9) != column).values
        np.testing.assert_allclose(
            whole.without["features of a"][:, column], without, rtol=1e-9
        )


@pytest.mark.parametrize("option", ["groups", "gaps", "row_weights", "population"])
def test_no_draw_decides(option):
    rng = np.random.default_rng(7)
    x, n_max = rng.standard_normal((16, 9)) + 1, 2
    options = {
        "groups": dict(groups=np.repeat(np.arange(9), [2, 1, 3, 1, 2, 2, 2, 2, 1])),
        "row_weights": dict(row_weights=rng.random(16) + 0.2),
        "population": dict(population=(None, 9), groups=np.arange(16) // 2),
    }.get(option, {})
    if option == "gaps":
        x[3, 4] = np.nan
    one, two = (sm.estimate(x, n_max, random_state=seed, **options) for seed in (1, 2))
    np.testing.assert_array_equal(one.values, two.values)
    np.testing.assert_array_equal(one.stderr, two.stderr)


def test_groups_beyond_reach():
    "Groups of both sides, or with gaps: the highest orders are means over random pairs."
    x = sm.Linear(4).sample(40, 16, random_state=1) + 1
    groups = np.arange(40) // 2
    both = dict(groups=groups, column_groups=np.arange(16) // 2)
    assert sm.estimate(x, 4, stderr=False, **both).methods[-1] == "blocks"
    with pytest.raises(ValueError, match="highest order of all cycles"):
        sm.estimate(x, 4, method="all_cycles", **both)
    gaps = np.where(np.random.default_rng(0).random(x.shape) < 0.02, np.nan, x)
    found = [sm.estimate(gaps, 3, groups=groups, random_state=seed) for seed in (0, 1)]
    assert found[0].methods == ["all_cycles"] * 3  # of pairs of rows, in the end
    assert ((found[0].values == found[1].values) == [True, True, False]).all()


def test_pairs_are_for_what_is_beyond_reach():
    "What all cycles reach, but cannot pay for, is left to walks: never summed after all."
    gaps = np.where(np.random.default_rng(0).random((90, 80)) < 0.5, np.nan, 1.0)
    design, words = open_design({"phi": gaps}), tuple(("phi",) * n for n in (1, 2, 3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spectral_moments.engine.choice.MOST", 1e9)
        names = plan(design, words, "auto").names
    assert names[:2] == ["all_cycles"] * 2 and names[2] in ("increasing", "blocks")


# --- where would it go --------------------------------------------------------------------


def test_a_family_is_one_function_and_one_registration(monkeypatch):
    def ones(systems, views, ask):
        return Means(np.ones(len(ask.words)))

    family = Family(ones, lambda *_: 1.0, walks=("numpy",), says="means of ones")
    monkeypatch.setitem(FAMILIES, "ones", family)
    x = np.random.default_rng(8).standard_normal((20, 15))
    est = sm.estimate(x, 3, method="ones", center=False, stderr=False)
    assert est.methods == ["ones"] * 3 and est.values.tolist() == [1, 1, 1]
    assert "means of ones" in est.sentence() and line("ones")["label"] == "ones"
    with pytest.raises(ValueError, match="ones"):
        sm.estimate(x, 3, method="twos")
    monkeypatch.setattr("spectral_moments.engine.choice.LEAST", 1.0)  # increasing is dear
    est = sm.estimate(x, 6, center=False, stderr=False)
    assert est.methods[0] == "all_cycles" and est.methods[-1] == "ones"


def test_a_statistic_is_one_function():
    est = sm.estimate(sm.Linear(5).sample(60, 80, random_state=3), 3)
    spread = est.derive(lambda m: m[2] * m[0] / m[1] ** 2, scale="log", name="spread")
    low, high = spread.interval()
    assert spread.stderr > 0 and low < spread.value < high
    assert {name for _, name in spread.axes} == {"inputs", "features"}
    np.testing.assert_allclose(
        spread.plain, est.values[2] * est.values[0] / est.values[1] ** 2
    )
    assert math.isclose(float(est.derive(lambda m: m[0])), est.values[0], rel_tol=1e-9)
