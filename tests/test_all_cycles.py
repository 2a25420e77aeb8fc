"""Means of words over all cycles: what `test_doors` does not ask, at the lowest level."""

import itertools

import numpy as np
import pytest
from conftest import cycle_mean, normal, peak_memory, rational

from spectral_moments.engine.all_cycles import word_means
from spectral_moments.engine.data import AxisInfo
from spectral_moments.engine.views import Factors, View
from spectral_moments.teaching.cycles import mean_over_disjoint


def make_view(
    systems,  # dict: name -> matrix
    center=False,
    groups=None,  # dict: kind of axis -> groups
    counts=None,  # dict: name -> 1 where measured, 0 where missing
    population=None,  # dict: name -> size
    shared=False,
):
    "A view of systems, whose columns are of one kind if there is one, or they are shared."
    one = shared or len(systems) == 1
    spaces = {s: "features" if one else f"features of {s}" for s in systems}
    factors, axes, groups = {}, {}, groups or {}
    for s, x in systems.items():
        known, R = (counts or {}).get(s), (population or {}).get(s)
        x = x if known is None else x * known
        factors[s] = Factors(x, x, known, known, None)
        axes[spaces[s]] = AxisInfo(x.shape[1], None, R)
    inputs = AxisInfo(len(x), groups.get("inputs"))
    return View(factors, spaces, {"inputs": inputs} | axes, center, {})


def check(systems, words, **options):
    "Compare with the definition."
    view = make_view(systems, **options)
    expected = [cycle_mean(systems, word, **options) for word in words]
    values = word_means(view, tuple(map(tuple, words)), deviations=False).values
    np.testing.assert_allclose(values, expected, rtol=1e-10)


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


# --- digits -------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(4, 4), (5, 4), (4, 6)])
def test_the_bound_on_rounding(shape):
    "Sums over distinct indices are small differences of large ones."
    phi = normal(shape, sum(shape))
    found = word_means(make_view({"a": phi}), (("a",) * 4,))
    exact = float(mean_over_disjoint(rational(phi), 4))
    assert abs(found.values[0] - exact) <= 4 * found.rounding[0]


def test_the_order_of_the_rows_is_within_the_bound_on_rounding():
    x, words = 1.0 + 1e-3 * normal((40, 40)), (("a",), ("a", "a"), ("a",) * 4)
    found = word_means(make_view({"a": x}), words)
    turned = word_means(make_view({"a": x[::-1]}), words)
    assert (abs(turned.values - found.values) <= 4 * found.rounding).all()


def test_a_mean_that_is_rounded_is_removed_again():
    x, far = 3 * normal((8, 3)), normal((8, 3), 1) + 1e7
    x[7, 1] = 1e10
    views = [make_view({"a": x, "b": y}, center=True) for y in (far, far - 1e7)]
    one, other = (word_means(view, (("a", "b"),)).values for view in views)
    np.testing.assert_allclose(one, other, rtol=1e-3)


def test_trivial_matrices():
    words = tuple(("a",) * n for n in range(1, 5))
    ones = word_means(make_view({"a": np.ones((7, 6))}), words)
    np.testing.assert_allclose(ones.values, np.ones(4), rtol=1e-12)
    for deviations in ones.deviations.values():
        np.testing.assert_allclose(deviations, 0, atol=1e-12)


# --- without each unit --------------------------------------------------------------------


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


def powers(phi, n_max=2, **options):
    words = tuple(("a",) * n for n in range(1, n_max + 1))
    return word_means(make_view({"a": phi}, **options), words, deviations=False).values


@pytest.mark.parametrize("center", [False, True], ids=["", "centred"])
def test_finite_populations_are_unbiased(center):
    "The mean over all subsets of the features is the value of the whole population."
    table = normal((8, 5), 11) + 0.3
    whole = powers(table, 3, center=center, population={"a": 5})
    subsets = itertools.combinations(range(5), 3)
    known = dict(center=center, population={"a": 5})
    mean = np.mean([powers(table[:, list(s)], 3, **known) for s in subsets], axis=0)
    np.testing.assert_allclose(mean, whole, rtol=1e-10)


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
