"""Time and memory of `increasing`, as ratios to baselines measured in the same run.

python benchmarks/bench_kernel.py
"""

import sys

import numpy as np
from common import Report, by, in_child, in_turn, shortest, sized

from spectral_moments import increasing
from spectral_moments.checks import check_n_jobs
from spectral_moments.teaching.recursion import cumulative

N_MAX = 7
FIRST_CALL = """
import time, numpy
from spectral_moments import increasing
begin = time.perf_counter()
increasing(numpy.ones((20, 30)), 4)
print(time.perf_counter() - begin)
"""
MEMORY = """
import numpy
from spectral_moments import increasing
increasing(numpy.ones((20, 30)), 7)
size = int(sys.argv[1])
phi = numpy.random.default_rng(0).standard_normal((size, size))
before = peak()
increasing(phi, 7)
print(peak() - before - phi.nbytes / 2**20)
"""


def speed(rng, report):
    "Ratios to cumulative sums in numpy and to one thread."
    P, Q = sized((300, 600), (40, 60))
    phi = rng.standard_normal((P, Q))
    np.testing.assert_allclose(increasing(phi, N_MAX), cumulative(phi, N_MAX), rtol=1e-8)
    ours, one = in_turn(
        [lambda: increasing(phi, N_MAX), lambda: increasing(phi, N_MAX, n_jobs=1)], 20
    )
    sizes = f"{by(P, Q)}, n_max = {N_MAX}"
    report.row(
        "increasing, times faster",
        shortest(lambda: cumulative(phi, N_MAX), 2) / ours,
        60,
        at_most=False,
        sizes=sizes,
        baseline="cumulative sums in numpy",
        timing="shortest of 20 and of 2",
    )
    report.row(
        f"increasing, speed-up by {check_n_jobs()} threads",
        one / ours,
        sizes=sizes,
        baseline="one thread",
        timing="shortest of 20, in turn",
    )


def growth(rng, report):
    "Exponent of the time in the size, and what exchanging the sides costs."

    def call(P, Q):
        phi = rng.standard_normal((P, Q))
        return lambda: increasing(phi, 4, n_jobs=1)

    sizes = sized((384, 768, 1536, 3072), (96, 192, 384))
    times = in_turn([call(size, size) for size in sizes], 3)
    report.row(
        "increasing, exponent of the time in P = Q",
        np.polyfit(np.log(sizes), np.log(times), 1)[0],
        (2.85, 3.15),
        unit="",
        sizes=f"{sizes[0]} to {sizes[-1]}, n_max = 4",
        baseline="itself at the other sizes",
        timing="one thread, shortest of 3, in turn",
    )
    P, Q = sized((4096, 256), (512, 64))
    report.row(
        "increasing, a tall matrix against a wide one",
        np.divide(*in_turn([call(P, Q), call(Q, P)], 12)),
        (0.8, 1.25),
        sizes=f"{by(P, Q)}, n_max = 4",
        baseline=by(Q, P),
        timing="one thread, shortest of 12, in turn",
    )


def main():
    rng, report = np.random.default_rng(0), Report("kernel")
    in_child(FIRST_CALL)  # fills the cache of compiled code
    report.row(
        "increasing, first call in a second process",
        min(in_child(FIRST_CALL) for _ in range(sized(3, 1))),
        1,
        unit="s",
        sizes="20 x 30, n_max = 4",
        timing="shortest of 3 processes",
    )
    speed(rng, report)
    growth(rng, report)
    if sys.platform == "linux":
        size = sized(2000, 400)
        report.row(
            "increasing, peak memory above the matrix and its scaled copy",
            in_child(MEMORY, size),
            64,
            unit="MB",
            sizes=f"{by(size, size)}, n_max = 7",
            timing="one process",
        )
    report.save()


if __name__ == "__main__":
    main()
