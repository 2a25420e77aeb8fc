"""What a result says of itself, whichever door it came through."""

import json
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from conftest import normal

import spectral_moments as sm
from spectral_moments import errors
from spectral_moments.engine.reduction import Axis
from spectral_moments.errors import Scale
from spectral_moments.results import SCHEMA, Quantity, derive_each

COUNTS = np.random.default_rng(3).poisson(3.0, (36, 20)).astype(float)
USED = ("center", "groups", "population", "weights", "noise", "method", "seed", "version")


def estimated(phi, **options):
    return sm.estimate(phi, 2, **options)


def streamed(phi, groups=None, **options):
    return sm.Stream(phi.shape[1], 2, **options).update(phi, groups=groups).estimate()


@pytest.mark.parametrize("door", [estimated, streamed])
def test_header_and_json_say_what_was_used(door):
    pairs = np.arange(36) // 2
    found = door(COUNTS, groups=pairs, population=None, random_state=5, center=False)
    words = found.to_dict()["settings"]
    assert set(USED) < set(words) and found.to_dict()["schema"] == SCHEMA
    assert words["groups"] == {"inputs": 18} and words["seed"] == 5
    head = str(found).split("\n")[0]
    version = f"version {sm.__version__}"
    for said in ("not centred", "18 groups of inputs", "seed 5", version):
        assert said in head
    json.dumps(found.to_dict())


