"""The paper's noise study: four estimators in five situations, P = 75, Q = 150 and 15.

Writes results/noise.json, the data of a figure in the chapter on trials.
"""

import json
import os
import platform
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # many small products

import numba
import numpy as np
import scipy

from spectral_moments.rbf import RBF
from spectral_moments.trials import (
    increasing,
    kong_valiant,
    naive,
    smoothed_noise,
)

SEED = 2027
N_MATRICES = 4000
N_MAX = 7
N_STORED = 2  # matrices whose single estimates are stored, for the check in the chapter
DIM, KERNEL_COV = 3, 0.25
SHAPES = ((75, 150), (75, 15))
ESTIMATORS = {
    "naive": lambda trials: naive(trials, N_MAX),
    "kv_row": lambda trials: kong_valiant(trials, N_MAX, sampled="rows"),
    "kv_col": lambda trials: kong_valiant(trials, N_MAX, sampled="columns"),
    "increasing": lambda trials: increasing(trials, N_MAX, n_jobs=1),
}


def situations(shape, seed):
    "The five situations for one draw of inputs and features: title -> trials."
    rng = np.random.default_rng(seed)
    phi = RBF(DIM, kernel_cov=KERNEL_COV).sample(*shape, rng)
    white, smooth = rng.standard_normal((2, *shape)), smoothed_noise(2, *shape, rng)
    return {
        "no noise": phi,
        "independent, T = 1": phi + white[0],
        "correlated, T = 1": phi + smooth[0],
        "independent, T = 2": phi + white,
        "correlated, T = 2": phi + smooth,
    }


def estimates(shape, seed):
    "All estimates from one draw: array over situations, estimators and orders."
    return np.array(
        [
            [estimator(trials) for estimator in ESTIMATORS.values()]
            for trials in situations(shape, seed).values()
        ]
    )


def run(shape):
    "One size: mean, its standard error and variance of every estimate, and the truth."
    drawn = np.array([estimates(shape, [SEED, index]) for index in range(N_MATRICES)])
    mean, variance = drawn.mean(axis=0), drawn.var(axis=0, ddof=1)
    rows = {
        title: {
            method: {
                "mean": mean[i, j].tolist(),
                "se": np.sqrt(variance[i, j] / N_MATRICES).tolist(),
                "variance": variance[i, j].tolist(),
            }
            for j, method in enumerate(ESTIMATORS)
        }
        for i, title in enumerate(situations(shape, 0))
    }
    truth = RBF(DIM, kernel_cov=KERNEL_COV).moments(N_MAX).tolist()
    return {"truth": truth, "rows": rows, "first_matrices": drawn[:N_STORED].tolist()}


if __name__ == "__main__":
    packages = {"numpy": np, "scipy": scipy, "numba": numba}
    output = {
        "command": "python studies/noise.py",
        "seed": SEED,
        "settings": {
            "n_matrices": N_MATRICES,
            "n_max": N_MAX,
            "process": f"RBF({DIM}, input_cov=1.0, kernel_cov={KERNEL_COV})",
            "noise": "standard normal; correlated: box of 11 columns over sqrt(11)",
        },
        "versions": {"python": platform.python_version()}
        | {name: package.__version__ for name, package in packages.items()},
        "shapes": {f"{P} x {Q}": run((P, Q)) for P, Q in SHAPES},
    }
    path = Path(__file__).parents[1] / "results" / "noise.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(output, indent=1) + "\n")
