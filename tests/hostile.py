"""Hostile calls: seeded data, files and surroundings, and what must hold whatever happens.

    python tests/hostile.py --calls 20000      # as `make hostile`; goes on where it stopped

Every call runs in a child process under a memory limit and an alarm. Afterwards nothing but
the answer may have changed, only `EstimateWarning` may have been given, an exception names
what was wrong and what to do, and every order agrees with exact arithmetic or is named in
the notes and not usable.
"""

import argparse
import contextlib
import copy
import faulthandler
import inspect
import io
import itertools
import json
import math
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
from conftest import rational

ROOT = Path(__file__).resolve().parents[1]
SHARES = {"data": 0.75, "files": 0.195, "arguments": 0.05, "surroundings": 0.005}
BATCH = {"data": 1000, "files": 1000, "arguments": 500, "surroundings": 20}  # of one child
MEMORY = 3 * 2**30  # bytes beyond what a child has after its imports
SECONDS = 60  # for one call
GOOD = ("right", "told", "refused")  # outcomes that are fine


class Failed(Exception):
    "Something that must hold does not."


# --- exact arithmetic ---------------------------------------------------------------------


def whole_numbers(*matrices):
    "Matrices of doubles as whole numbers, and the power of two they were multiplied by."
    found = [*map(rational, matrices)]
    unit = max(x.denominator for matrix in found for x in matrix.flat)
    whole = np.vectorize(lambda x: int(x * unit), otypes=[object])
    return [*map(whole, found)], unit


def block_sums(enter, leave, n_max, row_edges, edges):
    "Sums over cycles through increasing blocks of whole numbers."
    P, spans = len(enter), list(zip(edges, edges[1:]))
    R = [np.full((n_max, P, b - a), 0, dtype=object) for a, b in spans]
    for first, last in zip(row_edges, row_edges[1:]):
        C = np.full((n_max, P, last - first), 0, dtype=object)
        C[0, first:last] = np.identity(last - first, dtype=int)
        for r, (a, b) in zip(R, spans):
            entered = [x @ enter[first:last, a:b].T for x in r[:-1]]
            for k in range(n_max):  # with the state from before: see entered
                r[k] += C[k] @ leave[first:last, a:b]
                if k:
                    C[k] += entered[k - 1]
    closed = lambda k: sum((r[k] * enter[:, a:b]).sum() for r, (a, b) in zip(R, spans))
    return [*map(closed, range(n_max))]


