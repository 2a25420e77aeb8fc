"""Every accepted form of input gives the same doubles; every other is refused by name."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from spectral_moments.checks import (
    check_count,
    check_flag,
    check_matrix,
    check_n_jobs,
    check_order,
    check_random_state,
    check_trials,
)

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


def test_memory_map(tmp_path):
    np.save(tmp_path / "phi.npy", np.arange(6.0).reshape(2, 3))
    phi = np.load(tmp_path / "phi.npy", mmap_mode="r")
    np.testing.assert_array_equal(check_matrix(phi), phi)


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.int64]
)
def test_torch(dtype):
    phi = torch.arange(6).reshape(2, 3).to(dtype)
    np.testing.assert_array_equal(check_matrix(phi), np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(check_matrix(phi.T), np.arange(6.0).reshape(2, 3).T)


def test_torch_with_gradient():
    phi = torch.ones(2, 3, requires_grad=True)
    assert check_matrix(phi).shape == (2, 3)


class Sparse:
    def todense(self): ...


@pytest.mark.parametrize(
    ("phi", "error", "message"),
    [
        (np.ones((2, 2), complex), TypeError, "phi is complex.*real part"),
        (torch.ones(2, 2, dtype=torch.complex64), TypeError, "phi is complex.*real part"),
        (torch.ones(2, 2, device="meta"), TypeError, r"on meta; pass phi.cpu\(\)"),
        (np.ones((2, 2), object), TypeError, "dtype object.*convert"),
        ([["1", "2"]], TypeError, "not a real number type"),
        (np.zeros((2, 2), "M8[s]"), TypeError, "not a real number type"),
        (np.ma.masked_array([[1.0, 2.0]], [[0, 1]]), ValueError, "NaN.*not supported"),
        (np.ma.masked_array([["a"]], [[0]]), TypeError, "not a real number type"),
        (Sparse(), TypeError, "sparse.*toarray"),
        ([[1.0, 2.0], [3.0]], ValueError, "same length"),
        (3.0, ValueError, "0 axes"),
        ([1.0, 2.0], ValueError, "1 axes"),
        (np.ones((1, 2, 2, 2)), ValueError, "4 axes"),
        (np.ones((0, 3)), ValueError, "empty"),
        (np.ones((2, 0, 3)), ValueError, "empty"),
        ([[1.0, np.inf]], ValueError, "infinite"),
        ([[-np.inf, np.nan]], ValueError, "infinite"),
        ([[1.0, np.nan]], ValueError, "NaN.*not supported"),
        (np.full((2, 2), np.longdouble("1e4000")), ValueError, "too large for float64"),
        (np.ones((2, 3, 4)), ValueError, "2 trials"),
        (None, TypeError, "phi is None; pass a matrix"),
        ("a.npy", TypeError, r"phi is a str; load it first, .* numpy.load\(path\)"),
        (Path("a.npy"), TypeError, r"phi is a \w*Path; load it first"),
        ({"a": np.ones((2, 2))}, TypeError, r"phi is a dict; .*phi\[key\]"),
    ],
)
def test_refused(phi, error, message):
    with pytest.raises(error, match=message):
        check_matrix(phi)


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


def test_argument_name_in_message():
    with pytest.raises(ValueError, match="table has 1 axes"):
        check_matrix([1.0], name="table")


@pytest.mark.parametrize(
    ("n_max", "error", "message"),
    [
        (0, ValueError, "n_max = 0 is too small"),
        (-1, ValueError, "at least 1"),
        (2.0, TypeError, "n_max must be a whole number"),
        (np.float64(2), TypeError, "whole number"),
        (True, TypeError, "whole number"),
        ("2", TypeError, "whole number"),
        (None, TypeError, "whole number"),
        (4, ValueError, r"exceeds min\(P, Q\) = 3.*3 x 5.*lower n_max"),
    ],
)
def test_orders_refused(n_max, error, message):
    with pytest.raises(error, match=message):
        check_order(n_max, (3, 5))


def test_orders():
    assert check_order(3, (3, 5)) == 3
    assert type(check_order(np.uint8(2), (7, 3, 5))) is int


def test_random_state():
    assert check_random_state(3).integers(1 << 30) == check_random_state(
        np.int64(3)
    ).integers(1 << 30)
    generator = np.random.default_rng(0)
    assert check_random_state(generator) is generator
    assert check_random_state().random() != check_random_state().random()
    with pytest.raises(ValueError, match="random_state = -1"):
        check_random_state(-1)
    with pytest.raises(TypeError, match="random_state must be"):
        check_random_state("seed")
    with pytest.raises(TypeError, match="None, an int or a numpy Generator, not a RandomS"):
        check_random_state(np.random.RandomState(1))


def test_counts():
    assert check_count(0, "k", least=0) == 0
    assert check_n_jobs(2) == 2
    assert check_n_jobs() >= 1
    with pytest.raises(ValueError, match="n_jobs = 0.*None means all cores"):
        check_n_jobs(0)
    with pytest.raises(TypeError, match="n_jobs .*None means all cores"):
        check_n_jobs("all")


def test_flag():
    assert check_flag(np.False_, "x") is False
    for bad in ("True", 1, None, np.array([True])):
        with pytest.raises(TypeError, match="x must be True or False"):
            check_flag(bad, "x")
