"""Sums over rows: equal to all cycles, whatever the pieces, options and containers."""

import numpy as np
import pytest
from conftest import peak_memory

import spectral_moments as sm
from spectral_moments import estimate
from spectral_moments.engine import choice, reduction, sums
from spectral_moments.engine.arrays import map_parts
from spectral_moments.engine.sums import cut_rows, kept_pairs
from spectral_moments.engine.systems import open_design
from spectral_moments.estimation import measure

da = pytest.importorskip("dask.array")

RNG = np.random.default_rng(0)
P, Q = 24, 9
PHI = sm.Linear(4).sample(P, Q, random_state=0) + 0.5
TRIALS = PHI + RNG.standard_normal((3, P, Q))
GAPS = np.where(RNG.random((P, Q)) < 0.1, np.nan, PHI)
GROUPS, EQUAL = RNG.integers(0, 9, P), np.repeat(np.arange(8), 3)
COLUMNS = [0, 0, 1, 1, 2, 3, 4, 5, 6]


@pytest.fixture
def small(monkeypatch):
    "Pieces of seven rows, no deletions one by one, and sums however few rows there are."
    monkeypatch.setattr(sums, "STRIP", 128 * Q * 7)
    monkeypatch.setattr(reduction, "KEPT", 0)
    monkeypatch.setattr(choice, "LITERAL", 0)


CASES = {
    "plain": (PHI, {}),
    "trials": (TRIALS, {}),
    "gaps": (GAPS, {}),
    "groups": (PHI, dict(groups=GROUPS)),
    "equal groups": (PHI, dict(groups=EQUAL)),
    "one group and rows": (PHI, dict(groups=np.maximum(np.arange(P) - 8, 0))),
    "population": (PHI, dict(population=(None, Q))),
    "both populations": (PHI, dict(population=(100, 12))),
    "row weights": (PHI, dict(row_weights=RNG.random(P) + 0.5)),
    "column weights": (PHI, dict(column_weights=RNG.random(Q) + 0.5)),
    "column groups": (PHI, dict(column_groups=COLUMNS)),
    "trials, groups, population": (TRIALS, dict(groups=GROUPS, population=(None, Q))),
    "noise": (PHI, dict(noise=0.1, population=(None, Q))),
    "noise of entries": (PHI, dict(noise=RNG.random((P, Q)))),
    "gaps and groups": (GAPS, dict(groups=GROUPS)),
    "both groups": (PHI, dict(groups=GROUPS, column_groups=COLUMNS)),
}


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_sums_equal_all_cycles(small, case, center):
    data, options = CASES[case]
    design = open_design({"phi": data}, center=center, **options)
    most = int(reduction.reach(design, "sums"))
    for n in range(1, most + 1):
        found, expected = (
            estimate(data, n, method=name, center=center, **options)
            for name in ("sums", "all_cycles")
        )
        np.testing.assert_allclose(found.values, expected.values, rtol=1e-10)
        rest = 0.1 if center and n == 3 else 1e-10  # the graph of pairs has no derivative
        np.testing.assert_allclose(found.stderr, expected.stderr, rtol=rest)
    if most < 3:
        with pytest.raises(ValueError, match="'sums' cannot give these orders"):
            estimate(data, most + 1, method="sums", center=center, **options)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("options", [{}, dict(groups=GROUPS), dict(population={"b": 20})])
def test_words(small, options, center):
    other = PHI[:, :6] + RNG.standard_normal((P, 6))
    design = open_design({"a": TRIALS, "b": other}, center=center, **options)
    words = [("a", "b"), ("a", "a")]
    words += [] if center else [("a", "b", "b")]
    found, expected = (measure(design, words, method=name) for name in METHODS)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-10)
    np.testing.assert_allclose(found.stderr, expected.stderr, rtol=1e-10)


METHODS = ("sums", "all_cycles")


def test_pieces_are_whole_groups():
    groups = RNG.integers(0, 40, 500)
    groups[100:300] = 40
    groups = np.unique(groups, return_inverse=True)[1]
    pieces = cut_rows(groups, 60)
    assert sorted(np.concatenate(pieces)) == list(range(500))
    owners = [set(groups[rows]) for rows in pieces]
    assert sum(map(len, owners)) == len(set(groups))
    assert {40} in owners  # a large group comes alone
    assert all(len(rows) < 120 for rows, own in zip(pieces, owners) if own != {40})


