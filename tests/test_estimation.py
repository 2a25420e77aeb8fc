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
    increasing,
    kong_valiant,
    naive,
    sketched,
)
from spectral_moments.checks import ArgumentError
from spectral_moments.engine import choice
from spectral_moments.engine.choice import choose
from spectral_moments.engine.reduction import FAMILIES, RUNS, Axis
from spectral_moments.engine.sources import open_source
from spectral_moments.engine.systems import Design, System
from spectral_moments.results import compare, from_moments

PHI = Linear(3, scale=0.3).sample(24, 30, random_state=1)


def uncentred(phi, n_max, **options):
    "Moments with the mean, as the functions of the paper have them."
    return estimate(phi, n_max, **{"center": False, **options})


def noted(*args, message, **options):
    "The estimate, after asserting that the message is in its notes, and nothing is warned."
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = uncentred(*args, **options)
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
        ("increasing", increasing),
    ],
)
def test_methods_are_the_functions(method, function):
    result = uncentred(PHI, 3, method=method, n_permutations=0)
    np.testing.assert_allclose(result.values, function(PHI, 3), rtol=1e-12)


def test_auto_mixes_methods():
    result = uncentred(PHI, 7, random_state=3)
    assert result.methods == ["all_cycles"] * 5 + ["increasing"] * 2
    np.testing.assert_allclose(result.values[:5], all_cycles(PHI, 5), rtol=1e-12)


@pytest.mark.parametrize("method", ["all_cycles", "increasing"])
def test_missing_row_and_column_is_the_smaller_matrix(method):
    phi = np.vstack([PHI, np.full((1, 30), np.nan)])
    result = uncentred(phi, 4, method=method, n_permutations=0)
    whole = uncentred(PHI, 4, method=method, n_permutations=0)
    np.testing.assert_allclose(result.values, whole.values, rtol=1e-8)


def test_too_few_observed_cycles():
    phi = np.where(np.eye(6) > 0, 1.0, np.nan)  # no two entries share a row or a column
    result = noted(phi, 3, message="too few fully observed cycles at n = 2, 3")
    assert np.isfinite(result.values[0])
    assert np.isnan(result.values[1:]).all()
    assert not result.usable[1:].any()


def test_centring_ignores_column_shifts():
    shift = 100 * np.random.default_rng(4).standard_normal(30)
    for method in (
        "auto",
        "all_cycles",
        "increasing",
        "blocks",
        "naive",
        "kv_row",
        "kv_col",
    ):
        plain = uncentred(PHI, 3, center=True, method=method, random_state=1)
        moved = uncentred(PHI + shift, 3, center=True, method=method, random_state=1)
        np.testing.assert_allclose(moved.values, plain.values, rtol=1e-6)
        np.testing.assert_allclose(moved.stderr, plain.stderr, rtol=1e-6)


