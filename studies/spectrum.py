"""Eigenvalues, dimension and norm from estimated moments, over many matrices.

`spectrum`: the figures and tables of the chapters on recovery and on the moment problem.

`feasible`: feasible moments against unbiased ones and KV-row, and eigenvalues against
sample ones. Its two seeds, of the moments and of the eigenvalues, had no part in the choice
of the constants that they check.
"""

import sys
from dataclasses import replace
from functools import partial
from unittest.mock import patch

import numpy as np
from common import Part, main
from comparison import signed_root

import spectral_moments as sm
from spectral_moments.errors import ErrorDistribution, moment_intervals
from spectral_moments.estimation import estimate, participation_ratio
from spectral_moments.estimators import increasing, kong_valiant
from spectral_moments.processes import RBF, Discrete, Linear, ReLU, power_sums
from spectral_moments.spectrum import feasible as fitting
from spectral_moments.spectrum.bounds import function_bounds, largest_eigenvalue_bounds
from spectral_moments.teaching.recovery import recovered_eigenvalues, recovery_bound

ORDERS = 10
PANELS = {
    "linear 100 x 100": dict(shape=(100, 100), count=20, upper=0.6, n_matrices=100),
    "two levels 100 x 100": dict(shape=(100, 100), count=20, upper=1.0, n_matrices=100),
    "Fourier 20 x 20": dict(shape=(20, 20), count=50, upper=0.1, n_matrices=100),
    "Fourier 300 x 300": dict(shape=(300, 300), count=50, upper=0.1, n_matrices=50),
}
POOLED = {"sizes": [1, 10, 100, 1000], "groups": 20}  # 20 x 20 matrices, averaged
SENSITIVITY = {
    "count": [10, 15, 20, 30, 40],
    "n_grid": [10, 30, 100, 500, 2000],
    "orders": [1, 2, 3, 4, 6, 8, 10],
    "n_matrices": 40,
}
CURVE = {"sizes": [50, 100, 200, 400, 800], "orders": [2, 4, 8], "n_matrices": 30}
COVERAGE = {"level": 0.9, "ridges": [0.03, 0.1, 0.3, 1.0], "n_matrices": 300}
SETTINGS = {
    "orders": ORDERS,
    "n_grid": 500,
    "panels": PANELS,
    "pooled": POOLED,
    "sensitivity": SENSITIVITY,
    "curve": CURVE,
    "coverage": COVERAGE,
}


class TwoLevels:
    "Bilinear process with ten eigenvalues 0.5 and ten eigenvalues 0.1."

    spectrum = np.repeat([0.5, 0.1], 10)

    def sample(self, P, Q, rng):
        x, w = (rng.standard_normal((size, 20)) for size in (P, Q))
        return x * np.sqrt(self.spectrum) @ w.T

    def eigenvalues(self, count):
        return np.pad(self.spectrum, (0, max(0, count - 20)))[:count]

    def moments(self, n_max):
        return power_sums(self.spectrum, n_max)


PROCESSES = {
    "linear": Linear(20, scale=0.3),
    "two": TwoLevels(),
    "Fourier": RBF(1, input_cov=400.0),
}


def increasing_estimate(phi, n_max):
    "Moments of increasing cycles in the order given, with their errors."
    return estimate(
        phi, n_max, method="increasing", n_permutations=0, center=False, n_jobs=1
    )


def constant_eigenvalues(m, count):
    "The baseline: every eigenvalue is the mean m(1) / count."
    return np.full(count, m[0] / count)


def summary(found, truth):
    "Mean and 10-90% band of each eigenvalue, and the total absolute error."
    found = np.array(found)
    error = abs(found - truth).sum(axis=1)
    low, high = np.quantile(found, [0.1, 0.9], axis=0)
    return {
        "mean": found.mean(axis=0).round(5).tolist(),
        "low": low.round(5).tolist(),
        "high": high.round(5).tolist(),
        "error": error.mean(),
        "error_se": error.std(ddof=1) / np.sqrt(len(error)),
    }


def matrix(base, name, index):
    "Matrix number `index` of a panel."
    process, number = PROCESSES[name.split()[0]], 10 + list(PANELS).index(name)
    rng = np.random.default_rng([base, number, index])
    return process.sample(*PANELS[name]["shape"], rng)


