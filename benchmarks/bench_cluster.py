"""Dask arrays against the same matrix in memory, on the threads of one machine.

python benchmarks/bench_cluster.py
"""

import dask
import dask.array as da
import numpy as np
from common import Report, by, in_turn, sized

import spectral_moments as sm
from spectral_moments.engine import arrays

CASES = (  # method, P, Q, n_max, rows of a chunk
    ("sums", (40_000, 128), 3, 5000),
    ("sums", (40_000, 128), 4, 5000),
    ("all_cycles", (2000, 500), 4, 500),
    ("increasing", (20_000, 64), 4, 2500),
    ("sketched", (20_000, 256), 4, 2500),
)


def main():
    rng, report = np.random.default_rng(0), Report("cluster")
    arrays.LOADED = 0  # a Dask array stays one
    for method, shape, n_max, height in CASES:
        P, Q = sized(shape, (shape[0] // 50, max(shape[1] // 50, 20)))
        phi = rng.standard_normal((P, Q))
        array = da.from_array(phi, chunks=(sized(height, P // 4), Q))
        walks = method in ("increasing", "sketched")  # chunks pair their rows otherwise
        options = dict(method=method, n_permutations=1, stderr=False, center=not walks)
        calls = [
            lambda x=x, n=n_max, o=options: sm.estimate(x, n, **o) for x in (array, phi)
        ]
        with dask.config.set(scheduler="threads"):
            there, here = (call().values for call in calls)
            np.testing.assert_allclose(there, here, rtol=1e-6, atol=1e-12)
            ratio = np.divide(*in_turn(calls, 3))
        report.row(
            f"estimate of a Dask array, {method}, without errors",
            ratio,
            sizes=f"{by(P, Q)}, n_max = {n_max}",
            baseline="the same matrix in memory",
            timing="shortest of 3, in turn, scheduler of threads",
        )
    against_workers(report, rng)
    report.save()


def against_workers(report, rng):
    "Two threads of Dask against one, for all orders."
    P, Q = sized((40_000, 128), (800, 20))
    array = da.from_array(rng.standard_normal((P, Q)), chunks=(P // 8, Q))

    def run(n_max, workers):
        with dask.config.set(scheduler="threads", num_workers=workers):
            return sm.estimate(array, n_max, stderr=False)

    for n_max in (2, 3, 4):
        calls = [lambda n=n_max, w=workers: run(n, w) for workers in (2, 1)]
        report.row(
            "estimate of a Dask array, two workers over one",
            np.divide(*in_turn(calls, 3)),
            sizes=f"{by(P, Q)}, n_max = {n_max}",
            baseline="one worker",
            timing="shortest of 3, in turn, scheduler of threads",
        )


if __name__ == "__main__":
    main()
