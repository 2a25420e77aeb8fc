"""What else can estimate moments, side by side: time, memory, error against the truth.

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
    "budget": (0.3, 0.05),  # seconds for one call, beyond which a peer stops
    "draws": (100, 5),
    "squares": ((25, 50, 100, 200, 400, 800), (20, 30)),
    "matrix": ((150, 300), (20, 30)),
    "orders": (range(2, 9), (2, 3)),
    "moments": ((25, 50, 100), (20, 30)),
    "rows": ((40, 80, 160), (20, 30)),
}


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
    "increasing": sm.increasing,
    "all cycles": sm.all_cycles,
    "paper, as printed": algorithm_1,
    "paper, vectorised": cumulative,
    "naive by SVD": by_svd,
    "Hutchinson, 64 probes": hutchinson,
}


def driada_dimension(phi):
    "DRIADA's effective dimension, of correlations, with its correction, which draws."
    from driada.dimensionality import eff_dim

    np.random.seed(SEED)  # noqa: NPY002, the generator that it draws from
    return eff_dim(phi, enable_correction=True)


def dimension_peers():
    "Name on the page: function that gives the centred dimension."
    moments = lambda phi: sm.estimate(phi, 2, stderr=False).values
    ratio = lambda first, second: first**2 / second
    found = {
        "all cycles": lambda phi: sm.participation_ratio(phi).value,
        "naive by SVD": lambda phi: ratio(*by_svd(phi - phi.mean(0), 2)),
        "req-metrics (formula)": lambda phi: ratio(*moments(phi)),
    }
    module, number = package("dimensionality")
    if module:
        found[f"dimensionality {number}"] = module.participation_ratio
    if number := package("driada")[1]:
        found[f"DRIADA {number}"] = driada_dimension
    return found


def plain_alignment(phi, psi):
    "Centred kernel alignment of the sample, of arrays or tensors."
    x, y = phi - phi.mean(0), psi - psi.mean(0)
    K, L = x @ x.T, y @ y.T
    return (K * L).sum() / ((K * K).sum() * (L * L).sum()) ** 0.5


def own_alignment(phi, psi):
    "Value, error and p-value of this library."
    found = sm.alignment(phi, psi)
    return found.value, found.stderr, found.permutation_test(N_SHUFFLES).p_value


def of_tensors(function):
    "Make a peer of a function of two tensors that gives a number."
    import torch

    return lambda *both: (float(function(*map(torch.from_numpy, both))), None, None)


def calibrated(module):
    "Make a peer of calibrated-similarity: plain alignment less what chance gives."
    import torch

    def both(phi, psi):
        x, y = map(torch.from_numpy, (phi, psi))
        chance = torch.Generator().manual_seed(SEED)
        options = dict(K=N_SHUFFLES, generator=chance)
        score, p, _ = module.calibrate(x, y, plain_alignment, **options)
        return float(score), None, float(p)

    return both


def alignment_peers():
    "Name on the page: function that gives value, error or None, p-value or None."
    plain = lambda *both: (float(plain_alignment(*both)), None, None)
    found = {"ours": own_alignment, "plain": plain}
    of_features = lambda cka: of_tensors(cka.cka_from_features)
    of_batch = lambda cka: of_tensors(lambda x, y: cka.cka_batch(x[None], y[None]))
    makers = {"calibrated-similarity": calibrated, "pytorch-cka": of_features}
    for name, make in (makers | {"ckatorch": of_batch}).items():
        module, number = package(name)
        if module:
            found[f"{name} {number}"] = make(module)
    return found


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


def costs(cases, peers, budget):
    "Seconds and megabytes of every peer in every case, until its budget is spent."
    found = {name: {"case": [], "seconds": [], "megabytes": []} for name in peers}
    spent = set()
    for label, arguments in cases.items():
        for name in [name for name in peers if name not in spent]:
            call = lambda peer=peers[name], arguments=arguments: peer(*arguments)
            (seconds,) = shortest([call], 2)
            rows = found[name]
            rows["case"].append(label)
            rows["seconds"].append(float(f"{seconds:.3g}"))
            rows["megabytes"].append(float(f"{max(peak_megabytes(call), 1e-3):.3g}"))
            if seconds > budget:
                spent.add(name)
    return found


def seeded(*numbers):
    "Make a generator for one draw."
    return np.random.default_rng([SEED, *numbers])


def summary(values, truth):
    "Mean, its standard error and root-mean-square error, over the truth."
    values = np.asarray(values, dtype=float) / truth
    error = values.std(ddof=1) / np.sqrt(len(values))
    rms = np.sqrt(np.mean((values - 1) ** 2))
    mean = float(f"{values.mean():.4g}")
    return dict(mean=mean, error=float(f"{error:.2g}"), rms=float(f"{rms:.3g}"))


def moment_errors(sizes, draws):
    "Errors of m(2), m(3), m(4) for the RBF process, by size."
    process, n_max = sm.RBF(3, kernel_cov=0.25), 4
    truth, found = process.moments(n_max), {}
    peers = {k: v for k, v in MOMENTS.items() if not k.startswith("paper")}  # = increasing
    for P in sizes:
        samples = [process.sample(P, 2 * P, seeded(P, i)) for i in range(draws)]
        for name, peer in peers.items():
            values = np.array([peer(phi, n_max) for phi in samples])
            for n in range(2, n_max + 1):
                rows = found.setdefault(name, {}).setdefault(str(n), [])
                rows.append({"P": P, **summary(values[:, n - 1], truth[n - 1])})
    return found


def equal_features(P, rng, d=20):
    "Linear features of variance one and mean one: covariance and correlations agree."
    w = rng.standard_normal((d, P))
    return [rng.standard_normal((P, d)) @ (w / np.linalg.norm(w, axis=0)) + 1]


def errors_by_size(peers, draw, truth, sizes, draws):
    "Errors of what every peer makes of the same matrices, by size."
    found = {}
    for name, peer in peers.items():
        for P in sizes:
            values = [peer(*draw(P, seeded(P, i))) for i in range(draws)]
            found.setdefault(name, []).append({"P": P, **summary(values, truth)})
    return found


def alignment_errors(sizes, draws):
    "Errors of the alignment of two linear systems, by size."
    pair = LinearPair(10, 0.5)
    peers = {k: lambda *xy, f=f: f(*xy)[0] for k, f in alignment_peers().items()}
    draw = lambda P, rng: pair.sample(P, P // 2, P, rng)
    return errors_by_size(peers, draw, pair.alignment(), sizes, draws)


PAIRS = {  # name: angle between two systems, exponent of their eigenvalues
    "unrelated": (math.pi / 2, 0),
    "half": (math.pi / 4, 0),
    "half, steep": (math.pi / 4, 1),
}


def verdicts(draws):
    "Value, error, p-value and time of every peer on pairs of known alignment, 100 x 20."
    found, peers = {}, alignment_peers()
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


def measure(draws, budget, squares, matrix, orders, moments, rows):
    "All that is compared, at these sizes."
    rng = np.random.default_rng(SEED)
    squares = {P: (rng.standard_normal((P, P)), 4) for P in squares}
    one = rng.standard_normal(matrix)
    orders = {n: (one, n) for n in orders}
    slow = {"all cycles", "paper, as printed"}  # up to order 4; minutes
    any_order = {name: MOMENTS[name] for name in MOMENTS if name not in slow}
    return {
        "draws": draws,
        "size": costs(squares, MOMENTS, budget),
        "order": costs(orders, any_order, budget),
        "moments": moment_errors(moments, draws),
        "dimension": errors_by_size(dimension_peers(), equal_features, 20, rows, draws),
        "alignment": alignment_errors(rows, draws // 2),
        "verdict": verdicts(2 * draws),
    }


def main():
    "Measure all, and store it."
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiny", action="store_true")
    tiny = parser.parse_args().tiny
    sizes = {name: pair[tiny] for name, pair in SIZES.items()}
    names = "dimensionality", "driada", "calibrated-similarity", "pytorch-cka", "ckatorch"
    installed = [name for name in names if package(name)[1]]
    measured = partial(measure, **sizes)
    if tiny:
        measured()
    else:
        settings = {name: sizes[name] for name in ("draws", "budget")}
        store("peers", measured, settings, installed)


if __name__ == "__main__":
    main()