def about_own_means(x, y, row_edges):
    "Blocks of whole numbers about their means: products as they should be, times a number."
    sizes = np.diff(row_edges).tolist()
    unit = math.lcm(*(k * (k - 1) for k in sizes))
    own = lambda z, a, k: k * z[a : a + k] - z[a : a + k].sum(0)
    parts = [(own(x, a, k) * (unit // (k * (k - 1))), own(y, a, k))
             for a, k in zip(row_edges.tolist(), sizes)]  # fmt: skip
    return *map(np.concatenate, zip(*parts)), unit


def exact_blocks(pair, n_max, row_edges, edges, center=False):
    "Means over cycles through increasing blocks, as fractions; None where there is none."

    def sums(enter, leave, center=False):
        (x, y), unit = whole_numbers(enter, leave)
        x, y, more = about_own_means(x, y, row_edges) if center else (x, y, 1)
        found = block_sums(x, y, n_max, row_edges, edges)
        return [Fraction(s, (unit**2 * more) ** n) for n, s in enumerate(found, 1)]

    counts = sums(*(pair.counts or [np.ones(pair.shape)] * 2))
    found = sums(pair.enter, pair.leave, center)
    return [s / c if c else None for s, c in zip(found, counts)]


def exact_cycles(pair, n_max, center):
    "Means over all cycles, as fractions."
    from spectral_moments.engine.graphs import Layout, graph_terms, word_patterns
    from spectral_moments.engine.planner import graph_sums

    layout, found = Layout(leaving=(("enter", "leave"),), center=center), []
    (enter, leave), unit = whole_numbers(pair.enter, pair.leave)
    if center:
        P = len(enter)
        enter, leave, unit = (*(P * x - x.sum(0) for x in (enter, leave)), unit * P)
    matrices, counted = dict(enter=enter, leave=leave), None
    if pair.counts is not None:
        both, unit_counted = whole_numbers(*pair.counts)
        counted = dict(zip(("enter", "leave"), both))
    for n in range(1, n_max + 1):
        total = Fraction(0)
        for coefficient, pattern in word_patterns(("enter",) * n, layout):
            graphs, weights = zip(*graph_terms(pattern, center))
            whole = lambda m, g=graphs: map(int, graph_sums(g, m).totals)
            sums = lambda m, w=weights, f=whole: sum(a * t for a, t in zip(w, f(m)))
            used = [1 + max(edge[side] for edge in pattern) for side in (0, 1)]
            number = math.prod(math.perm(s, u) for s, u in zip(enter.shape, used))
            if counted is not None:
                number = Fraction(sums(counted), unit_counted ** (2 * n))
            if not number:
                total = None
                break
            total += coefficient * Fraction(sums(matrices), unit ** (2 * n)) / number
        found.append(total)
    return found


def exact_powers(pair, n_max, center, kind):
    "The biased estimators, as fractions."
    data, counts = [*map(rational, pair[:2])], pair.counts and [*map(rational, pair.counts)]
    if center:
        ones = counts or [rational(np.ones(pair.shape))] * 2
        mean = lambda x, c: x.sum(0) / np.array([t or 1 for t in c.sum(0)], dtype=object)
        data = [x - c * mean(x, c) for x, c in zip(data, ones)]

    def sums(x, y):
        x, y = (y.T, x.T) if kind == "kv_col" else (x, y)
        K = y.dot(x.T) / Fraction(x.shape[1])
        step, found = (K if kind == "naive" else np.triu(K, 1)), [np.trace(K) / len(K)]
        total = step
        for n in range(2, n_max + 1):
            ways = len(K) ** n if kind == "naive" else math.comb(len(K), n)
            found.append((total * K.T).sum() / ways)
            total = total.dot(step)
        return found

    seen = sums(*counts) if counts else [Fraction(1)] * n_max
    return [s / c if c else None for s, c in zip(sums(*data), seen)]


def as_array(x):
    "A tensor or an array as an array."
    return np.asarray(x.detach() if hasattr(x, "detach") else x)


def exact_means(name, design, view, ask):
    "What a family should say of a view, as fractions; None: it has no transcription here."
    from spectral_moments.engine import blocks, sketch
    from spectral_moments.engine.sources import Pair

    (system,) = design.systems.values()
    pair = view.pair(system.source)
    counted = pair.counts is not None and ask.center
    if name == "sums" or name == "all_cycles" and (design.grouped or counted):
        return None
    counts = pair.counts and tuple(map(as_array, pair.counts))
    pair = Pair(as_array(pair.enter), as_array(pair.leave), counts)
    P, Q = pair.shape
    if name == "all_cycles":
        return exact_cycles(pair, ask.n_max, ask.center)
    if name in ("naive", "kv_row", "kv_col"):
        return exact_powers(pair, ask.n_max, ask.center, name)
    edges = [np.arange(P + 1), np.arange(Q + 1)]
    if name in ("blocks", "sketched"):
        base = blocks.BLOCKS // (2 if name == "sketched" else 1)
        few = 0 if ask.center else blocks.BLOCKS
        several = [max(few, 3 * ask.n_max), max(base, 3 * ask.n_max)]
        most = (P // 2 if ask.center else P, Q)  # a block about its own mean has two rows
        edges = [blocks.even_edges(s, min(*b)) for s, *b in zip((P, Q), most, several)]
    if name == "sketched" and 8 * ask.n_max * 128 * P > sketch.LANE_BYTES:
        return None
    given = view.row_edges, view.column_edges
    edges = [mine if e is None else e for mine, e in zip(edges, given)]
    return exact_blocks(pair, ask.n_max, *edges, ask.center)


class Watch:
    "Exact answers for every view that a call looks at, while the matrix is small."

    def __init__(self):
        from spectral_moments.engine.reduction import FAMILIES

        self.families, self.given, self.seen = FAMILIES, dict(FAMILIES), []

    def __enter__(self):
        for name, family in self.given.items():
            self.families[name] = family._replace(means=self._watched(name, family.means))
        return self

    def __exit__(self, *_):
        self.families.update(self.given)

    def _watched(self, name, means):
        def watched(design, views, ask):
            found = means(design, views, ask)
            (system, *others), view = design.systems.values(), next(iter(views.values()))
            source = system.source
            small = math.prod(source.shape[1:]) <= 110 and ask.n_max <= 6
            plain = not design.population and not others and system.noise is None
            if small and plain:
                exact = exact_means(name, design, view, ask)
                asked = {len(word) for word in ask.words}  # others come by another way
                told = enumerate(exact or (), 1)
                exact = exact and [x if n in asked else None for n, x in told]
                of = name, source.backend, source.exponent
                self.seen.append((*of, exact, source.gaps, ask.center))
            return found

        return watched

    def truth(self, name, n, place):
        "The mean over views of an order, in the units of the data, or None if unknown."
        seen = [s for s in self.seen if s[:2] == (name, place)]
        at = lambda s: s[3][n - 1] if s[3] and len(s[3]) >= n else None
        known, whole = [at(s) for s in seen], [Fraction(0)]
        if len({s[4] for s in seen}) > 1:  # only what gaps change was drawn
            drawn, beside = ([at(s) for s in seen if s[4:] == (k, False)] for k in (1, 0))
            known = [x if None in (x, y) else x - y for x, y in zip(drawn, beside)]
            whole = [at(s) for s in seen if s[4:] == (False, True)]
        known, whole = ([Fraction(x) for x in y if x is not None] for y in (known, whole))
        if not known or not whole:
            return None
        mean = sum(known) / len(known) + sum(whole) / len(whole)
        return mean * Fraction(4) ** (n * max((s[2] for s in seen), key=abs))


# --- what must hold -----------------------------------------------------------------------

ARGUMENTS = (
    r"phi|n_max|method|center|stderr|progress|trials|random_state|n_permutations|n_jobs|"
    r"population|weights|groups|rows|stream|n_features|shuffle|chunk|data|moments|other"
)
REMEDIES = (
    r"must|pass|use|lower|drop|remove|repair|convert|load|give|need|take|make|reshape|"
    r"find|measure|update|divide|reduce|stack|mark|ask|leave|say"
)


def world():
    "What a call may not change."
    random_state = np.random.get_state()[1].tobytes()  # noqa: NPY002
    hooks = sys.excepthook, sys.unraisablehook, threading.excepthook, sys.displayhook
    return (
        list(warnings.filters), np.geterr(), random_state, hooks, os.getcwd(),
        signal.getsignal(signal.SIGINT), sorted(os.listdir(".")), random.getstate(),
    )  # fmt: skip


def frozen(x):
    "Something to compare an input with, before and after."
    if kind(x) == "dask":
        return None
    if isinstance(x, np.ma.MaskedArray):
        return x.tobytes(), np.ma.getmaskarray(x).tobytes()
    if hasattr(x, "detach"):
        x = x.detach().to_dense()
    return repr(x) if isinstance(x, (list, tuple)) else np.asarray(x).tobytes()


def kind(x):
    return type(x).__module__.partition(".")[0]


def check_error(error):
    "An exception must be of the right type and say what was wrong and what to do."
    if not isinstance(error, (ValueError, TypeError)):
        raise Failed(f"exception {type(error).__name__}: {error}") from error
    text = str(error)
    if not (re.search(ARGUMENTS, text) and re.search(REMEDIES, text) and len(text) < 400):
        raise Failed(f"message does not help: {text}") from error


def check_values(values, methods, usable, notes, watch, place, typical):
    "Every order agrees with exact arithmetic, or is named and not usable."
    outcome = "right"
    for n, (value, method) in enumerate(zip(values, methods), 1):
        named = any(re.search(rf"m\({n}\)|n = (\d+, )*{n}\b", x) for x in notes)
        if math.isnan(value):
            if not named or usable[n - 1]:
                raise Failed(f"m({n}) is NaN without a word")
            outcome = "told"
            continue
        truth = watch.truth(method, n, place)
        if truth is None:
            continue
        rough = Fraction(1e-11) * Fraction(typical) ** n if typical < math.inf else 0
        near = abs(Fraction(value) - truth) <= Fraction(2e-3) * abs(truth) + rough
        if not near and (usable[n - 1] or not named):
            with contextlib.suppress(OverflowError):  # else it is beyond doubles
                truth = float(truth)
            raise Failed(f"m({n}) = {value} by {method}, exactly {truth}")
        outcome = outcome if near else "told"
    return outcome


# --- data ---------------------------------------------------------------------------------

SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
LARGER = ((17, 31), (33, 32), (31, 33), (64, 17), (2, 600), (600, 2), (40, 25), (41, 26),
          (130, 3), (9, 200), (65, 16))  # fmt: skip


def draw_matrix(rng):
    "Numbers of some kind, of some shape."
    small = rng.random() < 0.8
    shape = tuple(rng.choice(SIZES, 2)) if small else LARGER[rng.integers(len(LARGER))]
    T = int(rng.choice([1, 1, 1, 2, 3, 5]))
    shape = (T, *map(int, shape))
    low = lambda: rng.standard_normal((shape[1], 2)) @ rng.standard_normal((2, shape[2]))
    laws = [
        lambda: 1.0 * rng.integers(-4, 5, shape),
        lambda: np.full(shape, float(rng.integers(-3, 4))),
        lambda: 1.0 * (rng.random(shape) < 0.2),
        lambda: 1.0 * rng.poisson(0.5, shape),
        *[lambda: low() + 0.3 * rng.standard_normal(shape)] * 2,
        *[lambda: low() + 2.0 * rng.standard_normal(shape)] * 2,
    ]
    phi = laws[rng.integers(8)]()
    if rng.random() < 0.2:
        phi = phi + 10.0 ** rng.integers(-3, 7)
    return phi


def spoil(phi, rng):
    "Outliers, ranges, gaps."
    if rng.random() < 0.3:
        for _ in range(rng.integers(1, 4)):
            at = tuple(rng.integers(phi.shape))
            phi[at] = rng.choice([-1, 1]) * 10.0 ** rng.integers(2, 20)
    if rng.random() < 0.1:
        phi *= 10.0 ** rng.integers(-20, 20, (1, phi.shape[1], 1))
    if rng.random() < 0.1:
        phi *= 10.0 ** rng.integers(-20, 20, (1, 1, phi.shape[2]))
    if rng.random() < 0.15:
        phi *= 10.0 ** rng.choice([-300, -150, -60, -13, 13, 60, 150, 300])
    if rng.random() < 0.05:
        phi[tuple(rng.integers(phi.shape))] = 10.0 ** rng.choice([-300, 300])
    if rng.random() < 0.3:
        phi[rng.random(phi.shape) < rng.choice([0.02, 0.1, 0.5, 0.97])] = np.nan
    if rng.random() < 0.05:
        phi[:, rng.integers(phi.shape[1])] = np.nan
    if rng.random() < 0.05:
        phi[:, :, rng.integers(phi.shape[2])] = np.nan
    if rng.random() < 0.03:
        phi[rng.integers(len(phi))] = np.nan
    if rng.random() < 0.02:
        phi[tuple(rng.integers(phi.shape))] = np.inf
    if rng.random() < 0.05 and phi.shape[1] > 1:
        phi[:, 0] = phi[:, -1]


def contain(phi, rng, folder):
    "The same numbers in some container."
    import pandas
    import torch

    path = folder / "phi.npy"
    phi = phi if len(phi) > 1 or rng.random() < 0.1 else phi[0]
    forms = [
        lambda: phi.tolist(),
        lambda: np.asfortranarray(phi),
        lambda: phi.astype(np.float32),
        lambda: phi if np.isnan(phi).any() else phi.clip(-100, 100).astype(np.int8),
        lambda: np.ma.masked_array(np.nan_to_num(phi), np.isnan(phi)),
        lambda: [np.ma.masked_invalid(part) for part in phi],
        lambda: torch.from_numpy(phi.copy()).requires_grad_(bool(rng.integers(2))),
        lambda: pandas.DataFrame(phi) if phi.ndim == 2 else phi,
        lambda: contain_dask(phi, rng),
        lambda: np.save(path, phi) or np.load(path, mmap_mode="r"),
        lambda: phi.setflags(write=False) or phi,
        lambda: phi[..., ::-1],
        lambda: odd[rng.integers(len(odd))] if rng.random() < 0.3 else phi,
        lambda: phi,
    ]
    with np.errstate(all="ignore"):
        odd = ("phi.npy", None, 3.0, phi.astype(complex), phi.astype(str), phi[:0])
        return forms[rng.integers(14)]()


def contain_dask(phi, rng):
    "A Dask array, sometimes with chunks that are not what was announced."
    import dask.array as da

    chunks = tuple(int(rng.integers(1, size + 1)) for size in phi.shape)
    made = da.from_array(phi, chunks=chunks)
    if rng.random() < 0.2:
        return made.map_blocks(lambda x: x[..., :-1], dtype=float, chunks=made.chunks)
    if rng.random() < 0.2:
        return da.ma.masked_invalid(made)
    if rng.random() < 0.1:
        return made[made[..., 0] > 0] if made.ndim == 2 else made
    return made


WRONG = (
    dict(n_max=0), dict(n_max=2.5), dict(n_max=None), dict(n_max=99), dict(n_max="3"),
    dict(method="best"), dict(method=None), dict(center="no"), dict(stderr=1),
    dict(progress="x"), dict(random_state=-1), dict(random_state="x"), dict(n_jobs=0),
    dict(n_permutations=-1), dict(n_permutations=1.5), dict(population=(1, 1)),
    dict(population="all"), dict(row_weights=[-1.0]), dict(groups=[1, 2]), dict(trials=0),
    dict(column_weights="x"), dict(column_groups=3), dict(population=(None, 2.5)),
)  # fmt: skip


#: options that a call sometimes has: how often, and what
RARELY = {
    "n_permutations": (0.3, lambda rng, P, Q: int(rng.integers(0, 4))),
    "row_weights": (0.1, lambda rng, P, Q: rng.choice([0.0, 1.0, 2.0, 1e-3], P)),
    "column_weights": (0.1, lambda rng, P, Q: rng.random(Q)),
    "groups": (0.1, lambda rng, P, Q: rng.integers(0, max(P - 1, 1), P)),
    "column_groups": (0.05, lambda rng, P, Q: rng.integers(0, Q, Q)),
    "population": (0.05, lambda rng, P, Q: (P + int(rng.integers(3)), None)),
}


def draw_options(shape, rng):
    "Options of `estimate`."
    methods = ["auto"] * 4 + ["all_cycles", "increasing", "blocks", "sketched", "naive"]
    methods += ["kv_row", "kv_col"]
    T, P, Q = shape
    options = dict(
        n_max=int(min(rng.integers(1, 6), P, Q)),
        method=str(rng.choice(methods)),
        center=bool(rng.random() < 0.3),
        random_state=int(rng.integers(100)),
        n_jobs=1,
        stderr=bool(rng.random() < 0.85),
    )
    for name, (chance, draw) in RARELY.items():
        if rng.random() < chance:
            options[name] = draw(rng, P, Q)
    if rng.random() < 0.1:
        options.update(WRONG[rng.integers(len(WRONG))])
    return options


def data_call(seed, folder):
    "One call on hostile data; the outcome, or `Failed`."
    import spectral_moments as sm
    from spectral_moments.engine import arrays

    arrays.LOADED = 2**26 * (seed % 2)  # every other small array is not loaded
    rng = np.random.default_rng([1, seed])
    phi = draw_matrix(rng)
    with np.errstate(all="ignore"):
        spoil(phi, rng)
        squares = np.nanmean(np.where(np.isinf(phi), np.nan, phi) ** 2, axis=(0, 2))
        typical = float(np.nan_to_num(np.nanmedian(squares))) if phi.size else 0.0
    given, shape = contain(phi, rng, folder), phi.shape
    options, which = draw_options(shape, rng), rng.random()
    if kind(given) == "dask" and isinstance(options["n_max"], int):
        options["n_max"] = min(options["n_max"], 2)  # many tasks
    if which < 0.6:
        call = lambda: sm.estimate(given, **options)
    elif which < 0.8:
        call = value_call(given, options, rng)
    elif which < 0.97:
        call = stream_call(given, shape, options, rng)
    else:
        call = lambda: sm.participation_ratio(given, center=options["center"])
    if rng.random() < 0.02:
        given = [given]
    return guarded(call, given, kind(given), typical)


def value_call(phi, options, rng):
    "A call of one of the functions that give an array."
    import spectral_moments as sm

    n_max = options["n_max"]
    return [
        lambda: sm.naive(phi, n_max),
        lambda: sm.kong_valiant(phi, n_max, sampled=str(rng.choice(["rows", "columns"]))),
        lambda: sm.increasing(phi, n_max, n_jobs=1),
        lambda: sm.all_cycles(phi, n_max, center=options["center"]),
        lambda: sm.sketched(phi, n_max, random_state=1),
    ][rng.integers(5)]


def stream_call(phi, shape, options, rng):
    "Rows in batches, with a merge or a copy on the way."
    from spectral_moments import Stream

    cut, _ = int(rng.integers(0, shape[1] + 1)), bool(rng.integers(2))
    way, n_max = rng.integers(3), options["n_max"]

    def call():
        make = dict(center=options["center"], random_state=1)
        one = Stream(shape[2], n_max, **make)
        if kind(phi) == "dask" or isinstance(phi, (list, str, float, type(None))):
            return one.update(phi).estimate()
        rows = lambda part: phi[part] if np.ndim(phi) == 2 else phi[:, part]
        if kind(phi) == "pandas":
            rows = lambda part: phi.iloc[part]
        first, rest = rows(slice(None, cut)), rows(slice(cut, None))
        if way == 0:
            return one.update(first).update(rest).estimate()
        if way == 1:
            return copy.copy(one.update(first)).update(rest).estimate()
        two = Stream(shape[2], n_max, **make)
        return one.update(first).merge(two.update(rest)).estimate()

    def truth(n):
        "All cycles of one matrix do not depend on the order of its rows and columns."
        plain = type(phi) is np.ndarray and phi.ndim == 2 and phi.size <= 110
        if not plain or options["center"] or n > 3:
            return None
        from spectral_moments.engine.sources import Pair

        seen = 1.0 * ~np.isnan(phi)
        x = np.nan_to_num(phi.astype(float), posinf=np.inf, neginf=-np.inf)
        return exact_cycles(Pair(x, x, (seen, seen)), n, False)[n - 1]

    call.truth = truth
    return call


def guarded(call, given, place, typical):
    "Run a call and check everything that must hold."
    before, inside = world(), frozen(given) if given is not None else None
    error = result = None
    with Watch() as watch, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        filters = list(warnings.filters)
        try:
            result = call()
        except Exception as problem:
            error = problem
        if list(warnings.filters) != filters:
            raise Failed("warning filters were changed")
    if world() != before:
        raise Failed("the surroundings were changed")
    if given is not None and frozen(given) != inside:
        raise Failed("the input was changed")
    check_foreign(caught)
    if error is not None:
        check_error(error)
        return "refused"
    if hasattr(call, "truth"):  # what was watched is a sample for the errors
        watch.truth = lambda method, n, place: call.truth(n)
    return check_result(result, [str(w.message) for w in caught], watch, place, typical)


def check_result(result, told, watch, place, typical):
    "An answer of any kind."
    import spectral_moments as sm

    place = place if place in ("dask", "torch") else "numpy"
    if isinstance(result, sm.Quantity):
        str(result), result.to_dict()
        return "right"
    if isinstance(result, sm.Estimate):
        if told:
            raise Failed("a doubt is said twice: as a note and as a warning")
        str(result), result.to_dict(), result._repr_html_()
        parts = result.values, result.methods, result.usable, result.notes
        return check_values(*parts, watch, place, typical)
    values, names = as_array(result), {s[0] for s in watch.seen}
    methods = [names.pop() if len(names) == 1 else ""] * len(values)
    usable = [not told] * len(values)
    return check_values(values, methods, usable, told, watch, place, typical)


# --- files --------------------------------------------------------------------------------


def sound_files(folder):
    "A small file of every format, by name."
    import h5py
    from scipy.io import savemat
    from scipy.sparse import csc_array

    from spectral_moments import Stream

    phi = np.random.default_rng(0).standard_normal((12, 9)).round(3)
    np.save(folder / "a.npy", phi)
    np.save(folder / "b.npy", np.asfortranarray(phi.astype("f4")))
    np.savez(folder / "a.npz", phi=phi)
    np.savez_compressed(folder / "b.npz", phi=phi)
    with contextlib.suppress(ImportError):
        from safetensors.numpy import save_file

        save_file({"phi": phi}, folder / "a.safetensors")
    savemat(folder / "a.mat", {"phi": phi})
    savemat(folder / "b.mat", {"phi": csc_array(phi * (phi > 1))}, do_compression=True)
    savemat(folder / "c.mat", {"phi": csc_array(phi * (phi > 1))})
    with h5py.File(folder / "a.h5", "w") as file:
        file["phi"] = phi
    np.savetxt(folder / "a.csv", phi, delimiter=",")
    np.savetxt(folder / "a.tsv", phi, delimiter="\t", header="\t".join("abcdefghi"))
    Stream(9, 3, random_state=0).update(phi).save(folder / "stream.npz")
    gaps = np.where(phi > 1.5, np.nan, phi)
    Stream(9, 2, random_state=0, center=True).update(gaps).save(folder / "gaps.npz")
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def damaged(content, chance):
    "A copy with bytes changed, removed, repeated or cut, or a number replaced."
    data = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 5))):
        at, action = chance.randrange(len(data)), chance.randrange(10)
        if action == 0:
            del data[at : at + chance.randrange(1, 9)]
        elif action == 1:
            data[at:at] = data[at : at + 8]
        elif action == 2:
            del data[at + 1 :]
        elif action == 3:
            size = chance.choice((2, 4, 8))
            value = chance.choice((0, 1, 2**15, 2**31 - 1, 2**31, 2**63 - 1, -1))
            data[at : at + size] = (value % 2 ** (8 * size)).to_bytes(size, "little")
        elif action == 4:
            digits = [m.span() for m in re.finditer(rb"\d+", bytes(data))]
            if digits:
                a, b = chance.choice(digits)
                data[a:b] = chance.choice((b"0", b"-1", b"99999999999", b"1e400", b"nan"))
        else:
            data[at] = chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))
        if not data:
            break
    return bytes(data)


