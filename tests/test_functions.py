"""Functions of the spectrum: curves by search and deletion, known answers, bounds."""

import numpy as np
import pytest

import spectral_moments as sm
from spectral_moments.checks import ArgumentError
from spectral_moments.processes import ReLU
from spectral_moments.spectrum import functions
from spectral_moments.spectrum.functions import decompose, sample_curve

# --- the curve ----------------------------------------------------------------------------

RIDGES = np.log(np.geomspace(0.5, 50, 6))


def direct(x, center, population, log_kappa):
    "Dimensions at some ridges by a search over a fine grid, from eigenvalues alone."
    P, Q = x.shape
    x = x - x.mean(axis=0) if center else x
    n, a = P - center, np.linalg.svd(x, compute_uv=False) ** 2
    ridge = np.exp(np.linspace(-12, 12, 400_000))
    d = sum(each / (each + n * Q * ridge) for each in a)
    with np.errstate(divide="ignore", invalid="ignore"):
        columns = 1.0 if population == Q else (1 - d / Q) / (1 - d / population)
    return np.interp(log_kappa, np.log(ridge / ((1 - d / n) * columns)), d)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("population", [np.inf, 30, 90])
def test_curve_and_each_unit_left_out(center, population):
    "Against a search over a grid, and against smaller matrices."
    x = sm.PowerLaw(0.8, 60).sample(20, 30, 1) + 0.5
    values, deviations = sample_curve(decompose(x, center, population), RIDGES)
    expected = direct(x, center, population, RIDGES)
    np.testing.assert_allclose(values[:-1], expected, rtol=1e-4)
    y = x - x.mean(axis=0) if center else x
    assert values[-1] == pytest.approx((y**2).sum() / ((20 - center) * 30))
    for axis, kind in enumerate(("inputs", "features")):
        unseen = 1.0 if axis == 0 else 1 - 30 / population
        off = []
        for unit in range(x.shape[axis]):
            part = decompose(np.delete(x, unit, axis), center, population)
            off.append(sample_curve(part, RIDGES)[0] - values)
        off = np.transpose(off)
        mean = off.mean(axis=1, keepdims=True)
        if unseen < 1:  # the finite-population correction of spread and of bias
            off = unseen * mean + np.sqrt(unseen) * (off - mean)
        np.testing.assert_allclose(deviations[kind], off, atol=1e-6)


# --- known answers ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "process", [sm.PowerLaw(1.0, 500), sm.Linear(15), sm.RBF(3), ReLU(5)]
)
@pytest.mark.parametrize("center", [False, True])
def test_square_is_the_second_moment(process, center):
    phi = process.sample(90, 140, 7)
    q = sm.spectral_function(phi, np.square, center=center)
    m2 = sm.all_cycles(phi, 2, center=center)[1]
    assert abs(q.value / m2 - 1) < 0.06 and abs(q.value - m2) < 0.3 * q.stderr
    assert abs(q.uncorrected - m2) > abs(q.value - m2)


@pytest.mark.parametrize("f", ["effective_rank", "rankme", np.sqrt, ("ridge", 0.3)])
def test_equal_eigenvalues(f):
    "Twenty equal eigenvalues: means within their error, where the sample is far off."
    truth = 20 / 1.3 if isinstance(f, tuple) else 20
    found = [sm.spectral_function(sm.Linear(20).sample(60, 90, k), f) for k in range(15)]
    values = np.array([q.value for q in found])
    error = values.std(ddof=1) / np.sqrt(15)
    assert abs(values.mean() - truth) < 3 * error + 0.01 * truth
    assert abs(np.mean([q.uncorrected for q in found]) - truth) > 3 * error + 0.01 * truth
    spread, reported = values.std(ddof=1), np.mean([q.stderr for q in found])
    assert 0.5 * spread < reported < 2.5 * spread


