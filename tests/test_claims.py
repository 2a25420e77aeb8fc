"""The page of claims: complete, linked, and every number on it computed again.

One generator for each part of the page, in `SECTIONS`. For each claim, in the order of the
page, it computes, from the stored studies or live, and yields words of the claim and the
phrases that the page must have below it. Every number on the page that is not part of a
formula has to be in one of these phrases, so that a wrong number, and a number that nobody
checks, both fail.
"""

import itertools
import json
import math
import re
from functools import cache, partial

import numpy as np
import pytest
from comparison import read_study, select
from conftest import RESULTS, ROOT
from scipy.optimize import linprog

import spectral_moments as sm
from spectral_moments.engine.graphs import word_means
from spectral_moments.engine.sources import Pair
from spectral_moments.processes import power_sums
from spectral_moments.spectrum.feasible import newton_eigenvalues
from spectral_moments.teaching.cycles import mean_over_increasing, second_moment
from spectral_moments.teaching.paper_algorithms import (
    algorithm_a1,
    algorithm_a2,
    smoothed_noise,
)
from spectral_moments.teaching.rbf_spectrum import hermite_functions
from spectral_moments.teaching.recursion import algorithm_1, cumulative
from spectral_moments.teaching.variance import (
    chebyshev_radius,
    cycle_variance,
    meeting_probability,
    variance_bound,
)

PAGE = (ROOT / "nbs/claims.md").read_text()
PARTS = dict(part.split("\n", 1) for part in PAGE.split("\n## ")[1:])  # by heading


def claims_of(text):
    "Claims, and what is said of each."
    return re.findall(r"(?m)^(?!:)(\S.*)\n: (.*)$", text)


ENTRIES = claims_of(PAGE)


def slug(heading):
    "The anchor of a heading, as the book makes it."
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def headings(path):
    "Anchors of the headings of a page."
    text = path.read_text()
    if path.suffix == ".ipynb":
        cells = [c for c in json.loads(text)["cells"] if c["cell_type"] == "markdown"]
        text = "\n".join("".join(c["source"]) for c in cells)
    return {slug(h) for h in re.findall(r"(?m)^#+ (.*)$", text)}


# --- the page itself ----------------------------------------------------------------------


def without_formulas(text):
    "Words and numbers that are no link, role, code or formula."
    return re.sub(r"\]\([^)]*\)|\{[a-z:]+\}`[^`]*`|`[^`]*`|\$[^$]*\$", " ", text)


def test_every_claim_has_a_verdict_and_a_link():
    assert PAGE.count("\n: ") == len(ENTRIES)
    for title, body in ENTRIES:
        assert re.match(r"\*\*(Confirmed|Corrected|Open)\.\*\* ", body), title
        links = re.findall(r"\]\(([^)]+)\)", body)
        assert links, title
        for link in links:
            file, _, anchor = link.partition("#")
            path = ROOT / "nbs" / (file or "claims.md")
            assert path.exists() and (not anchor or anchor in headings(path)), (title, link)
        if "**Open.**" in body:
            assert not re.search(r"\d", without_formulas(body)), title


def test_count():
    counts = [PAGE.count(f": **{x}.**") for x in ("Confirmed", "Corrected", "Open")]
    said = "Of {} claims {} are confirmed, {} corrected and {} open."
    assert said.format(len(ENTRIES), *counts) in PAGE


# --- helpers ------------------------------------------------------------------------------

STUDIES = ["main", "features", "inputs", "dim10", "small_dim10", "small_dim4", "small_dim2"]
OTHERS = ("naive", "kv_row", "kv_col")
POPULATION = sm.Discrete([[1.0, -1.0], [2.0, 0.5]], feature_probs=[0.4, 0.6])
ADA = sm.RBF(3, kernel_cov=0.25)


def moments(study, method, quantity="moment", **where):
    "Rows of a stored comparison, by order from 2 to 7."
    table = read_study(RESULTS / f"comparison_{study}.json")[1]
    return select(table, method=method, quantity=quantity, n=range(2, 8), **where)


def biases(study, method):
    "Biases of a stored comparison, in standard errors."
    found = moments(study, method)
    return abs(found.bias / found.bias_se)


def stored(name):
    return json.loads((RESULTS / f"{name}.json").read_text())


def power(x, digits=1):
    "A number as a power of ten in a formula."
    mantissa, exponent = f"{x:.{digits}e}".split("e")
    return rf"${mantissa} \times 10^{{{int(exponent)}}}$"


def same(found, expected, rtol=1e-12):
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)


def trace_powers(matrix, n_max):
    return [np.trace(np.linalg.matrix_power(matrix, n)) for n in range(1, n_max + 1)]


def around(kernel, inputs):
    "The product of kernels around a cycle of inputs."
    return math.prod(kernel[i, j] for i, j in zip(inputs, (*inputs[1:], inputs[0])))


def cycle(phi, rows, columns, other=None):
    "The product of the entries around one cycle, of two trials in turn."
    steps = zip(rows, (*rows[1:], rows[0]), columns, strict=True)
    return math.prod(
        phi[i, a] * (phi if other is None else other)[j, a] for i, j, a in steps
    )


# --- abstract and introduction ------------------------------------------------------------


def introduction():
    naive = moments("main", "naive")
    ratio = 1 + naive.bias / naive.truth
    said = f"{ratio[0]:.1f} times the truth", f"seventh {ratio[-1]:.0f} times"
    yield "depends on the size of the matrix", *said

    mean = POPULATION.expectation(lambda phi: sm.increasing(phi, 3), 3, 3)
    same(mean, POPULATION.moments(3))
    off = np.concatenate([biases(study, "increasing") for study in STUDIES])
    assert max(off) < 4
    said = f"{len(off)} biases", f"the largest is {max(off):.1f} standard errors"
    yield "whatever its size", *said

    row, col = (moments("main", method) for method in ("kv_row", "kv_col"))
    row, col = (1 + (t.bias / t.truth)[0] for t in (row, col))
    said = f"{row:.1f} (KV-row) and {col:.1f} (KV-col) times"
    yield "Kong and Valiant correct for sampled rows", said

    cycles = math.comb(300, 7) * math.comb(600, 7)
    steps = 2 * 6 * 300**2 / 2 * 600  # two of each, for six orders, below the start row
    yield "polynomial cost", f"{power(cycles)} cycles", f"{power(steps)} additions"


# --- the operator -------------------------------------------------------------------------


def fourier_features(x, phase, wave, count=64):
    "Mean products of Fourier features of one dimension, by quadrature; and their means."
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    b = phase(np.arange(count) / count)
    phi = math.sqrt(2) * wave(x[:, None, None], nodes[:, None], b)
    weights = np.repeat(weights[:, None] / weights.sum() / count, count, axis=1)
    return np.einsum("xwb,ywb,wb->xy", phi, phi, weights), (phi * weights).sum((1, 2))


