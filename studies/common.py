"""What the studies share: a part is drawn, resumed, stored with how it was made, checked.

    python studies/NAME.py [PART ...]            compute parts, into results/NAME.json
    python studies/NAME.py [PART ...] --check    draw the first matrices again and compare

Draws are kept in results/NAME_PART.partial until the part is complete. The same command
continues there if settings, seed, versions and commit are the same, and else begins anew.
"""

import argparse
import json
import math
import os
import platform
import subprocess
import time
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

RESULTS = Path(__file__).resolve().parents[1] / "results"


class Part(NamedTuple):
    "One part of a study."

    measure: object  # function of a `Run` that returns the results as a dictionary
    settings: dict
    seed: int
    packages: tuple = ()  # further packages whose version is stored


class Run:
    "Settings and seed of a part, and what it has drawn, kept in a file beside its results."

    def __init__(self, part, path, about="", most=math.inf):
        self.settings, self.seed, self.folder = part.settings, part.seed, path.parent
        self.path, self.most = path, most  # most draws of one name
        self.drawn, self.first, self.begin = {}, {}, time.monotonic()
        about = json.dumps(about)
        if not (path.exists() and path.read_text().startswith(about)):
            path.write_text(about)
        for line in path.read_text().splitlines()[1:]:
            with suppress(ValueError):  # a line may be cut off
                name, index, seconds, value = json.loads(line)
                self.drawn[name, index] = value
                self.begin = time.monotonic() - seconds

    def repeat(self, name, function, count):
        "The list of function(0), ..., function(count - 1), as JSON holds it."
        number = min(count, self.most)
        for index in range(number):
            if (name, index) not in self.drawn:
                value = self.drawn[name, index] = plain(function(index))
                line = [name, index, time.monotonic() - self.begin, value]
                with self.path.open("a") as file:
                    file.write("\n" + json.dumps(line))
        drawn = [self.drawn[name, index % number] for index in range(count)]
        self.first[name] = [numbers(value)[:8] for value in drawn[:2]]
        return drawn

    def once(self, name, function, *args, **options):
        "function(*args, **options), kept like a draw."
        return self.repeat(name, lambda _: function(*args, **options), 1)[0]


def read(name, part=None):
    "A stored part of a study, by default the one with the name of the study."
    return json.loads((RESULTS / f"{name}.json").read_text())[part or name]


def source(about, what=""):
    "Print what a figure or a table was made of."
    words = [what, about["command"], f"seed {about['seed']}"]
    words += [f"commit {about['commits'][-1]}", about["versions"]["spectral_moments"]]
    words += [about["date"], f"{about['seconds'] / 60:.1f} minutes", about["processor"]]
    print("; ".join(filter(None, words)))


def plain(value):
    "Arrays as JSON holds them."
    return json.loads(json.dumps(value, default=lambda x: x.tolist()))


def numbers(value):
    "All numbers in lists and dictionaries, None for those that JSON does not have."
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, list):
        return [number for part in value for number in numbers(part)]
    return (
        [value if math.isfinite(value) else None] if isinstance(value, float | int) else []
    )


def compute(command, path, label, part):
    "Compute a part and put it, with how it was made, into the file of its study."
    git = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, cwd=RESULTS).stdout.strip()
    packages = ("spectral_moments", "numpy", "scipy", "numba", *part.packages)
    versions = {"python": platform.python_version()} | {x: version(x) for x in packages}
    about = {"command": command, "seed": part.seed, "settings": part.settings}
    about |= {"versions": versions, "commits": [commit or "none"]}
    about |= {"processor": f"{platform.machine()}, {os.cpu_count()} threads"}
    run = Run(part, path.with_name(f"{path.stem}_{label}.partial"), about)
    results = plain(part.measure(run))
    about |= {"date": time.strftime("%Y-%m-%d"), "first_draws": run.first}
    about |= {"seconds": round(time.monotonic() - run.begin, 1)}
    stored = json.loads(path.read_text()) if path.exists() else {}
    stored[label] = about | results
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in stored.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    run.path.unlink()


def differences(part, stored):
    "In words: where the settings, the first draws or the names of the results differ."
    if [stored["seed"], stored["settings"]] != plain([part.seed, part.settings]):
        yield "seed or settings"
    with TemporaryDirectory() as folder, np.errstate(all="ignore"):  # two: hardly a spread
        run = Run(part, Path(folder) / "draws", most=2)
        missing = plain(part.measure(run)).keys() - stored.keys()
    for name, new in run.first.items():
        both = stored["first_draws"].get(name, []), new
        old, new = (np.array(sum(draws, []), float) for draws in both)
        alike = old.shape == new.shape
        if not (alike and np.allclose(old, new, rtol=1e-6, atol=1e-12, equal_nan=True)):
            yield f"draws of {name}"
    if missing:
        yield f"names of the results: {', '.join(missing)}"


def main(file, doc, parts, arguments=None):
    "Run the named parts, or all, of a study from the command line; returns the exit code."
    name, failed = Path(file).stem, False
    parser = argparse.ArgumentParser(description=doc.split("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(parts))
    parser.add_argument("--check", action="store_true", help="compare the first draws")
    given = parser.parse_args(arguments)
    if not {*given.parts} <= {*parts}:
        parser.error(f"the parts are {', '.join(parts)}")
    for label in given.parts or parts:
        if given.check:
            found = list(differences(parts[label], read(name, label)))
            failed |= bool(found)
            print(name, label, "differs in " + "; ".join(found) if found else "is the same")
        else:
            command = f"python studies/{name}.py {label}"
            compute(command, RESULTS / f"{name}.json", label, parts[label])
            print(name, label, "is computed", flush=True)
    return int(failed)