def test_pairs_approach_centred_cycles():
    exact = all_cycles(PHI, 3, center=True)
    pairs = dict(method="increasing", n_permutations=1500, stderr=False)
    many = uncentred(PHI, 3, center=True, **pairs).values
    np.testing.assert_allclose(many[:2], exact[:2], rtol=0.05)
    np.testing.assert_allclose(many[2], exact[2], atol=0.2 * exact[1] ** 1.5)
    pairs = dict(method="all_cycles", n_permutations=300, stderr=False)
    beyond = estimate(PHI, 5, **pairs)  # pairs, from 5 on
    np.testing.assert_allclose(beyond.values[:2], exact[:2], rtol=0.05)
    with pytest.raises(ArgumentError, match="the highest order of all cycles"):
        estimate(PHI, 5, method="all_cycles", groups=np.arange(24) // 2)


def test_centred_orders_and_rows():
    assert uncentred(PHI, 6, center=True).methods == ["all_cycles"] * 4 + ["increasing"] * 2
    assert uncentred(PHI[:5], 2, center=True).methods == ["all_cycles"] * 2
    for method, family in FAMILIES.items():
        if not family.sampled:  # the rows are all there are, and have one mean
            assert np.isfinite(
                uncentred(PHI[:5], 3, center=True, method=method).values
            ).all()
            continue
        with pytest.raises(ValueError, match="n_max = 3 needs 6 .* center=True, .* are 5"):
            uncentred(PHI[:5], 3, center=True, method=method)
    with pytest.raises(ValueError, match="n_max = 1 needs 2 distinct rows .* there are 1"):
        uncentred(PHI[:1], 1, center=True)
    with pytest.raises(ValueError, match="larger than 5, the highest order of all cycles"):
        uncentred(PHI, 6, center=True, method="all_cycles")
    assert uncentred(PHI, 5, center=True, method="all_cycles").methods == ["all_cycles"] * 5
    with pytest.raises(ValueError, match=r"exceeds min\(P, Q\) = 2"):
        uncentred(PHI[:, :2], 3, center=True)


def test_number_of_views(caplog):
    def count(*shape, **options):
        caplog.clear()
        phi = np.random.default_rng(0).standard_normal(shape)
        with caplog.at_level("INFO", logger="spectral_moments"):
            uncentred(phi, progress=True, **options)
        return int(caplog.messages[-1].split()[0])

    assert count(12, 15, n_max=3) == 1
    assert count(12, 15, n_max=3, method="increasing") == RUNS
    assert count(12, 15, n_max=3, method="increasing", n_permutations=3) == 3
    assert count(12, 15, n_max=3, method="increasing", n_permutations=0) == 1
    assert count(2, 12, 15, n_max=2) == 1
    assert count(2, 12, 15, n_max=2, method="increasing", n_permutations=0) == 2
    assert count(4, 12, 15, n_max=2) == 3  # all splits in two halves
    assert count(5, 12, 15, n_max=2) == 2  # two random ones, crosswise


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize(("unit", "n_max"), [(1e-13, 7), (1e-20, 7), (1e20, 7), (1e40, 3)])
def test_errors_in_any_unit(unit, n_max, center):
    plain = uncentred(PHI, n_max, random_state=1, center=center)
    other = uncentred(unit * PHI, n_max, random_state=1, center=center)
    relative = plain.stderr / plain.values
    np.testing.assert_allclose(other.stderr / other.values, relative, rtol=1e-6)
    np.testing.assert_array_equal(other.usable, plain.usable)


@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (1, 1), (2, 1, 5)])
def test_one_row_or_column(shape):
    phi = np.random.default_rng(1).standard_normal(shape)
    assert np.isinf(uncentred(phi, 1).stderr[0])


def test_share_of_the_mean():
    rng = np.random.default_rng(1)
    for mean, told in ((0.6, False), (0.85, True)):  # 26% and 42%
        notes = uncentred(rng.standard_normal((60, 80)) + mean, 2).notes
        assert any("mean over inputs" in note for note in notes) == told


def test_no_stderr_for_biased_methods_or_on_request():
    assert np.isnan(uncentred(PHI, 2, method="naive").stderr).all()
    for method in FAMILIES:
        result = uncentred(PHI, 2, method=method, stderr=False)
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
            "relative standard errors|not positive",
        ),
    ],
)
def test_notes(phi, n_max, message):
    noted(phi, n_max, message=message)


def test_silent_when_all_is_well():
    assert estimate(Linear(3).sample(100, 120, random_state=1), 2).notes == []


def test_shown():
    result = uncentred(PHI, 3)
    text = str(result)
    assert "24 inputs x 30 features" in text
    assert len(text.splitlines()) >= 5
    assert result._repr_html_().startswith("<p>Spectral moments of 24 inputs x 30 features")
    groups, weights = np.arange(24) // 2, np.arange(30)
    full = estimate(PHI, 2, groups=groups, column_weights=weights, random_state=7)
    used = "centred, 12 groups of inputs, weights of features, method auto, seed 7, version"
    assert used in str(full).splitlines()[0]
    some = uncentred(np.stack([PHI] * 3), 2, population=(None, 40))
    assert "3 trials, not centred, population of 40 features" in str(some)
    told = json.loads(json.dumps(full.to_dict()))
    assert told["schema"] == 3 and told["settings"]["groups"] == {"inputs": 12}
    assert told["settings"]["version"] == told["version"]
    record = json.loads(json.dumps(uncentred(PHI, 3, method="naive").to_dict()))
    assert record["stderr"] == [None] * 3
    import matplotlib

    matplotlib.use("Agg")
    assert result.plot(label="x").get_xlabel() == "order $n$"


