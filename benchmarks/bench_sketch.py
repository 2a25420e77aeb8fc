"""The sketch against matrix products and exact walks of the same run.

python benchmarks/bench_sketch.py
"""

import tempfile

import numpy as np
from common import Report, by, in_child, in_turn, product, shortest, sized, third_above

import spectral_moments as sm

PROCESS, N_MAX = sm.RBF(5, kernel_cov=0.25), 7
LARGE = """
import json, time, warnings
import numpy as np
import spectral_moments as sm
warnings.simplefilter("ignore")
phi = np.load(sys.argv[1])
options = dict(method="sketched", random_state=2)
sm.estimate(phi[:300, :300], 7, **options)
before, begin = peak(), time.perf_counter()
sm.estimate(phi, 7, **options)
print(json.dumps([time.perf_counter() - begin, peak() - before]))
"""


def large(report):
    "A large matrix, with standard errors, in a process of its own."
    size, cube = sized(10_000, 600), sized(3000, 200)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/phi.npy"
        np.save(path, PROCESS.sample(size, size, random_state=1))
        multiply = product(cube)
        baseline = shortest(multiply, 5)
        seconds, memory = in_child(LARGE, path)
    common = dict(sizes=f"{by(size, size)}, n_max = {N_MAX}", timing="one call")
    report.row(
        "sketch with standard errors, until it stops by itself",
        seconds / min(baseline, shortest(multiply, 5)),
        third_above(26.87),
        baseline=f"a {cube}-cube product",
        **common,
    )
    report.row(
        "extra memory of the sketch",
        memory,
        500,
        unit="MB",
        baseline="the matrix in memory",
        **common,
    )


def rounds(report):
    "One round: growth with the matrix, and against one exact walk."
    sizes = sized((4000, 2000), (600, 300))
    phis = [PROCESS.sample(size, size, random_state=1) for size in sizes]
    sketches = [lambda x=x: sm.sketched(x, N_MAX, random_state=0) for x in phis]
    twice, once, exact = in_turn([*sketches, lambda: sm.increasing(phis[1], N_MAX)], 3)
    report.row(
        "one round of the sketch, time at twice the rows and columns",
        twice / once,
        4.6,
        sizes=f"{by(sizes[0], sizes[0])} over {by(sizes[1], sizes[1])}",
        baseline="itself at half the size",
        timing="shortest of 3, in turn",
    )
    report.row(
        "one round of the sketch against one exact walk, times faster",
        exact / once,
        3.382 * 3 / 4,
        at_most=False,
        sizes=f"{by(sizes[1], sizes[1])}, n_max = {N_MAX}, 128 lanes",
        baseline="increasing, one order",
        timing="shortest of 3, in turn",
    )


def main():
    report = Report("sketch")
    large(report)
    rounds(report)
    report.save()


if __name__ == "__main__":
    main()
