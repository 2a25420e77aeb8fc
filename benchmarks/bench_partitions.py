"""All cycles against one matrix product: time, memory, and the time to make a plan."""

import time
import tracemalloc

import numpy as np

from spectral_moments.partitions import all_cycles, cycle, graph_terms, make_plan


def best(call, repeats):
    "Shortest time of several calls, in seconds."
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def product(size, repeats=9):
    "Time of one matrix product."
    a, b = np.random.default_rng(0).standard_normal((2, size, size))
    return best(lambda: a @ b, repeats)


def make_plans():
    "Enumerate the graphs of orders 1 to 5 and plan their sums, from nothing."
    graph_terms.cache_clear()
    make_plan.cache_clear()
    terms = (graph_terms(cycle(n)) for n in range(1, 6))
    make_plan(tuple(dict.fromkeys(graph for term in terms for graph, _ in term)))


def peak_memory(call):
    "Peak of the memory that numpy allocates during a call, in megabytes."
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def main():
    rng = np.random.default_rng(1)
    print(f"{'':48s}{'measured':>10s}{'target':>10s}")

    def report(name, value, target="", unit="x"):
        print(f"{name:48s}{value:9.1f}{unit}{target:>9}{unit if target else ''}")

    report("plan of all orders up to 5, from nothing", best(make_plans, 3), 1, "s")
    for P, Q, n_max, size, target in [
        (1000, 1000, 3, 1000, ""),
        (1000, 1000, 4, 1000, 25),
        (300, 600, 4, 600, ""),
        (300, 600, 5, 600, 200),
    ]:
        phi = rng.standard_normal((P, Q))
        all_cycles(phi, n_max)
        before = product(size)
        ours = best(lambda phi=phi, n_max=n_max: all_cycles(phi, n_max), 5)
        name = f"{P} x {Q}, n_max = {n_max}, in {size}-cube products"
        report(name, ours / min(before, product(size)), target)
    phi = rng.standard_normal((1000, 1000))
    peak = peak_memory(lambda: all_cycles(phi, 4))
    report("extra memory, 1000 x 1000, n_max = 4", peak, 200, "M")
    phi = rng.standard_normal((100, 20000))
    peak = peak_memory(lambda: all_cycles(phi, 4))
    report("extra memory, 100 x 20000, over the matrix", peak * 1e6 / phi.nbytes)


if __name__ == "__main__":
    main()
