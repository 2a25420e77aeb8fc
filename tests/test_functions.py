"""Functions of the spectrum, neighbourhoods, classes, kernels: sums and known answers."""

import dataclasses
import itertools
import json

import numpy as np
import pytest
from conftest import ROOT

import spectral_moments as sm
from spectral_moments.checks import ArgumentError
from spectral_moments.similarity import gram_mean
from spectral_moments.spectrum.functions import curve, operator_curve, scatter

# --- the curve ----------------------------------------------------------------------------

RIDGES = np.log(np.geomspace(0.5, 50, 6))


def direct(x, center, population, log_kappa):
    "Dimensions at some ridges by a search over a fine grid, from eigenvalues alone."
    P, Q = x.shape
    x = x - x.mean(axis=0) if center else x
    n, a = P - center, np.linalg.svd(x, compute_uv=False) ** 2
    N, M = (np.inf if size is None else size for size in population)
    N = N - center
    ridge = np.exp(np.linspace(-12, 12, 400_000))
    d = sum(each / (each + n * Q * ridge) for each in a)
    with np.errstate(divide="ignore", invalid="ignore"):
        rows = 1.0 if n == N else (1 - d / n) / (1 - d / N)
        columns = 1.0 if Q == M else (1 - d / Q) / (1 - d / M)
    return np.interp(log_kappa, np.log(ridge / (rows * columns)), d)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("population", [(None, None), (60, None), (None, 30), (40, 90)])
def test_curve_and_each_unit_left_out(center, population):
    "Against a search over a grid, and against smaller matrices; noise takes its own."
    x = sm.PowerLaw(0.8, 60).sample(20, 30, 1) + 0.5
    noise = np.random.default_rng(0).uniform(0, 0.2, x.shape)
    found = lambda x, noise: curve(scatter(x, center, population, noise), RIDGES)
    values, deviations = found(x, noise)
    of_noise = np.append(noise.mean() / np.exp(RIDGES), noise.mean())
    expected = direct(x, center, population, RIDGES) - of_noise[:-1]
    np.testing.assert_allclose(values[:-3], expected, rtol=1e-4)
    np.testing.assert_allclose(values[:-2] + of_noise, found(x, 0.0)[0][:-2], rtol=1e-9)
    for axis, kind in enumerate(("inputs", "features")):
        if population[axis] is not None:
            continue  # deviations shrink by what was not drawn
        for unit in (0, 11):
            part, of_part = np.delete(x, unit, axis), np.delete(noise, unit, axis)
            without = values[:-2] + deviations[kind][:-2, unit]
            np.testing.assert_allclose(without, found(part, of_part)[0][:-2], rtol=2e-6)


def test_complete_population_has_no_error_and_no_shift():
    x = sm.Linear(6).sample(30, 25, 0)
    found = operator_curve(x[None], False, population=(30, 25))
    s = np.linalg.svd(x, compute_uv=False) ** 2 / x.size
    d = (s / (s + np.exp(found.nodes)[:, None])).sum(axis=1)
    np.testing.assert_allclose(found.values[:-3], d, rtol=1e-9)
    assert all(abs(axis.deviations).max() == 0 for axis in found.axes.values())


def test_finite_population_of_inputs():
    "The mean over parts of one finite table is the curve of the table."
    table = sm.PowerLaw(1.0, 200).sample(80, 400, 0)
    truth = operator_curve(table[None], False, population=(80, 400))
    coarse = truth.values[:-3] < 20  # what forty rows resolve
    rng, found = np.random.default_rng(1), []
    for _ in range(60):
        x = table[rng.permutation(80)[:40]]
        values, deviations = curve(scatter(x, False, (80, 400)), truth.nodes[coarse])
        bias = sum((y.shape[1] - 1) * y.mean(axis=1) for y in deviations.values())
        found.append((values - bias)[:-2])
    truth = np.append(truth.values[:-3][coarse], truth.values[-3])
    error = np.std(found, axis=0) / np.sqrt(60)
    assert (abs(np.mean(found, axis=0) - truth) < 4 * error + 0.01 * truth).all()


# --- functions ----------------------------------------------------------------------------

PROCESSES = [sm.PowerLaw(1.0, 500), sm.Linear(15), sm.RBF(3), sm.ReLU(5)]


