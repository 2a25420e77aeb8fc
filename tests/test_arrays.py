"""Every kind of array gives the same numbers; what is no matrix is refused by name."""

import operator
from pathlib import Path

import dask
import dask.array as da
import h5py
import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr
from conftest import normal
from scipy.sparse import csc_array

from spectral_moments.checks import ArgumentError
from spectral_moments.engine import arrays
from spectral_moments.engine.arrays import check_trials, open_trials, row_blocks, take_rows

PHI = normal((24, 30), 1)
GAPS = np.where(PHI > 2, np.nan, PHI)
TRIALS = PHI + normal((2, 24, 30), 2)
FRAME = pd.DataFrame(PHI)
LABELLED = xr.DataArray(PHI, dims=("stimulus", "neuron"))
TENSOR = torch.from_numpy(PHI.copy())
MANY = normal((2, 500, 6), 3)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "g", "i1", "i8", "u1", "u8", "?"])
def test_any_real_dtype_and_layout(dtype):
    whole = np.arange(24).reshape(2, 3, 4).astype(dtype)
    for phi in (whole, whole[0], np.asfortranarray(whole), whole[:, ::-1], whole[..., ::2]):
        phi.flags.writeable = False
        result = check_trials(phi)
        assert result.dtype == np.float64 and result.flags.c_contiguous
        np.testing.assert_array_equal(result, phi.astype("f8").reshape(-1, *phi.shape[-2:]))


class OnlyArray:
    "Has `__array__` and nothing else."

    def __array__(self, dtype=None, copy=None):
        return PHI


@pytest.mark.parametrize(
    ("phi", "plain"),
    [
        (PHI.tolist(), PHI),
        (OnlyArray(), PHI),
        (FRAME, PHI),
        (FRAME.set_axis(list("abcdef") * 5, axis=1), PHI),  # names may come twice
        (FRAME.set_axis(pd.MultiIndex.from_product([range(5), range(6)]), axis=1), PHI),
        (FRAME.astype({0: "Float64", 1: "Float64"}), PHI),
        ((10 * FRAME).round().astype("Int64"), (10 * PHI).round()),
        (FRAME > 0, 1.0 * (PHI > 0)),
        (FRAME.where(FRAME > 0, 0.0).astype(pd.SparseDtype(float, 0.0)), PHI * (PHI > 0)),
        (pd.DataFrame(GAPS).astype("Float64"), GAPS),  # NA
        (LABELLED, PHI),
        (xr.DataArray(TRIALS), TRIALS),
        (TENSOR, PHI),
        (TENSOR.bfloat16(), TENSOR.bfloat16().double().numpy()),
        (TENSOR > 0, 1.0 * (PHI > 0)),
        (torch.complex(TENSOR, -TENSOR).conj().imag, PHI),  # a view that negates
        (torch.from_numpy(TRIALS), TRIALS),
        (torch.from_numpy(GAPS), GAPS),
        (da.from_array(TRIALS, (1, 5, 7)), TRIALS),
    ],
)
def test_same_numbers(phi, plain):
    plain = plain.reshape(-1, *plain.shape[-2:])
    np.testing.assert_array_equal(check_trials(phi, missing=True), plain)
    opened = open_trials(phi)
    assert arrays.backend(opened) == (
        "torch" if arrays.backend(phi) == "torch" else "numpy"
    )
    np.testing.assert_array_equal(arrays.to_numpy(opened), plain)


def test_input_is_neither_modified_nor_copied_without_need():
    frame, tensor = pd.DataFrame(GAPS), torch.from_numpy(GAPS.copy()).requires_grad_()
    for phi in (frame, tensor):
        open_trials(phi)
    np.testing.assert_array_equal(frame, GAPS)
    np.testing.assert_array_equal(tensor.detach(), GAPS)
    assert np.shares_memory(check_trials(LABELLED), LABELLED.values)
    assert np.shares_memory(check_trials(TENSOR), TENSOR.numpy())
    assert open_trials(TENSOR).data_ptr() == TENSOR.data_ptr()


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i4", "u1", "?"])
def test_what_is_masked_becomes_nan(dtype):
    phi = np.ma.masked_array(np.ones((2, 3)), [[0, 1, 0], [1, 0, 0]], dtype=dtype)
    expected = [[1, np.nan, 1], [np.nan, 1, 1]]
    for given_as in (phi, list(phi), tuple(phi), [phi]):
        found = check_trials(given_as, missing=True)
        np.testing.assert_array_equal(found[0], expected)
    assert (phi.data == 1).all()  # and what is behind the mask is left as it was
    np.testing.assert_array_equal(check_trials(np.ma.ones((2, 2)))[0], np.ones((2, 2)))


