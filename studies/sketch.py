"""How large is the standard error from a sample of rows and columns, against the truth?

python studies/sketch.py     writes results/sketch.json, in about ten minutes on one core
"""

import json
import platform
from pathlib import Path

import numpy as np

import spectral_moments
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
PATH = Path(__file__).parent.parent / "results" / "sketch.json"


def one_matrix(seed, n_jobs=1):
    "Estimates from one matrix, and its standard errors from samples of each size."
    rng = np.random.default_rng([SEED, seed])
    shape, n_max = SETTINGS["shape"], SETTINGS["n_max"]
    phi = RBF(5, kernel_cov=0.25).sample(*shape, random_state=rng)
    order = [rng.permutation(size) for size in shape]
    errors = []
    for size in SETTINGS["samples"]:
        sample = phi[np.ix_(*(np.sort(which[:size]) for which in order))]
        covariance = sampled_covariance(sample, shape, n_max, n_jobs=n_jobs)
        errors.append(np.sqrt(np.diag(covariance)))
    return increasing(phi, n_max, n_jobs=n_jobs), np.array(errors)


if __name__ == "__main__":
    found = []
    for seed in range(SETTINGS["n_matrices"]):
        found.append(one_matrix(seed))
        print(seed + 1, "of", SETTINGS["n_matrices"], flush=True)
    values, errors = (np.array(part) for part in zip(*found))
    result = {
        "command": "python studies/sketch.py",
        "settings": SETTINGS,
        "seed": SEED,
        "versions": {
            "spectral_moments": spectral_moments.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "truth": RBF(5, kernel_cov=0.25).moments(SETTINGS["n_max"]).tolist(),
        "values": [[float(f"{x:.6g}") for x in row] for row in values],
        "errors": [[[float(f"{x:.4g}") for x in e] for e in row] for row in errors],
    }
    PATH.write_text(json.dumps(result) + "\n")
