"""Dask arrays: equal to memory, whatever the chunks; a worker may die."""

import functools
import os
import signal
import threading
import time
import warnings

import numpy as np
import pytest

import spectral_moments as sm
from spectral_moments import increasing
from spectral_moments.engine import arrays, reduction, sketch, sums
from spectral_moments.engine.cluster import tree_means
from spectral_moments.engine.reduction import draw_views
from spectral_moments.engine.sources import open_source
from spectral_moments.engine.systems import open_design

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")

estimate = functools.partial(sm.estimate, center=False)
pytestmark = [
    pytest.mark.filterwarnings("ignore::spectral_moments.results.EstimateWarning"),
    pytest.mark.usefixtures("nothing_loaded"),
]


def structured(P, Q, seed=0):
    return sm.Linear(4).sample(P, Q, random_state=seed)


LIMIT = 450e6  # bytes of memory of a worker


@pytest.fixture(scope="module")
def cluster():
    "Two worker processes; the client is the active one."
    distributed = pytest.importorskip("dask.distributed")
    options = dict(n_workers=2, threads_per_worker=1, processes=True, memory_limit=LIMIT)
    with (
        warnings.catch_warnings(),
        distributed.LocalCluster(dashboard_address=None, **options) as cluster,
        distributed.Client(cluster),
    ):
        yield cluster


@pytest.fixture
def here():
    "No cluster: chunks are computed in this thread."
    with dask.config.set(scheduler="synchronous"):
        yield


# ----------------------------------------------------------------------------- on a cluster
def test_cluster_equals_memory(cluster, monkeypatch):
    monkeypatch.setattr(sketch, "BLOCKS", 4)  # few tasks
    phi = structured(300, 25)
    chunked = da.from_array(phi, chunks=(100, 25))
    for method in ("increasing", "all_cycles", "sketched"):
        options = dict(method=method, n_permutations=1, random_state=0)
        found, expected = (estimate(x, 2, **options) for x in (chunked, phi))
        assert found.methods == [method] * 2 and found.shape == (1, 300, 25)
        np.testing.assert_allclose(found.values, expected.values, rtol=1e-9)
        np.testing.assert_allclose(found.stderr, expected.stderr, rtol=0.3)


def test_cluster_survives_the_death_of_a_worker(cluster):
    phi = structured(400, 25)

    def slowly(block):
        time.sleep(0.2)
        return block

    slow = da.from_array(phi, chunks=(25, 25)).map_blocks(slowly, dtype=float)
    victims = []

    def kill():
        time.sleep(0.8)
        victims.append(next(iter(cluster.workers.values())).pid)
        os.kill(victims[0], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    options = dict(method="increasing", n_permutations=0, stderr=False)
    est = estimate(slow, 5, **options)
    thread.join()
    assert victims and victims[0] not in [w.pid for w in cluster.workers.values()]
    np.testing.assert_allclose(est.values, increasing(phi, 5), rtol=1e-10)


def test_an_array_larger_than_the_memory_of_the_workers(cluster):
    x = da.random.default_rng(0).standard_normal((1_000_000, 64), chunks=(20_000, 64))
    assert x.nbytes > LIMIT
    found = sm.estimate(x, 2)
    assert found.methods == ["sums", "sums"]
    assert abs(found.values[0] - 1) < 5 * found.stderr[0]


def test_order_four_on_a_cluster(cluster):
    "One task for a chunk and a pass, a tree, and the numbers of memory."
    phi = structured(3000, 20)
    found = sm.estimate(da.from_array(phi, chunks=(250, 20)), 4)
    expected = sm.estimate(phi, 4, method="sums")
    assert found.methods == ["sums"] * 4
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-9)
    np.testing.assert_allclose(found.stderr, expected.stderr, rtol=1e-8)


# ------------------------------------------------------------------------ without one
@pytest.mark.parametrize("n_max", [2, 3, 4])
def test_passes_over_chunks(here, n_max, monkeypatch):
    "Two, three at order four: rows for doubts and kept rows come along; and a glance."
    chunks, made = 200, []
    monkeypatch.setattr(arrays, "SMALLEST", 0)  # as they are

    def counted(block):
        made.append(len(block))
        return block

    phi = da.from_array(structured(20 * chunks, 20), chunks=(20, 20))
    sm.estimate(phi.map_blocks(counted, meta=np.empty((0, 0))), n_max)
    assert sum(made) / len(phi) < (2 if n_max < 4 else 3) + 0.4


