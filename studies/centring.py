"""Are the standard errors of centred moments right? Two processes, 60 x 80.

python studies/centring.py     writes results/centring.json, in about two minutes
"""

import warnings

import numpy as np

from spectral_moments.estimation import estimate
from spectral_moments.operators import Linear
from spectral_moments.rbf import RBF
from spectral_moments.results import EstimateWarning

SETTINGS = {"shape": [60, 80], "n_max": 6, "n_matrices": 150, "level": 0.95}
SEED = 17
PROCESSES = {"linear": Linear(5, scale=0.2), "scarce": RBF(5, kernel_cov=0.25)}


def draw(name, seed):
    "One matrix; the linear process gets a mean for every column."
    rng = np.random.default_rng(seed)
    P, Q = SETTINGS["shape"]
    phi = PROCESSES[name].sample(P, Q, rng)
    return phi + 2 * rng.standard_normal(Q) if name == "linear" else phi


def centred(name, seed, index):
    "The centred estimate of one matrix, and its interval."
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EstimateWarning)
        options = dict(center=True, random_state=index, n_jobs=1)
        found = estimate(draw(name, [seed, index]), SETTINGS["n_max"], **options)
    low, high = found.interval(SETTINGS["level"])
    parts = dict(values=found.values, stderr=found.stderr, usable=found.usable)
    return parts | dict(low=low, high=high)


def summary(run, name):
    "Standard error over spread, usable share and, where the truth is known, coverage."
    count = run.settings["n_matrices"]
    found = run.repeat(name, lambda index: centred(name, run.seed, index), count)
    values, errors, usable, low, high = (np.array([e[k] for e in found]) for k in found[0])
    ratio = np.sqrt((errors**2).mean(axis=0)) / values.std(axis=0, ddof=1)
    result = {"ratio": ratio.tolist(), "usable": usable.mean(axis=0).tolist()}
    if name == "linear":
        truth = PROCESSES[name].moments(SETTINGS["n_max"])
        inside = (low <= truth) & (truth <= high)
        result["coverage"] = inside.mean(axis=0).tolist()
    return result | {"first": values[0].tolist(), "first_stderr": errors[0].tolist()}


def measure(run):
    "Both processes."
    return {"processes": {name: summary(run, name) for name in PROCESSES}}


if __name__ == "__main__":
    from common import main

    raise SystemExit(
        main(__file__, __doc__, measure, SETTINGS, SEED, quick={"n_matrices": 3})
    )
