"""Every library of arrays gives the same doubles; what is no matrix is refused by name."""

import datetime
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import spectral_moments as sm
from spectral_moments.checks import ArgumentError
from spectral_moments.engine import arrays
from spectral_moments.engine.arrays import Library, check_matrix, check_trials

REAL = st.sampled_from(
    ["f2", "f4", "f8", "g", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"]
)


@given(st.data(), REAL, st.sampled_from("CF"), st.booleans())
def test_any_real_dtype_and_layout(data, dtype, order, reverse):
    shape = data.draw(hnp.array_shapes(min_dims=2, max_dims=3, max_side=4))
    phi = np.asarray(data.draw(hnp.arrays("u1", shape)) % 2, dtype=dtype, order=order)
    phi = phi[::-1] if reverse else phi
    phi.flags.writeable = False
    before = phi.copy()
    result = check_trials(phi)
    assert result.dtype == np.float64
    assert result.flags.c_contiguous
    assert result.shape == (1, *shape)[-3:]
    np.testing.assert_array_equal(result.reshape(shape), phi.astype("f8"))
    np.testing.assert_array_equal(phi, before)


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.int64]
)
def test_torch(dtype):
    phi = torch.arange(6).reshape(2, 3).to(dtype)
    np.testing.assert_array_equal(check_matrix(phi), np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(check_matrix(phi.T), np.arange(6.0).reshape(2, 3).T)


class Sparse:
    def todense(self): ...


@pytest.mark.parametrize(
    ("phi", "message"),
    [
        (np.ones((2, 2), complex), "phi is complex.*real part"),
        (torch.ones(2, 2, dtype=torch.complex64), "phi is complex.*real part"),
        (torch.ones(2, 2, device="meta"), r"on meta; pass phi.cpu\(\)"),
        (np.ones((2, 2), object), "dtype object.*convert"),
        ([["1", "2"]], "not a real number type"),
        (np.zeros((2, 2), "M8[s]"), "not a real number type"),
        (np.ma.masked_array([[1.0, 2.0]], [[0, 1]]), "NaN.*not supported"),
        (np.ma.masked_array([["a"]], [[0]]), "not a real number type"),
        (Sparse(), "sparse.*toarray"),
        ([[1.0, 2.0], [3.0]], "same length"),
        (3.0, "0 axes"),
        ([1.0, 2.0], "1 axes"),
        (np.ones((1, 2, 2, 2)), "4 axes"),
        (np.ones((0, 3)), "empty"),
        (np.ones((2, 0, 3)), "empty"),
        ([[1.0, np.inf]], "infinite"),
        ([[-np.inf, np.nan]], "infinite"),
        ([[1.0, np.nan]], "NaN.*not supported"),
        (np.full((2, 2), np.longdouble("1e4000")), "too large for float64"),
        (np.ones((2, 3, 4)), "2 trials"),
        (None, "phi is None; pass a matrix"),
        ("a.npy", r"phi is a str; load it first: sm.load_recording\(path\)"),
        (Path("a.npy"), r"phi is a \w*Path; load it first"),
        ({"a": np.ones((2, 2))}, r"phi is a dict; .*phi\[key\]"),
    ],
)
def test_refused(phi, message):
    with pytest.raises(ArgumentError, match=message) as caught:
        check_matrix(phi)
    assert caught.value.argument == "phi"


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i4", "u1", "?"])
def test_what_is_masked_becomes_nan(dtype):
    phi = np.ma.masked_array(np.ones((2, 3)), [[0, 1, 0], [1, 0, 0]], dtype=dtype)
    expected = [[1, np.nan, 1], [np.nan, 1, 1]]
    for given_as in (phi, list(phi), tuple(phi), [phi]):
        found = check_trials(given_as, missing=True)
        np.testing.assert_array_equal(found[0], expected)
    nested = check_trials([list(phi), [row for row in phi]], missing=True)
    np.testing.assert_array_equal(nested, [expected, expected])
    assert (phi.data == 1).all()  # and what is behind the mask is left as it was
    whole = np.ma.ones((2, 2))
    np.testing.assert_array_equal(check_matrix(whole), np.ones((2, 2)))


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_frames_by_columns(kind):
    library = pytest.importorskip(kind)
    make = library.DataFrame if kind == "polars" else library.table
    columns = {"a": [0.5, 1.0, None], "b": [1, None, 3]}
    expected = [[0.5, 1], [1, np.nan], [np.nan, 3]]
    np.testing.assert_array_equal(check_trials(make(columns), missing=True)[0], expected)
    day, time = datetime.date(2026, 1, 1), datetime.datetime(2026, 1, 1)
    for odd in ([day] * 3, [time] * 3, [time - time] * 3, ["1"] * 3, [True, False, True]):
        with pytest.raises(ArgumentError, match=r"not numbers \('odd'\); drop them.*phi\."):
            check_trials(make(columns | {"odd": odd}), missing=True)
    if kind == "polars":
        with pytest.raises(ArgumentError, match=r"phi is a plan; pass phi.collect\(\)"):
            check_trials(make(columns).lazy())


def test_large_integers_in_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, "LOADED", 0)
    np.save(tmp_path / "x.npy", np.arange(12).reshape(3, 4) + 2**60)
    with pytest.raises(ArgumentError, match="integers up to .* doubles cannot hold"):
        sm.estimate(np.load(tmp_path / "x.npy", mmap_mode="r"))


def test_argument_name_in_message():
    with pytest.raises(ValueError, match="table has 1 axes"):
        check_matrix([1.0], name="table")


# --- a new library ------------------------------------------------------------------------


class Ledger:
    "An array of a library that nobody has heard of: numbers in a shape."

    def __init__(self, numbers, shape):
        self.numbers, self.shape = list(numbers), shape


class Ledgers(Library):
    def read(self, x, name):
        return np.reshape(x.numbers, x.shape)


PHI = np.random.default_rng(1).standard_normal((20, 3)) @ np.ones((3, 30)) + np.eye(20, 30)


def test_a_new_library_is_one_class(monkeypatch):
    monkeypatch.setitem(arrays.LIBRARIES, Ledger, Ledgers())
    given = Ledger(PHI.ravel(), PHI.shape)
    np.testing.assert_array_equal(sm.all_cycles(given, 3), sm.all_cycles(PHI, 3))
    for options in (dict(n_max=2), dict(n_max=3, center=True), dict(method="naive")):
        found, expected = (quiet(x, **options) for x in (given, PHI))
        np.testing.assert_array_equal(found.values, expected.values)
        np.testing.assert_array_equal(found.stderr, expected.stderr)
    wrong = Ledger(["a"] * 4, (2, 2))
    with pytest.raises(ArgumentError, match="phi has dtype"):
        sm.estimate(wrong)


def quiet(phi, **options):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sm.EstimateWarning)
        return sm.estimate(phi, **options)
