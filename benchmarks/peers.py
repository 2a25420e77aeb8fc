"""What else answers the same questions, side by side: error, time and memory.

python benchmarks/peers.py           into results/benchmarks.json, for a page of the book
python benchmarks/peers.py --tiny    small sizes, nothing is stored

Packages among the peers come with `pip install 'spectral_moments[bench]'`; one that is
missing is left out. req-metrics is not on the package index: its dimension, the ratio
m(1)^2 / m(2) of unbiased moments, is computed here by that formula.
"""

import argparse
import importlib
import math
import time
import tracemalloc
import warnings
from functools import partial
from importlib.metadata import PackageNotFoundError, version

import numpy as np
from shared import SEED, store

import spectral_moments as sm
from spectral_moments.processes import LinearPair
from spectral_moments.teaching.recursion import algorithm_1, cumulative

warnings.simplefilter("ignore")
N_SHUFFLES = 199  # permutations of a test
MODULES = {"pytorch-cka": "cka", "calibrated-similarity": "calibrated_similarity"}
SIZES = {  # of a full run, of a tiny one
    "budget": (0.3, 0.05),  # seconds of one call, beyond which larger ones are left out
    "draws": (100, 5),
    "squares": ((25, 50, 100, 200, 400, 800), (20, 30)),
    "moments": ((25, 50, 100), (20, 30)),
    "rows": ((40, 80, 160), (20, 30)),
}
OURS = "this library"


def package(name):
    "Return a package and its version, or twice None if it is not installed."
    try:
        return importlib.import_module(MODULES.get(name, name)), version(name)
    except (ImportError, PackageNotFoundError):
        return None, None


def by_svd(phi, n_max):
    "Naive moments: power sums of the squared singular values."
    s = np.linalg.svd(phi, compute_uv=False) ** 2 / phi.size
    return np.array([(s**n).sum() for n in range(1, n_max + 1)])


def hutchinson(phi, n_max, probes=64):
    "Traces of powers of the Gram matrix by random signs, as trace estimators do it."
    rng = np.random.default_rng(SEED)
    z = rng.choice([-1.0, 1.0], (len(phi), probes))
    x, found = z, []
    for _ in range(n_max):
        x = phi @ (phi.T @ x) / phi.size
        found.append((z * x).sum() / probes)
    return np.array(found)


MOMENTS = {  # name on the page: moments of orders 1..n_max
    "all cycles": sm.all_cycles,
    "increasing": sm.increasing,
    "paper, as printed": algorithm_1,
    "paper, vectorised": cumulative,
    "naive by SVD": by_svd,
    "Hutchinson, 64 probes": hutchinson,
}


def third_moment(moments):
    "Make a peer of a function of a matrix and an order: m(3), no error."
    return lambda phi: (moments(phi, 3)[2], None)


def own_third_moment(phi):
    "m(3) of this library and its standard error."
    found = sm.estimate(phi, 3, center=False)
    return found.values[2], found.stderr[2]


def moment_peers():
    "Name on the page: function that gives m(3) and its error or None."
    names = "increasing", "paper, vectorised", "naive by SVD", "Hutchinson, 64 probes"
    return {OURS: own_third_moment} | {n: third_moment(MOMENTS[n]) for n in names}


def driada_dimension(phi):
    "DRIADA's effective dimension, of correlations, with its correction, which draws."
    from driada.dimensionality import eff_dim

    np.random.seed(SEED)  # noqa: NPY002, the generator that it draws from
    return eff_dim(phi, enable_correction=True)


def own_dimension(phi):
    "Dimension of this library and its standard error."
    found = sm.participation_ratio(phi)
    return found.value, found.stderr


