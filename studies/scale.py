"""Internet scale on paper: a model of sums over rows on a cluster, fitted and simulated.

Writes results/scale.json: seconds of runs with one and two workers, rates that fit them,
how long Dask takes for a schedule of sleeping tasks, and what 10^9 x 10^4 would take.
"""

import time
from functools import partial

import numpy as np

SEED = 0
SETTINGS = {
    "workers": [1, 2],
    "shapes": [[100_000, 64], [200_000, 128], [150_000, 256]],
    "chunk": 10_000,
    "repetitions": 2,
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


def parts(rows, columns, chunk, workers):
    "What a pass consists of: products, entries of rows, entries of sums, tasks."
    chunks = rows / chunk
    depth = np.ceil(np.log(max(chunks, 2)) / np.log(TREE))
    each = [rows * columns**2 / 2, rows * columns, chunks * columns**2]
    return [x / workers for x in each] + [chunks], depth


def seconds(shape, chunk, workers):
    "Time of one pass for the values, order 2, on a cluster of processes."
    import dask.array as da
    from dask.distributed import Client, LocalCluster

    from spectral_moments import estimate
    from spectral_moments.engine import arrays

    arrays.LOADED = 0
    x = da.random.default_rng(SEED).standard_normal(shape, chunks=(chunk, shape[1]))
    options = dict(threads_per_worker=1, processes=True, dashboard_address=":0")
    with LocalCluster(n_workers=workers, **options) as cluster, Client(cluster):
        call = lambda: estimate(x, 2, stderr=False)
        call()  # workers import what they need
        begin = time.perf_counter()
        call()
        return time.perf_counter() - begin


def asleep(duration, work, piece, *rows):
    "A task of the modelled length."
    time.sleep(duration)
    return [np.zeros(1)]


def scheduled(chunks, seconds, threads):
    "How long the graph of so many sleeping tasks takes, and how long it should."
    import dask.array as da
    from dask.distributed import Client, LocalCluster

    from spectral_moments.engine.arrays import map_parts
    from spectral_moments.engine.sources import Source
    from spectral_moments.engine.sums import Piece, added_sums

    source = Source(da.zeros((1, chunks, 1), chunks=(1, 1, 1)))
    pieces = [Piece(slice(k, k + 1), {}) for k in range(chunks)]
    options = dict(threads_per_worker=threads, processes=False, dashboard_address=":0")
    with LocalCluster(n_workers=1, **options) as cluster, Client(cluster):
        begin = time.perf_counter()
        map_parts(partial(asleep, seconds), [source], pieces, None, added_sums)
        found = time.perf_counter() - begin
    return {"seconds": found, "ideal": chunks * seconds / threads}


def fitted(runs, chunk):
    "Rates that fit the runs, none negative, in seconds for a unit of each part."
    from scipy.optimize import nnls

    rows = [parts(*run["shape"], chunk, run["workers"])[0] for run in runs]
    times = np.array([run["seconds"] for run in runs])
    X = np.column_stack([np.array(rows), np.ones(len(runs))]) / times[:, None]
    size = abs(X).max(0)
    rates = nnls(X / size, np.ones(len(runs)))[0] / size
    spread = float(np.std(X @ rates))
    names = ("product", "entry", "sum", "task", "start")
    return dict(zip(names, rates.tolist())) | {"relative_error": spread}


def on_paper(rates, rows, columns, workers, chunk, bytes):
    "Bytes read and moved, state, depth and hours of two passes."
    each, depth = parts(rows, columns, chunk, workers)
    per_pass = float(np.dot(each, [rates[k] for k in ("product", "entry", "sum", "task")]))
    return {
        "bytes_read": 2 * rows * columns * bytes,
        "bytes_moved": rows / chunk * columns**2 * 8 * TREE / (TREE - 1),
        "bytes_of_state": columns**2 * 8,
        "depth": float(depth),
        "hours": 3 * per_pass / 3600,  # errors cost as much again, and element-wise work
    }


def measure(run):
    "Runs, rates, a schedule, and the paper."
    known, runs = run.settings, []
    for workers in known["workers"]:
        for shape in known["shapes"]:
            once = lambda _, s=shape, w=workers: seconds(s, known["chunk"], w)
            times = run.repeat(f"{shape} {workers}", once, known["repetitions"])
            runs.append({"shape": shape, "workers": workers, "seconds": min(times)})
    rates = fitted(runs, known["chunk"])
    schedule = run.once("schedule", scheduled, **known["schedule"])
    return {
        "runs": runs,
        "rates": rates,
        "schedule": schedule,
        "paper": PAPER | on_paper(rates, **PAPER),
    }


if __name__ == "__main__":
    from common import main

    raise SystemExit(
        main(__file__, __doc__, measure, SETTINGS, SEED, quick=QUICK, packages=("dask",))
    )
