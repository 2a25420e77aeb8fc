"""Graphs of words: partitions, canonical names, distinct sums as free sums."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from conftest import normal
from hypothesis import given, settings
from hypothesis import strategies as st

from spectral_moments.engine.graphs import (
    CycleOptions,
    Entry,
    Member,
    canonical,
    cycle_edges,
    expand_distinct,
    moebius_weight,
    set_partitions,
    word_graphs,
    word_patterns,
)

A, B = Entry("a"), Entry("b")


def free_sum(graph, matrices, groups):
    "The definition of a graph: its sum, and what each row and column contributes."
    sizes, vertices, total = {}, set(), 0
    for label, x in matrices.items():
        sizes |= dict(zip(label.kinds, x.shape))
    contributions = {kind: [0] * n for kind, n in sizes.items()}
    sizes |= {f"groups of {kind}": max(of) + 1 for kind, of in groups.items()}
    for first, second, label in graph:
        vertices |= set(zip(label.kinds, (first, second)))
    for index in itertools.product(*(range(sizes[kind]) for kind, _ in sorted(vertices))):
        place, product, uses = dict(zip(sorted(vertices), index)), 1, Counter()
        for (kind, _), i in place.items():
            product = product * group_weight(groups[kind], i) if kind in groups else product
        for *ends, label in graph:
            kinds = label.kinds
            i, k = (place[end] for end in zip(kinds, ends))
            of, group = (i, k) if kinds[0] == "inputs" else (k, i)
            member = (
                isinstance(label, Member)
                and groups[kinds[kinds[0] != "inputs"]][of] == group
            )
            product = product * (matrices[label][i, k] if label in matrices else member)
            for kind, number in zip(kinds, (i, k)):  # entries of each row and column
                uses[kind, number] += label.degree
        total = total + product
        for (kind, number), times in uses.items():
            if kind in contributions:
                contributions[kind][number] += times * product
    return total, contributions


def group_weight(groups, i):
    return 1 / list(groups).count(groups[i])


def distinct_sum(pattern, matrices, groups):
    "The sum over rows and columns of distinct groups, with their weights."
    P, Q = next(iter(matrices.values())).shape
    rows, columns = (1 + max(edge[side] for edge in pattern) for side in (0, 1))
    of_row, of_column = groups.get("inputs", range(P)), groups.get("features", range(Q))
    total = 0
    for i in itertools.permutations(range(P), rows):
        for a in itertools.permutations(range(Q), columns):
            if (
                len({of_row[x] for x in i}) == rows
                and len({of_column[x] for x in a}) == columns
            ):
                weight = math.prod(group_weight(of_row, x) for x in i)
                weight *= math.prod(group_weight(of_column, x) for x in a)
                total += weight * math.prod(matrices[m][i[r], a[c]] for r, c, m in pattern)
    return total


def check_expansion(pattern, matrices, groups, **options):
    graphs = expand_distinct(pattern, grouped=tuple(groups), **options)
    total = sum(w * free_sum(graph, matrices, groups)[0] for graph, w in graphs)
    expected = distinct_sum(pattern, matrices, groups)
    np.testing.assert_allclose(float(total), float(expected), rtol=1e-9, atol=1e-9)


# --- partitions ---------------------------------------------------------------------------


def test_partitions():
    assert [len(set_partitions(n)) for n in range(6)] == [1, 1, 2, 5, 15, 52]
    x = normal(6)
    for n in (2, 3, 4):
        distinct = sum(np.prod(x[list(i)]) for i in itertools.permutations(range(6), n))
        free = 0.0
        for blocks in set_partitions(n):
            sizes = Counter(blocks).values()
            free += moebius_weight(blocks) * math.prod((x**size).sum() for size in sizes)
        np.testing.assert_allclose(free, distinct, rtol=1e-10)


# --- names of graphs ----------------------------------------------------------------------


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_canonical_form_ignores_names_and_nothing_else(data):
    edge = st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from([A, B]))
    graph = data.draw(st.lists(edge, min_size=1, max_size=8))
    rows, columns = (data.draw(st.permutations(range(4))) for _ in range(2))
    renamed = [(rows[i], columns[k], label) for i, k, label in graph]
    form = canonical(graph)
    assert canonical(data.draw(st.permutations(renamed))) == form
    assert sorted(e[2] for e in form) == sorted(e[2] for e in graph)
    degrees = [Counter(edge[side] for edge in graph).values() for side in (0, 1)]
    assert [sorted(x) for x in degrees] == [
        sorted(Counter(edge[side] for edge in form).values()) for side in (0, 1)
    ]


def test_cycles_begun_elsewhere_or_turned_are_one_graph():
    word = [(A, A), (A, A), (B, B)]
    forms = {canonical(cycle_edges(word[k:] + word[:k])) for k in range(3)}
    forms.add(canonical(cycle_edges(word[::-1])))
    assert len(forms) == 1


# --- distinct sums as free sums -----------------------------------------------------------


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_any_pattern(data):
    "Patterns that are no cycles, disconnected ones included, with two matrices, groups."
    edge = st.tuples(st.integers(0, 2), st.integers(0, 1), st.sampled_from([A, B]))
    edges = data.draw(st.lists(edge, min_size=1, max_size=5))
    rows = {old: new for new, old in enumerate(sorted({edge[0] for edge in edges}))}
    columns = {old: new for new, old in enumerate(sorted({edge[1] for edge in edges}))}
    pattern = tuple((rows[i], columns[k], label) for i, k, label in edges)
    rng = np.random.default_rng(data.draw(st.integers(0, 100)))
    matrices = {m: rng.integers(-3, 4, (4, 3)).astype(float) for m in (A, B)}
    groups = data.draw(
        st.sampled_from([{}, {"inputs": [0, 0, 1, 2]}, {"features": [0, 1, 1]}])
    )
    check_expansion(pattern, matrices, groups)


@pytest.mark.parametrize("grouped", [False, True], ids=["", "groups"])
def test_rows_with_a_single_entry_sum_to_zero(grouped):
    "Columns without their mean, of the means of groups: fewer graphs, the same sum."
    groups = {"inputs": [0, 0, 1, 2]} if grouped else {}
    weights = np.array([group_weight(groups.get("inputs", range(4)), i) for i in range(4)])
    x = normal((4, 2))
    matrices = {A: x - weights @ x / weights.sum()}
    for split in ([], [0]) if grouped else ([], [0], [0, 1]):
        pattern = canonical(cycle_edges([(A, A)] * 2, split))
        check_expansion(pattern, matrices, groups, columns_sum_to_zero=True)
        fewer = expand_distinct(pattern, True, tuple(groups))
        assert len(fewer) <= len(expand_distinct(pattern, False, tuple(groups)))


def test_numbers_of_graphs():
    for n, number in ((1, 1), (2, 4), (3, 10), (4, 45)):
        graphs = expand_distinct(cycle_edges([(A, A)] * n))
        assert len(graphs) == number
        assert sum(weight for _, weight in graphs) == 0 or n == 1
    powers = tuple(("a",) * n for n in range(1, 5))
    assert len(word_graphs(powers, CycleOptions(center=True)).graphs) == 133
    grouped = CycleOptions(center=True, grouped=("inputs",))
    assert len(word_graphs(powers[:3], grouped).graphs) == 98


# --- patterns of words --------------------------------------------------------------------


def test_centring_splits_rows():
    "E[xy] - E[x] E[y] at each row: signs add up to zero."
    for n in (1, 2, 3):
        patterns = word_patterns(("a",) * n, CycleOptions(center=True))
        assert sum(coefficient for coefficient, _ in patterns) == 0
        assert max(1 + max(e[0] for e in pattern) for _, pattern in patterns) == 2 * n


def test_populations_merge_columns():
    "Probabilities of coinciding columns add up to one."
    options = CycleOptions(population=(("features", 10),))
    patterns = word_patterns(("a",) * 4, options)
    np.testing.assert_allclose(sum(coefficient for coefficient, _ in patterns), 1)
    one, two = (Entry(s, "right", ("inputs", f"features of {s}")) for s in "ab")
    factors = (("a", (one, one)), ("b", (two, two)))
    options = CycleOptions(factors=factors, population=(("features of a", 10),))
    patterns = dict(map(reversed, word_patterns(tuple("abab"), options)))
    columns = [sorted({e[1:] for e in p}) for p in patterns]
    assert sorted(map(len, columns)) == [3, 4]  # the two of b never coincide
    np.testing.assert_allclose(sorted(patterns.values()), [0.1, 0.9])


def test_squares_of_noisy_entries():
    options = CycleOptions(with_noise_law=("a",), population=(("features", 5),))
    (_, pattern), *others = word_patterns(("a",), options)
    assert pattern == ((0, 0, Entry("a", "square")),) and not others
    roles = [e[2].role for _, p in word_patterns(("a",) * 3, options) for e in p]
    assert set(roles) == {"right", "square"}


def test_companions_of_missing_entries():
    "Every pattern of a centred word has the same rows, all measured at the same columns."
    options = CycleOptions(center=True, missing=True)
    for _, pattern in word_patterns(("a", "a"), options):
        assert {e[0] for e in pattern} == {0, 1, 2, 3}
        assert len({e[:2] for e in pattern}) == 8
        assert len({(*e[:2], e[2].observed) for e in pattern}) == 8
    roles = {e[2].role for _, p in word_patterns(("a",), options) for e in p}
    assert roles == {"right", "right_observed"}
