"""Means of words over all cycles: against the definition, deleted, in expectation."""

import itertools

import numpy as np
import pytest
from conftest import cycle_mean, normal, peak_memory, rational

from spectral_moments.engine.all_cycles import word_means
from spectral_moments.engine.data import AxisInfo, Noise
from spectral_moments.engine.views import Factors, View
from spectral_moments.processes import Discrete
from spectral_moments.teaching.cycles import mean_over_disjoint

UNEQUAL = np.array([0, 0, 0, 1, 2, 2, 3])


def make_view(
    systems,  # dict: name -> matrix, or (left, right)
    center=False,
    groups=None,  # dict: kind of axis -> groups
    counts=None,  # dict: name -> 1 where measured, 0 where missing
    population=None,  # dict: name -> size
    noise=None,
    shared=False,
):
    "A view of systems, whose columns are of one kind if there is one, or they are shared."
    one = shared or len(systems) == 1
    spaces = {s: "features" if one else f"features of {s}" for s in systems}
    groups, factors, axes = groups or {}, {}, {}
    for s, x in systems.items():
        left, right = x if isinstance(x, tuple) else (x, x)
        known = (counts or {}).get(s)
        if known is not None:
            left, right = left * known, right * known
            left = left if isinstance(x, tuple) else right
        factors[s] = Factors(left, right, known, known, noise)
        Q, R = right.shape[1], (population or {}).get(s)
        axes[spaces[s]] = AxisInfo(Q, groups.get(spaces[s]), R)
    inputs = AxisInfo(len(right), groups.get("inputs"))
    return View(factors, spaces, {"inputs": inputs} | axes, center, {})


def check(systems, words, variance=None, **options):
    "Compare with the definition."
    view, given, columns = make_view(systems, **options), {}, {}
    for s, x in systems.items():
        left, right = x if isinstance(x, tuple) else (x, x)
        known = (options.get("counts") or {}).get(s, 1.0)
        given[s] = tuple(np.where(known == 0, np.nan, y) for y in (right, left))
        columns[s] = view.axes[view.spaces[s]].groups
        if variance:
            view.factors[s] = view.factors[s]._replace(noise=Known(variance[s]))
    known = {name: options.get(name) for name in ("center", "population", "shared")}
    known |= dict(rows=view.axes["inputs"].groups, columns=columns)
    known["variance"] = {s: lambda _, v=v: v[:, 0] for s, v in (variance or {}).items()}
    expected = [cycle_mean(given, word, **known) for word in words]
    values = word_means(view, tuple(map(tuple, words)), deviations=False).values
    np.testing.assert_allclose(values, expected, rtol=1e-10)


class Known:
    "Noise of a given variance."

    def __init__(self, values):
        self.values = values

    def variance(self, x):
        return self.values


def two_systems(P=7, seed=0):
    return {"a": normal((P, 4), seed) + 0.3, "b": normal((P, 3), seed + 1) + 0.3}


# --- against the definition ---------------------------------------------------------------


@pytest.mark.parametrize("center", [False, True], ids=["", "centred"])
def test_powers(center):
    check({"a": normal((8, 4)) + 0.3}, ["a", "aa", "aaa", "aaaa"], center=center)
    check({"a": normal((6, 5)) + 0.3}, ["a", "aa", "aaa"], center=center)


@pytest.mark.parametrize("center", [False, True], ids=["", "centred"])
@pytest.mark.parametrize("shared", [False, True], ids=["", "shared"])
def test_words(center, shared):
    systems = two_systems()
    if shared:
        systems["b"] = normal((7, 4), 5)
    words = ["b", "ab", "bb", "aab", "abb"] + ([] if center else ["abab", "aabb"])
    check(systems, words, center=center, shared=shared)


@pytest.mark.parametrize("center", [False, True], ids=["", "centred"])
def test_two_factors(center):
    x, y = normal((6, 4), 1) + 0.2, normal((6, 4), 2) + 0.2
    check({"a": (x, y)}, ["a", "aa", "aaa"], center=center)
    check({"a": (x, y), "b": normal((6, 3), 3)}, ["ab", "aab"], center=center)


