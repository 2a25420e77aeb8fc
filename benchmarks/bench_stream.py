"""Sums over rows: a file, a stream and a merge, in products of the matrix with itself.

python benchmarks/bench_stream.py
"""

import tempfile
from pathlib import Path

import numpy as np
from common import Report, by, in_turn, sized, third_above

import spectral_moments as sm
from spectral_moments.engine import arrays

P, Q = sized((40_000, 256), (2000, 16))
MEASURED = {  # order, options, whether with errors: products; a third more is the limit
    (2, "", True): 4.3,
    (3, "", False): 7.7,
    (3, "", True): 14.5,
    (4, "", False): 26.6,
    (4, "", True): 46.7,
    (4, "not centred", True): 31.1,
    (2, "population", True): 4.4,
    (2, "groups", True): 11.5,
}


def options_of(what):
    "Options of `estimate`."
    return {
        "": {},
        "not centred": dict(center=False),
        "population": dict(population=(None, Q)),
        "groups": dict(groups=np.arange(P) // 40),
    }[what]


def against_rows(report, given):
    "The cost of a row of a file, of a quarter of the rows and of all: a straight line."
    for n_max in (2, 3, 4):
        parts = given[: P // 4], given
        calls = [lambda x=x, n=n_max: sm.estimate(x, n, stderr=False) for x in parts]
        few, all_rows = in_turn(calls, 3)
        report.row(
            "estimate of a file, time of a row: of all rows over that of a quarter",
            all_rows / few / 4,
            sizes=f"{by(P, Q)}, n_max = {n_max}",
            baseline=f"the first {by(P // 4)} rows",
            timing="shortest of 3, in turn",
        )


def main():
    report, rng = Report("stream"), np.random.default_rng(0)
    rows = rng.standard_normal((P, Q))
    square = lambda: rows.T @ rows
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "rows.npy", rows)
        given = np.load(Path(folder) / "rows.npy", mmap_mode="r")
        arrays.LOADED = 0  # a file stays a file
        for (n_max, what, stderr), before in MEASURED.items():
            known = options_of(what) | dict(stderr=stderr)
            call = lambda n=n_max, o=known: sm.estimate(given, n, **o)
            report.row(
                f"estimate of a file, {what or 'centred'}, "
                f"{'with' if stderr else 'without'} errors",
                np.divide(*in_turn([call, square], 3)),
                third_above(before),
                sizes=f"{by(P, Q)}, n_max = {n_max}",
                baseline="the product of the matrix with its transpose, Q x Q",
                timing="shortest of 3, in turn",
            )
        against_rows(report, given)
    for n_max, limit in ((2, 6), (3, 14)):
        stream = sm.Stream(Q, n_max).update(rows)
        calls = [lambda s=stream: s.update(rows), lambda s=stream: s.merge(s), square]
        update, merge, base = in_turn(calls, 3)
        report.row(
            "stream, further rows",
            update / base,
            limit,
            sizes=f"{by(P, Q)}, n_max = {n_max}",
            baseline="the product of the matrix with its transpose, Q x Q",
            timing="shortest of 3, in turn",
        )
        report.row(
            "merge of two streams, in rows that could be streamed meanwhile",
            merge / update * P,
            P,
            unit="rows",
            sizes=f"{Q} features, n_max = {n_max}",
            baseline=f"update by {by(P)} rows",
            timing="shortest of 3, in turn",
        )
    report.save()


if __name__ == "__main__":
    main()
