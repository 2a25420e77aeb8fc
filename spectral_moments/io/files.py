"""Read a matrix from a file; the ending of its name says how."""

import contextlib
import math
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ..checks import ArgumentError, printable
from ..engine.arrays import MAX_LOADED_BYTES, Rows, open_rows

TABLES = {".csv": ",", ".tsv": "\t", ".parquet": None}  # ending: separator
OTHERS = {  # endings that are not read here: the line to write
    ".feather": "pyarrow.feather.read_table(path)",
    ".h5ad": "anndata.read_h5ad(path).to_df()",
    ".nc": "xarray.open_dataarray(path)",
    ".pt": "torch.load(path, weights_only=True)",
    ".safetensors": "safetensors.torch.load_file(path)[name]",
    ".xlsx": "pandas.read_excel(path)",
}


def load(
    path: str | os.PathLike | Sequence,  # file, or list of files: parts of the rows
    key: str | None = None,  # name of the array in a file of several, or of a column
    *,
    header: bool | None = None,  # whether a text table begins with names; None: find out
    index: bool | str | Sequence | None = None,  # column(s) of a table to leave out, by
    # name; True: the first one; None: refuse a first column that numbers the rows
):  # array (P, Q) or (T, P, Q): loaded, mapped, or read by rows if it is large
    """Load a matrix from a file, or the labels of its rows.

    >>> phi = sm.load("session.mat", "rates")  # doctest: +SKIP
    >>> phi, movie = sm.load("a.csv", index="movie"), sm.load("a.csv", "movie")  # doctest: +SKIP
    """
    if isinstance(path, (list, tuple)):
        return _join([load(part, key, header=header, index=index) for part in path])
    with _naming(path):
        ending = _ending(path, header, index)
        if ending in TABLES:
            return np.concatenate(list(_table_batches(path, 2**14, key, header, index)))
        array = _pick(READERS[ending](path), key)
        large = len(array.shape) in (2, 3) and 8 * math.prod(array.shape) > MAX_LOADED_BYTES
        return array if large else np.array(array[...])


def row_batches(
    path: str | os.PathLike | Sequence,  # file, or list of files, one after the other
    rows: int = 4096,  # number of rows in a batch
    key: str | None = None,  # as for `load`
    *,
    header: bool | None = None,  # as for `load`
    index: bool | str | Sequence | None = None,  # as for `load`
) -> Iterator[np.ndarray]:  # arrays (rows, Q) or (T, rows, Q)
    "Read the rows of a file, one batch at a time, in the memory of one batch."
    for part in path if isinstance(path, (list, tuple)) else [path]:
        with _naming(part):
            ending = _ending(part, header, index)
            if ending in TABLES:
                yield from _table_batches(part, rows, key, header, index)
                continue
            array = _pick(READERS[ending](part), key)
            source = open_rows(array)
            for start in range(0, source.shape[1], rows):
                block = source[start : start + rows]
                yield block if len(array.shape) == 3 else block[0]


def _join(parts):
    "Make one matrix of several, one below the other; large ones are not loaded."
    shapes = [tuple(x.shape) for x in parts]
    if len({(len(shape), *shape[:-2], shape[-1]) for shape in shapes}) != 1:
        raise ArgumentError("path", f"shapes {shapes[:5]}; all must have the same columns")
    if 8 * sum(map(math.prod, shapes)) <= MAX_LOADED_BYTES:
        return np.concatenate([x[...] for x in parts], axis=-2)
    sources = [open_rows(x) for x in parts]
    edges = np.cumsum([0, *(x.shape[1] for x in sources)]).tolist()

    def read(rows):
        blocks = []
        for source, first, stop in zip(sources, edges, edges[1:]):
            low, high = max(rows.start, first), min(rows.stop, stop)
            if low < high:
                blocks.append(source[low - first : high - first])
        return np.concatenate(blocks, axis=1).reshape(*trials, -1, width)

    *trials, _, width = shapes[0]
    dtype = np.result_type(*(x.dtype for x in sources))
    return Rows((*trials, edges[-1], width), dtype, read, max(x.chunk for x in sources))


def _ending(path, *table_options):
    "Return the ending of a name, or refuse what cannot be read."
    ending = Path(path).suffix.lower()
    if ending in OTHERS:
        raise ArgumentError("path", f"not read here; pass phi = {OTHERS[ending]}")
    if ending not in TABLES and ending not in READERS:
        raise ArgumentError("path", f"unknown ending; use {' '.join([*READERS, *TABLES])}")
    if not Path(path).exists():
        raise FileNotFoundError("no such file")
    if ending not in TABLES and any(option is not None for option in table_options):
        raise ArgumentError("index", "is no table; leave out header= and index=")
    return ending


@contextlib.contextmanager
def _naming(path):
    "Raise errors in one line that begins with the name of the file."
    name = printable(str(path)[:200]).replace("\n", "?")
    try:
        yield
    except ArgumentError as error:
        raise ArgumentError(error.argument, f"{name}: {printable(str(error))}") from None
    except ImportError as error:
        remedy = "pip install 'spectral_moments[files]'"
        raise ImportError(f"{name}: {error}; {remedy}") from None
    except (FileNotFoundError, MemoryError) as error:
        raise type(error)(f"{name}: {error}") from None
    except Exception as error:
        reason = " ".join(printable(str(error)).split()) or type(error).__name__
        raise ValueError(f"{name}: cannot be read ({reason})") from None


