"""Draw the picture of the README: the dimension of one recording by neurons seen.

python tools/readme_picture.py    writes _static/readme.png

The same content as the first figure of the book (nbs/index.ipynb), on an opaque ground, so
that it can be read on a light page and on a dark one.
"""

import warnings
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

import spectral_moments as sm
from spectral_moments.figures import line, use_style

NEURONS, REPETITIONS, SEED = np.array([25, 50, 100, 200, 400]), 60, 3
FILE = Path(__file__).parents[1] / "_static" / "readme.png"


def dimensions(phi):
    "Naive and unbiased dimension."
    a, b = sm.naive(phi, 2)
    return a**2 / b, sm.estimate(phi, 2).dimension().value


def samples(process):
    "Both dimensions of random subsets of neurons, shape (sizes, repetitions, 2)."
    rng = np.random.default_rng(SEED)
    phi = process.sample(200, NEURONS[-1], rng)
    subsets = lambda Q: (rng.permutation(NEURONS[-1])[:Q] for _ in range(REPETITIONS))
    return np.array([[dimensions(phi[:, some]) for some in subsets(Q)] for Q in NEURONS])


def draw(values, truth, file):
    "The picture: means as markers, quartiles as bands, the truth dashed."
    use_style()
    mpl.use("Agg")
    fig, ax = plt.subplots(figsize=(6.4, 3.2), dpi=150)
    for i, (method, label) in enumerate(
        {"naive": "naive: sample covariance", "all_cycles": "unbiased: all cycles"}.items()
    ):
        low, high = np.percentile(values[:, :, i], [25, 75], axis=1)
        style = line(method, label=label)
        ax.fill_between(NEURONS, low, high, color=style["color"], alpha=0.2, linewidth=0)
        ax.plot(NEURONS, values[:, :, i].mean(axis=1), **style)
    ax.axhline(truth, **line("truth"))
    ax.set(xscale="log", xlabel="neurons seen", ylabel="dimension", ylim=(0, None))
    ax.set_xticks(NEURONS, NEURONS)
    ax.minorticks_off()
    ax.legend(loc="lower right")
    fig.savefig(file, facecolor="white", metadata={"Software": None})


if __name__ == "__main__":
    warnings.simplefilter("ignore", sm.EstimateWarning)  # 25 neurons deserve their doubts
    process = sm.RBF(3, kernel_cov=0.25)
    m = process.moments(2)
    draw(samples(process), m[0] ** 2 / m[1], FILE)
