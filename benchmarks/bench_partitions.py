"""All cycles against one matrix product: time, memory, and the time to make a plan."""

import tracemalloc

import numpy as np
from common import Report, shortest

from spectral_moments.partitions import all_cycles, cycle, graph_terms, make_plan


def product(size, repeats=9):
    "Time of one matrix product."
    a, b = np.random.default_rng(0).standard_normal((2, size, size))
    return shortest(lambda: a @ b, repeats)


def make_plans():
    "Enumerate the graphs of orders 1 to 5 and plan their sums, from nothing."
    graph_terms.cache_clear()
    make_plan.cache_clear()
    terms = (graph_terms(cycle(n)) for n in range(1, 6))
    make_plan(tuple(dict.fromkeys(graph for term in terms for graph, _ in term)))


def peak_memory(call):
    "Peak of the memory that numpy allocates during a call, in bytes."
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def main():
    rng, report = np.random.default_rng(1), Report("partitions")
    report.row(
        "plan of all orders up to 5, from nothing",
        shortest(make_plans, 3),
        1,
        unit="s",
        timing="shortest of 3",
    )
    for P, Q, n_max, size, target in [
        (1000, 1000, 3, 1000, None),
        (1000, 1000, 4, 1000, 25),
        (300, 600, 4, 600, None),
        (300, 600, 5, 600, 200),
    ]:
        phi = rng.standard_normal((P, Q))
        all_cycles(phi, n_max)
        before = product(size)
        ours = shortest(lambda phi=phi, n_max=n_max: all_cycles(phi, n_max), 5)
        report.row(
            "time of all cycles",
            ours / min(before, product(size)),
            target,
            sizes=f"{P} x {Q}, n_max = {n_max}",
            baseline=f"one product of {size} x {size} matrices",
            timing="shortest of 5 and of 18",
        )
    for P, Q, target in ((1000, 1000, 25), (100, 20000, None)):
        phi = rng.standard_normal((P, Q))
        report.row(
            "extra memory of all cycles",
            peak_memory(lambda phi=phi: all_cycles(phi, 4)) / phi.nbytes,
            target,
            sizes=f"{P} x {Q}, n_max = 4",
            baseline="the matrix itself",
            timing="peak of what numpy allocates",
        )
    report.save()


if __name__ == "__main__":
    main()
