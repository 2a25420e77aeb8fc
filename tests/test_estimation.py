"""The front door: every kind of input, exact identities, and every warning."""

import itertools
import json
import math
import re
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse
import torch

from spectral_moments import (
    RBF,
    Linear,
    all_cycles,
    estimate,
    estimation,
    increasing,
    kong_valiant,
    naive,
)
from spectral_moments.estimation import (
    centered_all_cycles,
    centered_increasing,
    centered_patterns,
    choose_methods,
    observed_ratio,
)
from spectral_moments.results import (
    Estimate,
    EstimateWarning,
    compare,
    difference_test,
)

PHI = Linear(3, scale=0.3).sample(24, 30, random_state=1)


def quiet(*args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EstimateWarning)
        return estimate(*args, **kwargs)


def warned(*args, message):
    "The estimate, after asserting that the message is among its warnings and its notes."
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = estimate(*args)
    assert [str(w.message) for w in caught] == result.notes
    assert all(w.category is EstimateWarning for w in caught)
    assert any(re.search(message, note) for note in result.notes)
    return result


@pytest.mark.parametrize(
    ("method", "function"),
    [
        ("naive", naive),
        ("kv_row", kong_valiant),
        ("row", kong_valiant),
        ("col", lambda phi, n: kong_valiant(phi, n, sampled="columns")),
        ("all_cycles", all_cycles),
        ("both", all_cycles),
    ],
)
def test_methods_are_the_functions(method, function):
    result = quiet(PHI, 3, method=method)
    np.testing.assert_allclose(result.values, function(PHI, 3), rtol=1e-12)


def test_auto_mixes_methods():
    result = quiet(PHI, 7, random_state=3)
    assert result.methods == ["all_cycles"] * 5 + ["increasing"] * 2
    np.testing.assert_allclose(result.values[:5], all_cycles(PHI, 5), rtol=1e-12)


def test_seed_decides_and_threads_do_not():
    options = dict(method="increasing", random_state=5)
    first = quiet(PHI, 6, n_jobs=1, **options)
    second = quiet(PHI, 6, n_jobs=3, **options)
    np.testing.assert_array_equal(first.values, second.values)
    np.testing.assert_array_equal(first.stderr, second.stderr)
    other = quiet(PHI, 6, method="increasing", random_state=6)
    assert (first.values[2:] != other.values[2:]).all()
    given = quiet(PHI, 6, method="increasing", n_permutations=0)
    np.testing.assert_allclose(given.values, increasing(PHI, 6), rtol=1e-12)


class Frame:
    "Looks like a data frame: an `__array__` and nothing else."

    def __array__(self, dtype=None, copy=None):
        return PHI


@pytest.mark.parametrize(
    "phi", [PHI.tolist(), np.asfortranarray(PHI), torch.from_numpy(PHI), Frame(), PHI[None]]
)
def test_kinds_of_input(phi):
    result = quiet(phi, 3)
    np.testing.assert_allclose(result.values, all_cycles(PHI, 3), rtol=1e-12)
    assert result.shape == (1, 24, 30)


def test_input_is_not_modified():
    phi = np.where(np.eye(24, 30) > 0, np.nan, PHI)
    before = phi.copy()
    phi.flags.writeable = False
    quiet(phi, 3)
    quiet(phi, 3, center=True)
    np.testing.assert_array_equal(phi, before)


@pytest.mark.parametrize("method", ["all_cycles", "increasing"])
def test_missing_row_and_column_is_the_smaller_matrix(method):
    phi = np.vstack([PHI, np.full((1, 30), np.nan)])
    result = quiet(phi, 4, method=method, n_permutations=0)
    whole = quiet(PHI, 4, method=method, n_permutations=0)
    np.testing.assert_allclose(result.values, whole.values, rtol=1e-8)


def test_missing_in_trials():
    rng = np.random.default_rng(2)
    phi = rng.standard_normal((2, 4, 5))
    phi[0, 0, 1] = phi[1, 2, 2] = phi[0, 3, 4] = np.nan

    def direct(n):
        total, count = 0.0, 0
        for r in itertools.permutations(range(4), n):
            for c in itertools.permutations(range(5), n):
                x = math.prod(
                    phi[0, i, k] * phi[1, j, k] for i, j, k in zip(r, r[1:] + r[:1], c)
                )
                total, count = total + np.nan_to_num(x), count + (not np.isnan(x))
        return total / count

    values = quiet(phi, 3, method="all_cycles", stderr=False).values
    np.testing.assert_allclose(values, [direct(n) for n in (1, 2, 3)], rtol=1e-9)


