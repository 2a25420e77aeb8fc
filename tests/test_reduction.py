"""Every family x trials x gaps x centring x weights: exactly unbiased, equal everywhere."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

import spectral_moments as sm
from spectral_moments.engine.reduction import (
    FAMILIES,
    draw_views,
    reduce,
    trial_splits,
    without_each,
)
from spectral_moments.engine.sources import Source, open_source
from spectral_moments.engine.systems import Design, Side, System, open_design
from spectral_moments.processes import Discrete
from spectral_moments.teaching.cycles import mean_over_increasing

UNBIASED = ("all_cycles", "increasing", "blocks", "sketched")
NONE = Side()
TABLE = np.array([[1.0, -1.0], [2.0, 0.5]])
COLUMN_PROBS = np.array([0.4, 0.6])


# --- populations that can be enumerated -------------------------------------------------
# An estimate takes two entries of every row and of every column, so its mean depends on the
# noise only through products of two: noise that is pairwise independent of the signal and
# of the other trial is enough, and it needs four kinds of rows, not eight.


def noisy_rows(T):
    "Rows (T, A, B): two inputs; every trial adds a common +-1 to all entries of a row."
    if T == 1:
        return TABLE[None]
    kinds = [(x, s, s * (1, -1)[x]) for x in (0, 1) for s in (1.0, -1.0)]
    return np.array([[TABLE[x] + noise[t] for x, *noise in kinds] for t in (0, 1)])


def noisy_columns(T):
    "The same for columns."
    if T == 1:
        return TABLE[None]
    kinds = [(a, s, s * (1, -1)[a]) for a in (0, 1) for s in (1.0, -1.0)]
    columns = [[TABLE[:, a] + noise[t] for a, *noise in kinds] for t in (0, 1)]
    return np.array(columns).transpose(0, 2, 1)


def expectation(statistic, table, P, Q, column_probs=None):
    "Exact mean of a statistic of trials (T, P, Q) over every sample of rows and columns."
    T, A, B = table.shape
    q = np.full(B, 1 / B) if column_probs is None else column_probs
    total = 0.0
    for columns in itertools.product(range(B), repeat=Q):
        part, weight = table[:, :, columns], q[list(columns)].prod() / A**P
        for rows in itertools.product(range(A), repeat=P):
            total = total + weight * statistic(part[:, rows])
    return total


def truth(n_max, center, column_probs=None):
    "Moments of the clean population."
    table = TABLE - TABLE.mean(0) if center else TABLE
    return Discrete(table, feature_probs=column_probs).moments(n_max)


def mask(T, P, Q):
    "Gaps, other ones in every trial."
    gaps = np.zeros((T, P, Q), dtype=bool)
    gaps[0, 0, 1] = True
    if P == 3:
        gaps[-1, -1, 0] = True
    return gaps


def weights_of(size):
    "Weights fixed in advance; one of them is zero where there are rows to spare."
    return np.array([1.0, 0.4, 0.7, 0.9, 0.2, 0.0][:size])


def reduced(source, name, n_max, known=None, columns=NONE, **options):
    "Moments of one system."
    words = tuple(("phi",) * n for n in range(1, n_max + 1))
    design = Design({"phi": System(source, columns)}, **(known or {}))
    return reduce(design, words, name, **options)


def run(name, trials, n_max, *, gaps=None, seed=0, columns=NONE, **options):
    "One family in one view, drawn with a seed that does not depend on the data."
    x = trials if gaps is None else np.where(gaps, np.nan, trials)
    source = Source(np.ascontiguousarray(x), 0, gaps is not None)
    rng = np.random.default_rng(seed)
    return reduced(source, name, n_max, options, columns, rng=rng).values


# --- exactly unbiased ---------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@pytest.mark.parametrize("center", [False, True], ids=["", "centred"])
@pytest.mark.parametrize("gaps", [False, True], ids=["", "gaps"])
@pytest.mark.parametrize("name", UNBIASED)
def test_unbiased_with_one_trial(name, gaps, center, weighted):
    P, Q = (4 if center else 3), (3 if gaps else 2)
    options = dict(gaps=mask(1, P, Q) if gaps else None, center=center)
    if weighted:
        options |= dict(rows=Side(weights_of(P)), columns=Side(weights_of(Q)))
    mean = expectation(
        lambda x: run(name, x, 2, **options), noisy_rows(1), P, Q, COLUMN_PROBS
    )
    np.testing.assert_allclose(mean, truth(2, center, COLUMN_PROBS), rtol=1e-10)


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@pytest.mark.parametrize("center", [False, True], ids=["", "centred"])
@pytest.mark.parametrize("gaps", [False, True], ids=["", "gaps"])
@pytest.mark.parametrize("name", UNBIASED)
def test_unbiased_with_two_trials_and_noise_along_rows(name, gaps, center, weighted):
    P, Q, n_max = (4 if center else 3), (3 if center else 2), 2
    table, options = noisy_rows(2), dict(center=center)
    if gaps:
        options["gaps"] = mask(2, P, Q)
    if weighted:
        options["rows"] = Side(weights_of(P))
    if name == "sketched":  # slow: one column of the population, in two copies
        table, P, n_max = table[:, :, :1], (2 if center else 3), (1 if center else 2)
        options["gaps"] = mask(2, P, Q) if gaps else None
        options["rows"] = Side(weights_of(P) if weighted else None)
    elif center:
        table = table[:, :, :1]
    mean = expectation(lambda x: run(name, x, n_max, **options), table, P, Q)
    clean = TABLE[:, : table.shape[2]]
    clean = clean - clean.mean(0) if center else clean
    np.testing.assert_allclose(mean, Discrete(clean).moments(n_max), rtol=1e-10)


@pytest.mark.parametrize("gaps", [False, True], ids=["", "gaps"])
@pytest.mark.parametrize("name", UNBIASED[:3])
def test_unbiased_with_two_trials_and_noise_along_columns(name, gaps):
    P, Q = 3, 2
    options = dict(gaps=mask(2, P, Q) if gaps else None)
    mean = expectation(lambda x: run(name, x, 2, **options), noisy_columns(2), P, Q)
    np.testing.assert_allclose(mean, truth(2, False), rtol=1e-10)


def test_one_trial_is_spoilt_by_the_same_noise():
    "The negative control of the two tests above."
    for table in (noisy_rows(2), noisy_columns(2)):
        mean = expectation(lambda x: run("all_cycles", x[:1], 2), table, 2, 2)
        assert (mean > truth(2, False) + 0.4).all()


def test_third_order_centred():
    "Six rows: patterns of all cycles, and pairs."
    for name in ("all_cycles", "increasing"):
        mean = expectation(
            lambda x, name=name: run(name, np.repeat(x, 3, axis=2), 3, center=True),
            TABLE[None, :, :1],
            6,
            1,
        )
        clean = TABLE[:, :1] - TABLE[:, :1].mean(0)
        np.testing.assert_allclose(mean, Discrete(clean).moments(3), rtol=1e-10)


# --- groups -------------------------------------------------------------------------------


@pytest.mark.parametrize("center", [False, True], ids=["", "centred"])
@pytest.mark.parametrize("gaps", [False, True], ids=["", "gaps"])
def test_groups_of_dependent_rows(gaps, center):
    "Rows of a group are one input in two guises; only different groups are independent."
    groups = np.array([0, 0, 1, 1, 2, 3] if center else [0, 0, 1, 2, 2])
    number, Q = groups.max() + 1, 3 if gaps else 2
    hidden = mask(1, len(groups), Q) if gaps else None

    def statistic(x, name, **options):
        return run(name, x[:, groups], 2, gaps=hidden, center=center, **options)

    def mean(*args, **options):
        return expectation(lambda x: statistic(x, *args, **options), TABLE[None], number, Q)

    for name in ("all_cycles", "blocks"):
        apart = mean(name, rows=Side(groups=groups))
        np.testing.assert_allclose(apart, truth(2, center), rtol=1e-10)
    free = [mean("all_cycles", seed=seed)[1] for seed in (1, 2)]  # negative control
    assert abs(np.mean(free) / apart[1] - 1) > 0.05


def test_groups_of_columns():
    groups = np.array([0, 0, 1, 2])
    for name in ("all_cycles", "blocks"):
        statistic = lambda x, name=name: run(
            name, x[:, :, groups], 2, columns=Side(groups=groups)
        )
        mean = expectation(statistic, TABLE[None], 2, 3)
        np.testing.assert_allclose(mean, truth(2, False), rtol=1e-10)


# --- views --------------------------------------------------------------------------------


@pytest.mark.parametrize("T", [1, 2, 3, 4, 5, 8])
def test_splits_of_trials(T):
    splits = trial_splits(T)
    assert len(splits) == [None, 1, 1, 3, 3, 2, 0, 0, 2][T]
    if T == 1:
        assert splits == [None]
        return
    for first, second in splits:
        assert sorted(first + second) == list(range(T))
        assert abs(len(first) - len(second)) <= 1
    both = trial_splits(T, both=True)
    assert both[::2] == splits and both[1::2] == [(b, a) for a, b in splits]
    assert len({frozenset(map(frozenset, split)) for split in splits}) == len(splits)
    if T > 4:  # two that cross
        (a, _), (b, c) = splits
        assert abs(len({*a} & {*b}) - len({*a} & {*c})) <= 1


def drawn(shape, rng, rows=NONE, **options):
    "A view of one system."
    systems = {"phi": System(Source(np.zeros((1, *shape))))}
    return draw_views(Design(systems, rows=rows), rng, **options)["phi"]


def test_views_are_drawn_as_asked():
    rng = np.random.default_rng(1)
    plain = drawn((5, 4), rng)
    assert plain.rows is plain.columns is plain.partners is plain.weights is None
    shuffled = drawn((5, 4), rng, shuffled=True)
    assert sorted(shuffled.rows) == [0, 1, 2, 3, 4]
    assert sorted(shuffled.columns) == [0, 1, 2, 3]
    paired = drawn((5, 4), rng, paired=True)
    assert len({*paired.rows, *paired.partners}) == 4
    groups = np.array([2, 0, 1, 0, 2, 2, 3, 3, 3])
    rows = Side(groups=groups)
    view = drawn((9, 4), rng, rows, paired=True, blocked=True)
    assert (groups[view.rows] != groups[view.partners]).all()
    assert len({*view.rows, *view.partners}) == 2 * len(view.rows)
    for a, b in zip(view.row_edges, view.row_edges[1:]):
        assert len({*groups[view.rows[a:b]]}) == len({*groups[view.partners[a:b]]}) == 1
    view = drawn((9, 4), rng, rows, blocked=True)
    assert sorted(view.rows) == list(range(9)) and len(view.row_edges) == 5


def test_runs_are_averages():
    "Two runs are the mean of the two views that they draw."
    source = Source(np.random.default_rng(2).standard_normal((1, 8, 7)))
    both = reduced(source, "increasing", 3, runs=2, rng=np.random.default_rng(5)).values
    rng = np.random.default_rng(5)
    views = [drawn((8, 7), rng, shuffled=True).pair(source).enter for _ in range(2)]
    each = [[mean_over_increasing(x, n) for n in (1, 2, 3)] for x in views]
    np.testing.assert_allclose(both, np.mean(each, axis=0), rtol=1e-12)


# --- places -------------------------------------------------------------------------------


@pytest.fixture
def recording():
    "Two trials with gaps and a mean."
    rng = np.random.default_rng(6)
    x = sm.Linear(3).sample(14, 11, rng) + rng.standard_normal(11)
    return x + 0.3 * rng.standard_normal((2, 14, 11))


def in_file(x, tmp_path):
    "The same data in a file that is read by strips of three rows."
    np.save(tmp_path / "x.npy", x)
    return open_source(np.load(tmp_path / "x.npy", mmap_mode="r"))


def agree(source, other, name, **options):
    "The same values and the same replicates from two places."
    asked = lambda: dict(replicates=True, rng=np.random.default_rng(8))
    one, two = (reduced(s, name, 2, options, **asked()) for s in (source, other))
    np.testing.assert_allclose(two.values, one.values, rtol=1e-9)
    assert FAMILIES[name].honest or "inputs" not in one.axes
    for side in {"inputs", "features"} & {*one.axes} & {*two.axes}:  # not on a cluster
        mine, other = (found.axes[side].deviations for found in (one, two))
        np.testing.assert_allclose(other, mine, rtol=1e-7, atol=1e-12)


HARD = [(name, True) for name in ("all_cycles", "increasing", "blocks")]


def with_gaps(x):
    return np.where(np.random.default_rng(7).random(x.shape) < 0.1, np.nan, x)


@pytest.mark.parametrize("center", [False, True], ids=["", "centred"])
@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.usefixtures("nothing_loaded")
def test_files_agree(name, center, recording, tmp_path):
    "Trials, gaps and weights: every pair of them, and with centring."
    for T, gaps, weighted in ((1, 0, 0), (2, 1, 0), (2, 0, 1), (1, 1, 1)):
        x = with_gaps(recording[:T]) if gaps else recording[:T]
        rows = Side(np.linspace(0.2, 1, 14)) if weighted else NONE
        file = in_file(x[0] if T == 1 else x, tmp_path)
        agree(open_source(x), file, name, center=center, rows=rows)


@pytest.mark.parametrize(  # hard: trials, gaps, centred, weights; minutes if sketched
    ("name", "hard"), [*dict.fromkeys(FAMILIES, False).items(), *HARD]
)
@pytest.mark.usefixtures("nothing_loaded")
def test_dask_agrees(name, hard, recording):
    da, dask = pytest.importorskip("dask.array"), pytest.importorskip("dask")
    x = with_gaps(recording) if hard else recording[0]
    options = dict(center=True, rows=Side(np.linspace(0.2, 1, 14))) if hard else {}
    with dask.config.set(scheduler="synchronous"):
        chunked = open_source(da.from_array(x, chunks=(1, 5, 4)[-x.ndim :]))
        assert chunked.backend == "dask"
        agree(open_source(x), chunked, name, **options)


@pytest.mark.parametrize("center", [False, True], ids=["", "centred"])
@pytest.mark.parametrize(("T", "gaps"), [(1, False), (1, True), (3, True)])
def test_torch_agrees(T, gaps, center):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(9)
    x = rng.standard_normal((T, 9, 8)) + 0.5
    if gaps:
        x = np.where(rng.random(x.shape) < 0.1, np.nan, x)
    n_max = 2 if center and gaps else 3
    known = dict(center=center, trials=True)
    tensor = sm.all_cycles(torch.tensor(x, requires_grad=True), n_max, **known)
    assert tensor.requires_grad
    array = sm.all_cycles(x, n_max, center=center)
    np.testing.assert_allclose(tensor.detach().numpy(), array, rtol=1e-8)


def test_torch_says_where_no_cycle_was_seen():
    torch = pytest.importorskip("torch")
    x = np.array([[1.0, np.nan], [np.nan, 2.0]])
    with pytest.warns(sm.EstimateWarning, match="too few fully observed cycles at n = 2"):
        assert np.isnan(sm.all_cycles(x, 2)[1])
    with pytest.warns(sm.EstimateWarning, match="too few fully observed cycles at n = 2"):
        assert torch.isnan(sm.all_cycles(torch.tensor(x), 2)[1])


# --- what version 0.1 gave ----------------------------------------------------------------

STORED = json.loads((Path(__file__).parent / "data" / "version_0_1.json").read_text())


def stored_data(case):
    "Matrix, two trials, and the matrix with gaps: whole numbers times a power of two."
    shape = case["shape"]
    x = np.array(case["matrix"], dtype=float).reshape(shape)
    noise = np.array(case["noise"], dtype=float).reshape(2, *shape)
    matrix, trials = (np.ldexp(y, case["exponent"]) for y in (x, x + noise))
    gaps = matrix.copy()
    gaps.flat[case["gaps"]] = np.nan
    return matrix, trials, gaps


@pytest.mark.filterwarnings("ignore::spectral_moments.EstimateWarning")
@pytest.mark.parametrize("kind", STORED)
def test_version_0_1_is_reproduced(kind):
    x, two, gaps = stored_data(STORED[kind])

    def estimated(x, method):
        options = dict(method=method, n_permutations=0, stderr=False, center=False)
        return sm.estimate(x, 4, **options).values

    calls = {
        "all_cycles": lambda n: sm.all_cycles(x, n),
        "increasing": lambda n: sm.increasing(x, n),
        "naive": lambda n: sm.naive(x, n),
        "kv_row": lambda n: sm.kong_valiant(x, n),
        "kv_col": lambda n: sm.kong_valiant(x, n, sampled="columns"),
        "all_cycles two trials": lambda n: sm.all_cycles(two, n),
        "increasing two trials": lambda n: sm.increasing(two, n),
        "naive two trials": lambda n: sm.naive(two, n),
        "kv_row two trials": lambda n: sm.kong_valiant(two, n),
        "all_cycles gaps": lambda n: estimated(gaps, "all_cycles"),
        "increasing gaps": lambda n: estimated(gaps, "increasing"),
        "all_cycles centred": lambda n: sm.all_cycles(x, n, center=True),
        "all_cycles centred two trials": lambda n: sm.all_cycles(two, n, center=True),
    }
    for name, known in STORED[kind]["known"].items():
        values, known = calls[name](len(known)), np.array(known)
        inside = (abs(known) > 1e-290) & np.isfinite(known)
        assert np.isnan(values[~inside]).all()  # beyond the range of doubles
        np.testing.assert_allclose(values[inside], known[inside], rtol=1e-9, err_msg=name)


# --- every unit left out ----------------------------------------------------------------

DRAWS = np.random.default_rng(8)
SMALL = DRAWS.standard_normal((3, 10, 7)) + DRAWS.standard_normal(7)
GAPS = np.where(DRAWS.random(SMALL.shape) < 0.1, np.nan, SMALL)
UNEQUAL = np.array([0, 0, 0, 1, 1, 2, 3, 4, 5, 6])
DELETIONS = {
    "plain": ({"phi": SMALL[0]}, {}),
    "trials": ({"phi": SMALL}, {"population": (None, 20)}),
    "gaps": ({"phi": GAPS}, {}),
    "gaps and weights": ({"phi": GAPS[0]}, {"row_weights": np.arange(1, 11)}),
    "finite": ({"phi": SMALL[0]}, {"population": (30, 20)}),
    "groups": ({"phi": SMALL[0]}, {"groups": UNEQUAL}),
    "counts": ({"phi": DRAWS.poisson(3.0, (10, 7))}, {"noise": "poisson"}),
    "tensor": ({"phi": "tensor"}, {}),
    "two": ({"phi": SMALL[0], "psi": GAPS[:, :, :4]}, {}),
    "two, groups": ({"phi": SMALL[0], "psi": SMALL[1]}, {"groups": UNEQUAL}),
}


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("case", DELETIONS)
def test_all_deletions_at_once_equal_those_made_one_by_one(case, center):
    given, options = DELETIONS[case]
    if case == "tensor":
        given = {"phi": pytest.importorskip("torch").tensor(SMALL[0])}
    design = open_design(given, center=center, **options)
    words = (("phi",), ("phi", list(given)[-1]))
    for kind, of in design.units.items():
        found = without_each(design, words, kind)
        labels = np.arange(of.size) if of.groups is None else of.groups
        for unit in range(of.count):
            part = design.part(kind, np.flatnonzero(labels != unit))
            expected = reduce(part, words, "all_cycles", rng=None).values
            np.testing.assert_allclose(found[:, unit], expected, rtol=1e-9)


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("center", [True, False])
def test_deletions_of_few_counts_differ_by_rounding_alone(library, center):
    """Where few entries are not zero, moments vanish: one way gives zero, one its rounding.

    Their ratio is no error; their difference is compared with the size of an entry.
    """
    array = pytest.importorskip("torch").tensor if library == "torch" else np.array
    words, vanished = (("phi",), ("phi",) * 2, ("phi",) * 3), 0
    for seed in range(12):
        counts = np.random.default_rng(seed).poisson(0.1, (9, 5)).astype(np.float32)
        counts[0, 0] += 1
        known = dict(center=center, population=(9, None), noise="poisson")
        design = open_design({"phi": array(counts)}, **known)
        size = float((design.systems["phi"].source.sample() ** 2).mean())
        for kind, of in design.units.items():
            found = without_each(design, words, kind)
            for unit in range(of.count):
                part = design.part(kind, np.flatnonzero(np.arange(of.size) != unit))
                expected = reduce(part, words, "all_cycles", rng=None).values
                vanished += (abs(expected) < 1e-14 * size).sum()
                np.testing.assert_allclose(found[:, unit], expected, 1e-9, 1e-14 * size)
    assert vanished
