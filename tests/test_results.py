"""What a result says of itself, and how a number with an error behaves."""

import json
import math
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import normal

import spectral_moments as sm
from spectral_moments import errors
from spectral_moments.errors import ErrorDistribution, Replicates, normal_replicates
from spectral_moments.processes import Linear
from spectral_moments.quantities import Quantity
from spectral_moments.results import (
    SCHEMA,
    SINGLE_TRIAL,
    Estimate,
    from_moments,
    holm,
    power_words,
)

PHI = Linear(20).sample(100, 64, random_state=1)
EST = sm.estimate(PHI, 3)
OTHER = sm.estimate(Linear(30).sample(100, 80, random_state=2), 3)


def number(value, error, n_units=400, call="a", **fields):
    "A quantity with a normal error."
    units = np.random.default_rng(n_units).standard_normal(n_units)
    units = error * units / errors.standard_error(Replicates(units))[0]
    return Quantity(value, {(call, "inputs"): Replicates(units)}, **fields)


# --- what is printed ----------------------------------------------------------------------


def test_the_printed_estimate():
    "Words, digits and order of the lines, literally."
    assert str(EST).splitlines() == [
        "Dimension (participation ratio): 19.9 ± 1.9, 95% CI 16.6 to 24.5",
        "100 inputs x 64 features, mean removed, features: a sample of infinitely many",
        "Single trial: measurement noise inflates the dimension; pass repeats to "
        "remove it.",
        "n  estimate  std. error  95% low  95% high      method",
        "1     19.45       1.024    17.46     21.62  all cycles",
        "2     18.98       2.789    13.96     25.56  all cycles",
        "3     18.46       6.899    8.132     39.93  all cycles  uncertain",
        f"method auto, seed 0, version {sm.__version__}",
    ]
    assert repr(EST) == str(EST)
    assert str(EST.dimension()).splitlines() == str(EST).splitlines()[:3]


def test_the_second_line_says_what_the_features_stand_for():
    first = lambda phi, **options: str(sm.estimate(phi, **options)).splitlines()[1]
    ratio = sm.participation_ratio(PHI, population="all")
    assert str(ratio).splitlines()[1].endswith("mean removed, all 64 features")
    assert (
        first(PHI, population="all")
        == "100 inputs x 64 features, mean removed, all 64 features"
    )
    assert first(PHI, population=1024, center=False) == (
        "100 inputs x 64 features, mean kept, 64 of 1024 features"
    )
    gaps = np.where(np.arange(6400).reshape(100, 64) % 5 == 0, np.nan, PHI)
    assert first(gaps).startswith("100 inputs x 64 features, 20% missing, mean removed")
    trials = PHI + normal((3, 100, 64))
    assert first(trials, trials=True).startswith(
        "100 inputs x 64 features, 3 repeats, mean"
    )
    grouped = first(PHI, groups=np.arange(100) // 2)
    assert "mean removed, 50 groups of inputs, features:" in grouped


def test_ascii_where_the_terminal_has_no_utf8(monkeypatch):
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(encoding="ascii"))
    text, pair = str(EST), str(sm.alignments({"a": PHI, "b": PHI[:, ::2]}))
    monkeypatch.undo()
    assert "19.9 +- 1.9, 95% CI" in text and text.isascii()
    assert " +- " in pair and pair.isascii()


