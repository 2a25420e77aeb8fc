"""What the benchmarks share: what a run was, and where its numbers go."""

import sys
from pathlib import Path

STUDIES = Path(__file__).parents[1] / "studies"
sys.path.append(str(STUDIES))
from common import RESULTS, Part, Run, made, request, store  # noqa: E402

SEED = 0  # of the matrices


def begun(packages=()):
    "A run that counts its seconds from now, and what it is asked for."
    part, script = Part(None, {}, SEED, packages), Path(sys.argv[0]).name
    about = request("", "", part) | {"command": f"python benchmarks/{script}"}
    return Run(part), about


def finish(run, about, label, results):
    "Store a part of results/benchmarks.json."
    store(RESULTS / "benchmarks.json", label, about | made(run) | results)
