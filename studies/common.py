"""What the studies share: arguments, resuming, progress, and how a result is stored.

A study is a function of a `Run` that returns a dictionary. It is stored with its command,
seed, settings, versions, commits, date, processor, seconds and the numbers of its first
draws in results/NAME.json; a test draws these again. A run that was interrupted continues
where it stopped, and a stored study is not replaced by a smaller one, except by --force.
"""

import argparse
import copy
import json
import math
import os
import platform
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path

from spectral_moments import __version__

RESULTS = Path(__file__).resolve().parents[1] / "results"
REPEATED = ("n_matrices", "n_sketches", "repetitions")  # what --repetitions sets
COUNTED = (*REPEATED, "rows")  # what makes a study large


def versions(*packages):
    "Versions of what computes."
    own = {"python": platform.python_version(), "spectral_moments": __version__}
    return own | {name: version(name) for name in ("numpy", "scipy", "numba", *packages)}


def request(command, seed, settings, *packages):
    "What a run is asked for; it goes on where it stopped only if all of it is the same."
    about = {"command": command, "seed": seed, "settings": settings}
    return about | {"versions": versions(*packages)}


def provenance(store):
    "What a run is, as it begins: `request`, commits (of one that goes on, all), processor."
    parts, git = store.parts, ["git", "rev-parse", "--short", "HEAD"]
    here = Path(__file__).parent
    asked = subprocess.run(git, capture_output=True, text=True, cwd=here, check=False)
    commits = [*parts.get(("commits",), []), asked.stdout.strip() or "none"]
    store.add(("commits",), list(dict.fromkeys(commits)))
    cpu = Path("/proc/cpuinfo")
    names = cpu.read_text().split("model name")[1:] if cpu.exists() else []
    name = names[0].split("\n")[0].strip("\t :") if names else platform.processor()
    return store.settings | {
        "commits": parts["commits",],
        "date": time.strftime("%Y-%m-%d"),
        "processor": f"{name}, {os.cpu_count()} threads",
    }


def numbers(part):
    "All numbers in lists and dictionaries, None for those that JSON has not."
    if isinstance(part, dict):
        part = list(part.values())
    if isinstance(part, list):
        return [number for inner in part for number in numbers(inner)]
    if isinstance(part, (int, float)):
        return [part if math.isfinite(part) else None]
    return []


def first_draws(run, name, count):
    "The first numbers of the first repetitions of one part of a study."
    return [numbers(run.store.parts[name, index])[:8] for index in range(min(count, 2))]


def as_list(value):
    "An array or a number of numpy as JSON holds it."
    return value.tolist()


@contextmanager
def atomic_write(path, mode):
    "Open a file beside `path`, which replaces it when all was written."
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        with beside.open(mode) as file:
            yield file
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def write_json(path, result, indent=1):
    "Write a result in one step."
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path, "w") as file:
        file.write(json.dumps(result, indent=indent, default=as_list) + "\n")


def read(name):
    "A stored study."
    return json.loads((RESULTS / f"{name}.json").read_text())


def made(about, what=""):
    "What a figure or a table was made of, in one line: command, seed, commit, date."
    asked = about["command"], f"seed {about['seed']}" if "seed" in about else ""
    versions = about.get("versions", {}).get("spectral_moments", "")
    commits = " to ".join(about.get("commits", [])[:1] + about.get("commits", [])[1:][-1:])
    commit, minutes = commits and f"commit {commits}", about.get("seconds", 0) / 60
    took = minutes and f"{max(minutes, 0.1):.{minutes < 3:d}f} minutes"
    words = what, *asked, commit, versions, about.get("date"), took, about.get("processor")
    return "; ".join(str(word) for word in words if word)


def source(about, what=""):
    "Print what a figure or a table was `made` of."
    print(made(about, what))


# --- a run that may be interrupted --------------------------------------------------------