def files_call(seed, folder):
    "One call that reads or writes a file."
    chance = random.Random(seed)
    sound = files_call.sound
    name = chance.choice(sorted(sound))
    path = folder / name
    if chance.random() < 0.15:
        return write_call(path, chance, sound[name])
    path.write_bytes(damaged(sound[name], chance))
    try:
        if name in ("stream.npz", "gaps.npz"):
            return load_call(path)
        return command_call(path) if chance.random() < 0.3 else read_call(path)
    finally:
        path.unlink()


@contextlib.contextmanager
def untouched(path):
    "Assert that a file is left as it is, and that nobody else warns."
    content = path.read_bytes()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    check_foreign(caught)
    if path.read_bytes() != content:
        raise Failed("the file was changed")


def check_foreign(caught):
    foreign = [w for w in caught if w.category.__name__ != "EstimateWarning"]
    if foreign:
        raise Failed(f"{foreign[0].category.__name__}: {foreign[0].message}")


def load_call(path):
    "A damaged stream is refused, or goes on as a stream does."
    from spectral_moments import Stream

    with untouched(path):
        try:
            stream = Stream.load(path)
        except ValueError as error:
            if str(path) in str(error) and "previous one" in str(error):
                return "refused"
            raise Failed(f"message does not help: {error}") from error
        with contextlib.suppress(ValueError):  # other trials or groups than it had
            stream.update(np.ones((9, stream.n_features))).estimate()
    return "right"