def test_tasks_and_what_comes_to_the_client(here, monkeypatch):
    "Three tasks for a chunk and a pass, a tree of sums, and results of the size of a sum."
    from dask.callbacks import Callback

    graphs, returned, compute = [], [], dask.compute

    class Count(Callback):
        def _start(self, graph):
            graphs.append(len(graph))

    def watched(*given, **options):
        found = compute(*given, **options)
        returned.append(max(x.size for of in found for x in of if hasattr(x, "size")))
        return found

    Q, chunks = 8, 300
    x = da.from_array(structured(20 * chunks, Q), chunks=(20, Q))
    monkeypatch.setattr(arrays, "SMALLEST", 0)  # as they are
    with Count():
        sm.estimate(x, 2, stderr=False)
    assert max(graphs) < 3.5 * chunks
    source = open_source(x)
    monkeypatch.setattr(dask, "compute", watched)
    pieces = [sums.Piece(slice(k, k + 20), {}) for k in range(0, 20 * chunks, 20)]
    total = lambda work, piece, rows: [rows.sum((0, 1))]
    arrays.map_parts(total, [source], pieces, None, sums.added_sums)
    assert returned == [Q]


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [((1, 2, 1, 3, 1), (4, 4)), ((100,), (34, 33, 33)), ((0, 4, 0, 4), (4, 4))],
)
def test_ragged_and_wide_chunks(here, monkeypatch, chunks, expected):
    monkeypatch.setattr(arrays, "SMALLEST", 4 * 8 * 8)
    monkeypatch.setattr(arrays, "LARGEST", 40 * 8 * 8)
    x = da.from_array(np.ones((sum(chunks), 8)), chunks=(chunks, 3))
    found = arrays.library(x).trials(x, "phi")
    assert found.chunks == ((1,), expected, (8,))


@pytest.mark.parametrize("chunks", [(40, 25), (7, 25), (300, 25), (40, 4)])
def test_tree_of_merges(here, chunks):
    phi = structured(150, 25)
    other = structured(150, 25, seed=1)
    x, y = (da.from_array(z, chunks=chunks).rechunk({1: -1}) for z in (phi, other))
    np.testing.assert_allclose(tree_means(x, x, 4), increasing(phi, 4), rtol=1e-10)
    both = tree_means(x, y, 3)
    assert abs(both[0] - (phi * other).mean()) < 1e-12


@pytest.mark.parametrize(
    "method", ["auto", "increasing", "all_cycles", "sketched", "blocks"]
)
def test_small_and_empty_chunks(here, method, monkeypatch):
    monkeypatch.setattr(sketch, "BLOCKS", 4)  # few tasks
    phi = structured(60, 12)
    chunked = da.from_array(phi, chunks=((0, 0, 3, 1, 0, 6, 20, 30), 12))
    options = dict(method=method, random_state=0)
    found, expected = (estimate(x, 2, **options) for x in (chunked, phi))
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-9)
    assert np.isfinite(found.stderr).all()


def test_chunks_of_columns_are_joined(here):
    phi = structured(60, 12)
    found = estimate(da.from_array(phi, chunks=(20, 5)), 3, random_state=0)
    np.testing.assert_allclose(found.values, estimate(phi, 3).values, rtol=1e-10)


def test_rows_are_put_in_random_order(here):
    "Sorted rows: the order given is far from the mean over orders."
    phi = np.sort(structured(60, 12), axis=0)
    chunked = da.from_array(phi, chunks=(20, 12))
    options = dict(method="increasing", stderr=False)
    given = estimate(chunked, 4, n_permutations=0, **options).values
    np.testing.assert_allclose(given, increasing(phi, 4), rtol=1e-10)
    exact = sm.all_cycles(phi, 4)
    mixed = estimate(chunked, 4, n_permutations=20, random_state=0, **options).values
    assert abs(mixed - exact)[3] < 0.2 * abs(given - exact)[3]


def test_masked_chunks_are_gaps(here):
    phi = structured(60, 12)
    expected = estimate(np.where(phi > 2, np.nan, phi), 2, random_state=0)
    chunked = da.ma.masked_greater(da.from_array(phi, chunks=(20, 12)), 2)
    for given in (chunked, da.from_array(np.ma.masked_greater(phi, 2), chunks=(20, 12))):
        found = estimate(given, 2, random_state=0)
        np.testing.assert_allclose(found.values, expected.values, rtol=1e-10)
    assert abs(expected.values / estimate(phi, 2).values - 1).max() > 0.01


@pytest.mark.parametrize("part", [(np.s_[::2],), (np.s_[:], np.s_[::2])])
@pytest.mark.parametrize(
    "method", ["auto", "increasing", "all_cycles", "sketched", "naive"]
)
def test_chunks_smaller_than_announced(here, part, method):
    phi = da.from_array(structured(60, 12), chunks=(20, 12))
    narrow = da.from_array(structured(60, 12), chunks=(20, 5))
    for given in (phi, narrow, da.stack([phi, narrow])):
        parts = part if given.ndim == 2 else (slice(None), *part)
        short = given.map_blocks(lambda x, p=parts: x[p], dtype=float, chunks=given.chunks)
        with pytest.raises(ValueError, match="a chunk of phi has .*compute_chunk_sizes"):
            estimate(short, 2, method=method)


