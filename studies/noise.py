"""The paper's noise study: four estimators in five situations, P = 75, Q = 150 and 15.

The data of a figure in the chapter on trials.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # many small products

import math
import sys
from functools import partial

import numpy as np
from common import Part, main

from spectral_moments import RBF, increasing, kong_valiant, naive

SEED = 2027
N_MAX = 7
N_STORED = 2  # matrices whose single estimates are stored, for the check in the chapter
DIM, KERNEL_COV = 3, 0.25
SHAPES = ((75, 150), (75, 15))
SETTINGS = {
    "n_matrices": 4000,
    "n_max": N_MAX,
    "process": f"RBF({DIM}, input_cov=1.0, kernel_cov={KERNEL_COV})",
    "noise": "standard normal; correlated: box of 11 columns over sqrt(11)",
}
ESTIMATORS = {
    "naive": partial(naive, n_max=N_MAX, trials=True),
    "kv_row": partial(kong_valiant, n_max=N_MAX, trials=True),
    "kv_col": partial(kong_valiant, n_max=N_MAX, trials=True, sampled="columns"),
    "increasing": partial(increasing, n_max=N_MAX, trials=True, n_jobs=1),
}


def smoothed_noise(T, P, Q, random_state=None, *, box=11):
    "Normal noise of variance 1, correlated along each row over less than `box` columns."
    white = np.random.default_rng(random_state).standard_normal((T, P, Q + box - 1))
    sums = np.cumsum(np.pad(white, ((0, 0), (0, 0), (1, 0))), axis=-1)
    return (sums[..., box:] - sums[..., :-box]) / math.sqrt(box)


def situations(shape, seed):
    "The five situations for one draw of inputs and features: title -> trials."
    rng = np.random.default_rng(seed)
    phi = RBF(DIM, kernel_cov=KERNEL_COV).sample(*shape, rng)
    white, smooth = rng.standard_normal((2, *shape)), smoothed_noise(2, *shape, rng)
    return {
        "no noise": phi[None],
        "independent, T = 1": phi + white[:1],
        "correlated, T = 1": phi + smooth[:1],
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


def summary(run, name, shape):
    "One size: mean and variance of every estimate with their errors, and the truth."
    count = run.settings["n_matrices"]
    drawn = np.array(run.repeat(name, lambda i: estimates(shape, [run.seed, i]), count))
    mean, variance = drawn.mean(axis=0), drawn.var(axis=0, ddof=1)
    truth = RBF(DIM, kernel_cov=KERNEL_COV).moments(N_MAX)
    spread = lambda x: x.std(axis=0, ddof=1) / np.sqrt(count)  # error of a mean of x
    variance_se, mse_se = spread((drawn - mean) ** 2), spread((drawn - truth) ** 2)
    rows = {
        title: {
            method: {
                "mean": mean[i, j].tolist(),
                "se": np.sqrt(variance[i, j] / count).tolist(),
                "variance": variance[i, j].tolist(),
                "variance_se": variance_se[i, j].tolist(),
                "mse_se": mse_se[i, j].tolist(),
            }
            for j, method in enumerate(ESTIMATORS)
        }
        for i, title in enumerate(situations(shape, 0))
    }
    return {
        "truth": truth.tolist(),
        "rows": rows,
        "first_matrices": drawn[:N_STORED].tolist(),
    }


def measure(run):
    "Both sizes."
    names = {f"{P} x {Q}": (P, Q) for P, Q in SHAPES}
    return {"shapes": {name: summary(run, name, shape) for name, shape in names.items()}}


PARTS = {"noise": Part(measure, SETTINGS, SEED)}

if __name__ == "__main__":
    sys.exit(main(__file__, __doc__, PARTS))