class Checkpoint:
    "Finished parts of a long run, in a file that survives an interruption."

    def __init__(
        self,
        path,  # the file, or None to keep the parts in memory only
        settings,  # what the parts depend on, as JSON can hold it
    ):
        self.path, self.settings, self.parts = path and Path(path), settings, {}
        first, *lines = [json.dumps(settings, default=_plain), *self._lines()]
        if lines[:1] == [first]:
            self.parts = dict(_sound_parts(lines[1:]))
        elif lines:
            os.replace(self.path, _unused_name(self.path))
        if self.path:
            with atomic_write(self.path, "w") as file:
                file.writelines([f"{first}\n", *map(self._line, self.parts)])
        self.begin = time.monotonic() - self.parts.get(("seconds",), 0)

    def seconds(self):
        "How long the run has taken, with what came before an interruption."
        return round(time.monotonic() - self.begin, 1)

    def _lines(self):
        "The complete lines of the file."
        if not self.path or not self.path.exists():
            return []
        return self.path.read_text(errors="replace").split("\n")[:-1]

    def _line(self, key):
        "One part as a line of the file."
        return json.dumps([key, self.parts[key]], default=_plain) + "\n"

    def add(
        self,
        key,  # a tuple of numbers and strings
        part,  # array, number or lists of these
    ):
        "Keep one finished part."
        self.parts[key] = part
        if self.path:
            with self.path.open("a") as file:
                file.write(self._line(key))

    def finish(self):
        "Remove the file: the run is complete."
        if self.path:
            self.path.unlink()


def _plain(value):
    "An array as a list, and what else JSON cannot hold as text."
    return value.tolist() if hasattr(value, "tolist") else repr(value)


def _sound_parts(lines):
    "Keys and parts up to the first line that is damaged."
    for text in lines:
        try:
            key, part = json.loads(text)
            yield tuple(key), part
        except (ValueError, TypeError):
            return


def _unused_name(path):
    "A name beside `path` that is not taken."
    number = 1
    while (other := path.with_name(f"{path.name}.{number}")).exists():
        number += 1
    return other


# --- settings -----------------------------------------------------------------------------


def merged(settings, changes):
    "Settings with some entries changed, at any depth."
    result = copy.deepcopy(settings)
    for key, value in changes.items():
        inside = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merged(result[key], value) if inside else value
    return result


def counts(tree, path=()):
    "How often things are repeated: place in the tree -> number."
    found = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            found |= counts(value, (*path, key))
        elif key in COUNTED:
            found[*path, key] = max(value) if isinstance(value, (list, tuple)) else value
    return found


def with_repetitions(settings, repetitions):
    "The same number of repetitions everywhere."
    changed = dict(settings)
    for key, value in settings.items():
        if isinstance(value, dict):
            changed[key] = with_repetitions(value, repetitions)
        elif key in REPEATED:
            changed[key] = repetitions
    return changed


def refuse_smaller(path, settings):
    "An error if the stored study is larger than the one with these settings."
    try:
        stored = json.loads(path.read_text())
        old = counts(stored) | counts(stored["settings"])
    except (OSError, ValueError, KeyError, AttributeError):
        return  # nothing, or nothing sound, is stored
    new = counts(settings)
    for place, number in old.items():
        if place in new and number > new[place]:
            name = " ".join(place)
            raise ValueError(
                f"{path} has {name} = {number}, and {new[place]} would replace it; "
                "ask for as many, or for another --output, or use --force"
            )


# --- running ------------------------------------------------------------------------------


class Run:
    "Settings and seed of a run, its folder of results, and its finished parts."

    def __init__(self, settings, seed, *, jobs=1, store=None, report=print, folder=RESULTS):
        self.settings, self.seed, self.jobs, self.folder = settings, seed, jobs, folder
        self.store, self.first = store or Checkpoint(None, {}), {}
        self.report, self.last = report, time.monotonic()

    def repeat(self, name, function, count, *, processes=False):
        "The list of function(0), ..., function(count - 1), in what JSON holds."
        parts = self.store.parts
        todo = [index for index in range(count) if (name, index) not in parts]
        spawn = partial(ProcessPoolExecutor, mp_context=get_context("spawn"))
        pool = (spawn if processes else ThreadPoolExecutor)(self.jobs)
        try:
            found = (pool.map if self.jobs > 1 else map)(function, todo)
            for done, (index, part) in enumerate(zip(todo, found), count - len(todo) + 1):
                plain = json.loads(json.dumps(part, default=as_list))
                self.store.add((name, index), plain)
                self.progress(name, done, count)
        finally:
            pool.shutdown(cancel_futures=True)
        self.first[name] = first_draws(self, name, count)
        return [parts[name, index] for index in range(count)]

    def once(self, name, function, *args, **options):
        "function(*args, **options), computed once and for all."
        return self.repeat(name, lambda _: function(*args, **options), 1)[0]

    def progress(self, name, done, count):
        "A line at the end, and every ten seconds before it."
        if done == count or time.monotonic() > self.last + 10:
            self.last = time.monotonic()
            self.store.add(("seconds",), self.store.seconds())
            self.report(f"{name}: {done} of {count}", file=sys.stderr, flush=True)


