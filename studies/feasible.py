"""Feasible moments against unbiased ones and KV-row, and eigenvalues against sample ones.

Writes results/feasible.json, the data of the chapter on the spectrum. Its two seeds, of
the moments and of the eigenvalues, had no part in the choice of the constants that
they check. Takes about three quarters of an hour on one core.
"""

from dataclasses import replace
from functools import partial
from unittest.mock import patch

import numpy as np
from comparison import signed_root

import spectral_moments as sm
from spectral_moments.errors import ErrorDistribution, moment_intervals
from spectral_moments.processes import Discrete, ReLU
from spectral_moments.spectrum import feasible as spectrum

SEED = 4119
LATER = 8  # what is added to the seed for the eigenvalues, which were chosen later
N_MAX = 7
ORDERS = np.arange(1, N_MAX + 1)
SETTINGS = {"n_matrices": 200, "n_max": N_MAX}
TABLE = np.random.default_rng(2031).standard_normal((12, 60))
CLUSTERS = 0.8 ** np.arange(12) / (0.8 ** np.arange(12)).sum()  # sizes of the clusters
CASES = {  # process, shape; the first is the paper's
    "RBF 5, 300 x 600": (sm.RBF(5, kernel_cov=0.25), (300, 600)),
    "RBF 3, 75 x 150": (sm.RBF(3, kernel_cov=0.25), (75, 150)),
    "Linear 20, 60 x 60": (sm.Linear(20), (60, 60)),
    "RBF 5, 150 x 300": (sm.RBF(5, kernel_cov=0.25), (150, 300)),
    "RBF 4, 110 x 220": (sm.RBF(4, kernel_cov=0.3), (110, 220)),
    "RBF 3, 300 x 600": (sm.RBF(3, kernel_cov=0.25), (300, 600)),
    "ReLU 10, 100 x 150": (ReLU(10), (100, 150)),
    "power law 1, 100 x 200": (sm.PowerLaw(1.0, 1000), (100, 200)),
    "12 clusters, 60 x 40": (Discrete(TABLE, input_probs=CLUSTERS), (60, 40)),
}
RIVALS = ("unbiased", "negatives dropped", "KV-row", "feasible")
PLAIN = dict(SMOOTHING=0.0, COPIES=2)
VARIANTS = {  # other constants of the fit
    "errors as estimated": dict(FACTOR=1.0),
    "no smoothing": PLAIN,
    "no smoothing, diagonal": PLAIN | dict(SHRINKAGE=1.0),
    "no smoothing, full covariance": PLAIN | dict(SHRINKAGE=1e-9),
}
RESAMPLES = 500  # of the matrices, for the errors of the ratios


def draw(case, seed, index):
    "What is kept of one matrix."
    process, shape = CASES[case]
    rng = np.random.default_rng([seed, list(CASES).index(case), index])
    phi = process.sample(*shape, rng)
    est = sm.estimate(phi, N_MAX, center=False, random_state=index)
    kv = sm.kong_valiant(phi, N_MAX)
    sample = np.linalg.svd(phi, compute_uv=False)[:40] ** 2 / phi.size
    return dict(values=est.values, covariance=est.covariance, kv=kv, sample=sample)


def variant(est, changes):
    "Feasible moments with other constants of the fit."
    with patch.multiple(spectrum, **changes):
        return sm.feasible(est).values


def interval(values, stderr, tail):
    "Ends of the intervals of moments with errors that are nearly normal."
    return moment_intervals(values, ORDERS, ErrorDistribution(stderr, 0.0, np.inf), tail)


def root_mean_square(miss):
    "Over matrices, the last axis but one; unknown ones left out."
    return np.sqrt(np.nanmean(np.square(miss), axis=-2))


def ratios(answers):
    "Error of feasible roots over that of unbiased ones and over the smallest of all."
    error = {k: root_mean_square(answers[k]) for k in RIVALS}
    smallest = np.min(list(error.values()), axis=0)
    return error["feasible"] / np.array([error["unbiased"], smallest])


def ratio_table(answers, seed):
    "The two ratios and their standard errors, by resampling the matrices."
    count, rng = len(answers["feasible"]), np.random.default_rng(seed)
    chosen = (rng.integers(count, size=count) for _ in range(RESAMPLES))
    drawn = [ratios({k: answers[k][i] for k in RIVALS}) for i in chosen]
    table = zip(("unbiased", "the smallest"), ratios(answers), np.std(drawn, axis=0))
    return {
        name: {"ratio": x.round(3).tolist(), "error": e.round(3).tolist()}
        for name, x, e in table
    }