def read_call(path):
    "A damaged file gives an array, or one line that names it."
    from spectral_moments.io.files import load_matrix

    with untouched(path):
        try:
            array = np.asarray(load_matrix(path))
        except (ValueError, MemoryError) as error:
            if str(error).startswith(f"{path}: ") and "\n" not in str(error):
                return "refused"
            raise Failed(f"message does not help: {error}") from error
    with np.errstate(all="ignore"):  # every entry can be read
        array.sum() if array.dtype.kind in "buifc" else None
    return "right"


def command_call(path):
    "The same of the command: an answer, or one line that names the file."
    from spectral_moments.io.command_line import main

    content, out, err = path.read_bytes(), io.StringIO(), io.StringIO()
    streams = contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)
    with streams[0], streams[1], warnings.catch_warnings():
        code = main(["estimate", str(path), "--n-max", "2", "--json"])
    if path.read_bytes() != content:
        raise Failed("the file was changed")
    if code == 0:
        return "right" if json.loads(out.getvalue()) else "failed"
    line = err.getvalue()
    if code != 2 or line.count("\n") != 1 or str(path) not in line:
        raise Failed(f"exit code {code}: {line}")
    return "refused"


def write_call(path, chance, content):
    "A writer that is interrupted, without room, or not alone leaves a complete file."
    from spectral_moments import Stream
    from spectral_moments.io.files import atomic_write

    old = chance.choice((None, b"before"))
    if old is not None:
        path.write_bytes(old)
    stream = Stream(9, 3, random_state=0).update(np.ones((20, 9)))
    way, cut = chance.randrange(4), chance.randrange(len(content))

    def write():
        with atomic_write(path) as file:
            file.write(content if way != 1 else content[:cut])
            if way == 1:  # Ctrl-C after some bytes
                raise KeyboardInterrupt

    save = (lambda: stream.save(path)) if way != 1 and chance.random() < 0.5 else write
    try:
        with contextlib.suppress(KeyboardInterrupt):
            [full_disk, lambda save: save(), killed, at_once][way](save)
        found = path.read_bytes() if path.exists() else None
        stray = [p.name for p in path.parent.iterdir() if p != path]
        if stray and way != 2:  # who is killed cannot clean up
            raise Failed(f"left behind: {stray}")
        if found not in (old, content):
            Stream.load(path)
        return "refused" if found == old else "right"
    finally:
        for left in path.parent.iterdir():
            left.unlink()


