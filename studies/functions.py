"""Functions of the spectrum: bias, spread and coverage on processes that guided no choice.

The table of the chapter on functions of the spectrum: the value from the sample's
eigenvalues, the combination of random halves, the eigenvalues recovered from moments, and
`spectral_function`. The constants of the method were chosen on the processes in CHOSEN; the
table is of the others.
"""

import math
import sys
import warnings
from functools import partial

import numpy as np
from common import Part, main

import spectral_moments as sm
from spectral_moments.processes import ReLU
from spectral_moments.spectrum import functions

SEED = 4211
SHAPES = {"60 x 90": (60, 90), "120 x 180": (120, 180), "240 x 360": (240, 360)}
SETTINGS = {"n_matrices": 40}
HALVES = 4  # random halves of the combination
CHOSEN = (
    "20 equal eigenvalues; power laws 0.7, 1, 1.5, 2.5, and 1 that ends at rank 200; "
    "exponential over 8 ranks; 1 large and 50 small; power law 1.5 with heavy tails, with "
    "signs and sparse loadings; power law 1 in two noisy trials; RBF(2), RBF(5), ReLU(5)"
)


class Latents:
    "phi(x, w) = sum of sqrt(lambda_l) x_l w_l with latents of any law, and noise."

    def __init__(self, spectrum, latent=None, loading=None, *, tails=None, noise=0.0):
        self.spectrum, self.tails, self.noise = np.asarray(spectrum), tails, noise
        normal = lambda rng, shape: rng.standard_normal(shape)
        self.latent, self.loading = latent or normal, loading or normal

    def eigenvalues(self):
        return self.spectrum

    def sample(self, P, Q, rng):
        x = self.latent(rng, (P, len(self.spectrum))) * np.sqrt(self.spectrum)
        phi = x @ self.loading(rng, (Q, len(self.spectrum))).T
        if self.tails:  # a factor in every row, of mean square one
            phi *= np.sqrt((self.tails - 2) / rng.chisquare(self.tails, (P, 1)))
        if not self.noise:
            return phi
        size = math.sqrt(self.noise * self.spectrum.sum())
        return phi + size * rng.standard_normal((2, P, Q))


class Known:
    "A process of the library, with so many of its eigenvalues."

    def __init__(self, process, count):
        self.process, self.count = process, count

    def eigenvalues(self):
        return self.process.eigenvalues(self.count)

    def sample(self, P, Q, rng):
        return self.process.sample(P, Q, rng)


def signs(rng, shape):
    "Latents that are on or off."
    return rng.choice([-1.0, 1.0], shape)


def sparse(rng, shape):
    "Loadings of which nine in ten vanish."
    return rng.standard_normal(shape) * (rng.random(shape) < 0.1) * math.sqrt(10)


def power(exponent, rank):
    "Eigenvalues that fall like a power."
    return np.arange(1.0, rank + 1) ** -exponent


PROCESSES = {
    "60 equal eigenvalues": Latents(np.ones(60)),
    "5 large, 100 small": Latents(np.append(np.ones(5), np.full(100, 0.05))),
    "exponential": Latents(np.exp(-np.arange(400) / 25)),
    "power law 0.85": Latents(power(0.85, 4000)),
    "power law 1.2": Latents(power(1.2, 2000)),
    "power law 2": Latents(power(2.0, 1000)),
    "power law 1.2, heavy tails": Latents(power(1.2, 2000), tails=8),
    "power law 1, signs and sparse loadings": Latents(power(1.0, 800), signs, sparse),
    "power law 1.2, two noisy trials": Latents(power(1.2, 2000), noise=0.5),
    "RBF(3)": Known(sm.RBF(3), 30_000),
    "RBF(8), wide": Known(sm.RBF(8, kernel_cov=8.0), 200_000),
    "ReLU(10)": Known(ReLU(10), 200_000),
}
RIDGE = 0.01  # of the trace
NAMES = ("effective_rank", "rankme", "nuclear", "ridge")


def plain(s, ridge=None):
    "All functions of some eigenvalues."
    s = s[s > 0]
    ridge = RIDGE * s.sum() if ridge is None else ridge
    p, q = s / s.sum(), np.sqrt(s) / np.sqrt(s).sum()
    entropy = lambda p: math.exp(-(p * np.log(p)).sum())
    numbers = entropy(p), entropy(q), np.sqrt(s).sum(), (s / (s + ridge)).sum()
    return np.array(numbers)


