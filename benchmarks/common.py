"""What the benchmarks share: what a run was, and where its numbers go."""

import importlib.util
import sys
from pathlib import Path

FILE = Path(__file__).parents[1] / "results" / "benchmarks.json"
SEED = 0  # of the matrices


def begun():
    "What the running script is, as the studies say it, and a clock that counts from now."
    path = FILE.parents[1] / "studies" / "common.py"
    spec = importlib.util.spec_from_file_location("studies_common", path)
    studies = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(studies)
    command = f"python benchmarks/{Path(sys.argv[0]).name}"
    store = studies.Checkpoint(None, studies.request(command, SEED, {}))
    return studies.provenance(store), store.seconds