def both_features():
    x = np.linspace(-2, 2, 9)
    sine = fourier_features(x, lambda u: 2 * np.pi * u, lambda x, w, b: np.sin(w * x + b))
    half = lambda u: np.pi * (u + 1 / 128) - np.pi / 2
    cosine = fourier_features(x, half, lambda x, w, p: np.cos(w * x - p))
    return x, sine, cosine


def operator():
    _, (sine, mean), (cosine, other) = both_features()
    same(sine, cosine, 1e-10)
    same(mean, 0)
    yield "determine the matrices and the kernel", f"{other[4]:.2f} at the origin"

    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, 3))
    assert abs(np.linalg.eigvalsh(x @ x.T)[0]) < 1e-12  # a null vector
    largest = [(rng.standard_normal((n, 3)) ** 2).sum(1).max() for n in (100, 10**6)]
    yield "positive definite and bounded", *(f"{x:.0f} among" for x in largest)

    values = sm.RBF(1).eigenvalues(80)
    assert (values > 0).all() and (np.diff(values) < 0).all()
    same(values.sum(), 1)
    yield ("trace class",)

    m = ADA.moments(7)
    assert (m <= m[0] ** np.arange(1, 8)).all()
    yield "exist at every order", f"{m[1]:.3f} at", f"{power(m[6])} at"

    p, q, table = POPULATION.input_probs, POPULATION.feature_probs, POPULATION.table
    kernel = (table * q) @ table.T
    values = np.linalg.eigvals(kernel * p)
    for n in range(1, 5):
        inputs = itertools.product(range(2), repeat=n)
        direct = sum(p[list(c)].prod() * around(kernel, c) for c in inputs)
        same(direct, (values**n).sum().real)
    yield ("around a cycle of inputs",)

    values = ADA.eigenvalues(20_000)
    z = 2 * values[0]
    series = (ADA.moments(60) * z ** -np.arange(1.0, 61)).sum()
    assert abs(series - (values / (z - values)).sum()) < 1e-3 * series  # the tail is cut
    few = values[:5]
    m = (few ** np.arange(1, 61)[:, None]).sum(1)
    same((m * z ** -np.arange(1.0, 61)).sum(), (few / (z - few)).sum())
    near = few[1] * (1 + 1e-9)
    same((near - few[1]) * (few / (near - few)).sum() / few[1], (few == few[1]).sum(), 1e-6)
    yield ("by the poles of",)

    known = np.array([1.0, 0.6, 0.3, 0.1])
    same(newton_eigenvalues(power_sums(known, 4)), known, 1e-10)
    spoiled = newton_eigenvalues(power_sums(known, 4) * [1, 1, 1, 1 + 1e-6])
    lost = np.log10(abs(spoiled / known - 1).max() / 1e-6)
    twelve = np.linspace(1, 0.1, 12)
    error = abs(newton_eigenvalues(power_sums(twelve, 12)) / twelve - 1).max()
    assert 1e-9 < error < 1e-7
    yield "Newton's identities", f"{lost:.1f} digits"

    a = np.sqrt(p)[:, None] * table * np.sqrt(q)
    same(trace_powers(a @ a.T, 5), trace_powers(a.T @ a, 5))
    same(trace_powers(a.T @ a, 5), POPULATION.moments(5))
    yield ("covariance operator",)


# --- the naive estimator ------------------------------------------------------------------


def four_terms(P, Q):
    "The terms of the mean naive second moment: no repetition, a row, a column, both."
    p, q, phi = POPULATION.input_probs, POPULATION.feature_probs, POPULATION.table
    kernel, mirror = (phi * q) @ phi.T, phi.T @ (phi * p[:, None])
    none = np.einsum("i,j,ij->", p, p, kernel**2)
    row, column = p @ np.diag(kernel) ** 2, q @ np.diag(mirror) ** 2
    both = p @ phi**4 @ q
    weights = ((P - 1) * (Q - 1), Q - 1, P - 1, 1)
    return np.array([none, row, column, both]) * weights / (P * Q)


def naive_estimator():
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=2)))
    process = sm.Discrete(corners @ corners.T)
    second = process.expectation(lambda phi: np.outer(phi, phi), 2, 2)
    same(second, 2 * np.eye(4))  # zero but for an entry with itself
    four = process.expectation(np.prod, 2, 2)
    same(four, process.moments(2)[1])
    yield "makes the entries correlated", f"is {four:.0f}, not 0"

    process, error = sm.RBF(1), []
    phi = process.sample(2000, 500, random_state=0)
    small, large = (np.sum(K @ K * K) for K in (phi[:1000] @ phi[:1000].T, phi @ phi.T))
    yield "grows like the power", f"{large / small:.1f}-fold"

    for size, count in ((10, 400), (100, 100), (1000, 10)):
        found = [sm.naive(process.sample(size, size, seed), 3)[2] for seed in range(count)]
        relative = np.array(found) / process.moments(3)[2] - 1
        error.append(100 * np.sqrt((relative**2).mean()))
    yield "converges as both sizes grow", "{:.0f}%, {:.0f}% and {:.0f}%".format(*error)

    mean = POPULATION.expectation(lambda phi: sm.naive(phi, 1), 2, 3)
    same(mean, POPULATION.moments(1))
    rectified = np.maximum(np.random.default_rng(0).standard_normal(10**6), 0)
    exact = 0.5 / (0.5 - 1 / (2 * np.pi))
    assert (rectified**2).mean() / rectified.var() == pytest.approx(exact, rel=0.01)
    yield "order $1$ is unbiased", f"a factor of {exact:.2f}"

    for P, Q in ((3, 3), (2, 4)):
        mean = POPULATION.expectation(lambda phi: sm.naive(phi, 2), P, Q)[1]
        same(four_terms(P, Q).sum(), mean)
    ratio = four_terms(3, 3).sum() / POPULATION.moments(2)[1]
    yield "From order $2$ on it is biased", f"{ratio:.1f} times"

    fall = (four_terms(1000, 1000) / four_terms(2000, 2000))[1:]
    yield "The four terms have the orders", "{:.1f}, {:.1f} and {:.1f}".format(*fall)

    rng, bias, truth = np.random.default_rng(0), {}, process.moments(5)
    for size, count in ((60, 1500), (120, 1000)):
        found = [sm.naive(process.sample(size, size, rng), 5) for _ in range(count)]
        bias[size] = np.mean(found, axis=0) / truth - 1
    ratio = (bias[60] / bias[120])[1:]
    assert (bias[120][1:] > 0).all() and (abs(ratio - 2) < 0.4).all()
    yield "At every order the bias is", f"{ratio.min():.1f} to {ratio.max():.1f} times"


# --- related work -------------------------------------------------------------------------


def mean_over_rows(statistic, table):
    "All features are seen, four inputs of two kinds are drawn, in every way."
    draws = itertools.product(range(2), repeat=4)
    return np.mean([statistic(table[list(i)]) for i in draws], axis=0)


