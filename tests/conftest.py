"""What several tests share: child processes, studies, tiny matrices, exact oracles."""

import importlib.util
import itertools
import math
import shutil
import subprocess
import sys
import tracemalloc
import warnings
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


def estimate(phi, n_max):
    "An estimate without its warnings."
    from spectral_moments import EstimateWarning, estimate

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EstimateWarning)
        return estimate(phi, n_max, random_state=0)


def silent(*_, **__):
    "In place of print."


def normal(shape, seed=0):
    "A matrix of standard normal numbers."
    return np.random.default_rng(seed).standard_normal(shape)


def fractions(shape, seed=0):
    "A matrix of small random fractions, on which sums are exact."
    rng = np.random.default_rng(seed)
    return np.vectorize(Fraction)(rng.integers(-9, 10, shape), rng.integers(1, 10, shape))


def rational(phi):
    "The numbers of a matrix as fractions."
    return np.vectorize(Fraction, otypes=[object])(np.asarray(phi, dtype=float))


def direct_rows(phi, n):
    "The mean over increasing cycles of n rows, in rational arithmetic."
    phi = rational(phi)
    K = phi @ phi.T / phi.shape[1]
    cycles = itertools.combinations(range(len(K)), n)
    total = sum(math.prod(K[i, j] for i, j in zip(c, c[1:] + c[:1])) for c in cycles)
    return float(total / math.comb(len(K), n))


def direct_traces(phi, n_max):
    "Traces of powers of the Gram matrix, in rational arithmetic."
    phi = rational(phi)
    K = phi @ phi.T / Fraction(phi.size)
    powers = itertools.accumulate([K] * n_max, np.matmul)
    return [np.trace(power) for power in powers]


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


@pytest.fixture(scope="module")
def chromium():
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
