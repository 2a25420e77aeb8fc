"""Every kind of file gives the numbers that were written, or the reason why not."""

import gc
import io
import re
import struct
import sys
import zipfile

import h5py
import numpy as np
import pandas as pd
import pytest
from conftest import normal, peak_memory
from scipy.io import savemat
from scipy.sparse import csc_array

from spectral_moments.checks import ArgumentError
from spectral_moments.engine import arrays
from spectral_moments.io import files
from spectral_moments.io.files import load, row_batches

PHI = normal((7, 6), 1)
MANY = normal((50, 6), 2)
TRIALS = np.stack([MANY, -MANY])


def save_h5(path, array, **options):
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=array, **options)


def save_new_mat(path, array):
    "As Matlab writes version 7.3: HDF5 with the axes the other way round."
    with h5py.File(path, "w", userblock_size=512) as file:
        file.create_dataset("x", data=np.asarray(array).T)
        file["words"] = np.array([[104], [105]], "u2")
        file["words"].attrs["MATLAB_class"] = np.bytes_("char")
        file["#refs#/a"] = np.ones((2, 2))
    with open(path, "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")


def save_parquet(path, array):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(array).add_prefix("c")
    frame.set_axis([f"row {i}" for i in range(len(array))]).to_parquet(path)


def save_zarr(path, array):
    zarr = pytest.importorskip("zarr")
    zarr.create_array(str(path), data=array, chunks=(20, 4))


WRITERS = {
    "plain.npy": np.save,
    "fortran.npy": lambda path, x: np.save(path, np.asfortranarray(x)),
    "plain.npz": lambda path, x: np.savez(path, x=x),
    "small.npz": lambda path, x: np.savez_compressed(path, x=x, bias=np.ones(3)),
    "plain.mat": lambda path, x: savemat(path, {"x": x}),
    "small.mat": lambda path, x: savemat(path, {"x": x, "w": "hi"}, do_compression=True),
    "new.mat": save_new_mat,
    "plain.csv": lambda path, x: np.savetxt(path, x, delimiter=",", fmt="%.17g"),
    "plain.tsv": lambda path, x: np.savetxt(path, x, delimiter="\t", fmt="%.17g"),
    "plain.h5": save_h5,
    "small.hdf5": lambda path, x: save_h5(path, x, compression="gzip", chunks=(1, 3)),
    "plain.nwb": save_h5,
    "plain.parquet": save_parquet,
    "plain.zarr": save_zarr,
}
TABLES = ("csv", "tsv", "parquet")


@pytest.mark.parametrize("name", WRITERS)
def test_every_format(tmp_path, name, monkeypatch):
    for k, array in enumerate([MANY, (9 * MANY).astype("i4"), MANY[:1]]):
        path = tmp_path / f"{k}{name}"
        WRITERS[name](path, array)
        found = load(path)
        np.testing.assert_array_equal(found, array)
        for size in (1, 7, 50, 51):
            parts = list(row_batches(path, size))
            assert max(map(len, parts)) <= size
            np.testing.assert_array_equal(np.concatenate(parts), array)
        if not name.endswith((*TABLES, "npy", "zarr")):
            np.testing.assert_array_equal(load(str(path), "x"), array)
    monkeypatch.setattr(files, "MAX_LOADED_BYTES", 0)  # read by rows
    monkeypatch.setattr(arrays, "MAX_LOADED_BYTES", 0)
    WRITERS[name](tmp_path / name, MANY)
    trials = arrays.open_trials(load(tmp_path / name))
    in_memory = (*TABLES, "npz", "plain.mat", "small.mat")
    assert arrays.backend(trials) == ("numpy" if name.endswith(in_memory) else "file")
    for rows in (slice(3, 9), np.array([40, 3, 3, 41])):
        np.testing.assert_array_equal(arrays.take_rows(trials, rows)[0], MANY[rows])


@pytest.mark.parametrize("name", ["plain.npy", "plain.npz", "new.mat", "plain.h5"])
def test_trials(tmp_path, name, monkeypatch):
    monkeypatch.setattr(files, "MAX_LOADED_BYTES", 0)
    WRITERS[name](tmp_path / name, TRIALS)
    found = load(tmp_path / name)
    assert found.shape == TRIALS.shape
    np.testing.assert_array_equal(found[...], TRIALS)
    parts = list(row_batches(tmp_path / name, 20))
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), TRIALS)


def test_matlab_types(tmp_path):
    sparse = csc_array(np.where(PHI > 0, PHI, 0.0))
    content = {"x": (5 * abs(PHI)).astype("u2"), "z": PHI * 1j, "thin": sparse}
    content |= {"words": "some text", "cell": np.array([1, "a"], dtype=object)}
    savemat(tmp_path / "x.mat", content | {"struct": {"x": 1.0}})
    for name in ("x", "z", "thin"):
        wanted = sparse.toarray() if name == "thin" else content[name]
        np.testing.assert_array_equal(load(tmp_path / "x.mat", name), wanted)
    with pytest.raises(ArgumentError, match="x.mat: pass key= with one of x, z, thin$"):
        load(tmp_path / "x.mat")
    with pytest.raises(ArgumentError, match="has no 'cell', only x"):
        load(tmp_path / "x.mat", "cell")


