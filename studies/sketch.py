"""How large is the standard error from a sample of rows and columns, against the truth?

python studies/sketch.py     writes results/sketch.json, in about ten minutes on one core
"""

import numpy as np

from spectral_moments.rbf import RBF
from spectral_moments.recursion import increasing
from spectral_moments.scale import sampled_covariance

SETTINGS = {
    "process": "RBF(5, kernel_cov=0.25)",
    "shape": [1000, 1000],
    "n_max": 5,
    "samples": [125, 250, 500, 1000],
    "n_matrices": 60,
}
SEED = 7


def one_matrix(seed, settings, n_jobs=1):
    "Estimates from one matrix, and its standard errors from samples of each size."
    rng = np.random.default_rng(seed)
    shape, n_max = settings["shape"], settings["n_max"]
    phi = RBF(5, kernel_cov=0.25).sample(*shape, random_state=rng)
    order = [rng.permutation(size) for size in shape]
    errors = []
    for size in settings["samples"]:
        sample = phi[np.ix_(*(np.sort(which[:size]) for which in order))]
        covariance = sampled_covariance(sample, shape, n_max, n_jobs=n_jobs)
        errors.append(np.sqrt(np.diag(covariance)))
    return increasing(phi, n_max, n_jobs=n_jobs), np.array(errors)


def measure(run):
    "Estimates and errors of every matrix, with a few digits."
    one = lambda index: one_matrix([run.seed, index], run.settings)
    found = run.repeat("matrices", one, run.settings["n_matrices"])
    values, errors = (np.array(part) for part in zip(*found))
    return {
        "truth": RBF(5, kernel_cov=0.25).moments(run.settings["n_max"]).tolist(),
        "values": [[float(f"{x:.6g}") for x in row] for row in values],
        "errors": [[[float(f"{x:.4g}") for x in e] for e in row] for row in errors],
    }


QUICK = {"shape": [60, 60], "samples": [20, 40], "n_matrices": 3}

if __name__ == "__main__":
    from common import main

    raise SystemExit(
        main(__file__, __doc__, measure, SETTINGS, SEED, quick=QUICK, indent=None)
    )
