"""Single repeats of a recorded cortex, with and without the variance of their noise.

Writes results/one_trial.json, a table of the chapter on noise. The recording is z-scored
for each site and repeat, so there are no counts and no Poisson law; but the variance of its
noise is known from the other repeats. Needs the recordings: python studies/recordings.py.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # many small products

import warnings

import numpy as np
from recordings import load

from spectral_moments import EstimateWarning, estimate

SEED = 0
SYSTEMS = ("IT, Chabo", "IT, Tito", "V4, Chabo", "V4, Tito")
SETTINGS = {"repetitions": 6, "every": 4}  # repeats that are taken alone; pictures


def single(trials, number):
    "m(1) and m(2) of one repeat: as it is, and with the variance in the others as a law."
    variance = np.delete(trials, number, axis=0).var(axis=0, ddof=1).mean(axis=0)
    one = trials[number]
    plain = estimate(one, 2, stderr=False).values
    return [plain, estimate(one, 2, noise=variance, stderr=False).values]


def compared(name, settings):
    "The same of two halves of all repeats, and the mean over single ones."
    trials = load(*name.split(", ")).trials[:, :: settings["every"]].astype(float)
    halves = np.stack([trials[k::2].mean(axis=0) for k in (0, 1)])
    both = estimate(halves, trials=True)
    alone = [single(trials, number) for number in range(settings["repetitions"])]
    plain, law = np.mean(alone, axis=0)
    return {"halves": both.values, "stderr": both.stderr, "one": plain, "law": law}


def measure(run):
    "All areas."
    warnings.simplefilter("ignore", EstimateWarning)
    settings = run.settings
    return {"areas": {name: run.once(name, compared, name, settings) for name in SYSTEMS}}


if __name__ == "__main__":
    from common import main

    quick = {"repetitions": 2, "every": 40}
    raise SystemExit(main(__file__, __doc__, measure, SETTINGS, SEED, quick=quick))
