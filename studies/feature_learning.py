"""Moments of the hidden layer while networks of several widths learn, over several seeds.

Writes results/feature_learning.npz and .json, for the chapter on feature learning.
Every finished network is kept in studies/feature_learning_parts, so that an interrupted run
continues where it stopped, and a run for more seeds trains only those that are missing.
Takes about five minutes a seed on two free cores. The 29 seeds of the paper:

    python studies/feature_learning.py --seeds 29
"""

import argparse
import json
import os
import platform
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from spectral_moments.feature_learning import (
    Networks,
    draw_split,
    load_fashion_mnist,
    watch,
)

ROOT = Path(__file__).parents[1]
SEEDS = 4
TOGETHER = 3  # seeds trained together, as one stack of matrices
STUDIES = {
    "fashion": dict(
        widths=[32, 64, 128, 256, 512, 1024],
        observed={"1024": 128},
        n_train=10000,
        n_test=1000,
        epochs=120,
        every=2,
        n_max=7,
        n_permutations=4,
    ),
    "digits": dict(
        widths=[32, 64, 128, 256],
        observed={},
        n_train=1200,
        n_test=500,
        epochs=8,
        every=2,
        n_max=7,
        n_permutations=4,
    ),
}


def load(study, folder=None):
    "Images and labels of one study."
    if study == "fashion":
        return load_fashion_mnist(folder)
    from sklearn.datasets import load_digits

    digits = load_digits()
    return digits.images, digits.target


def part_path(parts, study, seed, width):
    "Where one network's measurements are kept."
    return Path(parts) / f"{study}_seed{seed}_width{width}.npz"


def fingerprint(study, settings, width):
    "What must agree for a part to be used again."
    used = {key: value for key, value in settings.items() if key != "widths"}
    used["observed"] = settings["observed"].get(str(width))
    return json.dumps([study, used], sort_keys=True)


def read_part(parts, study, settings, seed, width):
    "A network's measurements, or None if there are none for these settings."
    path = part_path(parts, study, seed, width)
    if not path.exists():
        return None
    with np.load(path) as part:
        if str(part["settings"]) != fingerprint(study, settings, width):
            return None
        return {name: part[name] for name in part.files if name != "settings"}


def write_atomically(path, save):
    "Let `save` write to a file beside `path`, then put it in its place."
    beside = path.with_name(f".{os.getpid()}-{path.name}")
    with open(beside, "wb") as file:
        save(file)
    os.replace(beside, path)


def train_group(study, settings, seeds, width, parts, folder=None):
    "Train the networks of one width for a few seeds together, and keep what was measured."
    import torch

    torch.set_num_threads(1)
    images, labels = load(study, folder)
    sizes = settings["n_train"], settings["n_test"]
    splits = [draw_split(images, labels, *sizes, seed) for seed in seeds]
    networks = Networks(splits[0].train_images.shape[1], width, seeds=seeds)
    start = time.perf_counter()
    found = watch(
        networks,
        splits,
        settings["epochs"],
        every=settings["every"],
        n_max=settings["n_max"],
        observed=settings["observed"].get(str(width)),
        n_permutations=settings["n_permutations"],
    )
    seconds = (time.perf_counter() - start) / len(seeds)
    for s, seed in enumerate(seeds):
        part = {name: values[s] for name, values in found.items() if name != "epochs"}
        part |= {"epochs": found["epochs"], "seconds": seconds}
        part["settings"] = fingerprint(study, settings, width)
        path = part_path(parts, study, seed, width)
        write_atomically(path, partial(np.savez, **part))
    return study, width, seeds, seconds


def missing(studies, n_seeds, parts):
    "What is left to train: (study, settings, seeds, width), widest first in each group."
    tasks = []
    for start in range(0, n_seeds, TOGETHER):
        for study, settings in studies.items():
            for width in sorted(settings["widths"], reverse=True):
                seeds = [
                    seed
                    for seed in range(start, min(start + TOGETHER, n_seeds))
                    if read_part(parts, study, settings, seed, width) is None
                ]
                if seeds:
                    tasks.append((study, settings, seeds, width))
    return tasks


def merge(studies, parts, output, n_seeds):
    "Write the results of every seed that has all its widths."
    import torch

    arrays, about = {}, {}
    for study, settings in studies.items():
        found = {}
        for seed in range(n_seeds):
            rows = [
                read_part(parts, study, settings, seed, width)
                for width in settings["widths"]
            ]
            if all(row is not None for row in rows):
                found[seed] = rows
        if not found:
            continue
        names = {name for row in next(iter(found.values())) for name in row}
        for name in sorted(names - {"epochs", "seconds"}):  # "in part" not for every width
            values = [[row[name] for row in rows if name in row] for rows in found.values()]
            arrays[f"{study} {name}"] = np.array(values, dtype=np.float32)
        seconds = [[row["seconds"] for row in rows] for rows in found.values()]
        seconds = np.mean(seconds, axis=0).round(3).tolist()
        about[study] = {
            "seeds": list(found),
            "epochs": next(iter(found.values()))[0]["epochs"].tolist(),
            "seconds": dict(zip(map(str, settings["widths"]), seconds)),
            "settings": settings,
        }
    about = {
        "command": f"python studies/feature_learning.py --seeds {n_seeds}",
        "arrays": "feature_learning.npz: shape (seeds, widths, epochs, ...)",
        "seed": "images: default_rng(seed), network: default_rng([seed, width])",
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "torch": torch.__version__,
        },
        **about,
    }
    output = Path(output)
    path = output / "feature_learning.npz"
    write_atomically(path, partial(np.savez_compressed, **arrays))
    text = json.dumps(about, indent=1) + "\n"
    write_atomically(
        output / "feature_learning.json", lambda file: file.write(text.encode())
    )


def run(studies, n_seeds, *, parts, output, jobs=1, folder=None, report=print):
    "Train what is missing, one process for each of `jobs`, and write the results."
    Path(parts).mkdir(parents=True, exist_ok=True)
    (Path(parts) / ".gitignore").write_text("*\n")
    tasks, start = missing(studies, n_seeds, parts), time.perf_counter()

    def done(result):
        study, width, seeds, seconds = result
        report(
            f"{(time.perf_counter() - start) / 60:6.1f} min: {study}, width {width}, "
            f"seeds {seeds}, {seconds:.0f} s each",
            flush=True,
        )
        merge(studies, parts, output, n_seeds)

    if jobs == 1:
        for task in tasks:
            done(train_group(*task, parts, folder))
    else:
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
            futures = [pool.submit(train_group, *task, parts, folder) for task in tasks]
            for future in as_completed(futures):
                done(future.result())
    merge(studies, parts, output, n_seeds)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=SEEDS, help="number of seeds")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--data", help="folder of Fashion-MNIST")
    parser.add_argument("--parts", default=ROOT / "studies" / "feature_learning_parts")
    parser.add_argument("--output", default=ROOT / "results")
    given = parser.parse_args(arguments)
    run(
        STUDIES,
        given.seeds,
        parts=given.parts,
        output=given.output,
        jobs=given.jobs,
        folder=given.data,
    )


if __name__ == "__main__":
    sys.exit(main())
