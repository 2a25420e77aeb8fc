"""Moments of the hidden layer while networks of several widths learn, over several seeds.

Writes results/feature_learning.npz and .json, for the chapter on feature learning.
Every finished network is kept in studies/feature_learning_parts, so that an interrupted run
continues where it stopped, and a run for more seeds trains only those that are missing.
A file of results with more seeds is never replaced by one with fewer, except by --force.
How long a seed takes is in the json file (core seconds). The 29 seeds of the paper:

    python studies/feature_learning.py --seeds 29

With --centred it trains three seeds of three widths again, in the same way, and writes
results/feature_learning_centred.json: participation ratios without the images' mean.
"""

import json
import os
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
from common import in_processes, make_parser, versions, write_json

from spectral_moments.feature_learning import (
    Networks,
    draw_split,
    load_fashion_mnist,
    member,
    record,
    train,
    watch,
)
from spectral_moments.files import atomic_write
from spectral_moments.spectrum import participation_ratio

PARTS = Path(__file__).parent / "feature_learning_parts"
SEEDS = 4
TOGETHER = 3  # seeds trained together, as one stack of matrices
DAMAGED = OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile
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

CENTRED = dict(
    widths=[64, 256, 1024],
    seeds=[0, 1, 2],
    n_train=10000,
    n_test=1000,
    epochs=[0, 2, 10, 20, 60, 120],
)


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
    "A network's measurements, or None if there are no sound ones for these settings."
    try:
        path = part_path(parts, study, seed, width)
        with open(path, "rb") as file, np.load(file) as part:
            if str(part["settings"]) != fingerprint(study, settings, width):
                return None
            return {name: part[name] for name in part.files if name != "settings"}
    except DAMAGED:
        return None


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
        with atomic_write(part_path(parts, study, seed, width)) as file:
            np.savez(file, **part)
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


def stored_seeds(output):
    "Number of seeds of each study in the file of results."
    try:
        path = Path(output) / "feature_learning.npz"
        with open(path, "rb") as file, np.load(file) as arrays:
            return {name.split()[0]: len(arrays[name]) for name in arrays.files}
    except DAMAGED:
        return {}


def merge(studies, parts, output, n_seeds, force=False):
    "Write the results of every seed that has all its widths; False if they are too few."
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
        "versions": versions("torch"),
        **about,
    }
    output = Path(output)
    least = dict.fromkeys(studies, 1) | ({} if force else stored_seeds(output))
    if any(study not in about for study in least) or any(
        len(about[study]["seeds"]) < count for study, count in least.items()
    ):
        return False
    with atomic_write(output / "feature_learning.npz") as file:
        np.savez_compressed(file, **arrays)
    write_json(output / "feature_learning.json", about)
    return True


def centred_width(settings, width, study="fashion", folder=None):
    "Participation ratios of one width: lists of shape (seeds, epochs, 2), with errors."
    import torch

    torch.set_num_threads(1)
    images, labels = load(study, folder)
    seeds, sizes = settings["seeds"], (settings["n_train"], settings["n_test"])
    splits = [draw_split(images, labels, *sizes, seed) for seed in seeds]
    networks = Networks(splits[0].train_images.shape[1], width, seeds=seeds)
    start, found = time.perf_counter(), {"centred": [], "uncentred": []}
    for epoch in train(networks, splits, settings["epochs"][-1]):
        if epoch not in settings["epochs"]:
            continue
        layers = [
            record(member(networks, s), "hidden", split.test_images)
            for s, split in enumerate(splits)
        ]
        for name, values in found.items():
            center = name == "centred"
            values.append([participation_ratio(phi, center=center) for phi in layers])
    found = {name: np.swapaxes(rows, 0, 1).tolist() for name, rows in found.items()}
    return width, found | {"seconds": time.perf_counter() - start}


def centred(settings, output, *, study="fashion", jobs=1, folder=None, report=print):
    "Participation ratios without the mean that all images share, for a few widths."
    Path(output).mkdir(parents=True, exist_ok=True)
    widths, found = sorted(settings["widths"], reverse=True), {}
    tasks = [(settings, width, study, folder) for width in widths]
    for width, values in in_processes(centred_width, tasks, jobs):
        report(f"width {width}: {values['seconds']:.0f} s", flush=True)
        found[width] = values
    about = {
        "command": "python studies/feature_learning.py --centred",
        "arrays": "shape (seeds, epochs, 2): participation ratio and its standard error",
        "seed": "images: default_rng(seed), network: default_rng([seed, width])",
        "versions": versions("torch"),
        "settings": settings,
        "widths": {str(width): found[width] for width in sorted(found)},
    }
    write_json(Path(output) / "feature_learning_centred.json", about)


def check_seeds(n_seeds, output, force):
    "Refuse no seeds, and fewer than the results have."
    if n_seeds < 1:
        raise ValueError(f"the number of seeds is {n_seeds}; it must be at least 1")
    most = max(stored_seeds(output).values(), default=0)
    if n_seeds < most and not force:
        raise ValueError(
            f"{output} holds results of {most} seeds, and {n_seeds} would replace them; "
            "ask for as many, or for another folder, or use --force"
        )


def run(studies, n_seeds, *, parts, output, jobs=1, folder=None, force=False, report=print):
    "Train what is missing, one process for each of `jobs`, and write the results."
    check_seeds(n_seeds, output, force)
    for path in (parts, output):
        Path(path).mkdir(parents=True, exist_ok=True)
    (Path(parts) / ".gitignore").write_text("*\n")
    tasks, start = missing(studies, n_seeds, parts), time.perf_counter()
    tasks = [(*task, parts, folder) for task in tasks]
    for study, width, seeds, seconds in in_processes(train_group, tasks, jobs):
        report(
            f"{(time.perf_counter() - start) / 60:6.1f} min: {study}, width {width}, "
            f"seeds {seeds}, {seconds:.0f} s each",
            flush=True,
        )
        merge(studies, parts, output, n_seeds, force)
    if not merge(studies, parts, output, n_seeds, force):
        report(f"{output} has more seeds than were found, and stays as it is", flush=True)


def main(arguments=None):
    parser = make_parser(__doc__, jobs=os.cpu_count())
    parser.add_argument("--seeds", type=int, default=SEEDS, help="number of seeds")
    parser.add_argument("--data", help="folder of Fashion-MNIST")
    parser.add_argument("--parts", default=PARTS, help="folder of finished networks")
    parser.add_argument("--quick", action="store_true", help="the digits only")
    parser.add_argument(
        "--centred", action="store_true", help="centred participation ratios, no moments"
    )
    given = parser.parse_args(arguments)
    if given.centred:
        return centred(CENTRED, given.output, jobs=given.jobs, folder=given.data)
    studies = {"digits": STUDIES["digits"]} if given.quick else STUDIES
    options = dict(jobs=given.jobs, folder=given.data, force=given.force)
    try:
        check_seeds(given.seeds, given.output, given.force)
    except ValueError as error:
        parser.error(str(error))
    try:
        run(studies, given.seeds, parts=given.parts, output=given.output, **options)
    except KeyboardInterrupt:
        print("interrupted; the same command continues where it stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