def test_too_few_observed_cycles():
    phi = np.where(np.eye(6) > 0, 1.0, np.nan)  # no two entries share a row or a column
    result = warned(phi, 3, message="too few fully observed cycles at n = 2, 3")
    assert np.isfinite(result.values[0])
    assert np.isnan(result.values[1:]).all()
    assert not result.usable[1:].any()


def test_observed_ratio_without_gaps_is_the_estimate():
    np.testing.assert_array_equal(observed_ratio(lambda x: x[0, 0], PHI[None]), PHI[0])


def test_centred_second_order_by_direct_sum():
    phi = np.random.default_rng(3).standard_normal((5, 3)) + 2

    def pattern_mean(pattern):
        rows, columns = (1 + max(edge[i] for edge in pattern) for i in (0, 1))
        return np.mean(
            [
                math.prod(phi[r[i], c[k]] for i, k, _ in pattern)
                for r in itertools.permutations(range(5), rows)
                for c in itertools.permutations(range(3), columns)
            ]
        )

    direct = sum(sign * pattern_mean(pattern) for sign, pattern in centered_patterns(2))
    np.testing.assert_allclose(centered_all_cycles(phi[None], 2)[1], direct, rtol=1e-10)


def test_centring_ignores_column_shifts():
    shift = 100 * np.random.default_rng(4).standard_normal(30)
    for method in ("auto", "all_cycles", "increasing"):
        plain = quiet(PHI, 3, center=True, method=method, random_state=1)
        moved = quiet(PHI + shift, 3, center=True, method=method, random_state=1)
        np.testing.assert_allclose(moved.values, plain.values, rtol=1e-6)
        np.testing.assert_allclose(moved.stderr, plain.stderr, rtol=1e-6)


def test_centred_increasing_approaches_all_cycles():
    many = centered_increasing(PHI[None], 2, n_permutations=400, random_state=1)
    np.testing.assert_allclose(many, centered_all_cycles(PHI[None], 2), rtol=0.05)


def test_centred_orders_and_rows():
    assert quiet(PHI, 5, center=True).methods == ["all_cycles"] * 3 + ["increasing"] * 2
    assert quiet(PHI[:5], 2, center=True).methods == ["all_cycles"] * 2
    for method in ("auto", "increasing", "all_cycles"):
        with pytest.raises(ValueError, match="n_max = 3 with .* needs 6 rows; phi has 5"):
            quiet(PHI[:5], 3, center=True, method=method)
    with pytest.raises(ValueError, match="n_max = 2 with .* needs 4 rows; phi has 3"):
        centered_increasing(PHI[None, :3], 2)
    with pytest.raises(ValueError, match="n_max = 1 with .* needs 2 rows; phi has 1"):
        quiet(PHI[:1], 1, center=True)
    with pytest.raises(ValueError, match="larger than 3, the highest order of all_cycles"):
        quiet(PHI, 4, center=True, method="all_cycles")
    with pytest.raises(ValueError, match=r"exceeds min\(P, Q\) = 2"):
        quiet(PHI[:, :2], 3, center=True)


def test_centred_errors_contain_the_scatter_of_pairings():
    options = dict(center=True, n_permutations=6)
    found = [quiet(PHI, 5, random_state=seed, **options) for seed in range(30)]
    assert len({result.stderr[2] for result in found}) == 1  # all cycles: nothing random
    sampling, _ = estimation._errors(PHI[None], np.zeros((5, 0)), True, 1)
    np.testing.assert_allclose(found[0].stderr[:3], sampling[:3], rtol=1e-12)
    scatter = np.var([result.values[3:] for result in found], axis=0, ddof=1)
    total = np.mean([result.stderr[3:] ** 2 for result in found], axis=0)
    np.testing.assert_allclose(total - sampling[3:] ** 2, scatter, rtol=0.5)
    variances = np.diag(found[0].covariance)
    np.testing.assert_allclose(np.sqrt(variances), found[0].stderr, rtol=1e-10)