def test_tables_by_columns():
    make = pytest.importorskip("pyarrow").table
    columns = {"a": [0.5, 1.0, None], "b": [1, None, 3]}
    expected = [[0.5, 1], [1, np.nan], [np.nan, 3]]
    np.testing.assert_array_equal(open_trials(make(columns))[0], expected)


@pytest.mark.parametrize(
    ("phi", "message"),
    [
        (np.ones((2, 2), complex), "phi is complex.*real part"),
        (torch.ones(2, 2, dtype=torch.complex64), "phi is complex.*real part"),
        (FRAME * 1j, "phi is complex"),
        (TENSOR.to_sparse(), r"phi is a sparse tensor; pass phi.to_dense\(\)"),
        (csc_array(PHI), r"phi is a sparse matrix; pass phi.toarray\(\)"),
        (csc_array((2**14, 2**10)), "phi is a sparse matrix"),  # however large
        (np.ones((2, 2), object), "dtype object.*convert"),
        ([["1", "2"]], "dtype <U1.*convert"),
        ([[1.0, 2.0], [3.0]], "same length"),
        (3.0, "0 axes"),
        ([1.0, 2.0], "1 axes"),
        (np.ones((1, 2, 2, 2)), "4 axes"),
        (np.ones((0, 3)), "empty"),
        (torch.ones(0, 3), "empty"),
        ([[1.0, np.inf]], "infinite"),
        ([[-np.inf, np.nan]], "infinite"),
        (torch.tensor([[1.0, np.inf]]), "infinite"),
        (np.full((2, 2), np.longdouble("1e4000")), "too large for float64"),
        ([[np.nan, np.nan]], "only NaN"),
        (torch.full((2, 2), np.nan), "only NaN"),
        (FRAME.assign(name="x"), r"\('name'\); drop"),
        (FRAME.assign(ok=True), r"\('ok'\); drop"),
        (FRAME.astype(str), r"\(0, 1, 2, ...\)"),
        (xr.Dataset({"phi": LABELLED}), "cannot be made into an array.*DataArray"),
        (None, "phi is None; pass a matrix"),
        ("a.npy", r"phi is a str; load it first: sm.load\(path\)"),
        (Path("a.npy"), r"phi is a \w*Path; load it first"),
        ({"a": np.ones((2, 2))}, r"phi is a dict; .*phi\[key\]"),
        (da.ones((5, 5), dtype=complex), "complex"),
        (da.ones((5, 5))[da.arange(5) > 2], r"unknown shape .*compute_chunk_sizes\(\)"),
    ],
)
def test_refused(phi, message):
    with pytest.raises(ArgumentError, match=message) as caught:
        open_trials(phi, "phi")
    assert caught.value.argument == "phi"


def test_dask_chunks_of_another_shape_are_refused():
    wrong = da.from_delayed(dask.delayed(np.ones)((6, 5)), (8, 5), dtype=float)
    with pytest.raises(ArgumentError, match=r"another shape.*compute_chunk_sizes\(\)"):
        open_trials(wrong, "phi")


def test_tensors_keep_device_and_gradient():
    phi = TENSOR.float().requires_grad_()
    trials = arrays.tensor_trials(phi)
    assert trials.dtype == torch.float64 and trials.requires_grad
    trials.square().sum().backward()
    np.testing.assert_allclose(phi.grad, 2 * phi.detach(), rtol=1e-6)
    assert not open_trials(phi).requires_grad
    xp = arrays.namespace(trials)
    assert arrays.namespace(PHI) is np
    new = xp.asarray(PHI)
    assert new.dtype == torch.float64 and new.device == phi.device
    product = xp.einsum("tpq,tpq->p", trials, trials)
    np.testing.assert_allclose(arrays.to_numpy(product), (PHI**2).sum(1), rtol=1e-5)
    np.testing.assert_array_equal(arrays.to_numpy([TENSOR[0], PHI[1]]), PHI[:2])


