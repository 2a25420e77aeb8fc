"""Data frames, labelled arrays and tensors give the estimates of the plain array."""

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr

import spectral_moments as sm
from spectral_moments import Linear, all_cycles, estimate
from spectral_moments.engine.arrays import backend, check_trials
from spectral_moments.results import EstimateWarning

PHI = Linear(3, scale=0.3).sample(24, 30, random_state=1)
GAPS = np.where(PHI > 2, np.nan, PHI)
TRIALS = PHI + np.random.default_rng(2).standard_normal((2, *PHI.shape))
FRAME = pd.DataFrame(PHI)
LABELLED = xr.DataArray(
    PHI, dims=("stimulus", "neuron"), coords={"neuron": [f"n{i}" for i in range(30)]}
)
TENSOR = torch.from_numpy(PHI.copy())


class Frame:
    "Looks like a data frame: an `__array__` and nothing else."

    def __array__(self, dtype=None, copy=None):
        return PHI


pytestmark = pytest.mark.filterwarnings(
    f"ignore::{EstimateWarning.__module__}.EstimateWarning"
)


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        (PHI.tolist(), PHI),
        (Frame(), PHI),
        (FRAME, PHI),
        (FRAME.set_axis(pd.date_range("2026", periods=24)), PHI),
        (FRAME.set_axis(list("abcdef") * 5, axis=1), PHI),  # names may come twice
        (FRAME.set_axis(pd.MultiIndex.from_product([range(5), range(6)]), axis=1), PHI),
        (FRAME.astype("float32"), PHI.astype("f4")),
        (FRAME.astype("Float64"), PHI),
        (FRAME.astype({0: "float32", 1: "Float64"}), None),
        ((10 * FRAME).round().astype("Int64"), (10 * PHI).round()),
        (FRAME > 0, 1.0 * (PHI > 0)),
        (FRAME.where(FRAME > 0, 0.0).astype(pd.SparseDtype(float, 0.0)), PHI * (PHI > 0)),
        (pd.DataFrame(GAPS), GAPS),
        (pd.DataFrame(GAPS).astype("Float64"), GAPS),  # NA
        (LABELLED, PHI),
        (LABELLED.T, PHI.T),
        (xr.DataArray(GAPS), GAPS),
        (xr.DataArray(TRIALS, dims=("trial", "stimulus", "neuron")), TRIALS),
        (xr.Dataset({"phi": LABELLED})["phi"], PHI),
        (TENSOR, PHI),
        (TENSOR.clone().requires_grad_(), PHI),
        (2 * torch.nn.Parameter(TENSOR), 2 * PHI),
        (torch.complex(TENSOR, -TENSOR).conj().imag, PHI),  # a view that negates
        (torch.from_numpy(TRIALS), TRIALS),
        (torch.from_numpy(GAPS), GAPS),
    ],
)
def test_same_estimate(given, plain):
    plain = np.asarray(given, dtype=float) if plain is None else plain
    options = dict(trials=True) if np.ndim(plain) == 3 else {}
    found, expected = (
        estimate(phi, 2, random_state=1, **options) for phi in (given, plain)
    )
    rtol = 1e-12 if backend(given) == "torch" else 0  # computed by torch, where it lives
    np.testing.assert_allclose(found.values, expected.values, rtol=rtol)
    np.testing.assert_allclose(found.stderr, expected.stderr, rtol=1e3 * rtol)
    assert found.shape == expected.shape


def test_input_is_not_modified():
    frame, labelled = pd.DataFrame(GAPS), xr.DataArray(GAPS.copy())
    tensor = torch.from_numpy(GAPS.copy()).requires_grad_()
    for given in (frame, labelled, tensor):
        estimate(given, 2)
    for after in (frame.to_numpy(), labelled.values, tensor.detach().numpy()):
        np.testing.assert_array_equal(after, GAPS)
    assert tensor.grad is None


def test_not_copied_without_need():
    assert np.shares_memory(check_trials(LABELLED), LABELLED.values)


def test_gradient_through_all_cycles():
    phi = TENSOR.clone().requires_grad_()
    moments = all_cycles(phi, 2)
    np.testing.assert_allclose(moments.detach(), all_cycles(PHI, 2), rtol=1e-12)
    moments[0].backward()
    np.testing.assert_allclose(phi.grad, 2 * PHI / PHI.size, rtol=1e-12)


