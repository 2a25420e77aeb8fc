"""Every way in x all pairs of options, against the definition and literal deletions."""

import copy
import itertools
from functools import lru_cache

import numpy as np
import pytest
import torch
from conftest import cycle_mean

import spectral_moments as sm
from spectral_moments.engine import methods
from spectral_moments.engine.data import open_data
from spectral_moments.errors import Replicates, standard_error
from spectral_moments.estimation import estimate_words

#: option -> what it excludes (besides itself)
OPTIONS = {
    "center": (),
    "equal groups": ("groups",),
    "groups": (),
    "column groups": ("population", "all features"),
    "population": ("all features",),
    "all features": (),
    "poisson": ("two repeats", "three repeats"),
    "two repeats": ("three repeats",),
    "three repeats": (),
    "missing": (),
    "two systems": (),
}
PAIRS = [
    pair
    for pair in itertools.combinations(OPTIONS, 2)
    if pair[1] not in OPTIONS[pair[0]] and pair[0] not in OPTIONS[pair[1]]
]
SPLITS = {1: [((0,), (0,))], 2: [((0,), (1,))]}
SPLITS[3] = [((t,), tuple({0, 1, 2} - {t})) for t in range(3)]


class Case:
    "Data of some options, as the library takes them and as the definition does."

    def __init__(self, options, units=7, width=4):
        self.on = on = set(options)
        rng = np.random.default_rng(len(" ".join(options)))
        self.groups, sizes = None, np.resize([2, 1, 3, 1], units)
        if on & {"groups", "equal groups"}:  # scattered over the rows
            sizes = sizes if "groups" in on else 2
            self.groups = rng.permutation(np.repeat(np.arange(units), sizes))
        self.center, self.noisy = "center" in on, "poisson" in on
        P = units if self.groups is None else len(self.groups)
        T = 2 if "two repeats" in on else 3 if "three repeats" in on else 1
        names = "ab" if "two systems" in on else ("phi",)
        self.trials, self.columns, self.population = {}, {}, {}
        for s in names:
            grouped = "column groups" in on and s != "b"
            Q = width + grouped
            x = rng.normal(size=(P, 2)) @ rng.normal(size=(2, Q)) + 0.5
            x = x + 0.3 * rng.normal(size=(T, P, Q))
            if self.noisy:
                x = rng.poisson(np.exp(np.clip(x, -1, 1))).astype(float)
            if "missing" in on:
                x[0].flat[rng.choice(P * Q, 3, replace=False)] = np.nan
            self.trials[s] = x
            if grouped:
                self.columns[s] = np.insert(np.arange(width), 2, 0)
            if on & {"population", "all features"} and s != "b":
                self.population[s] = 2 * Q + 1 if "population" in on else Q
        self.words = [(s,) * n for s in names for n in (1, 2, 3)]
        if len(names) == 2:
            self.words += [tuple("ab"), tuple("aab")]
        self.words = [word for word in self.words if len(word) <= self.exact]

    @property
    def n_rows(self):
        return next(iter(self.trials.values())).shape[1]

    @property
    def exact(self):
        "The table of the design: highest order without random draws."
        grouped = self.groups is not None
        if "column groups" in self.on or {"missing", "center"} <= self.on:
            return 1 if grouped else 2
        if "two systems" in self.on and (grouped or "missing" in self.on):
            return 2
        return 3

    @property
    def known(self):
        "Options of the library."
        found = dict(center=self.center, groups=self.groups)
        found["trials"] = True if len(next(iter(self.trials.values()))) > 1 else None
        found |= {"column_groups": self.columns} if self.columns else {}
        found |= {"population": self.population} if self.population else {}
        if self.noisy:
            found["noise"] = dict.fromkeys(self.trials, "poisson")
        if "all features" in self.on:
            found["population"] = dict.fromkeys(self.population, "all")
        if len(self.trials) == 1:
            found = {k: x["phi"] if isinstance(x, dict) else x for k, x in found.items()}
        return found

    def without(self, name, unit):
        "The same data without a unit of the inputs or of the features of a system."
        less = copy.copy(self)
        if name == "inputs":
            rows = np.arange(self.n_rows) if self.groups is None else self.groups
            less.trials = {s: x[:, rows != unit] for s, x in self.trials.items()}
            less.groups = None if self.groups is None else rows[rows != unit]
        else:
            x, labels = self.trials[name], self.columns.get(name)
            labels = np.arange(x.shape[2]) if labels is None else labels
            less.trials = self.trials | {name: x[:, :, labels != unit]}
            if name in self.columns:
                less.columns = self.columns | {name: labels[labels != unit]}
        return less

    def values(self):
        "The definition of all words."
        splits = SPLITS[len(next(iter(self.trials.values())))]
        options = dict(rows=self.groups, columns=self.columns, center=self.center)
        noise = dict.fromkeys(self.trials, lambda x: x) if self.noisy else None
        options |= dict(population=self.population, variance=noise)
        halves = [
            {s: tuple(_mean(x, half) for half in split) for s, x in self.trials.items()}
            for split in splits
        ]
        found = [[cycle_mean(x, word, **options) for x in halves] for word in self.words]
        return np.mean(found, axis=1)


