"""What changes if the constants that were chosen by hand are halved or doubled.

Writes results/sensitivity.json, a table of the chapter on what was chosen by hand. Every
matrix is measured with all values of a constant, so that the differences have small errors.
Takes some four minutes on one core.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # many small products

import warnings
from functools import partial
from unittest.mock import patch

import numpy as np
from usable import PROCESSES

import spectral_moments as sm
from spectral_moments import errors
from spectral_moments.spectrum import feasible, power_laws

SEED = 2041
FACTORS = (0.5, 1.0, 2.0)
SETTINGS = {
    "factors": FACTORS,
    "intervals": {
        "n_matrices": 300,
        "processes": ["linear 5", "power law 1", "t5 rows", "lognormal"],
        "shape": [60, 80],
    },
    "feasible": {"n_matrices": 40, "n_max": 6},
    "exponents": {"n_matrices": 60, "shape": [100, 200]},
}
FITTED = ("SMOOTHING", "COPIES", "SHRINKAGE", "FACTOR")  # of `feasible`
CASES = {
    "Linear 20, 60 x 60": (sm.Linear(20), (60, 60)),
    "RBF 3, 75 x 150": (sm.RBF(3, kernel_cov=0.25), (75, 150)),
}


def changed(constant, factor):
    "A constant of `feasible`, as it is or changed; a number of copies stays even."
    value = getattr(feasible, constant) * factor
    return int(value) if constant == "COPIES" else value


def measured(process, shape, seed, index):
    "Values, errors, acceleration and degrees of freedom of three moments."
    phi = PROCESSES[process].sample(*shape, np.random.default_rng([*seed, index]))
    est = sm.estimate(phi, 3, n_jobs=1)
    return [est.values, *errors.error_distribution(est.replicates)]


def held(drawn, truth, factor=1.0):
    "Ends of the intervals with the acceleration times a factor; whether they hold."
    orders, ends = np.arange(1, len(truth) + 1), []
    for m, s, bend, degrees in drawn:
        distribution = errors.ErrorDistribution(s, factor * bend, degrees)
        ends.append(errors.moment_intervals(m, orders, distribution))
    low, high = np.moveaxis(np.array(ends), 1, 0)
    return low, high, (low <= truth) & (truth <= high)


def of_intervals(run):
    "Coverage for each acceleration, and given usable for each limit, over processes."
    known, found = run.settings["intervals"], {"acceleration": {}, "usable": {}}
    for k, process in enumerate(known["processes"]):
        one = partial(measured, process, known["shape"], [run.seed, 1, k])
        drawn = np.array(run.repeat(process, one, known["n_matrices"]), dtype=float)
        truth = PROCESSES[process].moments(3)
        for factor in run.settings["factors"]:
            low, high, inside = held(drawn, truth, factor)
            part = found["acceleration"].setdefault(str(factor), {})
            width = np.median(high - low, axis=0) / truth
            part[process] = {"coverage": inside.mean(0), "width": width}
            part[process]["above"] = (low > truth).mean(0)
            limit = factor * errors.MAX_RELATIVE_ERROR
            with patch.object(errors, "MAX_RELATIVE_ERROR", limit):
                good = np.array([errors.usable(m, s) for m, s, *_ in drawn])
            inside = held(drawn, truth)[2]
            given = [x[g].mean() if g.sum() > 9 else None for x, g in zip(inside.T, good.T)]
            part = found["usable"].setdefault(str(factor), {})
            part[process] = {"usable": good.mean(0), "coverage": given}
    return found


def fitted(case, n_max, factors, seed, index):
    "Relative errors of the roots: unbiased, as it is, and with every constant changed."
    process, shape = CASES[case]
    rng = np.random.default_rng([*seed, list(CASES).index(case), index])
    est = sm.estimate(process.sample(*shape, rng), n_max, center=False, random_state=index)
    n, truth = np.arange(1, n_max + 1), process.moments(n_max)
    off = lambda m: (np.sign(m) * (abs(m) / truth) ** (1 / n) - 1)[1:]
    found = {"unbiased": off(est.values), "1.0": off(sm.feasible(est).values)}
    for constant in FITTED:
        for factor in factors:
            if factor != 1:
                with patch.object(feasible, constant, changed(constant, factor)):
                    found[f"{constant} {factor}"] = off(sm.feasible(est).values)
    return found


def of_feasible(run):
    "Root mean square errors of feasible roots over those of unbiased ones, n = 2, ..."
    known, found = run.settings["feasible"], {}
    for case in CASES:
        options = known["n_max"], run.settings["factors"], [run.seed, 2]
        one = partial(fitted, case, *options)
        drawn = run.repeat(f"feasible {case}", one, known["n_matrices"])
        size = {k: np.sqrt(np.mean([np.square(x[k]) for x in drawn], 0)) for k in drawn[0]}
        unbiased = size.pop("unbiased")
        found[case] = {key: x / unbiased for key, x in size.items()}
    return found


def exponent(shape, factors, seed, index):
    "Exponent, error and interval with every ridge."
    law, found = sm.PowerLaw(1.0, 1000), {}
    phi = law.sample(*shape, np.random.default_rng([*seed, index]))
    est = sm.estimate(phi, 4, center=False, n_jobs=1)
    for factor in factors:
        with patch.object(power_laws, "RIDGE", factor * power_laws.RIDGE):
            fit = sm.power_law(est, rank=1000)
        found[str(factor)] = [fit.exponent, fit.stderr, *fit.interval()]
    return found


def of_exponents(run):
    "Bias, spread, reported error and coverage of the exponent."
    known, found = run.settings["exponents"], {}
    one = partial(exponent, known["shape"], run.settings["factors"], [run.seed, 3])
    drawn = run.repeat("exponents", one, known["n_matrices"])
    for factor in drawn[0]:
        a, error, low, high = np.array([x[factor] for x in drawn]).T
        inside = ((low < 1) & (high > 1)).mean()
        found[factor] = {"bias": a.mean() - 1, "sd": a.std(ddof=1), "coverage": inside}
        found[factor]["stderr"] = np.sqrt((error**2).mean())
    return found


def measure(run):
    "All constants."
    warnings.simplefilter("ignore", sm.EstimateWarning)
    constants = {name: getattr(feasible, name) for name in FITTED}
    constants |= {"RIDGE": power_laws.RIDGE}
    constants |= {"MAX_RELATIVE_ERROR": errors.MAX_RELATIVE_ERROR}
    return {
        "constants": constants,
        "intervals": of_intervals(run),
        "feasible": of_feasible(run),
        "exponents": of_exponents(run),
    }


QUICK = {name: {"n_matrices": 3} for name in ("intervals", "feasible", "exponents")}

if __name__ == "__main__":
    from common import main

    raise SystemExit(main(__file__, __doc__, measure, SETTINGS, SEED, quick=QUICK))
