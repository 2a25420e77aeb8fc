"""Sketch and stream against matrix products of the same run.

python benchmarks/bench_scale.py
"""

import json
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from common import Report, shortest

from spectral_moments.rbf import RBF
from spectral_moments.recursion import increasing
from spectral_moments.results import EstimateWarning
from spectral_moments.scale import Stream, sketched

warnings.simplefilter("ignore", EstimateWarning)
PROCESS = RBF(5, kernel_cov=0.25)


def product(size):
    "Seconds of one matrix product."
    x = np.random.default_rng(0).standard_normal((size, size))
    return shortest(lambda: x @ x, 5)


def peak():
    "Largest memory of this process so far, in MB."
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024


def measure_large(path):
    "In a process of its own: seconds, extra memory and rounds for the matrix in a file."
    phi = np.load(path)
    sketched(phi[:300, :300], 7, random_state=0)  # compile
    before = peak()
    seconds = shortest(lambda: sketched(phi, 7, random_state=2), 1)
    print(json.dumps([seconds, peak() - before]))


def main():
    "Run everything."
    report = Report("scale")
    sketched(PROCESS.sample(300, 300, random_state=0), 7, random_state=0)  # compile
    baseline = product(3000)

    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/phi.npy"
        np.save(path, PROCESS.sample(10_000, 10_000, random_state=1))
        command = [sys.executable, __file__, path]
        out = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, memory = json.loads(out.stdout)
    common = dict(sizes="10,000 x 10,000, n_max = 7", timing="one call")
    report.row(
        claim="sketch with standard errors, until it stops by itself",
        ratio=seconds / min(baseline, product(3000)),
        target=60,
        baseline="a 3000-cube product",
        **common,
    )
    report.row(
        claim="extra memory of the sketch",
        ratio=memory,
        target=500,
        unit="MB",
        baseline="the matrix in memory",
        **common,
    )

    options = dict(n_permutations=0, stderr=False, random_state=0)
    times = []
    for size in (2000, 4000):
        phi = PROCESS.sample(size, size, random_state=1)
        times.append(shortest(lambda: sketched(phi, 7, **options), 5))  # noqa: B023
    report.row(
        claim="one round of the sketch, time at twice the rows and columns",
        ratio=times[1] / times[0],
        target=4.6,
        sizes="4000 x 4000 over 2000 x 2000",
        baseline="itself at half the size",
        timing="shortest of 5 calls",
    )

    phi = PROCESS.sample(2000, 2000, random_state=1)
    exact = shortest(lambda: increasing(phi, 7), 2)
    report.row(
        claim="one round of the sketch against one exact walk, times faster",
        ratio=exact / times[0],
        at_most=False,
        sizes="2000 x 2000, n_max = 7, 128 lanes",
        baseline="increasing, one order",
        timing="shortest of 5 and 2 calls",
    )

    rows = np.random.default_rng(0).standard_normal((2048, 256))
    work = 2 * (2 * 7 - 1) * len(rows) * 256**2  # operations, without E
    flat = product(1500) / (2 * 1500**3)
    for mergeable in (False, True):
        stream = Stream(256, 7, mergeable=mergeable).update(rows)
        seconds = shortest(lambda: stream.update(rows), 5)  # noqa: B023
        report.row(
            claim="stream, " + ("with" if mergeable else "without") + " what merging needs",
            ratio=seconds / (work * flat),
            sizes="2048 rows of 256 features, n_max = 7",
            baseline="a 1500-cube product at the same number of operations",
            timing="shortest of 5 calls",
        )
    other = Stream(256, 7).update(rows)
    report.row(
        claim="merge of two streams, in rows that could be streamed meanwhile",
        ratio=shortest(lambda: other.merge(other), 3) / seconds * len(rows),
        unit="rows",
        sizes="256 features, n_max = 7",
        baseline="stream of 2048 rows",
        timing="shortest of 3 calls",
    )
    report.save()


if __name__ == "__main__":
    main() if len(sys.argv) == 1 else measure_large(sys.argv[1])
