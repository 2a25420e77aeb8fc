"""`all_cycles` and the graph sums below it: oracles, extremes, fuzzing, input types."""

import itertools
import math
import tracemalloc
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectral_moments.cycles import mean_over_disjoint
from spectral_moments.partitions import (
    all_cycles,
    canonical,
    cycle,
    distinct_sums,
    graph_sums,
    graph_terms,
    make_plan,
    moebius,
    set_partitions,
)

# where long double is a plain double, matrices of 101 to 1024 entries lose digits
EXTENDED = np.finfo(np.longdouble).eps < 1e-18
RTOL = 1e-12 if EXTENDED else 1e-7


def exact_sum(pattern, matrices):
    "Sum over distinct rows and columns, term by term, in the arithmetic of the entries."
    P, Q = next(iter(matrices.values())).shape
    rows, columns = (1 + max(edge[side] for edge in pattern) for side in (0, 1))
    return sum(
        math.prod(matrices[label][i[row], a[column]] for row, column, label in pattern)
        for i in itertools.permutations(range(P), rows)
        for a in itertools.permutations(range(Q), columns)
    )


def whole(rng, shape, top=3):
    "A matrix of Python integers, on which every plan is exact."
    return rng.integers(-top, top + 1, shape).astype(object)


def cycle_graphs(n_max):
    terms = (graph_terms(cycle(n)) for n in range(1, n_max + 1))
    return tuple(dict.fromkeys(graph for term in terms for graph, _ in term))


# --- the combinatorics ---------------------------------------------------------------


@pytest.mark.parametrize("n", range(1, 6))
def test_inclusion_exclusion_counts_distinct_tuples(n):
    for size in range(1, 8):
        total = sum(moebius(p) * size ** len(set(p)) for p in set_partitions(n))
        assert total == math.perm(size, n)


def test_number_of_graphs():
    assert [len(graph_terms(cycle(n))) for n in range(1, 6)] == [1, 4, 10, 45, 177]


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_canonical_form_ignores_names_and_nothing_else(data):
    edge = st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from("ab"))
    graph = data.draw(st.lists(edge, min_size=1, max_size=8))
    rows = data.draw(st.permutations(range(4)))
    columns = data.draw(st.permutations(range(4)))
    renamed = [(rows[i], columns[a], label) for i, a, label in graph]
    renamed = data.draw(st.permutations(renamed))
    form = canonical(graph)
    assert canonical(renamed) == form
    assert canonical(form) == form
    swapped = canonical([(a, i, label) for i, a, label in graph])
    assert canonical([(a, i, label) for i, a, label in swapped]) == form


def test_set_of_cycle_graphs_is_closed_under_transposition():
    for n in (2, 3, 4):
        terms = dict(graph_terms(cycle(n)))
        for graph, weight in terms.items():
            assert terms[canonical([(a, i, label) for i, a, label in graph])] == weight


# --- plans ---------------------------------------------------------------------------


@pytest.mark.parametrize("n_max", [2, 3, 4, 5])
def test_every_expression_is_planned_once_and_dropped_once(n_max):
    plan = make_plan(cycle_graphs(n_max))
    steps = [i for part in plan.steps.values() for i, _ in part]
    assert len(steps) == len(set(steps))
    keys = [(plan.table.nodes[i].op, plan.table.nodes[i].args) for i in steps]
    assert len(keys) == len(set(keys))
    dropped = [a for part in plan.steps.values() for _, gone in part for a in gone]
    assert len(dropped) == len(set(dropped))
    assert not set(dropped) & set(plan.outputs)
    assert all(plan.table.nodes[i].sides != "CC" for i in steps)


def test_number_of_matrix_products():
    plan = make_plan(cycle_graphs(4))
    joins = sum(
        plan.table.nodes[i].op == "join" for part in plan.steps.values() for i, _ in part
    )
    assert joins <= 10
    plan = make_plan(cycle_graphs(5))
    row_loop = [plan.table.nodes[i].op for i, _ in plan.steps["row"]]
    assert row_loop.count("join") == 1


def test_plans_are_cached():
    assert make_plan(cycle_graphs(4)) is make_plan(cycle_graphs(4))


# --- sums against the definition -----------------------------------------------------


@pytest.mark.parametrize("shape", [(2, 2), (2, 9), (9, 2), (3, 3), (3, 8), (6, 4), (4, 6)])
def test_exact_on_integers(shape):
    phi = whole(np.random.default_rng(0), shape)
    for n in range(1, min(*shape, 4) + 1):
        sums = distinct_sums([cycle(n)], {"phi": phi})
        assert sums == [exact_sum(cycle(n), {"phi": phi})]


def test_exact_on_integers_at_order_five():
    phi = whole(np.random.default_rng(1), (5, 6))
    assert distinct_sums([cycle(5)], {"phi": phi}) == [exact_sum(cycle(5), {"phi": phi})]


