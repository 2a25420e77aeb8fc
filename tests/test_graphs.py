"""All cycles and the graph sums below them: oracles, extremes, fuzzing, populations."""

import itertools
import math
import tracemalloc
from fractions import Fraction

import dimensionality
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spectral_moments as sm
from spectral_moments import all_cycles
from spectral_moments.engine.graphs import (
    Layout,
    canonical,
    cycle,
    graph_terms,
    moebius,
    set_partitions,
    word_means,
    word_patterns,
    word_weights,
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


@pytest.mark.parametrize("n", range(1, 6))
def test_inclusion_exclusion_counts_distinct_tuples(n):
    for size in range(1, 8):
        total = sum(moebius(p) * size ** len(set(p)) for p in set_partitions(n))
        assert total == math.perm(size, n)


def test_number_of_graphs():
    assert [len(graph_terms(cycle(n))) for n in range(1, 6)] == [1, 4, 10, 45, 177]
    centred = Layout(center=True)
    counts = [len(word_weights(powers(n), centred).graphs) for n in (1, 2, 3, 4)]
    assert counts == [1, 6, 26, 133]


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


def test_set_of_cycle_graphs_is_closed_under_transposition():
    for n in (2, 3, 4):
        terms = dict(graph_terms(cycle(n)))
        for graph, weight in terms.items():
            turned = canonical([(a, i, label) for i, a, label in graph])[0]
            assert terms[turned] == weight


def test_plans_are_cached():
    graphs = tuple(graph for graph, _ in graph_terms(cycle(4)))
    assert make_plan(graphs) is make_plan(graphs)


# --- sums against the definition ----------------------------------------------------------


@pytest.mark.parametrize("shape", [(2, 2), (2, 9), (9, 2), (3, 3), (3, 8), (6, 4), (4, 6)])
def test_exact_on_integers(shape):
    phi = whole(np.random.default_rng(0), shape)
    for n in range(1, min(*shape, 4) + 1):
        assert distinct_sum(cycle(n), {"phi": phi}) == exact_sum(cycle(n), {"phi": phi})


def test_exact_on_integers_at_order_five():
    phi = whole(np.random.default_rng(1), (5, 6))
    assert distinct_sum(cycle(5), {"phi": phi}) == exact_sum(cycle(5), {"phi": phi})


@pytest.mark.parametrize(
    ("P", "Q", "n"),
    [(2, 2, 2), (2, 60, 2), (60, 2, 2), (3, 3, 3), (3, 12, 3), (20, 3, 3)]
    + [(4, 4, 4), (5, 4, 4), (4, 7, 4), (7, 4, 4), (5, 5, 5)],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_equals_the_direct_sum(P, Q, n, seed):
    phi = np.random.default_rng(seed).standard_normal((P, Q))
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


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("two", [False, True])
def test_centred_patterns(two, n):
    "Every row position whole or split, one by one; subtracted means change nothing."
    rng = np.random.default_rng(6)
    matrices = {
        label: whole(rng, (5, 3)) + 4 for label in (("phi", "phi'") if two else ("phi",))
    }
    layout = Layout(center=True, leaving=(("phi", "phi'"),) if two else ())
    exact = 0
    for coefficient, pattern in word_patterns(("phi",) * n, layout):
        total = exact_sum(pattern, matrices)
        assert distinct_sum(pattern, matrices) == total
        sizes = zip((5, 3), (0, 1))
        ways = (math.perm(size, 1 + max(e[side] for e in pattern)) for size, side in sizes)
        exact += Fraction(int(coefficient) * total) / math.prod(ways)
    enter, *leave = (x.astype(float) for x in matrices.values())
    pair = Pair(enter, leave[0] if leave else enter)
    found = cycle_means(pair, n, center=True).values[-1]
    np.testing.assert_allclose(found, float(exact), rtol=1e-9)


def test_mask_counts_observed_cycles():
    rng = np.random.default_rng(7)
    mask = (rng.random((5, 4)) < 0.7).astype(object) * 1
    assert distinct_sum(cycle(3), {"phi": mask}) == exact_sum(cycle(3), {"phi": mask})


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


def test_weights_of_a_population_are_probabilities():
    "Without centring the weights of all merged patterns add up to one."
    for population in ((None, None), (5, None), (None, 7), (6, 8), (2, 1)):
        for n in (1, 2, 3, 4):
            sizes = zip(("inputs", "features"), population)
            finite = Layout(population=tuple(x for x in sizes if x[1]))
            terms = word_patterns(("phi",) * n, finite)
            np.testing.assert_allclose(sum(weight for weight, _ in terms), 1, rtol=1e-14)


def test_large_populations_are_infinite():
    phi = np.random.default_rng(20).standard_normal((9, 8))
    for center, n in ((False, 4), (True, 3)):
        large = finite(phi, n, (10**12, 10**12), center)
        np.testing.assert_allclose(large, finite(phi, n, (None, None), center), rtol=1e-6)


@pytest.mark.parametrize("center", [False, True], ids=["", "centred"])
@pytest.mark.parametrize("open_side", [None, 0, 1], ids=["finite", "inputs", "features"])
def test_population_is_unbiased(open_side, center):
    "Every sample without replacement; an infinite side is drawn with replacement."
    rng = np.random.default_rng(21)
    table = rng.standard_normal((5, 3)) + 0.5
    table = table[:, :2] if open_side == 1 else table[:5]
    R, C = table.shape
    P, Q = (4 if center else 3), 2
    population = [R, C]
    if open_side is not None:
        population[open_side] = None
    rows = itertools.combinations(range(R), P)
    columns = itertools.combinations(range(C), Q)
    if open_side == 0:
        table, rows = table[:3], itertools.product(range(3), repeat=P)
    if open_side == 1:
        columns = itertools.product(range(C), repeat=Q)
    rows, columns = list(map(list, rows)), list(map(list, columns))
    values = [
        finite(table[np.ix_(r, c)], 2, tuple(population), center)
        for r in rows
        for c in columns
    ]
    truth = sm.naive(table - center * table.mean(0), 2)
    np.testing.assert_allclose(np.mean(values, axis=0), truth, rtol=1e-9)


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


def test_population_through_the_front_door():
    phi = np.random.default_rng(23).standard_normal((8, 7)) + 0.2
    est = sm.estimate(phi, 3, population=(8, 7), stderr=True, center=False)
    np.testing.assert_allclose(est.values, sm.naive(phi, 3), rtol=1e-9)
    np.testing.assert_array_equal(est.stderr, 0)
    part = sm.estimate(phi, 3, population=(None, 7), center=False)
    np.testing.assert_array_equal(part.parts["features"], 0)
    assert (part.parts["inputs"] > 0).all()
    for bad in ((7, 7), (8, 6), (0, 9), (9,), (8.0, 7), "all"):
        with pytest.raises((ValueError, TypeError), match="population"):
            sm.estimate(phi, 3, population=bad)


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


@pytest.mark.parametrize("gaps", [False, True], ids=["", "gaps"])
@pytest.mark.parametrize("T", [1, 2])
def test_delete_one(T, gaps):
    rng = np.random.default_rng(25)
    trials = rng.standard_normal((T, 7, 8))
    known = 1.0 * (rng.random((T, 7, 8)) > 0.15 * gaps)

    def pair(keep_rows, keep_columns):
        x, k = ((y[:, keep_rows][:, :, keep_columns]) for y in (trials * known, known))
        return Pair(x[0], x[-1] if T > 1 else x[0], (k[0], k[-1]) if gaps else None)

    rows, columns = np.arange(7), np.arange(8)
    found = cycle_means(pair(rows, columns), 3, replicates=True)
    for i in rows:
        without = cycle_means(pair(rows[rows != i], columns), 3).values
        np.testing.assert_allclose(found.without["inputs"][:, i], without, rtol=1e-7)
    for a in columns:
        without = cycle_means(pair(rows, columns[columns != a]), 3).values
        np.testing.assert_allclose(found.without["features"][:, a], without, rtol=1e-7)


def test_orders_without_a_cycle_are_nan_with_errors_too():
    "A diagonal of known entries: no cycle of order two."
    phi = np.where(np.eye(4), 1.0, np.nan) * np.arange(1, 5)
    est = sm.estimate(phi, 2, method="all_cycles", center=False)
    assert np.isfinite(est.values[0]) and np.isnan(est.values[1])
    assert any("too few fully observed cycles at n = 2" in note for note in est.notes)


# --- properties of the estimate -----------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.integers(3, 40), st.integers(3, 60))
@settings(max_examples=25, deadline=None)
def test_invariances(seed, P, Q):
    rng = np.random.default_rng(seed)
    phi = rng.standard_normal((P, Q)) + 1
    n_max = min(P, Q, 5)
    value = all_cycles(phi, n_max)
    tolerance = {"rtol": 1e-6, "atol": 1e-9}
    shuffled = phi[rng.permutation(P)][:, rng.permutation(Q)]
    np.testing.assert_allclose(all_cycles(shuffled, n_max), value, **tolerance)
    np.testing.assert_allclose(all_cycles(phi.T, n_max), value, **tolerance)
    np.testing.assert_array_equal(
        all_cycles(phi * 4, n_max), value * 16.0 ** np.arange(1, n_max + 1)
    )  # a power of two changes no digit
    for fewer in range(1, n_max):
        np.testing.assert_allclose(all_cycles(phi, fewer), value[:fewer], **tolerance)


def test_rank_one_of_ones():
    np.testing.assert_allclose(all_cycles(np.ones((7, 6)), 5), np.ones(5), rtol=1e-12)


def test_zero_matrix():
    np.testing.assert_array_equal(all_cycles(np.zeros((5, 5)), 5), np.zeros(5))


@pytest.mark.parametrize(
    "phi",
    [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 1.0], [1.0, 0.0]], [[1.0, -1.0, 1.0, -1.0]] * 4],
)
@pytest.mark.parametrize("center", [False, True])
def test_exact_zeros_are_zeros(phi, center):
    "An estimate that is zero has not lost its digits."
    phi = np.tile(phi, (2, 1))
    if not center:
        phi = phi[: len(phi) // 2]
    assert np.isfinite(all_cycles(phi, 2, center=center)).all()


@pytest.mark.parametrize("size", [1e30, 1e-30, 1e38, 1e-38])
def test_extreme_scale(size):
    rng = np.random.default_rng(9)
    for shape in ((6, 8), (40, 50)):
        phi = rng.random(shape)
        expected = all_cycles(phi, 3)
        got = all_cycles(phi * size, 3)
        assert np.isfinite(got).all() and (got != 0).all()
        n = np.arange(1, 4)
        np.testing.assert_allclose(
            np.log(got), np.log(expected) + 2 * n * np.log(size), rtol=1e-11
        )


def test_result_out_of_range_is_nan():
    for size in (1e100, 5e-324):
        with pytest.warns(sm.EstimateWarning, match="beyond the range"):
            assert np.isnan(all_cycles(np.full((5, 5), size), 2)[1])


def test_accuracy_where_almost_everything_cancels():
    rng = np.random.default_rng(10)
    for P, Q, n_max in [(6, 6, 5), (12, 30, 4)]:
        phi = rng.standard_normal((P, Q))
        fractions = {"phi": rational(phi)}
        for n in range(1, n_max + 1):
            exact = distinct_sum(cycle(n), fractions) / (math.perm(P, n) * math.perm(Q, n))
            value = all_cycles(phi, n_max)[n - 1]
            np.testing.assert_allclose(value, float(exact), rtol=1e-8 if EXTENDED else 1e-5)


def test_an_outlier_is_reported():
    phi = np.random.default_rng(11).random((40, 40))
    phi[0, 0] = 1e7
    with pytest.warns(sm.EstimateWarning, match="n = .*4 .*increasing"):
        assert np.isnan(all_cycles(phi, 4)[3])


@pytest.mark.filterwarnings("error")
def test_ordinary_data_does_not_warn():
    rng = np.random.default_rng(12)
    for shape in ((5, 5), (20, 30), (60, 40)):
        for draw in (rng.standard_normal, rng.random, rng.standard_cauchy):
            all_cycles(draw(shape), 3)


# --- input --------------------------------------------------------------------------------


def test_input_types(tmp_path):
    phi = np.arange(12.0).reshape(3, 4) % 5
    expected = all_cycles(phi, 3)
    frozen = phi.copy()
    frozen.flags.writeable = False
    np.save(tmp_path / "phi.npy", phi)
    mapped = np.load(tmp_path / "phi.npy", mmap_mode="r")
    others = phi.tolist(), phi.astype("f4"), phi.astype("i8"), np.asfortranarray(phi)
    for other in (*others, frozen, mapped, phi[None], np.repeat(phi, 2, axis=1)[:, ::2]):
        result = all_cycles(other, 3)
        assert type(result) is np.ndarray and result.dtype == np.float64
        np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(phi, frozen)  # untouched


@pytest.mark.parametrize(
    ("phi", "n_max", "message"),
    [
        (np.ones((8, 9)), 6, "n_max = 6 .*5.*increasing"),
        (np.ones((3, 9)), 4, r"n_max = 4 .*min\(P, Q\)"),
        (np.ones((3, 9)), 0, "n_max = 0"),
        ([[1.0, np.inf], [1.0, 2.0]], 2, "infinite"),
        (np.ones((0, 3)), 1, "empty"),
    ],
)
def test_errors_name_the_argument(phi, n_max, message):
    with pytest.raises(ValueError, match=message):
        all_cycles(phi, n_max)


def test_temporaries_are_dropped():
    phi = np.random.default_rng(13).standard_normal((250, 250))
    all_cycles(phi, 4)  # the plan is made and kept
    tracemalloc.start()
    all_cycles(phi, 4)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * phi.nbytes


def test_long_matrices_need_no_square_of_the_long_side():
    phi = np.random.default_rng(14).standard_normal((20, 6000))
    all_cycles(phi[:, :50], 4)
    tracemalloc.start()
    all_cycles(phi, 4)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30 * phi.nbytes < 6000**2 * 8


# --- torch --------------------------------------------------------------------------------

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("shape", [(5, 7), (7, 5), (40, 30)])
def test_torch_equals_numpy(shape):
    phi = np.random.default_rng(15).standard_normal(shape) + 0.5
    for tensor in (torch.tensor(phi), torch.tensor(phi, requires_grad=True)):
        result = all_cycles(tensor, 5)
        assert isinstance(result, torch.Tensor) and result.dtype == torch.float64
        np.testing.assert_allclose(result.detach().numpy(), all_cycles(phi, 5), rtol=1e-6)


def test_torch_large():
    "Numbers of cycles beyond 2**63."
    phi = np.random.default_rng(17).standard_normal((300, 310)) + 0.5
    result = all_cycles(torch.tensor(phi), 4)
    np.testing.assert_allclose(result.numpy(), all_cycles(phi, 4), rtol=1e-8)


def test_torch_single_precision_and_integers():
    phi = np.arange(20).reshape(4, 5) % 7
    for dtype in (torch.float32, torch.int64):
        result = all_cycles(torch.tensor(phi, dtype=dtype), 4)
        np.testing.assert_allclose(result.numpy(), all_cycles(phi, 4), rtol=1e-6)


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


def test_torch_errors():
    with pytest.raises(ValueError, match="infinite"):
        all_cycles(torch.tensor([[1.0, float("inf")], [1.0, 1.0]]), 2)


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
