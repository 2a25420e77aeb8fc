"""Functions of the spectrum, neighbourhoods, classes, kernels: sums and known answers."""

import itertools

import numpy as np
import pytest

import spectral_moments as sm
from spectral_moments.checks import ArgumentError
from spectral_moments.similarity import gram_mean
from spectral_moments.spectrum import functions
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
    x = sm.PowerLaw(0.8, 60).sample(20, 30, 1) + 0.5
    values, deviations = curve(scatter(x, center, population), RIDGES)
    np.testing.assert_allclose(
        values[:-2], direct(x, center, population, RIDGES), rtol=1e-4
    )
    for axis, kind in enumerate(("inputs", "features")):
        if population[axis] is not None:
            continue  # deviations shrink by what was not drawn
        for unit in (0, 11):
            part = np.delete(x, unit, axis)
            found = values[:-1] + deviations[kind][:-1, unit]
            other = curve(scatter(part, center, population), RIDGES)[0][:-1]
            np.testing.assert_allclose(found, other, rtol=2e-6)


def test_complete_population_has_no_error_and_no_shift():
    x = sm.Linear(6).sample(30, 25, 0)
    found = operator_curve(x[None], False, population=(30, 25))
    s = np.linalg.svd(x, compute_uv=False) ** 2 / x.size
    d = (s / (s + np.exp(found.nodes)[:, None])).sum(axis=1)
    np.testing.assert_allclose(found.values[:-2], d, rtol=1e-9)
    assert all(abs(axis.deviations).max() == 0 for axis in found.axes.values())


def test_finite_population_of_inputs():
    "The mean over parts of one finite table is the curve of the table."
    table = sm.PowerLaw(1.0, 200).sample(80, 400, 0)
    truth = operator_curve(table[None], False, population=(80, 400))
    coarse = truth.values[:-2] < 20  # what forty rows resolve
    rng, found = np.random.default_rng(1), []
    for _ in range(60):
        x = table[rng.permutation(80)[:40]]
        values, deviations = curve(scatter(x, False, (80, 400)), truth.nodes[coarse])
        bias = sum((y.shape[1] - 1) * y.mean(axis=1) for y in deviations.values())
        found.append((values - bias)[:-1])
    truth = np.append(truth.values[:-2][coarse], truth.values[-2])
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
    x = (
        np.diag(np.sqrt(25 * s))
        @ np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0]
    )
    phi = np.vstack([x, np.zeros((4, 5))]) * np.sqrt(9 / 5)
    phi = np.hstack([phi, np.zeros((9, 4))]) * np.sqrt(9 / 5)  # nine of each are complete
    found = {
        f: sm.spectral_function(phi, f, center=False, population=(9, 9)).value
        for f in ("effective_rank", "rankme", "nuclear", ("ridge", 0.5), np.log1p)
    }
    entropy = lambda p: np.exp(-(p / p.sum() * np.log(p / p.sum())).sum())
    truth = [entropy(s), entropy(np.sqrt(s)), np.sqrt(s).sum()]
    truth += [(s / (s + 0.5)).sum(), np.log1p(s).sum()]
    np.testing.assert_allclose(list(found.values()), truth, rtol=0.02)


@pytest.mark.parametrize("scale", [1e-80, 1.0, 1e80])
def test_scale_and_permutation(scale):
    phi, rng = sm.PowerLaw(1.0, 100).sample(30, 40, 0), np.random.default_rng(0)
    one = sm.spectral_function(phi, "effective_rank")
    moved = scale * phi[rng.permutation(30)][:, rng.permutation(40)]
    np.testing.assert_allclose(sm.spectral_function(moved).value, one.value, rtol=1e-6)
    ridge = sm.spectral_function(moved, ("ridge", 0.1 * scale**2)).value
    np.testing.assert_allclose(
        ridge, sm.spectral_function(phi, ("ridge", 0.1)).value, rtol=1e-6
    )


def test_groups_trials_and_copies():
    rng, twenty = np.random.default_rng(0), sm.Linear(20)
    phi = twenty.sample(90, 120, 1)
    copies = np.repeat(phi, 2, axis=0)
    one, two = (
        sm.spectral_function(x, groups=groups)
        for x, groups in ((phi, None), (copies, np.repeat(np.arange(90), 2)))
    )
    np.testing.assert_allclose([two.value, two.stderr], [one.value, one.stderr], rtol=1e-6)
    assert sm.spectral_function(copies).stderr < 0.8 * one.stderr  # negative control
    noise = 2.0 * rng.standard_normal((3, 90, 120))
    for trials in (phi + noise, phi + noise[:2]):
        q = sm.spectral_function(trials)
        assert abs(q.value - 20) < 3 * q.stderr < abs(q.plain - 20) + 3 * q.stderr
        assert sm.spectral_function(trials.mean(axis=0)).value > 25  # noise counts