def full_disk(save):
    "Let the process write no file larger than a few bytes."
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, limits[1]))
    try:
        with contextlib.suppress(OSError):
            save()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)


def killed(save):
    "The same process, copied, and killed at some moment."
    child = os.fork()
    if not child:
        try:
            save()
        finally:
            os._exit(0)
    time.sleep(random.random() * 0.003)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def at_once(save):
    threads = [threading.Thread(target=save) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# --- surroundings -------------------------------------------------------------------------

REDIRECTIONS = (
    "", ">&-", "2>&-", "<&-", "<&- >&- 2>&-", ">/dev/full", "2>/dev/full", "| true",
    "| head -c 5",
)  # fmt: skip
PYTHONS = ("", "-W error", "-I -W error", "-O", "-X dev", "-X utf8=0", "-B", "-bb")
VARIABLES = (
    {}, {"HOME": "/nowhere"}, {"LC_ALL": "C", "LANG": "C"}, {"TMPDIR": "/nowhere"},
    {"NUMBA_CACHE_DIR": "/proc/nowhere"}, {"COLUMNS": "1"}, {"OMP_NUM_THREADS": "3"},
    {"NUMBA_DISABLE_JIT": "0", "HOME": ""}, {"PYTHONWARNINGS": "error"}, {"TERM": "dumb"},
)  # fmt: skip
LIMITS = ("", "ulimit -n 20;", "ulimit -f 0;", "ulimit -c 0;", "umask 777;", "cd /;")


def surroundings_call(seed, folder):
    "The command, in a shell that takes something away."
    chance = random.Random(seed)
    np.save(folder / "phi.npy", np.random.default_rng(0).standard_normal((12, 9)))
    flags, extra = chance.choice(PYTHONS), chance.choice(("", "--center", "--n-max 99"))
    where = f"import sys; sys.path[:] = {sys.path!r}"
    code = f"{where}; from spectral_moments.io.command_line import main; sys.exit(main())"
    command = f"{sys.executable} {flags} -c '{code.replace(chr(39), chr(34))}'"
    script = (
        f"set -o pipefail; {chance.choice(LIMITS)} {command} estimate {folder}/phi.npy "
        f"--n-max 2 {extra} {chance.choice(REDIRECTIONS)}"
    )
    environment = {**os.environ, **chance.choice(VARIABLES)}
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True, text=True, env=environment, cwd=folder, timeout=SECONDS,
    )  # fmt: skip
    if "Traceback" in done.stderr or "Warning" in done.stderr:
        raise Failed(f"{script[-80:]} {environment.get('HOME')}: {done.stderr[-300:]}")
    if done.returncode not in (0, 1, 2, 141):
        raise Failed(f"exit code {done.returncode}: {script[-80:]}: {done.stderr[-300:]}")
    if done.returncode == 2 and done.stderr and done.stderr.count("\n") != 1:
        raise Failed(f"more than one line: {done.stderr}")
    if done.returncode == 0 and "head" not in script and not done.stdout:
        raise Failed(f"no answer: {script[-80:]}")
    return "right" if done.returncode == 0 else "refused"


