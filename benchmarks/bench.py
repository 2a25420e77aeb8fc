"""How long calls take, as ratios to a baseline of the same run.

python benchmarks/bench.py                 all rows, into results/benchmarks.json
python benchmarks/bench.py --only tall     rows whose name has this word; nothing is stored
python benchmarks/bench.py --beside NAME   another version, importable under this name
python benchmarks/bench.py --tiny          small sizes, nothing is stored

A row is a call, a baseline and a limit. Times are processor times of one process, the
median of several calls after a first one; the baseline is measured in turn with the call.
"""

import argparse
import importlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from shared import store

import spectral_moments as sm

warnings.simplefilter("ignore")
RNG = np.random.default_rng(0)
REPEATS = 5


class Row(NamedTuple):
    "One measurement."

    name: str  # what is measured
    sizes: str
    call: object  # function of the library (this one, or the one beside it)
    baseline: str  # what the time is divided by
    base: object  # function without arguments
    limit: float | None  # of the ratio
    beside: bool = True  # whether the other version has this call


def matrix(*shape):
    "A matrix of twenty dimensions and noise."
    *trials, P, Q = shape
    low = RNG.standard_normal((P, 20)) @ RNG.standard_normal((20, Q))
    return low + RNG.standard_normal((*trials, P, Q))


def product(x):
    "A function that multiplies a matrix with its transpose, by the shorter side."
    return lambda: x @ x.T if x.shape[0] <= x.shape[1] else x.T @ x


def singular_values(x):
    "A function that computes all singular values."
    return lambda: np.linalg.svd(x, compute_uv=False)