def all_rows(phi):
    "The fourth moment over all sets of rows, with every feature seen."
    words, seen = (("a",) * 4,), {"features": phi.shape[1]}
    return word_means({"a": Pair(phi, phi)}, words, population=seen).values[0]


def related_work():
    phi = np.random.default_rng(0).standard_normal((600, 600))
    found = np.array(trace_powers(phi @ phi.T / 600, 4)) / 600
    catalan = np.array([1, 2, 5, 14])  # the Narayana sums at ratio one
    assert abs(found[1] - 1) > 0.5  # the identity has one
    yield "Marchenko and Pastur", f"within {100 * abs(found / catalan - 1).max():.1f}%"

    for d in (2, 7):
        same(sm.Linear(d, scale=1 / d).moments(6), d ** -np.arange(0.0, 6))
    phi = sm.Linear(10_000, scale=1e-4).sample(400, 400, random_state=0)
    kurtosis = (phi**4).mean() / (phi**2).mean() ** 2
    assert abs(kurtosis - 3 * (1 + 2e-4)) < 0.1
    yield ("Independent normal entries",)

    phi = sm.Linear(10_000, scale=1e-4).sample(60, 90, random_state=0)
    noise = np.random.default_rng(1).standard_normal((60, 90))
    found, pure = sm.naive(phi, 4), sm.naive(noise, 4)
    assert (abs(found / pure - 1) < 0.2).all()
    ratio = found * 10_000.0 ** np.arange(4)
    yield "Far beyond the sample", f"{ratio[1]:.0f} times the truth"

    F = np.array([[1.0, 2.0, -1.0], [0.5, -1.0, 3.0], [2.0, 0.0, 1.0]])
    signs = [np.array(s).reshape(3, 3) for s in itertools.product((-1.0, 1.0), repeat=9)]
    found = np.mean([sm.kong_valiant(x @ F, 3) for x in signs], axis=0)
    same(found, trace_powers(F @ F.T / 3, 3))
    yield ("sketches of a fixed matrix",)

    table = np.array([[1.0, 2.0, 4.0], [3.0, 1.0, 0.5]])
    naive = mean_over_rows(lambda phi: sm.naive(phi, 3), table)
    printed = mean_over_rows(lambda phi: trace_powers(phi @ phi.T / 3, 3), table)
    same(printed / naive, 4.0 ** np.arange(1, 4))
    yield "Its naive estimator is", f"by {printed[2] / naive[2]:.0f} at"

    truth = trace_powers(table @ table.T / 6, 3)
    same(mean_over_rows(lambda phi: sm.kong_valiant(phi, 3), table), truth)
    assert (naive[1:] > 1.01 * np.array(truth)[1:]).all()  # negative control
    yield "relies on a mean of zero", f"mean of {table.mean():.1f}"

    phis = [sm.Linear(3).sample(40, 60, random_state=seed) for seed in range(400)]
    one = np.std([(phi[0] @ phi[1] / 60) ** 2 for phi in phis])
    mean = np.std([sm.kong_valiant(phi, 2)[1] for phi in phis])
    yield "One product alone varies much", f"{one / mean:.1f} times"

    phi = np.random.default_rng(0).standard_normal((6, 4))
    chains = [around(phi @ phi.T / 4, c) for c in itertools.permutations(range(6), 4)]
    same(all_rows(phi), np.mean(chains), 1e-10)
    phis = [sm.RBF(10).sample(12, 400, seed) for seed in range(200)]
    one = np.std([sm.kong_valiant(phi, 4)[3] for phi in phis])
    every = np.std([all_rows(phi) for phi in phis])
    yield "The mean over all sets of rows", f"{one / every:.1f} times"

    phi = np.random.default_rng(1).standard_normal((7, 5))
    gram = phi @ phi.T / 5
    for n in (2, 3, 4):
        mean = np.mean([around(gram, c) for c in itertools.combinations(range(7), n)])
        upper = np.linalg.matrix_power(np.triu(gram, 1), n - 1)
        same(np.trace(upper @ gram) / math.comb(7, n), mean)
        same(sm.kong_valiant(phi, n)[-1], mean)
    yield ("Products of a triangular matrix",)

    m = POPULATION.moments(2)[1]
    row = POPULATION.expectation(lambda phi: sm.kong_valiant(phi, 2)[1], 3, 3)
    col = POPULATION.expectation(lambda phi: sm.kong_valiant(phi.T, 2)[1], 3, 3)
    p, q, phi = POPULATION.input_probs, POPULATION.feature_probs, POPULATION.table
    same(row, m + (q @ (p @ phi**2) ** 2 - m) / 3)
    same(col, m + (p @ (phi**2 @ q) ** 2 - m) / 3)
    yield "If neither side is complete", f"{row / m:.2f} and {col / m:.2f} times"


# --- the estimator ------------------------------------------------------------------------


def estimator():
    for index in ((0, 1), (0, 1, 2)):
        n, product = len(index), partial(cycle, rows=index, columns=index)
        same(POPULATION.expectation(product, n, n), POPULATION.moments(n)[-1])
    repeated = POPULATION.expectation(lambda phi: cycle(phi, (0, 1, 0), (0, 1, 2)), 2, 3)
    m3 = POPULATION.moments(3)[2]
    yield "The product around one cycle", f"{repeated / m3:.1f} times"

    p, q, table = POPULATION.input_probs, POPULATION.feature_probs, POPULATION.table
    product = (p @ (table * q @ table.T) @ p) ** 3
    yield "factor by factor", f"{product / m3:.2f} times"

    for n in range(2, 6):
        index = range(n)
        entries = {(i, i) for i in index} | {((i + 1) % n, i) for i in index}
        assert len(entries) == 2 * n
        for axis in (0, 1):
            assert all(sum(e[axis] == i for e in entries) == 2 for i in index)
    yield ("distinct coefficients",)

    phis = [sm.Linear(3).sample(20, 30, random_state=seed) for seed in range(400)]
    one = np.std([cycle(phi, (0, 1, 2), (0, 1, 2)) for phi in phis])
    every = np.std([sm.all_cycles(phi, 3)[2] for phi in phis])
    yield "over all disjoint cycles lowers the variance", f"{one / every:.0f} times"

    phi = np.random.default_rng(2).standard_normal((4, 5))
    rows, columns = itertools.permutations(range(4), 2), itertools.permutations(range(5), 2)
    direct = [cycle(phi, *pair) for pair in itertools.product(rows, columns)]
    same(second_moment(phi), np.mean(direct))
    yield ("closed form at order $2$",)

    case = stored("auto_choice")["cases"]["between"]
    cost = case["methods"]["all_cycles"]["cost"]
    assert case["shape"] == [75, 150]
    yield "Summing over all of them", f"{cost[3]:.1f} matrix products", f"{cost[4]:.1f} at"

    phi = np.random.default_rng(3).standard_normal((5, 6))
    rows, columns = (list(itertools.combinations(range(k), 3)) for k in (5, 6))
    terms = [cycle(phi, i, a) for i in rows for a in columns]
    assert len(terms) == math.comb(5, 3) * math.comb(6, 3)
    same(sm.increasing(phi, 3)[2], np.mean(terms))
    for n in (2, 5):  # a staircase: down a column, right along a row, and back at the end
        path = [e for k in range(n) for e in ((k, k), ((k + 1) % n, k))]
        assert all(b[0] >= a[0] and b[1] >= a[1] for a, b in zip(path[:-1], path[1:-1]))
    share = 1 / (math.factorial(6) * math.factorial(5))  # one in n! (n-1)! different cycles
    counted = math.perm(300, 6) * math.perm(600, 6) / 12
    same(math.comb(300, 6) * math.comb(600, 6) / counted, 2 * share, 1e-10)
    yield "Restricted to increasing indices", f"one in {1 / (2 * share):.0f}"


