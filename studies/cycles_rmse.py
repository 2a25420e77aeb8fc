"""Root-mean-square errors: the increasing estimate over k orders, and all cycles.

Writes results/cycles_rmse.json, the data of a figure in the chapter on partitions.
"""

import numpy as np

from spectral_moments.estimators import all_cycles, increasing
from spectral_moments.processes import RBF

SEED = 2026
N_MAX = 4
N_STORED = 3  # matrices whose single estimates are stored, for the check in the chapter
PERMUTATIONS = (1, 16, 256)
SETTINGS = {"n_matrices": 600, "n_max": N_MAX, "permutations": PERMUTATIONS}
CASES = {
    r"scarce: $d=10$, $\Sigma=I$, $30\times 60$": dict(
        dim=10, kernel_cov=1.0, shape=(30, 60)
    ),
    r"plentiful: $d=3$, $\Sigma=I/4$, $75\times 150$": dict(
        dim=3, kernel_cov=0.25, shape=(75, 150)
    ),
}


def estimates(process, shape, seed, index):
    "All estimates from matrix number `index`."
    phi = process.sample(*shape, np.random.default_rng([seed, index]))
    found = {
        str(k): increasing(phi, N_MAX, n_permutations=k, random_state=index)
        for k in PERMUTATIONS
    }
    return found | {"all_cycles": all_cycles(phi, N_MAX)}


def summary(run, title, dim, kernel_cov, shape):
    "One process: errors relative to the truth, standard errors, first estimates."
    process = RBF(dim, kernel_cov=kernel_cov)
    truth = process.moments(N_MAX)
    one = lambda index: estimates(process, shape, run.seed, index)
    drawn = run.repeat(title, one, run.settings["n_matrices"])
    samples = {
        method: np.array([estimate[method] for estimate in drawn]) for method in drawn[0]
    }
    results = {}
    for method, sample in samples.items():
        error = sample / truth - 1
        results[method] = {
            "bias": error.mean(0).tolist(),
            "bias_se": (error.std(0, ddof=1) / len(error) ** 0.5).tolist(),
            "mse": (error**2).mean(0).tolist(),
            "mse_se": ((error**2).std(0, ddof=1) / len(error) ** 0.5).tolist(),
        }
    first = {method: sample[:N_STORED].tolist() for method, sample in samples.items()}
    return {
        "dim": dim,
        "kernel_cov": kernel_cov,
        "shape": shape,
        "truth": truth.tolist(),
        "results": results,
        "first_matrices": first,
    }


def measure(run):
    "Both processes."
    return {"cases": {title: summary(run, title, **case) for title, case in CASES.items()}}


if __name__ == "__main__":
    from common import main

    raise SystemExit(
        main(__file__, __doc__, measure, SETTINGS, SEED, quick={"n_matrices": 3})
    )
