"""Draw the picture of the README: one process, naive and unbiased moments by sample size.

python tools/readme_picture.py    writes _static/readme.png

The same content as the first figure of the book (nbs/index.ipynb), on an opaque ground, so
that it can be read on a light page and on a dark one.
"""

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

import spectral_moments as sm
from spectral_moments.figures import line, use_style

SIZES, REPETITIONS, SEED = np.array([25, 50, 100, 200]), 300, 1
FILE = Path(__file__).parents[1] / "_static" / "readme.png"


def samples(process):
    "Naive and unbiased third moments, shape (sizes, repetitions, 2)."
    rng = np.random.default_rng(SEED)
    matrices = ([process.sample(P, 2 * P, rng) for _ in range(REPETITIONS)] for P in SIZES)
    return np.array(
        [
            [[sm.naive(phi, 3)[2], sm.all_cycles(phi, 3)[2]] for phi in phis]
            for phis in matrices
        ]
    )


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
        ax.fill_between(SIZES, low, high, color=style["color"], alpha=0.2, linewidth=0)
        ax.plot(SIZES, values[:, :, i].mean(axis=1), **style)
    ax.axhline(truth, **line("truth"))
    ax.set(xscale="log", yscale="log", xlabel="inputs $P$ (features $2P$)")
    ax.set(ylabel="estimate of $m(3)$")
    ax.set_xticks(SIZES, SIZES)
    ax.minorticks_off()
    ax.legend()
    fig.savefig(file, facecolor="white", metadata={"Software": None})


if __name__ == "__main__":
    process = sm.RBF(3, kernel_cov=0.25)
    draw(samples(process), process.moments(3)[2], FILE)