# --- dynamic programming ------------------------------------------------------------------


def in_place(phi, n, order):
    "The partial sums of one start updated in one matrix, rows and columns in some order."
    P, Q = phi.shape
    total = 0.0
    for h in range(P):
        S = np.zeros((P, Q))
        S[h] = phi[h]
        for _ in range(n - 1):
            for a in order(range(P)):
                for b in order(range(Q)):
                    S[a, b] = (S[:a, :b].sum(0) @ phi[a, :b]) * phi[a, b]
        total += (S @ phi[h]).sum()
    return total / (math.comb(P, n) * math.comb(Q, n))


def dynamic_programming():
    phi = np.random.default_rng(4).standard_normal((5, 6))
    same(algorithm_1(phi, 4), [mean_over_increasing(phi, n) for n in range(1, 5)])
    yield ("The recursion for the partial sums",)

    phi = np.random.default_rng(5).standard_normal((5, 6))
    truth = mean_over_increasing(phi, 3)
    same(in_place(phi, 3, reversed), truth)
    assert abs(in_place(phi, 3, iter) / truth - 1) > 0.1  # from the front it goes wrong
    yield "in place, in one matrix", f"{7 * 600} numbers in place of {300 * 600}"

    phi = ADA.sample(20, 30, random_state=0)
    same(sm.increasing(phi, 1), sm.naive(phi, 1))
    yield ("The first moment is estimated as before",)

    recording = ADA.sample(200, 400, random_state=3)
    corner = recording[:20, :40]
    for phi in (recording, corner):
        same(sm.increasing(phi[::-1, ::-1].T, 3), sm.increasing(phi, 3), 1e-10)
    plain = sm.increasing(recording.T, 3) / sm.increasing(recording, 3)
    same(plain[:2], 1, 1e-10)
    assert sm.increasing(corner.T, 3)[2] * sm.increasing(corner, 3)[2] < 0
    yield "on the transpose", f"by {100 * abs(plain[2] - 1):.1f}%"

    counts = [math.comb(300, n) * math.comb(600, n) for n in range(1, 301)]
    assert max(counts) < float(np.finfo(float).max)  # single precision alone overflows
    single = float(np.finfo(np.float32).max)
    first = next(n for n, count in enumerate(counts, 1) if count > single)
    yield "Normalising at every step", f"order {first} on"

    phi = ADA.sample(12, 15, random_state=0)
    same(cumulative(phi, 5), algorithm_1(phi, 5), 1e-10)
    yield "vectorised", f"{8 * 300**2 * 600 / 1e9:.2f} GB"

    cases = list(stored("cycles_rmse")["cases"].values())
    one, ten, every = (
        np.sqrt([case["results"][k]["mse"][3] for case in cases])
        for k in ("1", "16", "all_cycles")
    )
    text = f"{(one / ten)[0]:.1f} times", f"{(one / every)[0]:.1f} times"
    yield "Permuting rows and columns", *text, f"{(one / every)[1]:.2f} times"


# --- noise --------------------------------------------------------------------------------


def noisy(shape, situation, method="increasing"):
    "Mean over truth, standard error over truth and mean squared error of a stored study."
    case = stored("noise")["shapes"][shape]
    truth, row = np.array(case["truth"]), case["rows"][situation][method]
    mean, se, variance = (np.array(row[key]) for key in ("mean", "se", "variance"))
    return mean / truth, se / truth, (mean - truth) ** 2 + variance


def shared_noise(sequence, axis):
    "Mean product around a square with noise of plus or minus one along rows or columns."

    def average(phi):
        total = 0.0
        for signs in itertools.product((-1.0, 1.0), repeat=4):
            noise = np.array(signs).reshape(2, 2)  # trial, row or column
            trials = [phi + (g[:, None] if axis == 0 else g) for g in noise]
            path = ((0, 0), (1, 0), (1, 1), (0, 1))
            total += math.prod(trials[t][place] for t, place in zip(sequence, path))
        return total / 16

    return POPULATION.expectation(average, 2, 2)


def noisy_trials():
    "Spread of estimates of four noisy trials: one pair, all pairs in turn, and halves."
    process, rng, found = sm.Linear(2), np.random.default_rng(3), []
    for _ in range(400):
        x = process.sample(16, 20, rng) + 4 * rng.standard_normal((4, 16, 20))
        pairs = [sm.increasing(x[[*p]], 4) for p in itertools.combinations(range(4), 2)]
        found.append([pairs[0], np.mean(pairs, axis=0), sm.increasing(x, 4)])
    return np.std(found, axis=0)[:, 1:]


