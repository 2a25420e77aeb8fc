"""Damaged and hostile files, interrupted writes."""

import errno
import functools
import http.server
import io
import json
import os
import re
import resource
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import textwrap
import threading
import zipfile
import zlib
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import Mock

import h5py
import numpy as np
import pandas as pd
import pytest
import torch
from conftest import peak_memory, python
from scipy.io import savemat
from scipy.sparse import csc_array, eye_array

import spectral_moments as sm
from spectral_moments import Linear
from spectral_moments.checks import ArgumentError
from spectral_moments.engine import arrays, sources
from spectral_moments.io import files
from spectral_moments.io.files import (
    BATCH,
    atomic_write,
    load_matrix,
    load_recording,
    row_batches,
    shards,
)

PHI = Linear(3).sample(7, 6, random_state=1)
THIN = np.where(PHI > 0, PHI, 0.0)


# --- writing ------------------------------------------------------------------------------


def no_room(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_old_file_survives_any_failure(tmp_path, monkeypatch):
    path = tmp_path / "x"
    path.write_text("old")

    def write(then):
        with atomic_write(path, "w") as file:
            file.write("half")
            file.flush()
            then()

    for error in (ValueError, KeyboardInterrupt, SystemExit, MemoryError):
        with pytest.raises(error):
            write(Mock(side_effect=error))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", no_room)
        with pytest.raises(OSError, match="No space"):
            write(lambda: None)
    assert os.listdir(tmp_path) == ["x"] and path.read_text() == "old"
    child = os.fork()
    if not child:
        write(lambda: os.kill(os.getpid(), signal.SIGKILL))
    assert os.waitpid(child, 0)[1] == signal.SIGKILL and path.read_text() == "old"
    write(lambda: None)  # what the other one left is not in the way
    assert path.read_text() == "half"


def test_permissions_are_those_of_open(tmp_path):
    before = os.umask(0o027)
    try:
        with atomic_write(tmp_path / "a"), open(tmp_path / "b", "wb"):
            pass
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in "ab"]
    assert modes == [0o640, 0o640]
    (tmp_path / "a").chmod(0o604)
    with atomic_write(tmp_path / "a") as file:
        file.write(b"1")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o604