def test_scatter_of_a_ratio():
    gaps = np.where(np.random.default_rng(1).random(PHI.shape) < 0.1, np.nan, PHI)[None]
    values, scatter = estimation._paired(gaps, 3, 20, 1)
    np.testing.assert_allclose(scatter.sum(axis=1), 0, atol=1e-12 * abs(scatter).max())
    assert scatter.shape == (3, 20)
    many = [estimation._paired(gaps, 3, 20, seed)[0] for seed in range(40)]
    spread = np.std(many, axis=0, ddof=1)
    np.testing.assert_allclose(np.sqrt((scatter**2).sum(axis=1)), spread, rtol=0.6)
    np.testing.assert_allclose(values, centered_all_cycles(gaps, 3), atol=6 * spread.max())


def test_number_of_pairings():
    assert estimation._runs(None, (1, 60, 80), 6, False) == 10
    assert estimation._runs(None, (1, 60, 80), 6, True) == 50
    assert estimation._runs(None, (1, 5000, 5000), 6, True) == 10
    assert estimation._runs(0, (1, 60, 80), 6, False) == 0
    assert estimation._runs(0, (1, 60, 80), 6, True) == 2  # one has no scatter


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize(("unit", "n_max"), [(1e-13, 7), (1e-20, 7), (1e20, 7), (1e40, 3)])
def test_errors_in_any_unit(unit, n_max, center):
    plain = quiet(PHI, n_max, random_state=1, center=center)
    other = quiet(unit * PHI, n_max, random_state=1, center=center)
    relative = plain.stderr / plain.values
    np.testing.assert_allclose(other.stderr / other.values, relative, rtol=1e-6)
    np.testing.assert_array_equal(other.usable, plain.usable)


@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (1, 1), (2, 1, 5)])
def test_one_row_or_column(shape):
    phi = np.random.default_rng(1).standard_normal(shape)
    assert np.isinf(quiet(phi, 1).stderr[0])


def test_center_is_a_switch():
    assert quiet(PHI, 2, center=np.True_).center is True
    assert json.dumps(quiet(PHI, 2, center=np.False_).to_dict())
    with pytest.raises(TypeError, match="center must be True or False, not 'no'"):
        estimate(PHI, 2, center="no")


def test_identical_trials():
    gaps = np.where(PHI > 2, np.nan, PHI)
    warned(np.stack([gaps] * 3), 2, message="all trials are the same")
    notes = quiet(np.stack([PHI, PHI, 2 * PHI]), 2).notes
    assert not any("trials" in note for note in notes)


def test_share_of_the_mean():
    rng = np.random.default_rng(1)
    for mean, told in ((0.6, False), (0.85, True)):  # 26% and 42%
        notes = quiet(rng.standard_normal((60, 80)) + mean, 2).notes
        assert any("mean over inputs" in note for note in notes) == told


def test_trials_remove_noise_at_order_one():
    rng = np.random.default_rng(5)
    noisy = PHI + 2 * rng.standard_normal((3, *PHI.shape))
    one, three = quiet(noisy[0], 1), quiet(noisy, 1)
    truth = (PHI**2).mean()
    assert one.values[0] > 3 * truth  # the noise variance is in it
    assert abs(three.values[0] - truth) < 0.5


def test_stderr_covers():
    process, hits = Linear(4, scale=0.25), []
    for seed in range(60):
        result = quiet(process.sample(40, 50, random_state=seed), 2)
        low, high = result.interval(0.9)
        hits.append((low < process.moments(2)) & (process.moments(2) < high))
    share = np.mean(hits, axis=0)
    assert (share > 0.75).all()
    assert (share < 1).any()


def test_no_stderr_for_biased_methods_or_on_request():
    assert np.isnan(quiet(PHI, 2, method="naive").stderr).all()
    result = quiet(PHI, 2, stderr=False)
    assert np.isnan(result.stderr).all()
    assert not result.usable.any()


@pytest.mark.parametrize(
    ("phi", "n_max", "message"),
    [
        (np.full((8, 9), 3.0), 2, "phi is constant"),
        (PHI + 5, 2, "center=True"),
        (PHI[:6], 4, "close to min"),
        (
            np.random.default_rng(6).standard_normal((12, 12)),
            4,
            "relative standard error|not positive",
        ),
    ],
)
def test_warnings(phi, n_max, message):
    warned(phi, n_max, message=message)


