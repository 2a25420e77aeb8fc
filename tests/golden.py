"""Sixty calls and all they give, to see what a change changes.

python tests/golden.py    # write tests/data/golden.json anew
"""

import json
import tempfile
import warnings
from pathlib import Path

import numpy as np
import torch

import spectral_moments as sm
from spectral_moments.engine.data import open_data
from spectral_moments.estimation import estimate_words
from spectral_moments.noise import noise_check
from spectral_moments.processes import Discrete, LinearPair

STORED = Path(__file__).resolve().parent / "data" / "golden.json"


def made(P=30, Q=24, seed=0, dim=4, T=None, noise=0.5):
    "A matrix of few dimensions with a mean and noise; or repeats of it."
    rng = np.random.default_rng(seed)
    signal = rng.normal(size=(P, dim)) @ rng.normal(size=(dim, Q)) + 1
    return signal + noise * rng.normal(size=signal.shape if T is None else (T, P, Q))


X, Y, SMALL = made(), made(Q=20, seed=1), made(12, 9, seed=2)
REPEATS, MANY = made(T=3, seed=3), made(T=6, seed=4)
GAPS = np.where(np.random.default_rng(5).random(X.shape) < 0.08, np.nan, X)
COUNTS = np.random.default_rng(6).poisson(np.exp(made(seed=6) / 3)).astype(float)
EQUAL, COLUMNS = np.arange(30) // 2, np.arange(24) // 2
UNEQUAL = np.repeat(np.arange(16), [1, 2, 3, 2] * 3 + [1, 1, 2, 2])
SPIKE = X + 1e12 * np.eye(30, 24, 1) * (np.arange(30) == 3)[:, None]
TALL = made(5000, 12, seed=7)
ISOTROPIC, DECAY = sm.Linear(20).sample(120, 100, 3), [1, 0.3, 0.15, 0.1]
ERRORS = np.diag([1e-3, 9e-4, 5e-4, 4e-4]) + 2e-4  # a fit to these is the same everywhere
E, DRAWN = sm.estimate, dict(n_permutations=5)


def words(given, asked, **options):
    return estimate_words(open_data(given, **options), [tuple(word) for word in asked])


def streamed(x, parts, groups=None, trials=None, **options):
    "The estimate of two merged streams."
    streams, ends = [sm.Stream(x.shape[-1], **options) for _ in range(2)], np.cumsum(parts)
    for k, rows in enumerate(np.split(np.arange(x.shape[-2]), ends[:-1])):
        some = None if groups is None else groups[rows]
        streams[k % 2].update(x[..., rows, :], some, trials)
    return streams[0].merge(streams[1]).estimate()


def stored(x, **options):
    "The estimate of a file that is not loaded."
    from unittest.mock import patch

    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/x.npy", x)
        with patch("spectral_moments.engine.arrays.MAX_LOADED_BYTES", 0):
            return sm.estimate(np.load(f"{folder}/x.npy", mmap_mode="r"), **options)