def test_json_and_records():
    stored = json.loads(json.dumps(EST.to_dict()))
    assert stored["schema"] == SCHEMA and stored["values"] == EST.values.tolist()
    assert stored["dimension"]["value"] == EST.dimension().value
    assert set(stored["error_by_source"]) == {"inputs", "features"}
    gaps = np.where(np.arange(6400).reshape(100, 64) % 5 == 0, np.nan, PHI)
    found = sm.estimate(gaps, random_state=5, population=80)
    settings = json.loads(json.dumps(found.to_dict()))["settings"]
    assert settings["missing"] == {"phi": pytest.approx(0.2)} and settings["seed"] == 5
    assert settings["population"] == {"features": 80} and settings["center"] is True
    rows = EST.records()
    assert [row["value"] for row in rows] == EST.values.tolist() and not rows[2]["usable"]
    sampled = EST.settings | dict(sampled=dict(rows=16384, of=300000, orders=[3]))
    text = str(replace(EST, settings=sampled))
    assert text.splitlines()[-2] == "m(3): 16,384 of 300,000 rows"
    generator = sm.estimate(PHI, random_state=np.random.default_rng(1))
    assert generator.settings["seed"] == "of a generator"


def test_the_sentence():
    assert EST.sentence() == (
        "Spectral moments of orders 1 to 3 were estimated from 100 inputs x 64 features, "
        "mean removed, features: a sample of infinitely many, by all cycles up to order "
        "3, with jackknife standard errors (Chun et al. 2025; "
        f"spectral_moments {sm.__version__}). "
        "The dimension (participation ratio) is 19.9 ± 1.9, 95% CI 16.6 to 24.5."
    )
    trials = PHI + normal((2, 100, 64))
    trials[0, 3, 4] = np.nan
    said = sm.estimate(trials, trials=True).sentence()
    assert "2 repeats, 0.0078% missing" in said
    said = sm.estimate(PHI[:20], 5).sentence()
    assert "all cycles up to order 4 and increasing (32 permutations) up to order 5" in said
    counts = np.random.default_rng(0).poisson(3, (40, 30))
    assert "poisson noise removed" in sm.estimate(counts, noise="poisson").sentence()


# --- estimates ----------------------------------------------------------------------------


def test_moments_as_quantities():
    low, high = EST.interval()
    for n in (1, 2, 3):
        q = EST[n]
        assert (q.value, q.stderr) == pytest.approx((EST.values[n - 1], EST.stderr[n - 1]))
        assert q.interval() == pytest.approx((low[n - 1], high[n - 1]))
        assert q.name == f"m({n})"
    assert EST[("phi", "phi")].value == EST[2].value
    for order in (4, 10**400):
        with pytest.raises(KeyError, match="^.{,210} is not estimated, only 1, 2"):
            EST[order]


def test_errors_by_source_and_covariance():
    np.testing.assert_allclose(
        np.hypot(*EST.error_by_source.values()), EST.stderr, rtol=1e-12
    )
    np.testing.assert_allclose(np.diag(EST.covariance), EST.stderr**2, rtol=1e-9)
    found = EST.dimension()
    assert math.hypot(*found.error_by_source.values()) == pytest.approx(found.stderr)
    none = sm.estimate(PHI, stderr=False)
    assert none.covariance is None and np.isnan(none.stderr).all() and not none.usable.any()
    assert str(none.dimension()).splitlines()[0].endswith("19.94 (no standard error)")
    assert np.isnan(none.dimension().stderr) and np.isnan(none.dimension().p_value())


def test_the_dimension():
    "The jackknife of the participation ratio on the scale of its reciprocal."
    same, found = EST.derive(lambda m: m[0] ** 2 / m[1], "reciprocal"), EST.dimension()
    assert found.value == pytest.approx(same.value, rel=1e-12)
    assert found.interval() == pytest.approx(same.interval(), rel=1e-9)
    assert from_moments(20 * 0.7 ** np.arange(1, 3)).dimension().value == pytest.approx(20)
    with pytest.raises(ValueError, match=r"needs m\(2\) of phi; estimate with n_max=2"):
        from_moments([1.0]).dimension()


