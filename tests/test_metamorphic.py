"""What must not change the answer, over all pairs of options."""

import copy
import itertools

import numpy as np
import pytest
from test_doors import CASES, NO_PAIR_SUMS, Case, by_array

from spectral_moments.engine import methods

UNITS, WIDTH = 9, 6


@pytest.fixture(autouse=True)
def way(request, monkeypatch):
    "All cycles at once, or pair sums over all rows and a block."
    if request.param == "tall":
        monkeypatch.setattr(methods, "TALLEST", 4)
        monkeypatch.setattr(methods, "TALLEST_RATIO", 0)


def changed(case, **fields):
    "A copy of a case with other trials, groups, columns or population."
    new = copy.copy(case)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def each(case, function):
    "The trials of each system after a function of (trials, name)."
    return {s: function(x, s) for s, x in case.trials.items()}


def assert_same(one, two, factor=1.0, rtol=1e-8, error_rtol=None):
    "Values and errors of two cases, up to a factor of the values."
    error_rtol = error_rtol or 10 * rtol
    one, two = by_array(one), by_array(two)
    size = abs(one.values) + sum(one.error_by_source.values())
    assert np.all(abs(two.values / factor - one.values) <= rtol * size)
    for kind, error in one.error_by_source.items():
        np.testing.assert_allclose(
            two.error_by_source[kind] / factor, error, rtol=error_rtol, atol=1e-10
        )


def cases(with_one_of=(), without=()):
    "Cases that have one of some options, if any are given, and none of others."
    some = [options for options in CASES if not {*without} & {*options}]
    some = [options for options in some if len(options) < 3]
    some = [options for options in some if not with_one_of or {*with_one_of} & {*options}]
    params = []
    for way, options in itertools.product(("memory", "tall"), some):
        if way == "memory" or not NO_PAIR_SUMS & {*options}:
            case = Case(options, UNITS, WIDTH)
            params.append(pytest.param(case, way, id=f"{way}: {' x '.join(options)}"))
    return pytest.mark.parametrize(("case", "way"), params, indirect=["way"])


@cases(with_one_of=["center"], without=["poisson"])
def test_a_shift_of_the_columns(case):
    shift = np.random.default_rng(0).normal(size=WIDTH + 1)
    for far, rtol in ((10 * shift, 1e-9), (1000 * shift, 1e-4)):
        moved = {s: x + far[: x.shape[2]] for s, x in case.trials.items()}
        assert_same(case, changed(case, trials=moved), rtol=rtol)


@cases(without=["poisson"])
def test_scale(case):
    orders = np.array([len(word) for word in case.words])
    factors = dict(zip(case.trials, (3.7, 0.2)))
    total = [np.prod([factors[s] ** 2 for s in word]) for word in case.words]
    scaled = each(case, lambda x, s: factors[s] * x)
    assert_same(case, changed(case, trials=scaled), np.array(total))
    one = by_array(case)
    for power in (-300, 60):
        scaled = {s: x * 2.0**power for s, x in case.trials.items()}
        two = by_array(changed(case, trials=scaled))
        inside = abs(2 * power * orders) < 1000
        known, expected = two.values[inside], np.ldexp(one.values, 2 * power * orders)
        np.testing.assert_array_equal(known, expected[inside])  # to the last digit


@cases()
def test_the_order_of_rows_and_columns(case):
    rng = np.random.default_rng(1)
    rows = rng.permutation(case.n_rows)
    moved = each(case, lambda x, s: x[:, rows])
    groups = None if case.groups is None else 7 - 2 * case.groups[rows]  # other labels
    columns = {s: rng.permutation(x.shape[2]) for s, x in case.trials.items()}
    moved = {s: x[:, :, columns[s]] for s, x in moved.items()}
    labels = {s: -x[columns[s]] for s, x in case.columns.items()}
    assert_same(case, changed(case, trials=moved, groups=groups, columns=labels))


@cases(without=["groups", "equal groups"])
def test_groups_of_one_row(case):
    single = changed(case, groups=np.arange(case.n_rows)[::-1])
    single.words = case.words = case.words if single.exact == case.exact else case.words[:1]
    assert_same(case, single, rtol=1e-6)


@cases(without=["column groups", "population", "all features", "groups", "equal groups"])
def test_groups_of_one_column(case):
    single = {s: np.arange(x.shape[2]) for s, x in case.trials.items()}
    few = [word for word in case.words if len(word) < 3]
    single = changed(case, columns=single, words=few)
    near = 0.4 if case.center else None  # pair sums are first order in 1 / 9
    assert_same(changed(case, words=few), single, error_rtol=near)


@cases(with_one_of=["groups", "equal groups"])
def test_a_group_that_is_there_twice_in_its_rows(case):
    "Each row of one group is repeated: a group is drawn, then a row of it."
    again = np.flatnonzero(case.groups == 2)
    rows = np.concatenate([np.arange(case.n_rows), again, again])
    twice = each(case, lambda x, s: x[:, rows])
    assert_same(case, changed(case, trials=twice, groups=case.groups[rows]))


@cases(with_one_of=["column groups"])
def test_a_column_that_is_there_twice_in_its_group(case):
    (name,) = case.columns
    labels = case.columns[name]
    columns = np.concatenate([np.arange(len(labels)), np.flatnonzero(labels == 0)])
    twice = case.trials | {name: case.trials[name][:, :, columns]}
    assert_same(case, changed(case, trials=twice, columns={name: labels[columns]}))


@cases(with_one_of=["two systems"])
def test_systems_in_another_order(case):
    other = {s: case.trials[s] for s in reversed(case.trials)}
    assert_same(case, changed(case, trials=other))
    turned = [word[1:] + word[:1] for word in case.words]  # a cycle begins anywhere
    assert_same(case, changed(case, words=turned))


@cases(without=["population", "all features", "column groups"])
def test_an_ever_larger_population(case):
    "With repeats too."
    near = {s: 10**9 for s in case.trials}
    first_order = 0.1 if "missing" in case.on else None
    assert_same(case, changed(case, population=near), rtol=1e-7, error_rtol=first_order)