def test_links_are_followed_and_devices_not_replaced(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    with atomic_write(tmp_path / "link", "w") as file:
        file.write("new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_text() == "new"
    with atomic_write(os.devnull) as file:
        file.write(b"1")
    assert not os.path.isfile(os.devnull)
    os.mkfifo(tmp_path / "fifo")
    found = []
    reader = threading.Thread(target=lambda: found.append((tmp_path / "fifo").read_text()))
    reader.start()
    with atomic_write(tmp_path / "fifo", "w") as file:
        file.write("through")
    reader.join()
    assert found == ["through"]
    with pytest.raises(IsADirectoryError), atomic_write(tmp_path):
        pass
    (tmp_path / "real").touch()
    for path, error in (("no/x", FileNotFoundError), ("real/x", NotADirectoryError)):
        with pytest.raises(error, match=f"{path}'$"), atomic_write(tmp_path / path):
            pass


def test_writers_at_the_same_time(tmp_path):
    path, texts = tmp_path / "x", [str(i) * 10_000 for i in range(8)]

    def write(text):
        for _ in range(5):
            with atomic_write(path, "w") as file:
                file.write(text)

    threads = [threading.Thread(target=write, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_text() in texts and os.listdir(tmp_path) == ["x"]


# --- every format -------------------------------------------------------------------------


def save_h5(path, array, **options):
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=array, **options)


def save_parquet(path, array):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(array).add_prefix("c")
    frame.set_axis([f"row {i}" for i in range(len(array))]).to_parquet(path)


def save_zarr(path, array):
    zarr = pytest.importorskip("zarr")
    zarr.save_array(str(path), array)


def save_new_mat(path, array):
    "As Matlab writes version 7.3: HDF5 with the axes the other way round."
    with h5py.File(path, "w", userblock_size=512) as file:
        file["x"] = np.asarray(array).T
        file["x"].attrs["MATLAB_class"] = np.bytes_("double")
        file["words"] = np.array([[104], [105]], "u2")
        file["words"].attrs["MATLAB_class"] = np.bytes_("char")
        file["#refs#/a"] = np.ones((2, 2))
    with open(path, "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")


def save_safetensors(path, array):
    save = pytest.importorskip("safetensors.numpy").save_file
    save({"x": np.ascontiguousarray(array), "bias": np.ones(3)}, path)


def save_arrow(path, array, lists=False, stream=False):
    arrow = pytest.importorskip("pyarrow")
    columns = {f"c{i}": x for i, x in enumerate(np.asarray(array).T)}
    if lists:
        kind = arrow.list_(arrow.from_numpy_dtype(array.dtype))
        columns = {"x": arrow.array(list(array), kind), "n": np.arange(len(array))}
    table = arrow.table(columns)
    make = arrow.ipc.new_stream if stream else arrow.ipc.new_file
    with make(str(path), table.schema) as writer:
        for start in range(0, len(array), 20):
            writer.write_table(table.slice(start, 20))


def save_dataset(path, array):
    "As `datasets.save_to_disk` does: a folder of Arrow streams and their list."
    path.mkdir()
    names = [f"data-0000{k}-of-00002.arrow" for k in range(2)]
    for name, part in zip(names, np.array_split(array, [len(array) // 2])):
        save_arrow(path / name, part, lists=True, stream=True)
    files = [{"filename": name} for name in names]
    (path / "state.json").write_text(json.dumps({"_data_files": files}))


WRITERS = {
    "plain.npy": np.save,
    "fortran.npy": lambda path, x: np.save(path, np.asfortranarray(x)),
    "plain.npz": lambda path, x: np.savez(path, x=x),
    "small.npz": lambda path, x: np.savez_compressed(path, x=x),
    "plain.mat": lambda path, x: savemat(path, {"x": x}),
    "small.mat": lambda path, x: savemat(path, {"x": x}, do_compression=True),
    "plain.csv": lambda path, x: np.savetxt(path, x, delimiter=",", fmt="%.17g"),
    "plain.tsv": lambda path, x: np.savetxt(path, x, delimiter="\t", fmt="%.17g"),
    "plain.h5": save_h5,
    "small.hdf5": lambda path, x: save_h5(path, x, compression="gzip", chunks=(1, 3)),
    "plain.parquet": save_parquet,
    "plain.zarr": save_zarr,
    "plain.nwb": save_h5,
    "new.mat": save_new_mat,
    "plain.safetensors": save_safetensors,
    "plain.pt": lambda path, x: torch.save(torch.tensor(x), path),
    "several.pth": lambda path, x: torch.save({"x": torch.tensor(x), "n": 3}, path),
    "plain.arrow": save_arrow,
    "lists.feather": lambda path, x: save_arrow(path, x, lists=True),
    "dataset": save_dataset,
}
SAFE = ("plain.safetensors",)
NAMELESS = ("npy", "csv", "tsv", "plain.parquet", "zarr", "plain.pt", "plain.arrow")


@pytest.mark.parametrize("name", WRITERS)
def test_every_format(tmp_path, name):
    several = (PHI, PHI[:1], (9 * PHI).astype("i4"), PHI > 0)
    for array in several[: 1 if name in WHOLE else 4]:  # a process each
        if array.dtype == bool and name.endswith(("csv", "tsv")):
            continue
        path = tmp_path / f"{array.dtype}{len(array)}{name}"
        WRITERS[name](path, array)
        np.testing.assert_array_equal(load_matrix(path), array)
        if not name.endswith(NAMELESS):
            np.testing.assert_array_equal(load_matrix(path, "x"), array)


def test_matlab_types(tmp_path):
    full = (5 * abs(PHI)).astype("u2")
    content = {"x": full, "z": PHI * 1j, "trials": np.stack([PHI, 2 * PHI]).astype("f4")}
    content |= {"words": "some text", "cell": np.array([1, "a"], dtype=object)}
    content |= {"struct": {"x": 1.0}, "thin": csc_array(THIN), "none": csc_array((3, 4))}
    savemat(tmp_path / "x.mat", content, do_compression=True)
    for name in ("x", "z", "trials", "thin", "none"):
        found, wanted = load_matrix(tmp_path / "x.mat", name), content[name]
        wanted = wanted.toarray() if name in ("thin", "none") else wanted
        np.testing.assert_array_equal(found, wanted)
        assert found.dtype == wanted.dtype
    with pytest.raises(ValueError, match="pass key= with one of .*trials"):
        load_matrix(tmp_path / "x.mat")
    with pytest.raises(ValueError, match="has no array 'cell'"):
        load_matrix(tmp_path / "x.mat", "cell")


def test_parquet_with_gaps_and_words(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": [1.5, None, 3], "b": pd.array([1, None, 3], dtype="Int64")})
    frame.to_parquet(tmp_path / "x.parquet")
    np.testing.assert_array_equal(load_matrix(tmp_path / "x.parquet"), frame.astype("f8"))
    for other in (["a", "b", "c"], pd.date_range("2026", periods=3)):
        frame.assign(b=other).to_parquet(tmp_path / "x.parquet")
        with pytest.raises(ValueError, match="the column 'b' is .*, not numbers"):
            load_matrix(tmp_path / "x.parquet")


def test_zarr_groups(tmp_path):
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(str(tmp_path / "x.zarr"), mode="w")
    for name in ("a", "b"):
        group[name] = PHI if name == "a" else -PHI
    np.testing.assert_array_equal(load_matrix(tmp_path / "x.zarr", "b"), -PHI)
    with pytest.raises(ValueError, match="pass key= with one of a, b"):
        load_matrix(tmp_path / "x.zarr")


@pytest.mark.parametrize("ending", ["h5", "zarr", "parquet"])
def test_missing_libraries(tmp_path, ending, monkeypatch):
    library = {"h5": "h5py", "parquet": "pyarrow"}.get(ending, ending)
    for name in [library, *(name for name in sys.modules if name.startswith(library))]:
        monkeypatch.setitem(sys.modules, name, None)
    path = tmp_path / f"x.{ending}"
    path.mkdir() if ending == "zarr" else path.touch()
    with pytest.raises(ImportError, match=rf"x.{ending}: needs {library}: pip install"):
        load_matrix(path)


# --- half precision, shards, URLs, labels ------------------------------------------------


def rows_of(source):
    "Two rows, as they were given."
    return source.take([5, 3]) * 2.0**source.exponent


def test_half_precision_stays(tmp_path, monkeypatch):
    "bfloat16 is widened when rows are read, float16 is mapped or copied as it is."
    st = pytest.importorskip("safetensors.torch")
    wide = torch.tensor(Linear(3).sample(300, 6, random_state=1))
    for dtype in (torch.bfloat16, torch.float16):
        half = wide.to(dtype)
        st.save_file({"x": half}, tmp_path / "x.safetensors")
        torch.save(half, tmp_path / "x.pt")
        for name in ("x.safetensors", "x.pt"):
            np.testing.assert_array_equal(load_matrix(tmp_path / name), half.double())
            parts = list(row_batches(tmp_path / name, size=70))
            np.testing.assert_array_equal(np.concatenate(parts), half.double())
    monkeypatch.setattr(arrays, "LOADED", 0)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = wide.half().numpy()
        source = sources.open_source(file["x"])
        assert source.trials.dtype == np.float16 and source.backend == "file"
        assert (rows_of(source) == wide.half()[[5, 3]].double().numpy()).all()
    bits = load_recording(tmp_path / "x.safetensors").values
    assert bits.dtype == np.float16 and isinstance(bits, np.memmap)
    st.save_file({"x": wide.bfloat16()}, tmp_path / "x.safetensors")
    source = sources.open_source(load_recording(tmp_path / "x.safetensors").values)
    assert isinstance(source.trials, arrays.Rows) and source.trials.direct
    assert (rows_of(source) == wide.bfloat16()[[5, 3]].double().numpy()).all()


class Plain:
    "Shape, type and slices of rows, and nothing else."

    def __init__(self, x):
        self.x, self.shape, self.dtype, self.most = x, x.shape, x.dtype, 0

    def __getitem__(self, key):
        self.most = max(self.most, self.x[key].nbytes)
        return self.x[key]


@pytest.mark.filterwarnings("ignore::spectral_moments.results.EstimateWarning")
def test_shards_are_one_matrix(tmp_path, monkeypatch):
    many, names = Linear(3).sample(90, 8, random_state=2), []
    for k, part in enumerate(np.split(many, [20, 21, 60])):
        np.save(tmp_path / f"shard-{k}.npy", part)
        names.append(tmp_path / f"shard-{k}.npy")
    together = shards(names)
    assert together.shape == (90, 8)
    for rows in (slice(None), slice(10, 70), slice(0, 0), [59, 60, 3, 3], np.arange(90)):
        np.testing.assert_array_equal(together[rows], many[rows])
    np.testing.assert_array_equal(np.concatenate(list(row_batches(names, size=7))), many)
    expected = sm.estimate(many, 3)
    for loaded in (2**26, 0):  # small ones are loaded, large ones are not copied
        monkeypatch.setattr(arrays, "LOADED", loaded)
        parts = [np.load(name, mmap_mode="r") for name in names]
        tensors = [torch.tensor(part) for part in parts]
        several = (together, shards(parts), shards([Plain(many)]), shards(tensors))
        for given_as in (*several, Plain(many)):
            found = sm.estimate(given_as, 3)
            np.testing.assert_allclose(found.values, expected.values, rtol=1e-10)
            np.testing.assert_allclose(found.stderr, expected.stderr, rtol=1e-2)
    monkeypatch.setattr(arrays, "mapped", lambda x: pytest.fail("copied"))
    sm.estimate(together, 2)
    trials = shards([np.stack([x, -x]) for x in np.split(many, 3)])
    assert trials.shape == (2, 90, 8)
    np.testing.assert_array_equal(trials[...], np.stack([many, -many]))
    for wrong in ([], "a.npy", many, [many, many[:, :3]], [many, many[0]]):
        with pytest.raises(ArgumentError, match="parts"):
            shards(wrong)


def test_shards_list_the_rows_that_are_read():
    part = np.broadcast_to(np.arange(3.0), (2**40, 3))  # as many rows as nobody has
    together = shards([part, part])
    assert together.shape == (2**41, 3)
    np.testing.assert_array_equal(together[2**40 - 2 : 2**40 + 2], part[:4])


def test_a_memory_url():
    fsspec = pytest.importorskip("fsspec")
    for name, write in WRITERS.items():
        if name == "dataset" or (name in SAFE and not find_spec("safetensors")):
            continue
        store = fsspec.filesystem("memory")
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder) / name, PHI)
            store.put(f"{folder}/{name}", f"/shelf/{name}", recursive=True)
        url = f"memory://shelf/{name}"
        np.testing.assert_array_equal(load_matrix(url), PHI)
        if name not in WHOLE:
            parts = list(row_batches(url, size=3))
            np.testing.assert_array_equal(np.concatenate(parts), PHI)
    with pytest.raises(ValueError, match=r"memory://shelf/no\.npy: no such file"):
        load_matrix("memory://shelf/no.npy")
    with pytest.raises(ValueError, match="memory://shelf/no: unknown ending"):
        load_matrix("memory://shelf/no")


class Ranged(http.server.SimpleHTTPRequestHandler):
    "A server that hands out ranges of bytes, and counts them."

    sent = 0

    def log_message(self, *_): ...

    def do_HEAD(self):
        self.do_GET(body=False)

    def do_GET(self, body=True):
        try:
            content = Path(self.translate_path(self.path)).read_bytes()
        except OSError:
            return self.send_error(404)
        asked = self.headers.get("Range")
        first, last = (asked or "=0-").partition("=")[2].split("-")
        part = content[int(first) : int(last) + 1 if last else None]
        self.send_response(206 if asked else 200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(part)))
        if asked:
            end = int(first) + len(part) - 1
            self.send_header("Content-Range", f"bytes {first}-{end}/{len(content)}")
        self.end_headers()
        if body:
            Ranged.sent += len(part)
            self.wfile.write(part)


@pytest.fixture
def served(tmp_path):
    "A local server of a folder."
    make = functools.partial(Ranged, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), make) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_a_web_address(tmp_path, served):
    pytest.importorskip("fsspec")
    pytest.importorskip("aiohttp")
    for name in ("plain.npy", "plain.h5", "plain.parquet", "plain.csv", *SAFE):
        WRITERS[name](tmp_path / name, PHI)
        np.testing.assert_array_equal(load_matrix(f"{served}/{name}"), PHI)
    WRITERS["plain.zarr"](tmp_path / "plain.zarr", PHI)
    np.testing.assert_array_equal(load_matrix(f"{served}/plain.zarr"), PHI)
    with pytest.raises(ValueError, match=r"no\.npy: no such file"):
        load_matrix(f"{served}/no.npy")
    np.save(tmp_path / "large.npy", np.zeros((40_000, 100)))  # 32 MB, of which few are read
    Ranged.sent = 0
    assert len(next(row_batches(f"{served}/large.npy", size=10))) == 10
    assert Ranged.sent < 12e6


LABELS = np.array([f"movie {i // 2}" for i in range(7)])


def with_labels(path):
    "A file with `PHI` and a label for each row."
    frame, numbers = pd.DataFrame(PHI).add_prefix("c"), np.arange(7) // 2
    frame.insert(3 if path.name.startswith("mid") else 0, "movie", LABELS)
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".npz":
        np.savez(path, x=PHI, movie=LABELS)
    elif path.suffix == ".arrow":
        arrow = pytest.importorskip("pyarrow")
        table = arrow.table({"x": list(PHI), "movie": LABELS.tolist()})
        with arrow.ipc.new_stream(str(path), table.schema) as writer:
            writer.write_table(table)
    elif path.suffix == ".mat":
        savemat(path, {"x": PHI, "movie": numbers})
    elif path.suffix == ".safetensors":
        save = pytest.importorskip("safetensors.numpy").save_file
        save({"x": PHI, "movie": numbers}, path)
    else:
        with h5py.File(path, "w") as file:
            file["x"], file["movie"] = PHI, LABELS.astype("S")


ENDINGS = "csv parquet npz arrow mat h5 nwb safetensors"


@pytest.mark.parametrize(
    "name", ["mid.csv", "mid.parquet", *map("a.{}".format, ENDINGS.split())]
)
def test_labels_become_groups(tmp_path, name):
    path, labels = tmp_path / name, dict(groups_key="movie")
    key = None if name.endswith(("csv", "parquet", "arrow")) else "x"
    with_labels(path)
    found = load_recording(path, key, **labels)
    np.testing.assert_array_equal(found.values, PHI)
    same = lambda x: np.asarray(x)[:, None] == np.asarray(x)
    np.testing.assert_array_equal(same(found.groups), same(LABELS))
    twice = load_recording([path, path], key, **labels)  # shards
    np.testing.assert_array_equal(twice.values[...], np.concatenate([PHI, PHI]))
    np.testing.assert_array_equal(same(twice.groups), same([*LABELS, *LABELS]))
    if not name.endswith("mat"):
        parts = list(row_batches(path, key, size=3, **labels))
        np.testing.assert_array_equal(np.concatenate(parts), PHI)
    once = f"^{re.escape(str(path))}: [^/]*(no array|among) "  # the name, that is
    with pytest.raises(ValueError, match=once):
        load_recording(path, key, groups_key="film")


# --- what numbers are not ----------------------------------------------------------------


FRAME = pd.DataFrame([[1.5, 2, 3], [4, np.nan, 6], [7, 8, 9], [1, 2, 4]])
NAMED = FRAME.set_axis(["a", "b", "c"], axis=1)


def read(tmp_path, text, **options):
    (tmp_path / "x.csv").write_text(text)
    return load_matrix(tmp_path / "x.csv", **options)


def test_tables_of_data_frames(tmp_path):
    for frame, text, options in [
        (FRAME, FRAME.to_csv(), dict(index=True)),
        (FRAME, FRAME.to_csv(index=False), dict(header=True)),
        (FRAME, FRAME.to_csv(index=False, header=False), {}),
        (NAMED, NAMED.to_csv(), dict(index=True)),
        (NAMED, NAMED.to_csv(index=False, na_rep="NULL"), {}),
        (NAMED, NAMED.rename_axis("row").to_csv(na_rep="NA"), dict(index=True)),
        (FRAME, FRAME.rename_axis("row").to_csv(), dict(index=True)),
        (NAMED, NAMED.rename(index=str).add_prefix("x").to_csv(), dict(index=True)),
        (FRAME, FRAME.to_csv(header=False), dict(index=True)),
        (FRAME[[0]], FRAME[[0]].to_csv(), dict(index=True)),
        (FRAME[[0]], FRAME[[0]].to_csv(index=False), dict(header=True)),
        (NAMED[["b"]], NAMED[["b"]].to_csv(index=False), {}),
    ]:
        np.testing.assert_array_equal(read(tmp_path, text, **options), frame.to_numpy())
        for choice in options:
            with pytest.raises(ValueError, match=f"looks like an? {choice}.*{choice}=True"):
                read(tmp_path, text)
    assert read(tmp_path, FRAME.to_csv(index=False), header=False).shape == (5, 3)
    assert read(tmp_path, NAMED.to_csv(), index=False).shape == (4, 4)


def test_tables_of_other_programs(tmp_path):
    nan = np.nan
    for text, table in [
        (",,\n1,2,3\n", [[nan, nan, nan], [1, 2, 3]]),
        ("NA,nan\nNULL,null\n5,NaN\n", [[nan, nan], [nan, nan], [5, nan]]),
        (",1.5,2\n3,4,5\n", [[nan, 1.5, 2], [3, 4, 5]]),
        ('"a","b"\r\n"1", 2\r\n\r\n3,"4"\r\n', [[1, 2], [3, 4]]),
        ("\ufeffa,b\n1,2\n", [[1, 2]]),
        ("# a,b\n1e3,-inf\n", [[1000, -np.inf]]),
        ("1_2,1_3\n4,5\n", [[4, 5]]),
        ("0.0,1.0\n4,5\n", [[0, 1], [4, 5]]),
        ("0,0\n.5,.1\n", [[0, 0], [0.5, 0.1]]),
        ("3,1\n2,7\n", [[3, 1], [2, 7]]),
        ("2,.5\n2,.7\n3,.9\n", [[2, 0.5], [2, 0.7], [3, 0.9]]),
        ("9,8\n1,.5\n1,4\n", [[9, 8], [1, 0.5], [1, 4]]),
    ]:
        np.testing.assert_array_equal(read(tmp_path, text), table)
    (tmp_path / "x.tsv").write_text("\t\n1\t2\n")
    np.testing.assert_array_equal(load_matrix(tmp_path / "x.tsv"), [[nan, nan], [1, 2]])
    for text in ('"","V1"\n"1",0.5\n"2",0.7\n', '"V1"\n"r1",0.5\n', "k,a\n1,5\n2,6\n3,7\n"):
        with pytest.raises(ValueError, match="looks like an index"):
            read(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("17,23,42\n.1,.2,.3\n.4,.5,.6\n", "header"),
        ("1990,1991\n0.5,0.25\n", "header"),
        ("id,a\n7,1\n7,2\n", "index"),
        ("trial_id,a\n7,1.5\n3,2.5\n", "index"),
        ("a,b\n1007,.5\n1003,.7\n1010,.9\n", "index"),
        ("1007,.5\n1003,.7\n1010,.9\n", "index"),
    ],
)
def test_names_in_digits_are_asked_about(tmp_path, text, option):
    with pytest.raises(ArgumentError, match=f"x.csv: .*{option}=True") as caught:
        read(tmp_path, text)
    assert caught.value.argument == option
    both = [read(tmp_path, text, **{option: value}) for value in (True, False)]
    assert both[1].shape[option == "index"] == both[0].shape[option == "index"] + 1


def test_an_id_in_a_parquet_file(tmp_path):
    path = tmp_path / "x.parquet"
    pd.DataFrame({"trial_id": [4, 4, 5], "a": [0.5, 1, 2]}).to_parquet(path)
    with pytest.raises(ArgumentError, match="'trial_id' looks like an index.*groups_key"):
        load_matrix(path)
    assert load_matrix(path, index=True).shape == (3, 1)
    assert load_matrix(path, index=False).shape == (3, 2)
    assert load_recording(path, groups_key="trial_id").groups.tolist() == [4, 4, 5]


def test_sparse_parquet_files(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(np.zeros((300_000, 8)), columns=list("abcdefgh"))
    frame.to_parquet(tmp_path / "x.parquet")
    assert 1100 * os.path.getsize(tmp_path / "x.parquet") < 8 * frame.size
    assert load_matrix(tmp_path / "x.parquet").shape == frame.shape


def test_large_tables_are_mapped(tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", PHI)
    assert isinstance(load_matrix(tmp_path / "a.npy"), np.memmap)
    np.save(tmp_path / "b.npy", np.empty((0, 4)))
    assert load_matrix(tmp_path / "b.npy").shape == (0, 4)
    monkeypatch.setattr(files, "LOADED", 100)
    for name in ("plain.csv", "plain.parquet", "plain.h5", "new.mat"):
        WRITERS[name](tmp_path / name, PHI)
        found = load_matrix(tmp_path / name)
        assert isinstance(found, np.memmap)
        np.testing.assert_array_equal(found, PHI)


# --- other files behind a file, files that shrink, disks that are full -------------------


def test_h5_files_do_not_read_others(tmp_path):
    (tmp_path / "secret").write_bytes(bytes(range(200)))
    with h5py.File(tmp_path / "source.h5", "w") as file:
        file["y"] = PHI
    with h5py.File(tmp_path / "x.h5", "w") as file:
        given = [(str(tmp_path / "secret"), 0, 200)]
        file.create_dataset("external", (20, 10), "u1", external=given)
        layout = h5py.VirtualLayout(PHI.shape, "f8")
        layout[:] = h5py.VirtualSource(str(tmp_path / "source.h5"), "y", PHI.shape)
        file.create_virtual_dataset("virtual", layout)
        file["link"] = h5py.ExternalLink(str(tmp_path / "source.h5"), "y")
    for key in ("external", "virtual"):
        for read in (load_matrix, lambda *x: list(row_batches(*x))):
            with pytest.raises(ValueError, match=f"'/{key}' lie in other files"):
                read(tmp_path / "x.h5", key)
    with pytest.raises(ValueError, match="has no array 'link'"):
        load_matrix(tmp_path / "x.h5", "link")


class Counting(Plain):
    "Chunks of columns; a slice reads every chunk that it touches."

    chunks, reads = (500, 1), 0

    def __getitem__(self, key):
        touched = [range(*s.indices(n)) for s, n in zip(key, self.shape)]
        each = [{k // c for k in r} for r, c in zip(touched, self.chunks)]
        Counting.reads += len(each[0]) * len(each[1])
        return self.x[key]


def test_chunks_are_read_once(tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, "STRIP", 20_000)
    many = np.random.default_rng(0).random((2000, 9))
    np.testing.assert_array_equal(arrays.mapped(Counting(many)), many)
    assert Counting.reads == 4 * 9
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=many, chunks=(500, 1))
    parts = list(row_batches(tmp_path / "x.h5", size=100))
    assert len(parts) == 20
    np.testing.assert_array_equal(np.concatenate(parts), many)
    monkeypatch.setattr(files, "mapped", lambda x: pytest.fail("copied"))
    list(row_batches(tmp_path / "x.h5", size=500))  # a batch of whole chunks
    list(row_batches(tmp_path / "x.h5", size=150))  # chunks that fit into memory
    monkeypatch.setattr(files, "STRIP", 1000)
    with pytest.raises(pytest.fail.Exception, match="copied"):
        list(row_batches(tmp_path / "x.h5", size=150))


def test_large_zarr_arrays(tmp_path, monkeypatch):
    zarr = pytest.importorskip("zarr")
    monkeypatch.setattr(arrays, "LOADED", 0)
    many = Linear(3).sample(40, 6, random_state=1)
    for data in (many, np.stack([many, many + 1])):
        stored = zarr.create_array(str(tmp_path / f"{data.ndim}.zarr"), data=data)
        source = sources.open_source(stored)
        assert source.backend == "file"
        assert (rows_of(source) == data.reshape(-1, 40, 6)[:, [5, 3]]).all()


SHORTER = """
import sys, numpy as np
from spectral_moments.engine import arrays, sources
from spectral_moments.io.files import row_batches
arrays.LOADED = 0
path = sys.argv[1]
np.save(path, np.random.default_rng(0).random((4000, 50)))
source, batches = sources.open_source(np.load(path, mmap_mode="r")), row_batches(path)
next(batches)
with open(path, "r+b") as file:
    file.truncate(9000)
for read in (lambda: source.take(slice(None)), lambda: next(batches),
             lambda: sources.open_source(source.trials)):
    try:
        read()
    except ValueError as error:
        print(error)
"""


def test_a_map_of_a_file_that_became_shorter(tmp_path):
    done = python("-c", SHORTER, tmp_path / "x.npy")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("has become shorter; load it again") == 3


def test_no_room_for_a_copy(monkeypatch):
    monkeypatch.setattr(os, "posix_fallocate", no_room)
    with pytest.raises(OSError, match="do not fit into .*set TMPDIR"):
        arrays.mapped(PHI)


def test_torch_files_with_objects_and_names_that_command_the_terminal(tmp_path):
    np.savez(tmp_path / "x.npz", **{"a\x1b[31m": PHI, "b": PHI})
    with pytest.raises(ValueError, match=r"one of a\?\[31m, b$"):
        load_matrix(tmp_path / "x.npz")
    torch.save({"x": Plain(PHI)}, tmp_path / "x.pt")
    with pytest.raises(ValueError, match="x.pt: holds Python objects"):
        load_matrix(tmp_path / "x.pt")
    torch.save(torch.tensor(PHI), tmp_path / "x.pt", _use_new_zipfile_serialization=False)
    np.testing.assert_array_equal(load_matrix(tmp_path / "x.pt"), PHI)


# --- what is not a file, and files that promise too much ----------------------------------


def test_paths_that_are_no_files(tmp_path):
    for ending in ("npy", "npz", "mat", "csv", "h5", "parquet"):
        (tmp_path / f"folder.{ending}").mkdir()
        os.mkfifo(tmp_path / f"fifo.{ending}")  # reading it would wait for ever
        for name, message in (
            (f"folder.{ending}", "is a folder"),
            (f"fifo.{ending}", "is not a regular file"),
            (f"nothing.{ending}", "no such file"),
        ):
            with pytest.raises(ValueError, match=f"{name}: {message}"):
                load_matrix(tmp_path / name)
    (tmp_path / "x.zarr").touch()
    with pytest.raises(ValueError, match=r"x\.zarr: is not a folder"):
        load_matrix(tmp_path / "x.zarr")


def npy_header(shape, descr="<f8"):
    file = io.BytesIO()
    about = dict(descr=descr, fortran_order=False, shape=shape)
    np.lib.format.write_array_header_1_0(file, about)
    return file.getvalue()


def zipped(name, content, promised=None):
    "A .npz file; `promised` overwrites the size that its directory states."
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    data = file.getvalue()
    if promised is not None:
        at = data.index(b"PK\x01\x02") + 24
        data = data[:at] + struct.pack("<I", promised) + data[at + 4 :]
    return data


def compressed_matrix(promised):
    inside = struct.pack("<II", 14, promised) + bytes(64)
    packed = zlib.compress(inside)
    head = b"MATLAB 5.0".ljust(124) + b"\x00\x01IM"
    return head + struct.pack("<II", 15, len(packed)) + packed


HUGE = 2**31
GREEDY = {
    "shape.npy": npy_header((HUGE, HUGE)),
    "overflow.npy": npy_header((2**40, 2**40)) + bytes(800),
    "negative.npy": npy_header((-5, -5)) + bytes(800),
    "shape.npz": zipped("x.npy", npy_header((HUGE, 1))),
    "size.npz": zipped("x.npy", npy_header((HUGE // 9, 1)), promised=HUGE),
    "size.mat": compressed_matrix(HUGE),
}


@pytest.fixture
def limited():
    "No more memory than half a gigabyte above what is used."
    before = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**29, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux")
@pytest.mark.parametrize("name", GREEDY)
def test_promises_are_checked_before_memory_is_taken(tmp_path, name, limited):
    (tmp_path / name).write_bytes(GREEDY[name])
    reason = "promises" if not name.endswith("mat") else "cannot be read"
    with pytest.raises(ValueError, match=f"{name}: .*{reason}"):  # and no MemoryError
        load_matrix(tmp_path / name)


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux")
def test_what_is_too_large_when_it_is_unpacked(tmp_path, limited):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", (10**6, 10**6), "f4", chunks=(10, 10))
    with pytest.raises(ValueError, match="x.h5: promises 4000000000000 bytes"):
        load_matrix(tmp_path / "x.h5")
    savemat(tmp_path / "x.mat", {"x": eye_array(9_000, format="csc")})
    with pytest.raises(MemoryError, match=r"x\.mat: needs more memory than there is"):
        load_matrix(tmp_path / "x.mat")


def test_sparse_matrices_with_wrong_indices(tmp_path):
    path, table = tmp_path / "x.mat", csc_array(THIN)
    savemat(path, {"x": table})
    good = path.read_bytes()
    whole = table.indices.astype("<i4").tobytes()
    assert good.count(whole) == 1
    for value in (-1, 2**31 - 1, len(PHI)):
        wrong = table.indices.astype("<i4")
        wrong[-1] = value
        path.write_bytes(good.replace(whole, wrong.tobytes()))
        with pytest.raises(ValueError, match=r"x\.mat: cannot be read as a Matlab file"):
            load_matrix(path)


# --- pipes, and a few rows at a time ------------------------------------------------------

WHOLE = ("plain.mat", "small.mat")  # are not read in batches


@pytest.mark.parametrize("name", WRITERS)
def test_batches_of_every_format(tmp_path, name):
    path, many = tmp_path / name, Linear(3).sample(50, 6, random_state=1)
    WRITERS[name](path, many)
    if name in WHOLE:
        with pytest.raises(ValueError, match=f"{name}: cannot be read a few rows"):
            list(row_batches(path))
        return
    for size in (1, 7, 25, 49, 50, 51):
        parts = list(row_batches(path, size=size))
        assert max(len(x) for x in parts) <= size
        if "arrow" not in name and name not in ("lists.feather", "dataset"):
            assert len(parts) == -(-50 // size)  # batches of Arrow are what they are
        np.testing.assert_array_equal(np.concatenate(parts), many)
    assert len(list(row_batches(path))) <= 4


def opened(content):
    "Bytes as a pipe gives them."
    return io.BufferedReader(io.BytesIO(content))


def bytes_of(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def test_pipes():
    table = "a,b\n1,2\n3,\n5,6\n".encode("utf-8-sig")
    for content, expected, options in [
        (bytes_of(PHI), PHI, {}),
        (bytes_of(PHI > 0), PHI > 0, {}),
        (table, [[1, 2], [3, np.nan], [5, 6]], {}),
        (b"1\t2\r\n3\t4\r\n", [[1, 2], [3, 4]], {}),
        (b"0,1\n3,4\n", [[0, 1], [3, 4]], dict(header=False)),
        (b"r,a,b\n0,1,5\n1,3,4\n2,7,8", [[1, 5], [3, 4], [7, 8]], dict(index=True)),
    ]:
        np.testing.assert_array_equal(load_matrix(opened(content), **options), expected)
        for size in (None, 1, 2):
            parts = list(row_batches(opened(content), size=size, **options))
            np.testing.assert_array_equal(np.concatenate(parts), expected)
    whole = np.asfortranarray(PHI)
    np.testing.assert_array_equal(load_matrix(opened(bytes_of(whole))), PHI)


@pytest.mark.parametrize("read", [load_matrix, lambda *x, **y: list(row_batches(*x, **y))])
def test_pipes_that_hold_nothing_of_use(read):
    for content, options, reason in [
        (b"", {}, "holds no numbers"),
        (b"a,b\n", {}, "holds no numbers"),
        (b"1,2\n3,x\n", {}, "'x' in line 2 is not a number"),
        (b"1,2\n3\n", {}, "rows have different lengths"),
        (b"PK\x03\x04", {}, "neither the bytes of a .npy file nor a table"),
        (b"0,1\n3,4\n", {}, "looks like a header"),
        (b"1,\xe9\n", {}, "cannot be read"),
        (bytes_of(PHI)[:-1], {}, "promises"),
        (bytes_of(PHI)[:30], {}, "cannot be read|header"),
        (bytes_of(PHI), dict(header=True), "is no text table; leave out header="),
        (bytes_of(PHI), dict(key="x"), "leave out key="),
    ]:
        with pytest.raises(ValueError, match=f"standard input: .*({reason})"):
            read(opened(content), **options)
    with pytest.raises(ValueError, match="binary"):
        read(io.StringIO("1,2\n"))
    for array in (np.zeros((2, 3, 4)), np.asfortranarray(PHI)):
        if read is not load_matrix:
            with pytest.raises(ValueError, match="by its name"):
                read(opened(bytes_of(array)))


def test_batches_take_the_memory_of_a_batch(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((20_000, 200)))  # 32 MB

    def read():
        for part in row_batches(tmp_path / "x.npy"):
            assert part.nbytes <= BATCH

    assert peak_memory(read) < 3 * BATCH + 2**20


def test_batches_outlive_a_file_that_shrinks(tmp_path):
    """A batch is no map: to read one of a file that was shortened would end the process."""
    path = tmp_path / "x.npy"
    np.save(path, np.ones((300_000, 8)))
    script = f"""
        import os
        import spectral_moments as sm

        batches = sm.row_batches({str(path)!r})
        first = next(batches)
        os.truncate({str(path)!r}, 4096)
        print(first.mean())
        try:
            next(batches)
        except ValueError as error:
            print(error)
    """
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True
    )
    assert found.returncode == 0, found
    assert found.stdout.startswith("1.0") and "has become shorter" in found.stdout