def test_compare():
    import matplotlib
    import matplotlib.pyplot as plt

    matplotlib.use("Agg")
    results = {
        "long": uncentred(PHI, 5),
        "short": uncentred(PHI, 2),
        "naive": uncentred(PHI, 4, method="naive"),
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
    assert all(t == round(t) for t in compare({"x": uncentred(PHI, 1)}).plot().get_xticks())
    plt.close("all")


def test_compare_paired():
    """Two layers that saw the same inputs: what the inputs do to both drops out."""
    rng = np.random.default_rng(3)
    gains, maps = (
        np.exp(0.5 * rng.standard_normal((60, 1))),
        rng.standard_normal((2, 5, 90)),
    )
    inputs = gains * rng.standard_normal((60, 5))
    both = {k: uncentred(inputs @ m, 2) for k, m in zip("ab", maps)}
    (apart,), (together,) = (
        compare(both, of="dimension", paired=paired).rows for paired in (None, "inputs")
    )
    assert together["difference"] == apart["difference"]
    assert together["error"] < 0.7 * apart["error"]
    custom = compare(both, of=lambda est: est.derive(lambda m: m[0], "log", name="size"))
    assert custom.rows[0]["of"] == "size"
    direct = compare({k: est.dimension() for k, est in both.items()}, paired="inputs")
    assert direct.rows[0]["p"] == together["p"]
    with pytest.raises(ValueError, match="same number of inputs"):
        compare(both | {"c": uncentred(PHI, 2)}, paired="inputs")
    with pytest.raises(ValueError, match="of = 'size' is not"):
        compare(both, of="size")


def test_p_values_are_level():
    rng, process = np.random.default_rng(5), RBF(2)
    found = []
    for _ in range(150):
        pair = {k: uncentred(process.sample(40, 60, rng), 3) for k in "ab"}
        rows = compare(pair).rows + compare(pair, of="dimension").rows
        found.append([row["p"] < 0.05 for row in rows])
    assert (np.mean(found, axis=0) < 0.11).all()
    other = uncentred(RBF(2, input_cov=4.0).sample(60, 90, 6), 3)
    one = uncentred(process.sample(60, 90, 7), 3)
    assert compare({"one": one, "other": other}).rows[1]["p"] < 0.01


def test_plot_leaves_out_what_a_logarithm_cannot_show():
    import matplotlib.pyplot as plt

    values = np.array([1.0, -0.1, np.nan, 0.01])
    result = from_moments(values)
    ax = result.plot(shift=0.5)
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), [1.5, 4.5])
    assert ax.lines[0].get_linestyle() == "None"
    assert len(ax.containers) == 1
    stderr = np.array([0.1, 0.1, np.nan, 0.001])
    result = from_moments(values, stderr)
    ax = result.plot(color="C3")
    limit = ax.containers[1].lines[0]
    np.testing.assert_array_equal(limit.get_xdata(), [2])
    np.testing.assert_allclose(limit.get_ydata(), result.interval()[1][1])
    assert limit.get_color() == "C3"
    whole = from_moments(abs(values[:2]), stderr[:2]).plot()
    assert whole.lines[0].get_linestyle() == "-"
    assert len(from_moments(-values[:1], stderr[:1] / 9).plot().lines) == 1
    plt.close("all")


def test_compare_refuses_what_has_no_names():
    result = uncentred(PHI, 2)
    for bad in ([result], result, {"x": result.values}, {}):
        with pytest.raises(TypeError, match="estimates must be a dict of name: Estimate"):
            compare(bad)


def test_plot_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"spectral_moments\[plot\]"):
        uncentred(PHI, 2).plot()
    with pytest.raises(ImportError, match=r"spectral_moments\[plot\]"):
        compare({"x": uncentred(PHI, 2)}).plot()


