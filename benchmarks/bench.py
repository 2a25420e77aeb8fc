"""How long calls take, as ratios to a baseline of the same process.

python benchmarks/bench.py                 all rows, into results/benchmarks.json
python benchmarks/bench.py --beside PATH   and those of the version in this folder, in turn
python benchmarks/bench.py --only tall     rows whose name has this word; nothing is stored
python benchmarks/bench.py --tiny          small sizes, nothing is stored

A row is a call, a baseline and a limit. Each version has a process of its own, which
measures a row whenever it is asked; call, baseline and versions take turns. Times are
processor times, the median of several calls after a first one.
"""

import argparse
import json
import os
import resource
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
LEAST = 0.02  # seconds of a measurement: shorter calls are made several times
MOST = 10.0  # seconds of a call beyond which it is measured once
OLD = sm.__version__ < "1"  # the version beside
ROOT = Path(__file__).resolve().parents[1]


class Row(NamedTuple):
    "One measurement, in functions without arguments."

    name: str  # what is measured
    sizes: str
    call: object
    baseline: str  # what the time is divided by
    base: object
    limit: float | None  # of the ratio


def matrix(*shape):
    "A matrix of twenty dimensions and noise."
    *trials, P, Q = shape
    low = RNG.standard_normal((P, 20)) @ RNG.standard_normal((20, Q))
    return low + RNG.standard_normal((*trials, P, Q))


