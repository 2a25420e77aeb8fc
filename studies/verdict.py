"""Are two systems related? How often tests say so when they are not, and when they are.

Writes results/verdict.json: rejections at the level .05 of the permutation test of the
numerator, of plain centred kernel alignment and of Student's test of the value, on
seven pairs of unrelated systems and on related ones; the values of plain, calibrated and
corrected alignment beside them; the largest of many pairs with and without the winner's
bias; and the corrected alignment at 20 units and a steep spectrum.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # many small products

import math
from functools import partial

import numpy as np

import spectral_moments as sm
from spectral_moments.processes import LinearPair

SEED = 2036
SETTINGS = {
    "type_one": {"n_matrices": 800, "n_permutations": 199, "inputs": 30},
    "power": {"n_matrices": 300, "alignments": [0.02, 0.05, 0.1, 0.2], "inputs": 30},
    "best": {"n_matrices": 80, "layers": 6, "inputs": 60, "features": 20, "truth": 0.5},
    "remainder": {
        "n_matrices": 400,
        "dim": 10,
        "shape": [100, 20, 20],
        "exponents": [0, 1, 2],
    },
}
LEVEL = 0.05


# --- seven pairs of unrelated systems -----------------------------------------------------


def linear(rng, P):
    "Few dimensions, a flat spectrum."
    return *LinearPair(3, math.pi / 2, exponent=0).sample(P, 20, 30, rng), {}


def steep(rng, P):
    "A steep spectrum and a large mean."
    return *LinearPair(20, math.pi / 2, exponent=1.5, mean=5).sample(P, 12, 40, rng), {}


def fourier(rng, P):
    "Random Fourier features of different inputs."
    phi, psi = (sm.RBF(2).sample(P, Q, random_state=rng) for Q in (15, 25))
    return phi, psi, {}


def heavy(rng, P):
    "Responses with heavy tails over inputs."
    pair = LinearPair(4, math.pi / 2).sample(P, 20, 20, rng)
    return *(rng.standard_t(3, (P, 1)) * x for x in pair), {}


def counts(rng, P):
    "Sparse counts with unequal rates."
    rates = [rng.gamma(0.3, 2, (P, 1)) * rng.gamma(0.5, 1, Q) for Q in (20, 30)]
    return *(rng.poisson(rate).astype(float) for rate in rates), {}


def movies(rng, P):
    "Five alike frames of each movie; the movies are groups."
    n = max(P // 5, 6)
    phi, psi = LinearPair(5, math.pi / 2).sample(n, 20, 20, rng)
    near = [np.repeat(x, 5, axis=0) for x in (phi, psi)]
    near = [x + 0.2 * rng.standard_normal(x.shape) for x in near]
    return *near, {"groups": np.repeat(np.arange(n), 5)}


def noisy(rng, P):
    "Two trials, with noise that both systems share."
    shared = rng.standard_normal((2, P, 2))
    phi, psi = LinearPair(5, math.pi / 2).sample(P, 20, 20, rng)
    both = (x + shared @ rng.standard_normal((2, x.shape[1])) for x in (phi, psi))
    return *both, {"trials": True}


UNRELATED = {
    linear: 0,
    steep: 1,
    fourier: 2,
    heavy: 3,
    counts: 4,
    movies: 5,
    noisy: 7,
}  # seeds


def unit_gram(x):
    "Gram matrix of the centred responses, over its norm."
    x = x - x.mean(0)
    gram = x @ x.T
    return gram / np.linalg.norm(gram)


def calibrated(layers, area, count, rng):
    """The largest plain alignment, its calibrated score and its p-value.

    Transcribed from `calibrate_layers` of calibrated-similarity 0.1.1 with centred kernel
    alignment as the measure (one layer: `calibrate`); benchmarks/bench_peers.py compares.
    """
    grams, L = [unit_gram(x) for x in layers], unit_gram(area)
    largest = lambda L: max(np.vdot(K, L) for K in grams)
    orders = (rng.permutation(len(L)) for _ in range(count))
    given, null = largest(L), [largest(L[np.ix_(order, order)]) for order in orders]
    threshold = np.sort([given, *null])[math.ceil((1 - LEVEL) * (count + 1)) - 1]
    score = np.clip((given - threshold) / (1 - threshold), 0, 1)
    p_value = (1 + sum(x >= given for x in null)) / (1 + count)
    return given, score, p_value


def unrelated(process, settings, seed, index):
    "p-values of one draw: permutation test, Student's test, and that of plain alignment."
    rng = np.random.default_rng([*seed, index])
    phi, psi, options = process(rng, settings["inputs"])
    found = sm.alignment(phi, psi, **options)
    count = settings["n_permutations"]
    test = found.permutation_test(count, random_state=rng)
    phi, psi = (x.mean(0) if x.ndim == 3 else x for x in (phi, psi))
    return [test.p_value, found.p_value(), calibrated([phi], psi, count, rng)[2]]


def related(pair, settings, seed, index):
    "p-values of one draw: permutation test, plain alignment, Student's test; values."
    rng = np.random.default_rng([*seed, index])
    phi, psi = pair.sample(settings["inputs"], 15, 15, rng)
    found = sm.alignment(phi, psi)
    test = found.permutation_test(199, random_state=rng)
    plain, score, p_value = calibrated([phi], psi, 199, rng)
    return [test.p_value, p_value, found.p_value(), found.value, plain, score]


def rejections(p_values):
    "Share of p-values up to the level, and its error; unknown ones reject nothing."
    share = np.mean(np.array(p_values, dtype=float) <= LEVEL, axis=0)
    error = np.sqrt(np.maximum(share * (1 - share), 1e-4) / len(p_values))
    return {"share": share.tolist(), "error": error.tolist()}


def mean(x):
    "Mean, spread and error of the mean, of what is known."
    x = x[np.isfinite(x)]
    sd = float(x.std(ddof=1))
    return {"mean": float(x.mean()), "sd": sd, "se": sd / math.sqrt(len(x))}


def type_one(run):
    "Rejections of unrelated systems."
    settings, found = run.settings["type_one"], {}
    for process, k in UNRELATED.items():
        one = partial(unrelated, process, settings, [run.seed, 1, k])
        name = process.__name__
        found[name] = rejections(run.repeat(name, one, settings["n_matrices"]))
    return found


def power(run):
    "Rejections of related systems."
    settings, found = run.settings["power"], []
    for k, truth in enumerate(settings["alignments"]):
        pair = LinearPair(20, math.acos(math.sqrt(truth)))
        one = partial(related, pair, settings, [run.seed, 2, k])
        drawn = run.repeat(f"alignment {truth}", one, settings["n_matrices"])
        drawn = np.array(drawn, dtype=float)
        names = ("corrected", "plain", "calibrated")
        values = {name: mean(x) for name, x in zip(names, drawn[:, 3:].T)}
        found.append({"truth": truth} | rejections(drawn[:, :3]) | values)
    return found


def winner(settings, seed, index):
    "One draw of layers that are equally like an area: the largest, and without its bias."
    rng = np.random.default_rng([*seed, index])
    P, Q, truth = (settings[key] for key in ("inputs", "features", "truth"))
    features = lambda x: x @ rng.standard_normal((10, Q))
    seen = rng.standard_normal((P, 10))
    new = lambda: math.sqrt(1 - truth) * rng.standard_normal((P, 10))
    layers = {
        f"layer {k}": features(math.sqrt(truth) * seen + new())
        for k in range(settings["layers"])
    }
    area = features(seen)
    found = sm.alignments({**layers, "area": area})
    best = found.best("area", random_state=rng)
    largest = max(found[pair].value for pair in found.pairs("area"))
    plain, score, _ = calibrated([*layers.values()], area, 199, rng)
    return [largest, best.value, best.stderr, plain, score]


def best(run):
    "The largest of many alignments that are the same."
    settings = run.settings["best"]
    one = partial(winner, settings, [run.seed, 3])
    drawn = np.array(run.repeat("best", one, settings["n_matrices"]), dtype=float)
    names = ("largest", "best", "stderr", "plain", "calibrated")
    return {name: mean(x) for name, x in zip(names, drawn.T)}


def corrected(pair, settings, seed, index):
    "One draw: the corrected value, the plain ratio, the error."
    rng = np.random.default_rng([*seed, index])
    found = sm.alignment(*pair.sample(*settings["shape"], rng))
    return [found.value, found.ratio, found.stderr]


def remainder(run):
    "The corrected alignment at few units and steep spectra."
    settings, found = run.settings["remainder"], []
    for k, exponent in enumerate(settings["exponents"]):
        pair = LinearPair(settings["dim"], math.pi / 4, exponent=exponent)
        one = partial(corrected, pair, settings, [run.seed, 4, k])
        drawn = run.repeat(f"exponent {exponent}", one, settings["n_matrices"])
        drawn = np.array(drawn, dtype=float)
        drawn = drawn[np.isfinite(drawn).all(axis=1)]
        part = {"exponent": exponent, "truth": pair.alignment(), "draws": len(drawn)}
        names = ("corrected", "ratio", "stderr")
        part |= {name: x["mean"] for name, x in zip(names, map(mean, drawn.T))}
        own = mean(drawn[:, 0])
        found.append(part | {"sd": own["sd"], "se": own["se"]})
    return found


def measure(run):
    "All parts."
    parts = (type_one, power, best, remainder)
    return {part.__name__: part(run) for part in parts}


if __name__ == "__main__":
    from common import main

    small = {name: {"n_matrices": 3} for name in SETTINGS}
    raise SystemExit(main(__file__, __doc__, measure, SETTINGS, SEED, quick=small))
