"""The page of claims: complete, linked, and every number on it computed again.

Each claim has one check, a function marked `@claim("words of the claim")`. It computes,
from the stored studies or live, and returns the phrases that the page must contain. Every
number on the page that is not part of a formula has to be in one of these phrases, so that
a wrong number, and a number that nobody checks, both fail.
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
from spectral_moments.teaching.cycles import mean_over_increasing, second_moment
from spectral_moments.teaching.paper_algorithms import algorithm_a1, algorithm_a2
from spectral_moments.teaching.rbf_spectrum import hermite_functions
from spectral_moments.teaching.recursion import algorithm_1, cumulative
from spectral_moments.teaching.variance import (
    chebyshev_radius,
    cycle_variance,
    meeting_probability,
    variance_bound,
)

PAGE = (ROOT / "nbs/claims.md").read_text()
ENTRIES = re.findall(r"(?m)^(?!:)(\S.*)\n: (.*)$", PAGE)
VERDICTS = ("Confirmed", "Corrected", "Open")
CHECKS = {}


def claim(words):
    "Register the check of the one claim that holds these words."

    def keep(check):
        assert words not in CHECKS, words
        CHECKS[words] = check
        return check

    return keep


def entry(words):
    "The text under the one claim that holds these words."
    (text,) = [body for title, body in ENTRIES if words in title]
    return text


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


def test_every_claim_has_a_verdict_and_a_link():
    assert PAGE.count("\n: ") == len(ENTRIES)
    for title, body in ENTRIES:
        assert re.match(r"\*\*(Confirmed|Corrected|Open)\.\*\* ", body), title
        links = re.findall(r"\]\(([^)]+)\)", body)
        assert links, title
        for link in links:
            file, _, anchor = link.partition("#")
            file = file or "claims.md"
            assert (ROOT / "nbs" / file).exists(), (title, link)
            assert not anchor or anchor in headings(ROOT / "nbs" / file), (title, link)


def test_count():
    counts = [sum(f"**{verdict}.**" in body for _, body in ENTRIES) for verdict in VERDICTS]
    confirmed, corrected, still_open = counts
    said = f"Of {sum(counts)} claims {confirmed} are confirmed, {corrected} corrected"
    assert f"{said} and {still_open} open." in PAGE


def test_every_claim_is_checked():
    for title, body in ENTRIES:
        checks = [words for words in CHECKS if words in title]
        assert len(checks) == (0 if "**Open.**" in body else 1), (title, checks)
    for words in CHECKS:
        assert sum(words in title for title, _ in ENTRIES) == 1, words


@pytest.mark.parametrize("words", CHECKS)
def test_claim(words):
    "What the page says of this claim is what comes out, and it says nothing else."
    text = entry(words)
    phrases = CHECKS[words]()
    assert not isinstance(phrases, str), "a list of phrases"
    for phrase in phrases:
        whole = rf"(?<![\d.]){re.escape(phrase)}(?!\d|\.\d)"
        assert re.search(whole, text), f"{phrase!r} is not in: {text}"
        text = re.sub(whole, " ", text, count=1)
    text = re.sub(r"\]\([^)]*\)|\{[a-z:]+\}`[^`]*`|`[^`]*`|\$[^$]*\$", " ", text)
    unchecked = re.findall(r"(?<![A-Za-z])\d[\d.,]*", text)
    assert not unchecked, unchecked


def test_open_claims_have_no_numbers():
    for title, body in ENTRIES:
        if "**Open.**" in body:
            text = re.sub(r"\]\([^)]*\)|\{[a-z:]+\}`[^`]*`|\$[^$]*\$", " ", body)
            assert not re.search(r"\d", text), title


# --- helpers ------------------------------------------------------------------------------

STUDIES = ["main", "features", "inputs", "dim10", "small_dim10", "small_dim4", "small_dim2"]
POPULATION = sm.Discrete([[1.0, -1.0], [2.0, 0.5]], feature_probs=[0.4, 0.6])
ADA = sm.RBF(3, kernel_cov=0.25)


def moments(study, method, quantity="moment", **where):
    "Rows of a stored comparison, by order from 2 to 7."
    table = read_study(RESULTS / f"comparison_{study}.json")[1]
    return select(table, method=method, quantity=quantity, n=range(2, 8), **where)


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


def cycle(phi, rows, columns):
    "The product of the entries around one cycle."
    following = (*rows[1:], rows[0])
    steps = zip(rows, following, columns, strict=True)
    return math.prod(phi[i, a] * phi[j, a] for i, j, a in steps)


# --- abstract and introduction ------------------------------------------------------------


@claim("depends on the size of the matrix")
def _():
    naive = moments("main", "naive")
    ratio = 1 + naive.bias / naive.truth
    return f"{ratio[0]:.1f} times the truth", f"seventh {ratio[-1]:.0f} times"


@claim("whatever its size")
def _():
    mean = POPULATION.expectation(lambda phi: sm.increasing(phi, 3), 3, 3)
    same(mean, POPULATION.moments(3))
    off = []
    for name in STUDIES:
        table = read_study(RESULTS / f"comparison_{name}.json")[1]
        t = select(table, method="increasing", quantity="moment", n=range(2, 8))
        off += list(abs(t.bias / t.bias_se))
    assert max(off) < 4
    return f"{len(off)} biases", f"the largest is {max(off):.1f} standard errors"


@claim("Kong and Valiant correct for sampled rows")
def _():
    row, col = (moments("main", method) for method in ("kv_row", "kv_col"))
    row, col = (1 + (t.bias / t.truth)[0] for t in (row, col))
    return (f"{row:.1f} (KV-row) and {col:.1f} (KV-col) times",)


@claim("polynomial cost")
def _():
    cycles = math.comb(300, 7) * math.comb(600, 7)
    steps = 2 * 6 * 300**2 / 2 * 600  # two of each, for six orders, below the start row
    return f"{power(cycles)} cycles", f"{power(steps)} additions"


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


@claim("determine the matrices and the kernel")
def _():
    _, (sine, mean), (cosine, other) = both_features()
    same(sine, cosine, 1e-10)
    same(mean, 0)
    return (f"{other[4]:.2f} at the origin",)


@claim("positive definite and bounded")
def _():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, 3))
    assert abs(np.linalg.eigvalsh(x @ x.T)[0]) < 1e-12  # a null vector
    largest = [(rng.standard_normal((n, 3)) ** 2).sum(1).max() for n in (100, 10**6)]
    return f"{largest[0]:.0f} among", f"{largest[1]:.0f} among"


@claim("trace class")
def _():
    values = sm.RBF(1).eigenvalues(80)
    assert (values > 0).all() and (np.diff(values) < 0).all()
    same(values.sum(), 1)
    return ()


@claim("exist at every order")
def _():
    m = ADA.moments(7)
    assert (m <= m[0] ** np.arange(1, 8)).all()
    return f"{m[1]:.3f} at", f"{power(m[6])} at"


@claim("around a cycle of inputs")
def _():
    p, kernel = POPULATION.input_probs, (POPULATION.table * POPULATION.feature_probs)
    kernel = kernel @ POPULATION.table.T
    values = np.linalg.eigvals(kernel * p)
    direct = [
        sum(
            p[list(c)].prod() * math.prod(kernel[i, j] for i, j in zip(c, c[1:] + c[:1]))
            for c in itertools.product(range(2), repeat=n)
        )
        for n in range(1, 5)
    ]
    same(direct, [(values**n).sum().real for n in range(1, 5)])
    return ()


@claim("by the poles of")
def _():
    values = ADA.eigenvalues(20_000)
    z = 2 * values[0]
    series = (ADA.moments(60) * z ** -np.arange(1.0, 61)).sum()
    assert abs(series - (values / (z - values)).sum()) < 1e-3 * series  # the tail is cut
    few = values[:5]
    m = (few ** np.arange(1, 61)[:, None]).sum(1)
    same((m * z ** -np.arange(1.0, 61)).sum(), (few / (z - few)).sum())
    near = few[1] * (1 + 1e-9)
    same((near - few[1]) * (few / (near - few)).sum() / few[1], (few == few[1]).sum(), 1e-6)
    return ()


@claim("Newton's identities")
def _():
    from spectral_moments.processes import power_sums
    from spectral_moments.spectrum.feasible import newton_eigenvalues

    known = np.array([1.0, 0.6, 0.3, 0.1])
    same(newton_eigenvalues(power_sums(known, 4)), known, 1e-10)
    spoiled = newton_eigenvalues(power_sums(known, 4) * [1, 1, 1, 1 + 1e-6])
    lost = np.log10(abs(spoiled / known - 1).max() / 1e-6)
    twelve = np.linspace(1, 0.1, 12)
    error = abs(newton_eigenvalues(power_sums(twelve, 12)) / twelve - 1).max()
    assert 1e-9 < error < 1e-7
    return (f"{lost:.1f} digits",)


@claim("covariance operator")
def _():
    p, q = POPULATION.input_probs, POPULATION.feature_probs
    a = np.sqrt(p)[:, None] * POPULATION.table * np.sqrt(q)
    same(trace_powers(a @ a.T, 5), trace_powers(a.T @ a, 5))
    same(trace_powers(a.T @ a, 5), POPULATION.moments(5))
    return ()


# --- the naive estimator ------------------------------------------------------------------


@claim("makes the entries correlated")
def _():
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=2)))
    process = sm.Discrete(corners @ corners.T)
    places = list(itertools.product(range(2), repeat=2))
    second = process.expectation(lambda phi: np.outer(phi, phi), 2, 2)
    same(second, 2 * np.eye(len(places)))  # zero but for an entry with itself
    four = process.expectation(np.prod, 2, 2)
    same(four, process.moments(2)[1])
    return (f"is {four:.0f}, not 0",)


@claim("grows like the power")
def _():
    process = sm.RBF(1)
    growth = []
    for few, many in ((10, 20), (1000, 2000)):
        phi = process.sample(many, 500, random_state=0)
        small, large = (
            np.trace(np.linalg.matrix_power(x @ x.T / 500, 3)) for x in (phi[:few], phi)
        )
        growth.append(large / small)
    return (f"{growth[1]:.1f}-fold",)


@claim("converges as both sizes grow")
def _():
    process, error = sm.RBF(1), []
    for size, count in ((10, 400), (100, 100), (1000, 10)):
        found = [sm.naive(process.sample(size, size, seed), 3)[2] for seed in range(count)]
        square = (np.array(found) / process.moments(3)[2] - 1) ** 2
        error.append(100 * np.sqrt(square.mean()))
    return ("{:.0f}%, {:.0f}% and {:.0f}%".format(*error),)


@claim("order $1$ is unbiased")
def _():
    mean = POPULATION.expectation(lambda phi: sm.naive(phi, 1), 2, 3)
    same(mean, POPULATION.moments(1))
    rectified = np.maximum(np.random.default_rng(0).standard_normal(10**6), 0)
    exact = 0.5 / (0.5 - 1 / (2 * np.pi))
    assert (rectified**2).mean() / rectified.var() == pytest.approx(exact, rel=0.01)
    return (f"a factor of {exact:.2f}",)


def four_terms(P, Q):
    "The terms of the mean naive second moment: no repetition, a row, a column, both."
    p, q, phi = POPULATION.input_probs, POPULATION.feature_probs, POPULATION.table
    kernel, mirror = (phi * q) @ phi.T, phi.T @ (phi * p[:, None])
    none = np.einsum("i,j,ij->", p, p, kernel**2)
    row, column = p @ np.diag(kernel) ** 2, q @ np.diag(mirror) ** 2
    both = p @ phi**4 @ q
    weights = ((P - 1) * (Q - 1), Q - 1, P - 1, 1)
    return np.array([none, row, column, both]) * weights / (P * Q)


@claim("From order $2$ on it is biased")
def _():
    for P, Q in ((3, 3), (2, 4)):
        mean = POPULATION.expectation(lambda phi: sm.naive(phi, 2), P, Q)[1]
        same(four_terms(P, Q).sum(), mean)
    return (f"{four_terms(3, 3).sum() / POPULATION.moments(2)[1]:.1f} times",)


@claim("The four terms have the orders")
def _():
    small, large = four_terms(1000, 1000), four_terms(2000, 2000)
    return ("{:.1f}, {:.1f} and {:.1f}".format(*(small / large)[1:]),)


@claim("At every order the bias is")
def _():
    process, rng, bias = sm.RBF(1), np.random.default_rng(0), {}
    truth = process.moments(5)
    for size, count in ((60, 1500), (120, 1000)):
        found = [sm.naive(process.sample(size, size, rng), 5) for _ in range(count)]
        bias[size] = np.mean(found, axis=0) / truth - 1
    ratio = (bias[60] / bias[120])[1:]
    assert (bias[120][1:] > 0).all() and (abs(ratio - 2) < 0.4).all()
    return (f"{ratio.min():.1f} to {ratio.max():.1f} times",)


# --- related work -------------------------------------------------------------------------


@claim("Marchenko and Pastur")
def _():
    phi = np.random.default_rng(0).standard_normal((600, 600))
    found = np.array(trace_powers(phi @ phi.T / 600, 4)) / 600
    catalan = np.array([1, 2, 5, 14])  # the Narayana sums at ratio one
    assert abs(found[1] - 1) > 0.5  # the identity has one
    return (f"within {100 * abs(found / catalan - 1).max():.1f}%",)


@claim("Independent normal entries")
def _():
    for d in (2, 7):
        same(sm.Linear(d, scale=1 / d).moments(6), d ** -np.arange(0.0, 6))
    phi = sm.Linear(10_000, scale=1e-4).sample(400, 400, random_state=0)
    kurtosis = (phi**4).mean() / (phi**2).mean() ** 2
    assert abs(kurtosis - 3 * (1 + 2e-4)) < 0.1
    return ()


@claim("Far beyond the sample")
def _():
    phi = sm.Linear(10_000, scale=1e-4).sample(60, 90, random_state=0)
    noise = np.random.default_rng(1).standard_normal((60, 90))
    found, pure = sm.naive(phi, 4), sm.naive(noise, 4)
    assert (abs(found / pure - 1) < 0.2).all()
    ratio = found * 10_000.0 ** np.arange(4)
    return (f"{ratio[1]:.0f} times the truth",)


@claim("sketches of a fixed matrix")
def _():
    F = np.array([[1.0, 2.0, -1.0], [0.5, -1.0, 3.0], [2.0, 0.0, 1.0]])
    signs = [np.array(s).reshape(3, 3) for s in itertools.product((-1.0, 1.0), repeat=9)]
    found = np.mean([sm.kong_valiant(x @ F, 3) for x in signs], axis=0)
    same(found, trace_powers(F @ F.T / 3, 3))
    return ()


def mean_over_rows(statistic):
    "All three features are seen, four inputs of two kinds are drawn, in every way."
    table = np.array([[1.0, 2.0, 4.0], [3.0, 1.0, 0.5]])
    draws = [table[list(i)] for i in itertools.product(range(2), repeat=4)]
    return np.mean([statistic(phi) for phi in draws], axis=0), table


@claim("Its naive estimator is")
def _():
    naive, _ = mean_over_rows(lambda phi: sm.naive(phi, 3))
    printed, _ = mean_over_rows(lambda phi: trace_powers(phi @ phi.T / 3, 3))
    same(printed / naive, 4.0 ** np.arange(1, 4))
    return (f"by {printed[2] / naive[2]:.0f} at",)


@claim("relies on a mean of zero")
def _():
    found, table = mean_over_rows(lambda phi: sm.kong_valiant(phi, 3))
    truth = trace_powers(table @ table.T / 6, 3)
    same(found, truth)
    naive, _ = mean_over_rows(lambda phi: sm.naive(phi, 3))
    assert (naive[1:] > 1.01 * np.array(truth)[1:]).all()  # negative control
    return (f"mean of {table.mean():.1f}",)


@claim("One product alone varies much")
def _():
    phis = [sm.Linear(3).sample(40, 60, random_state=seed) for seed in range(400)]
    one = np.std([(phi[0] @ phi[1] / 60) ** 2 for phi in phis])
    mean = np.std([sm.kong_valiant(phi, 2)[1] for phi in phis])
    return (f"{one / mean:.1f} times",)


@claim("The mean over all sets of rows")
def _():
    words = tuple(("a",) * n for n in range(1, 5))
    every = lambda phi: word_means(
        {"a": Pair(phi, phi)}, words, population={"features": phi.shape[1]}
    )
    phi = np.random.default_rng(0).standard_normal((6, 4))
    gram = phi @ phi.T / 4
    rows = itertools.permutations(range(6), 4)
    chains = [math.prod(gram[i, j] for i, j in zip(c, c[1:] + c[:1])) for c in rows]
    same(every(phi).values[3], np.mean(chains), 1e-10)
    phis = [sm.RBF(10).sample(12, 400, seed) for seed in range(200)]
    one = np.std([sm.kong_valiant(phi, 4)[3] for phi in phis])
    return (f"{one / np.std([every(phi).values[3] for phi in phis]):.1f} times",)


@claim("Products of a triangular matrix")
def _():
    phi = np.random.default_rng(1).standard_normal((7, 5))
    gram = phi @ phi.T / 5
    for n in (2, 3, 4):
        rows = list(itertools.combinations(range(7), n))
        chains = [math.prod(gram[i, j] for i, j in zip(c, c[1:] + c[:1])) for c in rows]
        upper = np.linalg.matrix_power(np.triu(gram, 1), n - 1)
        same(np.trace(upper @ gram) / math.comb(7, n), np.mean(chains))
        same(sm.kong_valiant(phi, n)[-1], np.mean(chains))
    return ()


@claim("If neither side is complete")
def _():
    m = POPULATION.moments(2)[1]
    row = POPULATION.expectation(lambda phi: sm.kong_valiant(phi, 2)[1], 3, 3)
    col = POPULATION.expectation(lambda phi: sm.kong_valiant(phi.T, 2)[1], 3, 3)
    p, q, phi = POPULATION.input_probs, POPULATION.feature_probs, POPULATION.table
    same(row, m + (q @ (p @ phi**2) ** 2 - m) / 3)
    same(col, m + (p @ (phi**2 @ q) ** 2 - m) / 3)
    return (f"{row / m:.2f} and {col / m:.2f} times",)


# --- the estimator ------------------------------------------------------------------------


@claim("The product around one cycle")
def _():
    for index in ((0, 1), (0, 1, 2)):
        n, product = len(index), partial(cycle, rows=index, columns=index)
        same(POPULATION.expectation(product, n, n), POPULATION.moments(n)[-1])
    repeated = POPULATION.expectation(lambda phi: cycle(phi, (0, 1, 0), (0, 1, 2)), 2, 3)
    return (f"{repeated / POPULATION.moments(3)[-1]:.1f} times",)


@claim("factor by factor")
def _():
    p, kernel = POPULATION.input_probs, POPULATION.table * POPULATION.feature_probs
    product = (p @ (kernel @ POPULATION.table.T) @ p) ** 3
    return (f"{product / POPULATION.moments(3)[2]:.2f} times",)


@claim("distinct coefficients")
def _():
    for n in range(2, 6):
        index = range(n)
        entries = {(i, i) for i in index} | {((i + 1) % n, i) for i in index}
        assert len(entries) == 2 * n
        for axis in (0, 1):
            assert all(sum(e[axis] == i for e in entries) == 2 for i in index)
    return ()


@claim("over all disjoint cycles lowers the variance")
def _():
    phis = [sm.Linear(3).sample(20, 30, random_state=seed) for seed in range(400)]
    one = np.std([cycle(phi, (0, 1, 2), (0, 1, 2)) for phi in phis])
    every = np.std([sm.all_cycles(phi, 3)[2] for phi in phis])
    return (f"{one / every:.0f} times",)


@claim("closed form at order $2$")
def _():
    phi = np.random.default_rng(2).standard_normal((4, 5))
    rows, columns = itertools.permutations(range(4), 2), itertools.permutations(range(5), 2)
    direct = [cycle(phi, *pair) for pair in itertools.product(rows, columns)]
    same(second_moment(phi), np.mean(direct))
    return ()


@claim("Summing over all of them")
def _():
    cases = stored("auto_choice")["cases"]
    cost = cases["between"]["methods"]["all_cycles"]["cost"]
    assert cases["between"]["shape"] == [75, 150]
    return f"{cost[3]:.1f} matrix products", f"{cost[4]:.1f} at"


@claim("Restricted to increasing indices")
def _():
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
    return (f"one in {1 / (2 * share):.0f}",)


@claim("The recursion for the partial sums")
def _():
    phi = np.random.default_rng(4).standard_normal((5, 6))
    direct = [mean_over_increasing(phi, n) for n in range(1, 5)]
    same(algorithm_1(phi, 4), direct)
    return ()


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


@claim("in place, in one matrix")
def _():
    phi = np.random.default_rng(5).standard_normal((5, 6))
    truth = mean_over_increasing(phi, 3)
    same(in_place(phi, 3, reversed), truth)
    assert abs(in_place(phi, 3, iter) / truth - 1) > 0.1  # from the front it goes wrong
    return (f"{7 * 600} numbers in place of {300 * 600}",)


@claim("The first moment is estimated as before")
def _():
    phi = ADA.sample(20, 30, random_state=0)
    same(sm.increasing(phi, 1), sm.naive(phi, 1))
    return ()


@claim("Normalising at every step")
def _():
    single, double = float(np.finfo(np.float32).max), float(np.finfo(float).max)
    counts = [math.comb(300, n) * math.comb(600, n) for n in range(1, 301)]
    assert max(counts) < double  # at this size single precision alone overflows
    first = next(n for n, count in enumerate(counts, 1) if count > single)
    return (f"order {first} on",)


@claim("vectorised")
def _():
    phi = ADA.sample(12, 15, random_state=0)
    same(cumulative(phi, 5), algorithm_1(phi, 5), 1e-10)
    return (f"{8 * 300**2 * 600 / 1e9:.2f} GB",)


@claim("on the transpose")
def _():
    recording = ADA.sample(200, 400, random_state=3)
    for phi in (recording, recording[:20, :40]):
        flipped = sm.increasing(phi[::-1, ::-1].T, 3)
        same(flipped, sm.increasing(phi, 3), 1e-10)
    plain = sm.increasing(recording.T, 3) / sm.increasing(recording, 3)
    same(plain[:2], 1, 1e-10)
    corner = recording[:20, :40]
    assert sm.increasing(corner.T, 3)[2] * sm.increasing(corner, 3)[2] < 0
    return (f"by {100 * abs(plain[2] - 1):.1f}%",)


@claim("Permuting rows and columns")
def _():
    cases = list(stored("cycles_rmse")["cases"].values())
    one, ten, every = (
        np.sqrt([case["results"][k]["mse"][3] for case in cases])
        for k in ("1", "16", "all_cycles")
    )
    text = f"{(one / ten)[0]:.1f} times", f"{(one / every)[0]:.1f} times"
    return (*text, f"{(one / every)[1]:.2f} times")


# --- noise --------------------------------------------------------------------------------


def noisy(shape, situation, method="increasing"):
    "Mean over truth, standard error over truth and mean squared error of a stored study."
    case = stored("noise")["shapes"][shape]
    truth, row = np.array(case["truth"]), case["rows"][situation][method]
    mean, se, variance = (np.array(row[key]) for key in ("mean", "se", "variance"))
    return mean / truth, se / truth, (mean - truth) ** 2 + variance


@claim("Independent noise does no harm")
def _():
    mean, se, _ = noisy("75 x 150", "independent, T = 1")
    assert (abs(mean - 1) < 4 * se)[1:].all() and mean[0] - 1 > 100 * se[0]
    return (
        f"{mean[0]:.2f} times the truth",
        f"{mean[1]:.2f} times",
        f"is {mean[0] ** 2:.1f} times",
    )


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


@claim("Two trials, taken in turn")
def _():
    truth = POPULATION.moments(2)[1]
    for axis in (0, 1):
        same(shared_noise((0, 1, 0, 1), axis), truth)
        assert shared_noise((0, 0, 0, 0), axis) > 1.5 * truth  # negative control
    return (f"{shared_noise((0, 0, 0, 0), 0) / truth:.1f} times",)


@claim("necessary and sufficient")
def _():
    for sequence in itertools.product(range(2), repeat=4):
        good = all(a != b for a, b in zip(sequence, sequence[1:] + sequence[:1]))
        exact = [
            abs(shared_noise(sequence, axis) - POPULATION.moments(2)[1]) < 1e-12
            for axis in (0, 1)
        ]
        assert all(exact) == good
    gains = itertools.product((0.5, 1.5), repeat=2)
    factor = np.mean([(a * b) ** 2 for a, b in gains])
    same(factor, (1 + 0.5**2) ** 2)
    return (f"by {factor:.2f} at",)


@cache
def noisy_trials():
    "Estimates of four noisy trials: one pair, all pairs in turn, and halves."
    process, rng = sm.Linear(2), np.random.default_rng(3)
    found = []
    for _ in range(400):
        x = process.sample(16, 20, rng) + 4 * rng.standard_normal((4, 16, 20))
        pairs = [
            sm.increasing(x[[s, t]], 4) for s, t in itertools.combinations(range(4), 2)
        ]
        found.append([pairs[0], np.mean(pairs, axis=0), sm.increasing(x, 4)])
    return np.std(found, axis=0)[:, 1:]


@claim("More trials denoise further")
def _():
    pair, _, halves = noisy_trials()
    return (f"{(pair / halves).min():.1f} to {(pair / halves).max():.1f} times",)


@claim("drawing pairs of trials")
def _():
    _, pairs, halves = noisy_trials()
    return ("{:.1f}, {:.1f} and {:.1f} times".format(*pairs / halves),)


@claim("Algorithms A1 and A2")
def _():
    rng = np.random.default_rng(2)
    first, second = rng.standard_normal((2, 5, 6))
    turned = [
        np.mean(
            [
                math.prod(
                    first[i, a] * second[j, a]
                    for i, j, a in zip(rows, (*rows[1:], rows[0]), columns)
                )
                for rows in itertools.combinations(range(5), n)
                for columns in itertools.combinations(range(6), n)
            ]
        )
        for n in (2, 3, 4)
    ]
    same(algorithm_a1(first, second, 4), turned, 1e-10)
    equal = algorithm_a2(np.repeat(first[None], 3, axis=0), 4, random_state=1)
    same(equal, sm.increasing(first, 4)[1:], 1e-10)
    return ()


@claim("The setting of the noise figure")
def _():
    from spectral_moments.teaching.paper_algorithms import smoothed_noise

    noise = smoothed_noise(1, 20_000, 15, 1)[0]
    correlation = noise.T @ noise / len(noise)
    assert correlation[0, 1] > 0.8 and abs(correlation[0, 11:]).max() < 0.05
    return (f"{correlation[0, 1]:.2f} between neighbours",)


@claim("two trials suffice against correlated noise")
def _():
    off = []
    for shape in ("75 x 150", "75 x 15"):
        mean, se, _ = noisy(shape, "correlated, T = 2")
        off += list(abs((mean - 1) / se))
    one = noisy("75 x 150", "correlated, T = 1")[0][1]
    assert max(off) < 4 and stored("noise")["settings"]["n_matrices"] == 4000
    return f"{max(off):.1f} standard errors", f"{one:.1f} times the truth"


@claim("The other estimators can alternate too")
def _():
    words = []
    for method in ("naive", "kv_row", "kv_col"):
        rows = ("no noise", "correlated, T = 1", "correlated, T = 2")
        clean, one, two = (noisy("75 x 150", row, method)[0][1] for row in rows)
        assert abs(two / clean - 1) < 0.05
        words.append(f"{one:.1f} to {two:.1f}")
    return words


@claim("Lowest bias and variance in nearly all situations")
def _():
    wins = {}
    for shape in ("75 x 150", "75 x 15"):
        wins[shape] = 0
        for row in stored("noise")["shapes"][shape]["rows"]:
            mine = noisy(shape, row)[2][1:]
            others = [noisy(shape, row, x)[2][1:] for x in ("naive", "kv_row", "kv_col")]
            wins[shape] += int((mine < np.min(others, axis=0)).sum())
    return f"{wins['75 x 150']} of 30", f"{wins['75 x 15']} of 30"


# --- variance and consistency -------------------------------------------------------------


def loose(process, V, n=3):
    "Orders of magnitude between the bound and the measured variance."
    rng, found = np.random.default_rng(0), []
    for P in (10, 20, 40, 80):
        values = [sm.increasing(process.sample(P, 2 * P, rng), n)[-1] for _ in range(150)]
        found.append(np.log10(variance_bound(n, P, 2 * P, V) / np.var(values)))
    return min(found), max(found)


@claim("The variance is at most")
def _():
    exact = (7**6 - 25 + 14 * 4**3) / 5**6  # linear, five dimensions, order three
    linear = loose(sm.Linear(5, scale=1 / 5), exact)
    V = np.mean([cycle_variance(ADA.sample(80, 160, s), 3)[-1] for s in range(20)])
    ada = loose(ADA, V)
    return (f"{min(linear):.1f} to {max(ada):.1f} orders of magnitude",)


@claim("Fourth moments suffice")
def _():
    square = sm.Discrete(
        POPULATION.table**2,
        input_probs=POPULATION.input_probs,
        feature_probs=POPULATION.feature_probs,
    )
    fourth = POPULATION.input_probs @ POPULATION.table**4 @ POPULATION.feature_probs
    second = POPULATION.expectation(lambda phi: cycle(phi, (0, 1), (0, 1)) ** 2, 2, 2)
    same(square.moments(2)[1], second)
    assert second <= fourth**2
    return (f"{second / fourth**2:.2f} of",)


@claim("the pairs of cycles that meet")
def _():
    P, Q, n = 5, 4, 2
    rows, columns = (list(itertools.combinations(range(k), n)) for k in (P, Q))
    places = list(itertools.product(rows, columns))
    pairs = itertools.product(places, repeat=2)
    meet = sum(bool(set(i) & set(k) or set(a) & set(b)) for (i, a), (k, b) in pairs)
    share = math.comb(P - n, n) * math.comb(Q - n, n)
    G = len(places) ** 2 - len(places) * share
    assert meet == G
    same(meeting_probability(n, P, Q), G / len(places) ** 2)
    return (f"{G} of {len(places) ** 2} pairs",)


@claim("the exponential inequality")
def _():
    P, n = 30, 3
    ratio = (math.comb(P - n, n) / math.comb(P, n)) ** 2
    x = n**2 * 2 / P
    assert ratio <= math.exp(-x)  # so one minus it is at least, not at most, the next
    return f"{1 - ratio:.3f}, which is above {1 - math.exp(-x):.3f}", f"below {x:.3f}"


@claim("Chebyshev's inequality")
def _():
    V = np.mean([cycle_variance(ADA.sample(100, 200, s), 2)[1] for s in range(20)])
    goal = 0.1 * ADA.moments(2)[1]
    rows = 4 * V * 1.5 / (0.1 * goal**2)  # twice as many columns
    same(chebyshev_radius(variance_bound(2, rows, 2 * rows, V), 0.1), goal, 1e-9)
    return (f"{power(rows, 0)} rows",)


@claim("Strongly consistent")
def _():
    falls = []
    for size in (20, 80):
        phis = [sm.Linear(5, scale=0.2).sample(size, size, seed) for seed in range(300)]
        found = [(sm.increasing(phi, 3)[2], sm.all_cycles(phi, 3)[2]) for phi in phis]
        falls.append([np.var([a for a, _ in found]), np.var([a - b for a, b in found])])
    whole, difference = np.array(falls[0]) / falls[1]
    assert difference > 16 > whole  # sixteen is the square of the growth of the sides
    return f"{whole:.0f} times", f"{difference:.0f} times"


@claim("is integrable over the features")
def _():
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 200_000, 3))
    cycles = [
        np.einsum("ij,ij->i", a, b)
        for a in x.reshape(2, -1, 3)
        for b in w.reshape(2, -1, 3)
    ]
    size = abs(math.prod(cycles)).mean()
    assert size < 9
    return (f"{size:.1f}, below",)


# --- eigenvalues --------------------------------------------------------------------------


def panel(name):
    return stored("spectrum")["panels"][name]["methods"]


def mine(methods):
    return methods.get("increasing", methods.get("ours"))


def printed_program(m, d, b, G=500):
    "The program of the paper, line by line, and its quantiles."
    s, n, k = np.linspace(0, b, G), np.arange(1, len(m) + 1), len(m)
    rows = np.hstack([s ** n[:, None], np.eye(k), -np.eye(k)])
    one = np.append(np.ones(G), np.zeros(2 * k))
    p = linprog(1 - one, A_eq=np.vstack([rows, one]), b_eq=np.append(m, 1)).x[:G]
    where = np.searchsorted(np.cumsum(p), np.arange(d, 0, -1) / (d + 1) - 1e-9)
    return s[np.minimum(where, G - 1)]


@claim("A linear program finds the eigenvalues")
def _():
    m = sm.Linear(20, scale=0.3).moments(10)
    errors = [abs(printed_program(x, 20, 0.6) - 0.3).mean() for x in (m, m / 20)]
    return (f"{errors[0]:.3f} as printed and {errors[1]:.3f}",)


@claim("The recovered eigenvalues are off by at most")
def _():
    curve, sizes = stored("spectrum")["curve"], stored("spectrum")["settings"]["curve"]
    at = sizes["sizes"].index(100)
    bound, error = curve["bound 4"][at], curve["error 4"][at][0]
    assert bound > 20  # the error of any guess
    same(1 + math.sqrt(2), 2.414, 1e-3)
    return f"{bound:.0f}, against", f"a measured {error:.1f}"


@claim("The linear process has $d$ eigenvalues")
def _():
    process = sm.Linear(20, scale=0.3)
    same(process.moments(5), 20 * 0.3 ** np.arange(1.0, 6))
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 5000, 20))
    values = np.linalg.eigvalsh(0.3 * (x.T @ x / 5000) @ np.eye(20))
    return (f"{values.min():.2f} to {values.max():.2f}",)


@claim("matches the true one closely")
def _():
    methods = panel("linear 100 x 100")
    names = [mine(methods), *(methods[k] for k in ("kv", "empirical", "constant"))]
    mean, kv, singular, constant = (x["error"] for x in names)
    assert constant < mean < kv < singular
    first = f"{mean:.2f}; that of Kong and Valiant's is {kv:.2f}"
    return first, f"singular values {singular:.2f}", f"has {constant:.2f}"


@claim("The first $50$ eigenvalues")
def _():
    methods = panel("Fourier 20 x 20")
    spread = stored("spectrum")["panels"]["Fourier 20 x 20"]["relative_sd"][9]
    mean, constant = mine(methods)["error"], methods["constant"]["error"]
    assert mean > constant
    return power(spread, 0), f"{mean:.2f}, that of a constant {constant:.2f}"


@claim("The caption gives the $i$-th eigenvalue")
def _():
    values = sm.RBF(1, input_cov=400.0, kernel_cov=1.0).eigenvalues(3)
    ratio = values[1] / values[0]
    same(values[2], values[1] * ratio)
    first = rf"${values[0]:.4f} \times {ratio:.3f}^{{\,i-1}}$"
    return first, f"a factor of {1 / values[0]:.1f}"


@claim("sensitive to $d$ and to")
def _():
    study = stored("spectrum")["sensitivity"]
    error = {key: [x[0] for x in study[key]] for key in ("count", "n_grid", "orders")}
    words = [f"{min(x):.1f} to {max(x):.1f}" for x in error.values()]
    assert np.ptp(error["n_grid"]) < 0.1 * np.mean(error["n_grid"])
    return words


@claim("reconstructs spectra in general")
def _():
    methods = panel("two levels 100 x 100")
    names = [mine(methods), *(methods[k] for k in ("empirical", "constant"))]
    return ("{:.1f}, against {:.1f} and {:.1f}".format(*(x["error"] for x in names)),)


# --- the RBF operator ---------------------------------------------------------------------


def two_covariances():
    "Covariances that do not commute, and the eigenvalues eta."
    S_x, S = np.array([[2.0, 0.9], [0.9, 0.5]]), np.array([[1.0, -0.6], [-0.6, 0.7]])
    assert abs(S_x @ S - S @ S_x).max() > 0.1
    return S_x, S, np.linalg.eigvals(S_x @ np.linalg.inv(S))


def golden_like(eta):
    return (1 + np.sqrt(1 + 4 * eta)) / (2 * eta)


@claim("Sines with a random phase")
def _():
    x, (sine, _), (cosine, _) = both_features()
    kernel = np.exp(-((x[:, None] - x) ** 2) / 2)
    same(sine, kernel, 1e-10)
    same(cosine, kernel, 1e-10)
    return ()


@claim("is positive definite, with eigenvalues")
def _():
    S_x, S, eta = two_covariances()
    product = S_x @ np.linalg.inv(S)
    lowest = np.linalg.eigvalsh((product + product.T) / 2)[0]
    assert np.isrealobj(eta) and (eta > 0).all() and lowest < 0
    return (f"{lowest:.2f}",)


@claim("one eigenvalue for each $u$")
def _():
    S_x, S, eta = two_covariances()
    values = sm.RBF(2, input_cov=S_x, kernel_cov=S).eigenvalues(30)
    u = np.array(list(itertools.product(range(40), repeat=2)))
    formula = 1 / np.prod(eta ** (1 + u) * golden_like(eta) ** (1 + 2 * u), axis=1)
    same(values, np.sort(formula)[::-1][:30], 1e-10)
    golden = sm.RBF(2).eigenvalues(3)  # (0, 0), then (0, 1) and (1, 0)
    assert golden[0] > golden[1]
    same(golden[1], golden[2])
    return ()


@claim("The largest eigenvalue is that of $u = 0$")
def _():
    S_x, S, eta = two_covariances()
    norm = sm.RBF(2, input_cov=S_x, kernel_cov=S).eigenvalues(1)[0]
    same(norm, 1 / np.prod(eta * golden_like(eta)), 1e-10)
    nodes, weights = np.polynomial.hermite_e.hermegauss(100)
    operator = np.exp(-((nodes[:, None] - nodes) ** 2) / 2) * (weights / weights.sum())
    same(np.linalg.eigvals(operator).real.max(), sm.RBF(1).eigenvalues(1)[0], 1e-10)
    return ()


@claim("The eigenfunctions are")
def _():
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    weights = weights / weights.sum()
    f = hermite_functions(nodes, 6, math.sqrt(5))  # equal covariances
    gram = (f * weights[:, None]).T @ f
    same(gram, np.eye(gram.shape[0]), 1e-9)
    image = np.exp(-((nodes[:, None] - nodes) ** 2) / 2) @ (f * weights[:, None])
    some = abs(nodes) < 5
    values = sm.RBF(1).eigenvalues(gram.shape[0])
    same(image[some], (f * values)[some], 1e-8)
    return ()


@claim("The moments are a product over dimensions")
def _():
    S_x, S, eta = two_covariances()
    n, z = np.arange(1, 8)[:, None], golden_like(eta)
    formula = np.prod(1 / (eta**n * z**n - z ** (-n)), axis=1)
    same(sm.RBF(2, input_cov=S_x, kernel_cov=S).moments(7), formula, 1e-10)
    for process in (sm.RBF(2, input_cov=S_x, kernel_cov=S), ADA, sm.RBF(10)):
        same(process.moments(1), 1)
    return ()


@claim("The Taylor series of the moments")
def _():
    for process in (sm.RBF(1), sm.RBF(2)):
        values = process.eigenvalues(4000)
        same((values ** np.arange(2, 6)[:, None]).sum(1), process.moments(5)[1:], 1e-10)
    return ()


def chain_determinant(n, S_x, S, links):
    "The Gaussian integral around a chain of inputs with this many links."
    M = np.kron(np.eye(n), np.linalg.inv(S_x))
    for i in range(links):
        step = np.zeros((1, n))
        step[0, i] += 1
        step[0, (i + 1) % n] -= 1
        M += np.kron(step.T @ step, np.linalg.inv(S))
    return (np.linalg.det(S_x) ** n * np.linalg.det(M)) ** -0.5


@claim("The derivation of the moments")
def _():
    S_x, S, eta = two_covariances()
    truth = sm.RBF(2, input_cov=S_x, kernel_cov=S).moments(5)
    for n in (2, 3, 5):
        same(chain_determinant(n, S_x, S, n), truth[n - 1], 1e-10)
        q, x = np.arange(1, n + 1), 1.7
        cosines = np.prod(x**2 - 2 * np.cos(2 * np.pi * q / n) * x + 1)
        same(cosines, (x**n - 1) ** 2, 1e-10)
    return (f"{chain_determinant(3, S_x, S, 2) / truth[2]:.1f} times",)


@claim("With equal covariances")
def _():
    golden = golden_like(1.0)
    same(golden, (1 + math.sqrt(5)) / 2)
    for d in (1, 2, 3):
        levels = [(golden ** -(d + 2 * s), math.comb(s + d - 1, s)) for s in range(5)]
        values = np.repeat(*map(np.array, zip(*levels)))
        same(sm.RBF(d).eigenvalues(len(values)), values, 1e-10)
        n = np.arange(1, 6)
        same(sm.RBF(d).moments(5), (golden**n - golden ** (-1.0 * n)) ** (-1.0 * d), 1e-10)
    printed = golden ** -np.arange(1.0, 100)  # one dimension, multiplicity one
    return (f"{printed.sum():.2f} in place of",)


@claim("fall exponentially with the dimension")
def _():
    fall = [sm.RBF(d).moments(2)[1] for d in (1, 2, 3)]
    same(fall[1:], [fall[0] ** 2, fall[0] ** 3])
    return (f"a factor of {1 / fall[0]:.2f}",)


# --- the comparison -----------------------------------------------------------------------


@claim("agree with the true moments")
def _():
    cycles = moments("main", "increasing")
    spread = np.sqrt(cycles.variance) / cycles.truth
    bias = abs(cycles.bias / cycles.truth)
    return f"{spread[0]:.2f} at", f"{spread[-1]:.1f} at", f"{100 * bias[0]:.1f}%"


@claim("The smallest mean squared error")
def _():
    naive, row, col = (moments("main", m) for m in ("naive", "kv_row", "kv_col"))
    cycles = moments("main", "increasing")
    ratios = row.mse / cycles.mse
    assert (ratios < naive.mse / cycles.mse).all() and (ratios < col.mse / cycles.mse).all()
    return (f"{ratios.max():.0f} to {ratios.min():.0f} times",)


@claim("The lowest bias and the lowest variance, in all")
def _():
    others = ("naive", "kv_row", "kv_col")
    for study in ("main", "dim10", "small_dim10", "small_dim2"):
        mine = moments(study, "increasing")
        for method in others:
            assert (moments(study, method).mse > mine.mse).all(), (study, method)
    ratios = moments("small_dim4", "kv_row").mse / moments("small_dim4", "increasing").mse
    return ("{:.2f}, {:.3f} and {:.3f}".format(*ratios[3:]),)


@claim("standard deviation of the spectrum")
def _():
    values = np.array([0.5, 0.3, 0.1])
    root = math.sqrt((values**2).sum())
    return (f"{root:.2f}, their standard deviation {values.std():.2f}",)


@claim("approaches the operator norm")
def _():
    process = sm.RBF(2, kernel_cov=0.5)
    roots = process.moments(40) ** (1 / np.arange(1, 41))
    norm = process.eigenvalues(1)[0]
    assert (np.diff(roots) < 0).all() and roots[-1] > norm
    return (
        f"{100 * (roots[1] / norm - 1):.0f}% at",
        f"{100 * (roots[6] / norm - 1):.1f}% at",
    )


@claim("Roots show the differences more")
def _():
    times = {}
    for quantity in ("moment", "root", "positive_root"):
        row, mine = (moments("main", m, quantity) for m in ("kv_row", "increasing_10"))
        times[quantity] = row.mse / mine.mse
    m, r = times["moment"], times["positive_root"]
    assert (r < m).all()
    return (
        f"{m.max():.0f} to {m.min():.0f} times that of increasing for moments",
        f"{r.max():.0f} to {r.min():.1f} times for roots",
        f"{times['root'][-1]:.2f} times",
    )


@claim("The root of an unbiased estimate is biased")
def _():
    root = moments("main", "increasing_10", "root")
    bias = -100 * root.bias / root.truth
    return f"{bias[0]:.1f}% at", f"{bias[-1]:.0f}% at"


@claim("below $10^{-5}$")
def _():
    root = moments("main", "increasing_10", "root").mse
    dropped = moments("main", "increasing_10", "positive_root").mse
    row = moments("main", "kv_row", "root").mse
    assert (dropped < 1e-5).all() and (root[:4] < 1e-5).all()
    assert (root[-2:] > np.maximum(row[-2:], 1e-5)).all()
    return f"at most {power(dropped.max())}", *map(power, root[-2:])


@claim("The seventh root gives")
def _():
    kinds = ("positive_root", "root")
    tables = [moments("main", "increasing_10", kind) for kind in kinds]
    process = sm.RBF(5, kernel_cov=0.25)
    norm = process.eigenvalues(1)[0]
    same(tables[0].truth[-1], process.moments(7)[6] ** (1 / 7), 1e-6)
    dropped, kept = (t["mean"][-1] / norm for t in tables)
    return f"{dropped:.2f} of the norm", f"{kept:.2f} of it"


def one_side(study, method, size, digits=1):
    t = read_study(RESULTS / f"comparison_{study}.json")[1]
    t = select(t, method=method, quantity="moment", n=2, **{size: [75, 1200]})
    t = t[np.argsort(t[size])]
    return [f"{value:.{digits}f} with" for value in t.bias / t.truth]


@claim("naive and KV-col stay biased")
def _():
    return one_side("features", "kv_col", "Q", 2)


@claim("KV-col converges as features are added")
def _():
    return one_side("features", "kv_row", "Q")


@claim("KV-row converges as inputs are added")
def _():
    return one_side("inputs", "kv_col", "P")


@claim("The only unbiased estimator")
def _():
    errors = []
    for name in STUDIES:
        table = read_study(RESULTS / f"comparison_{name}.json")[1]
        for method in ("naive", "kv_row", "kv_col"):
            t = select(table, method=method, quantity="moment", n=range(2, 8))
            errors.append(abs(t.bias / t.bias_se).min())
    assert min(errors) > 4
    return (f"at least {min(errors):.1f} standard errors",)


@claim("confidence interval of $50\\%$")
def _():
    cycles = moments("main", "increasing_10")
    spread = np.sqrt(cycles.variance)[0] / cycles.bias_se[0]
    return (f"{spread:.0f} times",)


# --- feature learning ---------------------------------------------------------------------


@cache
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
        state = [
            (0.9 * m + 0.1 * d, 0.999 * v + 0.001 * d**2) for (m, v), d in zip(state, grads)
        ]
        step = [
            rate * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-12)
            for m, v in state
        ]
        w, a = w - step[0], a - step[1]
    change = math.sqrt(len(w)) * (np.maximum(x @ w.T, 0) - start)
    return w, a, math.sqrt((change**2).mean())


def small_network(N, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((40, 12))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = np.eye(3)[rng.integers(3, size=40)]
    return (
        rng.standard_normal((N, 12)) / math.sqrt(N),
        rng.standard_normal((3, N)) / math.sqrt(N),
        x,
        y,
    )


@claim("exchangeable")
def _():
    w, a, x, y = small_network(20)
    order = np.random.default_rng(1).permutation(20)
    plain, turned = adam(w, a, x, y, 0.01), adam(w[order], a[:, order], x, y, 0.01)
    same(turned[0], plain[0][order], 1e-9)
    return ()


@claim("changes the backward pass")
def _():
    w, a, x, y = small_network(20)
    before = np.maximum(x @ w.T, 0) @ a.T
    after = (math.sqrt(20) * np.maximum(x @ w.T, 0)) @ a.T / math.sqrt(20)
    same(after, before)
    return ()


@claim("a rate of $0.01/N$")
def _():
    slopes = []
    for power_of in (0.5, 1.0):
        change = [adam(*small_network(N), 0.01 / N**power_of)[2] for N in (64, 256, 1024)]
        slopes.append(np.polyfit(np.log([64, 256, 1024]), np.log(change), 1)[0])
    assert abs(slopes[0]) < 0.15 and abs(slopes[1] + 0.5) < 0.15
    return f"$N^{{{slopes[1]:.1f}}}$", f"$N^{{{abs(slopes[0]):.1f}}}$"


@claim("divided by the standard deviation")
def _():
    factor = (0.5 / (0.5 - 1 / (2 * np.pi))) ** 2
    phi = np.maximum(sm.Linear(30, scale=1 / 30).sample(400, 400, random_state=0), 0)
    found = sm.naive(phi / phi.std(), 2)[1] / sm.naive(phi / np.sqrt((phi**2).mean()), 2)[1]
    assert found == pytest.approx(factor, rel=0.1)
    return (f"a factor of {factor:.2f}",)


@claim("agree across widths")
def _():
    arrays, naive, ours, pooled = learning()
    about = stored("feature_learning")["fashion"]
    spread = lambda m: (m.std(axis=0, ddof=1) / m.mean(axis=0))[:, 1:]
    plain = spread(naive.mean(axis=0)) / spread(ours.mean(axis=0))
    end, early = spread(pooled(naive))[-1] / spread(pooled(ours))[-1], plain[5]
    assert about["epochs"][5] == 10 and (end > 1).all() and (early[1:] < 1).all()
    return (
        f"Over {len(about['seeds'])} seeds",
        f"{end.min():.1f} to {end.max():.1f} times",
        f"{plain[-1].min():.1f} to {plain[-1].max():.1f} times",
        f"{1 / early[-1]:.1f} times as much",
    )


@claim("match those of all of them, at every epoch")
def _():
    arrays = learning()[0]
    median = arrays["fashion subsets"][:, -1, 2, 4] / arrays["fashion whole ours"][:, -1]
    return (
        f"{median[:, 1].mean():.2f} of the layer's $m(2)$",
        f"{median[:, 6].mean():.2f} of its $m(7)$",
    )


@claim("outside the shaded half")
def _():
    found = learning()[0]["fashion subsets"][:, :, 0, :, 1:]  # naive, over the layer's size
    mean, low, high = found[:, :, 0], found[:, :, 3], found[:, :, 5]
    outside = (mean < low) | (mean > high)
    return ("in {:.0f}%, {:.0f}% and {:.0f}%".format(*100 * outside.mean(axis=(0, 2))),)


@claim("also match those of small networks")
def _():
    _, naive, ours, pooled = learning()
    epochs = stored("feature_learning")["fashion"]["epochs"]
    as_printed = ours.mean(axis=0)[2] / ours.mean(axis=0)[-1]  # widths 128 and 1024
    words = [f"{as_printed[-1, n - 1]:.2f} times" for n in (2, 7)]
    words.append(f"{as_printed[epochs.index(20), 6]:.2f} times")
    assert (abs(as_printed[-1, 1:4] - 1) < 0.1).all()
    for top in (ours, naive):  # at the end of training
        apart = (pooled(top)[2, -1] / pooled(top)[-1, -1])[1:]
        words.append(f"{apart.min():.2f} to {apart.max():.2f} times")
    return words


# --- discussion ---------------------------------------------------------------------------


@claim("effective dimension")
def _():
    values, norm = ADA.eigenvalues(100_000), ADA.eigenvalues(1)[0]
    at = lambda ridge: (values / (values + ridge)).sum()
    n = np.arange(1, 11)
    terms = ADA.moments(10) * (-1.0) ** (n - 1) / (0.1 * norm) ** n
    bounds = stored("spectrum")["coverage"]["Fourier 150 x 300"]["effective_dimension"][
        "0.1"
    ]
    assert bounds["truth"] == pytest.approx(at(0.1 * norm), rel=1e-3)
    return (
        f"it is {at(0.1 * norm):.0f},",
        f"give {power(abs(terms.sum()), 0)}",
        f"{bounds['low']:.2f} to {bounds['high']:.2f} times",
    )


def test_citation_has_the_version():
    assert f"version = {{{sm.__version__}}}" in (ROOT / "nbs/references.md").read_text()