def panel(base, name, shape, count, upper, n_matrices):
    "All methods on one process."
    process = PROCESSES[name.split()[0]]
    truth = process.eigenvalues(count)
    found, moments = {}, []
    for index in range(n_matrices):
        phi = matrix(base, name, index)
        est = increasing_estimate(phi, ORDERS)
        moments.append(est.values)
        spectrum = np.linalg.svd(phi, compute_uv=False) ** 2 / phi.size
        fit = dict(count=count, upper=upper)
        answers = {
            "empirical": np.pad(spectrum, (0, max(0, count - len(spectrum))))[:count],
            "kv": recovered_eigenvalues(kong_valiant(phi, ORDERS), **fit),
            "ours": recovered_eigenvalues(est.values, **fit),
            "ours, unit weights": recovered_eigenvalues(
                est.values, weights=np.ones(ORDERS), **fit
            ),
            "ours, 1/stderr": recovered_eigenvalues(
                est.values, weights=1 / est.stderr, **fit
            ),
            "constant": constant_eigenvalues(est.values, count),
        }
        for key, value in answers.items():
            found.setdefault(key, []).append(value)
    m, exact = np.array(moments), process.moments(ORDERS)
    return {
        "truth": truth.tolist(),
        "relative_sd": (m.std(axis=0, ddof=1) / exact).tolist(),
        "first_moments": m[0].tolist(),
        "exact_moments_error": abs(
            recovered_eigenvalues(exact, count, upper=upper) - truth
        ).sum(),
        "methods": {key: summary(value, truth) for key, value in found.items()},
    }


def pooled(base, sizes, groups):
    "The 20 x 20 panel from the mean of the moments of many matrices."
    process, truth = PROCESSES["Fourier"], PROCESSES["Fourier"].eigenvalues(50)
    rng = np.random.default_rng([base, 1])
    draws = [
        increasing(process.sample(20, 20, rng), ORDERS, n_jobs=1)
        for _ in range(groups * max(sizes))
    ]
    moments, result = np.array(draws), {}
    exact = process.moments(ORDERS)
    for size in sizes:
        parts = moments[: groups * size].reshape(groups, size, -1)
        means = parts.mean(axis=1)
        found = [recovered_eigenvalues(m, 50, upper=0.1) for m in means]
        result[size] = summary(found, truth)
        result[size]["tenth_relative_sd"] = means[:, -1].std(ddof=1) / exact[-1]
        constant = [constant_eigenvalues(m, 50) for m in means]
        result[size]["constant_error"] = summary(constant, truth)["error"]
        if size > 1:  # weights from the spread over the matrices
            errors = parts.std(axis=1, ddof=1) / np.sqrt(size)
            pairs = zip(means, 1 / errors)
            found = [recovered_eigenvalues(m, 50, upper=0.1, weights=c) for m, c in pairs]
            result[size]["weighted"] = summary(found, truth)
    return result


def padded_error(found, truth):
    "Total absolute error, the shorter spectrum filled up with zeros."
    size = max(len(found), len(truth))
    return abs(
        np.pad(found, (0, size - len(found))) - np.pad(truth, (0, size - len(truth)))
    ).sum()


def sensitivity(base, count, n_grid, orders, n_matrices):
    "Total error for the two-level process as one setting varies."
    process, rng = PROCESSES["two"], np.random.default_rng([base, 2])
    draws = [
        increasing(process.sample(100, 100, rng), ORDERS, n_jobs=1)
        for _ in range(n_matrices)
    ]
    result = {"count": [], "n_grid": [], "orders": [], "count, constant": []}

    def errors(**changes):
        options = {"count": 20, "n_grid": 500, "orders": ORDERS, **changes}
        k = options.pop("orders")
        return [
            padded_error(
                recovered_eigenvalues(m[:k], upper=1.0, **options), process.spectrum
            )
            for m in draws
        ]

    for name, values in (("count", count), ("n_grid", n_grid), ("orders", orders)):
        for value in values:
            e = errors(**{name: value})
            result[name].append([np.mean(e), np.std(e, ddof=1) / np.sqrt(len(e))])
    for value in count:
        e = [padded_error(constant_eigenvalues(m, value), process.spectrum) for m in draws]
        result["count, constant"].append(np.mean(e))
    return result


def curve(base, sizes, orders, n_matrices):
    "Total error and bound for the two-level process as the matrix grows."
    process, rng = PROCESSES["two"], np.random.default_rng([base, 3])
    truth, exact = process.eigenvalues(20), process.moments(ORDERS)
    result = {"constant": [], "empirical": []}
    result |= {f"{kind} {k}": [] for k in orders for kind in ("error", "bound")}
    for size in sizes:
        errors, moments = {}, []
        for _ in range(n_matrices):
            phi = process.sample(size, size, rng)
            m = increasing(phi, max(orders), n_jobs=1)
            spectrum = np.linalg.svd(phi, compute_uv=False)[:20] ** 2 / phi.size
            moments.append(m)
            answers = {
                f"error {k}": recovered_eigenvalues(m[:k], 20, upper=1.0) for k in orders
            }
            answers |= {"constant": constant_eigenvalues(m, 20), "empirical": spectrum}
            for key, value in answers.items():
                errors.setdefault(key, []).append(abs(value - truth).sum())
        for key, e in errors.items():
            result[key].append([np.mean(e), np.std(e, ddof=1) / np.sqrt(len(e))])
        miss = abs(np.array(moments) - exact[: max(orders)]).mean(axis=0)
        for k in orders:
            result[f"bound {k}"].append(recovery_bound(miss[:k], 20, upper=1.0, n_grid=500))
    result["exact moments"] = [
        abs(recovered_eigenvalues(exact[:k], 20, upper=1.0) - truth).sum() for k in orders
    ]
    return result


