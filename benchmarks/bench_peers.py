"""What else can estimate moments, side by side: time, memory, error against the truth.

python benchmarks/bench_peers.py

Packages among the peers come with `pip install 'spectral_moments[bench]'`; one that is
missing is left out. Writes results/peers.json, for the pictures of the page of benchmarks,
and rows with targets into results/benchmarks.json. With --tiny nothing is stored.
"""

import importlib
import json
import time
import tracemalloc
from importlib.metadata import PackageNotFoundError, version

import numpy as np
from common import FILE, TINY, Report, by, in_turn, sized

import spectral_moments as sm
from spectral_moments.teaching.recursion import cumulative

SEED, BUDGET = 0, sized(0.3, 0.05)  # seconds for one call, beyond which a peer stops


def package(name):
    "A package that may not be installed, and its version."
    try:
        return importlib.import_module(name), version(name)
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
    return found


def alignments():
    "Name on the page: alignment of two systems."

    def plain(phi, psi):
        phi, psi = phi - phi.mean(0), psi - psi.mean(0)
        norm = lambda a, b: ((a.T @ b) ** 2).sum()
        return norm(phi, psi) / np.sqrt(norm(phi, phi) * norm(psi, psi))

    found = {"ours": lambda phi, psi: sm.alignment(phi, psi).value, "plain": plain}
    module, number = package("ckatorch")
    if module:
        import torch
        from ckatorch.hsic import hsic1

        def unbiased(phi, psi):
            K, L = (torch.from_numpy(x @ x.T)[None] for x in (phi, psi))
            return float(hsic1(K, L) / (hsic1(K, K) * hsic1(L, L)) ** 0.5)

        found[f"ckatorch {number}, unbiased"] = unbiased
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
    sizes = sized((50, 100, 200, 400, 800), (20, 30))
    cases = {P: (rng.standard_normal((P, P)), 4) for P in sizes}
    return costs(cases, MOMENTS)


def against_order(rng):
    "One matrix, growing order."
    phi = rng.standard_normal(sized((150, 300), (20, 30)))
    cases = {n: (phi, n) for n in sized(range(2, 9), (2, 3))}
    peers = {name: peer for name, peer in MOMENTS.items() if name != "all cycles"}
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
    peers = {k: v for k, v in MOMENTS.items() if k != "paper, vectorised"}
    for P in sized((25, 50, 100), (20, 30)):
        samples = [process.sample(P, 2 * P, seeded(P, i)) for i in range(draws)]
        for name, peer in peers.items():
            values = np.array([peer(phi, n_max) for phi in samples])
            for n in range(2, n_max + 1):
                rows = found.setdefault(name, {}).setdefault(str(n), [])
                rows.append({"P": P, **summary(values[:, n - 1], truth[n - 1])})
    return found


def dimension_errors(draws):
    "Errors of the centred dimension of a linear process, by size."
    process, found = sm.Linear(20), {}
    for name, peer in dimensions().items():
        for P in sized((40, 80, 160), (20, 30)):
            values = [peer(process.sample(P, P, seeded(P, i)) + 1.0) for i in range(draws)]
            found.setdefault(name, []).append({"P": P, **summary(values, 20.0)})
    return found


def alignment_errors(draws):
    "Errors of the alignment of two linear systems."
    pair, found = sm.LinearPair(10, 0.5), {}
    truth = pair.alignment()
    for name, peer in alignments().items():
        for P in sized((40, 80, 160), (20, 30)):
            samples = (pair.sample(P, P // 2, P, seeded(P, i)) for i in range(draws))
            values = [peer(*both) for both in samples]
            found.setdefault(name, []).append({"P": P, **summary(values, truth)})
    return found


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
        ("dimension", "all cycles", "linear process, 40 x 40"),
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


def main():
    rng, report, draws = np.random.default_rng(SEED), Report("peers"), sized(100, 5)
    begin = time.perf_counter()
    found = {
        "command": "python benchmarks/bench_peers.py",
        "seed": SEED,
        "draws": draws,
        "versions": {
            name: number
            for name in ("spectral_moments", "numpy", "dimensionality", "ckatorch")
            if (number := package(name)[1])
        },
        "size": against_size(rng),
        "order": against_order(rng),
        "scaling": scaling(rng),
        "moments": moment_errors(draws),
        "dimension": dimension_errors(draws),
        "alignment": alignment_errors(draws // 2),
    }
    report_costs(report, found)
    report_errors(report, found, draws)
    report.save()
    if not TINY:
        (FILE.parent / "peers.json").write_text(json.dumps(found, indent=1) + "\n")
    print(f"{time.perf_counter() - begin:.0f} seconds")


if __name__ == "__main__":
    main()
