"""All cycles and the graph sums below them: oracles, extremes, fuzzing, populations."""

import itertools
import math
from fractions import Fraction

import dimensionality
import numpy as np
import pytest
from conftest import peak_memory
from hypothesis import given, settings
from hypothesis import strategies as st

import spectral_moments as sm
from spectral_moments import all_cycles
from spectral_moments.engine.graphs import (
    Units,
    canonical,
    cycle,
    graph_terms,
    word_means,
)
from spectral_moments.engine.planner import graph_sums, make_plan
from spectral_moments.engine.sources import Pair
from spectral_moments.teaching.cycles import mean_over_disjoint

# where long double is a plain double, small matrices lose digits
EXTENDED = np.finfo(np.longdouble).eps < 1e-18
RTOL = 1e-9 if EXTENDED else 1e-6


def exact_sum(pattern, matrices):
    "Sum over distinct rows and columns, term by term, in the arithmetic of the entries."
    P, Q = next(iter(matrices.values())).shape
    rows, columns = (1 + max(edge[side] for edge in pattern) for side in (0, 1))
    return sum(
        math.prod(matrices[label][i[row], a[column]] for row, column, label in pattern)
        for i in itertools.permutations(range(P), rows)
        for a in itertools.permutations(range(Q), columns)
    )


def distinct_sum(pattern, matrices):
    "The same through graphs."
    graphs, weights = zip(*graph_terms(pattern))
    totals = graph_sums(graphs, matrices).totals
    return sum(weight * total for weight, total in zip(weights, totals, strict=True))


def powers(n_max):
    "The words of m(1), ..., m(n_max)."
    return tuple(("phi",) * n for n in range(1, n_max + 1))


def cycle_means(pair, n_max, population=(None, None), **options):
    "All cycles of one system."
    sizes = dict(zip(("inputs", "features"), population))
    return word_means({"phi": pair}, powers(n_max), population=sizes, **options)


def whole(rng, shape, top=3):
    "A matrix of Python integers, on which every plan is exact."
    return rng.integers(-top, top + 1, shape).astype(object)


def rational(phi):
    return np.vectorize(Fraction, otypes=[object])(phi)


# --- the combinatorics --------------------------------------------------------------------


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_canonical_form_ignores_names_and_nothing_else(data):
    edge = st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from("ab"))
    graph = data.draw(st.lists(edge, min_size=1, max_size=8))
    rows = data.draw(st.permutations(range(4)))
    columns = data.draw(st.permutations(range(4)))
    renamed = [(rows[i], columns[a], label) for i, a, label in graph]
    renamed = data.draw(st.permutations(renamed))
    form = canonical(graph)[0]
    assert canonical(renamed)[0] == canonical(form)[0] == form
    swapped = canonical([(a, i, label) for i, a, label in graph])[0]
    assert canonical([(a, i, label) for i, a, label in swapped])[0] == form


def test_plans_are_cached():
    graphs = tuple(graph for graph, _ in graph_terms(cycle(4)))
    assert make_plan(graphs) is make_plan(graphs)


# --- sums against the definition ----------------------------------------------------------


@pytest.mark.parametrize(
    ("P", "Q", "n"),
    [(2, 2, 2), (2, 60, 2), (60, 2, 2), (3, 3, 3), (3, 12, 3), (20, 3, 3)]
    + [(4, 4, 4), (5, 4, 4), (4, 7, 4), (7, 4, 4), (12, 20, 4), (5, 5, 5), (6, 6, 5)],
)
def test_equals_the_direct_sum(P, Q, n):
    phi = np.random.default_rng(P + Q).standard_normal((P, Q))
    fractions = rational(phi)
    exact = distinct_sum(cycle(n), {"phi": fractions})
    exact = float(exact / (math.perm(P, n) * math.perm(Q, n)))
    rtol = RTOL if n < 5 else 100 * RTOL
    np.testing.assert_allclose(all_cycles(phi, n)[-1], exact, rtol=rtol)
    if math.perm(P, n) * math.perm(Q, n) < 2e4:  # and that is the direct sum, in fractions
        direct = float(mean_over_disjoint(fractions, n))
        np.testing.assert_allclose(exact, direct, rtol=1e-15)


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_any_pattern_with_labels(data):
    "Patterns that are no cycles, disconnected ones included, with up to two matrices."
    edge = st.tuples(st.integers(0, 2), st.integers(0, 2), st.sampled_from("ab"))
    edges = data.draw(st.lists(edge, min_size=1, max_size=6))
    rows = {old: new for new, old in enumerate(sorted({edge[0] for edge in edges}))}
    columns = {old: new for new, old in enumerate(sorted({edge[1] for edge in edges}))}
    pattern = tuple((rows[i], columns[a], label) for i, a, label in edges)
    shape = data.draw(st.sampled_from([(3, 4), (4, 3), (3, 3)]))
    rng = np.random.default_rng(data.draw(st.integers(0, 100)))
    matrices = {"a": whole(rng, shape), "b": whole(rng, shape)}
    assert distinct_sum(pattern, matrices) == exact_sum(pattern, matrices)


def test_blocks_of_columns_add_up():
    "A matrix wide enough for several blocks gives what one block gives."
    rng = np.random.default_rng(8)
    phi = rng.standard_normal((6, 700)) + 0.2  # 2**18 // 700 = 374 columns to a block
    wide = all_cycles(phi, 4)
    order = rng.permutation(700)
    np.testing.assert_allclose(all_cycles(phi[:, order], 4), wide, rtol=1e-9)
    kernel = phi @ phi.T
    second = (kernel**2).sum() - (np.diag(kernel) ** 2).sum()
    second += -((phi**2).sum(0) ** 2).sum() + (phi**4).sum()
    np.testing.assert_allclose(wide[1], second / (30 * 700 * 699), rtol=1e-10)