def covered(bounds, truth):
    "Share of bounds that hold the truth, and their medians over the truth."
    low, high = np.array(bounds).T
    return {
        "coverage": np.mean((low <= truth) & (truth <= high)),
        "low": np.median(low) / truth,
        "high": np.median(high) / truth,
    }


def coverage(base, process, shape, seed, *, level, ridges, n_matrices):
    "How often bounds and intervals hold the truth."
    eigenvalues = process.eigenvalues(20 if isinstance(process, Linear) else 20000)
    m, norm = process.moments(2), eigenvalues[0]
    norms, dimensions, ratios = [], {r: [] for r in ridges}, {False: [], True: []}
    for index in range(n_matrices):
        phi = process.sample(*shape, np.random.default_rng([base, seed, index]))
        est = increasing_estimate(phi, 5)
        norms.append(largest_eigenvalue_bounds(est, level=level))
        for r in ridges:
            dimension = lambda s, ridge=r * norm: s / (s + ridge)
            dimensions[r].append(function_bounds(est, dimension, level=level, n_grid=300))
        for center, found in ratios.items():
            ratio = participation_ratio(phi, center=center)
            found.append([*ratio.interval(level), ratio.value, ratio.stderr])
    result = {"operator_norm": covered(norms, norm), "effective_dimension": {}}
    for r, bounds in dimensions.items():
        truth = (eigenvalues / (eigenvalues + r * norm)).sum()
        result["effective_dimension"][r] = {"truth": truth, **covered(bounds, truth)}
    for center, name in ((False, "participation_ratio"), (True, "centred")):
        rows, truth = np.array(ratios[center]), m[0] ** 2 / m[1]
        result[name] = {"truth": truth, **covered(rows[:, :2], truth)}
        result[name]["bias"] = rows[:, 2].mean() / truth - 1
        result[name]["stderr_over_sd"] = rows[:, 3].mean() / rows[:, 2].std(ddof=1)
    if not isinstance(process, Linear):
        del result["centred"]  # its features have a mean that is not zero
    return result


COVERED = {
    "linear 100 x 100": (PROCESSES["linear"], (100, 100), 4),
    "Fourier 150 x 300": (RBF(3, kernel_cov=0.25), (150, 300), 5),
}


def measure(run):
    "Everything that the chapter shows."
    seed, settings = run.seed, run.settings
    result = {"panels": {}, "coverage": {}}
    one = lambda index: increasing(matrix(seed, "linear 100 x 100", index), 2, n_jobs=1)
    run.repeat("first matrices", one, 2)
    for name, options in settings["panels"].items():
        result["panels"][name] = run.once(name, panel, seed, name, **options)
    for part in (pooled, sensitivity, curve):
        key = part.__name__
        result[key] = run.once(key, part, seed, **settings[key])
    for name, case in COVERED.items():
        key = f"coverage {name}"
        found = run.once(key, coverage, seed, *case, **settings["coverage"])
        result["coverage"][name] = found
    return result


# --- feasible moments ---------------------------------------------------------------------

LATER = 8  # what is added to the seed for the eigenvalues, which were chosen later
N_MAX = 7
POWERS = np.arange(1, N_MAX + 1)
FEASIBLE = {"n_matrices": 200, "n_max": N_MAX}
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


def draw_feasible(case, seed, index):
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
    with patch.multiple(fitting, **changes):
        return sm.feasible(est).values


def interval(values, stderr, tail):
    "Ends of the intervals of moments with errors that are nearly normal."
    return moment_intervals(values, POWERS, ErrorDistribution(stderr, 0.0, np.inf), tail)


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
    truth, roots = process.moments(N_MAX), signed_root(process.moments(N_MAX), POWERS)
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
            answers.setdefault(key, []).append((signed_root(x, POWERS) / roots - 1)[1:])
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
        few = replace(
            fit, max_entropy=fit.trace
        )  # the measure of the fit itself, of few points
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
    return {c: run.repeat(c + part, partial(draw_feasible, c, seed), count) for c in CASES}


def measure_feasible(run):
    "All cases."
    drawn = matrices(run, "", run.seed)
    fresh = matrices(run, ", eigenvalues", run.seed + LATER)
    names = ("SMOOTHING", "COPIES", "SHRINKAGE", "FACTOR")
    constants = {name.lower(): getattr(fitting, name) for name in names}
    return constants | {
        "evenness": fitting.ENTROPY_WEIGHT,
        "cases": {
            case: analyse(case, drawn[case], run.seed)
            | analyse_eigenvalues(case, fresh[case])
            for case in CASES
        },
    }


PARTS = {
    "spectrum": Part(measure, SETTINGS, 2028),
    "feasible": Part(measure_feasible, FEASIBLE, 4119),
}

if __name__ == "__main__":
    sys.exit(main(__file__, __doc__, PARTS))
