"""What else can estimate moments, side by side: time, memory, error against the truth.

python benchmarks/bench_peers.py

Packages among the peers come with `pip install 'spectral_moments[bench]'`; one that is
missing is left out. Writes
results/peers.json, for the pictures of the page of benchmarks and a table of the chapter on
alignment, and rows with targets into results/benchmarks.json. --tiny stores nothing.
"""

import importlib
import json
import math
import sys
import time
import tracemalloc
from importlib.metadata import PackageNotFoundError, version

import numpy as np
from common import FILE, SEED, TINY, Report, by, in_turn, sized

import spectral_moments as sm
from spectral_moments.teaching.recursion import algorithm_1, cumulative

BUDGET = sized(0.3, 0.05)  # seconds for one call, beyond which a peer stops
PEERS = ("calibrated-similarity", "pytorch-cka", "ckatorch")  # of alignment
ORDERS = 199  # permutations of a test
MODULES = {"pytorch-cka": "cka", "calibrated-similarity": "calibrated_similarity"}


def package(name):
    "A package that may not be installed, and its version."
    try:
        return importlib.import_module(MODULES.get(name, name)), version(name)
    except (ImportError, PackageNotFoundError):
        print(f"{name} is not installed and is left out: pip install '.[bench]'")
        return None, None


# --- the peers ----------------------------------------------------------------------------


def by_svd(phi, n_max):
    "Naive: power sums of the squared singular values."
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
    "all cycles": lambda phi, n_max: sm.all_cycles(phi, min(n_max, 4)),
    "paper, as printed": algorithm_1,
    "paper, vectorised": cumulative,
    "naive by SVD": by_svd,
    "Hutchinson, 64 probes": hutchinson,
}


def dimensions():
    "Name on the page: dimension, centred."
    found = {
        "all cycles": lambda phi: sm.participation_ratio(phi, center=True).value,
        "naive by SVD": lambda phi: np.divide(
            by_svd(phi - phi.mean(0), 1) ** 2, by_svd(phi - phi.mean(0), 2)[1]
        )[0],
    }
    module, number = package("dimensionality")
    if module:
        found[f"dimensionality {number}"] = module.participation_ratio
    if number := package("driada")[1]:
        found[f"DRIADA {number}"] = driada_dimension
    return found


def driada_dimension(phi):
    "DRIADA's effective dimension, of correlations, with its correction, which draws."
    from driada.dimensionality import eff_dim

    np.random.seed(SEED)  # noqa: NPY002, the generator that it draws from
    return eff_dim(phi, enable_correction=True)


def equal_features(P, Q, rng, d=20):
    "Linear features of variance one and mean one: covariance and correlations agree."
    w = rng.standard_normal((d, Q))
    return rng.standard_normal((P, d)) @ (w / np.linalg.norm(w, axis=0)) + 1


def unit_gram(x):
    "Gram matrix of centred rows, over its norm."
    x = x - x.mean(0)
    return (K := x @ x.T) / (K * K).sum() ** 0.5


def plain(phi, psi):
    "Centred kernel alignment of the sample, of arrays or tensors."
    return (unit_gram(phi) * unit_gram(psi)).sum()


def calibrated(module):
    "Plain alignment less what chance gives: (score, p-value), by calibrated-similarity."
    import torch

    def both(phi, psi):
        x, y = map(torch.from_numpy, (phi, psi))
        chance = torch.Generator().manual_seed(SEED)
        score, p, _ = module.calibrate(x, y, plain, K=ORDERS, generator=chance)
        return float(score), None, float(p)

    return both


def ours(phi, psi):
    "Value, error and p-value of this library."
    found = sm.alignment(phi, psi)
    return found.value, found.stderr, found.permutation_test(ORDERS).p_value


def verdicts():
    "Name on the page: (value, error or None, p-value or None) of two systems."
    found = {"ours": ours, "plain": lambda *both: (float(plain(*both)), None, None)}
    for name in PEERS:
        module, number = package(name)
        if not module:
            continue
        import torch

        value = lambda f: lambda *both: (float(f(*map(torch.from_numpy, both))), None, None)
        if name == "calibrated-similarity":
            found[f"{name} {number}"] = calibrated(module)
        elif name == "pytorch-cka":
            found[f"{name} {number}"] = value(module.cka_from_features)
        else:
            function = lambda x, y, f=module.cka_batch: f(x[None], y[None])
            found[f"{name} {number}, unbiased"] = value(function)
    return found


