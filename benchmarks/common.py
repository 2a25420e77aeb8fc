"""Timing and reporting, shared by the benchmarks.

How a benchmark joins the page of the book (three lines, and `shortest` if it likes):

    from common import Report, shortest

    report = Report("kernel")  # one name per script, `bench_kernel.py`
    report.row(
        claim="increasing against cumulative sums, times faster",  # what the book says
        ratio=slow / fast,  # what was measured, over a baseline of the same run
        target=60,  # a number, a pair (low, high), or None if there is none
        at_most=False,  # True (the default): at or below the target is good
        unit="x",  # printed after both; also "s", "MB", "%" (of a ratio), ""
        sizes="300 x 600, n_max = 7",
        baseline="cumulative sums in numpy",
        timing="shortest of 80 calls",
    )
    report.save()  # replaces this script's part of results/benchmarks.json

Each row is printed when it is made. The page `nbs/benchmarks.ipynb` reads the file.
With `--tiny` a script runs at small sizes and stores nothing: `sized(full, small)` chooses.
"""

import importlib.util
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from spectral_moments import EstimateWarning

FILE = Path(__file__).parents[1] / "results" / "benchmarks.json"
SEED = 0  # of the matrices
TINY = "--tiny" in sys.argv[1:]  # a trial of the script: small sizes, nothing is stored
warnings.simplefilter("ignore", EstimateWarning)  # random matrices deserve their doubts


def begun():
    "What the running script is, as the studies say it, and a clock that counts from now."
    path = FILE.parents[1] / "studies" / "common.py"
    spec = importlib.util.spec_from_file_location("studies_common", path)
    studies = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(studies)
    command = f"python benchmarks/{Path(sys.argv[0]).name}"
    store = studies.Checkpoint(None, studies.request(command, SEED, {}))
    return studies.provenance(store), store.seconds


def cores():
    "How many this process may use."
    every = hasattr(os, "sched_getaffinity") and len(os.sched_getaffinity(0))
    return every or os.cpu_count()


def sized(full, small):
    "The size to use in this run."
    return small if TINY else full


def third_above(before):
    "A target: at most a third more than was measured before."
    return before * 4 / 3


def by(*sizes):
    "Sizes in words."
    return " x ".join(f"{size:,}" if size >= 10_000 else str(size) for size in sizes)


def shortest(function, repetitions, clock=time.perf_counter):
    "Shortest time of several calls, in seconds."
    times = []
    for _ in range(repetitions):
        begin = clock()
        function()
        times.append(clock() - begin)
    return min(times)


def in_turn(functions, rounds, clock=time.perf_counter):
    "Shortest time of each function; they take turns, so that all see the same machine."
    for function in functions:
        function()  # compiles, plans, fills caches
    rounds = min(rounds, 2) if TINY else rounds
    times = [[shortest(f, 1, clock) for f in functions] for _ in range(rounds)]
    return np.min(times, axis=0)


def product(size):
    "A function that multiplies two square matrices."
    a, b = np.random.default_rng(0).standard_normal((2, size, size))
    return lambda: a @ b


def in_child(code, *arguments):
    "The numbers that `code` prints, run in a fresh interpreter with `peak()` defined."
    command = [sys.executable, "-c", PEAK + code, *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


PEAK = """
import re, sys
def peak():
    "Largest memory of this process so far, in MB."
    status = open("/proc/self/status").read()
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) / 1024
"""


def is_met(value, target, at_most):
    "Whether a value meets its target; None if there is no target."
    if target is None:
        return None
    if isinstance(target, (tuple, list)):
        return bool(target[0] <= value <= target[1])
    return bool(value <= target if at_most else value >= target)


def shown(value, unit):
    "A number with its unit, in three digits."
    if unit == "%":
        return f"{value:.0%}"
    if unit == "s" and value < 0.01:
        value, unit = 1000 * value, "ms"
    digits = f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return digits + (unit if unit == "x" else f"\u00a0{unit}" if unit else "")


def wanted(target, at_most, unit):
    "A target in words."
    if target is None:
        return "-"
    if isinstance(target, (tuple, list)):
        return f"{shown(target[0], '')} to {shown(target[1], unit)}"
    return f"{'≤' if at_most else '≥'}\u00a0{shown(target, unit)}"


class Report:
    "The rows of one benchmark: printed as they come, saved at the end."

    def __init__(self, name):
        self.name, self.rows, (self.about, self.seconds) = name, [], begun()

    def row(
        self,
        claim,
        ratio,
        target=None,
        *,
        at_most=True,
        unit="x",
        sizes="",
        baseline="",
        timing="",
    ):
        "Add and print one measurement."
        target = None if TINY else target  # small sizes say nothing about targets
        met, goal = is_met(ratio, target, at_most), wanted(target, at_most, unit)
        self.rows.append(
            {
                "claim": claim,
                "sizes": sizes,
                "baseline": baseline,
                "timing": timing,
                "ratio": float(f"{ratio:.4g}"),
                "shown": shown(ratio, unit),
                "target": goal,
                "met": met,
            }
        )
        verdict = {None: "", True: "met", False: "NOT MET"}[met]
        what = f"{claim}, {sizes}" if sizes else claim
        print(f"{what:76s} {shown(ratio, unit):>9s}  {goal:14s} {verdict}", flush=True)

    def save(self):
        "Replace the part of this benchmark in results/benchmarks.json."
        if TINY:
            return
        found = json.loads(FILE.read_text()) if FILE.exists() else {}
        known = {
            name: part
            for name, part in found.get("benchmarks", {}).items()
            if (FILE.parents[1] / part["script"]).exists()
        }
        where = {"script": f"benchmarks/bench_{self.name}.py", "cores": cores()}
        measured = {"seconds": self.seconds(), "rows": self.rows}
        parts = known | {self.name: where | self.about | measured}
        output = {"command": "make bench", "benchmarks": dict(sorted(parts.items()))}
        FILE.write_text(json.dumps(output, indent=1) + "\n")