def test_silent_when_all_is_well():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert estimate(Linear(3).sample(100, 120, random_state=1), 2).notes == []


def test_shown():
    result = quiet(PHI, 3)
    text = str(result)
    assert "24 inputs x 30 features" in text
    assert len(text.splitlines()) >= 5
    assert result._repr_html_().startswith("<p>Spectral moments of 24 inputs x 30 features")
    assert (
        "3 trials, centred</p>" in quiet(np.stack([PHI] * 3), 2, center=True)._repr_html_()
    )
    record = json.loads(json.dumps(quiet(PHI, 3, method="naive").to_dict()))
    assert record["stderr"] == [None] * 3
    import matplotlib

    matplotlib.use("Agg")
    assert result.plot(label="x").get_xlabel() == "order $n$"


def test_compare():
    import matplotlib
    import matplotlib.pyplot as plt

    matplotlib.use("Agg")
    results = {
        "long": quiet(PHI, 5),
        "short": quiet(PHI, 2),
        "naive": quiet(PHI, 4, method="naive"),
    }
    truth = Linear(3, scale=0.3).moments(5)
    ax = compare(results).plot(truth=truth)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert sorted(labels) == ["long", "naive", "short", "truth"]
    points = [bar.lines[0] for bar in ax.containers if bar.lines[0].get_marker() != "_"]
    shifts = [line.get_xdata()[0] for line in points]
    np.testing.assert_allclose(shifts, [0.92, 1.0, 1.08])
    assert len({line.get_marker() for line in points}) == 3
    np.testing.assert_array_equal(points[1].get_ydata(), results["short"].values)
    np.testing.assert_array_equal(ax.lines[-1].get_ydata(), truth)
    ticks = [tick for tick in ax.get_xticks() if ax.get_xlim()[0] < tick < ax.get_xlim()[1]]
    assert ticks == [1, 2, 3, 4, 5]  # the longest, whatever came last
    _, mine = plt.subplots()
    assert compare({"x": results["short"]}).plot(mine) is mine
    assert all(t == round(t) for t in compare({"x": quiet(PHI, 1)}).plot().get_xticks())
    plt.close("all")


def test_compare_table():
    one, other = quiet(PHI, 3), quiet(2 * PHI, 2)
    table = compare({"one": one, "two": other})
    assert [row["n"] for row in table.rows] == [1, 2]
    for row, n in zip(table.rows, (1, 2)):
        np.testing.assert_allclose(row["difference"], (4**n - 1) * one.values[n - 1])
        np.testing.assert_allclose(row["error"], np.hypot(1, 4**n) * one.stderr[n - 1])
    assert "two - one" in str(table) and "<table>" in table._repr_html_()
    assert compare({"one": one}).rows == []


def test_p_values_are_level():
    rng, process = np.random.default_rng(5), RBF(2)
    found = []
    for _ in range(150):
        pair = [quiet(process.sample(40, 60, rng), 3) for _ in range(2)]
        found.append(difference_test(*pair)[2] < 0.05)
    assert (np.mean(found, axis=0) < 0.11).all()
    other = quiet(RBF(2, input_cov=4.0).sample(60, 90, 6), 3)
    assert difference_test(quiet(process.sample(60, 90, 7), 3), other)[2][1] < 0.01


def test_plot_leaves_out_what_a_logarithm_cannot_show():
    import matplotlib.pyplot as plt

    values = np.array([1.0, -0.1, np.nan, 0.01])
    result = Estimate(values, np.full(4, np.nan), ["all_cycles"] * 4, (1, 9, 9))
    ax = result.plot(shift=0.5)
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), [1.5, 4.5])
    assert ax.lines[0].get_linestyle() == "None"
    assert len(ax.containers) == 1
    stderr = np.array([0.1, 0.1, np.nan, 0.001])
    result = Estimate(values, stderr, ["all_cycles"] * 4, (1, 9, 9))
    ax = result.plot(color="C3")
    limit = ax.containers[1].lines[0]
    np.testing.assert_array_equal(limit.get_xdata(), [2])
    np.testing.assert_allclose(limit.get_ydata(), result.interval()[1][1])
    assert limit.get_color() == "C3"
    whole = Estimate(abs(values[:2]), stderr[:2], ["all_cycles"] * 2, (1, 9, 9)).plot()
    assert whole.lines[0].get_linestyle() == "-"
    assert len(Estimate(-values[:1], stderr[:1] / 9, ["x"], (1, 9, 9)).plot().lines) == 1
    plt.close("all")