def _pick(arrays, key):
    "Return the array of that name, or the only one, or the only one that is a matrix."
    if key is None:
        matrices = [name for name in arrays if len(arrays[name].shape) in (2, 3)]
        names = matrices or list(arrays)
        key = names[0] if len(names) == 1 else None
    if key in list(arrays):
        return arrays[key]
    problem = "pass key= with one of" if key is None else f"has no {key!r}, only"
    raise ArgumentError("key", f"{problem} {', '.join(map(str, arrays)) or 'nothing'}")


def _table_batches(path, rows, key, header, index):
    "Yield batches of rows of a table, or of one of its columns."
    for number, frame in enumerate(_frames(path, rows, header)):
        if key is not None:
            yield _pick(frame, key).to_numpy()
            continue
        if number == 0 and index is None:
            _refuse_index(frame)
        left_out = index if isinstance(index, (list, tuple)) else [index]
        if index is None or isinstance(index, bool):
            left_out = frame.columns[:1] if index else []
        frame = frame.drop(columns=[_pick(frame, name).name for name in left_out])
        odd = [name for name in frame if frame[name].dtype.kind not in "buif"]
        if odd:
            remedy = f"leave it out by index={odd!r}, or read it alone by key="
            raise ArgumentError("index", f"column {odd[0]!r} is not numbers; {remedy}")
        yield frame.to_numpy(float, na_value=np.nan)


def _refuse_index(frame):
    "Refuse a first column that numbers or names the rows."
    name, first = str(frame.columns[0]), frame.iloc[:, 0].tolist()
    numbered = any(first == list(range(k, k + len(first))) for k in (0, 1))
    named = re.search(r"(^|[\W_])(id|idx|index)$|^unnamed: 0$", name.lower())
    if frame.shape[1] > 1 and (named or (numbered and len(first) > 2)):
        remedy = "pass index=True to leave it out, or index=False to keep it"
        raise ArgumentError("index", f"the first column {name!r} is an index? {remedy}")


def _frames(path, rows, header):
    "Yield data frames of some rows of a table."
    separator = TABLES[_ending(path)]
    if separator is None:
        from pyarrow.parquet import ParquetFile

        for batch in ParquetFile(path).iter_batches(rows):
            yield batch.to_pandas()
        return
    import pandas

    options = dict(sep=separator, skipinitialspace=True, encoding="utf-8-sig")
    if header is None:
        first = pandas.read_csv(path, header=None, nrows=1, dtype=str, **options)
        header = _is_header(first.iloc[0].fillna("").tolist())
    options |= dict(header=0 if header else None, chunksize=rows)
    with pandas.read_csv(path, **options) as frames:
        yield from frames


def _is_header(fields):
    "Return whether the first line of a table are names; refuse 0, 1, 2, ..."
    counting = [str(k) for k in range(len(fields))]
    if fields == counting and len(fields) > 1:
        raise ArgumentError("header", "is line 1 a header? pass header=True or False")
    numbers = [re.fullmatch(r"[-+.\d]+(e[-+]?\d+)?|[-+]?inf", x.lower()) for x in fields]
    after_index = not numbers[0] and fields[1:] == counting[:-1]
    return after_index or (any(fields) and not any(numbers))


def _numpy(path):
    "Return the array of a .npy file, mapped, or the arrays of a .npz archive."
    if _ending(path) == ".npy":
        return {"array": np.lib.format.open_memmap(path, mode="r")}
    with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
        return dict(archive)


def _mat(path):
    "Return the arrays of a Matlab file; version 7.3 is HDF5 with the axes reversed."
    from scipy.io import loadmat
    from scipy.sparse import issparse

    try:
        arrays = loadmat(path)
    except NotImplementedError:  # version 7.3
        return {name: _reversed(x) for name, x in _h5(path).items() if x.ndim > 1}
    kinds = {name: getattr(x, "dtype", np.dtype(str)).kind for name, x in arrays.items()}
    numbers = {name: x for name, x in arrays.items() if kinds[name] in "buifc"}
    return {name: x.toarray() if issparse(x) else x for name, x in numbers.items()}


def _reversed(data):
    "Reverse the axes of a data set that Matlab wrote."
    chunk = (data.chunks or data.shape)[1]
    return Rows(data.shape[::-1], data.dtype, lambda rows: data[:, rows].T, chunk)


def _h5(path):
    "Return the data sets of an HDF5 file."
    import h5py

    found = {}

    def visit(name, item):
        text = item.attrs.get("MATLAB_class") == b"char"
        if isinstance(item, h5py.Dataset) and item.ndim and not (text or name[0] == "#"):
            found[name] = item

    h5py.File(path, "r").visititems(visit)
    return found


def _zarr(path):
    "Return a Zarr array, or the arrays of a group."
    import zarr

    found = zarr.open(path, mode="r")
    return {"array": found} if hasattr(found, "shape") else dict(found.arrays())


READERS = {".npy": _numpy, ".npz": _numpy, ".mat": _mat, ".h5": _h5, ".hdf5": _h5}
READERS |= {".nwb": _h5, ".zarr": _zarr}