class Plain:
    "Shape, type and slices of rows, and nothing else; notes what is read."

    def __init__(self, x, chunks=None):
        self.x, self.shape, self.dtype, self.chunks, self.reads = (
            x,
            x.shape,
            x.dtype,
            chunks,
            [],
        )

    def __getitem__(self, key):
        rows = key[-1] if isinstance(key, tuple) else key
        rows = slice(None) if rows is Ellipsis else rows
        self.reads.append(range(*rows.indices(self.shape[-2])))
        return self.x[key]


def stored(kind, folder, x):
    "The array in a file or a Dask array."
    if kind == "zarr":
        return pytest.importorskip("zarr").create_array(
            str(folder / "x"), data=x, chunks=(*x.shape[:-2], 40, 3)
        )
    if kind == "h5py":
        chunks = (*x.shape[:-2], 40, 3)
        return h5py.File(folder / "x.h5", "w").create_dataset("x", data=x, chunks=chunks)
    if kind == "dask":
        return da.from_array(x, (*x.shape[:-2], (7, 0, 93, 300, 100), 4))
    if kind == "plain":
        return Plain(x)
    if kind == "rows":
        return arrays.Rows(x.shape, x.dtype, lambda rows: x[..., rows, :])
    np.save(folder / "x.npy", np.asfortranarray(x) if kind == "fortran" else x)
    return np.load(folder / "x.npy", mmap_mode="r")


KINDS = ["map", "fortran", "h5py", "zarr", "plain", "rows", "dask", "numpy", "torch"]


