"""Speed and memory of `increasing`, as ratios to baselines measured in the same run.

Run as a script: python benchmarks/bench_recursion.py
"""

import subprocess
import sys
import time

import numpy as np
from common import Report, shortest

from spectral_moments.checks import check_n_jobs
from spectral_moments.recursion import cumulative, increasing

P, Q, N_MAX = 300, 600, 7
FIRST_CALL = """
import time, numpy
from spectral_moments.recursion import increasing
begin = time.perf_counter()
increasing(numpy.ones((20, 30)), 4)
print(time.perf_counter() - begin)
"""
PEAK_MEMORY = """
import numpy
from spectral_moments.recursion import increasing
increasing(numpy.ones((20, 30)), 7)
phi = numpy.random.default_rng(0).standard_normal((2000, 2000))
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
before = peak()
increasing(phi, 7)
print((peak() - before) / 1024)
"""


def in_new_process(code):
    """The number that `code` prints, run in a fresh interpreter."""
    return float(
        subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        ).stdout
    )


def speed(rng, report):
    """Ratios to the cumulative-sum rung and to a matrix product."""
    phi, square = rng.standard_normal((P, Q)), rng.standard_normal((1500, 1500))
    product = kernel = np.inf
    for _ in range(8):  # in turn, so that both see the same machine
        product = min(product, shortest(lambda: square @ square, 3))
        time.sleep(0.2)  # the threads of the matrix product go to sleep
        kernel = min(kernel, shortest(lambda: increasing(phi, N_MAX), 10))
    reference = shortest(lambda: cumulative(phi, N_MAX), 2)
    np.testing.assert_allclose(increasing(phi, N_MAX), cumulative(phi, N_MAX), rtol=1e-8)
    rate = 4 * (N_MAX - 1) * P**2 * Q / 2 / kernel
    sizes = f"{P} x {Q}, n_max = {N_MAX}"
    report.row(
        "increasing, times faster",
        reference / kernel,
        60,
        at_most=False,
        sizes=sizes,
        baseline="rung 3 of the chapter, cumulative sums in numpy",
        timing="shortest of 80 and of 2",
    )
    report.row(
        "increasing, share of the rate of a matrix product",
        rate * product / (2 * 1500**3),
        0.2,
        at_most=False,
        unit="%",
        sizes=sizes,
        baseline="one product of 1500 x 1500 matrices",
        timing="shortest of 80 and of 24, in turn",
    )
    one = shortest(lambda: increasing(phi, N_MAX, n_jobs=1), 20)
    report.row(
        f"increasing, speed-up by {check_n_jobs()} threads",
        one / kernel,
        sizes=sizes,
        baseline="one thread",
        timing="shortest of 80 and of 20",
    )


def growth(rng, report):
    """Exponent of the time in the size, and what exchanging the sides costs."""

    def seconds(P, Q, repetitions):
        phi = rng.standard_normal((P, Q))
        return shortest(lambda: increasing(phi, 4, n_jobs=1), repetitions)

    # one thread, and large enough that a millisecond of set-up does not show
    sizes = (384, 768, 1536, 3072)
    rounds = [
        [seconds(n, n, count) for n, count in zip(sizes, (9, 5, 2, 1))] for _ in "123"
    ]
    times = np.min(rounds, axis=0)  # a slow while of the machine meets all sizes
    slope = np.polyfit(np.log(sizes), np.log(times), 1)[0]
    report.row(
        "increasing, exponent of the time in P = Q",
        slope,
        (2.85, 3.15),
        unit="",
        sizes=f"{sizes[0]} to {sizes[-1]}, n_max = 4",
        baseline="itself at the other sizes",
        timing="one thread, shortest of 3 to 27, in turn",
    )
    rounds = [(seconds(4096, 256, 3), seconds(256, 4096, 3)) for _ in range(4)]
    report.row(
        "increasing, a tall matrix against a wide one",
        np.divide(*np.min(rounds, axis=0)),
        (0.8, 1.25),
        sizes="4096 x 256, n_max = 4",
        baseline="256 x 4096",
        timing="one thread, shortest of 12, in turn",
    )


def main():
    generator, report = np.random.default_rng(0), Report("recursion")
    in_new_process(FIRST_CALL)  # fills the cache of compiled code
    report.row(
        "increasing, first call in a second process",
        min(in_new_process(FIRST_CALL) for _ in range(3)),
        1,
        unit="s",
        sizes="20 x 30, n_max = 4",
        timing="shortest of 3 processes",
    )
    speed(generator, report)
    growth(generator, report)
    if sys.platform == "linux":
        report.row(
            "increasing, peak memory above the matrix",
            in_new_process(PEAK_MEMORY),
            64,
            unit="MB",
            sizes="2000 x 2000, n_max = 7",
            timing="one process",
        )
    report.save()


if __name__ == "__main__":
    main()