@pytest.mark.parametrize(
    ("options", "argument", "message"),
    [
        (dict(method="best"), "method", "method = 'best' is not known; use one of auto"),
        (dict(method=None), "method", "method = None"),
        (dict(method=["auto"]), "method", r"method = \['auto'\]"),
        (dict(n_permutations=-1), "n_permutations", "n_permutations"),
        (
            dict(n_permutations=1.0),
            "n_permutations",
            "n_permutations must be a whole number",
        ),
        (dict(n_jobs=0), "n_jobs", "n_jobs"),
        (dict(n_jobs=-1), "n_jobs", "n_jobs = -1"),
        (dict(random_state="x"), "random_state", "random_state"),
        (dict(center="no"), "center", "center must be True or False, not 'no'"),
        (dict(center=1), "center", "center must be True or False"),
        (dict(stderr="yes"), "stderr", "stderr must be True or False"),
        (dict(progress=None), "progress", "progress must be True or False"),
        (dict(trials=3), "trials", "trials must be True or False"),
        (dict(population=24), "population", "features = 24 is smaller than the 30"),
        (dict(population=(24, 30, 1)), "population", "must be a pair"),
        (dict(population=(23, None)), "population", "inputs = 23 is smaller than the 24"),
        (dict(population=(None, 2.5)), "population", "population must be a whole"),
        (dict(row_weights=np.ones(23)), "row_weights", "row_weights must hold 24 numbers"),
        (dict(row_weights=np.zeros(24)), "row_weights", "row_weights .* not all zero"),
        (dict(row_weights=[-1.0] * 24), "row_weights", "row_weights .* not negative"),
        (dict(row_weights=[np.nan] * 24), "row_weights", "row_weights must be finite"),
        (dict(row_weights=["a"] * 24), "row_weights", "row_weights must hold 24 numbers"),
        (dict(column_weights=np.ones(24)), "column_weights", "column_weights must hold 30"),
        (dict(groups=np.zeros(3)), "groups", r"groups has shape \(3,\).*24 labels"),
        (dict(groups=np.zeros(24)), "n_max", "needs 2 distinct groups.*there are 1"),
        (dict(column_groups=np.zeros(30)), "n_max", "groups of columns.*are 1"),
        (dict(groups=range(24), method="increasing"), "method", "does not know groups"),
        (dict(population=(99, 99), method="naive"), "method", "does not know population"),
        (dict(population=(99, 99), groups=range(24)), "population", "sizes of the groups"),
        (dict(population=(99, None), row_weights=range(24)), "population", "one of them"),
    ],
)
def test_refused(options, argument, message):
    with pytest.raises(ArgumentError, match=message) as refusal:
        estimate(PHI, 3, **options)
    assert refusal.value.argument == argument


def test_refused_data():
    with pytest.raises(ValueError, match="infinite"):
        estimate([[1.0, np.inf], [np.nan, 1.0]], 1)
    with pytest.raises(ValueError, match="only NaN"):
        estimate(np.full((3, 3), np.nan), 1)
    with pytest.raises(ValueError, match=r"n_max = 4 exceeds"):
        estimate(PHI[:3])
    for several, message in (
        ([PHI, PHI], "a list of 2 arrays; pass trials=True"),
        (torch.zeros(2, 9, 9), "tensor of shape .* pass trials=True"),
    ):
        with pytest.raises(ArgumentError, match=message):
            estimate(several, 2)
        assert estimate(several, 2, trials=True).shape[0] == 2
    with pytest.raises(TypeError, match="sparse"):
        estimate(scipy.sparse.csr_matrix(PHI), 3)
    with pytest.raises(ValueError, match=r"n_max = 6 is larger than 5.*'increasing'"):
        estimate(PHI, 6, method="all_cycles")
    with pytest.raises(ValueError, match="n_max = 6 is larger than 4.*lower n_max$"):
        estimate(PHI, 6, population=(99, 99))