def dimension_peers():
    "Name on the page: function that gives the centred dimension and its error or None."
    moments = lambda phi: sm.estimate(phi, 2, stderr=False).values
    ratio = lambda first, second: (first**2 / second, None)
    found = {
        OURS: own_dimension,
        "req-metrics (formula)": lambda phi: ratio(*moments(phi)),
        "naive by SVD": lambda phi: ratio(*by_svd(phi - phi.mean(0), 2)),
    }
    module, number = package("dimensionality")
    if module:
        found[f"dimensionality {number}"] = lambda phi: (
            module.participation_ratio(phi),
            None,
        )
    if number := package("driada")[1]:
        found[f"DRIADA {number}"] = lambda phi: (driada_dimension(phi), None)
    return found


def plain_alignment(phi, psi):
    "Centred kernel alignment of the sample, of arrays or tensors."
    x, y = phi - phi.mean(0), psi - psi.mean(0)
    K, L = x @ x.T, y @ y.T
    return (K * L).sum() / ((K * K).sum() * (L * L).sum()) ** 0.5


def own_alignment(phi, psi):
    "Alignment of this library and its standard error."
    found = sm.alignment(phi, psi)
    return found.value, found.stderr


def own_test(phi, psi):
    "Value, error and p-value of this library."
    found = sm.alignment(phi, psi)
    return found.value, found.stderr, found.permutation_test(N_SHUFFLES).p_value


def calibrated(phi, psi):
    "calibrated-similarity: plain alignment less what chance gives, no error, p-value."
    import torch
    from calibrated_similarity import calibrate

    x, y = map(torch.from_numpy, (phi, psi))
    chance = torch.Generator().manual_seed(SEED)
    score, p, _ = calibrate(x, y, plain_alignment, K=N_SHUFFLES, generator=chance)
    return float(score), None, float(p)


def alignment_peers():
    "Name on the page: function that gives the alignment and its error or None."
    plain = lambda *both: (float(plain_alignment(*both)), None)
    found = {OURS: own_alignment, "plain": plain}
    module, number = package("pytorch-cka")
    if module:
        import torch

        tensors = lambda both: map(torch.from_numpy, both)
        cka = lambda *both: (float(module.cka_from_features(*tensors(both))), None)
        found[f"pytorch-cka {number}"] = cka
    return found


def test_peers():
    "Name on the page: function that gives value, error or None, p-value or None."
    found = {k: lambda *xy, f=f: (*f(*xy), None) for k, f in alignment_peers().items()}
    if number := package("calibrated-similarity")[1]:
        found[f"calibrated-similarity {number}"] = calibrated
    return found | {OURS: own_test}


def shortest(functions, rounds, clock=time.perf_counter):
    "Shortest seconds of each function; they take turns, after one call of each."
    times = []
    for _ in range(rounds + 1):
        times.append([])
        for function in functions:
            begin = clock()
            function()
            times[-1].append(clock() - begin)
    return np.min(times[1:], axis=0)


def peak_megabytes(function):
    "Most megabytes that a call holds at a time, beyond what was there."
    tracemalloc.start()
    function()
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return held / 2**20


def cost(peer, arguments):
    "Seconds and megabytes of a call."
    call = lambda: peer(*arguments)
    (seconds,) = shortest([call], 3, time.process_time)
    numbers = dict(seconds=seconds, megabytes=max(peak_megabytes(call), 1e-3))
    return {key: float(f"{number:.3g}") for key, number in numbers.items()}


def costs(sizes, budget):
    "Costs of four moments of square matrices; a peer stops where its budget is spent."
    found = {name: [] for name in MOMENTS}
    for P in sizes:
        phi = seeded(P).standard_normal((P, P))
        for name, rows in found.items():
            if not rows or rows[-1]["seconds"] < budget:
                rows.append({"P": P, **cost(MOMENTS[name], (phi, 4))})
    return found


def seeded(*numbers):
    "Make a generator for one draw."
    return np.random.default_rng([SEED, *numbers])


