"""What does a sketch that stops by itself lose in unbiasedness?

python studies/stopping.py     writes results/stopping.json, in about two minutes
"""

import warnings

import numpy as np

from spectral_moments.partitions import all_cycles
from spectral_moments.rbf import RBF
from spectral_moments.results import EstimateWarning
from spectral_moments.scale import sketched

SETTINGS = {
    "process": "RBF(3, kernel_cov=0.25)",
    "shape": [60, 80],
    "n_max": 2,
    "n_sketches": 2000,
    "cases": {
        "16 probes, stops by itself": {"rank": 4, "n_probes": 16},
        "64 probes, stops by itself": {"rank": 4, "n_probes": 64},
        "16 probes, four rounds": {"rank": 4, "n_probes": 16, "n_permutations": 4},
    },
}
SEED = 3


def matrix(seed):
    "The one matrix that is sketched over and over."
    return RBF(3, kernel_cov=0.25).sample(*SETTINGS["shape"], random_state=seed)


def difference(phi, exact, seed, options):
    "Relative difference of one sketch of the second moment from its exact value."
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EstimateWarning)
        found = sketched(phi, SETTINGS["n_max"], random_state=seed, n_jobs=1, **options)
    return found.values[1] / exact - 1


def measure(run):
    "Mean differences, with their errors."
    phi, cases = matrix(run.seed), {}
    exact = all_cycles(phi, 2)[1]  # at order 2 every order of the rows gives the same
    for name, options in run.settings["cases"].items():
        one = lambda seed, options=options: difference(phi, exact, seed, options)
        found = np.array(run.repeat(name, one, run.settings["n_sketches"]))
        error = found.std(ddof=1) / np.sqrt(len(found))
        cases[name] = {"mean": found.mean(), "error": error, "first": found[:5].tolist()}
    return {"cases": cases}


if __name__ == "__main__":
    from common import main

    raise SystemExit(
        main(__file__, __doc__, measure, SETTINGS, SEED, quick={"n_sketches": 5})
    )
