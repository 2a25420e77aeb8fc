"""Sums of graphs by matrix products: against sums over all indices, forwards and back."""

import itertools

import numpy as np
import pytest
from conftest import normal
from hypothesis import given, settings
from hypothesis import strategies as st
from test_graphs import free_sum

from spectral_moments.engine import contraction
from spectral_moments.engine.contraction import contract, make_plan
from spectral_moments.engine.graphs import (
    CycleOptions,
    Entry,
    cycle_edges,
    expand_distinct,
    word_graphs,
)

A, B = Entry("a"), Entry("b")
LEFT = Entry("a", "left")


def whole(shape, seed=0):
    "A matrix of Python integers, on which every plan is exact."
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(object)


def graphs_of(n, options):
    words = tuple(("a",) * k for k in range(1, n + 1))
    return word_graphs(words, options).graphs


# --- sums ---------------------------------------------------------------------------------


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_any_graph_that_reduces(data):
    edge = st.tuples(st.integers(0, 2), st.integers(0, 2), st.sampled_from([A, B]))
    graph = tuple(data.draw(st.lists(edge, min_size=1, max_size=7)))
    shape = data.draw(st.sampled_from([(3, 4), (4, 3), (3, 3)]))
    matrices = {A: whole(shape, 1), B: whole(shape, 2)}
    try:
        (total,) = contract((graph,), matrices).totals
    except NotImplementedError:
        assert len({e[:2] for e in graph}) > 6  # too many edges between few vertices
        return
    assert total == free_sum(graph, matrices, {})[0]


def vertices(graph):
    "Number of vertices, groups included."
    return len({end for *ends, label in graph for end in zip(label.kinds, ends)})


@pytest.mark.parametrize(
    ("n", "options"),
    [
        (4, CycleOptions()),
        (4, CycleOptions(center=True, factors=(("a", (LEFT, A)),))),
        (3, CycleOptions(center=True, grouped=("inputs",))),
        (2, CycleOptions(center=True, grouped=("features",))),
        (2, CycleOptions(center=True, missing=True)),
        (4, CycleOptions(with_noise_law=("a",), population=(("features", 9),))),
    ],
    ids=["plain", "two factors", "groups", "columns", "gaps", "squares"],
)
@pytest.mark.parametrize("shape", [(3, 4), (4, 3)])
def test_sums_and_contributions(n, options, shape):
    "Each term, and each term times the number of its entries in a row or column."
    groups = {
        kind: np.array([0, 0, 1, 2])[: shape[kind != "inputs"]] for kind in options.grouped
    }
    labels = (A, LEFT, A.observed, Entry("a", "square"))
    matrices = {label: normal(shape, k) for k, label in enumerate(labels)}
    graphs = graphs_of(n, options)
    found = contract(graphs, matrices, np.eye(len(graphs)), groups)
    small = [k for k, graph in enumerate(graphs) if vertices(graph) <= 5][:12]
    assert len(small) > 3
    for k in small:
        total, expected = free_sum(graphs[k], matrices, groups)
        np.testing.assert_allclose(found.totals[k], total, rtol=1e-9, atol=1e-12)
        for kind, one in expected.items():
            two = found.contributions[k][kind]
            if kind in groups:  # of the members of a group together
                one, two = (np.bincount(groups[kind], x) for x in (one, two))
            np.testing.assert_allclose(two, one, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("shape", [(5, 23), (23, 5)])
def test_blocks_add_up(shape, monkeypatch):
    "Blocks of five, of the long side, give the sums and contributions of one block."
    graphs = graphs_of(4, CycleOptions(center=True))
    matrices, weights = {A: normal(shape)}, normal((2, len(graphs)), 1)
    one = contract(graphs, matrices, weights)
    monkeypatch.setattr(contraction, "BLOCK_SIZE", 1)
    many = contract(graphs, matrices, weights)
    np.testing.assert_allclose(many.totals, one.totals, rtol=1e-9)
    for a, b in zip(one.contributions, many.contributions):
        for kind in a:
            np.testing.assert_allclose(a[kind], b[kind], rtol=1e-8, atol=1e-8)


def test_contributions_are_derivatives():
    torch = pytest.importorskip("torch")
    x = torch.tensor(normal((9, 11)), requires_grad=True)
    graphs = graphs_of(4, CycleOptions(center=True))
    weights = normal((1, len(graphs)), 2)
    totals = contract(graphs, {A: x}).totals
    sum(w * total for w, total in zip(weights[0], totals)).backward()
    given, gradient = x.detach(), x.grad
    for matrix in (given, given.numpy()):
        (found,) = contract(graphs, {A: matrix}, weights).contributions
        rows, columns = (np.asarray(found[kind]) for kind in ("inputs", "features"))
        np.testing.assert_allclose(rows, (given * gradient).sum(1), rtol=1e-8)
        np.testing.assert_allclose(columns, (given * gradient).sum(0), rtol=1e-8)


# --- plans --------------------------------------------------------------------------------


def products(options, n):
    plan = make_plan(graphs_of(n, options), ("features",), options.grouped)
    numbers = itertools.chain(*plan.order.values())
    return sum(plan.steps[k].operation == "matmul" for k in numbers)


def test_products_are_shared():
    "Sixty graphs of four orders take nine matrix products."
    assert [products(CycleOptions(), n) for n in (1, 2, 3, 4)] == [0, 1, 3, 9]
    assert products(CycleOptions(center=True), 4) <= 13
    assert products(CycleOptions(center=True, grouped=("inputs",)), 3) <= 20


def test_one_graph_of_order_five_resists():
    stuck = []
    for graph, _ in expand_distinct(cycle_edges([(A, A)] * 5)):
        try:
            make_plan((graph,))
        except NotImplementedError:
            stuck.append(graph)
    assert len(stuck) == 1


def test_memory_is_freed():
    "Values alone keep only what is used later."
    graphs = graphs_of(4, CycleOptions(center=True))
    plan, kept, freed = make_plan(graphs), {}, {}
    given = {A: normal((5, 9))}
    contraction.run_forward(plan, "", kept, given, keep=True)
    contraction.run_forward(plan, "", freed, given, keep=False)
    matrices = lambda values: sum(x.ndim == 2 for x in values.values())
    assert freed.keys() < kept.keys() and matrices(freed) < matrices(kept) / 3
    assert all(freed[k] == kept[k] for k in plan.outputs if k in kept)