@pytest.fixture
def small(monkeypatch):
    "Nothing is loaded as a whole, and blocks have at most 100 rows."
    monkeypatch.setattr(arrays, "MAX_LOADED_BYTES", 0)
    monkeypatch.setattr(arrays, "BLOCK_BYTES", 100 * 6 * 8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8"])
@pytest.mark.parametrize("n_trials", [None, 2])
def test_rows_of_every_kind(tmp_path, small, kind, dtype, n_trials):
    x = (100 * MANY[0 if n_trials is None else slice(None)]).astype(dtype)
    expected = x.reshape(-1, 500, 6).astype(float)
    phi = {"numpy": x, "torch": torch.tensor(x)}.get(kind)
    trials = open_trials(stored(kind, tmp_path, x) if phi is None else phi)
    kinds = {"numpy": "numpy", "torch": "torch", "dask": "dask"}
    assert arrays.backend(trials) == kinds.get(kind, "file")
    assert tuple(trials.shape) == expected.shape
    numbers = np.random.default_rng(0).integers(500, size=60)
    for rows in (slice(3, 9), slice(90, 210), numbers, np.sort(numbers), numbers[:0]):
        found = take_rows(trials, rows)
        np.testing.assert_array_equal(arrays.to_numpy(found), expected[:, rows])
    blocks = row_blocks(trials)
    assert np.concatenate([np.r_[rows] for rows in blocks]).tolist() == [*range(500)]
    assert len(blocks) < 30
    assert len(blocks) > 2 or kind == "fortran"  # 512 rows of a page of memory
    done, weighted = [], lambda k, first, second: (k + 1) * (first * second).sum()
    numbered = [(rows, k) for k, rows in enumerate(blocks)]
    both = [trials, trials]
    total = arrays.sum_blocks(weighted, both, numbered, operator.add, done.append)
    np.testing.assert_allclose(
        arrays.to_numpy(total), weights(blocks) @ (expected**2).sum((0, 2))
    )
    assert sum(done) == 500


def weights(blocks):
    return np.concatenate(
        [(k + 1) * np.ones(b.stop - b.start) for k, b in enumerate(blocks)]
    )


def test_rows_are_read_in_their_order_and_close_ones_together(small):
    file = Plain(normal((10_000, 6)))
    numbers = np.array([9_000, 5, 4, 9_001, 6, 4])
    trials = open_trials(file)
    np.testing.assert_array_equal(take_rows(trials, numbers)[0], file.x[numbers])
    assert file.reads == [range(4, 7), range(9_000, 9_002)]


def test_chunks_are_read_once(small):
    file = Plain(normal((1000, 6)), chunks=(130, 2))
    trials = open_trials(file)
    assert [b.stop - b.start for b in row_blocks(trials)] == 7 * [130] + [90]
    take_rows(trials, np.random.default_rng(0).permutation(1000)[:300])
    for chunk in range(8):
        assert (
            sum(130 * chunk in rows or rows[0] // 130 == chunk for rows in file.reads) <= 1
        )
    tall = open_trials(Plain(np.zeros((2**20, 100), "u1"), chunks=(2**20, 1)))
    assert len(row_blocks(tall)) > 100  # chunks that do not fit into memory are cut


def test_small_files_are_loaded(tmp_path):
    for kind in KINDS[:-2]:
        folder = tmp_path / kind
        folder.mkdir()
        trials = open_trials(stored(kind, folder, MANY))
        assert arrays.backend(trials) == "numpy"
        np.testing.assert_array_equal(trials, MANY)


def test_dask_adds_in_a_tree_and_next_to_other_arrays(tmp_path, small):
    "Nothing but the sum reaches the client; several arrays are cut alike."
    x, y = stored("dask", tmp_path, MANY), da.from_array(-MANY, (1, 33, 6))
    first, second = open_trials(x), open_trials(y)
    blocks = [(rows, k) for k, rows in enumerate(row_blocks(first))]
    product = lambda k, *blocks: np.prod(blocks, axis=0).sum()
    with dask.config.set(scheduler="synchronous"):
        total = arrays.sum_blocks(product, [first, second, MANY], blocks, operator.add)
    np.testing.assert_allclose(total, -(MANY**3).sum(), rtol=1e-10)
    on_disk = open_trials(stored("map", tmp_path, MANY))
    total = arrays.sum_blocks(product, [first, second, on_disk], blocks, operator.add)
    np.testing.assert_allclose(total, -(MANY**3).sum(), rtol=1e-10)
    strings = arrays.sum_blocks(
        lambda k, block: f"{k},", [first], blocks, operator.add
    )  # the order is kept
    assert strings == "".join(f"{k}," for k in range(len(blocks)))


def test_dask_chunks_are_validated_where_they_are_computed(small):
    bad = MANY[0].copy()
    bad[300, 2] = np.inf
    trials = open_trials(da.from_array(bad, 50), "table")
    take_rows(trials, slice(0, 50))
    blocks = [(rows, 1.0) for rows in row_blocks(trials)]
    with pytest.raises(ArgumentError, match="table has infinite entries"):
        arrays.sum_blocks(np.multiply, [trials], blocks, np.multiply)
    frame = pytest.importorskip("dask.dataframe").from_pandas(FRAME, npartitions=2)
    with pytest.raises(ArgumentError, match=r"to_dask_array\(lengths=True\)"):
        open_trials(frame)


def test_svd_has_a_second_algorithm(monkeypatch):
    u, s, v = arrays.svd(PHI)
    np.testing.assert_allclose(u * s @ v, PHI, atol=1e-12)

    def fail(*_, **__):
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(np.linalg, "svd", fail)
    np.testing.assert_allclose(arrays.svd(PHI, vectors=False), s, rtol=1e-12)
    u, s, v = arrays.svd(PHI)
    np.testing.assert_allclose(u * s @ v, PHI, atol=1e-12)


def test_symmetric_matrices_have_a_fallback(monkeypatch):
    "Where LAPACK gives up on an exactly singular matrix, another routine answers."
    x = np.random.default_rng(2).standard_normal((12, 7))
    signs = np.array([1.0, 1, 1, -1, -1, 1, 1])
    K = (x * signs) @ x.T
    expected = np.linalg.eigvalsh(K)

    def fails(*_, **__):
        raise np.linalg.LinAlgError("Eigenvalues did not converge")

    monkeypatch.setattr(np.linalg, "eigh", fails)
    values, vectors = arrays.eigh(K)
    np.testing.assert_allclose(values, expected, atol=1e-12)
    np.testing.assert_allclose((vectors * values) @ vectors.T, K, atol=1e-12)
    monkeypatch.setattr(np.linalg, "svd", fails)
    np.testing.assert_allclose(arrays.eigh(K)[0], expected, atol=1e-12)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")
def test_a_memory_map_does_not_stay_in_memory(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((200_000, 64)))
    trials = open_trials(np.load(tmp_path / "x.npy", mmap_mode="r"))
    resident = lambda: int(Path("/proc/self/statm").read_text().split()[1])  # pages
    before = resident()
    for rows in row_blocks(trials):
        take_rows(trials, rows)
    assert (resident() - before) * 4096 < trials.shape[1] * 64 * 8 / 2