@pytest.mark.parametrize("center", [False, True], ids=["", "centred"])
@pytest.mark.parametrize("two", [False, True], ids=["", "two factors"])
def test_a_group_then_an_input_in_it(center, two):
    "Groups of sizes 3, 1, 2, 1, ...: every group counts equally."
    P = 10 if center else 8
    rows = np.array([0, 0, 0, 1, 2, 2, 3, 4, 5, 5])[:P]
    x, y = normal((P, 3), 1) + 0.3, normal((P, 3), 2) + 0.3
    options = dict(groups={"inputs": rows}, center=center)
    check({"a": (x, y) if two else x}, ["a", "aa", "aaa"], **options)
    systems = {"a": (x, y) if two else x, "b": normal((P, 3), 4)}
    check(systems, ["ab", "aab"], **options)


@pytest.mark.parametrize("center", [False, True], ids=["", "centred"])
def test_groups_of_columns(center):
    groups = {"features": np.array([0, 0, 1, 2, 2])}
    check({"a": normal((6, 5), 1) + 0.3}, ["a", "aa"], groups=groups, center=center)
    groups = {"features of b": np.array([0, 1, 1])}
    check(two_systems(6), ["ab", "bb"], groups=groups, center=center)
    both = {"inputs": np.array([0, 0, 1, 2, 2]), "features": np.array([0, 1, 1, 2])}
    check({"a": normal((5, 4), 1)}, ["a"], groups=both, center=center)


@pytest.mark.parametrize("center", [False, True], ids=["", "centred"])
def test_missing_entries(center):
    systems, rng = two_systems(6, 2), np.random.default_rng(2)
    counts = {s: 1.0 * (rng.random(x.shape) > 0.15) for s, x in systems.items()}
    words = ["a", "aa", "ab"] + ([] if center else ["aab", "abab"])
    check(systems, words, counts=counts, center=center)
    halves = {"a": (systems["a"], systems["a"] + rng.random((6, 4)))}
    check(halves, ["a", "aa"], counts=counts, center=center)
    groups = {"inputs": np.array([0, 0, 1, 2, 2, 3])}
    words = ["a"] if center else ["a", "aa", "ab", "aab"]
    check(systems, words, counts=counts, center=center, groups=groups)
    groups = {"features": np.array([0, 0, 1, 2])}
    options = dict(counts=counts, center=center, groups=groups)
    check({"a": systems["a"]}, ["a", "aa"], **options)


@pytest.mark.parametrize("center", [False, True], ids=["", "centred"])
@pytest.mark.parametrize("R", [3, 9], ids=["all", "some"])
def test_finite_populations(center, R):
    "Columns drawn from a population may coincide."
    x, y = normal((7, 3), 1) + 0.3, normal((7, 3), 2)
    options, known = dict(center=center, population={"a": R}), 1.0 - np.eye(7, 3)
    check({"a": x}, ["a", "aa", "aaa"], **options)
    check({"a": (x, y)}, ["a", "aa", "aaa"], **options)
    check({"a": x}, ["a", "aa"], groups={"inputs": UNEQUAL}, **options)
    check({"a": x, "b": y[:, :2]}, ["ab", "aa", "aab"], **options)
    check({"a": x}, ["a", "aa"], counts={"a": known}, **options)


@pytest.mark.parametrize("center", [False, True], ids=["", "centred"])
def test_squares_without_their_noise(center):
    systems = {"a": normal((7, 4), 1) + 0.3}
    variance = {"a": np.tile(np.random.default_rng(3).random((7, 1)), 4)}
    options = dict(center=center, variance=variance)
    check(systems, ["a", "aa", "aaa"], **options)
    check(systems, ["a", "aa", "aaa"], population={"a": 6}, **options)
    known = 1.0 * (np.random.default_rng(4).random((7, 4)) > 0.1)
    check(systems, ["a", "aa"], counts={"a": known}, population={"a": 6}, **options)


# --- digits -------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(4, 4), (5, 4), (4, 6)])
def test_small_matrices_keep_their_digits(shape):
    "Sums over distinct indices are small differences of large ones."
    phi = normal(shape, sum(shape))
    found = word_means(make_view({"a": phi}), (("a",) * 4,))
    exact = float(mean_over_disjoint(rational(phi), 4))
    if np.finfo(np.longdouble).eps < 1e-18:  # otherwise a double
        bound = found.rounding[0] + np.finfo(float).eps * abs(exact)
        assert abs(found.values[0] - exact) <= 4 * bound


