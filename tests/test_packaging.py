"""The built package: what is in it, and that it works where only it is installed."""

import ast
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
from PIL import Image

SOURCES = ("pyproject.toml", "README.md", "LICENSE", "MANIFEST.in", "spectral_moments")
LARGE = ("_static", "nbs", "results", "tests")  # must not slip into the wheel


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    "A folder with the sdist and the wheel, built from a copy without the network."
    folder = tmp_path_factory.mktemp("package")
    copy, ignore = folder / "copy", shutil.ignore_patterns("__pycache__")
    for name in SOURCES + LARGE:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=ignore)
        else:
            copy.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, copy)
    succeed("-m", "build", "--no-isolation", "--outdir", folder / "dist", copy)
    return folder / "dist"


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    "A function that runs Python where the wheel is installed and the repository is not."
    target, elsewhere = (tmp_path_factory.mktemp(name) for name in ("target", "elsewhere"))
    (wheel,) = built.glob("*.whl")
    offline = "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"
    succeed("-m", "pip", "install", *offline, "--target", target, wheel)
    dependencies = Path(np.__file__).parents[1]
    path = os.pathsep.join(map(str, (target, dependencies)))
    environment = {**os.environ, "PYTHONPATH": path}

    def python(*arguments):  # -S: no .pth file leads back to the repository
        command = ("-S", "-P", "-W", "error", *arguments)
        return succeed(*command, cwd=elsewhere, env=environment)

    return python, target


def modules():
    found = [*ROOT.glob("spectral_moments/**/*.py"), *ROOT.glob("spectral_moments/*.pyi")]
    found.append(ROOT / "spectral_moments/py.typed")
    found.append(ROOT / "spectral_moments/io/report_template.html")
    index = "spectral_moments/_modidx.py"  # of nbdev, which nothing else needs
    return {path.relative_to(ROOT).as_posix() for path in found} - {index}


def pictures():
    "Paths of the pictures in the README, each with alternative text."
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(r"!\[[^]]{20,}\]\((\S+)\)", text)


def test_readme_has_a_small_opaque_picture():
    assert pictures()
    for path in pictures():
        data = (ROOT / path).read_bytes()
        assert len(data) < 100_000
        with Image.open(ROOT / path) as image:
            assert np.asarray(image.convert("RGBA"))[..., 3].min() == 255


def test_wheel_has_the_modules_and_nothing_else(built):
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        inside = next(n for n in archive.namelist() if n.endswith("METADATA"))
        metadata = archive.read(inside)
    assert names == modules()
    assert b"Requires-Dist: numpy" in metadata
    assert b"License-Expression: Apache-2.0" in metadata


def test_metadata_are_accepted_by_an_index(built):
    "What `twine check --strict` looks at: valid fields, and a description that renders."
    from packaging.metadata import Metadata

    (wheel,), (sdist,) = built.glob("*.whl"), built.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        inside = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        texts = [archive.read(inside)]
    with tarfile.open(sdist) as archive:
        inside = f"{sdist.name.removesuffix('.tar.gz')}/PKG-INFO"
        texts.append(archive.extractfile(inside).read())
    for text in texts:
        about = Metadata.from_email(text, validate=True)
        assert about.description_content_type.startswith("text/markdown")
        assert about.description.startswith("# spectral_moments\n")
        assert str(about.version) == version() and about.summary
        assert about.project_urls and {*about.provides_extra} >= {"report", "torch"}


def version():
    return re.search(r"^version = (.+)$", (ROOT / "settings.ini").read_text(), re.M)[1]


def test_one_version_everywhere():
    "settings.ini has it, and export copies it into the package."
    for name, line in {
        "spectral_moments/__init__.py": f'__version__ = "{version()}"\n',
        "CITATION.cff": f"version: {version()}\n",
        "CHANGELOG.md": f"## {version()}",
    }.items():
        assert line in (ROOT / name).read_text(encoding="utf-8"), name


def test_tools_are_pinned():
    "What `make` installs has one version, so that a build repeats."
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = extras["optional-dependencies"]
    own, plain = "spectral_moments[", lambda name: re.sub(r"[-_.]+", "-", name).lower()
    wanted = [r for r in extras["dev"] if not r.startswith(own)]
    for extra in re.search(r"\[(.+)\]", extras["dev"][0])[1].split(","):
        wanted += extras[extra]
    pinned = re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(), re.M)
    names = {plain(re.match(r"[\w.-]+", r)[0]) for r in wanted}
    assert "selenium" in names and names <= set(map(plain, pinned))


def test_the_extra_for_tests_has_what_they_import():
    "On other systems only `.[test]` is installed, and a test file must at least be read."
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = project["dependencies"] + extras["test"]
    for extra in re.search(r"\[(.+)\]", extras["test"][0])[1].split(","):
        wanted += extras[extra]
    known = {re.match(r"[\w.-]+", r)[0].lower() for r in wanted}
    own = [*ROOT.glob("tests/*.py"), *ROOT.glob("studies/*.py")]
    known |= {"spectral_moments", "sklearn", "pil"} | {path.stem for path in own}
    for path in ROOT.glob("tests/*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            foreign = {name.partition(".")[0] for name in names} - sys.stdlib_module_names
            assert {name.lower() for name in foreign} <= known, (path, foreign)


def test_the_settings_of_nbdev_agree():
    "nbdev 2 reads settings.ini, nbdev 3 reads pyproject.toml."
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["nbdev"]
    ini = configparser.ConfigParser()
    ini.read(ROOT / "settings.ini")
    for name, value in ours.items():
        text = " ".join(value) if isinstance(value, list) else str(value)
        assert ini["DEFAULT"][name] == text, name


def test_sdist_has_what_the_build_needs(built):
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", *pictures()} | modules() <= names
    assert "spectral_moments/_modidx.py" not in names
    assert not any(name.startswith(("nbs/", "results/", "tests/")) for name in names)
    assert sdist.stat().st_size < 1_000_000


def test_import_is_silent_and_light(installed):
    python, target = installed
    heavy = "{'numba', 'scipy', 'torch', 'matplotlib', 'pandas', 'xarray', 'dask'}"
    code = "import sys, spectral_moments as sm; print(sm.__file__, *HEAVY & {*sys.modules})"
    result = python("-c", code.replace("HEAVY", heavy))
    assert result.stdout.split() == [str(target / "spectral_moments" / "__init__.py")]
    assert result.stderr == ""


def test_estimate(installed):
    python, _ = installed
    code = (
        "import spectral_moments as sm; [getattr(sm, name) for name in dir(sm)]; "
        "phi = sm.Linear(3, scale=0.3).sample(40, 50, random_state=1); "
        "print(*sm.estimate(phi, 3, center=False, stderr=False).values)"
    )
    from spectral_moments import Linear, all_cycles

    phi = Linear(3, scale=0.3).sample(40, 50, random_state=1)
    values = [float(word) for word in python("-c", code).stdout.split()]
    np.testing.assert_allclose(values, all_cycles(phi, 3), rtol=1e-12)


def test_command_and_report(installed, tmp_path):
    python, target = installed
    command, matrix = target / "bin" / "spectral-moments", tmp_path / "phi.npy"
    if sys.platform == "win32":
        pytest.skip("the command is an executable there")
    np.save(matrix, np.random.default_rng(0).standard_normal((20, 30)))
    result = python(command, "estimate", matrix, "--n-max", "2", "--json")
    assert len(json.loads(result.stdout)["values"]) == 2
    python(command, "report", matrix, "--n-max", "2", "-o", tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8").count("<svg") >= 1
