"""What the studies share: a part is drawn, resumed, stored with how it was made, checked.

    python studies/NAME.py [PART ...]            compute parts, into results/NAME.json
    python studies/NAME.py [PART ...] --check    draw the first matrices again and compare

What is drawn is kept in results/NAME_PART.partial until the part is complete; the same
command continues there. Each part has its command, seed, settings, versions, commits, date,
processor, seconds and the numbers of its first draws beside its results.
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

from spectral_moments import __version__

RESULTS = Path(__file__).resolve().parents[1] / "results"


class Part(NamedTuple):
    "One part of a study."

    measure: object  # function of a `Run` that returns the results as a dictionary
    settings: dict
    seed: int
    packages: tuple = ()  # further packages whose version is stored


def read(name, part=None):
    "A stored part of a study, by default the one with the name of the study."
    stored = json.loads((RESULTS / f"{name}.json").read_text())
    return stored[part or name]


def source(about, what=""):
    "Print what a figure or a table was made of."
    minutes = max(about["seconds"] / 60, 0.1)
    words = [what, about["command"], f"seed {about['seed']}"]
    words += [f"commit {about['commits'][-1]}", about["versions"]["spectral_moments"]]
    words += [about["date"], f"{minutes:.{minutes < 3:d}f} minutes", about["processor"]]
    print("; ".join(word for word in words if word))


def request(name, label, part):
    "What a run is asked for: it is resumed only if all of it is the same."
    own = {"python": platform.python_version(), "spectral_moments": __version__}
    others = {name: version(name) for name in ("numpy", "scipy", "numba", *part.packages)}
    about = {"command": f"python studies/{name}.py {label}", "seed": part.seed}
    return about | {"settings": part.settings, "versions": own | others}


def commit():
    "The commit that is checked out."
    git = ["git", "rev-parse", "--short", "HEAD"]
    found = subprocess.run(git, capture_output=True, text=True, cwd=RESULTS.parent)
    return found.stdout.strip() or "none"


def plain(value):
    "Arrays as JSON holds them."
    return json.loads(json.dumps(value, default=lambda x: x.tolist()))


def numbers(value):
    "All numbers in lists and dictionaries, None for those that JSON does not have."
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for inner in value for number in numbers(inner)]
    if isinstance(value, (int, float)):
        return [value if math.isfinite(value) else None]
    return []


class Run:
    "Settings and seed of a part, where its arrays go, and what it has drawn so far."

    def __init__(self, part, folder=RESULTS, *, about=None, partial=None):
        self.settings, self.seed, self.folder = part.settings, part.seed, Path(folder)
        self.partial, self.first, self.drawn = partial, {}, {}
        self.commits, self.before, self.begin = [], 0.0, time.monotonic()
        if partial:
            self.resume(json.dumps(about))
        self.commits = list(dict.fromkeys([*self.commits, commit()]))

    def resume(self, about):
        "Continue a file of the same command, settings and versions, or begin another."
        lines = self.partial.read_text().splitlines() if self.partial.exists() else []
        sound = [about]
        for line in lines[1:] if lines[:1] == [about] else []:
            with suppress(ValueError):  # the last line may be cut off
                name, index, self.before, commits, value = json.loads(line)
                self.drawn[name, index], self.commits = value, commits
                sound.append(line)
        self.partial.write_text("\n".join([*sound, ""]))

    def seconds(self):
        "How long the run has taken, with what came before an interruption."
        return round(self.before + time.monotonic() - self.begin, 1)

    def keep(self, name, index, value):
        "Keep one draw."
        self.drawn[name, index] = plain(value)
        if self.partial:
            line = [name, index, self.seconds(), self.commits, self.drawn[name, index]]
            with self.partial.open("a") as file:
                file.write(json.dumps(line) + "\n")

    def repeat(self, name, function, count):
        "The list of function(0), ..., function(count - 1), as JSON holds it."
        for index in range(count):
            if (name, index) not in self.drawn:
                self.keep(name, index, function(index))
        drawn = [self.drawn[name, index] for index in range(count)]
        self.first[name] = [numbers(value)[:8] for value in drawn[:2]]
        return drawn

    def once(self, name, function, *args, **options):
        "function(*args, **options), kept like a draw."
        return self.repeat(name, lambda _: function(*args, **options), 1)[0]


class Check(Run):
    "A run in which the first two draws take the place of all."

    def repeat(self, name, function, count):
        "Two draws, in turn, as often as asked."
        drawn = super().repeat(name, function, min(count, 2))
        return [drawn[index % len(drawn)] for index in range(count)]


def differences(part, stored):
    "In words: where the settings, the first draws or the names of the results differ."
    with TemporaryDirectory() as folder:
        run = Check(part, folder)
        with np.errstate(all="ignore"):  # two draws have hardly a spread
            results = plain(part.measure(run))
    if [stored["seed"], stored["settings"]] != plain([part.seed, part.settings]):
        yield "seed or settings"
    for name, new in run.first.items():
        old = np.array(sum(stored["first_draws"].get(name, []), []), float)
        new = np.array(sum(new, []), float)
        alike = len(old) == len(new)
        if not (alike and np.allclose(old, new, rtol=1e-6, atol=1e-12, equal_nan=True)):
            yield f"draws of {name}"
    if missing := results.keys() ^ (stored.keys() & results.keys()):
        yield f"names of the results: {', '.join(missing)}"


def made(run):
    "When, where and from what a run was made."
    processor = f"{platform.machine()}, {os.cpu_count()} threads"
    about = {"commits": run.commits, "date": time.strftime("%Y-%m-%d")}
    return about | {"processor": processor, "seconds": run.seconds()}


def store(path, label, about):
    "Put a part into the file of its study: a line for each part."
    stored = json.loads(path.read_text()) if path.exists() else {}
    stored[label] = about
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in stored.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def compute(name, label, part, folder=RESULTS):
    "Compute a part and store it."
    partial, about = folder / f"{name}_{label}.partial", request(name, label, part)
    run = Run(part, folder, about=about, partial=partial)
    results = plain(part.measure(run))
    about |= made(run) | {"first_draws": run.first} | results
    store(folder / f"{name}.json", label, about)
    partial.unlink()


def main(file, doc, parts, arguments=None):
    "Run the named parts, or all, of a study from the command line; returns the exit code."
    name, parser = Path(file).stem, argparse.ArgumentParser(description=doc.split("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(parts))
    parser.add_argument("--check", action="store_true", help="compare the first draws")
    given = parser.parse_args(arguments)
    if unknown := set(given.parts) - set(parts):
        parser.error(f"no such part: {', '.join(unknown)}; there are {', '.join(parts)}")
    failed = False
    for label in given.parts or parts:
        if given.check:
            found = list(differences(parts[label], read(name, label)))
            failed |= bool(found)
            print(name, label, "differs in " + "; ".join(found) if found else "is the same")
        else:
            compute(name, label, parts[label])
            print(name, label, "is computed", flush=True)
    return int(failed)