def test_arrays_and_labels_by_name(tmp_path):
    labels = np.array([f"movie {i // 2}" for i in range(7)])
    np.savez(tmp_path / "x.npz", x=PHI, movie=labels)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["deep/x"], file["movie"] = PHI, np.arange(7) // 2
    for name, key in (("x.npz", "x"), ("x.h5", "deep/x")):
        np.testing.assert_array_equal(load(tmp_path / name), PHI)  # the only matrix
        np.testing.assert_array_equal(load(tmp_path / name, key), PHI)
    np.testing.assert_array_equal(load(tmp_path / "x.npz", "movie"), labels)
    np.testing.assert_array_equal(load(tmp_path / "x.h5", "movie"), np.arange(7) // 2)
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(str(tmp_path / "x.zarr"), mode="w")
    for name in ("a", "b"):
        group.create_array(name, data=PHI if name == "a" else -PHI)
    np.testing.assert_array_equal(load(tmp_path / "x.zarr", "b"), -PHI)
    with pytest.raises(ArgumentError, match="pass key= with one of"):
        load(tmp_path / "x.zarr")
    for wrong in (dict(key="c"), dict(header=True), dict(index=False)):
        with pytest.raises(ArgumentError, match="x.zarr: (has no 'c'|is no table)"):
            load(tmp_path / "x.zarr", **wrong)
    np.save(tmp_path / "x.npy", PHI)
    with pytest.raises(ArgumentError, match="has no 'x', only array"):
        load(tmp_path / "x.npy", "x")


def test_files_that_continue_each_other(tmp_path, monkeypatch):
    names = [tmp_path / "0.npy", tmp_path / "1.h5", tmp_path / "2.csv"]
    parts = np.split(MANY, [20, 21])
    WRITERS["plain.npy"](names[0], parts[0].astype("f4"))
    WRITERS["plain.h5"](names[1], parts[1])
    WRITERS["plain.csv"](names[2], parts[2])
    expected = np.concatenate([parts[0].astype("f4"), *parts[1:]])
    found = load(names)
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, expected)
    batches = list(row_batches(names, 7))
    np.testing.assert_array_equal(np.concatenate(batches), expected)
    monkeypatch.setattr(files, "MAX_LOADED_BYTES", 0)
    rows = load(names)
    assert isinstance(rows, arrays.Rows) and rows.shape == (50, 6)
    for some in (slice(None), slice(10, 30), slice(1, 40, 3), [22, 19, 3, 3]):
        np.testing.assert_array_equal(rows[some], expected[some])
    np.save(tmp_path / "t.npy", TRIALS)
    twice = load([tmp_path / "t.npy"] * 2)
    assert twice.shape == (2, 100, 6)
    np.testing.assert_array_equal(twice[...], np.concatenate([TRIALS, TRIALS], axis=1))
    for wrong in ([], [names[0], tmp_path / "t.npy"]):
        with pytest.raises(ArgumentError, match="all must have the same columns"):
            load(wrong)


FRAME = pd.DataFrame([[1.5, 2, 3], [4, np.nan, 6], [7, 8, 9], [1, 2, 4]])
NAMED = FRAME.set_axis(["a", "b", "c"], axis=1)


def read(tmp_path, text, **options):
    (tmp_path / "x.csv").write_text(text, encoding="utf-8")
    return load(tmp_path / "x.csv", **options)


@pytest.mark.parametrize(
    ("frame", "text", "options"),
    [
        (FRAME, FRAME.to_csv(), dict(index=True)),
        (FRAME, FRAME.to_csv(index=False), dict(header=True)),
        (FRAME, FRAME.to_csv(index=False, header=False), {}),
        (NAMED, NAMED.to_csv(), dict(index=True)),
        (NAMED, NAMED.to_csv(index=False, na_rep="NULL"), {}),
        (NAMED, NAMED.rename_axis("trial_id").to_csv(na_rep="NA"), dict(index=True)),
        (FRAME, FRAME.to_csv(header=False), dict(index=True)),
        (NAMED[["b"]], NAMED[["b"]].to_csv(index=False, na_rep="nan"), {}),
    ],
)
def test_tables_of_data_frames(tmp_path, frame, text, options):
    np.testing.assert_array_equal(read(tmp_path, text, **options), frame.to_numpy())
    for choice in options:
        with pytest.raises(ArgumentError, match=f"{choice}.*{choice}=True") as caught:
            read(tmp_path, text)
        assert caught.value.argument == choice
        assert read(tmp_path, text, **{choice: False}).size > frame.size


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ('"a","b"\r\n"1", 2\r\n\r\n3,"4"\r\n', [[1, 2], [3, 4]]),
        ("\ufeffa,b\n1,2\n", [[1, 2]]),
        ("1e3,-inf\n2,3\n", [[1000, -np.inf], [2, 3]]),
        (",1.5,2\n3,4,5\n", [[np.nan, 1.5, 2], [3, 4, 5]]),
        ('"V1"\n"r1",0.5\n"r2",0.7\n', [[0.5], [0.7]]),  # of R: names of rows
        ("0.1,0.2\n0.30000000000000004,1\n", [[0.1, 0.2], [0.1 + 0.2, 1]]),
    ],
)
def test_tables_of_other_programs(tmp_path, text, table):
    np.testing.assert_array_equal(read(tmp_path, text), table)


