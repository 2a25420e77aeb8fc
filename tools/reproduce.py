"""Run the stated command of every file in results/ again, and compare the numbers.

    python tools/reproduce.py [NAME ...]

What is computed goes to reproduced/, so that what is stored stays. Stopped and started
again, it goes on where it was: a finished file of this commit is not computed again, and a
study that was interrupted continues.
"""

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "reproduced"
REPEATED = ("studies/",)  # commands whose numbers come again; not seconds
OF_THE_RUN = {"command", "versions", "commits", "date", "processor", "seconds"}


def content(path):
    "A file of results, with the arrays that stand beside it."
    found, arrays = json.loads(path.read_text()), path.with_suffix(".npz")
    if arrays.exists():
        with np.load(arrays) as parts:
            found["npz"] = {name: part.tolist() for name, part in parts.items()}
    return found


def leaves(part, path=()):
    "Everything in a file that is no dictionary or list, by its place."
    if isinstance(part, (dict, list)):
        inner = part.items() if isinstance(part, dict) else enumerate(part)
        for key, value in inner:
            if key not in OF_THE_RUN:
                yield from leaves(value, (*path, key))
    else:
        yield path, part


def same(a, b, tolerance=1e-6):
    "Whether two entries agree."
    if isinstance(a, float) and isinstance(b, (int, float)):
        return math.isclose(a, b, rel_tol=tolerance, abs_tol=1e-12) or a != a and b != b
    return a == b


def compared(stored, found):
    "In words: how many numbers of two files differ."
    old, new = (dict(leaves(x)) for x in (stored, found))
    other = [place for place in old | new if not same(old.get(place), new.get(place))]
    if not other:
        return f"the same: {len(old)} numbers"
    places = ", ".join(" ".join(map(str, place)) for place in other[:3])
    return f"{len(other)} of {len(old)} numbers differ: {places}"


def made_here(path, commit):
    "Whether a file was computed by this commit."
    return path.exists() and commit in json.loads(path.read_text()).get("commits", [])


def main(names):
    git = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, cwd=ROOT).stdout.strip()
    files = sorted((ROOT / "results").glob("*.json"), key=lambda path: path.name)
    chosen = {p: content(p) for p in files if not names or p.stem in names}
    again = lambda about: any(place in about["command"] for place in REPEATED)
    repeated = {p: x for p, x in chosen.items() if again(x)}
    known = sum(x.get("seconds", 0) for x in repeated.values()) / 3600
    print(f"{len(repeated)} files; {known:.1f} hours of one core when they were stored")
    for path, about in repeated.items():
        new, took = OUTPUT / path.name, about.get("seconds")
        if not made_here(new, commit):
            length = f"{took / 60:.1f} minutes" if took else "a time that was not stored"
            print(f"{path.name}: {about['command']}, {length}", flush=True)
            words = about["command"].split()[1:]
            done = subprocess.run(
                [sys.executable, *words, "--output", OUTPUT], cwd=ROOT, check=False
            )
            if done.returncode:
                return done.returncode
        print(f"{path.name}: {compared(about, content(new))}", flush=True)
    for path in chosen.keys() - repeated.keys():
        print(f"{path.name}: seconds, not computed again: {chosen[path]['command']}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit("stopped; the same command goes on where it was")