@pytest.mark.parametrize("size", [1e-160, 1e-100, 1.0, 1e100, 1e140])
def test_the_dimension_has_no_scale(size):
    found = sm.estimate(PHI * size, 3)
    assert found.dimension().value == pytest.approx(EST.dimension().value, rel=1e-9)
    assert found.dimension().interval() == pytest.approx(
        EST.dimension().interval(), rel=1e-9
    )
    truth = []
    for n, value in enumerate(EST.values, 1):
        log = math.log10(value) + 2 * n * math.log10(size)
        truth.append(float(value) * size ** (2 * n) if -290 < log < 308 else math.nan)
    np.testing.assert_allclose(found.values, truth, rtol=1e-9)


def test_no_dimension_without_a_signal():
    "Where m(1) is not above twice its error, the ratio may be any number."
    assert f"{from_moments([1.0, 0.1], [0.6, 0.01]).dimension()}" == "undetermined"
    unknown = from_moments([1.0, -0.01], [0.01, 0.02]).dimension()
    low, high = unknown.interval()
    assert math.isnan(unknown.value) and 20 < low < 50 and high == math.inf
    assert f"{unknown}" == f"undetermined, 95% CI {low:.1f} or more"
    assert unknown.to_dict()["value"] is None and unknown.to_dict()["high95"] is None
    nothing = from_moments([1.0, -0.9], [0.01, 0.02]).dimension()
    assert np.isnan(nothing.interval()).all() and f"{nothing}" == "undetermined"


@pytest.mark.parametrize("seed", range(4))
def test_a_layer_has_no_more_dimensions_than_units(seed):
    noise = np.random.default_rng([seed, 1]).standard_normal((60, 12))
    found = sm.estimate(noise, population="all").dimension()
    low, high = found.interval()
    assert found.value <= 12 and low < high <= 12
    exceeds = "The estimate exceeds the 12 features there are; it is set to 12."
    assert (exceeds in found.notes) == (found.value == 12) == (exceeds in str(found))
    text = str(sm.estimate(noise, population="all"))
    assert text.count(exceeds) == (found.value == 12)
    assert sm.estimate(noise).dimension().interval()[1] == math.inf


def test_usable_by_systems():
    "Each kind of word stops at its first uncertain order."
    words = [("a",), ("b",), ("a", "a"), ("a", "b"), ("b", "b"), ("b", "b", "b")]
    values = np.ones(6)
    spread = normal_replicates(np.diag([0.1, 0.1, 0.4, 0.2, 0.1, 0.1]) ** 2)
    shapes = {"a": (1, 30, 40), "b": (1, 30, 50)}
    est = Estimate(values, {"given": spread}, words, shapes, ["all cycles"] * 6)
    assert est.usable.tolist() == [True, True, False, True, True, True]
    assert "a b" in str(est) and est.to_dict()["dimension"] is None
    assert est.dimension(system="b").uncorrected == pytest.approx(1)


@pytest.mark.parametrize("seed", range(3))
def test_an_order_that_a_single_row_decides_is_uncertain(seed):
    "Though its error is below a third of it."
    phi = Linear(10).sample(150, 200, random_state=seed)
    phi[7] *= 5 * np.sqrt(np.mean(phi**2) / np.mean(phi[7] ** 2))
    est = sm.estimate(phi, 1)
    assert est.stderr[0] < est.values[0] / 3 and not est.usable[0]
    assert sm.estimate(phi[np.arange(150) != 7], 2).usable.all()


def test_notes_travel():
    "Everything derived has the notes of its estimate, and prints each of them once."
    movies = np.repeat(PHI[:40], 3, axis=0) + 0.1 * normal((120, 64))
    est = sm.estimate(movies)
    assert est.notes
    found = est.dimension()
    for q in (
        found,
        est[1],
        est.derive(lambda m: m[0]),
        found - 1,
        2 * found,
        found / est[1],
    ):
        assert q.notes == est.notes
        assert all(str(q).count(note) == 1 for note in est.notes)
    assert str(est).count(est.notes[0]) == 1
    table = sm.compare({"movies": est, "images": EST})
    assert f"movies: {est.notes[0]}" in table.notes
    assert f"{found}" == str(found).splitlines()[0].partition(": ")[2]