def noise():
    mean, se, _ = noisy("75 x 150", "independent, T = 1")
    assert (abs(mean - 1) < 4 * se)[1:].all() and mean[0] - 1 > 100 * se[0]
    first, second = f"{mean[0]:.2f} times the truth", f"{mean[1]:.2f} times"
    yield "Independent noise does no harm", first, second, f"is {mean[0] ** 2:.1f} times"

    truth = POPULATION.moments(2)[1]
    for axis in (0, 1):
        same(shared_noise((0, 1, 0, 1), axis), truth)
        assert shared_noise((0, 0, 0, 0), axis) > 1.5 * truth  # negative control
    yield "Two trials, taken in turn", f"{shared_noise((0, 0, 0, 0), 0) / truth:.1f} times"

    for sequence in itertools.product(range(2), repeat=4):
        good = all(a != b for a, b in zip(sequence, sequence[1:] + sequence[:1]))
        off = max(abs(shared_noise(sequence, axis) - truth) for axis in (0, 1))
        assert (off < 1e-12) == good
    gains = itertools.product((0.5, 1.5), repeat=2)
    factor = np.mean([(a * b) ** 2 for a, b in gains])
    same(factor, (1 + 0.5**2) ** 2)
    yield "necessary and sufficient", f"by {factor:.2f} at"

    pair, pairs, halves = noisy_trials()
    ratio = pair / halves
    yield "More trials denoise further", f"{ratio.min():.1f} to {ratio.max():.1f} times"

    said = "{:.1f}, {:.1f} and {:.1f} times".format(*pairs / halves)
    yield "drawing pairs of trials", said

    first, second = np.random.default_rng(2).standard_normal((2, 5, 6))
    for n, found in enumerate(algorithm_a1(first, second, 4), 2):
        rows, columns = (list(itertools.combinations(range(k), n)) for k in (5, 6))
        turned = [cycle(first, i, a, second) for i in rows for a in columns]
        same(found, np.mean(turned), 1e-10)
    equal = algorithm_a2(np.repeat(first[None], 3, axis=0), 4, random_state=1)
    same(equal, sm.increasing(first, 4)[1:], 1e-10)
    yield ("Algorithms A1 and A2",)

    noise = smoothed_noise(1, 20_000, 15, 1)[0]
    correlation = noise.T @ noise / len(noise)
    assert correlation[0, 1] > 0.8 and abs(correlation[0, 11:]).max() < 0.05
    yield "The setting of the noise figure", f"{correlation[0, 1]:.2f} between neighbours"

    off = []
    for shape in ("75 x 150", "75 x 15"):
        mean, se, _ = noisy(shape, "correlated, T = 2")
        off += list(abs((mean - 1) / se))
    one = noisy("75 x 150", "correlated, T = 1")[0][1]
    assert max(off) < 4 and stored("noise")["settings"]["n_matrices"] == 4000
    said = f"{max(off):.1f} standard errors", f"{one:.1f} times the truth"
    yield "two trials suffice against correlated noise", *said

    said = []
    for method in OTHERS:
        rows = ("no noise", "correlated, T = 1", "correlated, T = 2")
        clean, one, two = (noisy("75 x 150", row, method)[0][1] for row in rows)
        assert abs(two / clean - 1) < 0.05
        said.append(f"{one:.1f} to {two:.1f}")
    yield "The other estimators can alternate too", *said

    said = []
    for shape in ("75 x 150", "75 x 15"):
        wins = 0
        for row in stored("noise")["shapes"][shape]["rows"]:
            others = [noisy(shape, row, method)[2][1:] for method in OTHERS]
            wins += (noisy(shape, row)[2][1:] < np.min(others, axis=0)).sum()
        said.append(f"{wins} of 30")
    yield "Lowest bias and variance in nearly all situations", *said


# --- variance and consistency -------------------------------------------------------------


def loose(process, V, n=3):
    "Orders of magnitude between the bound and the measured variance."
    rng, found = np.random.default_rng(0), []
    for P in (10, 20, 40, 80):
        values = [sm.increasing(process.sample(P, 2 * P, rng), n)[-1] for _ in range(150)]
        found.append(np.log10(variance_bound(n, P, 2 * P, V) / np.var(values)))
    return min(found), max(found)


def variance():
    exact = (7**6 - 25 + 14 * 4**3) / 5**6  # linear, five dimensions, order three
    linear = loose(sm.Linear(5, scale=1 / 5), exact)
    V = np.mean([cycle_variance(ADA.sample(80, 160, s), 3)[-1] for s in range(20)])
    said = f"{min(linear):.1f} to {max(loose(ADA, V)):.1f} orders of magnitude"
    yield "The variance is at most", said

    p, q, table = POPULATION.input_probs, POPULATION.feature_probs, POPULATION.table
    square = sm.Discrete(table**2, input_probs=p, feature_probs=q)
    fourth = p @ table**4 @ q
    second = POPULATION.expectation(lambda phi: cycle(phi, (0, 1), (0, 1)) ** 2, 2, 2)
    same(square.moments(2)[1], second)
    assert second <= fourth**2
    yield "Fourth moments suffice", f"{second / fourth**2:.2f} of"

    P, Q, n = 5, 4, 2
    rows, columns = (list(itertools.combinations(range(k), n)) for k in (P, Q))
    places = list(itertools.product(rows, columns))
    pairs = itertools.product(places, repeat=2)
    meet = sum(bool(set(i) & set(k) or set(a) & set(b)) for (i, a), (k, b) in pairs)
    share = math.comb(P - n, n) * math.comb(Q - n, n)
    G = len(places) ** 2 - len(places) * share
    assert meet == G
    same(meeting_probability(n, P, Q), G / len(places) ** 2)
    yield "the pairs of cycles that meet", f"{G} of {len(places) ** 2} pairs"

    P, n = 30, 3
    ratio, x = (math.comb(P - n, n) / math.comb(P, n)) ** 2, n**2 * 2 / P
    assert ratio <= math.exp(-x)  # so one minus it is at least, not at most, the next
    said = f"{1 - ratio:.3f}, which is above {1 - math.exp(-x):.3f}"
    yield "the exponential inequality", said, f"below {x:.3f}"

    V = np.mean([cycle_variance(ADA.sample(100, 200, s), 2)[1] for s in range(20)])
    goal = 0.1 * ADA.moments(2)[1]
    rows = 4 * V * 1.5 / (0.1 * goal**2)  # twice as many columns
    same(chebyshev_radius(variance_bound(2, rows, 2 * rows, V), 0.1), goal, 1e-9)
    yield "Chebyshev's inequality", f"{power(rows, 0)} rows"

    falls = []
    for size in (20, 80):
        phis = [sm.Linear(5, scale=0.2).sample(size, size, seed) for seed in range(300)]
        found = [(sm.increasing(phi, 3)[2], sm.all_cycles(phi, 3)[2]) for phi in phis]
        falls.append([np.var([a for a, _ in found]), np.var([a - b for a, b in found])])
    whole, difference = np.array(falls[0]) / falls[1]
    assert difference > 16 > whole  # sixteen is the square of the growth of the sides
    yield "Strongly consistent", f"{whole:.0f} times", f"{difference:.0f} times"

    x, w = np.random.default_rng(0).standard_normal((2, 2, 100_000, 3))
    size = abs(math.prod((a * b).sum(1) for a in x for b in w)).mean()
    assert size < 9
    yield "is integrable over the features", f"{size:.1f}, below"


# --- eigenvalues --------------------------------------------------------------------------


def errors_of(panel, *methods):
    "Mean errors of our eigenvalues and of others, in a stored panel."
    found = stored("spectrum")["panels"][panel]["methods"]
    ours = "increasing" if "increasing" in found else "ours"
    return [found[method]["error"] for method in (ours, *methods)]


def printed_program(m, d, b, G=500):
    "The program of the paper, line by line, and its quantiles."
    s, n, k = np.linspace(0, b, G), np.arange(1, len(m) + 1), len(m)
    rows = np.hstack([s ** n[:, None], np.eye(k), -np.eye(k)])
    one = np.append(np.ones(G), np.zeros(2 * k))
    p = linprog(1 - one, A_eq=np.vstack([rows, one]), b_eq=np.append(m, 1)).x[:G]
    where = np.searchsorted(np.cumsum(p), np.arange(d, 0, -1) / (d + 1) - 1e-9)
    return s[np.minimum(where, G - 1)]