def _mean(trials, half):
    "The mean over the repeats of a half in which an entry was measured."
    some = trials[list(half)]
    seen = some == some
    return np.where(seen, some, 0).sum(axis=0) / np.where(seen.any(0), seen.sum(0), np.nan)


# --- ways in ------------------------------------------------------------------------------


def by_array(case, prepare=lambda x, s: x, **options):
    "Arrays in memory, or what `prepare` makes of them."
    arrays = {s: x if len(x) > 1 else x[0] for s, x in case.trials.items()}
    arrays = {s: prepare(x, s) for s, x in arrays.items()}
    if len(arrays) == 2:
        return estimate_words(open_data(arrays, **case.known), case.words, **options)
    return sm.estimate(arrays["phi"], len(case.words), **case.known, **options)


def by_stream(case):
    "Two streams of uneven batches with whole groups, merged."
    rows = case.groups
    known = {k: case.known[k] for k in ("center", "population") if k in case.known}
    trials, streams = case.trials["phi"], []
    units = np.arange(trials.shape[1]) if rows is None else rows
    for part in ([0, 3, 1], [6, 2, 5, 4]):
        stream = sm.Stream(trials.shape[2], len(case.words), **known)
        for batch in (part[:2], part[2:]):
            keep = np.isin(units, batch)
            groups = None if rows is None else rows[keep]
            stream.update(trials[:, keep], groups, trials=True)
        streams.append(stream)
    return streams[1].merge(streams[0]).estimate()


def answer(way, case, request):
    "The estimate by one way in."
    if way == "tall":
        patch = request.getfixturevalue("monkeypatch")
        patch.setattr(methods, "TALLEST", 4)
        patch.setattr(methods, "TALLEST_RATIO", 0)
    if way == "stream":
        return by_stream(case)
    if way == "tensor":
        return by_array(case, lambda x, s: torch.tensor(x))
    if way in ("file", "dask"):
        request.getfixturevalue("nothing_loaded")
    if way == "dask":
        array = pytest.importorskip("dask.array")
        return by_array(
            case, lambda x, s: array.from_array(x, chunks=(*x.shape[:-2], 3, 2))
        )
    if way == "file":
        folder = request.getfixturevalue("tmp_path")

        def stored(x, s):
            np.save(folder / f"{s}.npy", x)
            return np.load(folder / f"{s}.npy", mmap_mode="r")

        return by_array(case, stored)
    return by_array(case)