def test_columns_of_labels(tmp_path):
    pytest.importorskip("pyarrow")
    frame = NAMED.assign(movie=list("xxyy"), tag=list("pqrs"), day=pd.Timestamp("2026"))
    frame.to_csv(tmp_path / "x.csv", index=False)
    frame.to_parquet(tmp_path / "x.parquet")
    for name in ("x.csv", "x.parquet"):
        path, others = tmp_path / name, ["movie", "tag", "day"]
        np.testing.assert_array_equal(load(path, index=others), NAMED)
        np.testing.assert_array_equal(load(path, "movie"), list("xxyy"))
        with pytest.raises(ArgumentError, match="'movie' is not numbers; .*index="):
            load(path)
        with pytest.raises(ArgumentError, match="has no 'film', only a, b"):
            load(path, index="film")
    for options in (dict(key=3), dict(index=1.5), dict(index=[["a"]])):
        with pytest.raises(ArgumentError, match="has no .*, only a, b"):
            load(path, **options)


def test_parquet_types(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "x.parquet"
    frame = pd.DataFrame({"a": [1.5, None, 3], "b": pd.array([1, None, 3], dtype="Int64")})
    frame.to_parquet(path)
    np.testing.assert_array_equal(load(path), frame.astype("f8"))


def npy_header(shape):
    file = io.BytesIO()
    about = dict(descr="<f8", fortran_order=False, shape=shape)
    np.lib.format.write_array_header_1_0(file, about)
    return file.getvalue()


def damaged(ending):
    "Bytes of files that promise too much, hold Python objects, or nothing."
    pickled, archive = io.BytesIO(), io.BytesIO()
    np.save(pickled, np.array([[{}]]), allow_pickle=True)
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("x.npy", pickled.getvalue())
    headers = npy_header((2**31, 2**31)), npy_header((-5, -5))
    return {
        "npy": [*headers, pickled.getvalue(), archive.getvalue(), b""],
        "npz": [archive.getvalue(), archive.getvalue()[:-9], b"PK"],
        "mat": [b"MATLAB 5.0".ljust(124) + b"\x00\x01IM" + struct.pack("<II", 15, 99)],
        "csv": [b"", b"a,b\n", b"1,2\n3,4,5\n", b"a,b\n1,\xe9\n"],
        "h5": [b"", b"\x89HDF\r\n\x1a\n" + bytes(99)],
        "parquet": [b"", b"PAR1" + bytes(99) + b"PAR1"],
    }[ending]


@pytest.mark.parametrize("ending", ["npy", "npz", "mat", "csv", "h5", "parquet"])
def test_damaged_files(tmp_path, ending):
    path = tmp_path / f"x.{ending}"
    for content in damaged(ending):
        path.write_bytes(content)
        with pytest.raises((ValueError, MemoryError), match=f"x.{ending}: ") as caught:
            load(path)
        assert not re.search("\n|attribute", str(caught.value))
    gc.collect()  # an open file would warn
    with pytest.raises(FileNotFoundError, match=f"no.{ending}: no such file"):
        load(tmp_path / f"no.{ending}")


@pytest.mark.parametrize("ending", [*files.OTHERS, ".zip", ""])
def test_other_formats(ending):
    reason = "pass phi = .*path" if ending in files.OTHERS else "unknown ending; .*npy"
    with pytest.raises(ArgumentError, match=f"x{ending}: .*{reason}"):
        load(f"x{ending}")


@pytest.mark.parametrize("ending", ["h5", "zarr", "parquet", "csv"])
def test_missing_libraries(tmp_path, ending, monkeypatch):
    library = {"h5": "h5py", "parquet": "pyarrow", "csv": "pandas"}.get(ending, ending)
    remedy = rf"x.{ending}: .*{library}.*; pip install 'spectral_moments\[files\]'"
    for name in [library, *(name for name in sys.modules if name.startswith(library))]:
        monkeypatch.setitem(sys.modules, name, None)
    path = tmp_path / f"x.{ending}"
    path.mkdir() if ending == "zarr" else path.touch()
    with pytest.raises(ImportError, match=remedy):
        load(path)


def test_names_that_command_the_terminal(tmp_path):
    np.savez(tmp_path / "x.npz", **{"a\x1b[31m": PHI, "b": PHI})
    with pytest.raises(ArgumentError, match=r"one of a\?\[31m, b$"):
        load(tmp_path / "x.npz")
    with pytest.raises(FileNotFoundError, match=r"^a\?b\.npy: no such file$"):
        load("a\nb.npy")


def test_batches_take_the_memory_of_a_batch(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((20_000, 200)))  # 32 MB
    size = 2**20

    def read_all():
        for part in row_batches(tmp_path / "x.npy", 600):
            assert part.nbytes <= size

    assert peak_memory(read_all) < 3 * size + 2**20