@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize("center", [False, True])
def test_square_is_the_second_moment(process, center):
    phi = process.sample(90, 140, 7)
    q = sm.spectral_function(phi, np.square, center=center)
    m2 = sm.all_cycles(phi, 2, center=center)[1]
    assert abs(q.value / m2 - 1) < 0.06 and abs(q.value - m2) < 0.3 * q.stderr
    assert abs(q.plain - m2) > abs(q.value - m2)


@pytest.mark.parametrize("f", ["effective_rank", "rankme", "nuclear", ("ridge", 0.3)])
def test_equal_eigenvalues(f):
    "Twenty equal eigenvalues: means within their error, where the sample is far off."
    truth = 20 / 1.3 if isinstance(f, tuple) else 20
    found = [sm.spectral_function(sm.Linear(20).sample(60, 90, k), f) for k in range(20)]
    values = np.array([q.value for q in found])
    error = values.std(ddof=1) / np.sqrt(20)
    assert abs(values.mean() - truth) < 3 * error + 0.01 * truth
    assert abs(np.mean([q.plain for q in found]) - truth) > 3 * error + 0.01 * truth
    spread, reported = values.std(ddof=1), np.mean([q.stderr for q in found])
    assert 0.5 * spread < reported < 2.5 * spread


def test_names_are_what_they_say():
    "Of exact curves, every function of eigenvalues is itself."
    s = np.array([3.0, 1.0, 1.0, 0.2, 0.05])
    turned = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0]
    x = np.diag(np.sqrt(25 * s)) @ turned
    phi = np.vstack([x, np.zeros((4, 5))]) * np.sqrt(9 / 5)
    phi = np.hstack([phi, np.zeros((9, 4))]) * np.sqrt(9 / 5)  # nine of each are complete
    complete = dict(center=False, population=(9, 9))
    names = ("effective_rank", "rankme", "nuclear", ("ridge", 0.5), np.log1p)
    found = [sm.spectral_function(phi, f, **complete).value for f in names]
    entropy = lambda p: np.exp(-(p / p.sum() * np.log(p / p.sum())).sum())
    truth = [entropy(s), entropy(np.sqrt(s)), np.sqrt(s).sum()]
    truth += [(s / (s + 0.5)).sum(), np.log1p(s).sum()]
    np.testing.assert_allclose(found, truth, rtol=0.02)


@pytest.mark.parametrize("scale", [1e-80, 1.0, 1e80])
def test_scale_and_permutation(scale):
    phi, rng = sm.PowerLaw(1.0, 100).sample(30, 40, 0), np.random.default_rng(0)
    one = sm.spectral_function(phi, "effective_rank")
    moved = scale * phi[rng.permutation(30)][:, rng.permutation(40)]
    np.testing.assert_allclose(sm.spectral_function(moved).value, one.value, rtol=1e-6)
    ridge = sm.spectral_function(moved, ("ridge", 0.1 * scale**2)).value
    one = sm.spectral_function(phi, ("ridge", 0.1)).value
    np.testing.assert_allclose(ridge, one, rtol=1e-6)


def test_groups_trials_and_copies():
    rng, twenty = np.random.default_rng(0), sm.Linear(20)
    phi, order = twenty.sample(90, 120, 1), np.random.default_rng(1).permutation(180)
    copies, groups = np.repeat(phi, 2, axis=0)[order], np.repeat(np.arange(90), 2)[order]
    one, two = sm.spectral_function(phi), sm.spectral_function(copies, groups=groups)
    np.testing.assert_allclose([two.value, two.stderr], [one.value, one.stderr], rtol=1e-6)
    assert sm.spectral_function(copies).stderr < 0.8 * one.stderr  # negative control
    noise = 2.0 * rng.standard_normal((3, 90, 120))
    for x, law in ((phi + noise, None), (phi + noise[:2], None), (phi + noise[0], 4.0)):
        q = sm.spectral_function(x, noise=law)
        assert abs(q.value - 20) < 3 * q.stderr < abs(q.plain - 20) + 3 * q.stderr
    assert sm.spectral_function(phi + noise[0]).value > 25  # noise counts