# --- time and memory ----------------------------------------------------------------------


def peak(function):
    "Most megabytes that a call holds at a time, beyond what was there."
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


def costs(cases, peers):
    "Seconds and megabytes of every peer in every case, until its budget is spent."
    found = {name: {"case": [], "seconds": [], "megabytes": []} for name in peers}
    spent = set()
    for label, arguments in cases.items():
        for name, peer in peers.items():
            if name in spent:
                continue
            call = lambda peer=peer, arguments=arguments: peer(*arguments)
            (seconds,) = in_turn([call], 2)
            rows = found[name]
            rows["case"].append(label)
            rows["seconds"].append(float(f"{seconds:.3g}"))
            rows["megabytes"].append(float(f"{max(peak(call), 1e-3):.3g}"))
            if seconds > BUDGET:
                spent.add(name)
    return found


def against_size(rng):
    "Square matrices of growing size, order 4."
    sizes = sized((25, 50, 100, 200, 400, 800), (20, 30))
    cases = {P: (rng.standard_normal((P, P)), 4) for P in sizes}
    return costs(cases, MOMENTS)


def against_order(rng):
    "One matrix, growing order."
    phi = rng.standard_normal(sized((150, 300), (20, 30)))
    cases = {n: (phi, n) for n in sized(range(2, 9), (2, 3))}
    slow = ("all cycles", "paper, as printed")  # orders above 4; minutes
    peers = {name: peer for name, peer in MOMENTS.items() if name not in slow}
    return costs(cases, peers)


# --- exponents ----------------------------------------------------------------------------


def slope(x, y):
    "Exponent b of the power law y = a x^b that fits best."
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def sweeps():
    "What grows, its sizes, the shape of the data and the call."
    one = dict(n_jobs=1)
    return {
        "increasing, shorter side": (
            sized((150, 300, 600), (20, 40)),
            lambda P: (P, sized(1200, 40)),
            lambda x, P: sm.increasing(x, 4, **one),
        ),
        "increasing, longer side": (
            sized((600, 1200, 2400), (40, 80)),
            lambda Q: (sized(300, 20), Q),
            lambda x, Q: sm.increasing(x, 4, **one),
        ),
        "increasing, order - 1": (
            sized((2, 4, 8), (1, 2)),
            lambda n: sized((300, 600), (20, 30)),
            lambda x, n: sm.increasing(x, n + 1, **one),
        ),
        "increasing, threads": (
            (1, 2),
            lambda jobs: sized((600, 1200), (20, 30)),
            lambda x, jobs: sm.increasing(x, 7, n_jobs=jobs),
        ),
        "all cycles at n = 4, shorter side": (
            sized((300, 600, 1200), (20, 40)),
            lambda P: (P, sized(1200, 40)),
            lambda x, P: sm.all_cycles(x, 4),
        ),
        "sketch, shorter side": (
            sized((300, 600, 1200), (20, 40)),
            lambda P: (P, sized(1200, 40)),
            lambda x, P: sm.sketched(x, 4, random_state=0),
        ),
        "estimate, trials": (
            sized((2, 4, 8), (2, 3)),
            lambda T: (T, *sized((200, 300), (20, 30))),
            lambda x, T: sm.estimate(x, 3, random_state=0),
        ),
    }


def scaling(rng):
    "Seconds against one size with the others fixed, and the fitted exponents."
    found = {}
    for name, (sizes, shape, call) in sweeps().items():
        data = [rng.standard_normal(shape(size)) for size in sizes]
        calls = [lambda x=x, s=s, f=call: f(x, s) for x, s in zip(data, sizes)]
        seconds = in_turn(calls, 3)
        found[name] = {
            "size": list(sizes),
            "seconds": [float(f"{s:.3g}") for s in seconds],
            "exponent": round(slope(sizes, seconds), 2),
        }
    return found


