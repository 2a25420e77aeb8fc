"""What does a sketch that stops by itself lose in unbiasedness?

python studies/stopping.py     writes results/stopping.json, in about two minutes
"""

import json
import platform
import warnings
from pathlib import Path

import numpy as np

import spectral_moments
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
PATH = Path(__file__).parent.parent / "results" / "stopping.json"


def matrix():
    "The one matrix that is sketched over and over."
    return RBF(3, kernel_cov=0.25).sample(*SETTINGS["shape"], random_state=SEED)


def difference(phi, exact, seed, options):
    "Relative difference of one sketch of the second moment from its exact value."
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EstimateWarning)
        found = sketched(phi, SETTINGS["n_max"], random_state=seed, n_jobs=1, **options)
    return found.values[1] / exact - 1


def main():
    "Measure and write the file."
    phi, cases = matrix(), {}
    exact = all_cycles(phi, 2)[1]  # at order 2 every order of the rows gives the same
    for name, options in SETTINGS["cases"].items():
        seeds = range(SETTINGS["n_sketches"])
        found = np.array([difference(phi, exact, seed, options) for seed in seeds])
        error = found.std(ddof=1) / np.sqrt(len(found))
        cases[name] = {"mean": found.mean(), "error": error, "first": found[:5].tolist()}
        print(f"{name:28} {found.mean():+.5f} +- {error:.5f}", flush=True)
    result = {
        "command": "python studies/stopping.py",
        "settings": SETTINGS,
        "seed": SEED,
        "versions": {
            "spectral_moments": spectral_moments.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "cases": cases,
    }
    PATH.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