# --- populations --------------------------------------------------------------------------


def finite(phi, n_max, population, center=False):
    return cycle_means(Pair(phi, phi), n_max, population=population, center=center).values


def test_population_with_trials_and_gaps():
    "Gaps: each merged pattern over its own count; equal trials are one."
    rng = np.random.default_rng(22)
    table, gaps = rng.standard_normal((5, 4)), np.zeros((3, 3), dtype=bool)
    gaps[0, 1] = True

    def statistic(x):
        known = 1.0 * ~gaps
        pair = Pair(x * known, x * known, (known, known))
        return cycle_means(pair, 2, population=(5, 4)).values

    values = [
        statistic(table[np.ix_(r, c)])
        for r in itertools.permutations(range(5), 3)
        for c in itertools.permutations(range(4), 3)
    ]
    np.testing.assert_allclose(np.mean(values, axis=0), sm.naive(table, 2), rtol=1e-9)
    x = rng.standard_normal((6, 5))
    two = cycle_means(Pair(x, x.copy()), 3, population=(8, 9)).values
    np.testing.assert_allclose(two, finite(x, 3, (8, 9)), rtol=1e-9)


def test_errors_shrink_by_the_share_that_was_seen():
    "n = 1 is a mean over entries, with the textbook correction for finite populations."
    phi = np.random.default_rng(24).standard_normal((20, 15))
    full = sm.estimate(phi, 1, center=False)
    half = sm.estimate(phi, 1, population=(40, 60), center=False)
    np.testing.assert_allclose(
        half.parts["inputs"], full.parts["inputs"] / np.sqrt(2), rtol=1e-9
    )
    np.testing.assert_allclose(
        half.parts["features"], full.parts["features"] * np.sqrt(0.75), rtol=1e-9
    )


# --- without each row and column ----------------------------------------------------------


# --- properties of the estimate -----------------------------------------------------------


def test_exact_zeros_are_zeros():
    "An estimate that is zero has not lost its digits."
    for phi in (np.eye(2), [[1.0, 1.0], [1.0, 0.0]], [[1.0, -1.0, 1.0, -1.0]] * 4):
        assert np.isfinite(all_cycles(phi, 2)).all()
        assert np.isfinite(all_cycles(np.tile(phi, (2, 1)), 2, center=True)).all()
    np.testing.assert_allclose(all_cycles(np.ones((7, 6)), 5), np.ones(5), rtol=1e-12)
    np.testing.assert_array_equal(all_cycles(np.zeros((5, 5)), 5), np.zeros(5))


# --- input --------------------------------------------------------------------------------


def test_long_matrices_need_no_square_of_the_long_side():
    "Nor many temporaries: 6000 x 6000 would be 300 times the matrix."
    for shape, most in (((20, 6000), 30), ((250, 250), 20)):
        phi = np.random.default_rng(14).standard_normal(shape)
        all_cycles(phi[:, :50], 4)  # the plan is made and kept
        assert peak_memory(all_cycles, phi, 4) < most * phi.nbytes


# --- torch --------------------------------------------------------------------------------

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("shape", [(5, 7), (7, 5), (40, 30), (300, 310)])
def test_torch_equals_numpy(shape):
    phi = np.random.default_rng(15).standard_normal(shape) + 0.5
    if shape == (300, 310):  # numbers of cycles beyond 2**63
        result = all_cycles(torch.tensor(phi, requires_grad=True), 4)
        np.testing.assert_allclose(result.detach(), all_cycles(phi, 4), rtol=1e-6)
        return
    whole, single = torch.tensor(phi).round().long(), torch.tensor(phi).float()
    for tensor in (torch.tensor(phi), torch.tensor(phi, requires_grad=True), whole, single):
        result = all_cycles(tensor, 5)
        assert isinstance(result, torch.Tensor) and result.dtype == torch.float64
        expected = all_cycles(tensor.detach().double().numpy(), 5)
        np.testing.assert_allclose(result.detach().numpy(), expected, rtol=1e-6)
    with pytest.raises(ValueError, match="infinite"):
        all_cycles(torch.full((2, 2), float("inf")), 2)


@pytest.mark.filterwarnings("error")
def test_torch_gradients():
    phi = torch.tensor(
        np.random.default_rng(16).standard_normal((5, 6)),
        dtype=torch.float64,
        requires_grad=True,
    )
    assert torch.autograd.gradcheck(lambda x: all_cycles(x, 5), phi, atol=1e-6)
    before = phi.detach().clone()
    all_cycles(phi, 5).sum().backward()
    assert phi.grad.shape == phi.shape
    assert torch.equal(phi.detach(), before)


def test_finite_population_of_the_package_dimensionality():
    "Its sum over four rows lacks the merges into two pairs; in the limit it agrees."
    moment = lambda x, R, C: cycle_means(
        Pair(x, x), 2, center=True, population=(R, C)
    ).values[1]

    def theirs(x, R, C):
        parts = dimensionality.participation_ratio_finite(x, R, C, return_parts=True)
        return parts["B"] * x.size**2

    table = np.random.default_rng(2).standard_normal((7, 5)) + 0.5
    limit = moment(table, None, None)
    np.testing.assert_allclose(theirs(table, 10**9, 10**9), limit, rtol=1e-4)
    truth = sm.naive(table - table.mean(0), 2)[1]
    np.testing.assert_allclose(moment(table, 7, 5), truth, rtol=1e-10)
    assert abs(theirs(table, 7, 5) / truth - 1) > 0.1


def test_single_rows_are_not_listed():
    assert Units(10**12).sizes == {1: 10**12}  # a list of them would not fit in memory