def test_counts():
    "Rates of three latents, seen through Poisson counts."
    rng = np.random.default_rng(0)
    rates = rng.gamma(2.0, 1.0, (120, 3)) @ rng.gamma(1.0, 1.0, (3, 160))
    q = sm.spectral_function(rng.poisson(rates), noise="poisson")
    of_rates = sm.spectral_function(rates)
    assert abs(q.value - of_rates.value) < 2 * q.stderr and q.value < 3.5 < q.plain


@pytest.mark.parametrize("seed", range(4))
def test_limits_hold_for_any_spectrum(seed):
    s = np.random.default_rng(seed).gamma(0.3, size=30) + 1e-12
    m = [(s**n).sum() for n in range(1, 5)]
    entropy = lambda p: np.exp(-(p * np.log(p)).sum())
    chain = [m[0] / m[1] ** 0.5, m[0] / m[2] ** (1 / 3), m[0] / m[3] ** 0.25]
    chain += [m[0] / s.max(), m[0] ** 2 / m[1], entropy(s / s.sum())]
    chain.append(entropy(np.sqrt(s) / np.sqrt(s).sum()))
    assert (np.diff(chain) >= 0).all() and chain[0] >= 1


def test_moments_cut_the_interval():
    phi = sm.Linear(20).sample(100, 150, 0)
    q = sm.spectral_function(phi, "stable_rank")
    low, high = q.limits.at(0.99)
    bare = dataclasses.replace(q, limits=None)
    assert bare.interval()[0] < low < q.value and high < bare.interval()[1]
    assert q.interval() == (low, high) and low < 20 < high < 25
    ridge = sm.spectral_function(phi, ("ridge", 5.0))
    bounds = sm.effective_dimension(sm.estimate(phi), 5.0, level=0.99)
    np.testing.assert_allclose(ridge.limits.at(0.99), bounds, rtol=1e-3)


NOISE = np.random.default_rng(0).standard_normal((2, 40, 60))
RANK_ONE = np.outer(NOISE[0, 0], NOISE[0, 1])


@pytest.mark.parametrize("f", ["effective_rank", "rankme", "stable_rank"])
@pytest.mark.parametrize("phi", [NOISE[0], NOISE, RANK_ONE, NOISE[0, :8, :8]])
def test_ranks_are_at_least_one(phi, f):
    q = sm.spectral_function(phi, f)
    low, high = q.interval()
    assert 1 <= low <= q.value * (1 + 1e-9) and q.value <= high * (1 + 1e-9)
    if phi is RANK_ONE:
        assert high < 1.3 and not q.notes
    else:
        assert q.notes and high > 2 * low
    if phi is NOISE[0] and f != "stable_rank":
        assert low > 60  # more than its columns: no sample shows that


def test_notes():
    phi = sm.PowerLaw(1.0, 1000).sample(60, 90, 0)
    assert "lower bound" in sm.spectral_function(phi, "rankme").notes[0]
    assert "too sharp" in sm.spectral_function(phi, lambda s: s > 0.1).notes[-1]
    assert not sm.spectral_function(sm.Linear(10).sample(60, 90, 0)).notes
    noise = np.random.default_rng(0).standard_normal((2, 30, 30))
    assert "hardly any signal" in sm.spectral_function(noise).notes[0]
    q = sm.spectral_function(phi)
    assert 30 < q.resolved < 45 and q.resolution > 0 and "unseen" in q.parts


