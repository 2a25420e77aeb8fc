"""Are the standard errors of centred moments right? Two processes, 60 x 80.

python studies/centring.py     writes results/centring.json, in about two minutes
"""

import json
import platform
import warnings
from pathlib import Path

import numpy as np

import spectral_moments
from spectral_moments.estimation import estimate
from spectral_moments.operators import Linear
from spectral_moments.rbf import RBF
from spectral_moments.results import EstimateWarning

SETTINGS = {"shape": [60, 80], "n_max": 6, "n_matrices": 150, "level": 0.95}
SEED = 17
PROCESSES = {"linear": Linear(5, scale=0.2), "scarce": RBF(5, kernel_cov=0.25)}
PATH = Path(__file__).parent.parent / "results" / "centring.json"


def draw(name, index):
    "One matrix; the linear process gets a mean for every column."
    rng = np.random.default_rng([SEED, index])
    P, Q = SETTINGS["shape"]
    phi = PROCESSES[name].sample(P, Q, rng)
    return phi + 2 * rng.standard_normal(Q) if name == "linear" else phi


def measure(name, index):
    "The centred estimate of one matrix."
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EstimateWarning)
        options = dict(center=True, random_state=index, n_jobs=1)
        return estimate(draw(name, index), SETTINGS["n_max"], **options)


def summary(name):
    "Standard error over spread, usable share and, where the truth is known, coverage."
    found = [measure(name, index) for index in range(SETTINGS["n_matrices"])]
    values, errors = (
        np.array([getattr(e, k) for e in found]) for k in ("values", "stderr")
    )
    ratio = np.sqrt((errors**2).mean(axis=0)) / values.std(axis=0, ddof=1)
    usable = np.mean([e.usable for e in found], axis=0)
    result = {"ratio": ratio.tolist(), "usable": usable.tolist()}
    if name == "linear":
        truth = PROCESSES[name].moments(SETTINGS["n_max"])
        bounds = np.array([e.interval(SETTINGS["level"]) for e in found])
        inside = (bounds[:, 0] <= truth) & (truth <= bounds[:, 1])
        result["coverage"] = inside.mean(axis=0).tolist()
    return result | {"first": values[0].tolist(), "first_stderr": errors[0].tolist()}


if __name__ == "__main__":
    result = {
        "command": "python studies/centring.py",
        "settings": SETTINGS,
        "seed": SEED,
        "versions": {
            "spectral_moments": spectral_moments.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "processes": {name: summary(name) for name in PROCESSES},
    }
    PATH.write_text(json.dumps(result, indent=1) + "\n")
