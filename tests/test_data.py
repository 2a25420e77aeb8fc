"""What was measured: validation, scales, noise, groups, populations, recordings."""

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import normal

import spectral_moments as sm
from spectral_moments.checks import ArgumentError
from spectral_moments.engine.data import (
    AxisInfo,
    Noise,
    Recording,
    open_data,
    scale_by_power,
)

X = normal((12, 8)) + 0.5
COUNTS = np.random.default_rng(1).poisson(3, (12, 8)).astype(float)


def refused(argument, match, given=None, **options):
    with pytest.raises(ArgumentError, match=match) as error:
        open_data({"phi": X} if given is None else given, **options)
    assert error.value.argument == argument


# --- axes ---------------------------------------------------------------------------------


def test_three_axes_are_refused_with_three_readings():
    x = normal((6, 120, 30))
    readings = r"6 x 120 x 30.*\(repeats, inputs, features\), pass trials=True.*"
    readings += (
        r"phi\.reshape\(720, 30\) and groups=numpy\.repeat\(numpy\.arange\(6\), 120\)"
    )
    readings += r".*\(features, inputs, repeats\), pass phi\.T and trials=True"
    for given in (x, torch.tensor(x), x.tolist()):
        refused("phi", readings, {"phi": given})
    for call in (sm.estimate, sm.all_cycles, sm.naive, sm.kong_valiant, sm.increasing):
        with pytest.raises(ArgumentError, match="three axes"):
            call(x, 2)
        assert np.all(
            np.isfinite(np.asarray(getattr(y := call(x[:2], 2, trials=True), "values", y)))
        )
    refused("phi", "list of 2 arrays; pass trials=True.*numpy.concatenate", {"phi": [X, X]})
    assert open_data({"phi": [X, X]}, trials=True).shapes == {"phi": (2, 12, 8)}
    assert open_data({"phi": X}, trials=True).shapes == {"phi": (1, 12, 8)}
    refused("phi", "same length", {"phi": [[[1.0, 2.0], [3.0]], [[4.0, 5.0], [6.0, 7.0]]]})
    refused("phi", "axes", {"phi": X[0]})
    refused("phi", "axes", {"phi": X[None, None]}, trials=True)
    refused("trials", "True or False", trials=2)


# --- scale --------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [1e-200, 1e-100, 1.0, 1e100, 1e200])
def test_units(unit):
    "A power of two is divided out; what has no unit has the same value in any."
    data = open_data({"phi": unit * X})
    rows = data.matrices["phi"].rows()
    assert 0.35 < np.sqrt(np.mean(rows**2)) < 2.9
    back = scale_by_power(rows, data.matrices["phi"].scale_exponent)
    np.testing.assert_array_equal(back[0], unit * X)
    known = sm.estimate(X, 2)
    est = sm.estimate(unit * X, 2)
    dimension = est.dimension()
    assert dimension.value == pytest.approx(known.dimension().value, rel=1e-9)
    assert dimension.stderr == pytest.approx(known.dimension().stderr, rel=1e-9)
    inside = abs(np.log10(unit)) * 2 * est.orders < 300
    np.testing.assert_array_equal(np.isfinite(est.values), inside)
    assert inside.all() == (not any("range" in note for note in est.notes))
    scale_by_power(np.uint64(2047 * 2**52 + 1).view(float), 1)  # a signalling NaN


def test_numbers_of_very_different_size():
    x = X.copy()
    x[3, 2] = 1e300
    x[4, 1] = 1e-300
    assert np.isfinite(open_data({"phi": x}).matrices["phi"].rows()).all()
    for exponent in (-1074, -1001, -3, 0, 7, 1001):
        assert scale_by_power(1.0, exponent) == np.ldexp(1.0, exponent)
    two = open_data({"a": 1e-50 * X, "b": 1e50 * X})
    assert two.matrices["b"].scale_exponent - two.matrices["a"].scale_exponent > 300


def test_zeros_and_constants():
    assert open_data({"phi": np.zeros((4, 3))}).matrices["phi"].scale_exponent == 0
    est = sm.estimate(np.full((9, 5), 7.0))
    assert (abs(est.values) < 1e-12).all()
    assert any("All entries are equal" in note for note in est.notes)