def test_notes():
    phi = sm.PowerLaw(1.0, 1000).sample(60, 90, 0)
    assert "lower bound" in sm.spectral_function(phi, "rankme").notes[0]
    assert "too sharp" in sm.spectral_function(phi, lambda s: s > 0.1).notes[-1]
    assert not sm.spectral_function(sm.Linear(10).sample(60, 90, 0)).notes
    noise = np.random.default_rng(0).standard_normal((2, 30, 30))
    assert "hardly any signal" in sm.spectral_function(noise).notes[0]
    q = sm.spectral_function(phi)
    assert 30 < q.resolved < 45 and q.resolution > 0 and "unseen" in q.parts


@pytest.mark.parametrize(
    "call",
    [
        lambda x: sm.spectral_function(x, "rank"),
        lambda x: sm.spectral_function(x, ("ridge", -1.0)),
        lambda x: sm.spectral_function(x[:5]),
        lambda x: sm.spectral_function(np.where(x > 1, np.nan, x)),
        lambda x: sm.spectral_function(),
        lambda x: sm.spectral_function(x, groups=np.zeros(30)),
        lambda x: sm.estimate(x, kernel=x),
        lambda x: sm.estimate(kernel=x),
        lambda x: sm.estimate(kernel=np.diag([1.0, 1.0, -1.0])),
        lambda x: sm.estimate(kernel=x @ x.T, noise="poisson"),
        lambda x: sm.local_dimension(x, 0),
        lambda x: sm.local_dimension(x, 0, width=-1.0),
        lambda x: sm.by(x, np.zeros(30)),
        lambda x: sm.cvpca(x),
    ],
)
def test_refused(call):
    with pytest.raises(ArgumentError):
        call(sm.Linear(5).sample(30, 40, 0))


def test_stored_study():
    "Of the stored table: never worse than the sample in effective rank and ridge."
    import json

    from conftest import ROOT

    study = json.loads((ROOT / "results" / "functions.json").read_text())
    assert len(study["table"]) >= 8
    assert set(functions.ENTROPIES) < set(study["functions"])


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
    finite = [
        sm.estimate(x, 2, population=(100, 3)),
        sm.estimate(kernel=x @ x.T / 3, n_max=2, population=(100, None)),
    ]
    np.testing.assert_allclose(finite[0].values, finite[1].values, rtol=1e-9)


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


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_spheres_are_flat_near_by(dim):
    rng = np.random.default_rng(dim)
    x = rng.standard_normal((1500, dim + 1))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    phi = x @ rng.standard_normal((dim + 1, 120))
    found = sm.local_dimension(phi, [0, 1, 2], nearest=100).dimensions
    mean = np.mean([q[0].value for q in found])
    assert abs(mean - dim) < 0.2 * dim
    assert sm.participation_ratio(phi).value > dim + 0.7


def test_classes():
    rng, labels = np.random.default_rng(0), np.repeat([2, 1, 2, 3], 40)
    latent = rng.standard_normal((160, 8))
    latent[labels == 1, 3:] = 0
    phi = latent @ rng.standard_normal((8, 60))
    found = sm.by(phi, labels, row_weights=np.ones(160))
    assert list(found.estimates) == ["1", "2", "3"] and len(found.rows) == 3
    alone = sm.estimate(phi[labels == 2], 2).dimension()
    np.testing.assert_allclose(
        found.estimates["2"].dimension().value, alone.value, rtol=0.05
    )
    p = {(row["first"], row["second"]): row["p_holm"] for row in found.rows}
    assert p["1", "2"] < 0.01 and p["2", "3"] > 0.01
    assert "inputs" in str(found) and found._repr_html_().count("<table") == 2


def test_cvpca_of_a_signal_without_noise():
    x = sm.Linear(5).sample(50, 30, 0)
    x = x - x.mean(axis=0)
    s = np.linalg.svd(x, compute_uv=False)[:5] ** 2 / x.size
    np.testing.assert_allclose(sm.cvpca([x, x, x], 5), s, rtol=1e-9)