@pytest.mark.parametrize(
    ("phi", "error", "message"),
    [
        (FRAME.assign(name="x"), TypeError, r"phi .*'name'.*phi.select_dtypes\('number'\)"),
        (FRAME.assign(ok=True), TypeError, r"phi .*'ok'.*phi.select_dtypes\('number'\)"),
        (FRAME.assign(c=pd.Categorical(["a"] * 24)), TypeError, "phi .*'c'.*drop"),
        (FRAME.assign(day=pd.Timestamp("2026")), TypeError, "phi .*'day'.*drop"),
        (FRAME.astype(object), TypeError, r"phi .*\(0, 1, 2, ...\).*phi.astype\(float\)"),
        (FRAME.astype(str), TypeError, r"phi .*\(0, 1, 2, ...\).*phi.astype\(float\)"),
        (FRAME * 1j, TypeError, "phi is complex"),
        (FRAME.iloc[:0], ValueError, "phi is empty"),
        (FRAME[0], ValueError, "phi has 1 axes"),
        (FRAME.replace(FRAME.iloc[0, 0], np.inf), ValueError, "phi has infinite"),
        (LABELLED[0], ValueError, "phi has 1 axes"),
        (LABELLED.expand_dims(["a", "b"]), ValueError, "phi has 4 axes"),
        (LABELLED.astype(str), TypeError, "phi has dtype .*convert"),
        (LABELLED.astype(object), TypeError, "phi has dtype object.*convert"),
        (xr.Dataset({"phi": LABELLED}), TypeError, "phi cannot be made.*DataArray"),
        (
            LABELLED.expand_dims("trial", 2),
            ValueError,
            "stimulus, neuron, trial; .*from_xarray",
        ),
        ("phi.csv", TypeError, r"phi is a str; load it first"),
        (TENSOR.to_sparse(), TypeError, r"phi is a sparse tensor; pass phi.to_dense\(\)"),
    ],
)
def test_refused(phi, error, message):
    with pytest.raises(error, match=message):
        estimate(phi, 2)


# --- three axes, of which only the user knows what they are ---


def _near(found):
    return found.dimensions[0][0]


ONE_MATRIX = {
    "naive": lambda x, **known: sm.naive(x, 2, **known),
    "kong_valiant": lambda x, **known: sm.kong_valiant(x, 2, **known),
    "increasing": lambda x, **known: sm.increasing(x, 2, **known),
    "all_cycles": lambda x, **known: sm.all_cycles(x, 2, **known),
    "sketched": lambda x, **known: sm.sketched(x, 2, **known),
    "by": lambda x, **known: sm.by(x, np.arange(20) % 2, **known).rows[0]["difference"],
    "local": lambda x, **known: _near(sm.local_dimension(x, 0, nearest=9, **known)),
    "stream": lambda x, **known: sm.Stream(16, 2).update(x, **known).estimate().values,
}


@pytest.mark.parametrize("name", ONE_MATRIX)
@pytest.mark.filterwarnings("ignore")
def test_three_axes_are_refused_or_understood(name):
    """A batch of tokens is no trial; every function says so, and takes trials=True."""
    x, function = (
        np.random.default_rng(5).standard_normal((3, 20, 16)) + 1,
        ONE_MATRIX[name],
    )
    given = torch.tensor(x), xr.DataArray(x, dims=("site", "time", "place")), [*x]
    for phi in given:
        with pytest.raises(ValueError, match="trials=True"):
            function(phi)
        found = function(phi, trials=True)
        np.testing.assert_allclose(np.asarray(found, float), np.asarray(function(x), float))


@pytest.mark.parametrize(
    "option", ["groups", "row_weights", "column_groups", "by", "Stream"]
)
def test_series_in_another_order(option):
    "The index of a data frame in another order is refused, other labels go by position."
    names = [f"neuron {k}" for k in range(12)]
    frame = pd.DataFrame(np.random.default_rng(0).standard_normal((30, 12)), columns=names)
    columns = option == "column_groups"
    labels = np.arange(12) // 2 if columns else np.arange(30) // 2 + 1.0
    index = frame.columns if columns else frame.index

    def call(series):
        if option == "by":
            return sm.by(frame, series > 8)
        if option == "Stream":
            return sm.Stream(12, 2).update(frame, groups=series).estimate()
        return sm.estimate(frame, 2, **{option: series})

    with pytest.raises(ValueError, match="in another order, or a part of it"):
        call(pd.Series(labels, index[::-1]))
    call(pd.Series(labels, index))
    call(pd.Series(labels, [f"other {k}" for k in range(len(labels))]))