def test_compare_refuses_what_has_no_names():
    result = quiet(PHI, 2)
    for bad in ([result], result, {"x": result.values}, {}):
        with pytest.raises(TypeError, match="estimates must be a dict of name: Estimate"):
            compare(bad)


def test_plot_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"spectral_moments\[plot\]"):
        quiet(PHI, 2).plot()
    with pytest.raises(ImportError, match=r"spectral_moments\[plot\]"):
        compare({"x": quiet(PHI, 2)}).plot()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (dict(method="best"), ValueError, "method = 'best' is not known"),
        (dict(method=None), ValueError, "method = None"),
        (dict(method="naive", center=True), ValueError, "offers neither"),
        (dict(n_permutations=-1), ValueError, "n_permutations"),
        (dict(n_jobs=0), ValueError, "n_jobs"),
        (dict(n_jobs=-1), ValueError, "n_jobs = -1 .*; None means all cores"),
        (dict(random_state="x"), TypeError, "random_state"),
    ],
)
def test_refused(options, error, message):
    with pytest.raises(error, match=message):
        estimate(PHI, 3, **options)


def test_refused_data():
    with pytest.raises(ValueError, match="infinite"):
        estimate([[1.0, np.inf], [np.nan, 1.0]], 1)
    with pytest.raises(ValueError, match="only NaN"):
        estimate(np.full((3, 3), np.nan), 1)
    with pytest.raises(ValueError, match=r"n_max = 6 exceeds"):
        estimate(PHI[:5])
    with pytest.raises(ValueError, match="offers neither"):
        estimate(np.where(PHI > 2, np.nan, PHI), 2, method="kv_row")


def test_choice_by_size():
    assert choose_methods((2000, 2500), 5)[4] == "increasing"
    assert choose_methods((5000, 6000), 5) == ["sketched"] * 5
    assert choose_methods((2, 5000, 6000), 5)[4] == "increasing"  # trials are not sketched
    assert choose_methods((5000, 6000), 5, center=True)[4] == "increasing"
    assert choose_methods((2, 100, 200), 5) == ["all_cycles"] * 5


def test_large_matrices_are_sketched(monkeypatch):
    monkeypatch.setattr(estimation, "LARGE", 1)
    found = quiet(PHI, 3, random_state=0)
    assert found.methods == ["sketched"] * 3 and found.shape == (1, 24, 30)
    assert (found.probe_error <= found.stderr).all()
    np.testing.assert_allclose(found.values[0], (PHI**2).mean())
    assert "of which probes" in str(found) and "probe_error" in found.to_dict()
    gappy = PHI.copy()
    gappy[0, 0] = np.nan
    for phi, options in (
        (gappy, {}),
        (np.stack([PHI, PHI]), {}),
        (PHI, {"center": True}),
        (PHI, {"method": "increasing"}),
    ):
        assert "sketched" not in quiet(phi, 3, **options).methods
    for phi in (PHI.tolist(), torch.tensor(PHI), PHI[None]):
        np.testing.assert_array_equal(quiet(phi, 3, random_state=0).values, found.values)
    with pytest.raises(ValueError, match="exceeds min"):
        estimate(PHI, 25)
    with pytest.raises(ValueError, match="trials"):
        estimate(np.stack([PHI, PHI]), 3, method="sketched")
    with pytest.raises(ValueError, match="center"):
        estimate(PHI, 3, method="sketched", center=True)
    for phi in (gappy, gappy.tolist()):
        with pytest.raises(ValueError, match="NaN; use method='auto' or 'increasing', or"):
            estimate(phi, 3, method="sketched")
    with pytest.raises(TypeError, match="sparse"):
        estimate(scipy.sparse.csr_matrix(PHI), 3)
    with pytest.warns(EstimateWarning, match="mean over inputs"):
        estimate(PHI + 5, 2, random_state=0)
