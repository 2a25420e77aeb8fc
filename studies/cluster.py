"""Time of a Dask run against the number of rows, with one and with two worker processes.

python studies/cluster.py     writes results/cluster.json, in a few minutes on two cores
"""

import json
import platform
import time
from pathlib import Path

import dask
import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster

import spectral_moments
from spectral_moments.scale import dask_estimate, summarise

SETTINGS = {
    "n_features": 200,
    "n_max": 6,
    "chunk": 10_000,
    "rows": [20_000, 40_000, 80_000, 160_000],
    "workers": [1, 2],
    "repetitions": 3,
}
SEED = 5
PATH = Path(__file__).parent.parent / "results" / "cluster.json"


def random_rows(n_rows):
    "A matrix that each worker makes for itself, chunk by chunk."
    rng = da.random.default_rng(SEED)
    shape = (n_rows, SETTINGS["n_features"])
    return rng.standard_normal(shape, chunks=(SETTINGS["chunk"], -1))


def run(n_rows):
    "Seconds for one estimate on the active cluster."
    phi = random_rows(n_rows)
    begin = time.perf_counter()
    dask_estimate(phi, SETTINGS["n_max"], stderr=False, random_state=SEED)
    return time.perf_counter() - begin


def pieces():
    "Seconds in this process for the summary of one chunk and for one merge."
    rows = np.random.default_rng(SEED).standard_normal((SETTINGS["chunk"], 200))
    summarise([rows[:100]], SETTINGS["n_max"], 0)  # compile
    begin = time.perf_counter()
    stream = summarise([rows], SETTINGS["n_max"], 0)
    middle = time.perf_counter()
    stream.merge(stream)
    return {"summary": middle - begin, "merge": time.perf_counter() - middle}


def main():
    "Measure and write the file."
    seconds = {}
    for workers in SETTINGS["workers"]:
        options = dict(n_workers=workers, threads_per_worker=1, dashboard_address=None)
        with LocalCluster(**options) as cluster, Client(cluster):
            run(SETTINGS["chunk"] * 2)  # compile in every worker
            seconds[workers] = [
                [run(rows) for _ in range(SETTINGS["repetitions"])]
                for rows in SETTINGS["rows"]
            ]
        print(workers, seconds[workers], flush=True)
    result = {
        "command": "python studies/cluster.py",
        "settings": SETTINGS,
        "seed": SEED,
        "versions": {
            "spectral_moments": spectral_moments.__version__,
            "dask": dask.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "seconds": seconds,
        "pieces": pieces(),
    }
    PATH.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":  # worker processes import this file
    main()