def test_given_moments():
    est = from_moments([1.0, 0.2, 0.1], [0.1, 0.02, np.inf])
    assert np.isinf(est.stderr).tolist() == [False, False, True]
    assert "Single trial" not in str(est) and "Moments that were given" in str(est)
    joint = from_moments([1.0, 0.2], covariance=[[0.01, 0.001], [0.001, 0.0004]])
    np.testing.assert_allclose(joint.covariance, [[0.01, 0.001], [0.001, 0.0004]])
    with pytest.raises(ValueError, match=r"values has shape .* sm.estimate\(phi, 4\)"):
        from_moments(np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"stderr has shape \(1,\); 2 values need \(2,\)"):
        from_moments([1.0, 0.2], [0.1])
    with pytest.raises(ValueError, match="covariance has shape"):
        from_moments([1.0, 0.2], covariance=[0.1, 0.2])
    with pytest.raises(TypeError, match="values must be real numbers"):
        from_moments(est)
    with pytest.raises(ValueError, match="stderr must be real numbers"):
        from_moments([1.0, 0.2], ["a", "b"])
    for n in EST.orders:  # numpy's own numbers
        assert EST[n].name == f"m({n})"
    with pytest.raises(
        ValueError, match=r"est must be moments .* use sm.estimate\(phi, 4\)"
    ):
        sm.power_law(PHI)
    assert power_words(2) == [("phi",), ("phi", "phi")]


def test_refused():
    with pytest.raises(ValueError, match="level = 95"):
        EST.interval(95)
    with pytest.raises(ValueError, match="scale = 'cube' is not one of identity"):
        EST.derive(lambda m: m[0], "cube")
    with pytest.raises(ValueError, match="f must be a function"):
        EST.derive("m[1] / m[0]")
    with pytest.raises(ValueError, match="moments must be real numbers"):
        sm.eigenvalue_bounds("est", 3)


# --- forecasts ----------------------------------------------------------------------------