def test_functions_are_what_their_names_say():
    "Of the exact curve of a spectrum, every function of its eigenvalues is itself."
    s = np.array([3.0, 1.0, 1.0, 0.2, 0.05])
    nodes = np.linspace(-12, 6, 60)
    d = (s / (s + np.exp(nodes)[:, None])).sum(axis=1)
    values = np.append(d, s.sum())
    curve = functions.Curve(nodes, values, 0 * values, {}, s)
    names = ("effective_rank", "rankme", np.sqrt, ("ridge", 0.5), np.log1p)
    with np.errstate(all="ignore"):
        found = [functions.evaluate_curve(curve, f).uncorrected for f in names]
        fitted = [functions.find_target(f, 10 * s[0]) for f in names]
    entropy = lambda p: np.exp(-(p / p.sum() * np.log(p / p.sum())).sum())
    truth = [entropy(s), entropy(np.sqrt(s)), np.sqrt(s).sum()]
    truth += [(s / (s + 0.5)).sum(), np.log1p(s).sum()]
    np.testing.assert_allclose(found, truth, rtol=1e-9)
    whole = np.concatenate([functions._tail_nodes(nodes), nodes])
    d = np.append((s / (s + np.exp(whole)[:, None])).sum(axis=1), s.sum())
    for (_, summands, combine), expected in zip(fitted, truth):
        sums = [functions.stieltjes_weights(g, whole, 4.5)[0] @ d for g in summands]
        assert combine(*sums) == pytest.approx(expected, rel=0.02)


def test_repeats():
    rng, phi = np.random.default_rng(0), sm.Linear(20).sample(90, 120, 1)
    noise = 2.0 * rng.standard_normal((3, 90, 120))
    for x in (phi + noise, phi + noise[:2]):
        q = sm.spectral_function(x, trials=True)
        assert abs(q.value - 20) < 3 * q.stderr
    assert sm.spectral_function(phi + noise[0]).value > 25  # noise counts


# --- units, fallbacks, refusals -----------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-200, 1e-80, 1.0, 1e80, 1e200])
def test_scale_and_permutation(scale):
    phi, rng = sm.PowerLaw(1.0, 100).sample(30, 40, 0), np.random.default_rng(0)
    moved = scale * phi[rng.permutation(30)][:, rng.permutation(40)]
    for f in ("effective_rank", "rankme"):
        one, other = (sm.spectral_function(x, f) for x in (phi, moved))
        np.testing.assert_allclose(other.interval(), one.interval(), rtol=1e-5)
    if 1e-100 < scale < 1e100:
        ridge = sm.spectral_function(moved, ("ridge", 0.1 * scale**2)).value
        one = sm.spectral_function(phi, ("ridge", 0.1)).value
        np.testing.assert_allclose(ridge, one, rtol=1e-6)
    else:
        with pytest.raises(ArgumentError, match="divide phi by a constant"):
            sm.spectral_function(moved, ("ridge", 0.1))


