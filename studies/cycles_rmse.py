"""Root-mean-square errors: the increasing estimate over k orders, and all cycles.

Writes results/cycles_rmse.json, the data of a figure in the chapter on partitions.
"""

import json
import platform
from pathlib import Path

import numpy as np

from spectral_moments.partitions import all_cycles
from spectral_moments.rbf import RBF
from spectral_moments.recursion import increasing

SEED = 2026
N_MATRICES = 600
N_MAX = 5
N_STORED = 3  # matrices whose single estimates are stored, for the check in the chapter
PERMUTATIONS = (1, 16, 256)
CASES = {
    r"scarce: $d=10$, $\Sigma=I$, $30\times 60$": dict(
        dim=10, kernel_cov=1.0, shape=(30, 60)
    ),
    r"plentiful: $d=3$, $\Sigma=I/4$, $75\times 150$": dict(
        dim=3, kernel_cov=0.25, shape=(75, 150)
    ),
}


def estimates(process, shape, index):
    "All estimates from matrix number `index`."
    phi = process.sample(*shape, np.random.default_rng([SEED, index]))
    found = {
        str(k): increasing(phi, N_MAX, n_permutations=k, random_state=index)
        for k in PERMUTATIONS
    }
    return found | {"all_cycles": all_cycles(phi, N_MAX)}


def run(dim, kernel_cov, shape):
    "One process: errors relative to the truth, standard errors, first estimates."
    process = RBF(dim, kernel_cov=kernel_cov)
    truth = process.moments(N_MAX)
    drawn = [estimates(process, shape, index) for index in range(N_MATRICES)]
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


if __name__ == "__main__":
    output = {
        "command": "python studies/cycles_rmse.py",
        "seed": SEED,
        "settings": {
            "n_matrices": N_MATRICES,
            "n_max": N_MAX,
            "permutations": PERMUTATIONS,
        },
        "versions": {"python": platform.python_version(), "numpy": np.__version__},
        "cases": {title: run(**case) for title, case in CASES.items()},
    }
    path = Path(__file__).parents[1] / "results" / "cycles_rmse.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(output, indent=1) + "\n")