AB = {"a": X, "b": Y}
CALLS = {
    "plain": lambda: E(X, 4),
    "default": lambda: E(X),
    "uncentred": lambda: E(X, 4, center=False),
    "order six": lambda: E(X, 6, **DRAWN),
    "order six, uncentred": lambda: E(X, 6, center=False, random_state=3, **DRAWN),
    "increasing": lambda: E(X, 4, method="increasing", **DRAWN),
    "increasing, order given": lambda: E(X, 3, method="increasing", n_permutations=0),
    "no errors": lambda: E(X, 3, stderr=False),
    "small": lambda: E(SMALL, 4),
    "tensor": lambda: E(torch.tensor(X), 3),
    "large units": lambda: E(1e90 * X, 2),
    "small units": lambda: E(1e-200 * X, 2),
    "constant": lambda: E(np.full((8, 6), 3.0), 2),
    "an entry far larger": lambda: E(SPIKE, 3, center=False, **DRAWN),
    "copies": lambda: E(np.concatenate([X[:20], X[:10]]), 2),
    "groups of equal size": lambda: E(X, 3, groups=EQUAL),
    "groups": lambda: E(X, 3, groups=UNEQUAL),
    "groups, uncentred": lambda: E(X, 4, groups=UNEQUAL, center=False, **DRAWN),
    "groups, order four": lambda: E(X, 4, groups=EQUAL, **DRAWN),
    "column groups": lambda: E(X, 3, column_groups=COLUMNS, **DRAWN),
    "both groups": lambda: E(X, 2, groups=EQUAL, column_groups=COLUMNS, **DRAWN),
    "population": lambda: E(X, 4, population=60),
    "all features": lambda: E(X, 3, population="all", center=False),
    "groups, population": lambda: E(X, 3, groups=UNEQUAL, population=60),
    "poisson": lambda: E(COUNTS, 3, noise="poisson"),
    "poisson, all features": lambda: E(COUNTS, 3, noise="poisson", population="all"),
    "binomial": lambda: E(np.minimum(COUNTS, 9), 2, noise=("binomial", 9), groups=EQUAL),
    "variance": lambda: E(X, 2, noise=np.linspace(0.1, 0.3, 24), population=30),
    "two repeats": lambda: E(REPEATS[:2], 4, trials=True),
    "three repeats": lambda: E(REPEATS, 3, trials=True, center=False),
    "six repeats": lambda: E(MANY, 2, trials=True, population=50),
    "repeats, groups": lambda: E(REPEATS, 2, trials=True, groups=UNEQUAL),
    "missing": lambda: E(GAPS, 4, **DRAWN),
    "missing, uncentred": lambda: E(GAPS, 4, center=False),
    "missing, groups": lambda: E(GAPS, 2, groups=EQUAL, **DRAWN),
    "missing, population": lambda: E(GAPS, 2, population=60),
    "missing repeats": lambda: E(np.stack([GAPS, X, GAPS[::-1]]), 2, trials=True),
    "tall": lambda: E(TALL, 3),
    "tall groups": lambda: E(TALL, 2, groups=np.arange(5000) // 4, population=20),
    "file": lambda: stored(TALL, n_max=3, sample=1500),
    "file of repeats": lambda: stored(made(900, 8, T=2), n_max=2, trials=True),
    "stream": lambda: streamed(TALL, [500, 1500, 2000, 1000], n_max=3, sample=1200),
    "stream of groups": lambda: streamed(X, [10, 20], EQUAL, sample=20, population="all"),
    "stream of repeats": lambda: streamed(REPEATS, [10, 12, 8], trials=True),
    "words": lambda: words(AB, ["a", "ab", "aab", "abab", "bb"]),
    "words, groups": lambda: words(AB, ["aa", "ab", "bb"], groups=UNEQUAL),
    "words, shared": lambda: words({"a": X, "b": X**2}, ["ab", "aabb"], shared=True),
    "dimension": lambda: E(X, 3).dimension(),
    "dimension of order three": lambda: E(X, 3).derive(
        lambda m: (m[0] ** 3 / m[2]) ** 0.5, "reciprocal", name="Dimension (order 3)"
    ),
    "participation ratio": lambda: sm.participation_ratio(REPEATS, trials=True),
    "derived": lambda: E(X, 3).derive(lambda m: m[2] / m[0] ** 3, "log", name="skew"),
    "alignment": lambda: sm.alignment(X, Y),
    "alignment, whole layers": lambda: sm.alignment(X, Y, population="all"),
    "alignments": lambda: sm.alignments({**AB, "c": X[:, :15] ** 2}),
    "compare": lambda: sm.compare({**AB, "c": SMALL}),
    "ridge": lambda: sm.spectral_function(ISOTROPIC, ("ridge", 10.0)),
    "power law": lambda: sm.power_law(sm.from_moments(DECAY, covariance=ERRORS)),
    "noise check": lambda: noise_check(np.stack([COUNTS, COUNTS[::-1]])),
    "estimators": lambda: {
        "naive": sm.naive(X, 4),
        "rows": sm.kong_valiant(X, 4),
        "columns": sm.kong_valiant(REPEATS, 3, sampled="columns", trials=True),
        "increasing": sm.increasing(X, 6, n_permutations=3),
        "all cycles": sm.all_cycles(GAPS, 4),
    },
    "processes": lambda: {
        "linear": sm.Linear(5).moments(4),
        "rbf": sm.RBF(2).moments(4),
        "power": sm.PowerLaw(1.2).moments(4),
        "discrete": Discrete(SMALL).moments(4),
        "pair": LinearPair(4, 0.5).alignment(),
        "sample": sm.RBF(2).sample(4, 3, random_state=1).ravel(),
    },
}  # fmt: skip


def fields(result):
    "All that a result has: numbers, labels, notes, what is printed."
    if isinstance(result, dict):
        found = {name: np.asarray(x).tolist() for name, x in result.items()}
        return json.loads(json.dumps(found))
    found = result.to_dict()
    if getattr(result, "covariance", None) is not None:
        covariance = np.asarray(result.covariance)
        found["covariance"] = covariance[np.triu_indices(len(covariance))].tolist()
    elif hasattr(result, "error_by_source"):
        found["error_by_source"] = {
            kind: np.asarray(x).tolist() for kind, x in result.error_by_source.items()
        }
    found["text"] = str(result)
    text = json.dumps(found, default=str).replace(sm.__version__, "VERSION")
    return json.loads(text)


def run(name):
    "The fields of one call; warnings do not matter here."
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fields(CALLS[name]())


if __name__ == "__main__":
    STORED.parent.mkdir(exist_ok=True)
    lines = [f"{json.dumps(name)}: {json.dumps(run(name))}" for name in CALLS]
    STORED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{len(lines)} calls in {STORED}")
