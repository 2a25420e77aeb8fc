"""Draw the picture of the README: the dimension of a recorded cortex by sites seen.

python tools/readme_picture.py    writes _static/readme.png from results/cortex.json

The numbers are those of the chapter on the recording (nbs/08_cortex.ipynb). The ground is
opaque, so that the picture can be read on a light page and on a dark one.
"""

import json
import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "studies"))
from figures import line, use_style  # noqa: E402

FILE, DATA = ROOT / "_static/readme.png", ROOT / "results/cortex.json"
WAYS = {  # column of the stored sweep: look
    "naive, one trial": line("naive", label="naive, one trial", linestyle=":"),
    "naive, mean of 28": line("naive", label="naive, mean of 28 trials"),
    "halves": line("all_cycles", label="unbiased, trials in two halves"),
}


def draw(stored, file):
    "The picture: medians of random subsets of sites as markers, their quartiles as bands."
    use_style()
    mpl.use("Agg")
    sweep = stored["sweeps"]["IT"]
    quartiles = [stored["quantiles"].index(q) for q in (0.25, 0.5, 0.75)]
    sites = [row["shape"][1] for row in sweep["sites"]]
    fig, ax = plt.subplots(figsize=(6.4, 3.2), dpi=150)
    for way, style in WAYS.items():
        rows = np.array([row["quantiles"][way] for row in sweep["sites"]])
        low, middle, high = rows[:, quartiles].T
        ax.fill_between(sites, low, high, color=style["color"], alpha=0.2, linewidth=0)
        ax.plot(sites, middle, **style)
    ax.set(xscale="log", xlabel="sites seen", ylabel="dimension", ylim=(0, None))
    ax.set_xticks(sites, sites)
    ax.minorticks_off()
    ax.legend(loc="upper left")
    fig.savefig(file, facecolor="white", metadata={"Software": None})


if __name__ == "__main__":
    data = Path(sys.argv[1]) if sys.argv[1:] else DATA
    draw(json.loads(data.read_text(encoding="utf-8"))["cortex"], FILE)
