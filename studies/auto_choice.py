"""Error against cost of every method, the ground for the choice of `method="auto"`.

Writes results/auto_choice.json, the data of a figure in the chapter on estimation.
"""

import math
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # many small products

import numpy as np
from spectral_moments.engine.planner import make_plan

from spectral_moments import RBF, all_cycles, increasing, kong_valiant, naive
from spectral_moments.engine.graphs import cycle, graph_terms

SEED = 2028
N_MAX = 6
N_STORED = 2  # matrices whose single estimates are stored, for the check in the chapter
PERMUTATIONS = (1, 4, 10, 16, 64, 256)
SETTINGS = {
    "n_matrices": 1000,
    "n_max": N_MAX,
    "permutations": PERMUTATIONS,
    "cost": "multiply-adds of all orders up to n, over P^2 Q of one matrix product",
}
CASES = {
    "scarce": dict(dim=10, kernel_cov=1.0, shape=(30, 60)),
    "between": dict(dim=5, kernel_cov=0.25, shape=(75, 150)),
    "plentiful": dict(dim=3, kernel_cov=0.25, shape=(75, 150)),
}


def products(n, P, Q):
    "Multiply-adds of the matrix products in the plan for all cycles up to order `n`."
    terms = [graph_terms(cycle(order)) for order in range(1, n + 1)]
    plan = make_plan(tuple(dict.fromkeys(graph for term in terms for graph, _ in term)))
    length, total = {"inputs": P, "features": Q, "block": Q}, 0
    for loop, steps in plan.steps.items():
        for node in (plan.table.nodes[i] for i, _ in steps):
            if node.op == "join":
                axes = *node.sides, plan.table.sides(node.args[0])[1]
                total += math.prod(map(length.get, axes)) * (
                    length[loop[1]] if "single" in loop else 1
                )
    return total


def costs(n, P, Q):
    "Multiply-adds of all orders up to `n` by each method, over P^2 Q; needs P <= Q."
    found = {f"increasing {k}": k * (n - 1) for k in PERMUTATIONS}
    if n <= 5:
        found["all_cycles"] = products(n, P, Q) / (P**2 * Q)
    return found | {"kv_row": 1 + max(n - 2, 0) * P / Q, "naive": 1 + 2 / 3 * P / Q}


def estimates(process, shape, seed):
    "All estimates from one matrix: a dict of arrays over n = 1..N_MAX."
    rng = np.random.default_rng(seed)
    phi = process.sample(*shape, rng)
    options = dict(n_permutations=1, random_state=rng, n_jobs=1)
    orders = range(max(PERMUTATIONS))
    single = np.array([increasing(phi, N_MAX, **options) for _ in orders])
    found = {f"increasing {k}": single[:k].mean(axis=0) for k in PERMUTATIONS}
    return found | {
        "all_cycles": np.append(all_cycles(phi, 5), np.nan),
        "kv_row": kong_valiant(phi, N_MAX, sampled="rows"),
        "naive": naive(phi, N_MAX),
    }


def summary(run, name, dim, kernel_cov, shape):
    "One process: root-mean-square errors relative to the truth, and what they cost."
    process = RBF(dim, kernel_cov=kernel_cov)
    truth = process.moments(N_MAX)
    count = run.settings["n_matrices"]
    drawn = run.repeat(name, lambda i: estimates(process, shape, [run.seed, i]), count)
    methods = {}
    for method in drawn[0]:
        squares = (np.array([d[method] for d in drawn]) / truth - 1) ** 2
        last = 5 if method == "all_cycles" else N_MAX
        rmse = np.sqrt(squares.mean(axis=0))
        error = squares.std(axis=0, ddof=1) / np.sqrt(count) / (2 * rmse)
        methods[method] = {
            "rmse": rmse[:last].tolist(),
            "rmse_se": error[:last].tolist(),
            "cost": [costs(n, *shape)[method] for n in range(1, last + 1)],
            "first_matrices": [d[method][:last] for d in drawn[:N_STORED]],
        }
    return {
        "process": f"RBF({dim}, input_cov=1.0, kernel_cov={kernel_cov})",
        "shape": shape,
        "truth": truth.tolist(),
        "methods": methods,
    }


def measure(run):
    "All processes."
    return {"cases": {name: summary(run, name, **case) for name, case in CASES.items()}}


if __name__ == "__main__":
    from common import main

    raise SystemExit(
        main(__file__, __doc__, measure, SETTINGS, SEED, quick={"n_matrices": 3})
    )
