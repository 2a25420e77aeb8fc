"""Which layer of a network is most like IT? Two macaques, and networks that read their V4.

Writes results/layers.json and layers.npz, what the chapter on alignment shows where the
recordings are not. The pictures that the animals saw are not among the recordings, so no
network can look at them; the responses of V4 to them are. The networks see these and learn
to name the category of the object, from half of the objects; they are compared with IT on
the others. Needs the recordings: python studies/recordings.py. Takes three minutes.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # many small products

import re
import warnings

import numpy as np
import torch
from alignment import plain_alignment
from common import atomic_write
from recordings import ANIMALS, halves, load

from spectral_moments import EstimateWarning, alignments

SEED = 2036
SETTINGS = {
    "images": 16,  # of each object that was held out
    "width": 100,
    "epochs": 20,
    "networks": 3,
    "sites": [8, 16, 32],
    "repetitions": 60,  # random subsets of so many sites
    "n_permutations": 999,
}
AREAS = tuple(f"IT, {animal}" for animal in ANIMALS)
FRUITS = {"apple", "apricot", "peach", "pear", "raspberry", "strawberry", "walnut"}
FRUITS |= {"watermelon"}
THINGS = {"airplane", "car", "chair", "face", "ship", "table"}


def category(name):
    "What kind of thing an object is: car_astra is a car, face2 a face."
    kind = re.match("[a-z]+", name)[0]
    return kind if kind in THINGS else "fruit" if kind in FRUITS else "animal"


def recorded():
    "Repeats of V4 of both animals and of IT of each; the object in each image."
    v4, it = load("V4"), {f"IT, {animal}": load("IT", animal) for animal in ANIMALS}
    scale = v4.trials.mean(axis=0).std(axis=0)
    return v4.trials / scale, {name: x.trials for name, x in it.items()}, v4.objects


def network(width, seed, inputs):
    "Three hidden layers, and a name for each of eight categories."
    torch.manual_seed(seed)
    sizes, layers = (inputs, width, width, width), []
    for before, after in zip(sizes, sizes[1:]):
        layers += [torch.nn.Linear(before, after), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(width, 8))


def split(objects, rng):
    "Images whose objects are learned, four of each category; then the others."
    names = np.unique(objects)
    kinds = np.array([category(name) for name in names])
    learned = [rng.permutation(names[kinds == kind])[:4] for kind in np.unique(kinds)]
    known = np.isin(objects, np.concatenate(learned))
    return np.flatnonzero(known), np.flatnonzero(~known)


def trained(model, repeats, objects, images, epochs, seed):
    "The network after it has learned to name these images, seven random repeats at a time."
    torch.manual_seed(seed)
    kinds = [category(name) for name in objects]
    labels = torch.tensor(np.unique(kinds, return_inverse=True)[1])
    x, images = torch.tensor(repeats, dtype=torch.float32), torch.tensor(images)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-3)
    for _ in range(epochs):
        for batch in images[torch.randperm(len(images))].split(100):
            some = torch.randperm(len(x))[:7, None]
            named = model(x[some, batch].mean(0))
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(named, labels[batch]).backward()
            optimizer.step()
    return model


def layers(model, x):
    "Responses of the hidden layers and of the last, to (4, images, sites)."
    found, x = [], torch.tensor(x, dtype=torch.float32)
    with torch.no_grad():
        for layer in model:
            x = layer(x)
            if not isinstance(layer, torch.nn.Linear) or layer is model[-1]:
                found.append(x.numpy().astype(float))
    return found


def chosen(images, objects, count, rng):
    "So many random images of each object."
    own = (images[objects[images] == name] for name in np.unique(objects[images]))
    return np.sort(np.concatenate([rng.permutation(mine)[:count] for mine in own]))


def make(settings, seed, first=1):
    "Responses of all systems to images of new objects, their objects, and the share named."
    rng, (repeats, areas, objects) = np.random.default_rng(seed), recorded()
    known, new = split(objects, rng)
    shown = chosen(new, objects, settings["images"], rng)
    Q, width = repeats.shape[2], settings["width"]
    learned = network(width, first, Q)
    learned = trained(learned, repeats, objects, known, settings["epochs"], first)
    # all units of a layer were seen, so a unit may occur twice in a product: two halves of
    # the repeats are not enough then, and four parts are (see the chapter on trials)
    eye = halves(repeats[:, shown], parts=4)
    systems = {"V4": eye}
    for name, model in (("learned", learned), ("random", network(width, 100 + first, Q))):
        *hidden, last = layers(model, eye)
        systems |= {f"{name} {k}": x for k, x in enumerate(hidden, 1)}
        if name == "learned":
            kinds = np.unique([category(x) for x in objects])[last.mean(0).argmax(1)]
            right = np.mean([category(x) for x in objects[shown]] == kinds)
    systems |= {name: halves(x[:, shown], parts=4) for name, x in areas.items()}
    return systems, objects[shown], float(right)


def options(systems, objects):
    "Layers, and the sites that the network reads, as they are; sites of IT as a sample."
    sizes = {name: x.shape[2] for name, x in systems.items() if name not in AREAS}
    return dict(population=sizes, groups=objects, trials=True)


def by_sites(systems, settings, seed, index):
    "Plain and corrected alignment of a learned layer with some sites of Chabo, by number."
    rng, layer, area = np.random.default_rng([seed, index]), "learned 2", AREAS[0]
    x, sites, found = systems[layer], systems[area], []
    size = {layer: x.shape[2]}
    for count in (*settings["sites"], sites.shape[2]):
        some = sites[:, :, rng.permutation(sites.shape[2])[:count]]
        plain = plain_alignment(x.mean(0), some.mean(0))
        options = dict(population=size, stderr=False, trials=True)
        pair = alignments({layer: x, area: some}, **options)
        traces = [pair.estimate.values[k] for k in range(3)]
        found.append([plain, *traces])
    return found


def ratio(x):
    "Alignment of mean traces; x has plain, tr T1^2, tr T1 T2, tr T2^2 as its last axis."
    return x[..., 2] / np.sqrt(x[..., 1] * x[..., 3])


def mean_and_error(function, drawn):
    "A function of the mean over draws, and its error by the jackknife."
    N, total = len(drawn), drawn.sum(axis=0)
    without = function((total - drawn) / (N - 1))
    spread = without - function(total / N)
    return {"mean": function(total / N), "error": np.sqrt((N - 1) / N * (spread**2).sum(0))}


def packed(estimate):
    "An estimate as JSON holds it, and what leaving out each unit does to it."
    deviations = {name: x.deviations for name, x in estimate.replicates.items()}
    about = dict(estimate.settings), estimate.shapes, [*map(list, estimate.words)]
    keys = ("settings", "shapes", "words")
    return dict(zip(keys, about)) | {"values": estimate.values}, deviations


def verdicts(found, count):
    "Best layer and p-values for each area."
    every = {}
    for area in AREAS:
        best = found.best(area)
        test = found.permutation_test(count, of=area)
        every[area] = {
            "best": best.names[0],
            "value": best.value,
            "stderr": best.stderr,
            "halves": best.notes[-1],
            "p_values": {name: p for (name, _), p in test.p_values.items()},
            "p_corrected": {name: p for (name, _), p in test.p_corrected.items()},
        }
    return every


def other_networks(settings, seed):
    "Alignments of the layers of other networks with both areas."
    every = []
    for first in range(2, settings["networks"] + 1):
        systems, objects, right = make(settings, seed, first)
        systems = {k: x for k, x in systems.items() if k[:6] != "random" and k != "V4"}
        found = alignments(systems, **options(systems, objects))
        values = {k: [found[k, area].value for area in AREAS] for k in systems}
        every.append({"right": right, "values": values})
    return every


def measure(run):
    "All that the chapter shows."
    warnings.simplefilter("ignore", EstimateWarning)
    torch.set_num_threads(1)
    settings = run.settings
    systems, objects, right = make(settings, run.seed)
    found = alignments(systems, **options(systems, objects))
    estimate, deviations = packed(found.estimate)
    with atomic_write(run.folder / "layers.npz", "wb") as file:
        small = {name: np.array(x, dtype=np.float32) for name, x in deviations.items()}
        np.savez_compressed(file, **small)
    some = {name: x[:, ::2] for name, x in systems.items()}
    one = lambda index: by_sites(some, settings, run.seed, index)
    drawn = np.array(run.repeat("sites", one, settings["repetitions"]), dtype=float)
    means = [x.mean(0) for x in systems.values()]
    return {
        "right": right,
        "estimate": estimate,
        "plain": [[plain_alignment(x, y) for y in means] for x in means],
        "verdicts": run.once("verdicts", verdicts, found, settings["n_permutations"]),
        "sites": {
            "numbers": [*settings["sites"], systems[AREAS[0]].shape[2]],
            "plain": mean_and_error(lambda x: x[..., 0], drawn),
            "unbiased": mean_and_error(ratio, drawn),
        },
        "networks": run.once("networks", other_networks, settings, run.seed),
    }


QUICK = {"images": 4, "epochs": 1, "networks": 1, "sites": [8], "repetitions": 2}
QUICK |= {"n_permutations": 19}

if __name__ == "__main__":
    from common import main

    packages = ("torch",)
    raise SystemExit(
        main(__file__, __doc__, measure, SETTINGS, SEED, quick=QUICK, packages=packages)
    )