# --- wrong arguments ----------------------------------------------------------------------

ODD = (
    None, "x", "", 1.5, math.nan, -3, 0, math.inf, {}, {"a": 1}, [], [[1], [2, 3]],
    np.arange(5000.0), np.ones((60, 60)), object(), 1j, b"x", (None, "a"), [None, "a"] * 6,
    {1, 2}, True, len, int, np.array(3), ["a"] * 12, [{}] * 12, [[1]] * 12,
)  # fmt: skip


def option_call(seed, folder):
    "One argument of one door is something else."
    import spectral_moments as sm

    rng = np.random.default_rng([3, seed])
    phi = np.random.default_rng(0).standard_normal((12, 9))
    (folder / "x.csv").write_text("a,b\n.5,1\n2,3\n")
    path = str(folder / "x.csv")
    doors = [
        (sm.estimate, dict(phi=phi, n_max=2)),
        (sm.alignment, dict(phi=phi, psi=phi[:, :7])),
        (sm.alignments, dict(systems={"a": phi, "b": phi[:, :7]})),
        (sm.cross_moments, dict(phi=phi, psi=phi)),
        (sm.Stream, dict(n_features=9)),
        (sm.load_recording, dict(path=path)),
        (sm.row_batches, dict(path=path)),
        (sm.shards, dict(parts=[phi, phi])),
        (sm.Stream(9, 2).update, dict(rows=phi)),
    ]
    door, given = doors[rng.integers(len(doors))]
    names = [x for x in inspect.signature(door).parameters if x != "options"]
    name = names[rng.integers(len(names))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sm.EstimateWarning)
        try:
            found = door(**given | {name: ODD[rng.integers(len(ODD))]})
            list(found) if door is sm.row_batches else None  # it reads as one goes
        except (ValueError, TypeError) as error:
            python = r"not supported between|object (is|has)|could not|scalar index"
            text = str(error)
            if len(text) > 400 or "\n" in text or re.search(python, text):
                raise Failed(f"{name}: {type(error).__name__} {text[:200]}") from error
            return "refused"
    return "right"


# --- doors x options ----------------------------------------------------------------------

COMMANDS = ("command line", "--stream", "align")
PLACES = ("estimate", "alignment", "alignments", "Stream", "AlignmentStream", "shards",
          "file", "Dask", "torch", "watch", *COMMANDS)  # fmt: skip
ASKED = ("centred", "groups", "column groups", "population", "weights", "gaps", "trials",
         "noise")  # fmt: skip


CELLS = ("equal", "refused")  # outcomes that are fine


