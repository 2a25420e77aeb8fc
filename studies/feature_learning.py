"""Moments of the hidden layer while networks of several widths learn, over several seeds.

Writes results/feature_learning.npz and .json, for the chapter on feature learning.
Every finished network is kept in studies/feature_learning_parts, so that an interrupted run
continues where it stopped, and a run for more seeds trains only those that are missing;
what the file of results holds is used again. The widest layers are kept too, and hundreds
of random subsets of their neurons are measured.
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
import warnings
import zipfile
from pathlib import Path

import numpy as np
from common import in_processes, make_parser, versions, write_json

from spectral_moments import all_cycles, estimate, increasing, naive
from spectral_moments.feature_learning import (
    Networks,
    draw_split,
    follow,
    load_fashion_mnist,
    member,
    record,
    train,
)
from spectral_moments.io.files import atomic_write
from spectral_moments.results import EstimateWarning
from spectral_moments.spectrum.feasible import participation_ratio

PARTS = Path(__file__).parent / "feature_learning_parts"
SEEDS = 12
TOGETHER = 4  # seeds trained together, as one stack of matrices
NOT_TRAINED = "widths", "subsets"  # settings that change no network
DAMAGED = OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile
STUDIES = {
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
    ),
}

NAMES = "naive", "ours", "powers", "size", "ratio", "loss", "accuracy"

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
    "Where one network's measurements are kept, or those of its subsets."
    return Path(parts) / f"{study}_seed{seed}_width{width}.npz"


def layer_path(parts, study, seed, epoch):
    "Where the activations of the widest layer are kept."
    return Path(parts) / f"{study}_seed{seed}_epoch{epoch}.npy"


def fingerprint(study, settings, width):
    "What must agree for a part to be used again."
    used = {key: value for key, value in settings.items() if key not in NOT_TRAINED}
    if width == "subsets":
        used["subsets"] = settings["subsets"]
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


def write_part(parts, study, settings, seed, width, part):
    "Keep a network's measurements."
    part = part | {"settings": fingerprint(study, settings, width)}
    with atomic_write(part_path(parts, study, seed, width)) as file:
        np.savez(file, **part)


def train_group(study, settings, seeds, width, parts, folder=None):
    "Train the networks of one width for a few seeds together, and keep what was measured."
    import torch

    torch.set_num_threads(1)
    images, labels = load(study, folder)
    sizes = settings["n_train"], settings["n_test"]
    splits = [draw_split(images, labels, *sizes, seed) for seed in seeds]
    networks = Networks(splits[0].train_images.shape[1], width, seeds=seeds)

    def keep(seed, epoch, phi):
        with atomic_write(layer_path(parts, study, seed, epoch)) as file:
            np.save(file, phi.astype(np.float32))  # what the network computes in

    start = time.process_time()
    found = follow(
        networks,
        splits,
        settings["epochs"],
        measured=settings["measured"],
        n_max=settings["n_max"],
        n_permutations=settings["n_permutations"],
        keep=keep if needs_layers(settings, width) else None,
    )
    seconds = (time.process_time() - start) / len(seeds)
    for s, seed in enumerate(seeds):
        part = {name: values[s] for name, values in found.items() if name != "epochs"}
        part |= {"epochs": found["epochs"], "seconds": seconds}
        write_part(parts, study, settings, seed, width, part)
    return study, f"width {width}", seeds, seconds


# --- subsets of the neurons ---------------------------------------------------------------


def needs_layers(settings, width):
    "Whether subsets of the neurons of this width are measured."
    return settings["subsets"] is not None and settings["subsets"]["width"] == width


def measure_layer(phi, settings, key, main):
    "Moments of random subsets of a layer's neurons, relative to the whole layer's size."
    asked, n_max, width = settings["subsets"], settings["n_max"], phi.shape[1]
    phi, rng = phi / np.sqrt(np.mean(phi**2)), np.random.default_rng([*key, 2])
    finite = lambda x, error: estimate(
        x, 4, population=(None, width), stderr=error, n_jobs=1, random_state=0
    )
    found = {"naive": [], "ours": [], "finite": [], "error": []}
    for number in range(asked["partitions"] if main else 1):
        for some in rng.permutation(width).reshape(-1, asked["neurons"]):
            x = phi[:, some]
            found["naive"].append(naive(x, n_max))
            options = dict(n_permutations=asked["n_permutations"], random_state=rng)
            found["ours"].append(increasing(x, n_max, n_jobs=1, **options))
            if main:
                result = finite(x, number < asked["with_error"])
                found["finite"].append(result.values)
                found["error"].append(result.stderr)
    if main:
        found |= {"all": all_cycles(phi, 4), "all finite": finite(phi, False).values}
    return {name: np.array(values) for name, values in found.items()}


def measure_subsets(study, settings, seeds, width, parts, folder=None):
    "Measure subsets of the layers that were kept for one seed."
    start, (seed,) = time.process_time(), seeds
    part, every = {}, settings["measured"]
    with warnings.catch_warnings():  # a subset of a trained layer has its doubts
        warnings.simplefilter("ignore", EstimateWarning)
        for epoch in every:
            phi = np.load(layer_path(parts, study, seed, epoch)).astype(float)
            main = epoch in settings["subsets"]["epochs"]
            found = measure_layer(phi, settings, (seed, epoch), main)
            part |= {f"{name} {epoch}": values for name, values in found.items()}
    seconds = time.process_time() - start
    write_part(parts, study, settings, seed, width, part | {"seconds": seconds})
    return study, width, seeds, seconds


def summary(values, truth):
    "Mean, its error, five quantiles and the relative error of subsets, (8, n_max)."
    spread = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    quantiles = np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95], axis=0)
    error = np.sqrt(np.mean((values / truth - 1) ** 2, axis=0))
    return np.stack([values.mean(axis=0), spread, *quantiles, error])


def summarised(part, settings, whole):
    "Arrays of one seed's subsets, for the file of results; `whole`: the layer's own part."
    every, main = settings["measured"], settings["subsets"]["epochs"]
    count = len(part[f"naive {every[0]}"]) // settings["subsets"]["partitions"]
    result = {
        f"part {name}": np.array([part[f"{name} {epoch}"][:count] for epoch in every])
        for name in ("naive", "ours")
    }
    powers, rows = np.arange(1, settings["n_max"] + 1), []
    for epoch in main:
        truth = whole["ours"][every.index(epoch)]
        own = part[f"naive {epoch}"][:, :1] ** powers
        each = [part[f"{name} {epoch}"] for name in ("naive", "ours")]
        rows.append([summary(x / y, truth) for x in each for y in (1, own)])
    result["subsets"] = np.array(rows)  # epochs, (naive, naive own, ours, ours own), 8, n
    result["subsets finite"] = np.array(
        [summary(part[f"finite {e}"], part[f"all finite {e}"]) for e in main]
    )
    number = settings["subsets"]["with_error"] * count
    result["finite with error"] = np.array(
        [[part[f"{name} {e}"][:number] for name in ("finite", "error")] for e in main]
    )
    result["whole ours"] = whole["ours"][[every.index(epoch) for epoch in main]]
    for name in ("all", "all finite"):
        result[f"whole {name}"] = np.array([part[f"{name} {e}"] for e in main])
    return result


# --- what is left to do, and what was found -----------------------------------------------


def adopt(studies, parts, output):
    "Make parts of networks that the file of results has and the folder of parts has not."
    try:
        about = json.loads((Path(output) / "feature_learning.json").read_text())
        with np.load(Path(output) / "feature_learning.npz") as arrays:
            stored = {name: arrays[name] for name in arrays.files}
    except DAMAGED:
        return
    for study, settings in studies.items():
        old = about.get(study, {"seeds": []})
        same = ("n_train", "n_test", "epochs", "n_max", "n_permutations")
        if any(old["settings"][key] != settings[key] for key in same if old["seeds"]):
            continue
        if not set(settings["measured"]) <= set(old.get("epochs", [])):
            continue
        at = [old["epochs"].index(epoch) for epoch in settings["measured"]]
        for s, seed in enumerate(old["seeds"]):
            for w, width in enumerate(old["settings"]["widths"]):
                if read_part(parts, study, settings, seed, width) is not None:
                    continue
                part = {name: stored[f"{study} {name}"][s, w][at] for name in NAMES}
                seconds = old["seconds"][str(width)]
                part |= {"epochs": np.array(settings["measured"]), "seconds": seconds}
                write_part(parts, study, settings, seed, width, part)


def is_missing(parts, study, settings, seed, width):
    "Whether a network, or its layers if they are needed, is not there."
    if read_part(parts, study, settings, seed, width) is None:
        return True
    done = read_part(parts, study, settings, seed, "subsets") is not None
    return (
        needs_layers(settings, width)
        and not done
        and not all(
            layer_path(parts, study, seed, epoch).exists() for epoch in settings["measured"]
        )
    )


def missing(studies, n_seeds, parts):
    "What is left to do: (function, study, settings, seeds, width), in groups of seeds."
    groups = []
    for start in range(0, n_seeds, TOGETHER):
        tasks, every = [], range(start, min(start + TOGETHER, n_seeds))
        for study, settings in studies.items():
            for width in sorted(settings["widths"], reverse=True):
                seeds = [s for s in every if is_missing(parts, study, settings, s, width)]
                if seeds:
                    tasks.append((train_group, study, settings, seeds, width))
            if settings["subsets"] is not None:
                tasks += [
                    (measure_subsets, study, settings, [seed], "subsets")
                    for seed in every
                    if read_part(parts, study, settings, seed, "subsets") is None
                ]
        groups.append(tasks)
    groups.sort(key=len, reverse=True)  # seeds that are there in part come last
    return [task for tasks in groups for task in tasks]


def run_task(function, *task):
    "One task, in a process of its own if there are several."
    return function(*task)


def stored_seeds(output):
    "Number of seeds of each study in the file of results."
    try:
        path = Path(output) / "feature_learning.npz"
        with open(path, "rb") as file, np.load(file) as arrays:
            names = [name for name in arrays.files if name.count(" ") == 1]
            return {name.split()[0]: len(arrays[name]) for name in names if "loss" in name}
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
        for name in NAMES:
            values = [[row[name] for row in rows] for rows in found.values()]
            arrays[f"{study} {name}"] = np.array(values, dtype=np.float32)
        seconds = [[row["seconds"] for row in rows] for rows in found.values()]
        seconds = np.mean(seconds, axis=0).round(3).tolist()
        about[study] = {
            "seeds": list(found),
            "epochs": settings["measured"],
            "seconds": dict(zip(map(str, settings["widths"]), seconds)),
            "settings": settings,
        }
        if settings["subsets"] is not None:
            each, width = {}, settings["subsets"]["width"]
            for seed in range(n_seeds):
                few = read_part(parts, study, settings, seed, "subsets")
                layer = read_part(parts, study, settings, seed, width)
                if few is not None and layer is not None:
                    each[seed] = summarised(few, settings, layer)
            about[study]["subset seeds"] = list(each)
            for name in next(iter(each.values()), {}):
                values = np.array([one[name] for one in each.values()], dtype=np.float32)
                arrays[f"{study} {name}"] = values
    about = {
        "command": f"python studies/feature_learning.py --seeds {n_seeds}",
        "arrays": "feature_learning.npz: shape (seeds, widths, epochs, ...); "
        "of subsets (subset seeds, their epochs, ...)",
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
    adopt(studies, parts, output)
    start = time.perf_counter()
    tasks = [(*task, parts, folder) for task in missing(studies, n_seeds, parts)]
    for study, what, seeds, seconds in in_processes(run_task, tasks, jobs):
        report(
            f"{(time.perf_counter() - start) / 60:6.1f} min: {study}, {what}, "
            f"seeds {seeds}, {seconds:.0f} core seconds each",
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