def test_expected_stderr():
    "At the present size the present error; else every source by its number of units."
    for q in (EST[1], EST[3], EST.dimension()):
        inputs, features = (q.error_by_source[kind] for kind in ("inputs", "features"))
        assert q.expected_stderr() == pytest.approx(q.stderr, rel=1e-12)
        assert q.expected_stderr(10**9) == pytest.approx(features, rel=1e-3)
        for P in (50, 300):
            expected = math.hypot(inputs * math.sqrt(100 / P), features)
            assert q.expected_stderr(P) == pytest.approx(expected, rel=1e-9)
    with pytest.raises(ValueError, match="P = 0"):
        EST[1].expected_stderr(0)
    grouped = sm.estimate(PHI, groups=np.arange(100) // 2)[1]
    assert grouped.expected_stderr() == pytest.approx(grouped.stderr)
    assert math.isnan(sm.estimate(PHI, stderr=False)[1].expected_stderr())


def test_a_finite_layer_in_forecasts():
    part = sm.estimate(PHI, population=128)[2]
    inputs = part.error_by_source["inputs"]
    np.testing.assert_allclose(part.expected_stderr(Q=128), inputs, rtol=1e-9)
    half = part.expected_stderr(Q=96) ** 2 - inputs**2
    factor = 64 / 96 * (128 - 96) / (128 - 64)
    expected = part.error_by_source["features"] ** 2 * factor
    np.testing.assert_allclose(half, expected, rtol=1e-9)


def test_forecasts_count_groups():
    movies = np.repeat(PHI[:40], 3, axis=0) + 0.3 * normal((120, 64), 0)
    found = sm.participation_ratio(movies, groups=np.arange(120) // 3)
    assert found.expected_stderr(40, 64) == pytest.approx(found.stderr)
    inputs, features = (found.error_by_source[x] for x in ("inputs", "features"))
    expected = math.hypot(inputs / 2, features)  # four times as many groups
    assert found.expected_stderr(P=160) == pytest.approx(expected)
    assert found.sizes_needed(1.01 * expected)["inputs"][0] <= 160


def test_sizes_needed():
    found = EST.dimension()
    inputs, features = (found.error_by_source[kind] for kind in ("inputs", "features"))
    target = 0.5 * (features + found.stderr)
    needed = found.sizes_needed(target)
    P, Q = needed["inputs"]
    assert Q == 64 and found.expected_stderr(P) <= target < found.expected_stderr(P - 2)
    assert found.sizes_needed(0.9 * features)["inputs"] is None  # more inputs alone cannot
    assert found.sizes_needed(0.9 * inputs)["features"] is None
    P, Q = found.sizes_needed(0.9 * min(inputs, features))["both"]
    assert found.expected_stderr(P, Q) <= 0.9 * min(inputs, features)


# --- a quantity is a number ---------------------------------------------------------------


def test_a_quantity_is_a_number():
    q = EST.dimension()
    v = q.value
    assert q > 5 and q >= v and q < 1000 and q <= np.float64(v) and q == v and q != v + 1
    assert (round(q), round(q, 2)) == (round(v), round(v, 2))
    assert np.log(q) == math.log(q) == pytest.approx(math.log(v)) and float(q) == v
    assert f"{q:.1f}" == f"{v:.1f}" and f"{q}" == "19.9 ± 1.9, 95% CI 16.6 to 24.5"
    np.testing.assert_allclose(np.array([1.0, 2.0]) * q, [v, 2 * v])
    np.testing.assert_allclose([q, q], [v, v])
    assert q == pytest.approx(v) and abs(-q) == v
    pytest.raises(TypeError, lambda: q + "a")


def test_arithmetic_with_numbers_keeps_the_error_and_its_shape():
    q = EST.dimension()
    low, high = q.interval()
    cases = [
        (q + 1, (low + 1, high + 1), 1),
        (1 + q, (low + 1, high + 1), 1),
        (q - 1, (low - 1, high - 1), 1),
        (2 * q, (2 * low, 2 * high), 2),
        (np.float64(2) * q, (2 * low, 2 * high), 2),
        (q / 64, (low / 64, high / 64), 1 / 64),
        (-q, (-high, -low), 1),
        (3 - 2 * q, (3 - 2 * high, 3 - 2 * low), 2),
    ]
    for found, ends, factor in cases:
        assert found.interval() == pytest.approx(ends, rel=1e-12)
        assert found.stderr == pytest.approx(factor * q.stderr, rel=1e-12)
    inverse = 1 / q
    assert inverse.value == pytest.approx(1 / q.value)
    assert inverse.stderr == pytest.approx(q.stderr / q.value**2)
    assert (q + 1).p_value(21) == pytest.approx(q.p_value(20), rel=1e-6)


def test_quantities_of_one_call_are_paired():
    first, second = EST[1], EST[2]
    direct = EST.derive(lambda m: m[0] - m[1])
    assert (first - second).stderr == pytest.approx(direct.stderr, rel=1e-9)
    assert (first + second).stderr == pytest.approx(
        EST.derive(lambda m: m[0] + m[1]).stderr, rel=1e-9
    )
    same = EST.derive(lambda m: m[1] / m[0], "log")
    ratio, product = second / first, second * first
    assert ratio.stderr / ratio.value == pytest.approx(same.stderr / same.value, rel=0.05)
    assert product.value == pytest.approx(second.value * first.value)
    q = EST.dimension()
    assert (q - q).interval() == (0, 0) and (q / q).interval() == (1, 1)
    other = OTHER.dimension()
    apart = (other - q).stderr
    assert apart == pytest.approx(math.hypot(other.stderr, q.stderr), rel=1e-9)
    assert math.isnan((q / -other).value)


def test_intervals_of_differences_by_definition():
    "Arms of both intervals, the square root of their squares."
    q, other = EST.dimension(), OTHER.dimension()
    (l1, h1), (l2, h2) = q.interval(), other.interval()
    low, high = (other - q).interval()
    value = other.value - q.value
    assert low == pytest.approx(value - math.hypot(other.value - l2, h1 - q.value))
    assert high == pytest.approx(value + math.hypot(h2 - other.value, q.value - l1))
    low, high = np.log((other / q).interval())
    log = math.log(other.value / q.value)
    assert low == pytest.approx(log - math.hypot(*np.log([other.value / l2, h1 / q.value])))
    assert high == pytest.approx(
        log + math.hypot(*np.log([h2 / other.value, q.value / l1]))
    )
    open_end = from_moments([1.0, -0.01], [0.01, 0.02]).dimension() - 5 * EST[1] / EST[1]
    assert math.isnan(open_end.value) and open_end.interval()[1] == math.inf


@pytest.mark.parametrize("seed", range(6))
def test_p_values_belong_to_intervals(seed):
    "One minus the level of the interval that ends at the null value, whatever the scale."
    rng = np.random.default_rng(seed)
    a = EST.dimension() if seed % 2 else number(rng.normal(), 0.5)
    b = OTHER.dimension() * rng.uniform(0.5, 1) if seed % 2 else number(1.0, 0.3, call="b")
    for q, null in ((a, a.value * 0.8), (b - a, 0.0), (b - a, 1.0)):
        p = q.p_value(null)
        ends = q.interval(1 - p)
        assert min(abs(end - null) for end in ends) < 1e-6 * max(1, abs(q.value))
        low, high = q.interval(0.95)
        assert (p < 0.05) == (not low <= null <= high)
    assert a.p_value(a.value) == 1
    for wrong in (np.nan, "one", [1.0]):
        with pytest.raises(sm.ArgumentError, match="null must be"):
            a.p_value(wrong)


def test_p_value_of_a_normal_error():
    q = replace(number(1.0, 0.5), error_model=ErrorDistribution(0.5, 0.0, math.inf))
    assert q.p_value() == pytest.approx(math.erfc(2 / math.sqrt(2)), rel=1e-3)
    assert q.interval() == pytest.approx((1 - 0.98, 1 + 0.98), abs=1e-3)
    assert replace(q, transformed=20.0).p_value() == 1e-15  # nothing smaller is reported


def test_digits_follow_the_error():
    text = lambda value, error: f"{number(value, error)}".split(",")[0]
    assert text(123.4, 15) == "123 ± 15" and text(1.006, 0.0013) == "1.0060 ± 0.0013"
    assert text(0.031, 0.096) == "0.031 ± 0.096" and text(1.2e10, 3e8) == "1.2e+10 ± 3e+08"
    unknown = Quantity(0.25, {("call", "inputs"): Replicates(np.full(2, np.inf))})
    assert str(unknown) == "0.25 (error unknown)"


# --- comparisons --------------------------------------------------------------------------


def test_holm():
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, np.nan]), [0.03, 0.06, 0.06, np.nan])
    np.testing.assert_allclose(holm([0.9, 0.8]), [1, 1])


