"""Two rules for the dimension m(1)^2/m(2) from one matrix, and the ratio without either.

Writes results/dimension.json, a table of the chapter on error bars. *Reciprocal* is
`Estimate.dimension`: the jackknife of 1/D, the interval there, mapped back. *Divided* is
D / (1 + delta), delta the jackknife's relative bias of D, with an interval on the scale of
the logarithm. *Plain* is m(1)^2/m(2) as it is, with the interval of the first. Eight
processes, three sizes, one matrix or two noisy trials; chosen on one set of draws and
confirmed on another. Some five minutes on one core.
"""

import math
import warnings

import numpy as np
from scipy.special import stdtrit
from usable import PROCESSES as ALL

from spectral_moments import EstimateWarning, estimate
from spectral_moments.errors import LEAST_DEGREES, error_shape

SEED, LEVEL = 41, 0.95
PROCESSES = ("linear 5", "linear 20", "power law 1", "power law 0.7", "sparse latents")
PROCESSES += ("t5 rows", "strong rows", "tuning")
SIZES = {"25 x 40": (25, 40), "60 x 80": (60, 80), "120 x 160": (120, 160)}
CASES = {"one matrix": (1, 0.0), "two trials": (2, 1.0)}  # trials, noise over signal
SETTINGS = {"n_matrices": 60, "processes": PROCESSES, "sizes": SIZES, "cases": CASES}


def divided(est):
    "D / (1 + delta), and the ends of its interval on the scale of the logarithm."
    found = est.derive(lambda m: m[0] ** 2 / m[1])
    bias = found.plain - found.at
    if not (found.plain > 0 and math.isfinite(found.error)):
        return math.nan, math.nan, math.nan
    delta = bias / found.plain
    value = found.plain / (1 + delta) if delta > 0 else found.plain * (1 - delta)
    degrees = np.clip(error_shape(found.axes)[1][0], LEAST_DEGREES, 1e6)
    step = stdtrit(degrees, (1 + LEVEL) / 2) * found.error / found.plain
    return value, value * math.exp(-step), value * math.exp(min(step, 700))


def one_matrix(process, shape, case, seed, index):
    "Value and interval by each rule."
    (T, ratio), rng = case, np.random.default_rng([*seed, index])
    phi = ALL[process].sample(*shape, rng)
    if T > 1:
        noise = ratio * math.sqrt(ALL[process].moments(1)[0])
        phi = phi + noise * rng.standard_normal((T, *shape))
    est = estimate(phi, 2, n_jobs=1)
    reciprocal = est.dimension()
    ends = reciprocal.interval(LEVEL)
    plain = (reciprocal.plain, *ends)
    return [(reciprocal.value, *ends), divided(est), plain]


def summary(found, truth):
    "What counts of one rule: error on the scale of the logarithm, coverage, width."
    value, low, high = np.array(found, dtype=float).T
    known = np.isfinite(value) & (value > 0)
    off = np.log(value[known] / truth)
    inside = (low <= truth) & ((truth <= high) | np.isnan(high))
    return {
        "known": float(known.mean()),
        "median": float(np.median(np.exp(off))) if known.any() else None,
        "rms": float(np.sqrt((off**2).mean())) if known.any() else None,
        "coverage": float(inside.mean()),
        "endless": float((~np.isfinite(high)).mean()),
    }


def measure(run):
    "All processes, sizes and cases, twice."
    warnings.simplefilter("ignore", EstimateWarning)
    chosen, cells = run.settings, []
    for process in chosen["processes"]:
        m1, m2 = ALL[process].moments(2)
        for size, shape in chosen["sizes"].items():
            for case, what in chosen["cases"].items():
                row = dict(process=process, size=size, case=case, truth=m1**2 / m2)
                for part, draws in enumerate(("chosen", "confirmed")):
                    one = lambda index, given=(process, shape, what), part=part: one_matrix(
                        *given, (run.seed, part), index
                    )
                    name = f"{process}, {size}, {case}, {draws}"
                    found = np.array(run.repeat(name, one, chosen["n_matrices"]), float)
                    rules = ("reciprocal", "divided", "plain")
                    row[draws] = {
                        rule: summary(found[:, k], row["truth"])
                        for k, rule in enumerate(rules)
                    }
                cells.append(row)
    return {"cells": cells}


QUICK = {"n_matrices": 2}

if __name__ == "__main__":
    from common import main

    raise SystemExit(main(__file__, __doc__, measure, SETTINGS, SEED, quick=QUICK))
