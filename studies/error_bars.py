"""Coverage of the intervals for moments on easy and hard processes.

`coverage` is the table and the figure of the chapter on error bars: *before* is the
interval of version 0.1, on the scale of the n-th root, *after* is that of
`spectral_moments.errors`.

`usable`, of the chapter on constants and the page on errors: an order is usable if its
relative standard error is small and no single unit causes most of it (`errors.usable`).
That selects: where strong rows are rare, the matrices without one have the smallest errors
and are the most wrong. Stored for each order: how often it is usable, how often the
interval contains the truth then, how many of the misses have no note on units that cause
the error, and both shares for other limits of what one unit may cause. The limits were
chosen on the first twelve processes and confirmed on the others.

`dimension`, of the chapter on error bars: the interval of the dimension by the call without
options, which removes the mean, on the same eighteen processes.

`sensitivity`, of the chapter on constants: two constants halved and doubled. Every matrix
is measured with all values of a constant, so that the differences have small errors.
"""

import sys
import warnings
from functools import partial
from unittest.mock import patch

import numpy as np
from common import Part, main
from scipy.special import ndtri

from spectral_moments import RBF, Linear, errors, estimate
from spectral_moments.diagnostics import influential_units
from spectral_moments.errors import (
    ErrorDistribution,
    error_distribution,
    moment_intervals,
    usable,
)

N_MAX, LEVEL, N_STORED = 4, 0.95, 3


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
    return found.values, *error_distribution(found.replicates)[:3], few


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


def measure_coverage(run):
    "All cases."
    cases = run.settings["cases"]
    return {
        "cases": {name: case_summary(run, name, **case) for name, case in cases.items()}
    }


# --- given usable -------------------------------------------------------------------------


def normal(rng, P, d):
    "Latent variables of the inputs."
    return rng.standard_normal((P, d))


def sparse(share):
    "Latent variables of which only a share is active."
    return lambda rng, P, d: (rng.random((P, d)) < share) * normal(rng, P, d) / share**0.5


def zipf(rng, P, d):
    "Latent variables of which number k is active with probability 1 / (k + 1)."
    p = 1 / np.arange(2, d + 2)
    return (rng.random((P, d)) < p) * normal(rng, P, d) / np.sqrt(p)


