"""All cycles against one matrix product: time, memory, and the time to make a plan.

python benchmarks/bench_cycles.py
"""

import tracemalloc

import numpy as np
from common import Report, by, in_turn, product, shortest, sized, third_above

from spectral_moments import all_cycles
from spectral_moments.engine.graphs import graph_terms, word_patterns, word_weights
from spectral_moments.engine.planner import make_plan

TIMES = (  # P, Q, n_max, size of the product, what version 0.1 took
    *((1000, 1000, 3, 1000, 3.717), (1000, 1000, 4, 1000, 11.45)),
    *((300, 600, 4, 600, 4.297), (300, 600, 5, 600, 140.1)),
)
MEMORY = ((1000, 1000, 11.01), (100, 20_000, 7.041))  # P, Q, what version 0.1 took


def make_plans():
    "Enumerate the graphs of orders 1 to 5 and plan their sums, from nothing."
    for cache in (word_patterns, word_weights, graph_terms, make_plan):
        cache.cache_clear()
    make_plan(word_weights(tuple(("phi",) * n for n in range(1, 6))).graphs)


def peak_memory(call):
    "Peak of the memory that numpy allocates during a call, in bytes."
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def main():
    rng, report = np.random.default_rng(1), Report("cycles")
    report.row(
        "plan of all orders up to 5, from nothing",
        shortest(make_plans, sized(3, 1)),
        1,
        unit="s",
        timing="shortest of 3",
    )
    for P, Q, n_max, size, before in sized(TIMES, ((30, 60, 4, 60, 4.297),)):
        phi = rng.standard_normal((P, Q))
        calls = [lambda x=phi, n=n_max: all_cycles(x, n), product(size)]
        report.row(
            "time of all cycles",
            np.divide(*in_turn(calls, 9)),
            third_above(before),
            sizes=f"{by(P, Q)}, n_max = {n_max}",
            baseline=f"one product of {size} x {size} matrices",
            timing="shortest of 9, in turn",
        )
    for P, Q, before in sized(MEMORY, ((100, 100, 11.01),)):
        phi = rng.standard_normal((P, Q))
        report.row(
            "extra memory of all cycles",
            peak_memory(lambda x=phi: all_cycles(x, 4)) / phi.nbytes,
            third_above(before),
            sizes=f"{by(P, Q)}, n_max = 4",
            baseline="the matrix itself",
            timing="peak of what numpy allocates",
        )
    report.save()


if __name__ == "__main__":
    main()
