"""Exponents of power laws: bias, spread, reported errors, coverage, and the tests of fit.

The data of the chapter on exponents. All matrices are drawn and estimated first, then
fitted. The fit was fixed before any fit of this seed; the covariance of the test was
changed once after it, and the matrices of other laws were drawn anew. What is stored was
fitted at commit effdbdf. The fit goes on until it stands still since then: `--check` finds
the same draws, and fits that differ by less than 1e-6, a few by up to 2e-5.
"""

import sys
from contextlib import suppress
from functools import partial

import numpy as np
from common import Part, main

import spectral_moments as sm
from spectral_moments.errors import covariance, normal_replicates
from spectral_moments.processes import ReLU
from spectral_moments.results import power_words

SEED = 7219
FEW = 60  # matrices of each case for all fits but the first
SETTINGS = {"n_matrices": 200, "n_other_fits": FEW, "laws": {"n_matrices": 100}}
RANKS = (5, 50)  # of the straight lines through sample and cross-validated spectra
LAWS = {"0.7": (0.7, 20_000), "1": (1.0, 1000), "1.5": (1.5, 1000)}  # exponent, rank
SHAPES = {"150 x 300": (150, 300), "400 x 600": (400, 600)}
CASES = {
    f"{law}, {shape}, {kind}": dict(law=law, shape=shape, trials=2 if "two" in kind else 1)
    for shape in SHAPES
    for kind in ("one trial", "two noisy trials, centred")
    for law in LAWS
}


UNSEEN = {  # exponent, rank, shape, trials, noise over signal, degrees of freedom of rows
    "0.85, rank 5000, 150 x 300": (0.85, 5000, (150, 300), 1, 0.0, None),
    "1.2, rank 300, 150 x 300": (1.2, 300, (150, 300), 1, 0.0, None),
    "2, rank 1000, 150 x 300": (2.0, 1000, (150, 300), 1, 0.0, None),
    "1, 100 x 1000": (1.0, 1000, (100, 1000), 1, 0.0, None),
    "1, 250 x 250, two trials, noise 2": (1.0, 1000, (250, 250), 2, 2.0, None),
    "1.2, 150 x 300, three trials, noise 1/2": (1.2, 500, (150, 300), 3, 0.5, None),
    "1, 150 x 300, Student rows": (1.0, 1000, (150, 300), 1, 0.0, 8),
    "1.5, 150 x 300, two trials, Student rows": (1.5, 1000, (150, 300), 2, 1.0, 8),
    "0.8, 200 x 200, two trials, noise 3/2": (0.8, 20_000, (200, 200), 2, 1.5, None),
    "1.2, 300 x 150, four trials, noise 2": (1.2, 1000, (300, 150), 4, 2.0, None),
}


def described(case):
    "Exponent, rank, shape, trials, noise and tails of a case."
    if case in UNSEEN:
        return UNSEEN[case]
    option = CASES[case]
    return (*LAWS[option["law"]], SHAPES[option["shape"]], option["trials"], 1.0, None)


def matrix(case, seed, index):
    "Matrix number `index` of a case, or trials of it with a mean and noise."
    exponent, rank, shape, trials, noise, degrees = described(case)
    place = list(CASES).index(case) if case in CASES else 200 + list(UNSEEN).index(case)
    rng = np.random.default_rng([seed, place, index])
    law = sm.PowerLaw(exponent, rank)
    phi = law.sample(*shape, rng)
    if degrees:  # a common factor in every row, of mean square one
        phi *= np.sqrt((degrees - 2) / rng.chisquare(degrees, (len(phi), 1)))
    if trials == 1:
        return phi
    size = noise * np.sqrt(law.moments(1)[0])
    errors = rng.standard_normal((trials, *phi.shape)) * size
    return phi + rng.standard_normal(phi.shape[1]) + errors