def analyse(case, drawn, seed):
    "Errors of roots and coverage of one case."
    found = {key: np.array([x[key] for x in drawn]) for key in drawn[0]}
    process, _ = CASES[case]
    truth, roots = process.moments(N_MAX), signed_root(process.moments(N_MAX), ORDERS)
    answers, held = {}, {}
    for m, C, kv in zip(*(found[k] for k in ("values", "covariance", "kv"))):
        stderr = np.sqrt(C.diagonal())
        est = sm.from_moments(m, covariance=C)
        fit = sm.feasible(est)
        methods = {
            "unbiased": m,
            "negatives dropped": np.where(m > 0, m, np.nan),
            "KV-row": kv,
            "feasible": fit.values,
            "feasible, same matrices": np.where(m > 0, fit.values, np.nan),
        } | {key: variant(est, changes) for key, changes in VARIANTS.items()}
        for key, x in methods.items():
            answers.setdefault(key, []).append((signed_root(x, ORDERS) / roots - 1)[1:])
        for key, x in dict(unbiased=m, feasible=fit.values).items():
            low, high = interval(x, stderr, tail=0.05)
            held.setdefault(key, []).append((low <= truth) & (truth <= high))
        low, high = interval(m, stderr, tail=0.1 / N_MAX)
        held.setdefault("boxes", []).append(((low <= truth) & (truth <= high)).all())
    boxes, answers = held.pop("boxes"), {k: np.array(x) for k, x in answers.items()}
    return {
        "matrices": len(found["values"]),
        "root_error": {
            k: root_mean_square(x).round(4).tolist() for k, x in answers.items()
        },
        "feasible over": ratio_table(answers, seed),
        "bias": {
            k: answers[k].mean(axis=0).round(4).tolist()
            for k in ("unbiased", "KV-row", "feasible", "errors as estimated")
        },
        "negative": (found["values"] < 0).mean(axis=0)[1:].round(3).tolist(),
        "coverage": {k: np.mean(x, axis=0)[1:].round(3).tolist() for k, x in held.items()},
        "all moments in their 90% boxes": float(np.mean(boxes)),
    }


def analyse_eigenvalues(case, drawn):
    "Errors of the first 40 eigenvalues, and of the first 5, over their sum."
    top, errors = np.zeros(40), {}
    first = CASES[case][0].eigenvalues(40)
    top[: len(first)] = first
    for x in drawn:
        m, C = np.array(x["values"]), np.array(x["covariance"])
        est = sm.from_moments(m, covariance=C)
        fit = sm.feasible(est)
        few = replace(fit, max_entropy=None)  # the measure of the fit itself, of few points
        spectra = {"sample": x["sample"], "feasible": fit.eigenvalues(40)}
        spectra["few points"] = few.eigenvalues(40)
        for key, found in spectra.items():
            miss = abs(np.pad(found, (0, 40 - len(found))) - top)
            errors.setdefault(key, []).append(miss.sum() / top.sum())
            errors.setdefault(f"{key}, first 5", []).append(miss[:5].sum() / top[:5].sum())
    mean_error = lambda x: np.std(x, ddof=1) / len(x) ** 0.5
    return {
        "eigenvalues": {k: round(float(np.mean(x)), 4) for k, x in errors.items()},
        "eigenvalue_error": {k: round(float(mean_error(x)), 4) for k, x in errors.items()},
    }


def matrices(run, part, seed):
    "What is kept of the matrices of all cases."
    count = run.settings["n_matrices"]
    return {c: run.repeat(c + part, partial(draw, c, seed), count) for c in CASES}


def measure(run):
    "All cases."
    drawn = matrices(run, "", run.seed)
    fresh = matrices(run, ", eigenvalues", run.seed + LATER)
    names = ("SMOOTHING", "COPIES", "SHRINKAGE", "FACTOR")
    constants = {name.lower(): getattr(spectrum, name) for name in names}
    return constants | {
        "evenness": spectrum.ENTROPY_WEIGHT,
        "cases": {
            case: analyse(case, drawn[case], run.seed)
            | analyse_eigenvalues(case, fresh[case])
            for case in CASES
        },
    }


if __name__ == "__main__":
    from common import main

    raise SystemExit(
        main(__file__, __doc__, measure, SETTINGS, SEED, quick={"n_matrices": 2})
    )
