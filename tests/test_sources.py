"""Sources and views: what no reader of the chapter needs to see."""

import numpy as np
import pytest

from spectral_moments.engine.sources import (
    Means,
    Pair,
    Source,
    View,
    open_source,
    ratio_means,
    unit_exponent,
)


def normal(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def gappy(shape, seed=0, share=0.2):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(shape) < share, np.nan, rng.standard_normal(shape))


# --- pairs --------------------------------------------------------------------------------


def test_parts_of_a_pair():
    x, y = normal((2, 5, 4))
    one = Pair(x, x).part(slice(1, 3))
    assert one.leave is one.enter and one.counts is None and one.shape == (2, 4)
    two = Pair(x, y, (x > 0, y > 0)).part([4, 0])
    np.testing.assert_array_equal(two.leave, y[[4, 0]])
    np.testing.assert_array_equal(two.counts[1], y[[4, 0]] > 0)


def test_ratio_without_each_row():
    "Products of two numbers, each from its own row: the estimate without a row, directly."
    x, known = normal(6), np.array([1, 1, 0, 1, 1, 1.0])

    def total(keep):
        a, k = (x * known)[keep], known[keep]
        return a.sum() ** 2 - (a**2).sum(), k.sum() ** 2 - (k**2).sum()

    N, D = total(np.arange(6))
    parts = [total(np.arange(6) != i) for i in range(6)]
    through = [np.array([[N - n for n, _ in parts]]), np.array([[D - d for _, d in parts]])]
    found = ratio_means(
        (np.array([N]), through[0], through[0]), (np.array([D]), through[1], through[1])
    )
    np.testing.assert_allclose(found.values, N / D)
    np.testing.assert_allclose(found.without["inputs"][0], [n / d for n, d in parts])


def test_ratio_of_nothing_is_nan():
    zeros = np.zeros(2), None, None
    assert np.isnan(ratio_means(zeros, zeros).values).all()
    assert not ratio_means(zeros, zeros).without
    one = np.ones(1), np.array([[1.0, 0.5]]), np.array([[0.5, 0.5]])
    found = ratio_means(one, one)  # every cycle passes through the first row
    assert np.isnan(found.without["inputs"][0, 0]) and found.without["inputs"][0, 1] == 1
    assert isinstance(found, Means)


# --- views --------------------------------------------------------------------------------


def test_orders():
    x = normal((1, 5, 4))
    rows, columns = np.array([3, 1, 4]), np.array([2, 0, 1, 3])
    pair = View(rows=rows, columns=columns).pair(Source(x))
    np.testing.assert_array_equal(pair.enter, x[0][np.ix_(rows, columns)])
    assert pair.leave is pair.enter and pair.counts is None
    assert View(rows=rows).shape(Source(x)) == (3, 4)
    assert (
        View().pair(Source(x)).enter.base is x or (View().pair(Source(x)).enter == x).all()
    )


def test_halves_with_gaps():
    trials = gappy((4, 6, 5), 1)
    pair = View(halves=((0, 3), (1, 2))).pair(Source(trials, 0, True))
    for found, count, half in zip(pair[:2], pair.counts, ([0, 3], [1, 2])):
        known = ~np.isnan(trials[half])
        np.testing.assert_array_equal(count, known.any(0))
        total = np.where(known, trials[half], 0).sum(0)
        np.testing.assert_allclose(found, total / np.maximum(known.sum(0), 1))


def test_pairs_and_weights():
    x, w, v = gappy((1, 6, 5), 2), np.linspace(0, 1, 6), np.linspace(1, 2, 5)
    rows, partners = np.array([5, 0, 2]), np.array([1, 4, 3])
    view = View(rows, partners, np.array([4, 3, 2, 1, 0]), weights=(w, v))
    pair = view.pair(Source(x, 0, True))
    difference = ((x[0][rows] - x[0][partners]) / np.sqrt(2))[:, ::-1]
    weight = np.sqrt(w[rows] * w[partners])[:, None] * np.sqrt(v[::-1])
    np.testing.assert_allclose(pair.enter, np.nan_to_num(difference) * weight)
    np.testing.assert_allclose(pair.counts[0], ~np.isnan(difference) * weight)