def test_the_bound_on_rounding():
    "It holds for doubles, and knows whether entries were rounded before."
    x, words = 1.0 + 1e-3 * normal((40, 40)), (("a",), ("a", "a"), ("a",) * 4)
    view = make_view({"a": x})
    found = word_means(view, words)
    turned = word_means(make_view({"a": x[::-1]}), words)
    assert (abs(turned.values - found.values) <= 4 * found.rounding).all()
    small = make_view({"a": x[:5, :5]})
    rough = small._replace(factors={"a": Factors(x[:5, :5], x[:5, :5], as_measured=False)})
    assert (
        word_means(rough, words).rounding > 100 * word_means(small, words).rounding
    ).all()


def test_trivial_matrices():
    words = tuple(("a",) * n for n in range(1, 5))
    ones = word_means(make_view({"a": np.ones((7, 6))}), words)
    np.testing.assert_allclose(ones.values, np.ones(4), rtol=1e-12)
    for deviations in ones.deviations.values():
        np.testing.assert_allclose(deviations, 0, atol=1e-12)


# --- without each unit --------------------------------------------------------------------


def deletions(systems, words, counts=None, groups=None, **options):
    "For each kind of axis, deviations by deleting each unit, and those that are claimed."
    view = make_view(systems, counts=counts, groups=groups, **options)
    whole = word_means(view, words)
    for kind, axis in view.axes.items():
        labels = np.arange(axis.size) if axis.groups is None else axis.groups
        literal = []
        for unit in range(axis.count):
            keep, left = np.flatnonzero(labels != unit), dict(groups or {})
            if kind in left:
                left[kind] = np.unique(left[kind][keep], return_inverse=True)[1]
            less, known = dict(systems), dict(counts or {})
            for s in systems:
                if kind in ("inputs", view.spaces[s]):
                    for given in (less, known) if counts else (less,):
                        given[s] = given[s].take(keep, 0 if kind == "inputs" else 1)
            part = make_view(less, counts=known, groups=left, **options)
            literal.append(word_means(part, words, deviations=False).values - whole.values)
        yield kind, np.array(literal).T, whole.deviations[kind]