def test_pairs_of_kept_rows_are_unbiased():
    "The mean over all samples of a fixed size, with some rows that are always kept."
    x = RNG.standard_normal(7)
    exact, total = np.outer(x, x) ** 3, 0
    from itertools import combinations

    samples = [(0, 1, *rest) for rest in combinations(range(2, 7), 3)]
    for rows in map(list, samples):
        pairs = kept_pairs(np.array([1, 1, 5 / 3, 5 / 3, 5 / 3]))
        total += (pairs * exact[np.ix_(rows, rows)]).sum() / len(samples)
    np.testing.assert_allclose(total, exact.sum(), rtol=1e-12)


MANY = sm.Linear(8).sample(3000, 20, random_state=0) + 0.5


@pytest.mark.parametrize("options", [{}, dict(center=False), dict(population=(None, 20))])
def test_one_answer_for_all_containers(nothing_loaded, tmp_path, options):
    np.save(tmp_path / "a.npy", MANY)
    given = {
        "file": np.load(tmp_path / "a.npy", mmap_mode="r"),
        "dask": da.from_array(MANY, chunks=(700, 20)),
    }
    expected = estimate(MANY, 3, **options)
    assert expected.methods == ["sums"] * 3
    for data in given.values():
        found = estimate(data, 3, **options)
        assert found.methods == ["sums"] * 3
        np.testing.assert_allclose(found.values, expected.values, rtol=1e-11)
        np.testing.assert_allclose(found.stderr, expected.stderr, rtol=1e-10)


def test_groups_on_dask_and_in_a_file(nothing_loaded, tmp_path):
    np.save(tmp_path / "a.npy", MANY)
    groups = RNG.integers(0, 500, 3000)
    expected = estimate(MANY, 2, groups=groups)
    for data in (np.load(tmp_path / "a.npy", mmap_mode="r"), da.from_array(MANY, (700, 7))):
        found = estimate(data, 2, groups=groups)
        np.testing.assert_allclose(found.values, expected.values, rtol=1e-11)
        np.testing.assert_allclose(found.stderr, expected.stderr, rtol=1e-10)


def test_kept_rows_are_unbiased_and_tell_their_noise(monkeypatch):
    "The one graph of pairs of rows, from few of them."
    monkeypatch.setattr(sums, "KEPT", 60)
    phi = MANY[:700] + 1.0
    exact = estimate(phi, 3, method="all_cycles", stderr=False).values[2]
    design = open_design({"phi": phi})
    systems = design.systems
    views = reduction.draw_views(design, RNG, halves={1: None})
    words = tuple(("phi",) * n for n in (1, 2, 3))
    found, noise = [], []
    for seed in range(40):
        options = dict(layout=design.layout, units=design.units, replicates=True)
        options["rng"] = np.random.default_rng(seed)
        means = sums.summed_means(systems, views, words, **options)
        found.append(means.values[2] * 4.0 ** (3 * systems["phi"].source.exponent))
        noise.append(means.noise[2, 2] * 4.0 ** (6 * systems["phi"].source.exponent))
    error = np.std(found) / np.sqrt(40)
    assert abs(np.mean(found) - exact) < 4 * error
    assert 0.6 < np.mean(noise) / np.var(found) < 4  # pairs count twice: at most


def test_memory_is_strips_and_a_few_matrices(tmp_path):
    data = np.memmap(tmp_path / "a", dtype="f4", shape=(200_000, 64), mode="w+")
    for start in range(0, 200_000, 20_000):
        data[start : start + 20_000] = RNG.standard_normal((20_000, 64))
    data.flush()
    given = np.memmap(tmp_path / "a", dtype="f4", shape=(200_000, 64), mode="r")
    assert peak_memory(lambda: estimate(given, 3)) < 1.2e8  # 102 MB as doubles


def test_sum_of_results_in_a_tree(nothing_loaded):
    from spectral_moments.engine.sources import open_source

    source = open_source(da.from_array(MANY, chunks=(100, 20)))
    pieces = [sums.Piece(slice(k, k + 100), {}) for k in range(0, 3000, 100)]
    total = map_parts(lambda w, p, x: [x.sum((0, 1))], [source], pieces, None, sums._added)
    expected = MANY.sum(0) * 2.0**-source.exponent
    np.testing.assert_allclose(total[0], expected, rtol=1e-11)