def test_compare_prints_difference_ratio_and_p():
    found = sm.compare({"V1": EST, "V2": OTHER})
    (row,) = found.records()
    difference, ratio = (
        OTHER.dimension() - EST.dimension(),
        OTHER.dimension() / EST.dimension(),
    )
    assert row["p"] == difference.p_value() == row["p_holm"]
    assert (row["low95"], row["high95"]) == difference.interval()
    assert (row["ratio_low95"], row["ratio_high95"]) == ratio.interval()
    lines = str(found).splitlines()
    assert lines[0] == f"V1: Dimension (participation ratio) {EST.dimension()}"
    assert lines[2].split("  ")[-1].strip() == "p (Holm-corrected)"
    assert lines[3].startswith("V2 - V1")
    json.dumps(found.to_dict())


def test_compare_takes_matrices_quantities_and_functions():
    phi = Linear(30).sample(100, 80, random_state=2)
    named = sm.compare({"a": PHI, "b": phi}).records()[0]
    same = sm.compare({"a": EST.dimension(), "b": OTHER.dimension()}).records()[0]
    assert named["difference"] == pytest.approx(same["difference"], rel=1e-9)
    assert named["p"] == pytest.approx(same["p"], rel=1e-6)
    whole = sm.compare({"a": PHI, "b": phi}, population="all")
    assert whole.quantities["b"] == sm.estimate(phi, population="all").dimension()
    twice = sm.compare({"a": [PHI, PHI], "b": [phi, phi]}, trials=True)
    assert twice.quantities["b"] == sm.estimate([phi, phi], trials=True).dimension()
    each = sm.compare({"a": EST[1], "b": OTHER[1]}).records()[0]
    assert each["difference"] == pytest.approx(OTHER.values[0] - EST.values[0])
    rows = sm.compare({"a": EST, "b": OTHER, "c": EST[2]}).records()
    assert [(row["second"], row["first"]) for row in rows] == [*zip("bcc", "aab")]
    np.testing.assert_allclose([r["p_holm"] for r in rows], holm([r["p"] for r in rows]))
    for bad, why in ((EST, "must be a dict"), ({"a": EST}, "two or more")):
        with pytest.raises(TypeError, match=why):
            sm.compare(bad)


