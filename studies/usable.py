"""Are the orders that are called usable covered? Twelve processes, three sizes.

Writes results/usable.json, a figure of the chapter on constants. An order is usable if its
relative standard error is small (`errors.usable`). That selects: where strong rows are
rare, the matrices without one have the smallest errors and are the most wrong. Stored for
each order: how often it is usable, how often the interval contains the truth then, and how
many of the misses have no note on units that cause the error. Five minutes on one core.
"""

import warnings

import numpy as np

from spectral_moments import EstimateWarning, estimate

SEED, N_MAX = 23, 3


def normal(rng, P, d):
    "Latent variables of the inputs."
    return rng.standard_normal((P, d))


def sparse(share):
    "Latent variables of which only a share is active."
    return lambda rng, P, d: (rng.random((P, d)) < share) * normal(rng, P, d) / share**0.5


def mixture(share, gain):
    "Gains of which a share is larger, and their mean square."
    draw = lambda rng, P: np.where(rng.random(P) < share, gain, 1.0)
    return draw, 1 - share + share * gain**2


ONES = (lambda rng, P: np.ones(P), 1.0)
STUDENT = (lambda rng, P: np.sqrt(5 / rng.chisquare(5, P)), 5 / 3)
LOGNORMAL = (lambda rng, P: np.exp(0.5 * rng.standard_normal(P)), np.exp(0.5))


class Latent:
    "Features linear in latent variables of zero mean, in rows and columns of random gains."

    def __init__(self, eigenvalues, latents=normal, rows=ONES, columns=ONES):
        self.eigenvalues, self.latents = np.asarray(eigenvalues, dtype=float), latents
        self.rows, self.columns = rows, columns

    def sample(self, P, Q, rng):
        d = len(self.eigenvalues)
        x = self.latents(rng, P, d) * self.rows[0](rng, P)[:, None]
        w = rng.standard_normal((Q, d)) * self.columns[0](rng, Q)[:, None]
        return x * np.sqrt(self.eigenvalues) @ w.T

    def moments(self, n_max):
        n = np.arange(1, n_max + 1)
        gain = self.rows[1] * self.columns[1]
        return gain**n * (self.eigenvalues ** n[:, None]).sum(axis=1)


class Tuning:
    "Tuning curves of one shape on a circle: every input is like the others."

    width = 4.0

    def sample(self, P, Q, rng):
        angle = rng.uniform(0, 2 * np.pi, (P, 1)) - rng.uniform(0, 2 * np.pi, (1, Q))
        return np.exp(self.width * (np.cos(angle) - 1))

    def moments(self, n_max):
        curve = np.exp(self.width * (np.cos(np.arange(512) * 2 * np.pi / 512) - 1))
        eigenvalues = abs(np.fft.fft(curve) / 512)[1:] ** 2  # the mean is removed
        return (eigenvalues ** np.arange(1, n_max + 1)[:, None]).sum(axis=1)


RANK = np.arange(1.0, 201)
PROCESSES = {
    "linear 5": Latent(np.ones(5)),
    "linear 20": Latent(np.ones(20)),
    "power law 1": Latent(1 / RANK),
    "power law 0.7": Latent(RANK**-0.7),
    "spike": Latent([12.0] + 40 * [1.0]),
    "sparse latents": Latent(np.ones(10), sparse(0.1)),
    "t5 rows": Latent(np.ones(5), rows=STUDENT),
    "strong rows": Latent(np.ones(5), rows=mixture(0.05, 4.0)),
    "rare rows": Latent(np.ones(5), rows=mixture(0.02, 8.0)),
    "strong columns": Latent(np.ones(5), columns=mixture(0.05, 4.0)),
    "lognormal": Latent(np.ones(5), rows=LOGNORMAL, columns=LOGNORMAL),
    "tuning": Tuning(),
}
SIZES = {"30 x 40": (30, 40), "60 x 80": (60, 80), "120 x 160": (120, 160)}
SETTINGS = {"n_max": N_MAX, "n_matrices": 100, "processes": list(PROCESSES), "sizes": SIZES}


def one_matrix(process, shape, seed, index):
    "What the table needs of one matrix."
    rng = np.random.default_rng([seed, index])
    est = estimate(PROCESSES[process].sample(*shape, rng), N_MAX, n_jobs=1)
    noted = any("of the input error" in x or "of the feature error" in x for x in est.notes)
    numbers = est.values, *est.interval(), est.usable, N_MAX * [noted]
    return np.array(numbers, dtype=float)


def share(inside, where):
    "Share of matrices in a part of them, None if there are hardly any."
    return float(inside[where].mean()) if where.sum() > 9 else None


def cell(found, truth):
    "One process, size and order."
    values, low, high, good, noted = found.T
    inside, good = (low <= truth) & (truth <= high), good > 0
    missed = good & ~inside
    return {
        "usable": float(good.mean()),
        "coverage": float(inside.mean()),
        "given_usable": share(inside, good),
        "value_given_usable": share(values / truth, good),
        "missed": float(missed.mean()),
        "missed_without_note": float((missed & (noted == 0)).mean()),
    }


def measure(run):
    "All processes and sizes."
    warnings.simplefilter("ignore", EstimateWarning)
    cases = {}
    for name in run.settings["processes"]:
        truth = PROCESSES[name].moments(N_MAX)
        for size, shape in run.settings["sizes"].items():
            one = lambda index, name=name, shape=shape: one_matrix(
                name, shape, run.seed, index
            )
            found = run.repeat(f"{name}, {size}", one, run.settings["n_matrices"])
            drawn = np.array(found)
            orders = [cell(drawn[:, :, k], m) for k, m in enumerate(truth)]
            cases[f"{name}, {size}"] = {"process": name, "size": size, "orders": orders}
    return {"cases": cases}


QUICK = {"n_matrices": 2}

if __name__ == "__main__":
    from common import main

    raise SystemExit(main(__file__, __doc__, measure, SETTINGS, SEED, quick=QUICK))
