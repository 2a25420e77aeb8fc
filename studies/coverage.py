"""Coverage of the intervals for moments, participation ratio and roots.

Writes results/coverage.json, the table and the figure of the chapter on uncertainty.
Takes about a quarter of an hour on two cores.
"""

import warnings

import numpy as np

from spectral_moments.partitions import all_cycles
from spectral_moments.rbf import RBF
from spectral_moments.recursion import increasing
from spectral_moments.uncertainty import (
    column_influences,
    interval,
    moment_covariance,
    moment_ratio,
    moment_roots,
    row_influences,
    usable,
)

SEED = 2027
N_MAX = 6
N_LOW = 4  # highest order of all_cycles, and of influences over several permutations
N_PERMUTATIONS = 4
N_STORED = 3  # matrices whose estimates are stored, for the check in the chapter
LEVELS = (0.9, 0.95)
SCALES = ("symmetric", "log", "root")
CASES = {
    "d3": dict(dim=3, kernel_cov=0.25, shape=(75, 150), n_matrices=2000),
    "d5": dict(dim=5, kernel_cov=0.25, shape=(300, 600), n_matrices=1000),
}
SETTINGS = {
    "n_max": N_MAX,
    "n_max_low": N_LOW,
    "n_permutations": N_PERMUTATIONS,
    "levels": LEVELS,
    "scales": SCALES,
    "cases": CASES,
}


def covariance(phi, n_max, **options):
    "Covariance of the estimates, from the influences."
    return moment_covariance(
        row_influences(phi, n_max, n_jobs=1, **options),
        column_influences(phi, n_max, n_jobs=1, **options),
    )


def estimates(process, shape, seed, index):
    "Estimates and covariances from matrix number `index`."
    phi = process.sample(*shape, np.random.default_rng([seed, index]))
    several = dict(n_permutations=N_PERMUTATIONS, random_state=index)
    return (
        increasing(phi, N_MAX, n_jobs=1),
        covariance(phi, N_MAX),
        increasing(phi, N_LOW, n_jobs=1, **several),
        covariance(phi, N_LOW, **several),
        all_cycles(phi, N_LOW),
    )


def standard_deviations(covariances):
    "Square roots of the diagonals, shape (matrices, orders)."
    return np.sqrt(np.einsum("tii->ti", covariances))


def share(inside):
    "Share of matrices, for each order."
    return np.mean(inside, axis=0).tolist()


def moment_coverage(values, errors, truth):
    "Coverage of the intervals by scale and level, and where they miss."
    found = {}
    for scale in SCALES:
        for level in LEVELS:
            ends = [
                interval(*pair, level=level, scale=scale) for pair in zip(values, errors)
            ]
            low, high = np.moveaxis(np.array(ends), 1, 0)
            found[f"{scale} {level}"] = {
                "coverage": share((low <= truth) & (truth <= high)),
                "below": share(high < truth),
                "above": share(low > truth),
            }
    good = np.array([usable(*pair) for pair in zip(values, errors)])
    return {
        "bias": (values.mean(0) / truth - 1).tolist(),
        "relative_sd": (values.std(0, ddof=1) / truth).tolist(),
        "stderr_over_sd": (np.sqrt((errors**2).mean(0)) / values.std(0, ddof=1)).tolist(),
        "median_stderr_over_sd": (np.median(errors, 0) / values.std(0, ddof=1)).tolist(),
        "usable": share(good),
        "negative": share(values < 0),
        "intervals": found,
    }


def derived_coverage(values, covariances, truth):
    "Coverage at 90% for the participation ratio and the roots; NaN counts as a miss."
    z = 1.6448536269514722
    exact = truth[0] ** 2 / truth[1]
    found = np.array([moment_ratio(*pair, (2, -1)) for pair in zip(values, covariances)])
    ratio, error = found.T
    errors = standard_deviations(covariances)
    roots, root_errors = np.moveaxis(
        np.array([moment_roots(*pair) for pair in zip(values, errors)]), 1, 0
    )
    exact_roots = truth ** (1 / np.arange(1, len(truth) + 1))
    return {
        "participation_ratio": {
            "truth": exact,
            "bias": ratio.mean() / exact - 1,
            "relative_sd": ratio.std(ddof=1) / exact,
            "stderr_over_sd": np.sqrt((error**2).mean()) / ratio.std(ddof=1),
            "symmetric": np.mean(abs(ratio - exact) <= z * error),
            "log": np.mean(abs(np.log(ratio / exact)) <= z * error / ratio),
        },
        "roots": {
            "coverage": share(abs(roots - exact_roots) <= z * root_errors),
            "nan": share(np.isnan(roots)),
        },
    }


def summary(run, name, dim, kernel_cov, shape, n_matrices):
    "One process: everything that the chapter shows."
    process = RBF(dim, kernel_cov=kernel_cov)
    truth = process.moments(N_MAX)
    one = lambda index: estimates(process, shape, run.seed, index)
    drawn = run.repeat(name, one, n_matrices)
    values, covariances, permuted, permuted_covariances, every = (
        np.array(part) for part in zip(*drawn)
    )
    errors, low = standard_deviations(covariances), truth[:N_LOW]
    permuted_errors = standard_deviations(permuted_covariances)
    return {
        "dim": dim,
        "kernel_cov": kernel_cov,
        "shape": shape,
        "n_matrices": n_matrices,
        "truth": truth.tolist(),
        "increasing": moment_coverage(values, errors, truth),
        "permuted": moment_coverage(permuted, permuted_errors, low),
        "all_cycles": moment_coverage(every, permuted_errors, low),
        "derived": derived_coverage(values, covariances, truth),
        "first_matrices": {
            "increasing": values[:N_STORED].tolist(),
            "stderr": errors[:N_STORED].tolist(),
        },
    }


def measure(run):
    "Both processes."
    warnings.simplefilter("ignore", RuntimeWarning)  # negative estimates are counted
    cases = run.settings["cases"]
    return {"cases": {name: summary(run, name, **case) for name, case in cases.items()}}


QUICK = {"cases": {"d3": {"n_matrices": 4}, "d5": {"shape": (30, 60), "n_matrices": 4}}}

if __name__ == "__main__":
    from common import main

    raise SystemExit(main(__file__, __doc__, measure, SETTINGS, SEED, quick=QUICK, jobs=2))
