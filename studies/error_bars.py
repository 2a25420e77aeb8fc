"""Coverage of the intervals for moments on easy and hard processes, before and after.

Writes results/error_bars.json, the table and the figure of the chapter on error bars.
*Before* is the interval of version 0.1, on the scale of the n-th root; *after* is that of
`spectral_moments.errors`. Takes about a quarter of an hour on one core.
"""

import warnings

import numpy as np
from scipy.special import ndtri

from spectral_moments import RBF, EstimateWarning, Linear, estimate
from spectral_moments.diagnostics import influential_units
from spectral_moments.errors import (
    ErrorDistribution,
    error_distribution,
    moment_intervals,
    usable,
)

SEED, N_MAX, LEVEL, N_STORED = 7, 4, 0.95, 3


class Gains:
    "Linear features of five dimensions, in rows of random gains."

    def __init__(self, draw, mean_square):
        self.linear, self.draw, self.mean_square = Linear(5), draw, mean_square

    def sample(self, P, Q, rng):
        return self.draw(rng, P)[:, None] * self.linear.sample(P, Q, rng)

    def moments(self, n_max):
        return self.mean_square ** np.arange(1, n_max + 1) * self.linear.moments(n_max)


def power_sums(eigenvalues, n_max, multiplicity=1):
    "Moments of a spectrum."
    return np.array([(multiplicity * eigenvalues**n).sum() for n in range(1, n_max + 1)])


class Clusters:
    "Linear features of inputs near one of four centres, the strongest of them rare."

    shares, spread = np.array([0.5, 0.3, 0.15, 0.05]), 0.3
    centres = np.diag([1.0, 1.5, 2.0, 4.0, 0.0, 0.0])[:4]

    def sample(self, P, Q, rng):
        x = self.centres[rng.choice(4, P, p=self.shares)]
        x = x + self.spread * rng.standard_normal((P, 6))
        return x @ rng.standard_normal((6, Q))

    def moments(self, n_max):
        covariance = (self.centres.T * self.shares) @ self.centres
        return power_sums(
            np.linalg.eigvalsh(covariance + self.spread**2 * np.eye(6)), n_max
        )


class Spikes:
    "Poisson counts with rates 1.5 (1 + cos(w x + b)), inputs in the plane; n >= 2 only."

    rate = 1.5

    def sample(self, P, Q, rng):
        x, w = rng.standard_normal((P, 2)), rng.standard_normal((2, Q))
        b = rng.uniform(0, 2 * np.pi, Q)
        return rng.poisson(self.rate * (1 + np.cos(x @ w + b))).astype(float)

    def moments(self, n_max):
        "Of the rates, by quadrature."
        points, p = np.polynomial.hermite_e.hermegauss(30)
        x = np.stack(np.meshgrid(points, points, indexing="ij"), -1).reshape(-1, 2)
        p = np.outer(p, p).ravel() / p.sum() ** 2
        distance = ((x[:, None] - x[None]) ** 2).sum(-1)
        k = self.rate**2 * (1 + 0.5 * np.exp(-distance / 2))
        return power_sums(np.linalg.eigvalsh(k * np.sqrt(np.outer(p, p))), n_max)


