"""Dimension of parts of a recorded cortex, and of the whole: IT and V4 of two macaques.

The figures of the chapter on the recording; cortex.npz has the leave-one-out deviations of
the moments for each image and each site. Needs the recordings: python
studies/recordings.py.

`one_trial`, a table of the chapter on noise: single repeats with and without the variance
of their noise. The recording is z-scored for each site and repeat, so there are no counts
and no Poisson law; but the variance of its noise is known from the other repeats.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # many small products

import sys
from functools import partial

import numpy as np
from alignment import plain_alignment
from common import Part, main
from dimensionality import participation_ratio
from recordings import halves, load

from spectral_moments import alignments, all_cycles, estimate, kong_valiant, naive

SEED = 2031
SYSTEMS = {
    "IT": ("IT", None),
    "IT, Chabo": ("IT", "Chabo"),
    "IT, Tito": ("IT", "Tito"),
    "V4, Chabo": ("V4", "Chabo"),
    "V4, Tito": ("V4", "Tito"),
}
SETTINGS = {
    "repetitions": 100,  # submatrices of each size
    "sites": [10, 20, 40, 80, 120],
    "images": [20, 50, 100, 200, 500, 1000],
    "shapes": [[20, 20], [50, 40], [100, 80], [400, 80], [1000, 120]],
    "swept": ["IT", "IT, Tito", "IT, Chabo"],
    "orders": 4,
}
METHODS = {  # of repeats (T, images, sites) without their mean
    "naive": naive,
    "kv_row": kong_valiant,
    "kv_col": partial(kong_valiant, sampled="columns"),
}
QUANTILES = [0.1, 0.25, 0.5, 0.75, 0.9]


def ratio(m):
    "m(1)^2 / m(2)."
    return m[0] ** 2 / m[1]


def dimensions(pair, one):
    "m(1), m(2), dimension from two halves; naive dimension of their mean and of one trial."
    est = estimate(pair, trials=True)
    plain = [ratio(naive(x - x.mean(axis=0), 2)) for x in (pair.mean(axis=0), one)]
    return [*est.values, est.dimension().value, *plain]


def drawn(pair, one, shape, seed):
    "The same of a random submatrix."
    rng = np.random.default_rng(seed)
    rows, columns = (rng.permutation(size)[:part] for size, part in zip(one.shape, shape))
    part = rows[:, None], columns
    return dimensions(pair[:, *part], one[part])


def swept(run, name, pair, one, shape):
    "Many submatrices of one size."
    count, shape = run.settings["repetitions"], tuple(shape)
    place = list(SYSTEMS).index(name)
    task = lambda i: drawn(pair, one, shape, [run.seed, place, *shape, i])
    found = np.array(run.repeat(f"{name} {shape}", task, count), dtype=float)
    mean, error = found[:, :2].mean(axis=0), found[:, :2].std(axis=0, ddof=1) / count**0.5
    spread = np.nanquantile(found[:, 2:], QUANTILES, axis=0)
    keys = ("halves", "naive, mean of 28", "naive, one trial")
    return {
        "shape": shape,
        "moments": mean,
        "moments_error": error,
        "dimension_of_means": ratio(mean),
        "undefined": int(np.isnan(found[:, 2]).sum()),
        "quantiles": dict(zip(keys, spread.T)),
        "means": dict(zip(keys, np.nanmean(found[:, 2:], axis=0))),
        "first": [x if np.isfinite(x) else None for x in found[0]],
    }


def sweeps(run, name, trials):
    "Submatrices with all images, with all sites, and with few of both."
    pair, one = halves(trials), trials[0].astype(float)
    P, Q = one.shape
    shapes = {
        "sites": [(P, q) for q in run.settings["sites"] if q < Q],
        "images": [(p, Q) for p in run.settings["images"]],
        "both": [shape for shape in run.settings["shapes"] if shape[1] < Q],
    }
    found = {
        kind: [swept(run, name, pair, one, shape) for shape in sizes]
        for kind, sizes in shapes.items()
    }
    whole = dimensions(pair, one)
    return found | {"shape": [P, Q], "whole": whole}


def packed(est):
    "An estimate as JSON holds it, and what leaving out each unit does to it."
    deviations = {name: source.deviations for name, source in est.replicates.items()}
    return est.to_dict() | {"deviations": deviations}


def look(trials):
    "Share of each site's variance that repeats; mean product of repeats by distance."
    x = trials - trials.mean(axis=1, keepdims=True, dtype=float)
    T, (a, b) = len(x), halves(x)
    share = (a * b).mean(axis=0) / (x**2).mean(axis=(0, 1))
    flat = x.reshape(T, -1)
    products = flat @ flat.T / flat.shape[1]
    by_distance = [np.diagonal(products, k).mean() for k in range(1, T)]
    return {
        "mean": [*np.quantile(trials.mean(axis=1), [0, 0.5, 1])],
        "sd": [*np.quantile(trials.std(axis=1), [0, 0.5, 1])],
        "share": np.sort(share),
        "by_distance": by_distance,
    }


def ways(trials):
    "Dimension by three kinds of data and four estimators, and by two other packages."
    pair, one = halves(trials), trials[0].astype(float)
    data = {"one trial": one[None], "mean of 28": pair.mean(axis=0)[None]}
    data["two halves"], found = pair, {}
    for name, x in data.items():
        centred = x - x.mean(axis=1, keepdims=True)
        found[name] = [ratio(way(centred, 2, trials=True)) for way in METHODS.values()]
        found[name].append(ratio(all_cycles(x, 2, center=True, trials=True)))
    x, y = pair - pair.mean(axis=1, keepdims=True)
    axes = np.linalg.svd(x, full_matrices=False)[2].T
    variances = ((x @ axes) * (y @ axes)).mean(axis=0)
    found["cvPCA"] = variances.sum() ** 2 / (variances**2).sum()
    found["dimensionality, mean of 28"] = participation_ratio(data["mean of 28"][0])
    found["dimensionality, two halves"] = participation_ratio(*pair)
    return found


def splits(trials):
    "Dimension from odd and even repeats, and from the first and the last half of them."
    late = np.stack([x.mean(axis=0, dtype=float) for x in np.split(trials, 2)])
    pairs = (halves(trials), late)
    return [estimate(x, trials=True).dimension().value for x in pairs]


def choices(trials, objects):
    "Dimension and error by what counts as a sample."
    options = [{}, {"groups": objects}, {"population": "all"}]
    options.append({"population": "all", "groups": objects})
    pair = halves(trials)
    found = [estimate(pair, trials=True, **option).dimension() for option in options]
    return [number for each in found for number in (each.value, each.stderr)]


def aligned(systems):
    "Matrices of the alignments, their errors, and the usual alignments of the means."
    found, means = (
        alignments(systems, trials=True),
        [x.mean(axis=0) for x in systems.values()],
    )
    plain = [[plain_alignment(x, y) for y in means] for x in means]
    return {"values": found.values, "stderr": found.stderr, "plain": plain}


def in_runs(trials, animals):
    "Dimension, error, 95% interval with runs of five sites of an animal as groups."
    runs = [f"{x} {np.sum(animals[:k] == x) // 5}" for k, x in enumerate(animals)]
    found = estimate(halves(trials), column_groups=runs, trials=True).dimension()
    return [found.value, found.stderr, *found.interval()]


def answers(trials, objects):
    "The small tables of the chapter."
    single = {name: x for name, x in trials.items() if "," in name}
    return {
        "runs": {k: in_runs(x, load(*SYSTEMS[k]).animals) for k, x in trials.items()},
        "ways": ways(trials["IT"]),
        "splits": {name: splits(x) for name, x in single.items()},
        "choices": {name: choices(x, objects) for name, x in single.items()},
    }


def measure(run):
    "The estimates of all systems, their alignments, and the sweeps."
    trials = {name: load(*which).trials for name, which in SYSTEMS.items()}
    single = {name: x for name, x in trials.items() if "," in name}
    seen = {name: run.once(f"look {name}", look, x) for name, x in single.items()}
    whole = lambda x: packed(estimate(halves(x), run.settings["orders"], trials=True))
    estimates = {k: run.once(f"estimate {k}", whole, x) for k, x in trials.items()}
    deviations = {
        f"{name}: {axis}": np.array(x, dtype=np.float32)
        for name, est in estimates.items()
        for axis, x in est.pop("deviations").items()
    }
    np.savez_compressed(run.folder / "cortex.npz", **deviations)
    about = {
        "quantiles": QUANTILES,
        "columns": ["m(1)", "m(2)", "halves", "naive, mean of 28", "naive, one trial"],
        "look": seen,
        "estimates": estimates,
        "alignments": run.once("alignments", aligned, single),
        "answers": run.once("answers", answers, trials, load("IT").objects),
    }
    found = {name: sweeps(run, name, trials[name]) for name in run.settings["swept"]}
    return about | {"sweeps": found}


# --- one trial ----------------------------------------------------------------------------

SINGLE = ("IT, Chabo", "IT, Tito", "V4, Chabo", "V4, Tito")
ONE_TRIAL = {"repetitions": 6, "every": 4}  # repeats that are taken alone; pictures


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


def measure_one_trial(run):
    "All areas."
    settings = run.settings
    return {"areas": {name: run.once(name, compared, name, settings) for name in SINGLE}}


PARTS = {
    "cortex": Part(measure, SETTINGS, SEED),
    "one_trial": Part(measure_one_trial, ONE_TRIAL, 0),
}

if __name__ == "__main__":
    sys.exit(main(__file__, __doc__, PARTS))