@pytest.mark.parametrize("T", [1, 3])
def test_a_view_by_blocks_is_the_view(T):
    "Also from a file, where the rows of a block lie anywhere."
    trials, rng = gappy((T, 11, 7), 3), np.random.default_rng(4)
    view = View(
        rows=rng.permutation(11)[:5],
        partners=rng.permutation(11)[:5],
        columns=rng.permutation(7),
        halves=None if T == 1 else ((0,), (1, 2)),
        weights=(rng.random(11), None),
    )
    whole = view.pair(Source(trials, 0, True))
    for part in (slice(0, 2), slice(2, 5)):
        some = view.pair(Source(trials, 0, True), part)
        for a, b in zip((*whole[:2], *whole.counts), (*some[:2], *some.counts)):
            np.testing.assert_array_equal(a[part], b)


# --- the door -----------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e-300, 1e-8, 1.0, 1e150, 1e300])
def test_scaled_by_a_power_of_two(size):
    x = normal((8, 9), 5) * size
    source = open_source(x)
    assert 0.25 < np.sqrt((source.take(slice(None)) ** 2).mean()) < 4
    np.testing.assert_array_equal(np.ldexp(source.take(slice(None))[0], source.exponent), x)
    assert source.shape == (1, 8, 9) and not source.gaps and source.backend == "numpy"
    assert unit_exponent(0.0, 0.0, 5) == 0
    assert open_source(np.zeros((3, 3))).exponent == 0


def rows_of(x):
    return open_source(x).take(slice(None))


def test_input_is_not_touched():
    x = gappy((5, 6), 6)
    before = x.copy()
    source = open_source(x)
    View(partners=np.arange(5)).pair(source)
    np.testing.assert_array_equal(x, before)
    assert source.gaps


def test_masks_become_gaps():
    x = gappy((2, 4, 3), 20)
    masked = np.ma.masked_invalid(x)
    for given in (masked, [masked[0], x[1]], [x[0], masked[1]]):
        source = open_source(given)
        assert source.gaps
        np.testing.assert_array_equal(source.take(slice(None)), rows_of(x))


def test_refusals():
    with pytest.raises(ValueError, match="only NaN"):
        open_source(np.full((3, 3), np.nan))
    with pytest.raises(ValueError, match="infinite"):
        open_source([[1.0, np.inf], [1.0, 2.0]])
    with pytest.raises(ValueError, match="4 axes"):
        open_source(np.ones((2, 2, 2, 2)))
    with pytest.raises(TypeError, match="complex"):
        open_source(np.ones((3, 3)) * 1j)


# --- files --------------------------------------------------------------------------------


def mapped(x, tmp_path):
    np.save(tmp_path / "x.npy", x)
    return np.load(tmp_path / "x.npy", mmap_mode="r")


@pytest.mark.parametrize("dtype", ["f8", "f4", "i2", ">f8"])
@pytest.mark.parametrize("shape", [(23, 7), (2, 23, 7)])
@pytest.mark.usefixtures("nothing_loaded")
def test_file_is_memory(shape, dtype, tmp_path, monkeypatch):
    monkeypatch.setattr("spectral_moments.engine.arrays.STRIP", 8 * 7 * 4 * 2)
    x = (8 * normal(shape, 7)).astype(dtype)
    file, memory = open_source(mapped(x, tmp_path)), open_source(x)
    assert file.shape == memory.shape and file.exponent == memory.exponent
    assert file.gaps == memory.gaps and file.backend == "file"
    for rows in (slice(None), slice(3, 11), np.array([22, 0, 5, 5, 21]), np.array([9])):
        np.testing.assert_array_equal(file.take(rows), memory.take(rows))


