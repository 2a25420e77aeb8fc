"""What several tests share: child processes, studies, tiny matrices, exact oracles."""

import importlib.util
import itertools
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
RESULTS = ROOT / "results"

if sys.platform == "win32":  # about pipes, limits and signals that are other there
    collect_ignore = ["test_command_line.py", "test_files.py", "test_hostile.py"]


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


def load_study(name):
    "A fresh copy of the module studies/NAME.py."
    folder = ROOT / "studies"
    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # studies import their common part
    spec = importlib.util.spec_from_file_location(f"study_{name}", folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


#: eigenvalues, the largest first
spectra = st.lists(st.floats(1e-3, 1.0), min_size=1, max_size=12).map(
    lambda values: np.sort(values)[::-1]
)


def silent(*_, **__):
    "In place of print."


def normal(shape, seed=0):
    "A matrix of standard normal numbers."
    return np.random.default_rng(seed).standard_normal(shape)


def rational(phi):
    "The numbers of a matrix as fractions."
    return np.vectorize(Fraction, otypes=[object])(np.asarray(phi, dtype=float))


def word_mean(systems, word, units, rows=None, counts=None, center=False, poisson=False):
    """The definition: the mean over rows of distinct units, 2n of them if the mean is
    removed, and columns of distinct units, of all that is fully seen. `systems` holds what
    enters and what leaves rows, `units` a unit for each column, by name."""
    n, P = len(word), len(next(iter(systems.values()))[0])
    rows, number = np.arange(P) if rows is None else rows, 2 * n if center else n
    tuples = itertools.permutations(range(P), number)
    tuples = np.array([i for i in tuples if len({*rows[[*i]]}) == number])
    total = count = 0.0
    for a in itertools.product(*(range(systems[s][0].shape[1]) for s in word)):
        if len({units[s][k] for s, k in zip(word, a)}) < n:
            continue
        weight = np.ones(len(tuples))
        for k, s in enumerate(word if counts else ()):  # both rows, at both columns
            nearby = (k, (k + 1) % n)
            for place in nearby + tuple(n + j for j in nearby if center):
                weight = weight * counts[s][tuples[:, place], a[k]]
        for split in itertools.product((0, 1) if center else (0,), repeat=n):
            value = weight * (-1) ** sum(split)
            for k, s in enumerate(word):
                (enter, leave), after = systems[s], (k + 1) % n
                one, two = tuples[:, k], tuples[:, n + after if split[after] else after]
                product = leave[one, a[k]] * enter[two, a[k]]
                if poisson:  # the square of a count, without its noise
                    product = product - np.where(one == two, leave[one, a[k]], 0.0)
                value = value * product
            total += value.sum()
        count += weight.sum()
    return total / count


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
    monkeypatch.setattr("spectral_moments.engine.arrays.LOADED", 0)


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
