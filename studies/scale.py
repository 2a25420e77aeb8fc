"""Internet scale on paper: a model of sums over rows on a cluster, fitted and simulated.

Writes results/scale.json: seconds of runs with one, two and four workers, rates that fit
them, how long Dask takes for a schedule of sleeping tasks, and what 10^9 x 10^4 would take.
"""

import os
import time
from functools import partial

import numpy as np

SEED = 0
SETTINGS = {
    "workers": [1, 2, 4],
    "shapes": [[200_000, 128], [60_000, 512], [20_000, 1536]],
    "chunk": 10_000,
    "repetitions": 6,
    "schedule": {"chunks": 10_000, "seconds": 0.2, "threads": 100},
}
QUICK = {
    "workers": [1],
    "shapes": [[2000, 8], [4000, 8], [4000, 16]],
    "chunk": 500,
    "repetitions": 2,
    "schedule": {"chunks": 100, "seconds": 0.01, "threads": 10},
}
PAPER = {"rows": 1e9, "columns": 1e4, "workers": 1000, "chunk": 1e5, "bytes": 2}
TREE = 8  # sums that are added at once


def cores():
    "How many workers can work at a time here."
    known = hasattr(os, "sched_getaffinity")
    return len(os.sched_getaffinity(0)) if known else os.cpu_count()


def parts(rows, columns, at_a_time):
    "What a pass of one worker consists of: products, and entries of rows."
    return [rows * columns**2 / 2 / at_a_time, rows * columns / at_a_time]


def array(shape, chunk):
    "Random rows in chunks, made where they are needed."
    import dask.array as da

    rng = da.random.default_rng(SEED)
    return rng.standard_normal(shape, chunks=(chunk, shape[1]))


def first_rows(shape, chunk, index):
    "Moments of the first rows of a chunk: what the workers are given."
    from spectral_moments import estimate

    rows = array(shape, chunk).blocks[index][:100].compute(scheduler="synchronous")
    return estimate(rows, 2, stderr=False).values


def seconds(shape, chunk, workers, repetitions):
    "Least time of one pass for the values, order 2, on a cluster of processes."
    from dask.distributed import Client, LocalCluster

    from spectral_moments import estimate
    from spectral_moments.engine import arrays

    arrays.LOADED, x = 0, array(shape, chunk)
    options = dict(threads_per_worker=1, processes=True, dashboard_address=":0")
    with LocalCluster(n_workers=workers, **options) as cluster, Client(cluster):
        x, times = x.persist(), []
        for _ in range(1 + repetitions):  # the first imports what is needed
            begin = time.perf_counter()
            estimate(x, 2, stderr=False)
            times.append(time.perf_counter() - begin)
        return min(times)


def asleep(duration, work, piece, *rows):
    "A task of the modelled length."
    time.sleep(duration)
    return [np.zeros(1)]


def scheduled(chunks, seconds, threads):
    "How long the graph of so many sleeping tasks takes, and how long it should."
    import dask.array as da
    from dask.distributed import Client, LocalCluster
    from spectral_moments.engine.sources import Source
    from spectral_moments.engine.sums import Piece, added_sums

    from spectral_moments.engine.arrays import map_parts

    source = Source(da.zeros((1, chunks, 1), chunks=(1, 1, 1)))
    pieces = [Piece(slice(k, k + 1), {}) for k in range(chunks)]
    options = dict(threads_per_worker=threads, processes=False, dashboard_address=":0")
    with LocalCluster(n_workers=1, **options) as cluster, Client(cluster):
        begin = time.perf_counter()
        map_parts(partial(asleep, seconds), [source], pieces, None, added_sums)
        found = time.perf_counter() - begin
    return {"seconds": found, "ideal": chunks * seconds / threads}


def fitted(runs, schedule, chunks):
    "Rates that fit the runs, none negative: seconds for each part, of a start, of a task."
    from scipy.optimize import nnls

    at_a_time = [min(run["workers"], run["cores"]) for run in runs]
    rows = [[*parts(*run["shape"], k), 1.0] for run, k in zip(runs, at_a_time)]
    X = np.array(rows) / np.array([[run["seconds"]] for run in runs])
    size = abs(X).max(0)
    rates = nnls(X / size, np.ones(len(runs)))[0] / size
    task = max(schedule["seconds"] - schedule["ideal"], 0) / chunks
    found = dict(zip(("product", "entry", "start"), rates.tolist()))
    return found | {"task": task, "relative_error": float(np.std(X @ rates))}


def on_paper(rates, rows, columns, workers, chunk, bytes):
    "Bytes read and moved, state, depth and hours of two passes."
    chunks = rows / chunk
    products, entries = parts(rows, columns, workers)
    work = 2 * products * rates["product"] + 2 * entries * rates["entry"]
    return {
        "bytes_read": 2 * rows * columns * bytes,
        "bytes_moved": 2 * chunks * columns**2 * 8 * TREE / (TREE - 1),
        "bytes_of_state": columns**2 * 8,
        "depth": float(np.ceil(np.log(chunks) / np.log(TREE))),
        "hours": (work + 2 * chunks * rates["task"] + 2 * rates["start"]) / 3600,
        "hours_of_tasks": 2 * chunks * rates["task"] / 3600,
    }


def measure(run):
    "Runs, a schedule, rates, and the paper."
    known, runs = run.settings, []
    first = known["shapes"][0], known["chunk"]
    run.repeat("first rows", lambda index: first_rows(*first, index), 2)
    for workers in known["workers"]:
        for shape in known["shapes"]:
            options = shape, known["chunk"], workers, known["repetitions"]
            took = run.once(f"{shape} {workers}", seconds, *options)
            about = {"shape": shape, "workers": workers, "cores": cores()}
            runs.append(about | {"seconds": took})
    schedule = run.once("schedule", scheduled, **known["schedule"])
    rates = fitted(runs, schedule, known["schedule"]["chunks"])
    return {
        "runs": runs,
        "schedule": schedule,
        "rates": rates,
        "paper": PAPER | on_paper(rates, **PAPER),
    }


if __name__ == "__main__":
    from common import main

    raise SystemExit(
        main(__file__, __doc__, measure, SETTINGS, SEED, quick=QUICK, packages=("dask",))
    )
