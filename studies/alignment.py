"""Alignment of two systems: its errors, its tests, and the layers most like a cortex.

`alignment`: bias, spread, reported error and coverage of five estimates.

`verdict`: are two systems related? Rejections at the level .05 of the permutation test of
the numerator, of plain centred kernel alignment and of Student's test of the value, on
seven pairs of unrelated systems and on related ones; the values of plain, calibrated and
corrected alignment beside them; the largest of many pairs with and without the winner's
bias; and the corrected alignment at 20 units and a steep spectrum.

`layers`: which layer of a network is most like IT? The pictures that two macaques saw are
not among the recordings, so no network can look at them; the responses of V4 to them are.
The networks see these and learn to name the category of the object, from half of the
objects; they are compared with IT on the others. Needs the recordings: python
studies/recordings.py. The deviations are in layers.npz.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # many small products

import math
import re
import sys
from functools import partial

import numpy as np
import torch
from common import Part, main
from recordings import ANIMALS, halves, load

import spectral_moments as sm
from spectral_moments.processes import LinearPair, fourier_features
from spectral_moments.similarity import alignment_from_kernels

# --- errors -------------------------------------------------------------------------------


class RBFPair:
    "Random Fourier features of two widths on standard normal inputs."

    def __init__(self, dim, kernel_covs):
        self.dim, self.kernel_covs = dim, kernel_covs

    def sample(self, P, Q1, Q2, random_state=None):
        "Matrices (P, Q1) and (P, Q2)."
        rng, systems = np.random.default_rng(random_state), []
        x = rng.standard_normal((P, self.dim))
        for Q, covariance in zip((Q1, Q2), self.kernel_covs):
            w = rng.standard_normal((Q, self.dim)) / math.sqrt(covariance)
            systems.append(fourier_features(x, w, rng.uniform(0, 2 * np.pi, Q)))
        return systems

    def trace(self, s, t):
        "Trace of two centred operators, by the covariances of their kernels."
        product = 1 + 2 / s + 2 / t  # of both kernels at one pair of inputs
        means = (1 + 1 / s) * (1 + 1 / t) * (1 + 1 / (s + 1) + 1 / (t + 1))  # of rows
        independent, power = (1 + 2 / s) * (1 + 2 / t), -self.dim / 2
        return product**power - 2 * means**power + independent**power

    def alignment(self):
        "The alignment of the two operators."
        s, t = self.kernel_covs
        return self.trace(s, t) / math.sqrt(self.trace(s, s) * self.trace(t, t))


PAIRS = {
    "two linear systems": LinearPair(10, math.pi / 6),
    "RBF of two widths": RBFPair(2, (0.5, 2.0)),
}
SHAPES = (
    (20, 10, 10),
    (20, 60, 60),
    (60, 10, 20),
    (40, 25, 60),
    (100, 100, 100),
    (400, 600, 600),
)
ERRORS = {
    "n_matrices": 400,
    "processes": "LinearPair(10, pi / 6), RBFPair(2, (0.5, 2))",
    "shapes": [list(shape) for shape in SHAPES],
}
KEYS = ("plain", "rows", "ratio", "corrected", "jackknife")


def plain_alignment(phi, psi):
    "Centred kernel alignment of the sample: biased by few inputs and by few features."
    x, y = phi - phi.mean(axis=0), psi - psi.mean(axis=0)
    cross, one, two = (np.sum((a.T @ b) ** 2) for a, b in ((x, y), (x, x), (y, y)))
    return float(cross / math.sqrt(one * two))


def row_debiased_alignment(phi, psi):
    "Kernel alignment without the bias of few inputs; that of few features remains."
    return alignment_from_kernels(phi @ phi.T, psi @ psi.T, stderr=False).uncorrected


def jackknifed(found):
    "The ratio with its bias subtracted, wherever it points."
    parts = [x.deviations for x in found.replicates.values()]
    return found.uncorrected - sum((x.size - 1) * x.mean() for x in parts)


def draw(pair, shape, seed, index):
    "All estimates from one draw, and the reported error."
    phi, psi = pair.sample(*shape, random_state=np.random.default_rng([*seed, index]))
    found = sm.alignment(phi, psi)
    others = plain_alignment(phi, psi), row_debiased_alignment(phi, psi)
    return [*others, found.uncorrected, found.value, jackknifed(found), found.stderr]


def summary(run, name, pair):
    "One process: mean and spread of every estimate at every size."
    result = {"truth": pair.alignment(), "shapes": [list(shape) for shape in SHAPES]}
    result |= {key: {"mean": [], "se": [], "sd": []} for key in KEYS}
    result |= {"stderr": [], "coverage": [], "undefined": [], "unknown": []}
    for k, shape in enumerate(SHAPES):
        count = run.settings["n_matrices"] // (4 if math.prod(shape[:2]) > 1e5 else 1)
        one = partial(draw, pair, shape, [run.seed, list(PAIRS).index(name), k])
        drawn = run.repeat(f"{name} {shape}", one, max(count, 2))
        drawn = np.array(drawn, dtype=float)
        for values, key in zip(drawn.T, KEYS):
            known = values[np.isfinite(values)]
            sd = known.std(ddof=1)
            result[key]["mean"].append(known.mean())
            result[key]["sd"].append(sd)
            result[key]["se"].append(sd / math.sqrt(len(known)))
        value, error = drawn[:, 3], drawn[:, 5]
        known = np.isfinite(value)
        held = abs(value - pair.alignment())[known] < 1.96 * error[known]
        told = error[np.isfinite(error)]  # infinite: the data do not tell
        result["stderr"].append(math.sqrt(np.mean(told**2)))
        result["unknown"].append(int(np.isinf(error[known]).sum()))
        result["coverage"].append(held.mean())
        result["undefined"].append(int((~known).sum()))
    return result


def measure_errors(run):
    "Both processes."
    return {"pairs": {name: summary(run, name, pair) for name, pair in PAIRS.items()}}


# --- tests --------------------------------------------------------------------------------

TESTS = {
    "type_one": {"n_matrices": 800, "n_permutations": 199, "inputs": 30},
    "power": {"n_matrices": 300, "alignments": [0.02, 0.05, 0.1, 0.2], "inputs": 30},
    "best": {"n_matrices": 80, "layers": 6, "inputs": 60, "features": 20, "truth": 0.5},
    "remainder": {
        "n_matrices": 400,
        "dim": 10,
        "shape": [100, 20, 20],
        "exponents": [0, 1, 2],
    },
}
LEVEL = 0.05


# --- seven pairs of unrelated systems -----------------------------------------------------


def linear(rng, P):
    "Few dimensions, a flat spectrum."
    return *LinearPair(3, math.pi / 2, exponent=0).sample(P, 20, 30, rng), {}


def steep(rng, P):
    "A steep spectrum and a large mean."
    phi, psi = LinearPair(20, math.pi / 2, exponent=1.5).sample(P, 12, 40, rng)
    return phi + 5, psi + 5, {}


def fourier(rng, P):
    "Random Fourier features of different inputs."
    phi, psi = (sm.RBF(2).sample(P, Q, random_state=rng) for Q in (15, 25))
    return phi, psi, {}


def heavy(rng, P):
    "Responses with heavy tails over inputs."
    pair = LinearPair(4, math.pi / 2).sample(P, 20, 20, rng)
    return *(rng.standard_t(3, (P, 1)) * x for x in pair), {}


def counts(rng, P):
    "Sparse counts with unequal rates."
    rates = [rng.gamma(0.3, 2, (P, 1)) * rng.gamma(0.5, 1, Q) for Q in (20, 30)]
    return *(rng.poisson(rate).astype(float) for rate in rates), {}


def movies(rng, P):
    "Five alike frames of each movie; the movies are groups."
    n = max(P // 5, 6)
    phi, psi = LinearPair(5, math.pi / 2).sample(n, 20, 20, rng)
    near = [np.repeat(x, 5, axis=0) for x in (phi, psi)]
    near = [x + 0.2 * rng.standard_normal(x.shape) for x in near]
    return *near, {"groups": np.repeat(np.arange(n), 5)}


def noisy(rng, P):
    "Two trials, with noise that both systems share."
    shared = rng.standard_normal((2, P, 2))
    phi, psi = LinearPair(5, math.pi / 2).sample(P, 20, 20, rng)
    both = (x + shared @ rng.standard_normal((2, x.shape[1])) for x in (phi, psi))
    return *both, {"trials": True}


UNRELATED = {
    linear: 0,
    steep: 1,
    fourier: 2,
    heavy: 3,
    counts: 4,
    movies: 5,
    noisy: 7,
}  # seeds


def unit_gram(x):
    "Gram matrix of the centred responses, over its norm."
    x = x - x.mean(0)
    gram = x @ x.T
    return gram / np.linalg.norm(gram)


def calibrated(layers, area, count, rng):
    """The largest plain alignment, its calibrated score and its p-value.

    Transcribed from `calibrate_layers` of calibrated-similarity 0.1.1 with centred kernel
    alignment as the measure (one layer: `calibrate`).
    """
    grams, L = [unit_gram(x) for x in layers], unit_gram(area)
    largest = lambda L: max(np.vdot(K, L) for K in grams)
    orders = (rng.permutation(len(L)) for _ in range(count))
    given, null = largest(L), [largest(L[np.ix_(order, order)]) for order in orders]
    threshold = np.sort([given, *null])[math.ceil((1 - LEVEL) * (count + 1)) - 1]
    score = np.clip((given - threshold) / (1 - threshold), 0, 1)
    p_value = (1 + sum(x >= given for x in null)) / (1 + count)
    return given, score, p_value


def unrelated(process, settings, seed, index):
    "p-values of one draw: permutation test, Student's test, and that of plain alignment."
    rng = np.random.default_rng([*seed, index])
    phi, psi, options = process(rng, settings["inputs"])
    found = sm.alignment(phi, psi, **options)
    count = settings["n_permutations"]
    test = found.permutation_test(count, random_state=rng)
    phi, psi = (x.mean(0) if x.ndim == 3 else x for x in (phi, psi))
    return [test.p_value, found.p_value(), calibrated([phi], psi, count, rng)[2]]


def related(pair, settings, seed, index):
    "p-values of one draw: permutation test, plain alignment, Student's test; values."
    rng = np.random.default_rng([*seed, index])
    phi, psi = pair.sample(settings["inputs"], 15, 15, rng)
    found = sm.alignment(phi, psi)
    test = found.permutation_test(199, random_state=rng)
    plain, score, p_value = calibrated([phi], psi, 199, rng)
    return [test.p_value, p_value, found.p_value(), found.value, plain, score]


def rejections(p_values):
    "Share of p-values up to the level, and its error; unknown ones reject nothing."
    share = np.mean(np.array(p_values, dtype=float) <= LEVEL, axis=0)
    error = np.sqrt(np.maximum(share * (1 - share), 1e-4) / len(p_values))
    return {"share": share.tolist(), "error": error.tolist()}


def mean(x):
    "Mean, spread and error of the mean, of what is known."
    x = x[np.isfinite(x)]
    sd = float(x.std(ddof=1))
    return {"mean": float(x.mean()), "sd": sd, "se": sd / math.sqrt(len(x))}


def type_one(run):
    "Rejections of unrelated systems."
    settings, found = run.settings["type_one"], {}
    for process, k in UNRELATED.items():
        one = partial(unrelated, process, settings, [run.seed, 1, k])
        name = process.__name__
        found[name] = rejections(run.repeat(name, one, settings["n_matrices"]))
    return found


def power(run):
    "Rejections of related systems."
    settings, found = run.settings["power"], []
    for k, truth in enumerate(settings["alignments"]):
        pair = LinearPair(20, math.acos(math.sqrt(truth)))
        one = partial(related, pair, settings, [run.seed, 2, k])
        drawn = run.repeat(f"alignment {truth}", one, settings["n_matrices"])
        drawn = np.array(drawn, dtype=float)
        names = ("corrected", "plain", "calibrated")
        values = {name: mean(x) for name, x in zip(names, drawn[:, 3:].T)}
        found.append({"truth": truth} | rejections(drawn[:, :3]) | values)
    return found


def winner(settings, seed, index):
    "One draw of layers that are equally like an area: the largest, and without its bias."
    rng = np.random.default_rng([*seed, index])
    P, Q, truth = (settings[key] for key in ("inputs", "features", "truth"))
    features = lambda x: x @ rng.standard_normal((10, Q))
    seen = rng.standard_normal((P, 10))
    new = lambda: math.sqrt(1 - truth) * rng.standard_normal((P, 10))
    layers = {
        f"layer {k}": features(math.sqrt(truth) * seen + new())
        for k in range(settings["layers"])
    }
    area = features(seen)
    found = sm.alignments({**layers, "area": area})
    best = found.best("area", random_state=rng)
    largest = max(found[pair].value for pair in found.pairs("area"))
    plain, score, _ = calibrated([*layers.values()], area, 199, rng)
    return [largest, best.value, best.stderr, plain, score]


def best(run):
    "The largest of many alignments that are the same."
    settings = run.settings["best"]
    one = partial(winner, settings, [run.seed, 3])
    drawn = np.array(run.repeat("best", one, settings["n_matrices"]), dtype=float)
    names = ("largest", "best", "stderr", "plain", "calibrated")
    return {name: mean(x) for name, x in zip(names, drawn.T)}


def corrected(pair, settings, seed, index):
    "One draw: the corrected value, the plain ratio, the error."
    rng = np.random.default_rng([*seed, index])
    found = sm.alignment(*pair.sample(*settings["shape"], rng))
    return [found.value, found.uncorrected, found.stderr]


def remainder(run):
    "The corrected alignment at few units and steep spectra."
    settings, found = run.settings["remainder"], []
    for k, exponent in enumerate(settings["exponents"]):
        pair = LinearPair(settings["dim"], math.pi / 4, exponent=exponent)
        one = partial(corrected, pair, settings, [run.seed, 4, k])
        drawn = run.repeat(f"exponent {exponent}", one, settings["n_matrices"])
        drawn = np.array(drawn, dtype=float)
        drawn = drawn[np.isfinite(drawn).all(axis=1)]
        part = {"exponent": exponent, "truth": pair.alignment(), "draws": len(drawn)}
        names = ("corrected", "ratio", "stderr")
        part |= {name: x["mean"] for name, x in zip(names, map(mean, drawn.T))}
        own = mean(drawn[:, 0])
        found.append(part | {"sd": own["sd"], "se": own["se"]})
    return found


def measure_verdict(run):
    "All parts."
    parts = (type_one, power, best, remainder)
    return {part.__name__: part(run) for part in parts}


# --- layers -------------------------------------------------------------------------------

LAYERS = {
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
        pair = sm.alignments({layer: x, area: some}, **options)
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
        found = sm.alignments(systems, **options(systems, objects))
        values = {k: [found[k, area].value for area in AREAS] for k in systems}
        every.append({"right": right, "values": values})
    return every


def measure_layers(run):
    "All that the chapter shows."
    torch.set_num_threads(1)
    settings = run.settings
    systems, objects, right = make(settings, run.seed)
    found = sm.alignments(systems, **options(systems, objects))
    estimate, deviations = packed(found.estimate)
    small = {name: np.array(x, dtype=np.float32) for name, x in deviations.items()}
    np.savez_compressed(run.folder / "layers.npz", **small)
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


PARTS = {
    "alignment": Part(measure_errors, ERRORS, 2033),
    "verdict": Part(measure_verdict, TESTS, 2036),
    "layers": Part(measure_layers, LAYERS, 2036, ("torch",)),
}

if __name__ == "__main__":
    sys.exit(main(__file__, __doc__, PARTS))
