"""Rows in batches: the cost of an update and of a merge.

python benchmarks/bench_stream.py
"""

import numpy as np
from common import Report, by, in_turn, product, sized, third_above

from spectral_moments import Stream

N_MAX = 7


def main():
    report = Report("stream")
    (count, Q), cube = sized((2048, 256), (2048, 32)), sized(1500, 200)
    rows = np.random.default_rng(0).standard_normal((count, Q))
    work = 2 * (2 * N_MAX - 1) * count * Q**2  # operations, without what merging needs
    sizes = f"{count} rows of {Q} features, n_max = {N_MAX}"
    for mergeable, before in ((False, 2.275), (True, 3.378)):
        stream = Stream(Q, N_MAX, mergeable=mergeable, random_state=0).update(rows)
        update = lambda s=stream: s.update(rows)
        ours, theirs = in_turn([update, product(cube)], 5)
        report.row(
            "stream, " + ("with" if mergeable else "without") + " what merging needs",
            ours / (work * theirs / (2 * cube**3)),
            third_above(before),
            sizes=sizes,
            baseline=f"a {cube}-cube product at the same number of operations",
            timing="shortest of 5, in turn",
        )
    other = Stream(Q, N_MAX, random_state=0).update(rows)
    merge, update = in_turn([lambda: other.merge(other), lambda: other.update(rows)], 5)
    report.row(
        "merge of two streams, in rows that could be streamed meanwhile",
        merge / update * count,
        third_above(1044),
        unit="rows",
        sizes=f"{Q} features, n_max = {N_MAX}",
        baseline="update by " + by(count) + " rows",
        timing="shortest of 5, in turn",
    )
    report.save()


if __name__ == "__main__":
    main()