def test_every_option_is_said():
    weights = np.linspace(1, 2, 36)
    options = dict(row_weights=weights, population=(None, 50), noise="poisson")
    found = sm.estimate(COUNTS, 2, random_state=np.random.default_rng(1), **options)
    head = str(found).split("\n")[0]
    for said in ("centred", "population of 50 features", "weights of inputs", "poisson"):
        assert said in head
    assert "seed of a generator" in head
    both = sm.alignment(normal((30, 9)), normal((30, 8), 1), groups=np.arange(30) // 3)
    words = both.to_dict()
    assert words["schema"] == SCHEMA and words["settings"]["groups"] == {"inputs": 10}
    assert f"version {sm.__version__}" in str(both)


def test_a_stream_of_a_finite_population_can_be_printed():
    found = streamed(COUNTS, population=25)
    assert "population of 25 features" in str(found)
    assert found.to_dict()["settings"]["population"] == {"features": 25}


def test_nothing_is_called_a_dimension_where_the_second_moment_is_not_known():
    seen = 0
    for seed in range(12):
        found = sm.estimate(normal((9, 9), seed), 2, stderr=False)
        line = str(found).split("\n")[4]
        assert line.startswith("dimension m(1)^2/m(2): ")
        assert ("not known" in line) == (found.values[1] <= 0) and "nan" not in line
        seen += found.values[1] <= 0
    assert seen


def test_intervals_of_words_are_those_of_moments():
    """Skewed as those of moments: two standard errors cover far too seldom."""
    eigenvalues, words = 1 / np.arange(1.0, 31), ("ab", "aabb", "abab")
    truth = np.array([(eigenvalues ** len(word)).sum() for word in words])
    inside, near = [], []
    for seed in range(30):
        rng = np.random.default_rng([91, seed])
        x = rng.standard_normal((45, 30)) * np.sqrt(eigenvalues)
        est = sm.cross_moments(*(x @ rng.standard_normal((30, Q)) for Q in (40, 50)), words)
        low, high = est.interval()
        inside.append((low <= truth) & (truth <= high))
        near.append(abs(est.values - truth) < 1.96 * est.stderr)
    assert (np.mean(inside, axis=0) > 0.85).all()
    assert np.mean(np.array(near)[:, 1:]) < np.mean(np.array(inside)[:, 1:])


@pytest.mark.parametrize("seed", range(12))
def test_no_dimension_without_a_signal(seed):
    "Of pure noise m(1) is near zero, and m(2)/m(1)^2 any number: 1.2e-5 +- 7.5e-7 once."
    trials = np.random.default_rng([seed, 5]).normal(size=(2, 17, 19))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = sm.estimate(trials, 2)
    seen = found.values[0] > 2 * found.stderr[0]
    assert (str(found.dimension()) == "not known") == (not seen)
    signal = trials + 3 * np.outer(np.arange(17) - 8, np.ones(19))
    assert float(sm.estimate(signal, 2).dimension()) == pytest.approx(1, abs=0.1)


def test_an_unknown_error_is_said():
    "An error that is not known prints no interval of infinities."
    axis = Axis(np.full((1, 2), np.inf), None)
    assert str(Quantity(0.25, {("call", "inputs"): axis})) == "0.25 (error not known)"


def test_numbers_of_several_estimates_at_once():
    "Estimates alike in one stack, others apart: each number is what its estimate tells."
    rng = np.random.default_rng(0)
    mixing = rng.standard_normal((5, 30))
    draws = (rng.standard_normal((P, 5)) @ mixing for P in (40, 40, 25, 40))
    found = [sm.estimate(phi, 3) for phi in draws]
    weights = rng.uniform(1, 3, 40)
    inputs = found[1].axes["inputs"]._replace(stands_for=weights)
    axes = found[1].axes | {"inputs": inputs}
    faint = found[0].values * np.array([0.01, 1, 1])  # no sign of m(1)
    found += [replace(found[1], axes=axes), replace(found[0], values=faint)]
    found += [replace(found[0], axes={}), replace(found[2], values=-found[2].values)]
    ratio, scale = lambda m: m[0] ** 2 / m[1], Scale(-1.0)
    for linear in (False, True):
        each = derive_each(found, ratio, scale, linear=linear, divisor=0)
        known = [not math.isnan(q.value) for q in each]
        assert known == [True] * 5 + [False, True, False]
        for est, q in zip(found, each):
            seen = not (est.values[0] <= 0 or est.stderr[0] >= est.values[0] / 2)
            assert seen == bool(q.axes) or not est.axes
            if not q.axes:
                continue
            direct = _by_definition(ratio, est, scale, linear)
            np.testing.assert_allclose((q.at, q.plain), direct[:2], rtol=1e-12)
            law = errors.error_law({k: x for (_, k), x in q.axes.items()})
            np.testing.assert_allclose(q.law, np.ravel(law), rtol=1e-12)
            np.testing.assert_allclose(q.error, direct[2], rtol=1e-12)


def _by_definition(f, est, scale, linear):
    "Place without bias, value, error: the jackknife of one number, axis by axis."
    plain, bias, variance = scale.to(f(est.values)), 0.0, 0.0
    step = np.diag(errors.STEP * est.stderr)
    slope = [scale.to(f(est.values + x)) - scale.to(f(est.values - x)) for x in step]
    slope = np.array(slope) / (2 * step.diagonal())
    for d, w in est.axes.values():
        if w is None:
            w = np.ones(d.shape[1])
        else:  # some units stand for all, whose deviations sum to zero
            d = d - (d @ w / w.sum())[:, None]
        if linear:
            change = slope @ d
        else:
            change = np.array([scale.to(f(est.values + x)) for x in d.T]) - plain
        mean, count = (w * change).sum() / w.sum(), w.sum()
        bias += (count - 1) * mean
        variance += (1 - 1 / count) * (w * (change - mean) ** 2).sum()
    at = plain / (1 + bias / plain) if bias > 0 else plain - bias
    return at, scale.back(plain), math.sqrt(variance)


def test_what_a_prompt_shows():
    "The table, never the numbers behind the errors."
    est = sm.estimate(sm.Linear(5).sample(30, 20, random_state=0), 2)
    two = sm.compare({"one": est, "other": est})
    for shown in (est, two, sm.alignments({"a": np.eye(9), "b": np.eye(9)[::-1]})):
        assert repr(shown) == str(shown) and "deviations" not in repr(shown)
    assert repr(sm.Recording(np.eye(3), groups=[0, 0, 1])) == "Recording(3 x 3, groups)"
    assert repr(sm.shards([np.eye(3), np.eye(3)])).startswith("Rows(6 x 3, float64")


def test_comparisons_of_different_questions():
    "Settings that change the question are named; the same question has no note."
    phi = sm.Linear(5).sample(30, 20, random_state=0)
    plain = sm.estimate(phi, 2)
    others = {
        "the mean": dict(center=False),
        "populations": dict(population=(None, 40)),
    }
    for what, options in others.items():
        found = sm.compare({"a": plain, "b": sm.estimate(phi, 2, **options)})
        assert [what in note for note in found.notes] == [True]
    repeats = sm.estimate(np.array([phi, phi + 0.1]), 2)
    (note,) = sm.compare({"a": plain, "b": repeats}, of="dimension").notes
    assert "repeats remove noise" in note and note in str(
        sm.compare({"a": plain, "b": repeats})
    )
    assert not sm.compare({"a": plain, "b": sm.estimate(phi[:20], 2)}).notes
    assert not sm.compare({"a": plain, "theory": sm.from_moments([1.0, 0.2])}).notes


def test_moments_that_are_none():
    "A list of numbers, or a sentence."
    with pytest.raises(ValueError, match="values has shape"):
        sm.from_moments(np.ones((2, 2)))
    with pytest.raises(TypeError, match="values must be numbers"):
        sm.from_moments(sm.from_moments([1.0, 0.1]))