def test_paired_inputs():
    "The same inputs seen by two sets of features: their difference is less uncertain."
    rng = np.random.default_rng(4)
    gains = np.exp(0.5 * rng.standard_normal((80, 1)))  # inputs that all features share
    one, two = (gains * Linear(5).sample(80, 300, random_state=k) for k in (1, 2))
    both = {"one": sm.estimate(one, 1)[1], "two": sm.estimate(two, 1)[1]}
    free, paired = (sm.compare(both, paired=x).records()[0] for x in (None, "inputs"))
    width = lambda row: row["high95"] - row["low95"]
    assert width(paired) < 0.9 * width(free)
    assert (sm.compare({"a": EST, "b": EST}, paired="inputs").records()[0]["p"]) == 1
    forecast = both["two"] - both["one"]
    assert forecast.expected_stderr(320, 1200) == pytest.approx(forecast.stderr / 2)
    for other in (OTHER, replace(OTHER.dimension(), transformed=math.nan)):
        with pytest.raises(ValueError, match="paired = 'features': .* found 64 and 80"):
            sm.compare({"a": EST, "b": other}, paired="features")
    assert str(sm.compare({"a": EST, "b": OTHER})).endswith(SINGLE_TRIAL)
    unknown = sm.compare({"a": EST, "b": Quantity(math.nan)}, paired="inputs")
    assert math.isnan(unknown.records()[0]["p"])


def test_plot():
    plt = pytest.importorskip("matplotlib.pyplot")
    ax = EST.plot(label="a")
    assert ax.get_yscale() == "log" and [*ax.get_xticks()] == [1, 2, 3]
    plt.close("all")


def test_coverage_of_differences():
    "Of two dimensions, 10 and 16, from small matrices."
    inside = []
    for seed in range(60):
        one, two = (
            sm.estimate(Linear(d).sample(40, 50, random_state=100 * seed + d)).dimension()
            for d in (10, 16)
        )
        low, high = (two - one).interval()
        low_ratio, high_ratio = (two / one).interval()
        inside.append((low <= 6 <= high, low_ratio <= 1.6 <= high_ratio))
    assert (np.mean(inside, axis=0) > 0.88).all()


def test_ragged_errors_are_refused_by_name():
    with pytest.raises(sm.ArgumentError, match="stderr must be real numbers"):
        from_moments([1.0, 2.0], stderr=[[1.0], [2.0, 3.0]])
