"""Exponents of power laws: bias, spread, reported errors, coverage, and the tests of fit.

python studies/exponents.py [--draws N] [--stored] [--cache FOLDER]

Writes results/exponents.json. Estimates are kept in the cache, so that an interrupted run
goes on and a new analysis starts from them; delete it after a change of the estimators.
Takes about an hour and a half on one core the first time.
"""

import argparse
import json
import os
import platform
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import scipy

import spectral_moments as sm
from spectral_moments.exponents import compare_laws

SEED = 2032
N_MAX = 6
N_DRAWS = 200
RANKS = (5, 50)  # of the straight lines through sample and cross-validated spectra
LAWS = {"0.7": (0.7, 20_000), "1": (1.0, 1000), "1.5": (1.5, 1000)}  # exponent, rank
SHAPES = {"150 x 300": (150, 300), "400 x 600": (400, 600)}
SETTINGS = {
    f"{law}, {shape}, {kind}": dict(law=law, shape=shape, trials=2 if "two" in kind else 1)
    for shape in SHAPES
    for kind in ("one trial", "two noisy trials, centred")
    for law in LAWS
}


def matrix(setting, index):
    "Matrix number `index` of a setting, or two trials with noise as large as the signal."
    option = SETTINGS[setting]
    rng = np.random.default_rng([SEED, list(SETTINGS).index(setting), index])
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


def draw(setting, index):
    "What is kept of one matrix."
    phi = matrix(setting, index)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sm.EstimateWarning)
        est = sm.estimate(phi, N_MAX, center=phi.ndim == 3, random_state=index)
    sample, crossed = spectra(phi)
    return dict(values=est.values, covariance=est.covariance, sample=sample, cv=crossed)


def replace(path, write):
    "Write a file through a temporary one, so that it is whole or not there."
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part" + path.suffix)
    write(part)
    os.replace(part, path)


def draws(setting, number, cache, stored=False):
    "Estimates of the first `number` matrices, computed where they are not in the cache."
    path = cache / f"{setting}.npz"
    rows = {k: list(v) for k, v in np.load(path).items()} if path.exists() else {}
    for index in range(number if stored else len(rows.get("values", ())), number):
        for key, value in draw(setting, index).items():
            rows.setdefault(key, []).append(value)
        if index % 10 == 9 or index == number - 1:
            replace(path, lambda part: np.savez(part, **rows))
    return {key: np.array(value)[:number] for key, value in rows.items()}


def arguments():
    "Command line."
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--force", action="store_true", help="replace a larger study")
    root = Path(__file__).parents[1]
    parser.add_argument("--draws", type=int, default=N_DRAWS)
    parser.add_argument("--stored", action="store_true", help="only what the cache holds")
    parser.add_argument("--cache", type=Path, default=root / "_build" / "exponents")
    return parser.parse_args()


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


def analyse(setting, found):
    "One setting: the fit with and without the rank, the test, and two slopes."
    exponent, rank = LAWS[SETTINGS[setting]["law"]]
    rows, refused = {"rank given": [], "rank unknown": []}, 0
    for m, C in zip(found["values"], found["covariance"]):
        est = SimpleNamespace(values=m, stderr=np.sqrt(C.diagonal()), covariance=C)
        try:
            for key, known in (("rank given", rank), ("rank unknown", None)):
                with warnings.catch_warnings(record=True) as said:
                    warnings.simplefilter("always")
                    fit = sm.power_law(est, rank=known)
                doubt = any("hardly determined" in str(w.message) for w in said)
                rows[key].append([fit.exponent, fit.stderr["exponent"], fit.p_value, doubt])
        except ValueError:
            refused += 1
    result = {"matrices": len(found["values"]), "refused": refused}
    for key, values in rows.items():
        value, error, p, doubt = np.array(values, dtype=float).T
        sure = doubt == 0
        result["doubted"] = int(doubt.sum())
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


def laws(name, number):
    "How often each law is rejected."
    process, shape = OTHERS[name]
    rejected = {}
    for index in range(number):
        rng = np.random.default_rng([SEED, 100 + list(OTHERS).index(name), index])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sm.EstimateWarning)
            est = sm.estimate(process.sample(*shape, rng), N_MAX, random_state=index)
        for law, fit in compare_laws(est, range(2, 6)).items():
            rejected.setdefault(law, []).append(fit.p_value < 0.05)
    return {law: float(np.mean(x)) for law, x in rejected.items() if law != "broken"}


if __name__ == "__main__":
    from common import refuse_fewer

    options = arguments()
    found = {
        name: draws(name, options.draws, options.cache, options.stored) for name in SETTINGS
    }
    output = {
        "command": "python studies/exponents.py",
        "seed": SEED,
        "n_max": N_MAX,
        "ranks_of_slopes": RANKS,
        "laws": LAWS,
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
        },
        "settings": {name: analyse(name, x) for name, x in found.items()},
        "rejected": {name: laws(name, max(2, options.draws // 10)) for name in OTHERS},
    }
    path = Path(__file__).parents[1] / "results" / "exponents.json"
    if not options.force:
        refuse_fewer(path, {name: x["matrices"] for name, x in output["settings"].items()})
    text = json.dumps(output, indent=1) + "\n"
    replace(path, lambda part: part.write_text(text))