class Small:
    "A small problem with some options: two systems of counts, and what is known of them."

    groups, weights = np.arange(8) // 2, np.arange(1.0, 9.0)
    columns = {"a": np.array([0, 0, 1, 2, 3]), "b": np.array([0, 1, 1, 2])}
    sizes = {"a": 9, "b": 7}

    def __init__(self, asked, inputs=11):
        rng, self.asked, self.inputs = np.random.default_rng(5), set(asked), inputs
        T = (2,) if "trials" in asked else ()
        law = lambda Q: rng.poisson(rng.gamma(2.0, 2.0, (8, Q)), (*T, 8, Q)).astype(float)
        self.systems = {"a": law(5), "b": law(4)}
        if "gaps" in asked:
            for x in self.systems.values():
                x[..., 2, 1] = x[..., 5, 3] = np.nan

    def options(self, *names):
        "Options of `estimate` for one system, or by name for several."
        own = lambda x: x["a"] if len(names) == 1 else dict(zip(names, x.values()))
        known = {
            "groups": ("groups", self.groups),
            "weights": ("row_weights", self.weights),
            "column groups": ("column_groups", own(self.columns)),
            "population": ("population", (self.inputs, own(self.sizes))),
            "noise": ("noise", own(dict.fromkeys("ab", "poisson"))),
        }
        found = dict(known[name] for name in known if name in self.asked)
        return dict(center="centred" in self.asked) | found

    def direct(self, word):
        "The definition, as a sum over all tuples of rows and columns; None: not here."
        from conftest import word_mean

        asked, two, units, counts = self.asked, {}, {}, {}
        if "population" in asked:
            return self._of_population(word) if asked == {"population"} else None
        if {"noise", "trials"} <= asked:
            return None
        for s, x in self.systems.items():
            trials = x.reshape(-1, *x.shape[-2:])
            two[s] = np.nan_to_num(trials[-1]), np.nan_to_num(trials[0])
            grouped = self.columns[s] if "column groups" in asked else range(x.shape[-1])
            units[s], counts[s] = [(s, k) for k in grouped], 1.0 * ~np.isnan(trials).any(0)
            if "weights" in asked:
                counts[s] = counts[s] * np.sqrt(self.weights)[:, None]
        groups = self.groups if "groups" in asked else None
        how = dict(center="centred" in asked, poisson="noise" in asked)
        return word_mean(two, word, units, groups, counts, **how)

    def _of_population(self, word):
        "All tuples, those that meet too, each as likely as in the finite population."

        def weight(tuples, size, seen):
            k, n = len({*tuples}), len(tuples)
            likely = math.perm(size, k) / size**n if size else k == n  # None: infinite
            return likely / math.perm(seen, k)

        n, total = len(word), 0.0
        for a in itertools.product(*(range(self.systems[s].shape[1]) for s in word)):
            columns = 1.0
            for s in set(word):
                mine = [k for t, k in zip(word, a) if t == s]
                columns *= weight(mine, self.sizes[s], self.systems[s].shape[1])
            for i in itertools.product(range(8), repeat=n):
                value = columns * weight(i, self.inputs, 8)
                for k, s in enumerate(word):
                    x = self.systems[s]
                    value *= x[i[k], a[k]] * x[i[(k + 1) % n], a[k]]
                total += value
        return total


def powers(small):
    return [small.direct("a"), small.direct("aa")]


def traces(small):
    return [small.direct(word) for word in ("aa", "ab", "bb")]


def open_door(place, small, folder, seed):
    "What a door says of a small problem."
    import dask.array
    import torch

    import spectral_moments as sm
    from spectral_moments.engine import arrays

    phi, psi = small.systems.values()
    one = small.options("phi") | dict(random_state=seed)
    arrays.LOADED = 0 if place in ("file", "Dask", "shards") else 2**26
    if place == "alignment":
        both = small.options("phi", "psi")
        return sm.alignment(phi, psi, **both, random_state=seed).estimate.values
    if place in ("alignments", "AlignmentStream"):
        both = small.options("a", "b") | dict(random_state=seed)
        if place == "alignments":
            return sm.alignments(small.systems, **both).estimate.values
        batch = {k: both.pop(k) for k in ("groups", "row_weights") if k in both}
        stream = sm.AlignmentStream(**both)
        return stream.update(small.systems, **batch).estimate().estimate.values
    if place == "Stream":
        beside = {k: one.pop(k) for k in ("groups", "row_weights") if k in one}
        stream = sm.Stream(5, 2, **one)
        for rows in (slice(0, 4), slice(4, 8)):
            some = {name: x[rows] for name, x in beside.items()}
            stream.update(phi[..., rows, :], **some)
        return stream.estimate().values
    if place == "watch":
        return watched(phi, one)
    if place in COMMANDS:
        both = small.options("a", "b") | dict(random_state=seed)
        return commanded(place, small.systems, both if place == "align" else one, folder)
    if place == "file":
        np.save(folder / "phi.npy", phi)
        phi = np.load(folder / "phi.npy", mmap_mode="r")
    if place == "shards":
        phi = sm.shards([phi[..., :3, :], phi[..., 3:, :]])
    if place == "Dask":
        phi = dask.array.from_array(phi, (*phi.shape[:-2], 3, 5))
    if place == "torch":
        phi, one = torch.tensor(phi), one | (dict(trials=True) if phi.ndim == 3 else {})
    return sm.estimate(phi, 2, **one).values


def watched(phi, options):
    "The moments of a layer that hands on its inputs; with other options, of its rows."
    import torch

    import spectral_moments as sm

    own = {name: options[name] for name in ("center", "groups") if name in options}
    other = {name: x for name, x in options.items() if name not in own}
    model = torch.nn.Sequential(torch.nn.Identity())
    whole = dict(units=None, inputs=None, n_max=2, random_state=other.pop("random_state"))
    with sm.watch(model, "0", **whole, **own) as seen:
        model(torch.tensor(phi))
    if other:
        return sm.estimate(seen.sample("0"), 2, center=own["center"], **other).values
    return seen.estimates(law=True)["0"].values


def commanded(place, systems, options, folder):
    "The moments that a command prints; of two systems their alignment."
    from spectral_moments.io.command_line import OPTIONS, main

    trials = any(x.ndim == 3 for x in systems.values())
    for name, x in systems.items():
        np.save(folder / f"{name}.npy", x)
    files = [str(folder / f"{name}.npy") for name in systems]
    call = ["align", *files] if place == "align" else ["estimate", files[0], "--n-max", "2"]
    call += ["--json", *(["--trials"] if trials else []), *(["--stream"] * ("--" in place))]
    call += ["--center" if options.pop("center") else "--no-center"]
    for name, value in options.items():
        flag, about = OPTIONS[name]
        values = [*value] if isinstance(value, tuple) else [value]
        values = [y for x in values for y in (x.values() if isinstance(x, dict) else [x])]
        if about.get("metavar") == "FILE":
            for k, x in enumerate(values):
                np.save(folder / f"{name}{k}.npy", x)
            values = [folder / f"{name}{k}.npy" for k in range(len(values))]
        call += [flag, *map(str, values[:1] if name == "noise" else values)]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(call)
    if code:
        raise ValueError(err.getvalue().strip())
    found = json.loads(out.getvalue())
    return [*found["traces"].values()] if place == "align" else found["values"]