REFUSED = {
    "is not one of": lambda x: sm.spectral_function(x, "rank"),
    "added to the eigenvalues": lambda x: sm.spectral_function(x, ("ridge", -1.0)),
    "vanishes there": lambda x: sm.spectral_function(x, np.log),
    "same shape": lambda x: sm.spectral_function(x, lambda s: 3.0),
    "a curve needs 8": lambda x: sm.spectral_function(x[:5]),
    "drop rows": lambda x: sm.spectral_function(np.where(x > 1, np.nan, x)),
    "all rows are alike": lambda x: sm.spectral_function(np.ones((20, 20))),
    "their weights": lambda x: sm.spectral_function(x, row_weights=np.ones(30)),
    "is not an option": lambda x: sm.spectral_function(x, colour=1),
    "repeated trials": lambda x: sm.spectral_function(x, noise=1.0, population=(60, None)),
    "pass either phi": lambda x: sm.spectral_function(),
    "phi": lambda x: sm.spectral_function(x, groups=np.zeros(30)),
    "either phi": lambda x: sm.estimate(x, kernel=x),
    "symmetric": lambda x: sm.estimate(kernel=x),
    "none below zero": lambda x: sm.estimate(kernel=np.diag([1.0, 1.0, -1.0])),
    "no features": lambda x: sm.estimate(kernel=x @ x.T, noise="poisson"),
    "not both": lambda x: sm.local_dimension(x, 0),
    "widen it": lambda x: sm.local_dimension(x, 0, width=1e-3),
    "from 0 to 29": lambda x: sm.local_dimension(x, 30, width=1.0),
    "at least two classes": lambda x: sm.by(x, np.zeros(30)),
    "class 1 of 3 inputs": lambda x: sm.by(x, np.arange(30) // 27),
    "cross-validated": lambda x: sm.cvpca(x),
    "count": lambda x: sm.cvpca([x, x], 0),
}


@pytest.mark.parametrize("words", REFUSED)
def test_refused(words):
    with pytest.raises(ArgumentError, match=words):
        REFUSED[words](sm.Linear(5).sample(30, 40, 0))


STUDY = json.loads((ROOT / "results" / "functions.json").read_text())


@pytest.mark.parametrize("name", STUDY["functions"])
def test_stored_study(name):
    "No further from the truth than the sample; intervals hold where the bias is small."
    k, table = STUDY["functions"].index(name), STUDY["table"]
    cells = [cell for case in table.values() for cell in case["shapes"].values()]
    assert len(table) >= 8 and len(cells) >= 3 * len(table)
    assert sum(cell["worse"][k] > 2 for cell in cells) <= (name == "rankme")
    for cell in cells:
        ours, sample = (cell[key]["distance"][k] for key in ("value", "sample"))
        bias = abs(np.log(cell["value"]["mean"][k]))
        assert ours <= 1.005 * sample
        assert bias > cell["stderr"][k] / 2 or cell["coverage"][k] >= 0.9


# --- a kernel -----------------------------------------------------------------------------


def test_kernel_is_the_mean_over_distinct_inputs():
    x = np.random.default_rng(0).standard_normal((8, 2))
    K = sm.RBF(2).kernel(x, x)
    for n, value in enumerate(sm.estimate(kernel=K, n_max=4, center=False).values, 1):
        cycles = itertools.permutations(range(8), n)
        mean = np.mean([np.prod(K[list(i), list(i[1:] + i[:1])]) for i in cycles])
        np.testing.assert_allclose(value, mean, rtol=1e-10)
    centred = sm.estimate(kernel=K, n_max=2).values
    off = (K.sum() - np.trace(K)) / 56
    np.testing.assert_allclose(centred, [np.trace(K) / 8 - off, gram_mean(K, K)], rtol=1e-9)


def test_kernel_takes_options_of_rows():
    x, groups = np.random.default_rng(0).standard_normal((60, 3)), np.arange(60) // 2
    options = dict(groups=groups, center=True)
    features = sm.estimate(x, 2, population=(None, 3), **options)
    kernel = sm.estimate(kernel=x @ x.T / 3, n_max=2, **options)
    np.testing.assert_allclose(kernel.values, features.values, rtol=1e-9)
    np.testing.assert_allclose(kernel.stderr, features.stderr, rtol=1e-6)
    features = sm.estimate(x, 2, population=(100, 3))
    kernel = sm.estimate(kernel=x @ x.T / 3, n_max=2, population=(100, None))
    np.testing.assert_allclose(kernel.values, features.values, rtol=1e-9)


def test_gram_matrix_as_data_gets_a_note():
    x = np.random.default_rng(0).standard_normal((40, 5))
    noted = lambda phi: any("kernel=phi" in note for note in sm.estimate(phi, 2).notes)
    assert noted(x @ x.T) and not noted(x @ x[::-1].T)
    assert not noted(abs(x[:, :1] - x[:, 0]))  # distances: a diagonal of zeros


# --- neighbourhoods, classes, cvPCA -------------------------------------------------------


def test_all_inputs_are_the_whole():
    phi = sm.Linear(4).sample(60, 40, 0)
    order = np.random.default_rng(0).permutation(40)[20:]
    whole = sm.estimate(phi[:, order], 2).dimension().value
    for options in (dict(nearest=60), dict(width=1e6)):
        found = sm.local_dimension(phi, [0, 5], **options)
        values = [q[0].value for q in found.dimensions]
        np.testing.assert_allclose(values, whole, rtol=0.1 if "width" in options else 1e-9)
    assert sm.local_dimension(phi, 0, nearest=10).notes
    assert "width" in str(found) and len(found.to_dict()["rows"]) == 2


def sheet(name, rng, P=1500):
    "Points of a curved sheet, the first three inside of it, and its dimension."
    if name != "Swiss roll":
        dim = ["circle", "sphere", "3-sphere"].index(name) + 1
        x = rng.standard_normal((P, dim + 1))
        return x / np.linalg.norm(x, axis=1, keepdims=True), dim
    place = rng.random((2, P))
    place[:, :3] = 0.4 + 0.2 * place[:, :3]
    t = 1.5 * np.pi * (1 + 2 * place[0])
    return np.column_stack([t * np.cos(t) / 10, t * np.sin(t) / 10, 2.1 * place[1]]), 2


@pytest.mark.parametrize("name", ["circle", "sphere", "3-sphere", "Swiss roll"])
def test_sheets_are_flat_near_by(name):
    rng = np.random.default_rng(1)
    x, dim = sheet(name, rng)
    phi = x @ rng.standard_normal((x.shape[1], 120))
    found = sm.local_dimension(phi, [0, 1, 2], nearest=80).dimensions
    assert abs(np.mean([q[0].value for q in found]) - dim) < 0.2 * dim
    assert sm.participation_ratio(phi).value > dim + 0.5


def test_neighbourhoods_take_options_of_rows():
    "Rows that count twice, and copies in groups, are the same population."
    phi = sm.Linear(4).sample(80, 60, 0)
    twice = np.concatenate([phi, phi[:30]])
    weights = np.append(np.full(30, 2.0), np.ones(50))
    options = dict(width=3.0, center=False)
    one = sm.local_dimension(phi, 5, row_weights=weights, **options)
    groups = np.append(np.arange(80), np.arange(30))
    two = sm.local_dimension(twice, 5, groups=groups, **options)
    values = [x.dimensions[0][0].value for x in (one, two)]
    np.testing.assert_allclose(*values, rtol=0.05)
    near = sm.local_dimension(phi, 5, nearest=30, groups=np.arange(80) // 2)
    assert near.dimensions[0][0].stderr > 0


def test_classes():
    rng, labels = np.random.default_rng(0), np.repeat([2, 1, 2, 3], 40)
    latent = rng.standard_normal((160, 8))
    latent[labels == 1, 3:] = 0
    phi = latent @ rng.standard_normal((8, 60))
    found = sm.by(phi, labels, row_weights=np.ones(160))
    assert list(found.estimates) == ["1", "2", "3"] and len(found.rows) == 3
    alone, its = sm.estimate(phi[labels == 2], 2), found.estimates["2"]
    np.testing.assert_allclose(its.dimension().value, alone.dimension().value, rtol=0.05)
    p = {(row["first"], row["second"]): row["p_holm"] for row in found.rows}
    assert p["1", "2"] < 0.01 and p["2", "3"] > 0.01
    assert "inputs" in str(found) and found._repr_html_().count("<table") == 2


def test_cvpca_of_a_signal_without_noise():
    x = sm.Linear(5).sample(50, 30, 0)
    x = x - x.mean(axis=0)
    s = np.linalg.svd(x, compute_uv=False)[:5] ** 2 / x.size
    np.testing.assert_allclose(sm.cvpca([x, x, x], 5), s, rtol=1e-9)


def test_cvpca_is_drawn_beside_a_law():
    trials = sm.PowerLaw(1.0, 100).sample(60, 80, 0) + np.zeros((2, 1, 1))
    fit = sm.power_law(sm.estimate(trials, 4))
    drawn = {line.get_label(): line for line in fit.plot(trials=trials, count=20).lines}
    np.testing.assert_allclose(drawn["cvPCA"].get_ydata(), sm.cvpca(trials, 20))
