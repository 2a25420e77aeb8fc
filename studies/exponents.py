"""Exponents of power laws: bias, spread, reported errors, coverage, and the tests of fit.

Writes results/exponents.json, the data of the chapter on exponents. Its seed had no part in
the choice of the constants that it checks. Takes about an hour on one core.
"""

import warnings
from functools import partial
from types import SimpleNamespace

import numpy as np

import spectral_moments as sm
from spectral_moments.exponents import compare_laws

SEED = 4120
N_MAX = 5
SETTINGS = {"n_matrices": 200, "n_max": N_MAX, "laws": {"n_matrices": 100}}
RANKS = (5, 50)  # of the straight lines through sample and cross-validated spectra
LAWS = {"0.7": (0.7, 20_000), "1": (1.0, 1000), "1.5": (1.5, 1000)}  # exponent, rank
SHAPES = {"150 x 300": (150, 300), "400 x 600": (400, 600)}
CASES = {
    f"{law}, {shape}, {kind}": dict(law=law, shape=shape, trials=2 if "two" in kind else 1)
    for shape in SHAPES
    for kind in ("one trial", "two noisy trials, centred")
    for law in LAWS
}


def matrix(case, seed, index):
    "Matrix number `index` of a case, or two trials with noise as large as the signal."
    option = CASES[case]
    rng = np.random.default_rng([seed, list(CASES).index(case), index])
    law = sm.PowerLaw(*LAWS[option["law"]])
    phi = law.sample(*SHAPES[option["shape"]], rng)
    if option["trials"] == 1:
        return phi
    noise = rng.standard_normal((2, *phi.shape)) * np.sqrt(law.moments(1)[0])
    return phi + rng.standard_normal(phi.shape[1]) + noise


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


def silent_estimate(phi, index):
    "The estimate, centred if there are trials."
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sm.EstimateWarning)
        return sm.estimate(phi, N_MAX, center=phi.ndim == 3, random_state=index)


def draw(case, seed, index):
    "What is kept of one matrix."
    phi = matrix(case, seed, index)
    est, (sample, crossed) = silent_estimate(phi, index), spectra(phi)
    return dict(values=est.values, covariance=est.covariance, sample=sample, cv=crossed)


def slope(eigenvalues):
    "Minus the slope of log eigenvalue against log rank; negative ones are left out."
    first, last = RANKS
    rank, values = np.arange(first, last + 1), eigenvalues[first - 1 : last]
    seen = values > 0
    if seen.sum() < 3:
        return np.nan
    return -np.polyfit(np.log(rank[seen]), np.log(values[seen]), 1)[0]


def summary(values, errors, truth):
    "Bias, spread, reported error and coverage of 95% intervals."
    values, errors = np.array(values), np.array(errors)
    sd = values.std(ddof=1)
    return {
        "fitted": len(values),
        "bias": values.mean() - truth,
        "sd": sd,
        "bias_over_sd": (values.mean() - truth) / sd,
        "stderr": np.sqrt(np.mean(errors**2)),
        "coverage": np.mean(abs(values - truth) < 1.96 * errors),
    }


FITS = {  # whether the rank is known, and whether every part of the error is counted once
    "rank given": (True, True),
    "rank unknown": (False, True),
    "as the jackknife counts": (True, False),
}


def analyse(case, drawn):
    "One case: the fit with and without the rank, the test, and two slopes."
    found = {key: np.array([x[key] for x in drawn], dtype=float) for key in drawn[0]}
    exponent, rank = LAWS[CASES[case]["law"]]
    shape = CASES[case]["trials"], *SHAPES[CASES[case]["shape"]]
    rows, refused = {key: [] for key in FITS}, 0
    for part in drawn:
        try:
            for key, (known, once) in FITS.items():
                est = as_estimate(part, shape if once else None)
                with warnings.catch_warnings(record=True) as said:
                    warnings.simplefilter("always")
                    fit = sm.power_law(est, rank=rank if known else None)
                doubt = any("hardly determined" in str(w.message) for w in said)
                rows[key].append([fit.exponent, fit.stderr["exponent"], fit.p_value, doubt])
        except ValueError:
            refused += 1
    result = {"matrices": len(found["values"]), "refused": refused}
    for key, values in rows.items():
        value, error, p, doubt = np.array(values, dtype=float).reshape(-1, 4).T
        sure = doubt == 0
        result.setdefault("doubted", int(doubt.sum()))
        if sure.sum() > 5:
            result[key] = summary(value[sure], error[sure], exponent)
            result[key]["rejected"] = float(np.mean(p[sure] < 0.05))
    for key in ("sample", "cv"):
        slopes = np.array([slope(x) for x in found[key]])
        if np.isfinite(slopes).any():
            result[f"slope, {key}"] = {"mean": np.nanmean(slopes), "sd": np.nanstd(slopes)}
    return result


OTHERS = {  # process, shape
    "power": (sm.PowerLaw(1.0, 1000), (150, 300)),
    "exponential": (sm.RBF(1, input_cov=16.0), (150, 300)),
    "ReLU": (sm.ReLU(10), (150, 300)),
    "RBF 3": (sm.RBF(3, kernel_cov=0.25), (300, 600)),
}


def draw_other(name, seed, index):
    "What is kept of one matrix whose law is asked for."
    process, shape = OTHERS[name]
    rng = np.random.default_rng([seed, 100 + list(OTHERS).index(name), index])
    est = silent_estimate(process.sample(*shape, rng), index)
    return dict(values=est.values, covariance=est.covariance)


def as_estimate(part, shape):
    "What was kept, as the fit takes it; without its shape, errors stay as they are."
    m, C = np.array(part["values"]), np.array(part["covariance"])
    known = {} if shape is None else {"shape": shape}
    return SimpleNamespace(values=m, stderr=np.sqrt(C.diagonal()), covariance=C, **known)


def rejections(name, drawn):
    "How often each law is rejected."
    rejected, shape = {}, (1, *OTHERS[name][1])
    for part in drawn:
        for law, fit in compare_laws(as_estimate(part, shape), range(2, 6)).items():
            rejected.setdefault(law, []).append(fit.p_value < 0.05)
    return {law: float(np.mean(x)) for law, x in rejected.items() if law != "broken"}


def measure(run):
    "All cases, and the other processes."
    number = run.settings["n_matrices"]
    drawn = {x: run.repeat(x, partial(draw, x, run.seed), number) for x in CASES}
    number = run.settings["laws"]["n_matrices"]
    others = {x: run.repeat(x, partial(draw_other, x, run.seed), number) for x in OTHERS}
    return {
        "ranks_of_slopes": RANKS,
        "exponents": LAWS,
        "cases": {case: analyse(case, x) for case, x in drawn.items()},
        "rejected": {name: rejections(name, x) for name, x in others.items()},
    }


if __name__ == "__main__":
    from common import main

    quick = {"n_matrices": 2, "laws": {"n_matrices": 2}}
    raise SystemExit(main(__file__, __doc__, measure, SETTINGS, SEED, quick=quick))
