"""Time of all influences, as a ratio to one `increasing` call measured in the same run.

Run as a script: python benchmarks/bench_uncertainty.py
Processor time on one thread is compared first, because it hardly depends on what else the
machine is doing; elapsed time on all cores needs a quiet machine.
"""

import time

import numpy as np

from spectral_moments.recursion import increasing
from spectral_moments.uncertainty import column_influences, row_influences, standard_errors

P, Q, N_MAX = 300, 600, 7


def shortest(function, repetitions, clock):
    """Shortest time of several calls."""
    times = []
    for _ in range(repetitions):
        begin = clock()
        function()
        times.append(clock() - begin)
    return min(times)


def report(what, value, target):
    """One line of the table."""
    print(f"{what:66s} {value:>10s}   target {target}", flush=True)


def ratios(n_jobs, clock, rounds=10):
    """Times of row and column influences over that of one estimate."""
    phi = np.random.default_rng(0).standard_normal((P, Q))
    calls = {
        "once": lambda: increasing(phi, N_MAX, n_jobs=n_jobs),
        "rows": lambda: row_influences(phi, N_MAX, n_jobs=n_jobs),
        "columns": lambda: column_influences(phi, N_MAX, n_jobs=n_jobs),
    }
    best = dict.fromkeys(calls, np.inf)
    for _ in range(rounds):  # in turn, so that all see the same machine
        for name, call in calls.items():
            best[name] = min(best[name], shortest(call, 4, clock))
    influences = calls["rows"](), calls["columns"]()
    errors = shortest(lambda: standard_errors(*influences), 20, clock)
    return (
        best["rows"] / best["once"],
        best["columns"] / best["once"],
        errors / best["once"],
    )


if __name__ == "__main__":
    runs = (
        ("processor time, one thread", 1, time.process_time),
        ("elapsed time, all cores", None, time.perf_counter),
    )
    for name, n_jobs, clock in runs:
        rows, columns, errors = ratios(n_jobs, clock)
        print(f"{P} x {Q}, n_max = {N_MAX}, {name}, relative to `increasing`")
        report("  influences of the rows", f"{rows:.2f}x", "-")
        report("  influences of the columns", f"{columns:.2f}x", "-")
        report("  all influences", f"{rows + columns:.2f}x", "<= 6x")
        report("  standard errors, given the influences", f"{errors:.3f}x", "-")
