"""What order 2 costs on a Dask cluster, by rows, columns and workers.

python benchmarks/scale.py           into results/benchmarks.json, for a page of the book
python benchmarks/scale.py --tiny    small sizes, nothing is stored

Each worker is a process of one thread with one gigabyte of memory, less than the array.
Rows are drawn where they are used, as others would be read; a sum over all entries is the
baseline.
"""

import argparse
import os
import resource
import signal
import threading
import time
from functools import partial

import numpy as np
from shared import SEED, store

import spectral_moments as sm

MEMORY = "1GB"  # of a worker
ENTRIES = 6_400_000  # of a chunk of rows
SIZES = {  # rows, columns, numbers of workers; of a full run, of a tiny one
    False: [
        *[(rows, 256, (1, 2)) for rows in (250_000, 500_000, 1_000_000, 2_000_000)],
        *[(250_000, columns, (2,)) for columns in (64, 128, 512, 1024)],
    ],
    True: [(60_000, 256, (1, 2))],
}


def draw(columns, block_info):
    "Rows of twenty dimensions, with noise, by their place."
    (start, stop), _ = block_info[None]["array-location"]
    rng, weights = (np.random.default_rng([SEED, k]) for k in (start, 2**32))
    latent = rng.standard_normal((stop - start, 20))
    noise = rng.standard_normal((stop - start, columns))
    return latent @ weights.standard_normal((20, columns)) + noise


def array(rows, columns):
    "A Dask array that is nowhere stored."
    from dask.array import map_blocks

    size = ENTRIES // columns
    chunks = [min(size, rows - start) for start in range(0, rows, size)]
    function = partial(draw, columns)
    return map_blocks(function, chunks=(tuple(chunks), (columns,)), dtype=float)


def elapsed(call):
    "Seconds of a call, and its result."
    begin = time.perf_counter()
    result = call()
    return float(f"{time.perf_counter() - begin:.3g}"), result


def peak():
    "Most memory of this process so far, in bytes."
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measure_one(rows, columns, workers, kill_after=None):
    "One estimate on a new cluster; a worker is killed after some seconds of it."
    from dask.distributed import Client, LocalCluster

    options = dict(n_workers=workers, threads_per_worker=1, memory_limit=MEMORY)
    options |= dict(dashboard_address=None, silence_logs=50)
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        small, x = array(2 * ENTRIES // columns, columns), array(rows, columns)
        sm.estimate(small)  # first calls import and compile
        base, _ = elapsed(lambda: x.sum().compute())
        if kill_after:
            first = [*client.run(os.getpid).values()][0]
            threading.Timer(kill_after, os.kill, (first, signal.SIGKILL)).start()
        seconds, est = elapsed(lambda: sm.estimate(x))
        most = max(client.run(peak).values())
    found = dict(rows=rows, columns=columns, workers=workers, killed=bool(kill_after))
    found |= dict(seconds=seconds, baseline=base, bytes=8 * rows * columns, peak=most)
    found |= dict(methods=est.methods, values=est.values, stderr=est.stderr)
    print(found, flush=True)
    return found


def measure(sizes):
    "All sizes; the largest but one again, while one of two workers dies."
    found = [measure_one(*size, k) for *size, workers in sizes for k in workers]
    two = [x for x in found if x["workers"] == 2 and x["columns"] == 256]
    again = two[-2:][0]
    where = again["rows"], again["columns"], 2
    found.append(measure_one(*where, kill_after=again["seconds"] / 2))
    return dict(memory=MEMORY, cases=found)


def main():
    "Measure all, and store it."
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiny", action="store_true")
    tiny = parser.parse_args().tiny
    measured = partial(measure, SIZES[tiny])
    if tiny:
        measured()
    else:
        store("scale", measured, {}, ("dask", "distributed"))


if __name__ == "__main__":
    main()
