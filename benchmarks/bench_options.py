"""What populations, weights, groups, gaps and trials add to the cost of an estimate.

python benchmarks/bench_options.py
"""

import time

import numpy as np
from common import Report, by, in_turn, sized, third_above
from threadpoolctl import threadpool_limits

import spectral_moments as sm


def options(rng, report):
    "Options of `estimate`, each against the same call without it; the mean is kept."
    P, Q = sized((300, 600), (60, 90))
    phi = rng.standard_normal((P, Q))
    gappy = np.where(rng.random((P, Q)) < 0.05, np.nan, phi)
    labels, weights = np.arange(P) // 5, rng.random(P)
    cycles, blocks = dict(method="all_cycles"), dict(method="blocks")
    cases = (
        ("population", phi, dict(cycles, population=(10 * P, 10 * Q)), cycles, 1.1),
        ("row weights", phi, dict(cycles, row_weights=weights), cycles, 2.2),
        ("gaps", gappy, cycles, cycles, None),
        ("groups", phi, dict(blocks, groups=labels), blocks, 1.5),
    )
    for name, given, ours, theirs, target in cases:
        calls = [
            lambda x=x, o=o: sm.estimate(x, 4, center=False, **o)
            for x, o in ((given, ours), (phi, theirs))
        ]
        report.row(
            f"estimate with {name}",
            np.divide(*in_turn(calls, 10)),
            target,
            sizes=f"{by(P, Q)}, n_max = 4",
            baseline=f"method = {theirs['method']}, without",
            timing="shortest of 10, in turn",
        )


def trials(rng, report):
    "Repeated trials against one, values only, processor time of one thread."
    P, Q = sized((150, 300), (30, 60))
    phi = rng.standard_normal((4, P, Q))
    increasing = lambda x: sm.increasing(x, 7, random_state=0, n_jobs=1)
    cases = (
        ("increasing, two trials", increasing, 2, 7, third_above(2.113)),
        ("increasing, three trials", increasing, 3, 7, third_above(7.97)),
        ("increasing, four trials", increasing, 4, 7, third_above(15.42)),
        ("all cycles, two trials", lambda x: sm.all_cycles(x, 4), 2, 4, third_above(1.986)),
    )
    for name, function, T, n_max, target in cases:
        calls = [lambda f=function, x=x: f(x) for x in (phi[:T], phi[0])]
        with threadpool_limits(1):  # waiting threads of BLAS would count as well
            times = in_turn(calls, 15, time.process_time)
        report.row(
            name,
            np.divide(*times),
            target,
            sizes=f"{by(P, Q)}, n_max = {n_max}",
            baseline="one trial",
            timing="processor time of one thread, shortest of 15, in turn",
        )


def main():
    rng, report = np.random.default_rng(0), Report("options")
    options(rng, report)
    trials(rng, report)
    report.save()


if __name__ == "__main__":
    main()