@pytest.mark.parametrize(
    ("shape", "n_max", "names"),
    [
        ((1, 100, 200), 5, ["all_cycles"] * 5),
        ((2, 100, 200), 5, ["all_cycles"] * 5),
        ((1, 300, 600), 7, ["all_cycles"] * 4 + ["increasing"] * 3),
        ((1, 1000, 1000), 6, ["all_cycles"] * 4 + ["blocks"] * 2),
        ((1, 5000, 6000), 5, ["all_cycles"] + ["sketched"] * 4),
        ((1, 40, 20000), 2, ["all_cycles"] * 2),
        ((1, 20000, 64), 4, ["sums"] * 4),
    ],
)
def test_choice_by_price(shape, n_max, names):
    words = tuple(("phi",) * n for n in range(1, n_max + 1))
    families = lambda source, **options: choose(
        Design({"phi": System(source)}, **options), words, walks=["increasing", "blocks"]
    )
    assert families(Shaped(shape))[0] == names
    # a file is not held in one piece
    assert {*families(Shaped(shape, backend="file"))[0]} <= {"sums", "sketched"}
    for gaps in (False, True) if n_max < 5 else ():
        centred, runs = families(Shaped(shape, gaps=gaps), center=True)
        assert len(centred) == n_max and (runs is None or runs >= 1)


class Shaped:
    "A source of a size, without numbers."

    def __init__(self, shape, backend="numpy", gaps=False):
        self.shape, self.backend, self.gaps = shape, backend, gaps


def test_large_matrices_are_sketched(monkeypatch):
    large = lambda design, words, **options: (["sketched"] * len(words), None)
    exact = uncentred(PHI, 3, method="all_cycles")
    unit = 2.0 ** (-2 * np.arange(1, 4)[:, None] * open_source(PHI).exponent)
    axes = {k: Axis(unit * axis.deviations) for k, axis in exact.axes.items()}
    monkeypatch.setattr(choice, "choose", large)
    monkeypatch.setattr(choice, "axes_from_sample", lambda *_: axes)
    found = uncentred(PHI, 3)
    assert found.methods == ["sketched"] * 3 and found.shape == (1, 24, 30)
    assert (found.parts["probes"] <= found.stderr).all()
    np.testing.assert_allclose(found.values[0], (PHI**2).mean())
    assert "of which probes" in str(found) and "probes" in found.to_dict()["parts"]
    assert any("method='blocks' is exact" in note for note in found.notes)
    for phi in (PHI.tolist(), torch.tensor(PHI), PHI[None]):
        np.testing.assert_allclose(uncentred(phi, 3).values, found.values, rtol=1e-9)


# --------------------------------------------------------------------- every combination
def combination(T, gaps, weights, groups, seed=0):
    "A small matrix or trials of it, and the options that belong to it."
    rng, options = np.random.default_rng([T, gaps, seed]), {}
    phi = PHI[:16, :15] + 0.2 * rng.standard_normal((T, 16, 15))
    if gaps:
        phi[rng.random(phi.shape) < 0.08] = np.nan
    if weights:
        options = dict(row_weights=1 + rng.random(16), column_weights=1 + rng.random(15))
    if groups:
        options["groups"] = np.arange(16) // 2 + 10
    return (phi if T > 1 else phi[0]), options


#: trials, and which of gaps, centring, weights, groups: half with one trial, half with two
SWITCHES = [(2 - sum(x) % 2, x) for x in itertools.product((False, True), repeat=4)]
SWITCHES += [(5, (False,) * 4), (5, (True,) * 4)]


