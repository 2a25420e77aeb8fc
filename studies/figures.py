"""The figures of the book: one style, and one colour and one marker for each estimator.

The palette is the colour-blind safe one of Wong (2011). The truth is black and dashed. Use
it in a chapter by `sys.path.append("../studies")` and `from figures import use_style`.
"""

import logging
from collections import Counter
from contextlib import suppress

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

#: matplotlib line properties of the truth and of each estimator
STYLE = {
    "truth": dict(color="#000000", linestyle="--", linewidth=1.6, label="truth", zorder=5),
    "naive": dict(color="#D55E00", marker="v", label="naive"),
    "kv_row": dict(color="#E69F00", marker="^", label="KV-row"),
    "kv_col": dict(color="#CC79A7", marker=">", label="KV-col"),
    "increasing": dict(color="#0072B2", marker="o", label="increasing"),
    "all_cycles": dict(color="#009E73", marker="s", label="all cycles"),
}


def line(method, **changes) -> dict:
    "Line properties of an estimator for matplotlib, with `changes` such as `label`."
    return {"label": method, **STYLE.get(method, {}), **changes}


def use_style(size=10):
    "Set matplotlib's defaults to the style of the book, with text of this size in points."
    colors = mpl.cycler(color=[style["color"] for style in STYLE.values()])
    plt.rc("figure", figsize=(6.4, 3.4), facecolor="white")
    plt.rc("figure.constrained_layout", use=True)
    plt.rc("savefig", facecolor="white")
    plt.rc("svg", hashsalt="spectral_moments")
    plt.rc("font", size=size)
    plt.rc("legend", fontsize=size - 1, frameon=False)
    plt.rc(
        "axes", titlesize=size, labelsize=size, grid=True, axisbelow=True, prop_cycle=colors
    )
    plt.rc("axes.spines", top=False, right=False)
    plt.rc("grid", color="#d9d9d9", linewidth=0.6)
    plt.rc("lines", linewidth=1.4, markersize=4.5)
    plt.rc("errorbar", capsize=2.5)
    # a busy machine would log how long it takes, in the middle of a page
    logging.getLogger("spectral_moments").setLevel(logging.ERROR)
    with suppress(ImportError):
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        set_matplotlib_formats("svg")


def panel_letters(axes):
    "A bold letter above the upper left corner of each panel."
    for ax, letter in zip(np.ravel(axes), "abcdefghijklmnop"):
        ax.set_title(letter, loc="left", fontweight="bold")


def mean_and_error(samples) -> tuple:
    "Mean over the first axis and its standard error."
    samples = np.asarray(samples, dtype=float)
    if len(samples) < 2:
        problem = f"samples has {len(samples)} repetitions; an error bar needs at least 2"
        raise ValueError(problem)
    return samples.mean(axis=0), samples.std(axis=0, ddof=1) / np.sqrt(len(samples))


def draw_cycle(
    ax,  # matplotlib axes
    rows,  # i_1, ..., i_n, counted from 0
    columns,  # alpha_1, ..., alpha_n, counted from 0
    *,
    color=None,  # of the arrows; None: blue, or orange if a column comes twice
    names=True,  # whether to name the rows and columns at the edges
    shape=(8, 11),  # of the grey matrix behind it; None: draw on what is there
):
    "A cycle over a grey matrix, with arrows; a column that comes twice is shaded."
    twice = [k for k in set(columns) if columns.count(k) > 1]
    color = color or STYLE["naive" if twice else "increasing"]["color"]
    if shape:
        grey = np.random.default_rng(0).random(shape)
        ax.imshow(grey, cmap="Greys", vmin=-0.6, vmax=2.5)
        ax.set(xticks=[], yticks=[])
        ax.grid(False)
    for k in twice:
        ax.axvspan(k - 0.5, k + 0.5, color=color, alpha=0.3, lw=0)
    ends = zip(rows, (*rows[1:], rows[0]), columns)
    turns = [turn for i, j, k in ends for turn in ((k, i), (k, j))]
    arrow = dict(arrowstyle="-|>", color=color, lw=1.4, shrinkA=2, shrinkB=2)
    for start, end in zip(turns, turns[1:] + turns[:1]):
        if start != end:
            ax.annotate("", end, start, arrowprops=arrow)
    for turn in set(turns):
        ax.plot(*turn, "o", color=color, ms=4 if turns.count(turn) == 1 else 8)
    ax.plot(*turns[0], "o", ms=10, mfc="none", color="k")
    if names:
        ax.set_yticks(rows, [f"$i_{n + 1}$" for n in range(len(rows))])
        places = {}
        for n, k in enumerate(columns, 1):
            places.setdefault(k, []).append(rf"\alpha_{n}")
        ax.set_xticks(list(places), [f"${'='.join(found)}$" for found in places.values()])
        ax.xaxis.tick_top()
        ax.tick_params(length=0)


def draw_graph(ax, graph):
    "Rows as circles above, columns as squares below, edges (row, column) between."
    rows, columns = (1 + max(edge[side] for edge in graph) for side in (0, 1))
    t, middle = np.linspace(0, 1, 30), lambda k, count: k - (count - 1) / 2
    for (i, a), count in Counter(edge[:2] for edge in graph).items():
        straight = middle(i, rows) * (1 - t) + middle(a, columns) * t
        for k in range(count):
            bent = straight + 0.7 * middle(k, count) * t * (1 - t)
            ax.plot(bent, 1 - t, color="0.35", lw=1)
    for size, height, mark, name in (
        (rows, 1, "o", "increasing"),
        (columns, 0, "s", "naive"),
    ):
        places = [middle(i, size) for i in range(size)]
        ax.plot(places, [height] * size, mark, color=STYLE[name]["color"], ms=7.5)
    ax.set(xlim=(-1.3, 1.3), ylim=(-0.6, 1.2))
    ax.axis("off")


SIZES = (25, 50, 100, 200, 400)  # numbers of neurons seen


def dimensions_seen(phi, estimators, *, sizes=SIZES, repetitions=40, seed=0) -> dict:
    """First two moments by each estimator, a function of a matrix under a key of `STYLE`,
    of random subsets of the columns: by the same keys, a list over sizes (subsets, 2)."""
    rng, Q = np.random.default_rng(seed), phi.shape[1]
    some = lambda size: range(repetitions if size < Q else 1)
    parts = [[phi[:, rng.permutation(Q)[:size]] for _ in some(size)] for size in sizes]
    first_two = lambda f: [np.array([f(x)[:2] for x in found]) for found in parts]
    return {method: first_two(moments) for method, moments in estimators.items()}


def draw_dimensions(ax, found, truth, *, sizes=SIZES, styles=None) -> dict:
    """Dimension against the number of neurons seen, a line and a band for each estimator,
    of what `dimensions_seen` found, by `line` or in the given styles; the lines by name."""
    lines, styles = {}, styles or {method: line(method) for method in found}
    for method, moments in found.items():
        bands = [np.percentile(m[:, 0] ** 2 / m[:, 1], [25, 75]) for m in moments]
        lines[method] = np.array([m[:, 0].mean() ** 2 / m[:, 1].mean() for m in moments])
        color = styles[method]["color"]
        ax.fill_between(sizes, *np.transpose(bands), color=color, alpha=0.2, linewidth=0)
        ax.plot(sizes, lines[method], **styles[method])
    ax.axhline(truth, **line("truth"))
    ax.set(xscale="log", xlabel="neurons seen", ylabel="dimension", ylim=(0, None))
    ax.set_xticks(sizes, [str(size) for size in sizes])
    ax.minorticks_off()
    ax.legend()
    return lines