@pytest.mark.usefixtures("nothing_loaded")
def test_file_with_gaps_and_strips(tmp_path, monkeypatch):
    monkeypatch.setattr("spectral_moments.engine.arrays.STRIP", 8 * 7 * 3)
    x = gappy((20, 7), 8) * 1e5
    x[:3] = np.nan  # a strip with nothing in it
    file, memory = open_source(mapped(x, tmp_path)), open_source(x)
    assert len(file.strips(len)) == 7 and file.gaps and file.exponent == memory.exponent
    np.testing.assert_array_equal(file.take(slice(None)), memory.take(slice(None)))


def test_large_files_stay_files(tmp_path, monkeypatch):
    x = mapped(normal((30, 8), 9), tmp_path)
    assert open_source(x).backend == "numpy"
    monkeypatch.setattr("spectral_moments.engine.arrays.LOADED", 100)
    assert open_source(x).backend == "file"
    empty = mapped(np.full((30, 8), np.nan), tmp_path)
    with pytest.raises(ValueError, match="only NaN"):
        open_source(empty)


def test_h5py(tmp_path, monkeypatch):
    h5py = pytest.importorskip("h5py")
    x = gappy((2, 12, 5), 10)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = x
        assert open_source(file["x"]).backend == "numpy"
        monkeypatch.setattr("spectral_moments.engine.arrays.LOADED", 100)
        source = open_source(file["x"])
        assert source.backend == "file"
        rows = np.array([7, 7, 2])
        np.testing.assert_array_equal(source.take(rows), open_source(x).take(rows))


# --- Dask ---------------------------------------------------------------------------------


@pytest.fixture
def da():
    dask = pytest.importorskip("dask")
    with dask.config.set(scheduler="synchronous"):
        yield pytest.importorskip("dask.array")


@pytest.mark.usefixtures("nothing_loaded")
def test_dask(da):
    x = gappy((2, 9, 6), 11) * 1e-9
    source, memory = open_source(da.from_array(x, chunks=(1, 4, 2))), open_source(x)
    assert source.backend == "dask" and source.gaps and source.exponent == memory.exponent
    np.testing.assert_array_equal(
        source.take(slice(None)).compute(), memory.take(slice(None))
    )
    assert source.trials.numblocks == (1, 1, 1)  # small chunks are joined


def test_small_dask_arrays_are_loaded(da):
    x = gappy((9, 6), 11)
    source = open_source(da.from_array(x, chunks=(4, 2)))
    assert source.backend == "numpy"
    np.testing.assert_array_equal(source.take(slice(None)), rows_of(x))


def test_dask_chunks_smaller_than_announced(da):
    x = da.ones((8, 4), chunks=(4, 4)).map_blocks(lambda c: c[:2], dtype=float)
    assert x.shape == (8, 4)  # a lie
    with pytest.raises(ValueError, match=r"has shape .*announced; .*compute_chunk_sizes"):
        open_source(x)


@pytest.mark.usefixtures("nothing_loaded")
def test_dask_masked_chunks(da):
    x = gappy((8, 4), 12)
    masked = da.ma.masked_invalid(da.from_array(x, chunks=(4, 4)))
    source = open_source(masked)
    assert source.gaps
    np.testing.assert_array_equal(source.take(slice(None)).compute(), rows_of(x))


@pytest.mark.parametrize("loaded", [0, 2**20])
def test_dask_refusals(da, loaded, monkeypatch):
    monkeypatch.setattr("spectral_moments.engine.arrays.LOADED", loaded)
    x = da.from_array(normal((6, 4), 13), chunks=(3, 4))
    with pytest.raises(ValueError, match="known, positive length"):
        open_source(x[x[:, 0] > 0])
    with pytest.raises(ValueError, match="infinite"):
        open_source(da.where(x > 1, np.inf, x))
    with pytest.raises(ValueError, match="only NaN"):
        open_source(x * np.nan)
    with pytest.raises(TypeError, match="complex"):
        open_source(x * 1j)