def spectra(phi):
    "Sample eigenvalues of the mean over trials, and cross-validated ones if there are two."
    x = np.atleast_3d(phi.T).T
    x = x - x.mean(axis=1, keepdims=True) if len(x) > 1 else x
    top = RANKS[1]
    sample = np.linalg.svd(x.mean(axis=0), compute_uv=False)[:top] ** 2 / phi[..., 0].size
    if len(x) == 1:
        return sample, np.full(top, np.nan)
    _, _, V = np.linalg.svd(x[0], full_matrices=False)
    crossed = ((x[0] @ V[:top].T) * (x[1] @ V[:top].T)).sum(axis=0)
    return sample, crossed / x[0].size


def kept(phi, index, n_max, method="auto"):
    "What is kept of the estimate, centred if there are trials."
    options = dict(method=method, center=phi.ndim == 3, random_state=index)
    est = sm.estimate(phi, n_max, trials=phi.ndim == 3, **options)
    sides = {kind: covariance({kind: x}) for kind, x in est.replicates.items()}
    return dict(values=est.values, sides=sides, methods=est.methods)


def draw(case, seed, index):
    "What is kept of one matrix."
    phi = matrix(case, seed, index)
    dear = "400 x 600, two" in case  # in 0.3 `auto` had other cycles for order 4
    sample, crossed = spectra(phi)
    part = kept(phi, index, 5 if dear or index < FEW else 4)
    part |= dict(sample=sample, cv=crossed)
    if dear and index < FEW:
        part["all cycles"] = kept(phi, index, 4, "all_cycles")
    return part


def draw_unseen(case, seed, index):
    "What is kept of one matrix that had no part in the design; the fit stops at order 4."
    return kept(matrix(case, seed, index), index, 4)


def slope(eigenvalues):
    "Minus the slope of log eigenvalue against log rank; negative ones are left out."
    first, last = RANKS
    rank, values = np.arange(first, last + 1), eigenvalues[first - 1 : last]
    seen = values > 0
    if seen.sum() < 3:
        return np.nan
    return -np.polyfit(np.log(rank[seen]), np.log(values[seen]), 1)[0]


def summary(rows, truth):
    "Bias, spread, reported error, coverage of 95% intervals and rejections at 5%."
    value, error, low, high, p = np.array(rows, dtype=float).T
    sd, inside = value.std(ddof=1), (low < truth) & (truth < high)
    tested = p[np.isfinite(p)]
    return {
        "fitted": len(value),
        "bias": value.mean() - truth,
        "sd": sd,
        "bias_over_sd": (value.mean() - truth) / sd,
        "stderr": np.sqrt(np.mean(error**2)),
        "coverage": inside.mean(),
        "too_low": np.mean(high <= truth),
        "rejected": np.mean(tested < 0.05) if len(tested) else None,
    }


FITS = {  # whether the rank is known, last order
    "rank given": (True, 4),
    "rank unknown": (False, 4),
    "with order 5": (True, 5),
    "all cycles": (True, 4),
}


def fits(case, part, index):
    "Fits to one matrix: exponent, error, interval and p-value, or why there is none."
    _, rank, shape, trials, _, _ = described(case)
    found = {}
    for key, (known, last) in FITS.items():
        if key != "rank given" and (case in UNSEEN or index >= FEW):
            continue
        if key == "all cycles" and key not in part:
            continue
        est = as_estimate(part.get(key, part), (trials, *shape))
        orders = range(2, 1 + int(est.usable[:last].sum())) if last > 4 else None
        try:
            fit = sm.power_law(est, orders, rank=rank if known else None)
        except ValueError:
            found[key] = "refused"
            continue
        row = [fit.exponent, fit.stderr, *fit.interval(), fit.p_value]
        doubt = any("hardly determined" in note for note in fit.notes)
        found[key] = "doubted" if doubt else row
    return found


