"""What the benchmarks share: where their numbers go."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "studies"))
from common import RESULTS, Part, compute

SEED = 0  # of the matrices


def store(label, measure, settings, packages=()):
    "Measure a part of results/benchmarks.json, and keep it with how it was made."
    part = Part(lambda run: measure(), settings, SEED, packages)
    command = f"python benchmarks/{Path(sys.argv[0]).name}"
    compute(command, RESULTS / "benchmarks.json", label, part)