def eigenvalues():
    m = sm.Linear(20, scale=0.3).moments(10)
    errors = [abs(printed_program(x, 20, 0.6) - 0.3).mean() for x in (m, m / 20)]
    said = f"{errors[0]:.3f} as printed and {errors[1]:.3f}"
    yield "A linear program finds the eigenvalues", said

    curve, sizes = stored("spectrum")["curve"], stored("spectrum")["settings"]["curve"]
    at = sizes["sizes"].index(100)
    bound, error = curve["bound 4"][at], curve["error 4"][at][0]
    assert bound > 20  # the error of any guess
    same(1 + math.sqrt(2), 2.414, 1e-3)
    said = f"{bound:.0f}, against", f"a measured {error:.1f}"
    yield "The recovered eigenvalues are off by at most", *said

    process = sm.Linear(20, scale=0.3)
    same(process.moments(5), 20 * 0.3 ** np.arange(1.0, 6))
    x = np.random.default_rng(0).standard_normal((5000, 20))
    values = np.linalg.eigvalsh(0.3 * x.T @ x / 5000)
    said = f"{values.min():.2f} to {values.max():.2f}"
    yield "The linear process has $d$ eigenvalues", said

    others = ("kv", "empirical", "constant")
    mean, kv, singular, constant = errors_of("linear 100 x 100", *others)
    assert constant < mean < kv < singular
    said = f"{mean:.2f}; that of Kong and Valiant's is {kv:.2f}"
    said = said, f"singular values {singular:.2f}", f"has {constant:.2f}"
    yield "matches the true one closely", *said

    spread = stored("spectrum")["panels"]["Fourier 20 x 20"]["relative_sd"][9]
    mean, constant = errors_of("Fourier 20 x 20", "constant")
    assert mean > constant
    said = f"{mean:.2f}, that of a constant {constant:.2f}"
    yield "The first $50$ eigenvalues", power(spread, 0), said

    values = sm.RBF(1, input_cov=400.0, kernel_cov=1.0).eigenvalues(3)
    ratio = values[1] / values[0]
    same(values[2], values[1] * ratio)
    first = rf"${values[0]:.4f} \times {ratio:.3f}^{{\,i-1}}$"
    said = f"a factor of {1 / values[0]:.1f}"
    yield "The caption gives the $i$-th eigenvalue", first, said

    study = stored("spectrum")["sensitivity"]
    error = {key: [x[0] for x in study[key]] for key in ("count", "n_grid", "orders")}
    words = [f"{min(x):.1f} to {max(x):.1f}" for x in error.values()]
    assert np.ptp(error["n_grid"]) < 0.1 * np.mean(error["n_grid"])
    yield "sensitive to $d$ and to", *words

    errors = errors_of("two levels 100 x 100", "empirical", "constant")
    said = "{:.1f}, against {:.1f} and {:.1f}".format(*errors)
    yield "reconstructs spectra in general", said


# --- the RBF operator ---------------------------------------------------------------------


def two_covariances():
    "Covariances that do not commute, and the eigenvalues eta."
    S_x, S = np.array([[2.0, 0.9], [0.9, 0.5]]), np.array([[1.0, -0.6], [-0.6, 0.7]])
    assert abs(S_x @ S - S @ S_x).max() > 0.1
    return S_x, S, np.linalg.eigvals(S_x @ np.linalg.inv(S))


def golden_like(eta):
    return (1 + np.sqrt(1 + 4 * eta)) / (2 * eta)


def chain_determinant(n, S_x, S, links):
    "The Gaussian integral around a chain of inputs with this many links."
    M = np.kron(np.eye(n), np.linalg.inv(S_x))
    for i in range(links):
        step = np.zeros((1, n))
        step[0, i] += 1
        step[0, (i + 1) % n] -= 1
        M += np.kron(step.T @ step, np.linalg.inv(S))
    return (np.linalg.det(S_x) ** n * np.linalg.det(M)) ** -0.5


def rbf_operator():
    x, (sine, _), (cosine, _) = both_features()
    kernel = np.exp(-((x[:, None] - x) ** 2) / 2)
    same(sine, kernel, 1e-10)
    same(cosine, kernel, 1e-10)
    yield ("Sines with a random phase",)

    S_x, S, eta = two_covariances()
    product = S_x @ np.linalg.inv(S)
    lowest = np.linalg.eigvalsh((product + product.T) / 2)[0]
    assert np.isrealobj(eta) and (eta > 0).all() and lowest < 0
    yield "is positive definite, with eigenvalues", f"{lowest:.2f}"

    process = sm.RBF(2, input_cov=S_x, kernel_cov=S)
    values, z = process.eigenvalues(30), golden_like(eta)
    u = np.array(list(itertools.product(range(40), repeat=2)))
    formula = 1 / np.prod(eta ** (1 + u) * z ** (1 + 2 * u), axis=1)
    same(values, np.sort(formula)[::-1][:30], 1e-10)
    golden = sm.RBF(2).eigenvalues(3)  # (0, 0), then (0, 1) and (1, 0)
    assert golden[0] > golden[1]
    same(golden[1], golden[2])
    yield ("one eigenvalue for each $u$",)

    same(values[0], 1 / np.prod(eta * z), 1e-10)
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    weights = weights / weights.sum()
    kernel = np.exp(-((nodes[:, None] - nodes) ** 2) / 2)
    values = sm.RBF(1).eigenvalues(7)
    same(np.linalg.eigvals(kernel * weights).real.max(), values[0], 1e-10)
    yield ("The largest eigenvalue is that of $u = 0$",)

    f, some = hermite_functions(nodes, 6, math.sqrt(5)), abs(nodes) < 5  # equal covariances
    weighted = f * weights[:, None]
    same(weighted.T @ f, np.eye(7), 1e-9)
    same((kernel @ weighted)[some], (f * values)[some], 1e-8)
    yield ("The eigenfunctions are",)

    n, truth = np.arange(1, 8)[:, None], process.moments(7)
    same(truth, np.prod(1 / (eta**n * z**n - z ** (-n)), axis=1), 1e-10)
    for any_process in (process, ADA, sm.RBF(10)):
        same(any_process.moments(1), 1)
    yield ("The moments are a product over dimensions",)

    for d in (1, 2):
        same(
            power_sums(sm.RBF(d).eigenvalues(4000), 5)[1:], sm.RBF(d).moments(5)[1:], 1e-10
        )
    yield ("The Taylor series of the moments",)

    for n in (2, 3, 5):
        same(chain_determinant(n, S_x, S, n), truth[n - 1], 1e-10)
        q, x = np.arange(1, n + 1), 1.7
        cosines = np.prod(x**2 - 2 * np.cos(2 * np.pi * q / n) * x + 1)
        same(cosines, (x**n - 1) ** 2, 1e-10)
    cut = chain_determinant(3, S_x, S, 2) / truth[2]
    yield "The derivation of the moments", f"{cut:.1f} times"

    golden, n = golden_like(1.0), np.arange(1.0, 6)
    same(golden, (1 + math.sqrt(5)) / 2)
    for d in (1, 2, 3):
        levels = [(golden ** -(d + 2 * s), math.comb(s + d - 1, s)) for s in range(5)]
        values = np.repeat(*map(np.array, zip(*levels)))
        same(sm.RBF(d).eigenvalues(len(values)), values, 1e-10)
        same(sm.RBF(d).moments(5), (golden**n - golden**-n) ** -float(d), 1e-10)
    printed = golden ** -np.arange(1.0, 100)  # one dimension, multiplicity one
    yield "With equal covariances", f"{printed.sum():.2f} in place of"

    fall = [sm.RBF(d).moments(2)[1] for d in (1, 2, 3)]
    same(fall[1:], [fall[0] ** 2, fall[0] ** 3])
    yield "fall exponentially with the dimension", f"a factor of {1 / fall[0]:.2f}"