def analyse(case, drawn, fitted):
    "One case: the fits, the test, and two slopes."
    result = {"matrices": len(drawn)}
    for key in fitted[0]:  # the first has them all
        rows = [x[key] for x in fitted if key in x]
        sure = [x for x in rows if not isinstance(x, str)]
        refused = {x: rows.count(x) for x in ("refused", "doubted")}
        enough = summary(sure, described(case)[0]) if len(sure) > 5 else {"fitted": 0}
        result[key] = refused | enough
    for key in {"sample", "cv"} & set(drawn[0]):
        slopes = np.array([slope(np.array(x[key], dtype=float)) for x in drawn])
        if np.isfinite(slopes).any():
            result[f"slope, {key}"] = {"mean": np.nanmean(slopes), "sd": np.nanstd(slopes)}
    return result


OTHERS = {  # process, shape
    "power": (sm.PowerLaw(1.0, 1000), (150, 300)),
    "exponential": (sm.RBF(1, input_cov=16.0), (150, 300)),
    "ReLU": (ReLU(10), (150, 300)),
    "RBF 3": (sm.RBF(3, kernel_cov=0.25), (300, 600)),
}


def draw_other(name, seed, index):
    "What is kept of one matrix whose law is asked for."
    process, shape = OTHERS[name]
    rng = np.random.default_rng([seed, 300 + list(OTHERS).index(name), index])
    return kept(process.sample(*shape, rng), index, 5)


def as_estimate(part, shape):
    "What was kept, as the fit takes it."
    m = np.array(part["values"])
    sides = {kind: normal_replicates(np.array(C)) for kind, C in part["sides"].items()}
    return sm.Estimate(m, sides, power_words(len(m)), {"phi": shape}, part["methods"])


ORDERS, TESTED = ("2-4", "2-5"), ("power", "exponential")


def rejections(name, part, _):
    "Which laws are rejected, by the orders that are fitted, where these are usable."
    est, found = as_estimate(part, (1, *OTHERS[name][1])), {}
    for orders in ORDERS:
        span = range(2, int(orders[-1]) + 1)
        with suppress(ValueError):  # the last order is not usable
            tried = {law: sm.power_law(est, span, law=law) for law in TESTED}
            found[orders] = {law: bool(fit.p_value < 0.05) for law, fit in tried.items()}
    return found


def shares(found):
    "How often each law is rejected, of the matrices where these orders are usable."
    often = lambda orders, law: np.mean([x[orders][law] for x in found if orders in x])
    return {orders: {x: float(often(orders, x)) for x in TESTED} for orders in ORDERS}


def measure(run):
    "All cases, processes that the design did not see, and other laws."
    many, few = run.settings["n_matrices"], run.settings["laws"]["n_matrices"]

    def drawn(names, draw, number):
        "All matrices of some processes."
        return {x: run.repeat(x, partial(draw, x, run.seed), number) for x in names}

    def fitted(name, parts, analysis):
        "What is made of each of them."
        one = lambda i: analysis(name, parts[i], i)
        return run.repeat(f"{name}: fits", one, len(parts))

    draws = drawn(CASES, draw, many) | drawn(UNSEEN, draw_unseen, few)
    others = drawn(OTHERS, draw_other, few)
    result = {x: analyse(x, part, fitted(x, part, fits)) for x, part in draws.items()}
    tests = {x: fitted(x, part, rejections) for x, part in others.items()}
    numbers = lambda part: {orders: sum(orders in x for x in part) for orders in ORDERS}
    return {
        "ranks_of_slopes": RANKS,
        "exponents": LAWS,
        "cases": {x: result[x] for x in CASES},
        "unseen": {x: result[x] for x in UNSEEN},
        "rejected": {x: shares(part) for x, part in tests.items()},
        "fitted": {x: numbers(part) for x, part in tests.items()},
    }


PARTS = {"exponents": Part(measure, SETTINGS, SEED)}

if __name__ == "__main__":
    sys.exit(main(__file__, __doc__, PARTS))
