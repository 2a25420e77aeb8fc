"""What no reader of the chapter on cycles needs to see."""

from fractions import Fraction

import numpy as np
import pytest
from conftest import fractions
from hypothesis import given, settings
from hypothesis import strategies as st

from spectral_moments.teaching.cycles import (
    cycle_product,
    cycles_per_choice,
    mean_over_disjoint,
    mean_over_increasing,
    second_moment,
)

shapes = st.tuples(st.integers(1, 5), st.integers(1, 5))


@settings(max_examples=30, deadline=None)
@given(shape=shapes, seed=st.integers(0, 1000))
def test_order_one_is_the_mean_square(shape, seed):
    phi = fractions(shape, seed)
    expected = sum(x * x for x in phi.flat) / phi.size
    assert mean_over_disjoint(phi, 1) == mean_over_increasing(phi, 1) == expected


@settings(max_examples=20, deadline=None)
@given(
    shape=st.tuples(st.integers(2, 4), st.integers(2, 5)),
    seed=st.integers(0, 1000),
    data=st.data(),
)
def test_invariances_hold_exactly(shape, seed, data):
    n = data.draw(st.integers(2, min(*shape, 3)))
    phi, c = fractions(shape, seed), Fraction(3, 7)
    rng = np.random.default_rng(seed)
    shuffled = phi[np.ix_(rng.permutation(shape[0]), rng.permutation(shape[1]))]
    assert mean_over_disjoint(shuffled, n) == mean_over_disjoint(phi, n)
    assert mean_over_disjoint(phi.T, n) == mean_over_disjoint(phi, n)
    assert mean_over_increasing(phi[::-1, ::-1].T, n) == mean_over_increasing(phi, n)
    assert mean_over_increasing(c * phi, n) == c ** (2 * n) * mean_over_increasing(phi, n)


def test_order_two_agrees_exactly():
    phi = fractions((4, 5), 1)
    assert mean_over_increasing(phi, 2) == mean_over_disjoint(phi, 2)
    value = float(mean_over_disjoint(phi, 2))
    np.testing.assert_allclose(second_moment(phi.astype(float)), value, rtol=1e-13)


def test_second_moment_of_integers_and_lists():
    assert second_moment([[1, 1], [1, 1]]) == pytest.approx(1.0, rel=1e-15)
    assert second_moment(np.array([[1, 2], [3, 4]], dtype=np.int8)) == pytest.approx(24.0)


def test_constant_matrix():
    for n in (1, 2, 3):
        assert mean_over_disjoint(np.full((3, 4), Fraction(1, 2)), n) == Fraction(1, 4**n)


def test_number_of_cycles():
    assert [cycles_per_choice(n) for n in (2, 3, 4, 5)] == [1, 6, 72, 1440]


def test_cycle_product_needs_as_many_columns_as_rows():
    with pytest.raises(ValueError, match="zip"):
        cycle_product(np.ones((3, 3)), (0, 1, 2), (0, 1))


@pytest.mark.parametrize("mean_over", [mean_over_disjoint, mean_over_increasing])
def test_bad_orders(mean_over):
    with pytest.raises(ValueError, match="n_max = 3 .* 2 x 5 matrix"):
        mean_over(np.ones((2, 5)), 3)
    with pytest.raises(TypeError, match="whole number"):
        mean_over(np.ones((2, 5)), 1.5)