# --- the comparison -----------------------------------------------------------------------


def relative_mse(study, method, *of, ours="increasing"):
    "Mean squared errors of a stored comparison, over ours."
    return moments(study, method, *of).mse / moments(study, ours, *of).mse


def one_side(study, method, size, digits=1):
    t = read_study(RESULTS / f"comparison_{study}.json")[1]
    t = select(t, method=method, quantity="moment", n=2, **{size: [75, 1200]})
    t = t[np.argsort(t[size])]
    return [f"{value:.{digits}f} with" for value in t.bias / t.truth]


def comparison():
    cycles = moments("main", "increasing")
    spread = np.sqrt(cycles.variance) / cycles.truth
    bias = abs(cycles.bias / cycles.truth)
    said = f"{spread[0]:.2f} at", f"{spread[-1]:.1f} at", f"{100 * bias[0]:.1f}%"
    yield "agree with the true moments", *said

    naive, row, col = (relative_mse("main", method) for method in OTHERS)
    assert (row < naive).all() and (row < col).all()
    yield "The smallest mean squared error", f"{row.max():.0f} to {row.min():.0f} times"

    for study in ("main", "dim10", "small_dim10", "small_dim2"):
        assert all((relative_mse(study, method) > 1).all() for method in OTHERS), study
    ratios = relative_mse("small_dim4", "kv_row")[3:]
    said = "{:.2f}, {:.3f} and {:.3f}".format(*ratios)
    yield "The lowest bias and the lowest variance, in all", said

    values = np.array([0.5, 0.3, 0.1])
    root = math.sqrt((values**2).sum())
    said = f"{root:.2f}, their standard deviation {values.std():.2f}"
    yield "standard deviation of the spectrum", said

    process = sm.RBF(2, kernel_cov=0.5)
    roots = process.moments(40) ** (1 / np.arange(1, 41))
    norm = process.eigenvalues(1)[0]
    assert (np.diff(roots) < 0).all() and roots[-1] > norm
    excess = 100 * (roots / norm - 1)
    yield "approaches the operator norm", f"{excess[1]:.0f}% at", f"{excess[6]:.1f}% at"

    m, r, signed = (
        relative_mse("main", "kv_row", quantity, ours="increasing_10")
        for quantity in ("moment", "positive_root", "root")
    )
    assert (r < m).all()
    yield (
        "Roots show the differences more",
        f"{m.max():.0f} to {m.min():.0f} times that of increasing for moments",
        f"{r.max():.0f} to {r.min():.1f} times for roots",
        f"{signed[-1]:.2f} times",
    )

    kept, dropped = (
        moments("main", "increasing_10", kind) for kind in ("root", "positive_root")
    )
    bias = -100 * kept.bias / kept.truth
    said = f"{bias[0]:.1f}% at", f"{bias[-1]:.0f}% at"
    yield "The root of an unbiased estimate is biased", *said

    row, worst = moments("main", "kv_row", "root").mse, dropped.mse.max()
    assert worst < 1e-5 and (kept.mse[:4] < 1e-5).all()
    assert (kept.mse[-2:] > np.maximum(row[-2:], 1e-5)).all()
    yield "below $10^{-5}$", f"at most {power(worst)}", *map(power, kept.mse[-2:])

    process = sm.RBF(5, kernel_cov=0.25)
    norm = process.eigenvalues(1)[0]
    same(dropped.truth[-1], process.moments(7)[6] ** (1 / 7), 1e-6)
    shares = [t["mean"][-1] / norm for t in (dropped, kept)]
    yield "The seventh root gives", f"{shares[0]:.2f} of the norm", f"{shares[1]:.2f} of it"

    yield "naive and KV-col stay biased", *one_side("features", "kv_col", "Q", 2)
    yield "KV-col converges as features are added", *one_side("features", "kv_row", "Q")
    yield "KV-row converges as inputs are added", *one_side("inputs", "kv_col", "P")

    errors = [biases(study, method).min() for study in STUDIES for method in OTHERS]
    assert min(errors) > 4
    yield "The only unbiased estimator", f"at least {min(errors):.1f} standard errors"

    cycles = moments("main", "increasing_10")
    spread = np.sqrt(cycles.variance)[0] / cycles.bias_se[0]
    yield "confidence interval of $50\\%$", f"{spread:.0f} times"


# --- feature learning ---------------------------------------------------------------------


def learning():
    "Stored moments of the networks, and ratios of means."
    arrays = np.load(RESULTS / "feature_learning.npz")
    names = ("naive", "ours", "powers", "size")
    naive, ours, powers, size = (np.float64(arrays[f"fashion {x}"]) for x in names)
    weight = size ** (2 * np.arange(1, 8))
    weight = weight / weight.mean(axis=0)
    pooled = lambda top: (weight * top).mean(axis=0) / (weight * powers).mean(axis=0)
    return arrays, naive, ours, pooled


def adam(w, a, x, y, rate, steps=10):
    "The paper's network after some steps of Adam; change of its features."
    start, state = np.maximum(x @ w.T, 0), None
    for t in range(1, steps + 1):
        h = np.maximum(x @ w.T, 0)
        g = 2 * (h @ a.T - y) / y.size
        grads = ((g @ a) * (h > 0)).T @ x, g.T @ h
        state = state or [(np.zeros_like(d), np.zeros_like(d)) for d in grads]
        pairs = zip(state, grads)
        state = [(0.9 * m + 0.1 * d, 0.999 * v + 0.001 * d**2) for (m, v), d in pairs]
        fade = 1 - 0.9**t, 1 - 0.999**t
        step = [m / fade[0] / (np.sqrt(v / fade[1]) + 1e-12) for m, v in state]
        w, a = w - rate * step[0], a - rate * step[1]
    change = math.sqrt(len(w)) * (np.maximum(x @ w.T, 0) - start)
    return w, a, math.sqrt((change**2).mean())


