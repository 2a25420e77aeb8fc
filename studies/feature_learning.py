"""Moments of the hidden layer while networks of several widths learn, over several seeds.

The data of the chapter on feature learning, with arrays in feature_learning.npz; of the
widest layer hundreds of random subsets of neurons are measured too. `centred` trains three
seeds of three widths again, in the same way, and stores participation ratios without the
images' mean. How long a network takes is stored too (core seconds).
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # many small products

import gzip
import hashlib
import math
import sys
import time
import warnings
from functools import partial
from pathlib import Path
from typing import NamedTuple
from zipfile import ZIP_LZMA, ZipFile

import numpy as np
import torch
from common import Part, main
from numba import njit
from torch.nn.functional import one_hot

from spectral_moments import all_cycles, estimate, increasing, naive, participation_ratio

with warnings.catch_warnings():  # a progress bar without widgets is fine
    warnings.simplefilter("ignore")
    import pooch

TOGETHER = 4  # seeds trained together, as one stack of matrices
NAMES = "naive", "ours", "powers", "size", "ratio", "loss", "accuracy"
SETTINGS = {
    "fashion": dict(
        widths=[32, 64, 128, 256, 512, 1024],
        subsets=dict(
            width=1024,
            neurons=128,
            epochs=[0, 20, 120],
            partitions=32,  # of the neurons into subsets; one at the other epochs
            with_error=4,  # of them
            n_permutations=2,
        ),
        n_train=10000,
        n_test=1000,
        epochs=120,
        measured=[0, 2, 4, 6, 8, 10, 14, 20, 26, 30, 40, 50, 60, 80, 100, 120],
        n_max=7,
        n_permutations=4,
        repetitions=29,  # seeds, as in the paper
    ),
    "digits": dict(
        widths=[32, 64, 128, 256],
        subsets=None,
        n_train=1200,
        n_test=500,
        epochs=8,
        measured=[0, 2, 4, 6, 8],
        n_max=7,
        n_permutations=4,
        repetitions=12,
    ),
}
CENTRED = dict(
    study="fashion",
    widths=[64, 256, 1024],
    repetitions=3,
    n_train=10000,
    n_test=1000,
    epochs=[0, 2, 10, 20, 60, 120],
)


# --- images -------------------------------------------------------------------------------

IMAGES, LABELS = "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"
FASHION = {  # file -> sha256 of what it unpacks to
    IMAGES: "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    LABELS: "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
}


def load_fashion_mnist(folder=None):
    "The 60,000 images and labels, from a folder, the user's cache or Debian's package."
    cache = pooch.os_cache("spectral_moments") / "fashion-mnist"
    places = (
        [Path(folder)] if folder else [cache, Path("/usr/share/datasets/fashion-mnist")]
    )
    for place in places:
        if all((place / name).is_file() for name in FASHION):
            break
    else:
        raise FileNotFoundError(
            f"Fashion-MNIST is not in {' or '.join(map(str, places))}. "
            "On Debian and Ubuntu: apt-get install dataset-fashion-mnist. Elsewhere: get "
            f"{' and '.join(FASHION)} from https://github.com/zalandoresearch/fashion-mnist"
        )
    content = [gzip.decompress((place / name).read_bytes()) for name in FASHION]
    for (name, digest), data in zip(FASHION.items(), content):
        if hashlib.sha256(data).hexdigest() != digest:
            raise ValueError(f"{place / name} has another hash; delete it, fetch it again")
    images, labels = (np.frombuffer(data, np.uint8) for data in content)
    return images[16:].reshape(-1, 28, 28), labels[8:]


def load_images(study):
    "Images and labels of one study."
    if study == "fashion":
        return load_fashion_mnist()
    from sklearn.datasets import load_digits

    digits = load_digits()
    return digits.images, digits.target


class Split(NamedTuple):
    "Images of length one, flattened, and their classes, for training and held out."

    train_images: np.ndarray  # float32, shape (n_train, d)
    train_labels: np.ndarray  # int64, shape (n_train,)
    test_images: np.ndarray  # float32, shape (n_test, d)
    test_labels: np.ndarray  # int64, shape (n_test,)


def draw_split(images, labels, n_train, n_test, seed):
    "Training images and held-out images from one draw without replacement."
    rng = np.random.default_rng(seed)
    chosen = rng.choice(len(images), n_train + n_test, replace=False)
    x = np.asarray(images)[chosen].reshape(len(chosen), -1).astype(np.float64)
    length = np.linalg.norm(x, axis=1, keepdims=True)
    x = (x / np.where(length > 0, length, 1)).astype(np.float32)
    y = np.asarray(labels)[chosen].astype(np.int64)
    return Split(x[:n_train], y[:n_train], x[n_train:], y[n_train:])


# --- networks -----------------------------------------------------------------------------


class Scaling(NamedTuple):
    "How weights, multipliers and rate depend on the width N: exponents of N."

    first: float  # the first layer's weights start with variance N^-first
    multiplier: float  # phi = N^multiplier relu(x.w), y = N^-multiplier sum of phi a
    rate: float  # Adam's rate is 0.01 N^-rate


#: parameterisations by name; the second layer's weights always start with variance 1/N
SCALINGS = {
    "maximal update": Scaling(first=1, multiplier=0.5, rate=0.5),
    "paper's text": Scaling(first=1, multiplier=0.5, rate=1),
    "standard, rate 0.01": Scaling(first=0, multiplier=0, rate=0),
    "standard, rate 0.01 / N": Scaling(first=0, multiplier=0, rate=1),
}


class Networks:
    "Networks of one width with one hidden layer of ReLUs, one for each seed, stacked."

    def __init__(
        self, n_inputs, width, n_outputs=10, *, seeds=(0,), scaling="maximal update"
    ):
        self.width, self.seeds = (width := int(width)), tuple(seeds)
        self.scaling = SCALINGS[scaling]
        self.generators = [np.random.default_rng([seed, width]) for seed in self.seeds]
        shapes = (n_inputs, width), (width, n_outputs)
        sizes = width ** (-self.scaling.first / 2), width**-0.5
        drawn = [[g.standard_normal(s) for s in shapes] for g in self.generators]
        self.first, self.second = (  # shapes (S, d, N) and (S, N, n_outputs)
            torch.tensor(np.stack(w) * size, dtype=torch.float32, requires_grad=True)
            for w, size in zip(zip(*drawn), sizes)
        )

    def features(self, x):
        "Hidden layers for images (S, batch, d) or (batch, d): tensor (S, batch, N)."
        return (x @ self.first).relu() * self.width**self.scaling.multiplier

    def __call__(self, x):
        "Outputs for images: tensor (S, batch, n_outputs)."
        return self.features(x) @ self.second * self.width**-self.scaling.multiplier

    def hidden(self, images):
        "Hidden layers for arrays (S, batch, d) or (batch, d), as an array in float64."
        with torch.no_grad():
            return self.features(torch.tensor(images)).double().numpy()


def train(networks, splits, epochs, batch_size=32):
    "Train by Adam on the mean of squares; yields 0, 1, ..., epochs after each is done."
    images = torch.tensor(np.stack([s.train_images for s in splits]))
    labels = torch.tensor(np.stack([s.train_labels for s in splits]))
    targets = one_hot(labels, networks.second.shape[2]).float()
    rate = 0.01 * networks.width**-networks.scaling.rate
    adam = torch.optim.Adam([networks.first, networks.second], lr=rate, fused=True)
    rows = torch.arange(len(splits))[:, None]
    yield 0
    for epoch in range(1, epochs + 1):
        order = [g.permutation(images.shape[1]) for g in networks.generators]
        for batch in torch.tensor(np.stack(order)).split(batch_size, dim=1):
            error = networks(images[rows, batch]) - targets[rows, batch]
            adam.zero_grad()
            (error**2).mean(dim=(1, 2)).sum().backward()  # they do not interact
            adam.step()
        yield epoch


# --- what is measured ---------------------------------------------------------------------


@njit(nogil=True, cache=True)
def chain_sums(squares, n_max):
    "Sums of products over chains of n entries that go down and right in every step."
    sums, ends = np.zeros(n_max), np.zeros((squares.shape[1], n_max))
    for a in range(squares.shape[0]):
        before = np.zeros(n_max)  # chains that end above and to the left, by length
        for b in range(squares.shape[1]):
            for k in range(n_max - 1, -1, -1):
                new = squares[a, b] * (before[k - 1] if k else 1.0)
                before[k] += ends[b, k]
                ends[b, k] += new
                sums[k] += new
    return sums


def rms_normalized(phi):
    "Divide a matrix by the root mean square of its entries."
    return phi / np.sqrt((phi**2).mean())


def first_moment_powers(phi, n_max, *, n_permutations=0, random_state=None):
    "Unbiased m(1)^n, n = 1..n_max, from entries that share no row and no column."
    squares, rng = np.asarray(phi) ** 2, np.random.default_rng(random_state)
    P, Q = squares.shape
    if n_permutations:
        orders = ((rng.permutation(P), rng.permutation(Q)) for _ in range(n_permutations))
        sums = [chain_sums(squares[rows][:, columns], n_max) for rows, columns in orders]
    else:
        sums = [chain_sums(squares, n_max)]
    counts = [math.comb(P, n) * math.comb(Q, n) for n in range(1, n_max + 1)]
    return np.mean(sums, axis=0) / np.array(counts, dtype=float)


def increasing_mean(phi, n_max, n_permutations, rng):
    """Average unbiased moments over random orders of the rows and columns.

    The orders are drawn here and not by `increasing`, so that the stored arrays do not
    depend on how the library draws. Version 0.3, with which they were computed, turned a
    matrix with more rows than columns, which keeps its increasing cycles, and then drew
    rows before columns; later versions draw other orders from the same seed.
    """
    wide = phi if phi.shape[0] <= phi.shape[1] else phi[::-1, ::-1].T
    found = []
    for _ in range(n_permutations):
        rows, columns = (rng.permutation(size) for size in wide.shape)
        found.append(increasing(wide[rows][:, columns], n_max, n_jobs=1))
    return np.mean(found, axis=0)


def plain_ratio(phi):
    "Unbiased m(1)^2 over unbiased m(2), with the first-order error of the jackknife."
    (P, Q), squares = phi.shape, phi**2
    pairs, total = P * (P - 1) * Q * (Q - 1), squares.sum()
    sums = [squares.sum(axis) @ squares.sum(axis) for axis in (0, 1)]
    top = (total**2 - sum(sums) + (squares**2).sum()) / pairs
    variance = 0.0
    for x, s in ((phi, squares), (phi.T, squares.T)):
        cycles = (x @ x.T) ** 2 - s @ s.T  # through two rows and two distinct columns
        through = cycles.sum(axis=0) - np.diag(cycles)
        second, N = through.sum(), len(x)
        # relative change of 2 log m(1) - log m(2) when a row is left out
        first = (1 - s.sum(axis=1) / total) * N / (N - 1)
        step = 2 * first - (1 - 2 * through / second) * N / (N - 2)
        variance += (1 - 1 / N) * ((step - step.mean()) ** 2).sum()
    value = top / (second / pairs)
    return value, value * math.sqrt(variance)


def measure_whole(phi, n_max, n_permutations, key):
    "Moments, powers of the first, size and participation ratio of a layer."
    size, rng = math.sqrt(np.mean(phi**2)), np.random.default_rng([*key])
    options = dict(n_permutations=n_permutations, random_state=[*key, 1])
    return {
        "naive": naive(phi / size, n_max),
        "ours": increasing_mean(phi / size, n_max, n_permutations, rng),
        "powers": first_moment_powers(phi / size, n_max, **options),
        "size": np.array([size]),
        "ratio": np.array(plain_ratio(phi)),
    }


def measure_subsets(phi, settings, key, main):
    "Moments of random subsets of a layer's neurons, relative to the whole layer's size."
    asked, n_max, width = settings["subsets"], settings["n_max"], phi.shape[1]
    phi, rng = phi / np.sqrt(np.mean(phi**2)), np.random.default_rng([*key, 2])
    finite = lambda x, error: estimate(
        x, 4, center=False, population=width, stderr=error, n_jobs=1, random_state=0
    )
    found = {"naive": [], "ours": [], "finite": [], "error": []}
    for number in range(asked["partitions"] if main else 1):
        for some in rng.permutation(width).reshape(-1, asked["neurons"]):
            x = phi[:, some]
            found["naive"].append(naive(x, n_max))
            found["ours"].append(increasing_mean(x, n_max, asked["n_permutations"], rng))
            if main:
                error = number < asked["with_error"]
                result = finite(x, error)
                found["finite"].append(result.values)
                found["error"] += [result.stderr] * error
    if main:
        found |= {"all": all_cycles(phi, 4), "all finite": finite(phi, False).values}
    return {name: np.array(values) for name, values in found.items()}


def spread_of(values, truth):
    "Mean, its error, five quantiles and the relative error of subsets, (8, n_max)."
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    quantiles = np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95], axis=0)
    relative = np.sqrt(np.mean((values / truth - 1) ** 2, axis=0))
    return np.stack([values.mean(axis=0), error, *quantiles, relative])


def summarised(few, settings, ours):
    "Subsets of one network, `few` by epoch, beside the moments `ours` of the whole layer."
    every, asked = settings["measured"], settings["subsets"]
    main = [few[epoch] for epoch in asked["epochs"]]
    whole = [ours[every.index(epoch)] for epoch in asked["epochs"]]
    count = asked["width"] // asked["neurons"]  # subsets of one partition
    powers = np.arange(1, settings["n_max"] + 1)
    result = {
        f"part {name}": [few[epoch][name][:count] for epoch in every]
        for name in ("naive", "ours")
    }
    rows = []
    for found, truth in zip(main, whole):
        own = found["naive"][:, :1] ** powers
        each = [found["naive"], found["naive"] / own, found["ours"], found["ours"] / own]
        rows.append([spread_of(x, truth) for x in each])
    result["subsets"] = rows  # epochs, (naive, naive own, ours, ours own), 8, n
    result["subsets finite"] = [spread_of(x["finite"], x["all finite"]) for x in main]
    number = asked["with_error"] * count
    result["finite with error"] = [
        [x[k][:number] for k in ("finite", "error")] for x in main
    ]
    result["whole ours"] = whole
    result |= {f"whole {name}": [x[name] for x in main] for name in ("all", "all finite")}
    return {name: np.array(values) for name, values in result.items()}


# --- the studies --------------------------------------------------------------------------


def scores(networks, splits):
    "Loss and share of right answers on the held-out images, one for each network."
    x, y = (torch.tensor(np.stack(parts)) for parts in list(zip(*splits))[2:])
    with torch.no_grad():
        outputs = networks(x)
    loss = ((outputs - one_hot(y, outputs.shape[2])) ** 2).mean(dim=(1, 2))
    right = (outputs.argmax(dim=2) == y).double().mean(dim=1)
    return zip(loss.tolist(), right.tolist())


def follow(
    networks, splits, epochs, *, measured=None, n_max=7, n_permutations=4, also=None
):
    "Train and measure on the way: for each network {name: array over epochs}."
    measured = range(0, epochs + 1, 2) if measured is None else measured
    found, images = [[] for _ in splits], np.stack([s.test_images for s in splits])
    for epoch in train(networks, splits, epochs):
        if epoch not in measured:
            continue
        all_scores = scores(networks, splits)
        layers = zip(networks.seeds, networks.hidden(images), all_scores, found)
        for seed, phi, (loss, accuracy), rows in layers:
            key = seed, networks.width, networks.width, epoch
            row = measure_whole(phi, n_max, n_permutations, key)
            rows.append(row | {"loss": loss, "accuracy": accuracy})
            if also is not None:
                also(seed, epoch, phi)
    return [
        {name: np.array([row[name] for row in rows]) for name in NAMES} for rows in found
    ]


def drawn(study, settings, width, seeds):
    "Networks and images of some seeds."
    torch.set_num_threads(1)
    data, sizes = load_images(study), (settings["n_train"], settings["n_test"])
    splits = [draw_split(*data, *sizes, seed) for seed in seeds]
    return Networks(splits[0].train_images.shape[1], width, seeds=seeds), splits


def train_group(settings, tasks, index):
    "The networks of one width for a few seeds: what was measured, for each."
    study, width, seeds = tasks[index]
    s, few = settings[study], {seed: {} for seed in seeds}
    subsets = s["subsets"] is not None and s["subsets"]["width"] == width

    def also(seed, epoch, phi):
        main = epoch in s["subsets"]["epochs"]
        few[seed][epoch] = measure_subsets(phi, s, (seed, epoch), main)

    start = time.process_time()
    options = {name: s[name] for name in ("epochs", "measured", "n_max", "n_permutations")}
    found = follow(
        *drawn(study, s, width, seeds), also=also if subsets else None, **options
    )
    seconds = (time.process_time() - start) / len(seeds)
    for seed, part in zip(seeds, found):
        part |= {"seconds": seconds}
        if subsets:
            part |= summarised(few[seed], s, part["ours"])
    return found


def groups(settings, first):
    "What is trained together: (study, width, seeds)."
    for study, s in settings.items():
        seeds = range(first, first + s["repetitions"])
        for width in sorted(s["widths"], reverse=True):
            for k in range(0, len(seeds), TOGETHER):
                yield study, width, list(seeds[k : k + TOGETHER])


def write_arrays(path, arrays):
    "Write arrays as np.savez_compressed does, in single precision and a tenth smaller."
    with ZipFile(path, "w", ZIP_LZMA) as folder:
        for name, values in sorted(arrays.items()):
            with folder.open(f"{name}.npy", "w") as entry:
                np.save(entry, values.astype(np.float32))


def measure(run):
    "Train the networks of every study, width and group of seeds; write the arrays."
    tasks, arrays, about = list(groups(run.settings, run.seed)), {}, {}
    task = partial(train_group, run.settings, tasks)
    found = run.repeat("groups", task, len(tasks))
    parts = {
        (study, width, seed): part
        for (study, width, seeds), group in zip(tasks, found)
        for seed, part in zip(seeds, group)
    }
    for study, s in run.settings.items():
        seeds = list(range(run.seed, run.seed + s["repetitions"]))
        by_width = [[parts[study, N, seed] for seed in seeds] for N in s["widths"]]
        for name in NAMES:
            values = np.array([[p[name] for p in column] for column in by_width])
            arrays[f"{study} {name}"] = values.swapaxes(0, 1)
        seconds = [np.mean([p["seconds"] for p in column]) for column in by_width]
        seconds = dict(zip(map(str, s["widths"]), np.round(seconds, 3)))
        about[study] = {"seeds": seeds, "epochs": s["measured"], "seconds": seconds}
        if s["subsets"] is not None:
            wide = by_width[s["widths"].index(s["subsets"]["width"])]
            for name in wide[0].keys() - {*NAMES, "seconds"}:
                arrays[f"{study} {name}"] = np.array([p[name] for p in wide])
    write_arrays(run.folder / "feature_learning.npz", arrays)
    return {"arrays": "feature_learning.npz: (seeds, widths, epochs, ...)", **about}


def centred_width(settings, first, index):
    "Participation ratios of one width: lists of shape (seeds, epochs, 2), with errors."

    def ratio(phi, center):
        "With its bias removed."
        q = participation_ratio(phi, center=center)
        return q.value, q.stderr

    ratios = {
        "centred": partial(ratio, center=True),
        "uncentred": partial(ratio, center=False),
        "plain": plain_ratio,  # uncentred, with its bias, as in the other file
    }
    seeds, found = range(first, first + settings["repetitions"]), {}
    networks, splits = drawn(settings["study"], settings, settings["widths"][index], seeds)
    images = np.stack([s.test_images for s in splits])
    for epoch in train(networks, splits, settings["epochs"][-1]):
        if epoch in settings["epochs"]:
            layers = networks.hidden(images)
            for name, function in ratios.items():
                found.setdefault(name, []).append([function(phi) for phi in layers])
    return {name: np.swapaxes(values, 0, 1) for name, values in found.items()}


def measure_centred(run):
    "Participation ratios with and without the mean that all images share."
    widths, task = run.settings["widths"], partial(centred_width, run.settings, run.seed)
    found = run.repeat("widths", task, len(widths))
    note = "shape (seeds, epochs, 2): participation ratio and its standard error"
    return {"arrays": note, "widths": dict(zip(map(str, widths), found))}


PARTS = {
    "feature_learning": Part(measure, SETTINGS, 0, ("torch",)),
    "centred": Part(measure_centred, CENTRED, 0, ("torch",)),
}

if __name__ == "__main__":
    sys.exit(main(__file__, __doc__, PARTS))
