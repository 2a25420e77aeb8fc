"""What several tests share: child processes, tiny matrices, exact oracles."""

import itertools
import math
import shutil
import subprocess
import sys
import tracemalloc
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[1]

if sys.platform == "win32":  # about pipes, limits and signals that are other there
    collect_ignore = ["test_command_line.py", "test_files.py"]


def python(*arguments, timeout=120, **options):
    "Run Python with these arguments in a process of its own."
    command = [sys.executable, *map(str, arguments)]
    options = dict(capture_output=True, text=True) | options
    return subprocess.run(command, timeout=timeout, **options)


def succeed(*arguments, **options):
    "The same, after asserting that it ended well."
    done = python(*arguments, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


#: eigenvalues, the largest first
spectra = st.lists(st.floats(1e-3, 1.0), min_size=1, max_size=12).map(
    lambda values: np.sort(values)[::-1]
)


def normal(shape, seed=0):
    "A matrix of standard normal numbers."
    return np.random.default_rng(seed).standard_normal(shape)


def rational(phi):
    "The numbers of a matrix as fractions."
    return np.vectorize(Fraction, otypes=[object])(np.asarray(phi, dtype=float))


def _column_choices(kinds, groups, population):
    "Columns of a cycle with weights, for each way in which some of them may coincide."
    for blocks in itertools.product(range(len(kinds)), repeat=len(kinds)):
        first = list(dict.fromkeys(blocks))  # blocks in the order of their appearance
        kind_of = dict(zip(blocks, kinds))
        if first != list(range(len(first))) or [kind_of[b] for b in blocks] != kinds:
            continue
        probability = 1.0  # that columns drawn from the population coincide just so
        for kind, R in population.items():
            number, distinct = kinds.count(kind), [*kind_of.values()].count(kind)
            if R is not None:
                probability *= math.perm(R, distinct) / R**number
            elif distinct < number:
                probability = 0.0
        labels, chosen = [groups[kind_of[b]] for b in first], []
        for a in itertools.product(*map(range, map(len, labels))):
            units = {(kind_of[b], of[c]) for b, of, c in zip(first, labels, a)}
            if probability and len(units) == len(a):
                share = math.prod(1 / np.sum(of == of[c]) for of, c in zip(labels, a))
                chosen.append((share, [a[b] for b in blocks]))
        if probability:
            yield probability, chosen


def cycle_mean(
    systems,  # name -> matrix, NaN where missing, or its (right, left) halves of repeats
    word,
    *,
    rows=None,  # labels of groups of rows
    columns=None,  # name -> labels of groups of columns
    center=False,
    population=None,  # name -> number of all features
    variance=None,  # name -> function of entries: the variance of their noise
    shared=False,  # whether columns of different systems are the same features
):
    """The definition: the mean over cycles of distinct groups of rows, 2n of them if the
    mean is removed, and distinct groups of columns; a group is drawn, then a member of it.
    Columns of a finite population may coincide. With missing entries: sums over counts.
    Matrices (P, Q, samples) are averaged one by one."""
    halves = {s: x if isinstance(x, tuple) else (x, x) for s, x in systems.items()}
    n, P = len(word), len(halves[word[0]][0])
    kinds, known = ["features" if shared else s for s in word], (columns or {}).get
    width = {kind: halves[s][0].shape[1] for kind, s in zip(kinds, word)}
    groups = {kind: np.arange(Q) for kind, Q in width.items()}
    groups |= {k: np.array(known(s)) for k, s in zip(kinds, word) if known(s) is not None}
    sizes = {kind: (population or {}).get(s) for kind, s in zip(kinds, word)}
    labels = np.arange(P) if rows is None else np.asarray(rows)
    member = 1.0 * (labels == np.unique(labels)[:, None])  # (groups, rows)
    member /= member.sum(axis=1, keepdims=True)
    number, value = 2 * n if center else n, 0.0
    drawn = np.array([*itertools.permutations(range(len(member)), number)]).T
    for probability, choices in _column_choices(kinds, groups, sizes):
        total = count = 0.0
        for share, a in choices:
            factors = []  # of each row: as one row, split in two, as seen only; by group
            for k in range(n):  # entered from column a[k - 1], left to column a[k]
                x, y = halves[word[k - 1]][0][:, a[k - 1]], halves[word[k]][1][:, a[k]]
                seen, x, y = (x == x) & (y == y), np.nan_to_num(x), np.nan_to_num(y)
                product, same = x * y, (word[k - 1], a[k - 1]) == (word[k], a[k])
                if same and word[k] in (variance or {}):
                    product = product - variance[word[k]](x)
                parts = (seen * z for z in (product, y, x, np.ones_like(x)))
                factors.append([member @ z for z in parts])
            for split in itertools.product((0, 1) if center else (0,), repeat=n):
                term = share * (-1) ** sum(split)
                for k, (whole, left, right, one) in enumerate(factors):
                    term = term * (left if split[k] else whole)[drawn[k]]
                    if center:
                        term = term * (right if split[k] else one)[drawn[n + k]]
                total += term.sum(axis=0)
            ones = [factors[k % n][3][drawn[k]] for k in range(number)]
            count += share * np.prod(ones, axis=0).sum(axis=0)
        value += probability * total / count
    return value


def peak_memory(function, *arguments, **options):
    "Most bytes that a call holds at a time."
    tracemalloc.start()
    try:
        function(*arguments, **options)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture
def nothing_loaded(monkeypatch):
    "Files and Dask arrays are not loaded, however small: each goes its own way."
    monkeypatch.setattr("spectral_moments.engine.arrays.MAX_LOADED_BYTES", 0)


@pytest.fixture(scope="session")
def window():
    "A browser without a window, if there is one."
    webdriver = pytest.importorskip("selenium.webdriver")
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if not (shutil.which("chromedriver") and path):
        pytest.skip("chromium is not installed")
    options = webdriver.ChromeOptions()
    for flag in (
        "headless=new",
        "no-sandbox",
        "disable-gpu",
        "disable-dev-shm-usage",  # small in containers
        "force-prefers-reduced-motion",
    ):
        options.add_argument(f"--{flag}")
    options.binary_location = path
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    with pytest.MonkeyPatch.context() as patch:  # the driver is here, whatever the proxy
        for name in ("no_proxy", "NO_PROXY"):
            patch.setenv(name, "localhost,127.0.0.1")
        driver = webdriver.Chrome(options=options, service=service)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def chromium(window):
    "The browser, of the usual size and colours."
    window.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    window.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    window.get("about:blank")
    window.get_log("browser")  # what the last page said
    return window