def test_dask_refuses(here):
    phi = da.from_array(structured(60, 12), chunks=(20, 12))
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        estimate(phi[phi[:, 0] > 0], 2)
    with pytest.raises(ValueError, match="2 axes .* or 3"):
        estimate(phi[0], 1)
    with pytest.raises(TypeError, match="complex"):
        estimate(phi * 1j, 2)
    with pytest.raises(ValueError, match="exceeds min"):
        estimate(phi, 13)
    with pytest.raises(TypeError, match="n_max must be a whole number"):
        estimate(phi, None)
    with pytest.raises(ValueError, match="infinite"):
        estimate(da.where(phi > 2, np.inf, phi), 2)
    with pytest.raises(ValueError, match="only NaN"):
        estimate(phi * np.nan, 2)
    with pytest.raises(ValueError, match="larger than 5"):
        estimate(phi, 6, method="all_cycles")
    bag = pytest.importorskip("dask.bag")
    with pytest.raises(TypeError, match="of Dask; pass an array"):
        estimate(bag.from_sequence([1, 2]), 2)


def test_trials_on_dask(here):
    phi = structured(60, 12) + np.random.default_rng(0).standard_normal((3, 60, 12))
    for chunks in ((1, 60, 12), (2, 25, 5)):
        chunked = da.from_array(phi, chunks=chunks)
        found, expected = (estimate(x, 2, random_state=0) for x in (chunked, phi))
        np.testing.assert_allclose(found.values, expected.values, rtol=1e-9)
        assert found.shape == (3, 60, 12)


# ------------------------------------------------------------------ a sketch over chunks
GAPS = np.where(np.random.default_rng(2).random((400, 25)) < 0.05, np.nan, 1.0)


COUNTED = "gaps", "weights", "weights, gaps"
CENTRED = {False: ("plain", "trials", *COUNTED), "pairs": ("plain", "trials", *COUNTED)}
CENTRED["means"] = "plain", "trials"


@pytest.mark.parametrize(("center", "case"), [(c, x) for c in CENTRED for x in CENTRED[c]])
def test_a_block_lies_in_all_chunks(here, center, case):
    "The same view of the array in memory gives the same sketch."
    phi = structured(400, 25) + 0.5
    phi = phi * GAPS if "gaps" in case else phi
    if case == "trials":
        phi = phi + np.random.default_rng(1).standard_normal((2, 400, 25))
    chunks = (150, 150, 70, 30), 25
    chunked = da.from_array(phi, chunks=chunks if phi.ndim == 2 else (2, *chunks))
    weights = np.random.default_rng(3).random(400) + 0.5 if "weights" in case else None
    given = [
        open_design({"phi": x}, center=bool(center), row_weights=weights)
        for x in (chunked, phi)
    ]
    halves = {2: ((0,), (1,))} if case == "trials" else None
    options = dict(shuffled=True, paired=center == "pairs", halves=halves)
    view = draw_views(given[0], np.random.default_rng(5), **options)["phi"]
    known = dict(rank=8, n_probes=8, center=center == "means")
    found, expected = (
        sketch.sketch_means(
            design.systems["phi"].source, view, 3, rng=np.random.default_rng(6), **known
        )
        for design in given
    )
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-9)
    np.testing.assert_allclose(found.noise, expected.noise, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("chunks", [(50, 50, 20), (60, 60), (120,), (1, 100, 9, 10)])
def test_chunks_are_paired(here, chunks, monkeypatch):
    "A row has one partner at most, and those of a chunk lie in one other."
    monkeypatch.setattr(arrays, "SMALLEST", 0)  # chunks as they are
    design = open_design({"phi": da.from_array(structured(120, 8), chunks=(chunks, 8))})
    ends = design.systems["phi"].source.chunk_ends
    np.testing.assert_array_equal(ends, np.cumsum(chunks))
    for seed in range(3):
        rng = np.random.default_rng(seed)
        view = draw_views(design, rng, shuffled=True, paired=True, near=True)["phi"]
        both = view.rows, view.partners
        assert len({*np.concatenate(both).tolist()}) == 2 * len(view.rows) > 0
        at = [np.searchsorted(ends, rows, side="right").tolist() for rows in both]
        assert len({*zip(*at)}) <= -(-len(chunks) // 2)


def test_tasks_of_a_sketch(here, monkeypatch):
    "A task for a chunk and a block, and a tree; nothing larger than the state comes back."
    from dask.callbacks import Callback

    graphs = []

    class Count(Callback):
        def _start(self, graph):
            graphs.append(len(graph))

    monkeypatch.setattr(arrays, "SMALLEST", 0)  # chunks as they are
    phi = da.from_array(structured(1200, 20), chunks=(20, 20))
    with Count():
        estimate(phi, 5, method="sketched", n_permutations=1, stderr=False)
    assert max(graphs) < 6 * 60  # of 60 chunks
    assert sum(graphs) < 60 * 6 * (3 + 32 + 4)


def test_blocks_of_a_large_array_are_not_brought_together(here, monkeypatch):
    monkeypatch.setattr(reduction, "GATHERED", 1000)
    phi = da.from_array(structured(60, 12), chunks=(20, 12))
    with pytest.raises(ValueError, match="in one place, and phi has .* GB; lower n_max"):
        estimate(phi, 4, groups=np.arange(60) // 2, method="blocks")