def against_product(name, x, call, limit):
    "A row in products of a matrix with its transpose, by the shorter side."
    product = lambda: x @ x.T if x.shape[0] <= x.shape[1] else x.T @ x
    return Row(name, f"{len(x)} x {x.shape[1]}", call, "a product X'X", product, limit)


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
        call = lambda x=x, n=n: sm.estimate(x, n)
        yield against_product(f"estimate, order {n}", x, call, limit)
    x = matrix(2, 1200 // few, 3000 // few)
    size, call = " x ".join(map(str, x.shape)), lambda: sm.estimate(x, 2, trials=True)
    svd = lambda: np.linalg.svd(x[0], compute_uv=False)
    name, baseline = "estimate, order 2, two repeats", "singular values of one"
    yield Row(name, size, call, baseline, svd, 1.5)


def options(tiny):
    "Rows of options, each against the same call without it."
    P, Q = (60, 80) if tiny else (200, 300)
    x, groups = matrix(P, Q), np.arange(P) // 2
    gaps = np.where(RNG.random((P, Q)) < 0.1, np.nan, x)
    counts = RNG.poisson(np.exp(x / 10)).astype(float)
    repeats = RNG.standard_normal((4, P, Q)) + x
    population = (None, 2 * Q) if OLD else 2 * Q
    size = f"{P} x {Q}, order 3"
    plain = lambda: sm.estimate(x, 3)
    grouped = lambda: sm.estimate(x, 3, groups=groups)
    finite = lambda: sm.estimate(x, 3, population=population)
    missing = lambda: sm.estimate(gaps, 3)
    noisy = lambda: sm.estimate(counts, 3, noise="poisson")
    no_law = lambda: sm.estimate(counts, 3)
    repeated = lambda: sm.estimate(repeats, 3, trials=True)
    fourth, sixth = lambda: sm.estimate(x, 4), lambda: sm.estimate(x, 6)
    yield Row("groups of two", size, grouped, "no groups", plain, 6)
    yield Row("finite population", size, finite, "an infinite one", plain, 3)
    yield Row("missing entries", size, missing, "none", plain, 40)
    yield Row("Poisson noise", size, noisy, "no law", no_law, 2)
    yield Row("four repeats", size, repeated, "one", plain, 12)
    yield Row("order 6, increasing cycles", f"{P} x {Q}", sixth, "order 4", fourth, 60)


def several(tiny):
    "Rows of alignments and of the stream."
    P, Q = (100, 100) if tiny else (1000, 1000)
    x, y = matrix(P, Q), matrix(P, Q)
    yield against_product("alignment", x, lambda: sm.alignment(x, y), 20)
    five = {name: matrix(P // 2, Q // 2) for name in "abcde"}
    call = lambda: sm.alignments(five)
    yield against_product("alignments of five systems", five["a"], call, 120)
    rows = matrix(20 * P, 128)

    def stream():
        found = sm.Stream(128, 2)
        for k in range(0, len(rows), 1000):
            found.update(rows[k : k + 1000])
        return found.estimate()

    yield against_product("stream in batches of 1000", rows, stream, 30)


def files(tiny, folder):
    "Rows of a memory map that is not loaded."
    P, Q = (4000, 32) if tiny else (200_000, 256)
    path = Path(folder) / f"rows_{os.getpid()}.npy"
    x = np.lib.format.open_memmap(path, "w+", shape=(P, Q))
    for k in range(0, P, 10_000):
        x[k : k + 10_000] = matrix(min(10_000, P - k), Q)
    x.flush()
    held = np.load(path)
    for n, limit in ((2, 6), (4, 60)):
        call = lambda n=n: sm.estimate(np.load(path, mmap_mode="r"), n)
        yield against_product(f"file, order {n}", held, call, limit)


def networks(tiny):
    "A row of a watched network: steps of training with and without watching."
    import torch

    torch.manual_seed(0)
    layers = [torch.nn.Linear(256, 256) for _ in range(4)]
    model = torch.nn.Sequential(
        *(part for layer in layers for part in (layer, torch.nn.ReLU()))
    )
    batch, optimizer = torch.randn(128, 256), torch.optim.Adam(model.parameters(), 1e-12)

    def steps():
        for _ in range(2 if tiny else 50):
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()

    def watched():
        with sm.watch(model, ["1", "3", "5", "7"]):
            steps()

    size = "4 x 256 units, batch 128"
    yield Row("training, four layers watched", size, watched, "the same", steps, 1.15)


# --- measuring, in the process of one version -----------------------------------------


def seconds(function, count):
    "Processor and elapsed seconds of one of several calls."
    begin = time.process_time(), time.perf_counter()
    for _ in range(count):
        function()
    end = time.process_time(), time.perf_counter()
    return [(end[clock] - begin[clock]) / count for clock in (0, 1)]


def warm(function):
    "How often to call a function in one measurement, and how many measurements to make."
    if seconds(function, 1)[1] > MOST:
        return 1, 1
    elapsed = seconds(function, 1)[1]
    return max(1, round(LEAST / elapsed)), REPEATS


def rows_of(args, folder):
    "The rows that are asked for."
    parts = in_memory, options, several, lambda tiny: files(tiny, folder), networks
    for part in parts:
        yield from (row for row in part(args.tiny) if args.only in row.name)


def serve(args):
    "For each row: what it is, and its times for each line `again` on standard input."
    answers, sys.stdout = sys.stdout, sys.stderr
    say = lambda answer: print(json.dumps(answer), file=answers, flush=True)
    for row in rows_of(args, args.serve):
        about = dict(name=row.name, sizes=row.sizes, baseline=row.baseline, limit=row.limit)
        calls, repeats = warm(row.call)
        bases, _ = warm(row.base)
        say(about | {"repeats": repeats})
        while input() == "again":
            say([seconds(row.call, calls), seconds(row.base, bases)])
    say(None)


# --- asking the versions in turn -------------------------------------------------------


class Version:
    "A process that measures rows with the library of one folder."

    def __init__(self, path, args, folder):
        self.environment = {**os.environ, "PYTHONPATH": str(path)}
        self.command = [sys.executable, "-W", "ignore"]
        script = [__file__, "--serve", folder, "--only", args.only]
        self.process = subprocess.Popen(
            [*self.command, *script, *["--tiny"] * args.tiny],
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def read(self):
        "The next answer."
        return json.loads(self.process.stdout.readline())

    def ask(self, word):
        "Send a word: `again` or `next`; the answer to it."
        print(word, file=self.process.stdin, flush=True)
        return self.read()

    def run(self, code):
        "Processor and elapsed seconds of a fresh process."
        spent = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
        begin = spent(), time.perf_counter()
        subprocess.run([*self.command, "-c", code], check=True, env=self.environment)
        return [spent() - begin[0], time.perf_counter() - begin[1]]


FRESH = {  # name of a row: code that a fresh process runs
    "import of a fresh process": "import spectral_moments as sm; sm.estimate",
    "first estimate of a fresh process": (
        "import numpy as np, spectral_moments as sm; sm.estimate(np.random.rand(60, 80), 4)"
    ),
}


def fresh_rows(versions, only):
    "Times of fresh processes, over that of one that imports numpy."
    base = "import numpy"
    for name, code in FRESH.items():
        if only in name:
            for version in versions:
                version.run(code)
            times = [[[v.run(code), v.run(base)] for v in versions] for _ in range(REPEATS)]
            about = dict(name=name, sizes="", baseline="an import of numpy", limit=None)
            yield about, list(zip(*times))


def asked_rows(versions):
    "Times of all rows, of the versions in turn."
    abouts = [version.read() for version in versions]
    while abouts[0]:
        times = [[] for _ in versions]
        for turn in range(REPEATS):
            for version, about, found in zip(versions, abouts, times):
                if turn < about["repeats"]:
                    found.append(version.ask("again"))
        yield abouts[0], times
        abouts = [version.ask("next") for version in versions]


def medians(times):
    "Median processor and elapsed seconds of call and baseline, and their ratio."
    call, base = np.median(times, axis=0)
    three = lambda numbers: [float(f"{x:.3g}") for x in numbers]
    return dict(ratio=three(call / base)[0], call=three(call), base=three(base))


def measure_rows(args):
    "All rows: this version as `now`, the one beside as `before`."
    paths = [ROOT, args.beside] if args.beside else [ROOT]
    with tempfile.TemporaryDirectory() as folder:
        versions = [Version(path, args, folder) for path in paths]
        for measured in (asked_rows(versions), fresh_rows(versions, args.only)):
            for about, times in measured:
                row = about | dict(zip(("now", "before"), map(medians, times)))
                shown = [row[key]["ratio"] for key in ("before", "now") if key in row]
                missed = shown[-1] > (row["limit"] or np.inf) and not args.tiny
                about = f"{row['name']}, {row['sizes']}: {shown}, limit {row['limit']}"
                print(about, "MISSED" * missed, flush=True)
                yield row


def main():
    "Measure all rows."
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--beside", metavar="PATH")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve(args)
    elif args.tiny or args.only:
        list(measure_rows(args))
    else:
        threads = os.environ.get("OMP_NUM_THREADS", "all")
        store("bench", lambda: dict(threads=threads, rows=list(measure_rows(args))), {})


if __name__ == "__main__":
    main()