class Rectified:
    "Random features relu(x . w) with normal inputs and weights in three dimensions."

    def sample(self, P, Q, rng):
        return np.maximum(rng.standard_normal((P, 3)) @ rng.standard_normal((3, Q)), 0)

    def moments(self, n_max):
        "By the expansion of the kernel |x| |y| kappa(cos) in Legendre polynomials."
        nodes, weights = np.polynomial.legendre.leggauss(300)
        angle, weights, degree = (nodes + 1) * np.pi / 2, weights * np.pi / 2, np.arange(60)
        kappa = (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / (2 * np.pi)
        polynomials = np.polynomial.legendre.legvander(np.cos(angle), 59)
        eigenvalues = 1.5 * (weights * np.sin(angle) * kappa) @ polynomials
        return power_sums(eigenvalues, n_max, 2 * degree + 1)


PROCESSES = {
    "linear": Linear(5),
    "rbf3": RBF(3, kernel_cov=0.25),
    "rbf5": RBF(5, kernel_cov=0.25),
    "rbf3wide": RBF(3, kernel_cov=1.0),
    "rank2": Linear(2),
    "t5": Gains(lambda rng, P: np.sqrt(5 / rng.chisquare(5, P)), 5 / 3),
    "lognormal": Gains(lambda rng, P: np.exp(0.5 * rng.standard_normal(P)), np.exp(0.5)),
    "mixture": Gains(lambda rng, P: np.where(rng.random(P) < 0.05, 4.0, 1.0), 1.75),
    "clusters": Clusters(),
    "spikes": Spikes(),
    "relu": Rectified(),
}
SHAPES = {
    (60, 80): list(PROCESSES),
    (20, 30): list(PROCESSES),
    (150, 100): ["linear", "rbf5", "rank2", "t5", "mixture", "spikes"],
}
SETTINGS = {
    "n_max": N_MAX,
    "level": LEVEL,
    "cases": {
        f"{name} {shape[0]} x {shape[1]}": dict(process=name, shape=shape, n_matrices=300)
        for shape, names in SHAPES.items()
        for name in names
    },
}


def summary(found):
    "What the intervals need of one `Estimate`."
    few = any(influential_units(x, kind) for kind, x in found.replicates.items())
    return found.values, *error_distribution(found.replicates), few


def one_matrix(process, shape, seed, index):
    "Estimate, standard error, acceleration, degrees, and whether few carry the error."
    phi = PROCESSES[process].sample(*shape, np.random.default_rng([seed, index]))
    return summary(estimate(phi, N_MAX, center=False, random_state=index, n_jobs=1))


def root_interval(values, stderr, level):
    "The interval of version 0.1: symmetric on the scale of the n-th root."
    n, z = np.arange(1, len(values) + 1), ndtri((1 + level) / 2)
    far = stderr < values
    step = z / n * np.divide(stderr, values, where=far, out=np.ones(len(n)))
    low = values * np.sign(1 - step) * abs(1 - step) ** n
    low = np.where(far, low, values - z * stderr)
    high = values + stderr * ((1 + z / n) ** n - 1)
    return low, np.where(far, values * (1 + step) ** n, high)


def share(inside):
    "Share of matrices, for each order."
    return np.mean(inside, axis=0).tolist()


def intervals(ends, truth, good):
    "How often intervals hold the truth, where they miss, and how wide they are."
    low, high = np.moveaxis(np.array(ends), 1, 0)
    inside = (low <= truth) & (truth <= high)
    number = good.sum(axis=0)
    return {
        "coverage": share(inside),
        "below": share(high < truth),
        "above": share(low > truth),
        "width": (np.median(high - low, axis=0) / truth).tolist(),
        "usable": [
            float(inside[good[:, n], n].mean()) if number[n] else None
            for n in range(len(number))
        ],
    }


def case_summary(run, name, process, shape, n_matrices):
    "One process at one size."
    truth = PROCESSES[process].moments(N_MAX)
    one = lambda index: one_matrix(process, shape, run.seed, index)
    drawn = run.repeat(name, one, n_matrices)
    values, errors, acceleration, degrees, few = (np.array(x) for x in zip(*drawn))
    sd = values.std(axis=0, ddof=1)
    old = (values > 0) & (errors < values)  # the rule of version 0.1
    new = np.array([usable(*pair) for pair in zip(values, errors)])
    before = [root_interval(*pair, LEVEL) for pair in zip(values, errors)]
    orders, after = np.arange(1, N_MAX + 1), []
    for m, *how in zip(values, errors, acceleration, degrees):
        after.append(moment_intervals(m, orders, ErrorDistribution(*how), 1 - LEVEL))
    return {
        "process": process,
        "shape": shape,
        "n_matrices": n_matrices,
        "truth": truth.tolist(),
        "bias": (values.mean(0) / truth - 1).tolist(),
        "relative_sd": (sd / truth).tolist(),
        "stderr_over_sd": (np.sqrt((errors**2).mean(0)) / sd).tolist(),
        "usable_before": share(old),
        "usable_after": share(new),
        "few_carry": float(few.mean()),
        "before": intervals(before, truth, old),
        "after": intervals(after, truth, new),
        "first_matrices": {
            "values": values[:N_STORED].tolist(),
            "stderr": errors[:N_STORED].tolist(),
        },
    }


def measure(run):
    "All cases."
    warnings.simplefilter("ignore", EstimateWarning)  # unusable orders are counted
    cases = run.settings["cases"]
    return {
        "cases": {name: case_summary(run, name, **case) for name, case in cases.items()}
    }


QUICK = {"cases": {name: {"n_matrices": 2} for name in SETTINGS["cases"]}}

if __name__ == "__main__":
    from common import main

    raise SystemExit(main(__file__, __doc__, measure, SETTINGS, SEED, quick=QUICK))