# --- command line -------------------------------------------------------------------------


def chosen_settings(settings, quick, given):
    "Settings after --quick and --repetitions."
    settings = merged(settings, quick) if given.quick else settings
    repetitions = getattr(given, "repetitions", None)
    if repetitions is None:
        return settings
    if repetitions < 2:
        raise ValueError(f"--repetitions {repetitions} must be at least 2")
    return with_repetitions(settings, repetitions)


def main(
    file,  # the study's __file__
    doc,  # its __doc__
    measure,  # function of a `Run` that returns the results as a dictionary
    settings,  # what is computed
    seed,  # default seed
    *,
    quick,  # changes of the settings for a run of seconds
    part="",  # of a study in several files: results/NAME_PART.json
    packages=(),  # further packages whose version is stored
    jobs=1,  # default number of threads
    indent=1,  # of the JSON file
    arguments=None,  # None for those of the process
):  # exit code
    "Run a study from the command line."
    name, parser = Path(file).stem, argparse.ArgumentParser(description=doc.split("\n")[0])
    parser.add_argument("--seed", type=int, default=seed, help=f"default {seed}")
    parser.add_argument("--jobs", type=int, default=jobs, help=f"default {jobs}")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder")
    parser.add_argument("--force", action="store_true", help="replace a larger study")
    parser.add_argument("--quick", action="store_true", help="a tiny run, to try it")
    if any(place[-1] in REPEATED for place in counts(settings)):
        parser.add_argument("--repetitions", type=int, help="of all that is repeated")
    given = parser.parse_args(arguments)
    path = given.output / (f"{name}_{part}.json" if part else f"{name}.json")
    try:
        settings = chosen_settings(settings, quick, given)
        if not given.force:
            refuse_smaller(path, settings)
        path.parent.mkdir(parents=True, exist_ok=True)
    except (ValueError, OSError) as error:
        parser.error(str(error))
    command = f"python studies/{name}.py{part and ' ' + part}{asked(given, seed)}"
    try:
        about = request(command, given.seed, settings, *packages)
        store = Checkpoint(path.with_suffix(".partial"), about)
        about = provenance(store)
        options = dict(jobs=given.jobs, store=store, folder=given.output)
        run = Run(settings, given.seed, **options)
        results = measure(run)
        about |= {"seconds": store.seconds(), "first_draws": run.first}
        write_json(path, about | results, indent)
        store.finish()
    except KeyboardInterrupt:
        print("interrupted; the same command continues where it stopped", file=sys.stderr)
        return 130
    print(path)
    return 0


def main_parts(file, doc, parts, *, arguments=None, **options):
    "Run the named parts, or all, of a study: name -> (measure, settings, seed, quick)."
    words = sys.argv[1:] if arguments is None else arguments
    rest = [word for word in words if word not in parts]
    for name in [word for word in words if word in parts] or parts:
        *given, quick = parts[name]
        code = main(file, doc, *given, quick=quick, part=name, arguments=rest, **options)
        if code:
            return code
    return 0


def asked(given, seed):
    "The options that change the numbers."
    words = " --quick" * given.quick
    if getattr(given, "repetitions", None) is not None:
        words += f" --repetitions {given.repetitions}"
    return words + (f" --seed {given.seed}" if given.seed != seed else "")
