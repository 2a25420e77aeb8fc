"""Rounding of a stream of a million rows, against arithmetic of twice the precision.

python studies/precision.py     writes results/precision.json
"""

import math

import numpy as np
from numba import njit

from spectral_moments.scale import Stream

SETTINGS = {
    "process": "Linear(5), features drawn before inputs",
    "n_features": 64,
    "n_max": 4,
    "rows": [1_000, 10_000, 100_000, 1_000_000],
}
SEED = 11


@njit
def two_sum(a, b):
    "a + b as a rounded sum and its error."
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@njit
def two_product(a, b):
    "a * b as a rounded product and its error."
    p, x, y = a * b, 134217729.0 * a, 134217729.0 * b
    ah, bh = x - (x - a), y - (y - b)
    al, bl = a - ah, b - bh
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


@njit
def add_product(high, low, x, x_low, y):
    "(high + low) + (x + x_low) * y, in about 32 digits."
    p, e = two_product(x, y)
    s, t = two_sum(high, p)
    t += low + (e + x_low * y)
    total = s + t
    return total, t - (total - s)


@njit
def advance(rows, R, R_low):
    "The streaming recurrence, all columns as lanes; R has shape (n_max, Q, Q)."
    n_max, Q, lanes = R.shape
    for a in range(len(rows)):
        c, c_low = np.zeros((n_max + 1, lanes)), np.zeros((n_max + 1, lanes))
        c[0] = rows[a]
        for b in range(Q):
            x = rows[a, b]
            for k in range(n_max - 1, -1, -1):
                for j in range(lanes):
                    r, r_low = R[k, b, j], R_low[k, b, j]
                    R[k, b, j], R_low[k, b, j] = add_product(
                        r, r_low, c[k, j], c_low[k, j], x
                    )
                    c[k + 1, j], c_low[k + 1, j] = add_product(
                        c[k + 1, j], c_low[k + 1, j], r, r_low, x
                    )


def doubled(R, R_low, P):
    "The estimates from the state in double-double numbers."
    n_max, Q, _ = R.shape
    sums = [math.fsum([*np.diag(R[k]), *np.diag(R_low[k])]) for k in range(n_max)]
    return [sums[n - 1] / (math.comb(P, n) * math.comb(Q, n)) for n in range(1, n_max + 1)]


def draw(n_rows, seed):
    "Rows of a linear process in 5 dimensions; fewer rows are the first of more."
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((SETTINGS["n_features"], 5))
    return rng.standard_normal((n_rows, 5)) @ features.T


def compare(rows, seed):
    "Estimates by `Stream` and in double-double numbers after each number of rows."
    Q, n_max = SETTINGS["n_features"], SETTINGS["n_max"]
    phi = draw(max(rows), seed)
    stream, done, found = Stream(Q, n_max, mergeable=False), 0, []
    R, R_low = np.zeros((n_max, Q, Q)), np.zeros((n_max, Q, Q))
    for P in rows:
        stream.update(phi[done:P])
        advance(phi[done:P], R, R_low)
        done, exact = P, np.array(doubled(R, R_low, P))
        error = abs(stream.estimate(stderr=False).values / exact - 1)
        found.append(
            {"rows": P, "values": exact.tolist(), "relative_error": error.tolist()}
        )
    return found


def measure(run):
    "All numbers of rows."
    return {"points": run.once("points", compare, run.settings["rows"], run.seed)}


if __name__ == "__main__":
    from common import main

    raise SystemExit(
        main(__file__, __doc__, measure, SETTINGS, SEED, quick={"rows": [1000]})
    )
