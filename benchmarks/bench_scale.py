"""Sketch and stream against matrix products of the same run.

python benchmarks/bench_scale.py
"""

import gc
import resource
import sys
import warnings

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
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def main():
    "Run everything."
    report = Report("scale")
    sketched(PROCESS.sample(300, 300, random_state=0), 7, random_state=0)  # compile
    baseline = product(3000)

    phi = PROCESS.sample(10_000, 10_000, random_state=1)
    gc.collect()
    before = peak()
    seconds = shortest(lambda: sketched(phi, 7, random_state=2), 1)
    common = dict(sizes="10,000 x 10,000, n_max = 7", baseline="a 3000-cube product")
    report.row(
        claim="sketch with standard errors, until it stops by itself",
        ratio=seconds / min(baseline, product(3000)),
        target=60,
        timing="one call",
        **common,
    )
    report.row(
        claim="extra memory of the sketch",
        ratio=peak() - before,
        target=500,
        unit="MB",
        sizes=common["sizes"],
        baseline="the matrix in memory",
        timing="peak of the process",
    )
    del phi

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
    work = 4 * 6 * len(rows) * 256**2  # operations, without E
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
    main()
