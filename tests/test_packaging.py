"""The built package: what is in it, and that it works where only it is installed."""

import configparser
import json
import os
import re
import shutil
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, succeed

SOURCES = ("pyproject.toml", "README.md", "LICENSE", "MANIFEST.in", "spectral_moments")
LARGE = ("_static", "nbs", "results", "tests")  # must not slip into the wheel
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PYPROJECT["project"]["optional-dependencies"]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    "The sdist and the wheel, built from a copy without the network."
    folder = tmp_path_factory.mktemp("package")
    copy, ignore = folder / "copy", shutil.ignore_patterns("__pycache__")
    for name in SOURCES + LARGE:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=ignore)
        else:
            copy.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, copy)
    succeed("-m", "build", "--no-isolation", "--outdir", folder / "dist", copy)
    (sdist,), (wheel,) = (folder.glob(f"dist/*{end}") for end in (".tar.gz", ".whl"))
    return sdist, wheel


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    "A function that runs Python where the wheel is installed and the repository is not."
    target, elsewhere = (tmp_path_factory.mktemp(name) for name in ("target", "elsewhere"))
    offline = "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"
    succeed("-m", "pip", "install", *offline, "--target", target, built[1])
    dependencies = Path(np.__file__).parents[1]
    path = os.pathsep.join(map(str, (target, dependencies)))
    environment = {**os.environ, "PYTHONPATH": path}

    def python(*arguments):  # -S: no .pth file leads back to the repository
        command = ("-S", "-P", "-W", "error", *arguments)
        return succeed(*command, cwd=elsewhere, env=environment)

    return python, target


def modules():
    "The files that belong into the package; the index of nbdev does not."
    found = [*ROOT.glob("spectral_moments/**/*.py"), *ROOT.glob("spectral_moments/*.pyi")]
    found += [ROOT / "spectral_moments/py.typed", *ROOT.glob("spectral_moments/io/*.html")]
    names = {path.relative_to(ROOT).as_posix() for path in found}
    return names - {"spectral_moments/_modidx.py"}


def plain(requirement):
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()


def expanded(extra):
    "What an extra installs, with the extras of this package that it names."
    wanted = [r for r in EXTRAS[extra] if not r.startswith("spectral_moments[")]
    for own in [r for r in EXTRAS[extra] if r.startswith("spectral_moments[")]:
        for other in re.search(r"\[(.+)\]", own)[1].split(","):
            wanted += EXTRAS[other]
    return {plain(r) for r in wanted + PYPROJECT["project"]["dependencies"]}


def test_wheel_and_sdist(built):
    sdist, wheel = built
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == modules()
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    pictures = re.findall(r"!\[[^]]*\]\((\w\S+)\)", (ROOT / "README.md").read_text())
    own = {path for path in pictures if "://" not in path}
    assert {"pyproject.toml", "README.md", "LICENSE", *own} | modules() <= names
    assert not any(name.startswith(("nbs/", "results/", "tests/")) for name in names)
    assert sdist.stat().st_size < 1_000_000


def test_one_version_and_one_set_of_settings():
    "nbdev 2 reads settings.ini, nbdev 3 reads pyproject.toml; export copies the version."
    ini = configparser.ConfigParser()
    ini.read(ROOT / "settings.ini")
    version = ini["DEFAULT"]["version"]
    for name, line in {
        "spectral_moments/__init__.py": f'__version__ = "{version}"\n',
        "CITATION.cff": f"version: {version}\n",
        "CHANGELOG.md": f"## {version}",
    }.items():
        assert line in (ROOT / name).read_text(encoding="utf-8"), name
    for name, value in PYPROJECT["tool"]["nbdev"].items():
        text = " ".join(value) if isinstance(value, list) else str(value)
        assert ini["DEFAULT"][name].lower() == text.lower(), name


def test_tools_are_pinned():
    "What `make` installs has one version, so that a build repeats."
    pinned = re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(), re.M)
    assert expanded("dev") <= set(map(plain, pinned))


def test_import_is_silent_and_light(installed):
    python, target = installed
    heavy = "{'numba', 'scipy', 'torch', 'matplotlib', 'pandas', 'numpy', 'dask'}"
    code = "import sys, spectral_moments as sm; print(sm.__file__, *HEAVY & {*sys.modules})"
    result = python("-c", code.replace("HEAVY", heavy))
    assert result.stdout.split() == [str(target / "spectral_moments" / "__init__.py")]
    assert result.stderr == ""


def test_command_and_report(installed, tmp_path):
    python, target = installed
    code = "import spectral_moments as sm; [getattr(sm, name) for name in dir(sm)]"
    python("-W", "ignore", "-c", code)
    if sys.platform == "win32":
        pytest.skip("the command is an executable there")
    command, page = target / "bin" / "spectral-moments", tmp_path / "page.html"
    phi = np.random.default_rng(0).standard_normal((40, 50))
    np.save(tmp_path / "phi.npy", phi)
    call = ("estimate", tmp_path / "phi.npy", "--no-center", "--json")
    first, _ = json.loads(python(command, *call).stdout)["values"]
    assert first == pytest.approx((phi**2).mean(), rel=1e-12)
    python(command, "report", tmp_path / "phi.npy", "--n-max", "2", "-o", page)
    assert page.read_text(encoding="utf-8").count("<svg") >= 1
