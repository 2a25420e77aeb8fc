"""Speed and memory of `increasing`, as ratios to baselines measured in the same run.

Run as a script: python benchmarks/bench_recursion.py
"""

import subprocess
import sys
import time

import numpy as np

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


def shortest(function, repetitions):
    """Shortest time of several calls, in seconds."""
    times = []
    for _ in range(repetitions):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return min(times)


def report(what, value, target):
    """One line of the table."""
    print(f"{what:66s} {value:>10s}   target {target}", flush=True)


def in_new_process(code):
    """The number that `code` prints, run in a fresh interpreter."""
    return float(
        subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        ).stdout
    )


def speed(rng):
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
    report(
        f"increasing, {P} x {Q}, n_max = {N_MAX}: times faster than rung 3",
        f"{reference / kernel:.0f}x",
        ">= 60x",
    )
    report(
        "share of the rate of a 1500-cube matrix product",
        f"{rate * product / (2 * 1500**3):.0%}",
        ">= 20%, aim 50%",
    )
    one = shortest(lambda: increasing(phi, N_MAX, n_jobs=1), 20)
    report(f"speed-up of {check_n_jobs()} threads over one", f"{one / kernel:.2f}x", "-")


def growth(rng):
    """Exponent of the time in the size, and what exchanging the sides costs."""

    def seconds(P, Q, repetitions):
        phi = rng.standard_normal((P, Q))
        return shortest(lambda: increasing(phi, 4, n_jobs=1), repetitions)

    # one thread, and large enough that a millisecond of set-up does not show
    sizes = (384, 768, 1536, 3072)
    times = [seconds(n, n, repetitions) for n, repetitions in zip(sizes, (20, 8, 4, 2))]
    slope = np.polyfit(np.log(sizes), np.log(times), 1)[0]
    label = f"exponent of the time in P = Q = {sizes[0]} .. {sizes[-1]}, one thread"
    report(label, f"{slope:.2f}", "3 +- 0.15")
    rounds = [(seconds(4096, 256, 3), seconds(256, 4096, 3)) for _ in range(4)]
    ratio = np.divide(*np.min(rounds, axis=0))
    report("4096 x 256 against 256 x 4096", f"{ratio:.2f}", "about 1")


if __name__ == "__main__":
    generator = np.random.default_rng(0)
    in_new_process(FIRST_CALL)  # fills the cache of compiled code
    first_call = min(in_new_process(FIRST_CALL) for _ in range(3))
    report("first call in a second process, 20 x 30, seconds", f"{first_call:.2f}", "< 1")
    speed(generator)
    growth(generator)
    if sys.platform == "linux":
        report(
            "peak memory above the matrix, 2000 x 2000, n_max = 7, MB",
            f"{in_new_process(PEAK_MEMORY):.0f}",
            "<= 64",
        )