CASES = [(), *((option,) for option in OPTIONS), *PAIRS]
CASES += [("center", *pair) for pair in PAIRS if "center" not in pair]
WAYS = ("memory", "tall", "tensor", "file", "dask", "stream")
NOT_STREAMED = {"column groups", "poisson", "two systems"}
NO_PAIR_SUMS = {"column groups", "poisson", "missing"}


def routes(ways=WAYS, without=()):
    "Ways in x cases that are each something else."
    others = {"stream": NOT_STREAMED, "tall": NO_PAIR_SUMS}
    params = []
    for options, way in itertools.product(CASES, ways):  # plans are kept
        if not ({*without} | others.get(way, set())) & {*options}:
            params.append(pytest.param(options, way, id=f"{way}: {' x '.join(options)}"))
    return pytest.mark.parametrize(("options", "way"), params)


def without_each(case, value):
    "For each kind of axis: what `value` gives without each unit minus with all."
    rows = np.arange(case.n_rows) if case.groups is None else np.unique(case.groups)
    units = {"inputs": [("inputs", unit) for unit in rows]}
    for s, x in case.trials.items():
        kind = "features" if len(case.trials) == 1 else f"features of {s}"
        columns = np.unique(case.columns.get(s, np.arange(x.shape[2])))
        units[kind] = [(s, unit) for unit in columns]
    whole = np.asarray(value(case))
    return {
        kind: np.array([value(case.without(*unit)) for unit in of]).T - whole[:, None]
        for kind, of in units.items()
    }


@lru_cache(None)
def definition(options):
    "The value of each word, and deviations (words, units) where they are exact."
    case = Case(options)
    if case.center:
        return case.values(), {}
    changes = without_each(case, Case.values)
    finite = {f"features{x}" for x in ("", " of a")} if case.population else ()
    if case.population and "missing" in options:
        finite = set(changes)
    return case.values(), {kind: x for kind, x in changes.items() if kind not in finite}


@routes()
def test_values_and_errors_are_the_definition(options, way, request):
    found, (values, deviations) = answer(way, Case(options), request), definition(options)
    np.testing.assert_allclose(found.values, values, rtol=1e-9, atol=1e-12)
    assert not any("draws" in label for label in found.methods)
    assert set(deviations) <= set(found.replicates) and "draws" not in found.replicates
    for kind, changes in deviations.items():
        known = found.replicates[kind].deviations
        if way == "stream":  # units come in another order
            known, changes = (x[:, np.argsort(x[0])] for x in (known, changes))
        np.testing.assert_allclose(known, changes, rtol=1e-8, atol=1e-10)


def shown(kinds, sizes, members):
    "List the (kind, member) of all rows or columns that groups of some sizes may show."
    orders = [itertools.permutations(range(members), size) for size in sizes]
    every = itertools.product(*(itertools.product(range(kinds), order) for order in orders))
    return [np.array([(k, m) for k, order in some for m in order]).T for some in every]


def noisy(x, T, counts):
    "Return all repeats of a sample, (n, T, P, Q): counts, or signs added to the first row."
    grid = np.array([*itertools.product((0.0, 2.0), repeat=x.size if counts else T)])
    if counts:  # 0 and 2 have the first two moments of a Poisson law of rate one
        return x * grid.reshape(-1, 1, *x.shape)
    return x + (grid[:, :, None, None] - 1) * np.eye(len(x))[:, :1] * (T > 1)