# --- entries ------------------------------------------------------------------------------


def test_entries():
    x = np.where(X > 1.5, np.nan, X)
    assert open_data({"phi": x}).missing == {"phi": np.isnan(x).sum()}
    masked = open_data({"phi": np.ma.masked_greater(X, 1.5)})
    assert masked.missing == {"phi": np.isnan(x).sum()}


def test_missing_entries_of_a_large_file_are_estimated(nothing_loaded, tmp_path):
    x = np.where(np.random.default_rng(0).random((4000, 6)) < 0.1, np.nan, 1.0)
    np.save(tmp_path / "x.npy", x)
    data = open_data({"phi": np.load(tmp_path / "x.npy", mmap_mode="r")})
    assert not data.in_memory and data.matrices["phi"].backend == "file"
    assert data.missing["phi"] == pytest.approx(np.isnan(x).sum(), rel=0.15)
    numbers, rows = data.matrices["phi"].preview()
    assert len(numbers) == 512 and rows.shape == (1, 512, 6)
    np.testing.assert_array_equal(np.isnan(rows[0]), np.isnan(x[numbers]))


# --- groups and populations ---------------------------------------------------------------


def test_axes_of_groups():
    axis = AxisInfo(6, np.array([0, 2, 1, 1, 2, 2]), None)
    assert axis.n_units == 3 and axis.correction == 1
    np.testing.assert_allclose(axis.weights, [1, 1 / 3, 1 / 2, 1 / 2, 1 / 3, 1 / 3])
    less = axis.take(np.array([1, 4, 0]))
    assert less.size == 3 and less.groups.tolist() == [1, 1, 0]
    assert AxisInfo(6, None, 8).correction == pytest.approx(0.5)
    assert AxisInfo(6).n_units == 6 and AxisInfo(6).weights is None


def test_labels():
    labels = ["b", "a"] * 6
    data = open_data({"phi": X}, groups=labels, column_groups=pd.Series(list("xxyyzzww")))
    assert data.inputs.groups.tolist() == [1, 0] * 6 and data.axes["features"].n_units == 4
    assert data.grouped == ["inputs", "features"]
    refused("groups", "12 labels, one for each row", groups=[1, 2])
    refused("column_groups", "8 labels, one for each column", column_groups=labels)
    refused("groups", "missing labels", groups=[np.nan, *range(11)])
    frame = pd.DataFrame(X, index=list("abcdefghijkl"))
    order = pd.Series(range(12), index=list("lkjihgfedcba"))
    for given in ({"phi": frame}, {"a": frame, "b": X}, {"b": X, "a": frame}):
        refused("groups", "in another order", given, groups=order)
    refused(
        "column_groups", "dict by the names a, b", {"a": X, "b": X}, column_groups=[0] * 8
    )