# --- error against the truth --------------------------------------------------------------


def seeded(*numbers):
    "A generator of its own for each draw."
    return np.random.default_rng([SEED, *numbers])


def summary(values, truth):
    "Mean, its standard error and root-mean-square error, over the truth."
    values = np.asarray(values, dtype=float) / truth
    error = values.std(ddof=1) / np.sqrt(len(values))
    rms = np.sqrt(np.mean((values - 1) ** 2))
    return {
        "mean": float(f"{values.mean():.4g}"),
        "error": float(f"{error:.2g}"),
        "rms": float(f"{rms:.3g}"),
    }


def moment_errors(draws):
    "Errors of m(2), m(3), m(4) for the RBF process, by size."
    process, n_max = sm.RBF(3, kernel_cov=0.25), 4
    truth, found = process.moments(n_max), {}
    peers = {k: v for k, v in MOMENTS.items() if not k.startswith("paper")}  # = increasing
    for P in sized((25, 50, 100), (20, 30)):
        samples = [process.sample(P, 2 * P, seeded(P, i)) for i in range(draws)]
        for name, peer in peers.items():
            values = np.array([peer(phi, n_max) for phi in samples])
            for n in range(2, n_max + 1):
                rows = found.setdefault(name, {}).setdefault(str(n), [])
                rows.append({"P": P, **summary(values[:, n - 1], truth[n - 1])})
    return found


def dimension_errors(draws):
    "Errors of the centred dimension of a linear process with equal features, by size."
    found = {}
    for name, peer in dimensions().items():
        for P in sized((40, 80, 160), (20, 30)):
            values = [peer(equal_features(P, P, seeded(P, i))) for i in range(draws)]
            found.setdefault(name, []).append({"P": P, **summary(values, 20.0)})
    return found