def summary(values, stated, truth):
    "Mean, its standard error, root-mean-square error and stated error, over the truth."
    values = np.asarray(values, dtype=float) / truth
    root = lambda squares: float(f"{np.sqrt(np.mean(squares)):.3g}")
    return dict(
        mean=float(f"{values.mean():.4g}"),
        error=float(f"{values.std(ddof=1) / np.sqrt(len(values)):.2g}"),
        rms=root((values - 1) ** 2),
        stated=None if stated[0] is None else root((np.array(stated) / truth) ** 2),
    )


def compare(peers, draw, truth, sizes, draws):
    "What every peer makes of the same matrices, by size: errors, seconds, megabytes."
    found = {name: [] for name in peers}
    for P in sizes:
        samples = [draw(P, seeded(P, i)) for i in range(draws)]
        for name, peer in peers.items():
            values, stated = zip(*(peer(*sample) for sample in samples))
            row = {"P": P, **summary(values, stated, truth), **cost(peer, samples[0])}
            found[name].append(row)
    return found


def third_moments(sizes, draws):
    "Third moments of the RBF process, P x 2P."
    process = sm.RBF(3, kernel_cov=0.25)
    draw = lambda P, rng: [process.sample(P, 2 * P, rng)]
    return compare(moment_peers(), draw, process.moments(3)[2], sizes, draws)


def equal_features(P, rng, d=20):
    "Linear features of variance one and mean one: covariance and correlations agree."
    w = rng.standard_normal((d, P))
    return [rng.standard_normal((P, d)) @ (w / np.linalg.norm(w, axis=0)) + 1]


def alignments(sizes, draws):
    "Alignments of two linear systems, one of them with half the features."
    pair = LinearPair(10, 0.5)
    draw = lambda P, rng: pair.sample(P, P // 2, P, rng)
    return compare(alignment_peers(), draw, pair.alignment(), sizes, draws)


PAIRS = {  # name: angle between two systems, exponent of their eigenvalues
    "unrelated": (math.pi / 2, 0),
    "half": (math.pi / 4, 0),
    "half, steep": (math.pi / 4, 1),
}


def verdicts(draws):
    "Value, error, p-value and time of every peer on pairs of known alignment, 100 x 20."
    found, peers = {}, test_peers()
    for k, (label, (angle, exponent)) in enumerate(PAIRS.items()):
        pair = LinearPair(10, angle, exponent=exponent)
        samples = [pair.sample(100, 20, 20, seeded(9, k, i)) for i in range(draws)]
        calls = [lambda f=f, x=samples[0]: f(*x) for f in peers.values()]
        times = shortest(calls, 5, time.thread_time)
        for (name, peer), seconds in zip(peers.items(), times):
            values, errors, p = zip(*(peer(*both) for both in samples))
            spread = float(np.std(values, ddof=1))
            found.setdefault(label, {})[name] = dict(
                truth=round(pair.alignment(), 12),
                mean=float(np.mean(values)),
                error=spread / math.sqrt(draws),
                spread=spread,
                reported=errors[0] and float(np.sqrt(np.mean(np.square(errors)))),
                found=p[0] and float(np.mean(np.array(p) <= 0.05)),
                seconds=float(f"{seconds:.3g}"),
            )
    return found


def measure(draws, budget, squares, moments, rows):
    "All that is compared, at these sizes."
    return {
        "draws": draws,
        "size": costs(squares, budget),
        "moments": third_moments(moments, draws),
        "dimension": compare(dimension_peers(), equal_features, 20, rows, draws),
        "alignment": alignments(rows, draws),
        "verdict": verdicts(2 * draws),
    }


def main():
    "Measure all, and store it."
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiny", action="store_true")
    tiny = parser.parse_args().tiny
    sizes = {name: pair[tiny] for name, pair in SIZES.items()}
    names = "dimensionality", "driada", "calibrated-similarity", "pytorch-cka"
    installed = [name for name in names if package(name)[1]]
    measured = partial(measure, **sizes)
    if tiny:
        print(measured())
    else:
        settings = {name: sizes[name] for name in ("draws", "budget")}
        store("peers", measured, settings, installed)


if __name__ == "__main__":
    main()
