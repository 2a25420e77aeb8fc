"""What a result says of itself, whichever door it came through."""

import json
import warnings

import numpy as np
import pytest
from conftest import normal

import spectral_moments as sm
from spectral_moments.engine.reduction import Axis
from spectral_moments.results import SCHEMA, Quantity

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