REFUSED = {
    "is not one of": lambda x: sm.spectral_function(x, "rank"),
    r"\[1\] is not one of": lambda x: sm.spectral_function(x, [1]),
    "added to the eigenvalues": lambda x: sm.spectral_function(x, ("ridge", -1.0)),
    r"with f\(0\) = 0; here eigenvalues are about [1-9]": lambda x: sm.spectral_function(
        x, np.log
    ),
    "same shape": lambda x: sm.spectral_function(x, lambda s: 3.0),
    "8 rows and columns": lambda x: sm.spectral_function(x[:5]),
    "drop rows": lambda x: sm.spectral_function(np.where(x > 1, np.nan, x)),
    "that vary": lambda x: sm.spectral_function(np.ones((20, 20))),
    "columns that vary": lambda x: sm.spectral_function([x, 0 * x], trials=True),
    "one of each group": lambda x: sm.spectral_function(
        sm.Recording(x, groups=np.arange(30) // 2)
    ),
}


@pytest.mark.parametrize("words", REFUSED)
def test_refused(words):
    with pytest.raises(ArgumentError, match=words):
        REFUSED[words](sm.Linear(5).sample(30, 40, 0))


# --- bounds and notes ---------------------------------------------------------------------


@pytest.mark.parametrize("seed", [11, 12, 13])
@pytest.mark.parametrize("f", ["rankme", "effective_rank"])
def test_ranks_never_exceed_the_units_there_are(seed, f):
    "A layer of 96 units: 0.3 gave values and intervals beyond it."
    rng = np.random.default_rng(seed)
    phi = sm.PowerLaw(0.6, 400).sample(40, 96, rng)
    q = sm.spectral_function(phi, f, population="all")
    low, high = q.interval()
    assert 1 <= low <= high <= 96 and not q.value > 96
    free = sm.spectral_function(phi, f)
    assert free.interval()[1] > 96  # of infinitely many units there may be more


def test_only_bounds_where_the_error_is_as_large_as_the_value():
    phi = sm.PowerLaw(0.9, 1000).sample(50, 300, 21)
    q = sm.spectral_function(phi, "rankme")
    s = np.sqrt(sm.PowerLaw(0.9, 1000).eigenvalues())
    truth = np.exp(-(s / s.sum() * np.log(s / s.sum())).sum())
    low, high = q.interval()
    assert q.error >= 1 and np.isnan(q.value) and low < truth < high
    text = str(q)
    assert "lower bound" not in text and "do not report it" in text and "±" not in text
    assert sm.spectral_function(phi, ("ridge", 0.2)).value > 0  # a ridge is known


def test_moments_cut_the_interval():
    noise = np.random.default_rng(0).standard_normal((40, 60))
    q = sm.spectral_function(noise)
    assert q.interval()[0] == pytest.approx(q.bounds(0.99)[0]) and q.interval()[0] > 60
    ridge = sm.spectral_function(sm.Linear(20).sample(100, 150, 0), ("ridge", 5.0))
    assert ridge.bounds(0.99) == (-np.inf, np.inf)


@pytest.mark.parametrize("f", ["effective_rank", "rankme"])
def test_ranks_are_at_least_one(f):
    noise = np.random.default_rng(0).standard_normal((2, 40, 60))
    one = sm.spectral_function(np.outer(noise[0, 0], noise[0, 1]), f)
    assert 1 <= one.interval()[0] <= one.value <= one.interval()[1] < 1.3
    for phi in (noise[0], noise, noise[0, :8, :8]):
        low, high = sm.spectral_function(phi, f, trials=phi.ndim == 3).interval()
        assert low >= 1 and high > 2 * low


def test_notes():
    phi = sm.PowerLaw(1.0, 1000).sample(60, 90, 0)
    assert "do not report it" in sm.spectral_function(phi, "rankme").notes[0]
    sharp = sm.spectral_function(phi, lambda s: 1.0 * (s > 0.1))
    assert any("too sharp" in note for note in sharp.notes)
    clean = sm.Linear(10).sample(60, 90, 0)
    assert sm.spectral_function(clean).notes == sm.estimate(clean, 2).notes
    noise = np.random.default_rng(0).standard_normal((2, 30, 30))
    found = sm.spectral_function(noise, trials=True)
    assert any("not distinguishable from zero" in note for note in found.notes)
    assert "unseen" in sm.spectral_function(phi).error_by_source


@pytest.mark.parametrize("center", [True, False])
def test_a_rank_that_waves_make_too_small_has_a_note(center):
    "Features that are single waves: the equation of the ridges does not quite hold."
    for seed in range(3):
        q = sm.spectral_function(sm.RBF(5).sample(60, 80, seed), center=center)
        assert q.value < 217 * 0.8 and "do not report it" in q.notes[0]
        for process in (sm.Linear(20), sm.PowerLaw(1.5), sm.RBF(2)):
            good = sm.spectral_function(process.sample(60, 80, seed), center=center)
            assert not any("do not report it" in note for note in good.notes)
