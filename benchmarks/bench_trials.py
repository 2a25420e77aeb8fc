"""Cost of repeated trials, as ratios to one trial measured in the same run.

Run as a script: python benchmarks/bench_trials.py
"""

import itertools
import time

import numpy as np
from common import Report, shortest

from spectral_moments.partitions import all_cycles
from spectral_moments.recursion import increasing
from spectral_moments.trials import (
    assignment_sums,
    cross_all_cycles,
    cross_increasing,
    follow_sequences,
    random_sequences,
)

P, Q, N_MAX, ROUNDS = 150, 300, 7, 25  # short calls, so that the shortest is undisturbed


def shortest_in_turn(functions, rounds, baseline_calls=10):
    """Shortest time of each function; the first is called often, in between the others."""
    baseline, *others = functions
    best = dict.fromkeys(functions, np.inf)
    for _, name in itertools.product(range(rounds), others):
        for turn, calls in ((baseline, baseline_calls), (name, 1)):
            measured = shortest(functions[turn], calls, time.thread_time)
            best[turn] = min(best[turn], measured)
    return best


def recurrences(trials, report):
    """Ratios of the recurrences for increasing cycles to that of one trial."""
    one = trials[0].copy()
    sequences = random_sequences(4, P, N_MAX, 0)
    functions = {
        "one trial": lambda: increasing(one, N_MAX, n_jobs=1),
        "T = 2, one alternation": lambda: assignment_sums(trials[:2], N_MAX, starts=(0,)),
        "T = 2, both alternations": lambda: cross_increasing(trials[:2], N_MAX, n_jobs=1),
        "T = 3, all sequences": lambda: cross_increasing(trials[:3], N_MAX, n_jobs=1),
        "T = 4, all sequences": lambda: cross_increasing(trials, N_MAX, n_jobs=1),
        "T = 4, random sequences (A2)": lambda: follow_sequences(trials, *sequences),
    }
    targets = {"T = 2, one alternation": 1.3, "T = 4, all sequences": 20}
    for function in functions.values():
        function()  # compiles
    best = shortest_in_turn(functions, ROUNDS)
    for name in list(functions)[1:]:
        report.row(
            f"increasing, {name}",
            best[name] / best["one trial"],
            targets.get(name),
            sizes=f"{P} x {Q}, n_max = {N_MAX}",
            baseline="one trial",
            timing=f"processor time of one thread, shortest of {ROUNDS}, in turn",
        )


def cycles(trials, report):
    """Ratio of all cycles across two trials to all cycles of one."""
    functions = {
        "one trial": lambda: all_cycles(trials[0], 4),
        "T = 2": lambda: cross_all_cycles(trials[:2], 4),
    }
    for function in functions.values():
        function()  # plans
    best = shortest_in_turn(functions, 5, baseline_calls=3)
    report.row(
        "all cycles, T = 2",
        best["T = 2"] / best["one trial"],
        sizes=f"{P} x {Q}, n_max = 4",
        baseline="one trial",
        timing="processor time of one thread, shortest of 5, in turn",
    )


def main():
    given, report = np.random.default_rng(0).standard_normal((4, P, Q)), Report("trials")
    recurrences(given, report)
    cycles(given, report)
    report.save()


if __name__ == "__main__":
    main()
