"""Sources and views: what no reader of the chapter needs to see."""

import numpy as np
import pytest

from spectral_moments.engine.sources import (
    Means,
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


def test_ratio_of_nothing_is_nan():
    zeros = np.zeros(2), None, None
    assert np.isnan(ratio_means(zeros, zeros).values).all()
    assert not ratio_means(zeros, zeros).without
    one = np.ones(1), np.array([[1.0, 0.5]]), np.array([[0.5, 0.5]])
    found = ratio_means(one, one)  # every cycle passes through the first row
    assert np.isnan(found.without["inputs"][0, 0]) and found.without["inputs"][0, 1] == 1
    assert isinstance(found, Means)


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


# --- files --------------------------------------------------------------------------------


def mapped(x, tmp_path):
    np.save(tmp_path / "x.npy", x)
    return np.load(tmp_path / "x.npy", mmap_mode="r")


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
