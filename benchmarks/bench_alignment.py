"""Cost of the alignment of two systems, in Gram products measured in the same run.

Run as a script: python benchmarks/bench_alignment.py
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import time
import warnings

import numpy as np
from common import Report, shortest

from spectral_moments import EstimateWarning, alignment, alignments

ROUNDS = 5


def shortest_in_turn(functions):
    """Shortest processor time of each function, called in turn."""
    best = [np.inf] * len(functions)
    for _ in range(ROUNDS):
        for k, function in enumerate(functions):
            best[k] = min(best[k], shortest(function, 1, time.thread_time))
    return best


def main():
    warnings.simplefilter("ignore", EstimateWarning)
    report = Report("alignment")
    timing = f"processor time of one thread, shortest of {ROUNDS}, in turn"
    x, y, *others = np.random.default_rng(0).standard_normal((5, 1000, 1000))
    tall, wide = np.random.default_rng(1).standard_normal((2, 4000, 250))
    systems = dict(zip("abcde", (x, y, *others)))
    cases = {
        "alignment with its error": ((lambda: alignment(x, y)), (lambda: x @ x.T), 12),
        "the same for five systems, ten pairs": (
            (lambda: alignments(systems)),
            (lambda: x @ x.T),
            5 * 12,
        ),
        "alignment of tall matrices": (
            (lambda: alignment(tall, wide)),
            (lambda: tall.T @ tall),
            None,
        ),
    }
    sizes = "1000 x 1000", "1000 x 1000", "4000 x 250"
    for (claim, (function, gram, target)), size in zip(cases.items(), sizes):
        product, whole = shortest_in_turn([gram, function])
        report.row(
            f"{claim}, in Gram products",
            whole / product,
            target,
            sizes=size,
            baseline="one Gram product",
            timing=timing,
        )
    report.save()


if __name__ == "__main__":
    main()