@pytest.mark.parametrize(("T", "switches"), SWITCHES)
def test_every_combination(T, switches):
    gaps, center, weights, groups = switches
    phi, known = combination(T, gaps, weights, groups)
    known.update(center=center, random_state=1, n_jobs=1)
    exact = estimate(phi, 2, stderr=False, **known).values
    for method in ("auto", *FAMILIES):
        options = known | dict(method=method)
        if method == "sketched":
            options.update(n_permutations=6)  # one pairing of 16 rows says little
        if method == "sums" and center and (gaps or weights or groups):
            continue  # left to others
        if groups and method != "auto" and "groups" not in FAMILIES[method].apart:
            with pytest.raises(ValueError, match=f"'{method}' does not know groups"):
                estimate(phi, 2, **options)
            continue
        result = estimate(phi, 2, **options)
        assert np.isfinite(result.values).all() and result.shape == (T, 16, 15)
        doubled = estimate(2 * phi, 2, stderr=False, **options).values
        np.testing.assert_allclose(doubled, [4, 16] * result.values, rtol=1e-9)
        if method in ("naive", "kv_row", "kv_col"):
            assert np.isnan(result.stderr).all()
            continue
        assert (result.stderr > 0).all() and np.isfinite(result.covariance).all()
        parts = np.hypot.reduce(list(result.parts.values()))
        np.testing.assert_allclose(result.stderr, parts, rtol=1e-9)
        error = np.fmax(result.stderr, 0.02 * abs(exact))
        assert (abs(result.values - exact) < 2 * error).all(), method


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("T", [1, 2])
def test_populations(T, center):
    phi, _ = combination(T, False, False, False)
    options = dict(center=center, random_state=1)
    infinite = uncentred(phi, 3, **options)
    assert infinite.methods == ["all_cycles"] * 3
    huge = uncentred(phi, 3, population=(10**9, 10**9), **options)
    np.testing.assert_allclose(huge.values, infinite.values, rtol=1e-6)
    whole = uncentred(phi, 3, population=(16, 15), **options)
    if T == 1:
        plain = uncentred(phi, 3, method="naive", **options)
        np.testing.assert_allclose(whole.values, plain.values, rtol=1e-9)
    for axis in ("inputs", "features"):
        np.testing.assert_allclose(whole.parts[axis], 0, atol=1e-12)
    assert ("trials" in whole.parts) == (T > 1)  # other trials would have other noise
    half = uncentred(phi, 3, population=(32, None), **options)
    many = uncentred(phi, 3, population=(10**9, None), **options)
    ratio = half.parts["inputs"][0] / many.parts["inputs"][0]
    np.testing.assert_allclose(ratio, math.sqrt(0.5), rtol=0.1)


def test_weights_and_groups_that_say_nothing():
    for method in ("all_cycles", "increasing", "blocks"):
        options = dict(method=method, n_permutations=0, random_state=0)
        plain = uncentred(PHI, 3, **options)
        flat = uncentred(
            PHI, 3, row_weights=np.full(24, 3), column_weights=[2] * 30, **options
        )
        np.testing.assert_allclose(flat.values, plain.values, rtol=1e-9)
        np.testing.assert_allclose(flat.stderr, plain.stderr, rtol=1e-6)
        absent = np.arange(24) < 20
        found = uncentred(PHI, 3, row_weights=absent, **options).values
        if method != "blocks":  # whose blocks are of other sizes
            np.testing.assert_allclose(found, uncentred(PHI[:20], 3, **options).values)
    alone = uncentred(PHI, 3, groups=[f"movie {i}" for i in range(24)], random_state=0)
    np.testing.assert_allclose(alone.values[:2], all_cycles(PHI, 2), rtol=1e-9)


# ------------------------------------------------- numbers, range, threads of `increasing`
def test_increasing_at_extremes():
    np.testing.assert_allclose(
        increasing(np.full((90, 90), -1e2), 60), 1e4 ** np.arange(1.0, 61), rtol=1e-10
    )
    phi = np.random.default_rng(5).standard_normal((90, 90))
    value = increasing(phi, 60)
    assert np.isfinite(value).all() and (value != 0).all()
    np.testing.assert_array_equal(increasing(phi / 4, 60), value / 16.0 ** np.arange(1, 61))
    np.testing.assert_array_equal(increasing(np.zeros((4, 5)), 3), np.zeros(3))
    np.testing.assert_array_equal(increasing(1e-100 * np.eye(300), 5)[1:], np.zeros(4))