def in_memory(tiny):
    "Rows of one matrix in memory."
    few = 4 if tiny else 1
    for P, Q, n, limit in (
        (300, 600, 2, 16),
        (300, 600, 4, 90),
        (1000, 1000, 2, 10),
        (1000, 1000, 4, 120),
        (20_000, 64, 2, 40),
        (20_000, 64, 4, 450),
    ):
        x = matrix(P // few, Q // few)
        yield Row(
            f"estimate, order {n}",
            f"{len(x)} x {x.shape[1]}",
            lambda lib, x=x, n=n: lib.estimate(x, n),
            "a product X'X",
            product(x),
            limit,
        )
    x = matrix(2, 1200 // few, 3000 // few)
    yield Row(
        "estimate, order 2, two repeats",
        " x ".join(map(str, x.shape)),
        lambda lib: lib.estimate(x, 2, trials=True),
        "singular values of one",
        singular_values(x[0]),
        1.5,
    )


def options(tiny):
    "Rows of options, each against the same call without it."
    P, Q = (60, 80) if tiny else (200, 300)
    x, groups = matrix(P, Q), np.arange(P) // 2
    gaps = np.where(RNG.random((P, Q)) < 0.1, np.nan, x)
    counts = RNG.poisson(np.exp(x / 10)).astype(float)
    plain = lambda: sm.estimate(x, 3)
    size = f"{P} x {Q}, order 3"
    yield Row(
        "groups of two",
        size,
        lambda lib: lib.estimate(x, 3, groups=groups),
        "no groups",
        plain,
        6,
    )
    finite = lambda lib: lib.estimate(
        x, 3, population=2 * Q if lib is sm else (None, 2 * Q)
    )
    yield Row("finite population", size, finite, "an infinite one", plain, 3)
    yield Row("missing entries", size, lambda lib: lib.estimate(gaps, 3), "none", plain, 40)
    noisy = lambda lib: lib.estimate(counts, 3, noise="poisson")
    yield Row("Poisson noise", size, noisy, "no law", lambda: sm.estimate(counts, 3), 2)
    repeats = RNG.standard_normal((4, P, Q)) + x
    yield Row(
        "four repeats",
        size,
        lambda lib: lib.estimate(repeats, 3, trials=True),
        "one",
        plain,
        12,
    )
    yield Row(
        "order 6, increasing cycles",
        f"{P} x {Q}",
        lambda lib: lib.estimate(x, 6),
        "order 4",
        lambda: sm.estimate(x, 4),
        60,
    )


def several(tiny):
    "Rows of alignments and of the stream."
    P, Q = (100, 100) if tiny else (1000, 1000)
    x, y = matrix(P, Q), matrix(P, Q)
    yield Row(
        "alignment",
        f"{P} x {Q}",
        lambda lib: lib.alignment(x, y),
        "a product X X'",
        product(x),
        20,
    )
    five = {name: matrix(P // 2, Q // 2) for name in "abcde"}
    yield Row(
        "alignments of five systems",
        f"{P // 2} x {Q // 2}",
        lambda lib: lib.alignments(five),
        "a product X X'",
        product(five["a"]),
        120,
    )
    rows = matrix(20 * P, 128)

    def stream(lib):
        found = lib.Stream(128, 2)
        for k in range(0, len(rows), 1000):
            found.update(rows[k : k + 1000])
        return found.estimate()

    yield Row(
        "stream in batches of 1000",
        f"{len(rows)} x 128",
        stream,
        "a product X'X",
        product(rows),
        30,
    )


def files(tiny, folder):
    "Rows of a memory map that is not loaded."
    P, Q = (4000, 32) if tiny else (200_000, 256)
    path = Path(folder) / "rows.npy"
    x = np.lib.format.open_memmap(path, "w+", shape=(P, Q))
    for k in range(0, P, 10_000):
        x[k : k + 10_000] = matrix(min(10_000, P - k), Q)
    x.flush()
    held = np.load(path)
    for n, limit in ((2, 6), (4, 60)):
        call = lambda lib, n=n: lib.estimate(np.load(path, mmap_mode="r"), n)
        yield Row(
            f"file, order {n}", f"{P} x {Q}", call, "a product X'X", product(held), limit
        )


def networks(tiny):
    "A row of a watched network: steps of training with and without watching."
    import torch

    torch.manual_seed(0)
    layers = [torch.nn.Linear(256, 256) for _ in range(4)]
    model = torch.nn.Sequential(
        *(part for layer in layers for part in (layer, torch.nn.ReLU()))
    )
    batch, optimizer = torch.randn(128, 256), torch.optim.Adam(model.parameters())

    def steps():
        for _ in range(2 if tiny else 50):
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()

    def watched(lib):
        with lib.watch(model, ["1", "3", "5", "7"]):
            steps()

    yield Row(
        "training, four layers watched",
        "4 x 256 units, batch 128",
        watched,
        "the same",
        steps,
        1.15,
    )


def seconds(function, clock):
    "Time of one call."
    begin = clock()
    function()
    return clock() - begin


def measure(row, library, clock):
    "Median time of a call over that of its baseline, measured in turn."
    call = lambda: row.call(library)
    call(), row.base()
    repeats = 1 if seconds(call, clock) > 10 else REPEATS
    times = [(seconds(call, clock), seconds(row.base, clock)) for _ in range(repeats)]
    return statistics.median(a for a, _ in times) / statistics.median(b for _, b in times)


def first_call():
    "Seconds of the first estimate of a fresh process."
    code = (
        "import numpy as np, spectral_moments as sm; sm.estimate(np.random.rand(60, 80), 4)"
    )
    run = lambda: subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)
    run()
    return min(seconds(run, time.perf_counter) for _ in range(3))


def measure_rows(args, other=None):
    "Measure the rows that are asked for, also with another version of the package."
    with tempfile.TemporaryDirectory() as folder:
        parts = in_memory, options, several, lambda tiny: files(tiny, folder), networks
        for row in (row for part in parts for row in part(args.tiny)):
            if args.only not in row.name:
                continue
            ratio = measure(row, sm, time.process_time)
            before = None
            if other is not None and row.beside:
                before = measure(row, other, time.process_time)
            met = "" if args.tiny or ratio <= (row.limit or ratio) else "  MISSED"
            shown = f"{ratio:.2f} (limit {row.limit})"
            print(f"{row.name}, {row.sizes}: {shown} {before or ''}{met}", flush=True)
            yield dict(
                name=row.name,
                sizes=row.sizes,
                baseline=row.baseline,
                ratio=round(ratio, 2),
                limit=row.limit,
                before=before and round(before, 2),
            )


def main():
    "Measure all rows."
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--beside")
    parser.add_argument("--tiny", action="store_true")
    args = parser.parse_args()
    other = args.beside and importlib.import_module(args.beside)
    results = lambda: dict(
        threads=os.environ.get("OMP_NUM_THREADS", "all"),
        first_call=round(first_call(), 2),
        beside=args.beside and other.__version__,
        rows=list(measure_rows(args, other)),
    )
    if args.tiny or args.only:
        list(measure_rows(args, other))
    else:
        store("bench", results, {})


if __name__ == "__main__":
    main()
