"""Alignment of two systems: bias, spread, reported error and coverage of five estimates.

Writes results/alignment.json, the data of a figure in the chapter on alignment.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # many small products

import math
from functools import partial

import numpy as np

from spectral_moments.processes import LinearPair, RBFPair
from spectral_moments.similarity import alignment, alignment_from_kernels

SEED = 2033
PAIRS = {
    "two linear systems": LinearPair(10, math.pi / 6),
    "RBF of two widths": RBFPair(2, (0.5, 2.0)),
}
SHAPES = (
    (20, 10, 10),
    (20, 60, 60),
    (60, 10, 20),
    (40, 25, 60),
    (100, 100, 100),
    (400, 600, 600),
)
SETTINGS = {
    "n_matrices": 400,
    "processes": "LinearPair(10, pi / 6), RBFPair(2, (0.5, 2))",
    "shapes": [list(shape) for shape in SHAPES],
}
KEYS = ("plain", "rows", "ratio", "corrected", "jackknife")


def plain_alignment(phi, psi):
    "Centred kernel alignment of the sample: biased by few inputs and by few features."
    x, y = phi - phi.mean(axis=0), psi - psi.mean(axis=0)
    cross, one, two = (np.sum((a.T @ b) ** 2) for a, b in ((x, y), (x, x), (y, y)))
    return float(cross / math.sqrt(one * two))


def row_debiased_alignment(phi, psi):
    "Kernel alignment without the bias of few inputs; that of few features remains."
    return alignment_from_kernels(phi @ phi.T, psi @ psi.T, stderr=False).ratio


def jackknifed(found):
    "The ratio with its bias subtracted, wherever it points."
    parts = [x.deviations for x in found.replicates.values()]
    return found.ratio - sum((x.size - 1) * x.mean() for x in parts)


def draw(pair, shape, seed, index):
    "All estimates from one draw, and the reported error."
    phi, psi = pair.sample(*shape, random_state=np.random.default_rng([*seed, index]))
    found = alignment(phi, psi)
    others = plain_alignment(phi, psi), row_debiased_alignment(phi, psi)
    return [*others, found.ratio, found.value, jackknifed(found), found.stderr]


def summary(run, name, pair):
    "One process: mean and spread of every estimate at every size."
    result = {"truth": pair.alignment(), "shapes": [list(shape) for shape in SHAPES]}
    result |= {key: {"mean": [], "se": [], "sd": []} for key in KEYS}
    result |= {"stderr": [], "coverage": [], "undefined": [], "unknown": []}
    for k, shape in enumerate(SHAPES):
        count = run.settings["n_matrices"] // (4 if math.prod(shape[:2]) > 1e5 else 1)
        one = partial(draw, pair, shape, [run.seed, list(PAIRS).index(name), k])
        drawn = run.repeat(f"{name} {shape}", one, max(count, 2))
        drawn = np.array(drawn, dtype=float)
        for values, key in zip(drawn.T, KEYS):
            known = values[np.isfinite(values)]
            sd = known.std(ddof=1)
            result[key]["mean"].append(known.mean())
            result[key]["sd"].append(sd)
            result[key]["se"].append(sd / math.sqrt(len(known)))
        value, error = drawn[:, 3], drawn[:, 5]
        known = np.isfinite(value)
        held = abs(value - pair.alignment())[known] < 1.96 * error[known]
        told = error[np.isfinite(error)]  # infinite: the data do not tell
        result["stderr"].append(math.sqrt(np.mean(told**2)))
        result["unknown"].append(int(np.isinf(error[known]).sum()))
        result["coverage"].append(held.mean())
        result["undefined"].append(int((~known).sum()))
    return result


def measure(run):
    "Both processes."
    return {"pairs": {name: summary(run, name, pair) for name, pair in PAIRS.items()}}


if __name__ == "__main__":
    from common import main

    raise SystemExit(
        main(__file__, __doc__, measure, SETTINGS, SEED, quick={"n_matrices": 3})
    )