@pytest.mark.parametrize("options", [x for x in CASES if len(x) < 3], ids=" x ".join)
def test_the_mean_over_all_samples_is_the_trace(options):
    "Two films of frames, two or three kinds of features of members, all equally likely."
    case, rng = Case(options), np.random.default_rng(0)
    tables, columns, operators, samples = [], [], [], []
    frames, kinds = 1 + (case.groups is not None), 2 + ("population" in options)
    units, T = 2 + 2 * case.center + ("missing" in options), len([*case.trials.values()][0])
    sizes = [frames] + [1 + ("equal groups" in options)] * (units - 1)
    case.groups = np.repeat(range(units), sizes) if frames > 1 else None
    case.columns = dict.fromkeys(case.columns, [0, 0, 1])
    case.population = dict.fromkeys(case.population, kinds)
    for s in case.trials:
        members = 1 + (s in case.columns)
        some = shown(kinds, [members, 1], members)
        columns.append([x for x in some if s not in case.population or x[0, 0] != x[0, 1]])
        x = rng.normal(size=(2, frames, kinds, members))
        tables.append(1.0 * (x > 0) if case.noisy else x)
        x = tables[-1].reshape(2 * frames, -1)
        x = x - case.center * x.mean(axis=0)
        operators.append(x @ x.T / x.size)
    for rows, *features in itertools.product(shown(2, sizes, frames), *columns):
        clean = [x[(*rows[:, :, None], *of)] for x, of in zip(tables, features)]
        samples.extend(noisy(np.hstack(clean), T, case.noisy))
    trials = np.moveaxis(samples, 0, -1)  # (T, P, columns of all systems, samples)
    trials[0, -1, 0] *= np.nan if "missing" in options else 1
    case.trials = dict(zip(case.trials, np.split(trials, [clean[0].shape[1]], axis=2)))
    case.words = [(s,) for s in case.trials] + [(min(case.trials), max(case.trials))]
    truth = [*map(np.trace, operators), np.trace(operators[0] @ operators[-1])]
    np.testing.assert_allclose(case.values().mean(axis=1), truth, rtol=1e-9)


def bare_values(case):
    "The values of the library, which are known to be right, without notes."
    arrays = {s: x if len(x) > 1 else x[0] for s, x in case.trials.items()}
    data, words = open_data(arrays, **case.known), tuple(case.words)
    values = methods.run_plan(data, words, deviations=False).values
    exponents = {s: 2 * matrix.scale_exponent for s, matrix in data.matrices.items()}
    return np.ldexp(values, [sum(exponents[s] for s in word) for word in words])


FIRST_ORDER = {"center", "population", "all features"}


@pytest.mark.parametrize(
    "options",
    [case for case in CASES if FIRST_ORDER & {*case} and len(case) < 3],
    ids=" x ".join,
)
def test_errors_of_many_units_are_near_those_of_deletions(options, request):
    "Centred means and finite populations: to first order in one over the units."
    case = Case(options, units=40, width=24)
    case.words = [word for word in case.words if len(word) < 3]
    ways = ["memory", "tall"] if not NO_PAIR_SUMS & {*options} else ["memory"]
    literal = without_each(case, bare_values)
    for found in [answer(way, case, request) for way in ways]:
        for kind, changes in literal.items():
            system, factor = kind.removeprefix("features of ").replace("features", "phi"), 1
            if system in case.population:
                share = case.trials[system].shape[2] / case.population[system]
                factor = np.sqrt(1 - share)
            error = factor * standard_error(Replicates(changes))
            known = found.error_by_source[kind]
            np.testing.assert_allclose(known, error, rtol=0.06, atol=1e-12)


@pytest.mark.parametrize(("units", "most"), [(10, 0.3), (40, 0.06)])
@pytest.mark.parametrize("seed", range(3))
def test_errors_of_few_groups(units, most, seed):
    "Also where one group is large."
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(units), [12, *rng.integers(1, 4, units - 1)])
    x = rng.normal(size=(units, 3))[groups] + 0.5 * rng.normal(size=(len(groups), 3))
    x = x @ rng.normal(size=(3, 20)) + 1
    values = lambda keep: sm.estimate(x[keep], 3, groups=groups[keep], stderr=False).values
    changes = [values(groups != g) for g in range(units)] - values(groups >= 0)
    literal = standard_error(Replicates(changes.T))
    found = sm.estimate(x, 3, groups=groups).error_by_source["inputs"]
    np.testing.assert_allclose(found, literal, rtol=most)
