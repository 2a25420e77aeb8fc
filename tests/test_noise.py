"""Noise whose law is known: exact by quadrature, statistical, refused, at every door."""

import itertools

import numpy as np
import pytest

import spectral_moments as sm
from spectral_moments.engine.reduction import Design, Side, System, reduce
from spectral_moments.engine.sources import Noise, Source

# --- exactly -------------------------------------------------------------------------------


def nodes(law, mean, spread, degree):
    "Values and probabilities with all moments of a law of noise up to `degree`."
    if law == "gaussian" and not spread or law != "gaussian" and not mean:
        return [mean], [1.0]
    count = degree // 2 + 1
    k = np.arange(count)
    if law == "gaussian":
        diagonal, squares = mean + 0 * k, spread * k
    elif law == "poisson":
        diagonal, squares = mean + k, mean * k
    else:  # binomial, of `spread` draws
        p = mean / spread
        diagonal = p * (spread - k) + k * (1 - p)
        squares = k * (spread - k + 1) * p * (1 - p)
    off = np.sqrt(squares[1:])
    values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(off, 1) + np.diag(off, -1))
    return values, vectors[0] ** 2


def expected(statistic, mu, law, spread, degree):
    "Mean of a polynomial of independent entries, without error."
    spread, total = np.broadcast_to(0.0 if spread is None else spread, mu.shape), 0.0
    pairs = zip(mu.ravel(), spread.ravel())
    laws = [[*zip(*nodes(law, *pair, degree), strict=True)] for pair in pairs]
    for each in itertools.product(*laws):
        x, chance = zip(*each, strict=True)
        total = total + np.prod(chance) * statistic(np.reshape(x, mu.shape))
    return total


def values(x, words, design, *, noise=None, columns=Side(), other=None):
    "All cycles of words over phi, and over psi, which has no noise."
    systems = {"phi": System(Source(x[None], 0, bool(np.isnan(x).any())), columns)}
    systems["phi"] = systems["phi"]._replace(noise=noise)
    if other is not None:
        name = "features of {}".format
        systems["phi"] = systems["phi"]._replace(space=name("phi"))
        systems["psi"] = System(Source(other[None]), Side(), name("psi"))
    return reduce(systems, tuple(words), "all_cycles", design, rng=None).values


def powers(n):
    return [("phi",) * k for k in range(1, n + 1)]


def some(shape, count, seed=0):
    "A matrix of which `count` entries are random, near each other."
    rng = np.random.default_rng(seed)
    where = np.zeros(shape, dtype=bool)
    where[0, : (count + 1) // 2] = where[-1, : count // 2] = True
    return rng.uniform(0.3, 2.0, shape), where


#: shape, orders, degree of an entry, random entries, options
FINITE = dict(rows=Side(population=5))
GROUPS = np.array([0, 0, 1, 1, 2, 3])
CASES = {
    "first": ((2, 2), 1, 2, 4, {}),
    "second": ((2, 3), 2, 2, 6, {}),
    "third": ((3, 3), 3, 2, 5, {}),
    "centred": ((4, 2), 2, 2, 6, dict(center=True)),
    "centred third": ((6, 3), 3, 2, 5, dict(center=True)),
    "finite columns": ((3, 2), 2, 4, 4, dict(columns=Side(population=3))),
    "finite rows": ((2, 3), 2, 4, 4, dict(rows=Side(population=2))),
    "finite": ((2, 2), 2, 4, 4, dict(rows=Side(population=2), columns=Side(population=2))),
    "finite third": ((3, 3), 3, 6, 3, dict(**FINITE, columns=Side(population=4))),
    "finite centred": (
        (4, 2),
        2,
        4,
        4,
        dict(center=True, **FINITE, columns=Side(population=2)),
    ),
    "all columns, centred": ((6, 3), 3, 6, 3, dict(center=True, columns=Side(population=3))),
    "groups": ((6, 2), 2, 2, 5, dict(rows=Side(groups=GROUPS))),
    "groups, centred": ((6, 2), 2, 2, 5, dict(rows=Side(groups=GROUPS), center=True)),
    "groups, all columns": (
        (6, 2),
        2,
        4,
        4,
        dict(rows=Side(groups=GROUPS), columns=Side(population=2), center=True),
    ),
    "weights": ((4, 3), 2, 2, 5, dict(rows=Side(weights=np.array([1.0, 2, 3, 1])))),
    "weights, centred": (
        (4, 3),
        2,
        2,
        5,
        dict(rows=Side(weights=np.array([1.0, 2, 3, 1])), center=True),
    ),
}


@pytest.mark.parametrize("law", ["binomial", "poisson", "gaussian"])
@pytest.mark.parametrize("case", CASES)
def test_exact(case, law):
    "The mean over the noise is the estimate without noise, to the last digit."
    shape, n, degree, count, options = CASES[case]
    options = dict(options)
    design = Design(options.pop("center", False), options.pop("rows", Side()))
    mu, where = some(shape, count)
    if law == "gaussian":
        spread = np.where(where, np.linspace(0.5, 2, mu.size).reshape(shape), 0.0)
        noise = Noise("gaussian", spread)
    elif law == "poisson":
        mu, spread, noise = np.where(where, mu, 0.0), None, Noise("poisson")
    else:
        mu, spread, noise = np.where(where, mu, 0.0), 7.0, Noise("binomial", 7)
    of = lambda x, **law: values(x, powers(n), design, **law, **options)
    clean = of(mu)
    found = expected(lambda x: of(x, noise=noise), mu, law, spread, degree)
    size = np.maximum(abs(clean), 1e-2)
    np.testing.assert_allclose(found / size, clean / size, atol=1e-9, rtol=0)
    with_bias = expected(of, mu, law, spread, degree)
    assert with_bias[0] > clean[0] + 0.05  # negative control
    if degree > 2 and law == "gaussian":
        assert (abs(with_bias - clean) > 0.01 * size).all()


@pytest.mark.parametrize("center", [False, True])
def test_exact_words_and_gaps(center):
    words = [("phi", "psi"), ("phi", "phi"), ("phi", "phi", "psi"), ("phi",)]
    mu, where = some((6, 3), 4)
    other = np.random.default_rng(1).standard_normal((6, 2))
    spread = np.where(where, 1.5, 0.0)
    for population, gap in ((None, False), (3, False), (None, True), (3, True)):
        columns = Side(population=population)
        if gap:
            mu = mu.copy()
            mu[3, 1] = np.nan
        of = lambda x, **law: values(
            x, words, Design(center), other=other, columns=columns, **law
        )
        clean, noise = of(mu), Noise("gaussian", spread)
        degree = 4 if population else 2
        found = expected(lambda x: of(x, noise=noise), mu, "gaussian", spread, degree)
        np.testing.assert_allclose(found, clean, rtol=1e-9)
        assert expected(of, mu, "gaussian", spread, degree)[-1] > clean[-1] + 0.1
