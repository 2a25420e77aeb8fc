"""Time of an estimate with its standard errors, as a ratio to the same without them.

Run as a script: python benchmarks/bench_uncertainty.py
Processor time on one thread is compared first, because it hardly depends on what else the
machine is doing; elapsed time on all cores needs a quiet machine.
"""

import time

import numpy as np
from common import Report, shortest

from spectral_moments import Linear, estimate

N_MAX, SHAPES, MOST = 4, ((300, 600), (1000, 1000)), 4


def ratio(shape, clock, rounds=5):
    """Time with errors over time without, the shortest of calls that alternate."""
    phi = Linear(20).sample(*shape, np.random.default_rng(0))
    best = dict.fromkeys((False, True), np.inf)
    for _ in range(rounds):  # in turn, so that both see the same machine
        for errors in best:
            call = lambda errors=errors: estimate(phi, N_MAX, stderr=errors, random_state=0)
            best[errors] = min(best[errors], shortest(call, 2, clock))
    return best[True] / best[False]


def main():
    report = Report("uncertainty")
    clocks = {"processor": time.process_time, "elapsed": time.perf_counter}
    for shape in SHAPES:
        for name, clock in clocks.items():
            report.row(
                f"estimate with standard errors, {name} time",
                ratio(shape, clock),
                MOST,
                sizes=f"{shape[0]} x {shape[1]}, n_max = {N_MAX}",
                baseline="the same without errors",
                timing="shortest of 10, in turn",
            )
    report.save()


if __name__ == "__main__":
    main()