@pytest.mark.parametrize("size", [1e-30, 1e30])
@pytest.mark.parametrize("function", [increasing, all_cycles, naive, kong_valiant])
def test_entries_of_extreme_size(size, function):
    phi = np.random.default_rng(1).standard_normal((40, 50)) + 0.5
    np.testing.assert_allclose(
        function(size * phi, 4) / size ** np.arange(2.0, 9, 2), function(phi, 4), rtol=1e-11
    )


@pytest.mark.parametrize("size", [1e-200, 1e-60, 1e60, 1e150, 1e300])
@pytest.mark.parametrize("function", [increasing, all_cycles, naive, kong_valiant])
def test_beyond_doubles_is_nan_and_told(size, function):
    phi = np.full((5, 6), size)
    with np.errstate(over="ignore", under="ignore"):
        expected = size ** np.arange(2.0, 9, 2)
    beyond = (expected == 0) | np.isinf(expected)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        values = function(phi, 4)
    np.testing.assert_allclose(values[~beyond], expected[~beyond], rtol=1e-12)
    assert np.isnan(values[beyond]).all()
    assert beyond.any() == any("beyond the range" in str(w.message) for w in caught)


def test_increasing_seed_and_threads():
    phi = np.random.default_rng(9).standard_normal((70, 90))
    one, two = (uncentred(PHI, 6, method="increasing", n_jobs=jobs) for jobs in (1, 3))
    np.testing.assert_array_equal(one.values, two.values)
    np.testing.assert_array_equal(one.stderr, two.stderr)
    first = increasing(phi, 5, n_permutations=3, random_state=7, n_jobs=1)
    for n_jobs in (2, 5, None):
        again = increasing(phi, 5, n_permutations=3, random_state=7, n_jobs=n_jobs)
        np.testing.assert_array_equal(again, first)
    assert (increasing(phi, 5, n_permutations=3, random_state=8) != first)[2:].all()
    generator = np.random.default_rng(7)
    options = dict(n_permutations=3, random_state=generator)
    np.testing.assert_array_equal(increasing(phi, 5, **options), first)
    assert (increasing(phi, 5, **options) != first)[2:].all()


def test_progress(capsys, caplog, monkeypatch):
    pytest.importorskip("tqdm")
    phi = np.random.default_rng(1).standard_normal((40, 50))
    with caplog.at_level("INFO", logger="spectral_moments"):  # where there is no terminal
        increasing(phi, 3, n_permutations=6, progress=True)
        increasing(phi, 3, n_permutations=1, progress=True)
    assert caplog.messages == ["6 views", "1 view"] and capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    value = increasing(phi, 3, n_permutations=6, random_state=1, progress=True)
    assert "6view" in capsys.readouterr().err
    np.testing.assert_array_equal(
        value, increasing(phi, 3, n_permutations=6, random_state=1)
    )
    assert capsys.readouterr().err == ""
    uncentred(phi, 3, method="increasing", n_permutations=4, progress=True)
    assert "4view" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    for call in (increasing, estimate):
        with pytest.raises(ImportError, match=r"spectral_moments\[progress\]"):
            call(np.ones((4, 3)), 2, progress=True)


@pytest.mark.parametrize(
    "function", [increasing, all_cycles, naive, kong_valiant, sketched]
)
def test_functions_refuse(function):
    for bad in (np.ones(3), [[np.inf, 1]], [[1j]], np.ones((0, 2)), "phi", None):
        with pytest.raises((ValueError, TypeError), match="phi"):
            function(bad, 1)
    for n_max, error in ((0, ValueError), (7, ValueError), (2.0, TypeError)):
        with pytest.raises(error, match="n_max"):
            function(np.ones((6, 8)), n_max)
    with pytest.raises(ValueError, match="larger than 5"):
        all_cycles(np.ones((6, 8)), 6)
    with pytest.raises(ValueError, match="sampled = .* must be 'rows' or 'columns'"):
        kong_valiant(np.ones((3, 3)), 2, sampled="row")


def test_a_gap_leaves_the_highest_order():
    phi = np.random.default_rng(3).standard_normal((20, 15))
    phi[3, 2] = np.nan  # 19 complete rows are too few for pairs at order 10
    assert np.isfinite(estimate(phi, 10, stderr=False).values).all()
