"""Time of all influences, as a ratio to one `increasing` call measured in the same run.

Run as a script: python benchmarks/bench_uncertainty.py
Processor time on one thread is compared first, because it hardly depends on what else the
machine is doing; elapsed time on all cores needs a quiet machine.
"""

import time

import numpy as np
from common import Report, shortest

from spectral_moments.recursion import increasing
from spectral_moments.uncertainty import column_influences, row_influences, standard_errors

P, Q, N_MAX = 300, 600, 7


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


def main():
    report = Report("uncertainty")
    runs = (
        ("processor time, one thread", 1, time.process_time),
        ("elapsed time, all cores", None, time.perf_counter),
    )
    for name, n_jobs, clock in runs:
        rows, columns, errors = ratios(n_jobs, clock)
        for claim, ratio, target in (
            ("influences of all rows", rows, None),
            ("influences of all columns", columns, None),
            ("influences of all rows and columns", rows + columns, 6),
            ("standard errors, given the influences", errors, None),
        ):
            report.row(
                f"{claim}, {name}",
                ratio,
                target,
                sizes=f"{P} x {Q}, n_max = {N_MAX}",
                baseline="one estimate by increasing cycles",
                timing="shortest of 40, in turn",
            )
    report.save()


if __name__ == "__main__":
    main()
