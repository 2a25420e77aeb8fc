"""Every estimator against the truth: bias, variance and error on thousands of matrices.

The data of the chapter on the paper's figures, which draws them with the functions below;
`cycles_rmse` compares all cycles with means over random permutations, for the chapter on
all cycles.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # many small products

import math
import sys
from functools import partial

import numpy as np
import pandas as pd
from common import Part, main, read
from figures import line

from spectral_moments import RBF, all_cycles, increasing, kong_valiant, naive

STANDARD = ("naive", "kv_row", "kv_col", "increasing", "all_cycles")
PAPER = dict(dim=5, kernel_cov=0.25)


def study(seed, process, shapes, repetitions, more=()):
    "Settings and seed of one study."
    settings = {"process": process, "shapes": shapes, "repetitions": repetitions}
    return settings | {"estimators": [*STANDARD, *more], "n_max": 7}, seed


STUDIES = {
    "main": study(71, PAPER, [[300, 600]], 1000, ["increasing_10"]),
    "features": study(
        72, PAPER, [[300, Q] for Q in (75, 150, 300, 1200)], [1000, 1000, 1000, 200]
    ),
    "inputs": study(
        73, PAPER, [[P, 600] for P in (75, 150, 600, 1200)], [1000, 1000, 400, 200]
    ),
    "dim10": study(74, dict(dim=10), [[300, 600]], 1000),
    "small_dim10": study(75, dict(dim=10, kernel_cov=4.0), [[30, 60]], 4000),
    "small_dim4": study(76, dict(dim=4, kernel_cov=0.25), [[30, 60]], 4000),
    "small_dim2": study(77, dict(dim=2, kernel_cov=0.25), [[30, 60]], 4000),
}


# --- one matrix ---------------------------------------------------------------------------


def some_cycles(phi, n_max):
    "`all_cycles` up to order 4, and NaN beyond."
    highest = min(n_max, 4)
    return np.append(all_cycles(phi, highest), [np.nan] * (n_max - highest))


#: name -> function of (matrix, highest order, generator for permutations)
ESTIMATORS = {
    "naive": lambda phi, n_max, rng: naive(phi, n_max),
    "kv_row": lambda phi, n_max, rng: kong_valiant(phi, n_max, sampled="rows"),
    "kv_col": lambda phi, n_max, rng: kong_valiant(phi, n_max, sampled="columns"),
    "increasing": lambda phi, n_max, rng: increasing(phi, n_max, n_jobs=1),
    "increasing_10": lambda phi, n_max, rng: increasing(
        phi, n_max, n_permutations=10, random_state=rng, n_jobs=1
    ),
    "all_cycles": lambda phi, n_max, rng: some_cycles(phi, n_max),
}


def one_matrix(process, shape, index, *, estimators, n_max, seed):
    "Draw a matrix, from a seed of its own, and apply the estimators: (estimators, n_max)."
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(*shape, index)))
    phi = process.sample(*shape, rng)
    return np.array([ESTIMATORS[name](phi, n_max, rng) for name in estimators])


# --- tables -------------------------------------------------------------------------------


def summary(x, truth):
    "Bias, variance, mean squared error, quantiles and share of negatives, with errors."
    N, square = len(x), (x - truth) ** 2
    variance, fourth = x.var(ddof=1), ((x - x.mean()) ** 4).mean()
    negative = (x < 0).mean()
    row = {
        "count": N,
        "truth": truth,
        "mean": x.mean(),
        "bias": (x - truth).mean(),
        "bias_se": math.sqrt(variance / N),
        "variance": variance,
        "variance_se": math.sqrt(max(fourth - variance**2, 0) / N),
        "mse": square.mean(),
        "mse_se": square.std(ddof=1) / math.sqrt(N),
        "negative": negative,
        "negative_se": math.sqrt(negative * (1 - negative) / N),
    }
    for p in (0.05, 0.25, 0.5, 0.75, 0.95):  # error: one binomial deviation to each side
        around = np.clip(p + np.array([-1, 0, 1]) * math.sqrt(p * (1 - p) / N), 0, 1)
        low, row[f"q{100 * p:02.0f}"], high = np.quantile(x, around)
        row[f"q{100 * p:02.0f}_se"] = (high - low) / 2
    return row


def paired(square, reference):
    "Mean squared error minus the reference's, matrix by matrix where both are known."
    excess = (square - reference)[~np.isnan(square - reference)]
    if len(excess) < 2:
        return {"excess": math.nan, "excess_se": math.nan}
    error = excess.std(ddof=1) / math.sqrt(len(excess))
    return {"excess": excess.mean(), "excess_se": error}


def signed_root(values, n):
    "The n-th root with the sign kept: -|v|^(1/n) for a negative v."
    return np.sign(values) * np.abs(values) ** (1 / n)


def tabulate(samples, truth, estimators, reference="increasing"):
    "One row for each shape, quantity, estimator and order, from {(P, Q): estimates}."
    orders, rows = np.arange(1, len(truth) + 1), []
    for (P, Q), values in samples.items():
        root = signed_root(values, orders)
        quantities = {
            "moment": (values, truth),
            "root": (root, signed_root(truth, orders)),
            "positive_root": (
                np.where(values >= 0, root, np.nan),
                signed_root(truth, orders),
            ),
        }
        for quantity, (x, true) in quantities.items():
            square = (x - true) ** 2
            other = square[:, list(estimators).index(reference)]
            for i, method in enumerate(estimators):
                for n in orders:
                    known = x[:, i, n - 1][~np.isnan(x[:, i, n - 1])]
                    if len(known) > 1:
                        row = dict(P=P, Q=Q, method=method, quantity=quantity, n=int(n))
                        row |= summary(known, true[n - 1])
                        rows.append(row | paired(square[:, i, n - 1], other[:, n - 1]))
    return joined(pd.DataFrame(rows))


def joined(*tables):
    "The rows of several tables, as a numpy record array: t.bias, t[k], t['mean']."
    return pd.concat(map(pd.DataFrame, tables)).to_records(index=False)


def select(table, **conditions):
    "The rows in which each column has the value, or one of the values, asked for."
    wanted = {k: [v] if np.ndim(v) == 0 else list(v) for k, v in conditions.items()}
    return table[np.all([np.isin(table[k], v) for k, v in wanted.items()], axis=0)]


# --- the studies --------------------------------------------------------------------------


def stored_column(values):
    "A column as JSON holds it: six digits, None where nothing is known."
    short = lambda x: None if math.isnan(x) else float(f"{x:.6g}")
    return [short(x) if isinstance(x, float) else x for x in values.tolist()]


def measure(run):
    "The table of one part."
    s, samples = run.settings, {}
    process = RBF(**s["process"])
    options = dict(estimators=s["estimators"], n_max=s["n_max"], seed=run.seed)
    counts = np.broadcast_to(s["repetitions"], len(s["shapes"]))
    for shape, count in zip(map(tuple, s["shapes"]), counts.tolist()):
        task = lambda index, shape=shape: one_matrix(process, shape, index, **options)
        found = run.repeat("{} x {}".format(*shape), task, count)
        samples[shape] = np.array(found, dtype=float)
    table = tabulate(samples, process.moments(s["n_max"]), s["estimators"])
    return {"columns": {name: stored_column(table[name]) for name in table.dtype.names}}


def read_study(name):
    "Settings and table of a stored part."
    about = read("comparison", name)
    columns = pd.DataFrame(about.pop("columns"))
    fifth = (columns.method == "all_cycles") & (columns.n > 4)  # version 0.3 had it
    columns = columns[~fifth]
    return about, joined(columns.astype({"excess": float, "excess_se": float}))


# --- all cycles and random permutations ---------------------------------------------------

N_STORED = 3  # matrices whose single estimates are stored, for the check in the chapter
CYCLES = {"n_matrices": 600, "n_max": 4, "permutations": [1, 16, 256]}
CASES = {
    r"scarce: $d=10$, $\Sigma=I$, $30\times 60$": dict(
        dim=10, kernel_cov=1.0, shape=(30, 60)
    ),
    r"plentiful: $d=3$, $\Sigma=I/4$, $75\times 150$": dict(
        dim=3, kernel_cov=0.25, shape=(75, 150)
    ),
}


def cycle_estimates(run, process, shape, index):
    "All estimates from matrix number `index`."
    phi, n_max = process.sample(*shape, np.random.default_rng([run.seed, index])), 4
    options = [dict(n_permutations=k, random_state=index) for k in CYCLES["permutations"]]
    found = {str(x["n_permutations"]): increasing(phi, n_max, **x) for x in options}
    return found | {"all_cycles": all_cycles(phi, n_max)}


def relative_errors(sample, truth):
    "Bias and mean squared error over the truth, with their standard errors."
    error, root = sample / truth - 1, len(sample) ** 0.5
    return {
        "bias": error.mean(0),
        "bias_se": error.std(0, ddof=1) / root,
        "mse": (error**2).mean(0),
        "mse_se": (error**2).std(0, ddof=1) / root,
    }


def measure_cycles(run):
    "Errors of both processes, and the first estimates."
    cases = {}
    for title, case in CASES.items():
        process = RBF(case["dim"], kernel_cov=case["kernel_cov"])
        truth = process.moments(run.settings["n_max"])
        one = partial(cycle_estimates, run, process, case["shape"])
        drawn = run.repeat(title, one, run.settings["n_matrices"])
        samples = {k: np.array([found[k] for found in drawn]) for k in drawn[0]}
        results = {k: relative_errors(sample, truth) for k, sample in samples.items()}
        first = {k: sample[:N_STORED] for k, sample in samples.items()}
        about = {"truth": truth, "results": results, "first_matrices": first}
        cases[title] = case | about
    return {"cases": cases}


# --- figures ------------------------------------------------------------------------------

METHODS = {name: name for name in STANDARD}  # key of the style: method in the table
TEN = {**METHODS, "increasing": "increasing_10"}
ASIDE = dict(zip(STANDARD, (-0.1, -0.05, 0.0, 0.05, 0.1)))  # so that no point hides another
COLUMNS = {"mean": "estimate", "mse": "mean squared error"}
COLUMNS |= {"bias": "bias", "variance": "variance"}


def draw_column(ax, table, column, *, x="n", power=0, methods=METHODS, **changes):
    "A column over a power of the truth; bars: middle half of the estimates, or errors."
    for style, method in methods.items():
        t, aside = select(table, method=method), ASIDE[style]
        place = t.n + 1.2 * aside if x == "n" else t[x] * np.exp(aside)
        value, scale = t[column], t.truth**power
        if column == "mean":
            error = np.array([value - t.q25, t.q75 - value]).clip(0) / scale
        else:
            value, error = abs(value), t[f"{column}_se"] / scale
        look = line(style, zorder=3 + (style == "increasing"), **changes)
        ax.errorbar(place, value / scale, error, **look)


def draw_moments(axes, table):
    "Moments and roots against the order, with their mean squared errors, on 2 x 2 axes."
    main = select(table, n=range(2, 8))
    moment, root = (select(main, quantity=name) for name in ("moment", "root"))
    dropped = select(main, quantity="positive_root")
    draw_column(axes[0, 0], moment, "mean", power=1, methods=TEN)
    draw_column(axes[0, 1], moment, "mse", power=2, methods=TEN)
    axes[0, 1].plot([], [], **line("truth"))  # for the legend
    look = dict(methods={"increasing": "increasing_10"}, mfc="w", linestyle="--")
    for ax, column in zip(axes[1], ("mean", "mse")):
        draw_column(ax, root, column, methods=TEN)
        draw_column(ax, dropped, column, **look, label=None)
    axes[0, 0].axhline(1, **line("truth"))
    axes[1, 0].plot(range(2, 8), select(root, method="naive").truth, **line("truth"))
    norm = RBF(**PAPER).operator_norm
    axes[1, 0].axhline(norm, color="k", linestyle=":")
    axes[1, 0].text(2, 0.9 * norm, "operator norm", va="top")
    axes[1, 1].axhline(1e-5, color="k", linestyle=":")
    axes[0, 0].set_yscale("symlog", linthresh=1)
    axes[0, 0].set(ylabel=r"$\hat m(n) \,/\, m(n)$", xlabel="order $n$")
    axes[0, 1].set(ylabel=r"mean squared error $/\, m(n)^2$", yscale="log")
    axes[0, 1].set_xlabel("order $n$")
    axes[1, 0].set(ylabel=r"$\hat m(n)^{1/n}$", xlabel="order $n$")
    axes[1, 1].set(ylabel="mean squared error", xlabel="order $n$", yscale="log")
    axes[0, 1].legend(ncols=2, loc="upper left")
    axes[0, 1].set_ylim(top=axes[0, 1].get_ylim()[1] * 1e3)
    name_panels(axes, ("moments", "their error", "roots", "their error"))


def name_panels(axes, titles):
    "Letter and title above each panel, at the left."
    for letter, ax, title in zip("abcd", np.ravel(axes), titles):
        ax.set_title(rf"$\bf{{{letter}}}$  {title}", loc="left")


def draw_sizes(axes, features, inputs):
    "The second and fourth moment against the number of columns or rows, on 2 x 2 axes."
    sides = {"Q": (features, "features $Q$, with $P = 300$")}
    sides["P"] = inputs, "inputs $P$, with $Q = 600$"
    for column, (side, (table, label)) in zip(axes.T, sides.items()):
        for ax, n in zip(column, (2, 4)):
            rows = select(table, quantity="moment", n=n)
            rows = rows[np.argsort(rows[side], kind="stable")]
            draw_column(ax, rows, "mean", x=side, power=1)
            ax.axhline(1, **line("truth"))
            ax.set(xscale="log")
            ax.set_yscale("symlog", linthresh=1)
            ax.set_xticks(sizes := np.unique(rows[side]), map(str, sizes))
            ax.minorticks_off()
            ax.set_xlabel(label)
    for row, n in zip(axes, (2, 4)):
        for ax in row:
            ax.set_ylabel(rf"$\hat m({n}) \,/\, m({n})$")
    axes[1, 1].legend(ncols=2, loc="lower right")
    titles = [f"$n = {n}$, more {what}" for n in (2, 4) for what in ("features", "inputs")]
    name_panels(axes, titles)


def draw_errors(axes, table):
    "One row of the appendix: estimates, mean squared error, bias and variance."
    rows = select(table, quantity="moment", n=range(2, 8))
    for ax, column in zip(axes, COLUMNS):
        draw_column(ax, rows, column, power=1 if column in ("mean", "bias") else 2)
        ax.set_yscale("symlog" if column == "mean" else "log")
    chance = select(rows, method="increasing")
    axes[2].plot(chance.n, chance.bias_se / chance.truth, color="0.3", linestyle=":")
    axes[0].axhline(1, **line("truth"))


PARTS = {name: Part(measure, *known) for name, known in STUDIES.items()}
PARTS["cycles_rmse"] = Part(measure_cycles, CYCLES, 2026)

if __name__ == "__main__":
    sys.exit(main(__file__, __doc__, PARTS))