def alignment_errors(draws):
    "Errors of the alignment of two linear systems."
    pair, found = sm.LinearPair(10, 0.5), {}
    truth = pair.alignment()
    for name, peer in verdicts().items():
        for P in sized((40, 80, 160), (20, 30)):
            samples = (pair.sample(P, P // 2, P, seeded(P, i)) for i in range(draws))
            values = [peer(*both)[0] for both in samples]
            found.setdefault(name, []).append({"P": P, **summary(values, truth)})
    return found


PAIRS = {  # name -> (two systems of known alignment, eigenvalues 1 / l^s)
    "unrelated": (math.pi / 2, 0),
    "half": (math.pi / 4, 0),
    "half, steep": (math.pi / 4, 1),
}


def verdict(draws):
    "Value, error, p-value and time of every peer on pairs of known alignment, 100 x 20."
    found = {}
    for k, (label, (angle, exponent)) in enumerate(PAIRS.items()):
        pair = sm.LinearPair(10, angle, exponent=exponent)
        samples = [pair.sample(100, 20, 20, seeded(9, k, i)) for i in range(draws)]
        peers = verdicts()
        calls = [lambda f=f, x=samples[0]: f(*x) for f in peers.values()]
        seconds = in_turn(calls, 5, time.thread_time)
        for (name, peer), time_of_it in zip(peers.items(), seconds):
            values, errors, p = zip(*(peer(*both) for both in samples))
            values = np.array(values)
            part = {
                "truth": round(pair.alignment(), 12),
                "mean": float(values.mean()),
                "error": float(values.std(ddof=1) / np.sqrt(draws)),
                "spread": float(values.std(ddof=1)),
                "reported": errors[0] and float(np.sqrt(np.mean(np.square(errors)))),
                "found": p[0] and float(np.mean(np.array(p) <= 0.05)),
                "seconds": float(f"{time_of_it:.3g}"),
            }
            found.setdefault(label, {})[name] = part
    return found


def same_as_transcribed():
    "The score that studies/verdict.py transcribes is that of the package, order by order."
    module, _ = package("calibrated-similarity")
    if not module:
        return
    import torch

    sys.path.append(str(FILE.parents[1] / "studies"))
    import verdict as study

    phi, psi = sm.LinearPair(10, 0.9).sample(40, 12, 15, 0)
    rng = np.random.default_rng(1)
    given, score, p = study.calibrated([phi], psi, 99, np.random.default_rng(1))
    order = lambda n, device: torch.from_numpy(rng.permutation(n))
    x, y = map(torch.from_numpy, (phi, psi))
    theirs = module.calibrate(x, y, plain, K=99, perm_fn=order)
    np.testing.assert_allclose([*map(float, theirs[:2])], [score, p], rtol=1e-5)


# --- the report ---------------------------------------------------------------------------


def at(rows, case, field):
    "One measurement of a peer; None if its budget was spent before."
    return dict(zip(rows["case"], rows[field])).get(case)


def report_costs(report, found):
    "Rows with targets: times faster, and megabytes."
    sizes, ours = found["size"], found["size"]["increasing"]
    common = [P for P in sizes["paper, vectorised"]["case"] if P in ours["case"]]
    P = common[-1]
    theirs = sizes["paper, vectorised"]
    for field, claim, target in (
        ("seconds", "increasing, times faster", 20),
        ("megabytes", "increasing, times less memory", 20),
    ):
        report.row(
            claim,
            at(theirs, P, field) / at(ours, P, field),
            target,
            at_most=False,
            sizes=f"{by(P, P)}, n_max = 4",
            baseline="the paper's algorithm by cumulative sums",
            timing="shortest of 2",
        )
    for name, rows in found["scaling"].items():
        low, high = LIMITS.get(name, (None, None))
        report.row(
            f"exponent of the time: {name}",
            rows["exponent"],
            None if low is None else (low, high),
            unit="",
            sizes=", ".join(map(str, rows["size"])),
            timing="shortest of 3, in turn",
        )


LIMITS = {  # fitted exponents; caches and threads bend them a little
    "increasing, shorter side": (1.4, 2.3),
    "increasing, longer side": (0.7, 1.3),
    "increasing, order - 1": (0.6, 1.3),
    "sketch, shorter side": (0.3, 1.4),
    "estimate, trials": (-0.2, 1.2),
}


def report_errors(report, found, draws):
    "Rows with targets: biases in standard errors of the mean."

    def bias(row):
        return abs(row["mean"] - 1) / row["error"]

    settings = dict(unit="", timing=f"{draws} matrices")
    for name, by_order in found["moments"].items():
        unbiased = name in ("increasing", "all cycles")
        report.row(
            f"bias of m(3), {name}, in standard errors of the mean",
            max(bias(row) for row in by_order["3"]),
            4.5 if unbiased else 5,
            at_most=unbiased,
            sizes="RBF d = 3, three sizes: the largest",
            **settings,
        )
    for part, ours, what in (
        ("dimension", "all cycles", "linear process, features of variance 1, 40 x 40"),
        ("alignment", "ours", "two linear systems, 40 x (20, 40)"),
    ):
        for name, rows in found[part].items():
            report.row(
                f"{part}, mean over truth, {name}",
                rows[0]["mean"],
                (0.9, 1.1) if name == ours else None,
                sizes=what,
                **settings,
            )


def versions():
    "Versions of the peers that are there."
    names = ("spectral_moments", "numpy", "dimensionality", "driada", *PEERS)
    return {name: number for name in names if (number := package(name)[1])}


def main():
    rng, report, draws = np.random.default_rng(SEED), Report("peers"), sized(100, 5)
    about = report.about | {"settings": {"draws": draws, "budget": BUDGET}, "draws": draws}
    about["versions"] |= versions()
    found = {
        "size": against_size(rng),
        "order": against_order(rng),
        "scaling": scaling(rng),
        "moments": moment_errors(draws),
        "dimension": dimension_errors(draws),
        "alignment": alignment_errors(draws // 2),
        "verdict": verdict(2 * draws),
    }
    same_as_transcribed()
    report_costs(report, found)
    report_errors(report, found, draws)
    report.save()
    about["seconds"] = report.seconds()
    if not TINY:
        text = json.dumps(about | found, indent=1) + "\n"
        FILE.with_name("peers.json").write_text(text)
    print(f"{about['seconds']:.0f} seconds")


if __name__ == "__main__":
    main()