def rare_kind(share, distance):
    "Latent variables, and the variance of the first if one kind of inputs is far away."
    variance = 1 + distance**2 * share * (1 - share)

    def draw(rng, P, d):
        x = normal(rng, P, d)
        x[:, 0] += distance * ((rng.random(P) < share) - share)
        x[:, 0] /= variance**0.5
        return x

    return draw, variance


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
LATENT = {
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
N_CHOSEN = len(LATENT)  # the limits were chosen on these
RARE, RARE_VARIANCE = rare_kind(0.03, 8.0)
LATENT |= {
    "geometric": Latent(0.85 ** np.arange(40)),
    "Zipf latents": Latent(1 / np.arange(1.0, 21), zipf),
    "sparse geometric": Latent(0.9 ** np.arange(15), sparse(0.05)),
    "t5 both": Latent(np.ones(9), rows=STUDENT, columns=STUDENT),
    "rare columns": Latent(np.ones(9), columns=mixture(0.02, 8.0)),
    "rare kind": Latent([RARE_VARIANCE] + 5 * [1.0], RARE),
}
UNIT_SHARES = [1.0, 0.5, 0.25]  # of the variance that a single unit may cause
SIZES = {"30 x 40": (30, 40), "60 x 80": (60, 80), "120 x 160": (120, 160)}
N_USABLE = 3
USABLE = {"n_max": N_USABLE, "n_matrices": 100, "processes": list(LATENT), "sizes": SIZES}
USABLE |= {"unit_shares": UNIT_SHARES, "n_chosen": N_CHOSEN}


def one_usable(process, shape, seed, index):
    "What the table needs of one matrix."
    rng = np.random.default_rng([seed, index])
    est = estimate(LATENT[process].sample(*shape, rng), N_USABLE, n_jobs=1)
    noted = any("of the input error" in x or "of the feature error" in x for x in est.notes)
    numbers = [est.values, *est.interval(), est.usable, N_USABLE * [noted]]
    share = errors.error_distribution(est.replicates).largest_share
    numbers += [errors.usable(est.values, est.stderr, share > x) for x in UNIT_SHARES]
    return np.array(numbers, dtype=float)


def share_of(inside, where):
    "Share of matrices in a part of them, None if there are hardly any."
    return float(inside[where].mean()) if where.sum() > 9 else None


def cell(found, truth):
    "One process, size and order."
    values, low, high, good, noted, *rules = found.T
    inside, good = (low <= truth) & (truth <= high), good > 0
    missed = good & ~inside
    return {
        "usable": float(good.mean()),
        "coverage": float(inside.mean()),
        "given_usable": share_of(inside, good),
        "value_given_usable": share_of(values / truth, good),
        "missed": float(missed.mean()),
        "missed_without_note": float((missed & (noted == 0)).mean()),
        "rules": [[float((x > 0).mean()), float(((x > 0) & inside).mean())] for x in rules],
    }


def measure_usable(run):
    "All processes and sizes."
    cases = {}
    for name in run.settings["processes"]:
        truth = LATENT[name].moments(N_USABLE)
        for size, shape in run.settings["sizes"].items():
            one = lambda index, name=name, shape=shape: one_usable(
                name, shape, run.seed, index
            )
            found = run.repeat(f"{name}, {size}", one, run.settings["n_matrices"])
            drawn = np.array(found)
            orders = [cell(drawn[:, :, k], m) for k, m in enumerate(truth)]
            cases[f"{name}, {size}"] = {"process": name, "size": size, "orders": orders}
    return {"cases": cases}


# --- dimension ----------------------------------------------------------------------------

DIMENSION = {"n_matrices": 300, "processes": list(LATENT), "sizes": SIZES}


def one_dimension(process, shape, seed, index):
    "The dimension by the call without options, and the ends of its interval."
    rng = np.random.default_rng([seed, index])
    found = estimate(LATENT[process].sample(*shape, rng), n_jobs=1).dimension()
    return [found.value, *found.interval(LEVEL)]


def measure_dimension(run):
    "How often the interval holds the truth, where there is one; where it misses."
    warnings.simplefilter("ignore", RuntimeWarning)  # of two draws none may be determined
    cases = {}
    for name in run.settings["processes"]:
        first, second = LATENT[name].moments(2)
        truth = first**2 / second
        for size, shape in run.settings["sizes"].items():
            one = partial(one_dimension, name, shape, run.seed)
            drawn = run.repeat(f"{name}, {size}", one, run.settings["n_matrices"])
            drawn = np.array(drawn)
            known = ~np.isnan(drawn[:, 0])  # the others are reported as undetermined
            value, low, high = drawn[known].T
            cases[f"{name}, {size}"] = {
                "process": name,
                "size": size,
                "truth": truth,
                "undetermined": np.mean(~known),
                "median": np.median(value) / truth,
                "coverage": np.mean((low <= truth) & (truth <= high)),
                "below": np.mean(high < truth),
                "above": np.mean(low > truth),
                "no_upper_end": np.mean(np.isinf(high)),
            }
    return {"cases": cases}


# --- sensitivity --------------------------------------------------------------------------

SENSITIVITY = {
    "factors": [0.5, 1.0, 2.0],
    "n_matrices": 300,
    "processes": ["linear 5", "power law 1", "t5 rows", "lognormal"],
    "shape": [60, 80],
}


def measured(process, shape, seed, index):
    "Values, errors, acceleration and degrees of freedom of three moments."
    phi = LATENT[process].sample(*shape, np.random.default_rng([*seed, index]))
    est = estimate(phi, 3, n_jobs=1)
    return [est.values, *errors.error_distribution(est.replicates)[:3]]


def held(drawn, truth, factor=1.0):
    "Ends of the intervals with the acceleration times a factor; whether they hold."
    orders, ends = np.arange(1, len(truth) + 1), []
    for m, s, bend, degrees in drawn:
        distribution = errors.ErrorDistribution(s, factor * bend, degrees)
        ends.append(errors.moment_intervals(m, orders, distribution))
    low, high = np.moveaxis(np.array(ends), 1, 0)
    return low, high, (low <= truth) & (truth <= high)


def measure_sensitivity(run):
    "Coverage for each acceleration, and given usable for each limit, over processes."
    known, found = run.settings, {"acceleration": {}, "usable": {}}
    for k, process in enumerate(known["processes"]):
        one = partial(measured, process, known["shape"], [run.seed, 1, k])
        drawn = np.array(run.repeat(process, one, known["n_matrices"]), dtype=float)
        truth = LATENT[process].moments(3)
        for factor in run.settings["factors"]:
            low, high, inside = held(drawn, truth, factor)
            part = found["acceleration"].setdefault(str(factor), {})
            width = np.median(high - low, axis=0) / truth
            part[process] = {"coverage": inside.mean(0), "width": width}
            part[process]["above"] = (low > truth).mean(0)
            limit = factor * errors.MAX_RELATIVE_ERROR
            with patch.object(errors, "MAX_RELATIVE_ERROR", limit):
                good = np.array([errors.usable(m, s) for m, s, *_ in drawn])
            inside = held(drawn, truth)[2]
            given = [x[g].mean() if g.sum() > 9 else None for x, g in zip(inside.T, good.T)]
            part = found["usable"].setdefault(str(factor), {})
            part[process] = {"usable": good.mean(0), "coverage": given}
    return found


PARTS = {
    "coverage": Part(measure_coverage, SETTINGS, 7),
    "usable": Part(measure_usable, USABLE, 23),
    "dimension": Part(measure_dimension, DIMENSION, 29),
    "sensitivity": Part(measure_sensitivity, SENSITIVITY, 2041),
}

if __name__ == "__main__":
    sys.exit(main(__file__, __doc__, PARTS))