@pytest.mark.parametrize(
    ("P", "Q", "n"),
    [(2, 2, 2), (2, 60, 2), (60, 2, 2), (3, 3, 3), (3, 12, 3), (20, 3, 3)]
    + [(4, 4, 4), (5, 4, 4), (4, 7, 4), (7, 4, 4), (5, 5, 5)],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_equals_the_direct_sum(P, Q, n, seed):
    phi = np.random.default_rng(seed).standard_normal((P, Q))
    fractions = np.vectorize(Fraction, otypes=[object])(phi)
    exact = distinct_sums([cycle(n)], {"phi": fractions})[0]
    exact = float(exact / (math.perm(P, n) * math.perm(Q, n)))
    np.testing.assert_allclose(all_cycles(phi, n)[-1], exact, rtol=RTOL)
    if math.perm(P, n) * math.perm(Q, n) < 2e4:  # and that is the direct sum, in fractions
        np.testing.assert_allclose(
            exact, float(mean_over_disjoint(fractions, n)), rtol=1e-15
        )


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
    assert distinct_sums([pattern], matrices) == [exact_sum(pattern, matrices)]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_alternating_trials(n):
    rng = np.random.default_rng(5)
    trials = {1: whole(rng, (4, 3)), 2: whole(rng, (4, 3))}
    pattern = cycle(n, labels=(1, 2))
    assert distinct_sums([pattern], trials) == [exact_sum(pattern, trials)]


def test_split_rows_give_the_centred_second_moment():
    "Each row position whole or split into two distinct rows, as centring needs it."
    rng = np.random.default_rng(6)
    phi = whole(rng, (5, 3)) + 4
    patterns = {
        +1: ((0, 0, "phi"), (1, 0, "phi"), (1, 1, "phi"), (0, 1, "phi")),
        -2: ((0, 0, "phi"), (1, 0, "phi"), (2, 1, "phi"), (0, 1, "phi")),
        +4: ((0, 0, "phi"), (1, 0, "phi"), (2, 1, "phi"), (3, 1, "phi")),
    }
    sums = distinct_sums(list(patterns.values()), {"phi": phi})
    assert sums == [exact_sum(pattern, {"phi": phi}) for pattern in patterns.values()]


def test_mask_counts_observed_cycles():
    rng = np.random.default_rng(7)
    mask = (rng.random((5, 4)) < 0.7).astype(object) * 1
    assert distinct_sums([cycle(3)], {"phi": mask}) == [exact_sum(cycle(3), {"phi": mask})]


def test_blocks_of_columns_add_up(monkeypatch):
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


# --- properties of the estimate ------------------------------------------------------


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


@pytest.mark.parametrize("size", [1e30, 1e-30, 1e38, 1e-38])
def test_extreme_scale(size):
    rng = np.random.default_rng(9)
    for shape in ((6, 8), (40, 50)):
        phi = rng.random(shape)
        expected = all_cycles(phi, 4)
        got = all_cycles(phi * size, 4)
        assert np.isfinite(got).all() and (got != 0).all()
        n = np.arange(1, 5)
        np.testing.assert_allclose(
            np.log(got), np.log(expected) + 2 * n * np.log(size), rtol=1e-11
        )


def test_result_out_of_range_is_inf_or_zero():
    with np.errstate(over="ignore"):
        assert all_cycles(np.full((5, 5), 1e100), 2)[1] == np.inf
    assert all_cycles(np.full((5, 5), 5e-324), 2)[1] == 0


def test_accuracy_where_almost_everything_cancels():
    rng = np.random.default_rng(10)
    for P, Q, n_max in [(6, 6, 5), (12, 30, 4), (25, 45, 4)]:
        phi = rng.standard_normal((P, Q))
        fractions = np.vectorize(Fraction, otypes=[object])(phi)
        exact = distinct_sums([cycle(n) for n in range(1, n_max + 1)], {"phi": fractions})
        scale = [math.perm(P, n) * math.perm(Q, n) for n in range(1, n_max + 1)]
        exact = [float(e / c) for e, c in zip(exact, scale, strict=True)]
        np.testing.assert_allclose(
            all_cycles(phi, n_max), exact, rtol=1e-10 if EXTENDED else 1e-7
        )


def test_an_outlier_is_reported():
    phi = np.random.default_rng(11).random((40, 40))
    phi[0, 0] = 1e7
    with pytest.warns(RuntimeWarning, match="n = .*4; .*increasing"):
        all_cycles(phi, 4)


def test_ordinary_data_does_not_warn():
    rng = np.random.default_rng(12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for shape in ((5, 5), (20, 30), (60, 40)):
            for phi in (
                rng.standard_normal(shape),
                rng.random(shape),
                rng.standard_cauchy(shape),
            ):
                all_cycles(phi, 3)


# --- input ---------------------------------------------------------------------------


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
        (np.ones((2, 3, 9)), 2, "phi has 2 trials"),
        ([[1.0, np.nan], [1.0, 2.0]], 2, "NaN"),
        ([[1.0, np.inf], [1.0, 2.0]], 2, "infinite"),
        (np.ones((0, 3)), 1, "empty"),
    ],
)
def test_errors_name_the_argument(phi, n_max, message):
    with pytest.raises(ValueError, match=message):
        all_cycles(phi, n_max)


def test_matrices_of_different_shapes():
    graphs = tuple(graph for graph, _ in graph_terms(cycle(2, labels=("a", "b"))))
    with pytest.raises(ValueError, match="one shape"):
        graph_sums(graphs, {"a": np.ones((3, 4)), "b": np.ones((4, 3))})


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


# --- torch ---------------------------------------------------------------------------

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("shape", [(5, 7), (7, 5), (40, 30)])
def test_torch_equals_numpy(shape):
    phi = np.random.default_rng(15).standard_normal(shape) + 0.5
    for tensor in (torch.tensor(phi), torch.tensor(phi, requires_grad=True)):
        result = all_cycles(tensor, 5)
        assert isinstance(result, torch.Tensor) and result.dtype == torch.float64
        np.testing.assert_allclose(result.detach().numpy(), all_cycles(phi, 5), rtol=1e-6)


def test_torch_single_precision_and_integers():
    phi = np.arange(20).reshape(4, 5) % 7
    for dtype in (torch.float32, torch.int64):
        result = all_cycles(torch.tensor(phi, dtype=dtype), 4)
        np.testing.assert_allclose(result.numpy(), all_cycles(phi, 4), rtol=1e-6)


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
    with pytest.raises(ValueError, match="NaN"):
        all_cycles(torch.tensor([[1.0, float("nan")], [1.0, 1.0]]), 2)