def of_sample(phi, ridge):
    "All functions of the sample's eigenvalues."
    phi = phi.mean(axis=0) if phi.ndim == 3 else phi
    return plain(np.linalg.svd(phi, compute_uv=False) ** 2 / phi.size, ridge)


def of_halves(phi, ridge, rng):
    "The combination 4 f(P, Q) - 2 f(P/2, Q) - 2 f(P, Q/2) + f(P/2, Q/2)."
    phi = phi.mean(axis=0) if phi.ndim == 3 else phi
    found, (P, Q) = 4 * of_sample(phi, ridge), phi.shape
    for _ in range(HALVES):
        rows, columns = rng.permutation(P)[: P // 2], rng.permutation(Q)[: Q // 2]
        some = 2 * of_sample(phi[rows], ridge) + 2 * of_sample(phi[:, columns], ridge)
        found = found - (some - of_sample(phi[np.ix_(rows, columns)], ridge)) / HALVES
    return found


def measured(process, shape, ridge, seed, place, index):
    "Every method's values for one matrix, and the intervals of ours."
    rng = np.random.default_rng([seed, place, index])
    phi = process.sample(*shape, rng)
    est = sm.estimate(phi, 4, center=False, trials=phi.ndim == 3)
    recovered = plain(sm.feasible(est).eigenvalues(), ridge)
    curve = functions.operator_curve(np.atleast_3d(phi.T).T, False)
    asked = ("effective_rank", "rankme", np.sqrt, ("ridge", ridge))
    ours = [functions.evaluate_curve(curve, f) for f in asked]
    return {
        "sample": of_sample(phi, ridge),
        "halves": of_halves(phi, ridge, rng),
        "recovered": recovered,
        "value": [q.value for q in ours],
        "interval": [q.interval() for q in ours],
        "error": [q.stderr / q.value for q in ours],
        "note": [len(q.notes) for q in ours],
    }


def summary(parts, truth):
    """Means, spreads and coverage in units of the truth.

    Where `spectral_function` gives bounds and no value, there is nothing to compare: all
    methods are compared on the matrices with a value, and on all if there is none.
    """
    collect = lambda key: np.array([part[key] for part in parts], dtype=float)
    given = np.isfinite(collect("value"))
    compared, found = given | ~given.any(axis=0), {"given": given.mean(axis=0)}
    for name in ("sample", "halves", "recovered", "value"):
        x = np.where(compared, collect(name) / truth, np.nan)
        found[name] = dict(mean=np.nanmean(x, axis=0), spread=np.nanstd(x, axis=0, ddof=1))
        found[name]["error"] = np.sqrt(np.nanmean((x - 1) ** 2, axis=0))
        found[name]["distance"] = np.nanmean(abs(np.log(np.maximum(x, 1e-9))), axis=0)
    off = {key: collect(key) / truth - 1 for key in ("value", "sample")}
    more = off["value"] ** 2 - off["sample"] ** 2  # paired: of the same matrices
    spread = np.nanstd(more, axis=0, ddof=1) / np.sqrt(np.maximum(given.sum(axis=0), 1))
    found["worse"] = np.nanmean(more, axis=0) / np.maximum(spread, 1e-300)
    low, high = np.moveaxis([part["interval"] for part in parts], -1, 0).astype(float)
    found["coverage"] = ((low <= truth) & (truth <= high)).mean(axis=0)
    found["stderr"] = np.nanmean(collect("error"), axis=0)
    found["noted"] = collect("note").mean(axis=0)
    return found


def measure(run):
    "The table."
    warnings.filterwarnings("ignore", "Mean of empty|Degrees of freedom", RuntimeWarning)
    table = {}
    for k, (name, process) in enumerate(PROCESSES.items()):
        eigenvalues = process.eigenvalues()
        truth, ridge = plain(eigenvalues), RIDGE * eigenvalues.sum()
        table[name] = {"truth": truth, "shapes": {}}
        for j, (label, shape) in enumerate(SHAPES.items()):
            one = partial(measured, process, shape, ridge, run.seed, 10 * k + j)
            parts = run.repeat(f"{name}, {label}", one, run.settings["n_matrices"])
            table[name]["shapes"][label] = summary(parts, truth)
    return {"functions": NAMES, "ridge": RIDGE, "chosen_on": CHOSEN, "table": table}


PARTS = {"functions": Part(measure, SETTINGS, SEED)}

if __name__ == "__main__":
    sys.exit(main(__file__, __doc__, PARTS))