def small_network(N, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((40, 12))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = np.eye(3)[rng.integers(3, size=40)]
    w, a = rng.standard_normal((N, 12)), rng.standard_normal((3, N))
    return w / math.sqrt(N), a / math.sqrt(N), x, y


def feature_learning():
    w, a, x, y = small_network(20)
    order = np.random.default_rng(1).permutation(20)
    plain, turned = adam(w, a, x, y, 0.01), adam(w[order], a[:, order], x, y, 0.01)
    same(turned[0], plain[0][order], 1e-9)
    yield ("exchangeable",)

    before = np.maximum(x @ w.T, 0) @ a.T
    after = (math.sqrt(20) * np.maximum(x @ w.T, 0)) @ a.T / math.sqrt(20)
    same(after, before)
    yield ("changes the backward pass",)

    slopes = []
    for power_of in (0.5, 1.0):
        change = [adam(*small_network(N), 0.01 / N**power_of)[2] for N in (64, 256, 1024)]
        slopes.append(np.polyfit(np.log([64, 256, 1024]), np.log(change), 1)[0])
    assert abs(slopes[0]) < 0.15 and abs(slopes[1] + 0.5) < 0.15
    yield "a rate of $0.01/N$", f"$N^{{{slopes[1]:.1f}}}$", f"$N^{{{abs(slopes[0]):.1f}}}$"

    factor = (0.5 / (0.5 - 1 / (2 * np.pi))) ** 2
    phi = np.maximum(sm.Linear(30, scale=1 / 30).sample(400, 400, random_state=0), 0)
    found = sm.naive(phi / phi.std(), 2)[1] / sm.naive(phi / np.sqrt((phi**2).mean()), 2)[1]
    assert found == pytest.approx(factor, rel=0.1)
    yield "divided by the standard deviation", f"a factor of {factor:.2f}"

    arrays, naive, ours, pooled = learning()
    about = stored("feature_learning")["fashion"]
    spread = lambda m: (m.std(axis=0, ddof=1) / m.mean(axis=0))[:, 1:]
    plain = spread(naive.mean(axis=0)) / spread(ours.mean(axis=0))
    end, early = spread(pooled(naive))[-1] / spread(pooled(ours))[-1], plain[5]
    assert about["epochs"][5] == 10 and (end > 1).all() and (early[1:] < 1).all()
    yield (
        "agree across widths",
        f"Over {len(about['seeds'])} seeds",
        f"{end.min():.1f} to {end.max():.1f} times",
        f"{plain[-1].min():.1f} to {plain[-1].max():.1f} times",
        f"{1 / early[-1]:.1f} times as much",
    )

    subsets = arrays["fashion subsets"]
    median = (subsets[:, -1, 2, 4] / arrays["fashion whole ours"][:, -1]).mean(axis=0)
    said = f"{median[1]:.2f} of the layer's $m(2)$", f"{median[6]:.2f} of its $m(7)$"
    yield "match those of all of them, at every epoch", *said

    naive_ones = subsets[:, :, 0, :, 1:]  # over the layer's size
    mean, low, high = naive_ones[:, :, 0], naive_ones[:, :, 3], naive_ones[:, :, 5]
    outside = 100 * ((mean < low) | (mean > high)).mean(axis=(0, 2))
    yield "outside the shaded half", "in {:.0f}%, {:.0f}% and {:.0f}%".format(*outside)

    as_printed = ours.mean(axis=0)[2] / ours.mean(axis=0)[-1]  # widths 128 and 1024
    others = [np.delete(ours, seed, axis=0).mean(axis=0) for seed in range(len(ours))]
    error = np.std([m[2, -1, 1] / m[-1, -1, 1] for m in others]) * math.sqrt(len(ours) - 1)
    assert as_printed[-1, 1] - 1 > 4 * error
    words = ["{:.2f}, {:.2f} and {:.2f} times".format(*as_printed[-1, 1:4])]
    words += [f"standard error {error:.2f}", f"{as_printed[-1, 6]:.2f} times"]
    words.append(f"{as_printed[about['epochs'].index(20), 6]:.2f} times")
    for top in (ours, naive):  # at the end of training
        apart = (pooled(top)[2, -1] / pooled(top)[-1, -1])[1:]
        words.append(f"{apart.min():.2f} to {apart.max():.2f} times")
    yield "also match those of small networks", *words


# --- discussion ---------------------------------------------------------------------------


def discussion():
    values = ADA.eigenvalues(100_000)
    ridge, n = 0.1 * values[0], np.arange(1, 11)
    truth = (values / (values + ridge)).sum()
    series = (ADA.moments(10) * (-1.0) ** (n - 1) / ridge**n).sum()
    case = stored("spectrum")["coverage"]["Fourier 150 x 300"]
    bounds = case["effective_dimension"]["0.1"]
    assert bounds["truth"] == pytest.approx(truth, rel=1e-3)
    said = f"it is {truth:.0f},", f"give {power(abs(series), 0)}"
    yield "effective dimension", *said, f"{bounds['low']:.2f} to {bounds['high']:.2f} times"


SECTIONS = {
    "Abstract and introduction": introduction,
    "The operator": operator,
    "The naive estimator": naive_estimator,
    "Related work": related_work,
    "The estimator": estimator,
    "Dynamic programming": dynamic_programming,
    "Noise": noise,
    "Variance and consistency": variance,
    "Eigenvalues from moments": eigenvalues,
    "The RBF operator": rbf_operator,
    "The comparison": comparison,
    "Feature learning": feature_learning,
    "Discussion": discussion,
}


CHECKED = {  # claims of each part that are not open
    heading: [x for x in claims_of(PARTS[heading]) if "**Open.**" not in x[1]]
    for heading in SECTIONS
}


@cache
def results(heading):
    "What the checks of a part yield, and the error that ended them, if one did."
    found = []
    try:
        for one in SECTIONS[heading]():
            found.append(one)
    except Exception as error:
        found.append(error)
    return found


@pytest.mark.parametrize(
    ("heading", "number"),
    [(heading, number) for heading, all_ in CHECKED.items() for number in range(len(all_))],
)
def test_claim(heading, number):
    "What the page says of this claim is what comes out, and it says nothing else."
    (title, text), found = CHECKED[heading][number], results(heading)
    if number >= len(found):
        pytest.fail(f"not reached, an earlier check of this part failed: {title}")
    if isinstance(found[number], Exception):
        raise found[number]
    words, *phrases = found[number]
    assert words in title
    for phrase in phrases:
        whole = rf"(?<![\d.]){re.escape(phrase)}(?!\d|\.\d)"
        assert re.search(whole, text), f"{phrase!r} is not in: {text}"
        text = re.sub(whole, " ", text, count=1)
    unchecked = re.findall(r"(?<![A-Za-z])\d[\d.,]*", without_formulas(text))
    assert not unchecked, (words, unchecked)


def test_every_claim_is_checked():
    assert [x for x in PARTS if claims_of(PARTS[x])] == [*SECTIONS]
    assert all(len(results(x)) == len(CHECKED[x]) for x in SECTIONS)


def test_citation_has_the_version():
    assert f"version = {{{sm.__version__}}}" in (ROOT / "nbs/references.md").read_text()
