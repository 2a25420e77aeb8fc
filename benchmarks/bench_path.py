"""One path, priced in matrix products: values, errors, thin and wide data, trials, files.

python benchmarks/bench_path.py
"""

import tempfile
import time

import numpy as np
from common import Report, by, in_child, in_turn, product, shortest, sized

import spectral_moments as sm
from spectral_moments.engine.blocks import block_means
from spectral_moments.engine.sources import Pair

N_MAX = 7
FROM_FILE = """
import json, time, warnings
import numpy as np
import spectral_moments as sm
warnings.simplefilter("ignore")
sm.estimate(np.random.default_rng(0).standard_normal((50, 40)), 4, random_state=0)
phi = np.load(sys.argv[1], mmap_mode="r")
begin = time.perf_counter()
est = sm.estimate(phi, 4, random_state=0)
seconds = time.perf_counter() - begin
assert np.isfinite(est.stderr).all()
print(json.dumps([seconds, peak()]))
"""


def sums(rng, report):
    "The inner loop and its twin by blocks, as shares of the rate of a matrix product."
    cube = sized(1500, 300)
    multiply, flat = product(cube), 2 * cube**3
    cases = (
        ("increasing", sized((300, 600), (60, 90)), 0.35, 20, sm.increasing),
        ("blocks", sized((3000, 3000), (300, 300)), 0.6, 2, _blocks),
    )
    for name, (P, Q), target, rounds, function in cases:
        phi = rng.standard_normal((P, Q))
        ours, theirs = in_turn(
            [lambda f=function, x=phi: f(x, N_MAX), lambda: _rested(multiply)], rounds
        )
        operations = 4 * (N_MAX - 1) * min(P, Q) ** 2 * max(P, Q) / 2
        report.row(
            f"{name}, share of the rate of a matrix product",
            operations / ours / (flat / (theirs - PAUSE)),
            target,
            at_most=False,
            unit="%",
            sizes=f"{by(P, Q)}, n_max = {N_MAX}",
            baseline=f"one product of {cube} x {cube} matrices",
            timing=f"shortest of {rounds}, in turn",
        )


PAUSE = 0.2  # the threads of a matrix product stay awake for a while and disturb the next


def _rested(multiply):
    multiply()
    time.sleep(PAUSE)


def _blocks(phi, n_max):
    return block_means(Pair(phi, phi), n_max).values


def errors(rng, report):
    "An estimate with its standard errors over the same without them."
    for P, Q in sized(((300, 600), (1000, 1000)), ((60, 90), (100, 100))):
        phi = sm.Linear(20).sample(P, Q, rng)
        calls = [
            lambda errors=errors, x=phi: sm.estimate(x, 4, stderr=errors, random_state=0)
            for errors in (True, False)
        ]
        clocks = {"elapsed": time.perf_counter, "processor": time.process_time}
        for name, clock in clocks.items():
            report.row(
                f"estimate with standard errors, {name} time",
                np.divide(*in_turn(calls, 5, clock)),
                4,
                sizes=f"{by(P, Q)}, n_max = 4",
                baseline="the same without errors",
                timing="shortest of 5, in turn",
            )


def shapes(rng, report):
    "Estimates with errors in products of the matrix with itself."
    cases = (
        (sized((20_000, 64), (1000, 20)), 4, 250, lambda x: x.T @ x),
        (sized((40, 20_000), (20, 1000)), 2, 40, lambda x: x @ x.T),
    )
    for (P, Q), n_max, target, gram in cases:
        phi = rng.standard_normal((P, Q))
        call = lambda x=phi, n=n_max: sm.estimate(x, n, random_state=0)
        ours, theirs = in_turn([call, lambda x=phi, f=gram: f(x)], 10)
        report.row(
            "estimate with standard errors",
            ours / theirs,
            target,
            sizes=f"{by(P, Q)}, n_max = {n_max}",
            baseline="one Gram product of the shorter side",
            timing="shortest of 10, in turn",
        )


def trials(rng, report):
    "Two large trials in products of one with the other; eight trials against two."
    P, Q = sized((2800, 9039), (80, 200))
    x = sm.Linear(20).sample(P, Q, rng)
    both = np.array([x + rng.standard_normal((P, Q)) for _ in range(2)])
    gram = shortest(lambda: both[0] @ both[1].T, 3)
    for n_max, target in ((2, 20), (4, 60)):
        call = lambda n=n_max: sm.estimate(both, n, center=True, random_state=0)
        report.row(
            "estimate of two trials, centred, with standard errors",
            shortest(call, 1) / gram,
            target,
            sizes=f"{by(2, P, Q)}, n_max = {n_max}",
            baseline="one product of the two trials",
            timing="one call, shortest of 3 products",
        )
    P, Q = sized((400, 360), (40, 36))
    phi = sm.Linear(20).sample(P, Q, rng) + rng.standard_normal((8, P, Q))
    calls = [
        lambda T=T: sm.estimate(phi[:T], 3, center=True, random_state=0) for T in (8, 2)
    ]
    report.row(
        "estimate of eight trials, centred, with standard errors",
        np.divide(*in_turn(calls, 5)),
        3,
        sizes=f"{by(8, P, Q)}, n_max = 3",
        baseline="two trials of the same size",
        timing="shortest of 5, in turn",
    )


def files(rng, report):
    "A matrix in a file, in a process of its own."
    P, Q = sized((200_000, 256), (40_000, 256))  # small ones are simply loaded
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/phi.npy"
        np.save(path, sm.RBF(5, kernel_cov=0.25).sample(P, Q, rng))
        seconds, memory = in_child(FROM_FILE, path)
    common = dict(sizes=f"{by(P, Q)}, n_max = 4", timing="one call in a new process")
    claim = "estimate of a memory map, with standard errors"
    report.row(f"{claim}: time", seconds, 40, unit="s", **common)
    report.row(f"{claim}: peak memory of the process", memory, 600, unit="MB", **common)


def main():
    rng, report = np.random.default_rng(0), Report("path")
    for part in (sums, errors, shapes, trials, files):
        part(rng, report)
    report.save()


if __name__ == "__main__":
    main()
