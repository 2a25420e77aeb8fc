"""Time of a Dask run against the number of rows, with one and with two worker processes.

python studies/cluster.py     writes results/cluster.json, in a few minutes on two cores
"""

import time

import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster

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


def random_rows(settings, n_rows, seed):
    "A matrix that each worker makes for itself, chunk by chunk."
    rng = da.random.default_rng(seed)
    shape = (n_rows, settings["n_features"])
    return rng.standard_normal(shape, chunks=(settings["chunk"], -1))


def seconds(settings, n_rows, seed):
    "Seconds for one estimate on the active cluster."
    phi = random_rows(settings, n_rows, seed)
    begin = time.perf_counter()
    dask_estimate(phi, settings["n_max"], stderr=False, random_state=seed)
    return time.perf_counter() - begin


def pieces(settings, seed):
    "Seconds in this process for the summary of one chunk and for one merge."
    shape = settings["chunk"], settings["n_features"]
    rows = np.random.default_rng(seed).standard_normal(shape)
    summarise([rows[:100]], settings["n_max"], 0)  # compile
    begin = time.perf_counter()
    stream = summarise([rows], settings["n_max"], 0)
    middle = time.perf_counter()
    stream.merge(stream)
    return {"summary": middle - begin, "merge": time.perf_counter() - middle}


def all_rows(settings, workers, seed):
    "Seconds for every number of rows, several times, with so many worker processes."
    options = dict(n_workers=workers, threads_per_worker=1, dashboard_address=None)
    with LocalCluster(**options) as cluster, Client(cluster):
        seconds(settings, settings["chunk"] * 2, seed)  # compile in every worker
        times = range(settings["repetitions"])
        return [[seconds(settings, rows, seed) for _ in times] for rows in settings["rows"]]


def measure(run):
    "All numbers of workers."
    settings, seed = run.settings, run.seed
    found = {
        workers: run.once(f"{workers} workers", all_rows, settings, workers, seed)
        for workers in settings["workers"]
    }
    return {"seconds": found, "pieces": run.once("pieces", pieces, settings, seed)}


QUICK = {"chunk": 1000, "rows": [2000], "workers": [1], "repetitions": 2}

if __name__ == "__main__":  # worker processes import this file
    from common import main

    options = dict(quick=QUICK, packages=["dask", "distributed"])
    raise SystemExit(main(__file__, __doc__, measure, SETTINGS, SEED, **options))
