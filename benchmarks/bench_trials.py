"""Cost of repeated trials, as ratios to one trial measured in the same run.

Run as a script: python benchmarks/bench_trials.py
"""

import itertools
import time

import numpy as np

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


def report(what, value, target="-"):
    """One line of the table."""
    print(f"{what:62s} {value:>8s}   target {target}", flush=True)


def seconds(function):
    """Processor time of one call in this thread."""
    begin = time.thread_time()
    function()
    return time.thread_time() - begin


def shortest_in_turn(functions, rounds, baseline_calls=10):
    """Shortest time of each function; the first is called often, in between the others."""
    baseline, *others = functions
    best = dict.fromkeys(functions, np.inf)
    for _, name in itertools.product(range(rounds), others):
        for _ in range(baseline_calls):
            best[baseline] = min(best[baseline], seconds(functions[baseline]))
        best[name] = min(best[name], seconds(functions[name]))
    return best


def recurrences(trials):
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
    targets = {"T = 2, one alternation": "<= 1.3", "T = 4, all sequences": "<= 20"}
    for function in functions.values():
        function()  # compiles
    best = shortest_in_turn(functions, ROUNDS)
    print(f"increasing, {P} x {Q}, n_max = {N_MAX}, one thread, over one trial")
    for name in list(functions)[1:]:
        ratio = best[name] / best["one trial"]
        report(f"  {name}", f"{ratio:.2f}", targets.get(name, "-"))


def cycles(trials):
    """Ratio of all cycles across two trials to all cycles of one."""
    functions = {
        "one trial": lambda: all_cycles(trials[0], 4),
        "T = 2": lambda: cross_all_cycles(trials[:2], 4),
    }
    for function in functions.values():
        function()  # plans
    best = shortest_in_turn(functions, 5, baseline_calls=3)
    print(f"all_cycles, {P} x {Q}, n_max = 4, over one trial")
    report("  T = 2", f"{best['T = 2'] / best['one trial']:.2f}")


if __name__ == "__main__":
    given = np.random.default_rng(0).standard_normal((4, P, Q))
    recurrences(given)
    cycles(given)