@pytest.mark.parametrize("gaps", [False, True], ids=["", "gaps"])
@pytest.mark.parametrize("grouped", ["", "groups", "columns"])
def test_uncentred_deviations_are_deletions(grouped, gaps):
    rng = np.random.default_rng(6)
    systems = {"a": normal((13, 9), 6) + 0.3, "b": normal((13, 7), 7) + 0.3}
    counts = {s: 1.0 * (rng.random(x.shape) > 0.1) for s, x in systems.items()}
    rows, columns = np.array([0, 0, 1, 2, 2, 3, 4, 4, 4, 5, 6, 7, 8]), np.arange(9) // 2
    groups = {"": {}, "groups": {"inputs": rows}, "columns": {"features of a": columns}}
    words = (("a", "a"), ("a", "b"), ("a", "a", "b"))
    options = dict(counts=counts if gaps else None, groups=groups[grouped])
    for _, literal, claimed in deletions(systems, words, **options):
        np.testing.assert_allclose(claimed, literal, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("option", ["", "groups", "gaps", "columns"])
def test_centred_deviations_are_deletions_to_first_order(option):
    "They agree up to the next order in one over the number of units."
    rng = np.random.default_rng(3)
    x = normal((60, 8), 3) @ normal((8, 40), 4) / 8 + 0.2 * normal((60, 40), 5) + 0.5
    words = (
        (("a",), ("a", "a")) if option in ("gaps", "columns") else (("a",) * 2, ("a",) * 3)
    )
    known = {
        "groups": dict(groups={"inputs": np.repeat(np.arange(30), [1, 3] * 15)}),
        "gaps": dict(counts={"a": 1.0 * (rng.random(x.shape) > 0.1)}),
        "columns": dict(groups={"features": np.arange(40) // 2}),
    }.get(option, {})
    for kind, literal, claimed in deletions({"a": x}, words, center=True, **known):
        spread = np.sqrt((literal**2).sum(1) / (claimed**2).sum(1))
        np.testing.assert_allclose(spread, 1, atol=0.08)
        for one, two in zip(literal, claimed):
            assert np.corrcoef(one, two)[0, 1] > 0.995, kind


def test_deviations_of_a_finite_population():
    "Columns: exact at order two, where a unit that meets itself is counted once."
    x, words = normal((9, 7), 8), (("a",), ("a", "a"), ("a", "a", "a"))
    options = dict(population={"a": 12})
    for kind, literal, claimed in deletions({"a": x}, words, **options):
        n = 3 if kind == "inputs" else 1
        np.testing.assert_allclose(claimed[:n], literal[:n], rtol=1e-8, atol=1e-13)
        for one, two in zip(literal, claimed):
            assert np.corrcoef(one, two)[0, 1] > 0.98, kind


def test_units_that_a_word_does_not_visit():
    found = word_means(make_view(two_systems()), (("a", "a"), ("a", "b"), ("a", "b")))
    np.testing.assert_array_equal(found.deviations["features of b"][0], np.zeros(3))
    assert (found.deviations["features of b"][1] != 0).all()
    assert found.values[1] == found.values[2]  # a word may be asked twice


def test_too_few_units():
    "A word that needs more units than there are is unknown, the others are not."
    words = (("a",), ("a", "a"), ("a", "a", "a"))
    found = word_means(make_view({"a": normal((4, 5))}, center=True), words)
    assert np.isnan(found.values).tolist() == [False, False, True]
    assert np.isnan(found.deviations["inputs"][1]).sum() == 0
    np.testing.assert_array_equal(found.rounding[2], 0.0)
    groups = {"inputs": np.array([0, 0, 1, 1])}
    found = word_means(make_view({"a": normal((4, 5))}, groups=groups), words)
    assert np.isnan(found.values).tolist() == [False, False, True]
    assert np.isnan(found.deviations["inputs"][1]).all()  # one group would be left
    empty = np.zeros((4, 5))
    found = word_means(make_view({"a": normal((4, 5))}, counts={"a": empty}), words)
    assert np.isnan(found.values).all()


# --- expectations -------------------------------------------------------------------------


def process():
    return Discrete([[1.0, -1.0, 2.0], [0.5, 3.0, 1.0]], input_probs=[0.6, 0.4])


def powers(phi, n_max=2, **options):
    words = tuple(("a",) * n for n in range(1, n_max + 1))
    return word_means(make_view({"a": phi}, **options), words, deviations=False).values


def test_groups_are_unbiased():
    "Both rows of a group share a draw, which is no draw from the other rows."
    groups = np.array([0, 0, 1, 1, 1, 2, 3])
    signs = np.array([1, -1, 1, 1, -1, 1, 1])[:, None]
    known = dict(groups={"inputs": groups})
    mean = process().expectation(lambda phi: powers(phi[groups] * signs, **known), 4, 2)
    np.testing.assert_allclose(mean, process().moments(2), rtol=1e-10)
    wrong = process().expectation(lambda phi: powers(phi[groups] * signs), 4, 2)
    assert abs(wrong[1] / process().moments(2)[1] - 1) > 0.1  # negative control


@pytest.mark.parametrize("gaps", [False, True], ids=["", "gaps"])
def test_centring_is_unbiased(gaps):
    table, chances = process().table, process().input_probs
    truth = Discrete(table - chances @ table, input_probs=chances).moments(2)
    seen = np.ones((5, 2))
    seen[0, 1] = 0
    known = dict(counts={"a": seen} if gaps else None, center=True)
    mean = process().expectation(lambda phi: powers(phi, **known), 5, 2)
    np.testing.assert_allclose(mean, truth, rtol=1e-9)


@pytest.mark.parametrize("center", [False, True], ids=["", "centred"])
def test_finite_populations_are_unbiased(center):
    "The mean over all subsets of the features is the value of the whole population."
    table = normal((8, 5), 11) + 0.3
    whole = powers(table, 3, center=center, population={"a": 5})
    subsets = itertools.combinations(range(5), 3)
    known = dict(center=center, population={"a": 5})
    mean = np.mean([powers(table[:, list(s)], 3, **known) for s in subsets], axis=0)
    np.testing.assert_allclose(mean, whole, rtol=1e-10)


@pytest.mark.parametrize("R", [None, 3, 7], ids=["infinite", "all", "some"])
def test_squares_are_unbiased(R):
    "Over all outcomes of two coins for each entry."
    chances, noise = np.random.default_rng(9).random((2, 3)), Noise("binomial", 2)
    options = dict(population={"a": R})
    mean = np.zeros(2)
    for heads in itertools.product(range(3), repeat=6):
        x = np.array(heads, dtype=float).reshape(2, 3)
        weight = np.prod((1 + (x == 1)) * chances**x * (1 - chances) ** (2 - x))
        mean += weight * powers(x, noise=noise, **options)
    np.testing.assert_allclose(mean, powers(2 * chances, **options), rtol=1e-12)


# --- invariances and sizes ----------------------------------------------------------------


def test_a_shift_of_the_columns_changes_no_centred_sum():
    rng = np.random.default_rng(5)
    x, shift = rng.standard_normal((12, 7)), 100 * rng.standard_normal(7)
    seen = 1.0 * (rng.random(x.shape) > 0.15)
    groups = {"inputs": np.repeat(np.arange(7), [3, 1, 2, 1, 2, 1, 2])}
    for known in (
        dict(groups=groups),
        dict(counts={"a": seen}),
        dict(population={"a": 9}),
    ):
        one, two = (powers(y, center=True, **known) for y in (x, x + shift))
        np.testing.assert_allclose(one, two, rtol=1e-8)


def test_copies_of_a_row_in_one_group_change_nothing():
    x = normal((9, 6), 3)
    copied = np.repeat(np.arange(9), [1, 3, 1, 1, 2, 1, 1, 4, 1])
    groups = {"inputs": copied}
    for center in (False, True):
        one = powers(x, 3, center=center)
        two = powers(x[copied], 3, center=center, groups=groups)
        np.testing.assert_allclose(one, two, rtol=1e-9)


def test_long_matrices_need_no_square_of_the_long_side():
    "3000 x 3000 would be 150 times the matrix."
    words = tuple(("a",) * n for n in range(1, 5))
    for shape in ((20, 3000), (3000, 20), (200, 200)):
        view = make_view({"a": normal(shape)}, center=True)
        word_means(make_view({"a": normal(shape)[:50, :50]}, center=True), words)
        used = peak_memory(word_means, view, words)
        assert used < 90 * 8 * shape[0] * shape[1]


# --- torch --------------------------------------------------------------------------------


def test_tensors():
    torch = pytest.importorskip("torch")
    x, words = normal((40, 30)) + 0.5, (("a",), ("a",) * 3, ("a",) * 4)
    given = torch.tensor(x)
    one, two = (word_means(make_view({"a": y}, center=True), words) for y in (x, given))
    assert isinstance(two.values, np.ndarray)
    np.testing.assert_allclose(one.values, two.values, rtol=1e-9)
    for kind, deviations in one.deviations.items():
        np.testing.assert_allclose(two.deviations[kind], deviations, rtol=1e-6, atol=1e-12)
    y = normal((40, 6))
    mixed, plain = ({"a": x, "b": b} for b in (torch.tensor(y), y))
    one, two = (word_means(make_view(z), (("a", "b"),)).values for z in (mixed, plain))
    assert one == two


def test_gradients():
    torch = pytest.importorskip("torch")
    phi = torch.tensor(normal((9, 6)), requires_grad=True)
    groups = {"inputs": np.array([0, 0, 1, 2, 3, 4, 5, 6, 7])}

    def values(x, n_max, **options):
        words = tuple(("a",) * n for n in range(1, n_max + 1))
        return word_means(make_view({"a": x}, **options), words, deviations=False).values

    check = torch.autograd.gradcheck
    assert check(lambda x: values(x, 4), phi, atol=1e-6)
    assert check(lambda x: values(x, 4, center=True), phi, atol=1e-6)
    assert check(lambda x: values(x, 3, center=True, groups=groups), phi, atol=1e-6)
    few = values(phi, 3, center=True, groups={"inputs": np.arange(9) // 2})
    assert few.requires_grad and torch.isnan(few).tolist() == [False, False, True]