def try_cell(place, asked, folder):
    "Try one cell, twice: equal to the definition, or refused in a sentence."
    import spectral_moments as sm
    from spectral_moments.engine import arrays

    two, said = place in ("alignment", "alignments", "AlignmentStream", "align"), set()
    small = Small(asked)
    expected = traces(small) if two else powers(small)
    before = arrays.LOADED
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sm.EstimateWarning)
            if None in expected:  # a reference that other cells hold to the definition
                expected = np.nan
                with contextlib.suppress(ValueError):
                    kind = "alignments" if two else "estimate"
                    expected = open_door(kind, small, folder, 0)
            for seed in (0, 1):
                found = open_door(place, small, folder, seed)
                if not np.allclose(found, expected, rtol=1e-7, atol=1e-9):
                    return f"wrong: {found} for {expected}"
                said.add("equal")
    except (ValueError, TypeError) as error:
        text = str(error)
        if len(text) > 400 or "\n" in text or not re.search(REMEDIES, text):
            return f"unclear: {text}"
        said.add("refused")
    finally:
        arrays.LOADED = before
    return said.pop() if len(said) == 1 else f"by seed: {said}"


def product(folder, pairs=True, places=PLACES):
    "Every door with every option and, if wanted, with every pair of options."
    several = [(), *((x,) for x in ASKED)]
    several += itertools.combinations(ASKED, 2) if pairs else []
    row = lambda asked: {place: try_cell(place, asked, folder) for place in places}
    return {" x ".join(asked) or "plain": row(asked) for asked in several}


# --- child and parent ---------------------------------------------------------------------

CALLS = {"data": data_call, "files": files_call, "arguments": option_call,
         "surroundings": surroundings_call}  # fmt: skip


def child(which, first, count):
    "Run calls one after the other; a line before and a line after each."
    import h5py  # noqa: F401

    import spectral_moments as sm

    if which == "data":
        import dask
        import pandas  # noqa: F401
        import torch

        torch.set_num_threads(1)
        dask.config.set(scheduler="synchronous")
    [getattr(sm, name) for name in sm.__all__]
    answers = os.fdopen(os.dup(1), "w")  # what calls print goes elsewhere
    with tempfile.TemporaryDirectory() as sound:
        if which == "files":
            files_call.sound = sound_files(Path(sound))
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for seed in range(first, first + count):
            print(json.dumps([seed, None]), file=answers, flush=True)
            faulthandler.dump_traceback_later(SECONDS, exit=True)
            try:
                work = Path(folder) / "work"
                work.mkdir(exist_ok=True)
                outcome = [CALLS[which](seed, work), ""]
            except Failed as problem:
                outcome = ["failed", str(problem)[:300]]
            except BaseException as problem:
                outcome = ["failed", f"harness: {problem!r}"[:300]]
            faulthandler.cancel_dump_traceback_later()
            print(json.dumps([seed, outcome]), file=answers, flush=True)
        os.chdir("/")


def run(which, first, count):
    "Outcomes of calls, from as many children as it takes: counts, and failures by seed."
    outcomes, failures, left = [], {}, first
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    paths = [ROOT, ROOT / "tests", *filter(None, [os.environ.get("PYTHONPATH")])]
    environment["PYTHONPATH"] = os.pathsep.join(map(str, paths))
    while left < first + count:
        command = [sys.executable, __file__, "--child", which, str(left)]
        done = subprocess.run(
            [*command, str(first + count - left)],
            capture_output=True, text=True, env=environment,
        )  # fmt: skip
        lines = [json.loads(line) for line in done.stdout.splitlines() if line[:1] == "["]
        for seed, outcome in lines:
            if outcome is not None:
                outcomes.append(outcome[0])
                left = seed + 1
                if outcome[0] not in GOOD:
                    failures[str(seed)] = outcome[1]
        if left < first + count:  # it died on the way
            if not lines or lines[-1][1] is not None:
                raise RuntimeError(done.stderr[-2000:])
            why = "time-out" if "Timeout" in done.stderr else f"signal {-done.returncode}"
            outcomes.append("failed")
            failures[str(left)] = f"{why}: {done.stderr[-200:]}"
            left += 1
    return {"counts": Counter(outcomes), "failures": failures, "first": outcomes[:20]}


def joined(parts, name):
    "Counts or failures by generator."
    found = {which: Counter() for which in SHARES}
    for (which, *_), part in parts.items():
        if which in SHARES:
            found[which].update(part[name])
    return {which: dict(counts) for which, counts in found.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--calls", type=int, default=20000)
    parser.add_argument("--output", type=Path, default=ROOT / "results", help="folder")
    parser.add_argument("--child", nargs=3)
    parser.add_argument("--doors", action="store_true", help="all doors with all options")
    given = parser.parse_args()
    if given.child:
        child(given.child[0], *map(int, given.child[1:]))
        return 0
    sys.path.insert(0, str(ROOT))
    from conftest import load_study

    common, command = load_study("common"), "python tests/hostile.py"
    if given.doors:
        settings = {"places": PLACES, "options": ASKED}
        store = common.Checkpoint(None, common.request(f"{command} --doors", 0, settings))
        about = common.provenance(store)
        with tempfile.TemporaryDirectory() as folder:
            found = product(Path(folder))
        about |= {"seconds": store.seconds(), "doors": found}
        common.write_json(given.output / "doors.json", about)
        return int(any(x not in CELLS for row in found.values() for x in row.values()))
    settings = {"calls": given.calls, "shares": SHARES, "batch": BATCH}
    about = common.request(f"{command} --calls {given.calls}", 0, settings)
    given.output.mkdir(parents=True, exist_ok=True)
    store = common.Checkpoint(given.output / "hostile.partial", about)
    about = common.provenance(store)
    for which, share in SHARES.items():
        for first in range(0, round(share * given.calls), BATCH[which]):
            count = min(BATCH[which], round(share * given.calls) - first)
            if (which, first) not in store.parts:
                store.add((which, first), run(which, first, count))
                store.add(("seconds",), store.seconds())
                said = joined(store.parts, "counts")[which]
                print(f"{which} {first + count}: {said}", file=sys.stderr, flush=True)
    failures = joined(store.parts, "failures")
    first = {which: store.parts[which, 0]["first"] for which in SHARES}
    about |= {"seconds": store.seconds(), "first_draws": first, "calls": given.calls}
    outcomes = {"outcomes": joined(store.parts, "counts"), "failures": failures}
    common.write_json(given.output / "hostile.json", about | outcomes)
    store.finish()
    return int(any(failures.values()))


if __name__ == "__main__":
    sys.exit(main())