def test_populations():
    for given, size in ((None, None), (20, 20), ("all", 8), (8, 8)):
        assert open_data({"phi": X}, population=given).axes["features"].population == size
    for wrong in ((None, 20), (12, None), 7, 9.5):
        refused("population", "at least the 8 measured", population=wrong)
    refused("population", "one of the two", population=20, column_groups=np.arange(8) // 2)
    both = {"a": X, "b": X[:, :5]}
    assert open_data(both, population="all").finite == {
        "features of a": 8,
        "features of b": 5,
    }
    assert open_data(both, population={"b": 9}).finite == {"features of b": 9}
    refused("population", "dict by the names a, b", both, population={"c": 9})


def test_systems():
    refused("b", "a has 12 rows and b has 11", {"a": X, "b": X[1:]})
    refused("b", "8 columns and b has 5", {"a": X, "b": X[:, :5]}, shared=True)
    shared = open_data({"a": X, "b": X**2}, shared=True, population=30)
    assert shared.spaces == {"a": "features", "b": "features"}
    assert shared.finite == {"features": 30}
    one, two = Recording(X, groups=range(12)), Recording(X, groups=[0] * 12)
    refused("groups", "different groups", {"a": one, "b": two})
    assert open_data({"a": one, "b": two}, groups=range(12)).inputs.n_units == 12
    known = open_data({"phi": Recording(X, column_groups=[0, 0, 1, 2, 3, 4, 5, 6])})
    assert known.axes["features"].n_units == 7 and known.inputs.groups is None
    assert repr(two) == "Recording(12 x 8, groups)"


# --- noise --------------------------------------------------------------------------------


def test_noise_is_checked():
    refused(
        "noise", "2 repeats, which remove noise", {"phi": [X, X]}, trials=True, noise=1.0
    )
    refused("noise", "not known; use 'poisson'", noise="gamma")
    for wrong in (True, (), (np.ones(6), 2)):
        refused("noise", "is not known; use 'poisson'", noise=wrong)
    refused("noise", "not known", noise=("binomial",))
    refused("noise", "not known", noise=("poisson", 3))
    refused("noise", "has negative and fractional entries", noise="poisson")
    refused("noise", "multiples of 10, as rates", {"phi": 10 * COUNTS}, noise="poisson")
    refused("noise", "too large entries", {"phi": 1e19 * COUNTS}, noise="poisson")
    for size in (1e-200, 1e-320):
        refused("noise", "is far larger than phi", {"phi": size * COUNTS}, noise=1.0)
    refused("noise", "too large", {"phi": COUNTS}, noise=("binomial", 3))
    refused("noise", "too small; use at least 2", {"phi": COUNTS}, noise=("binomial", 1))
    refused("noise", "shape", noise=np.ones(5))
    refused("noise", "not negative", noise=-1.0)
    refused("noise", "finite", noise=np.inf)
    both = {"a": COUNTS, "b": COUNTS}
    refused("noise", "dict by the names", both, noise={"c": "poisson"})
    for noise in ("poisson", dict.fromkeys(both, "poisson")):  # one law of all
        data = open_data(both, noise=noise)
        assert all(matrix.noise is not None for matrix in data.matrices.values())
    data = open_data({"a": COUNTS, "b": X}, noise={"a": "poisson"})
    assert data.with_noise_law == ["a"]


@pytest.mark.parametrize("unit", [1.0, 2.0**-40])
def test_variances_are_unbiased(unit):
    "By enumeration of the law; entries come divided by a power of two."
    power = int(np.log2(1 / unit))
    k = np.arange(0, 60)
    poisson = np.exp(-4.0) * 4.0**k / [float(np.prod(np.arange(1.0, j + 1))) for j in k]
    found = Noise("poisson", None, power).variance(k * unit)
    assert poisson @ found / unit**2 == pytest.approx(4.0)
    k = np.arange(6)
    binomial = np.array([1, 5, 10, 10, 5, 1]) * 0.3**k * 0.7 ** (5 - k)
    found = Noise("binomial", 5, power).variance(k * unit)
    assert binomial @ found / unit**2 == pytest.approx(5 * 0.3 * 0.7)
    found = Noise("gaussian", np.array([1.0, 4.0]), power).variance(np.zeros((3, 2)))
    np.testing.assert_allclose(found / unit**2, [[1, 4]] * 3)


@pytest.mark.parametrize("shape", [(), (8,), (12, 8)])
def test_a_known_variance_is_taken_from_the_squares(shape):
    "m(1), and with all features m(2), where columns coincide; elsewhere nothing."
    variance = np.random.default_rng(3).random(shape)
    plain, clean = (sm.estimate(X, 2, noise=v, center=False) for v in (None, variance))
    assert plain.values[0] - clean.values[0] == pytest.approx(np.mean(variance))
    assert plain.values[1] == pytest.approx(clean.values[1], rel=1e-12)
    finite = sm.estimate(X, 2, noise=variance, center=False, population="all")
    v = np.broadcast_to(variance, X.shape)
    K = X @ X.T / 8
    L = np.einsum("ia,ja->ij", X**2 - v, X**2 - v)  # squares in both rows
    squares = (X**2) @ (X**2).T
    expected = (K**2 + (L - squares) / 64)[~np.eye(12, dtype=bool)].mean()
    assert finite.values[1] == pytest.approx(expected, rel=1e-10)
