"""Sums over rows: equal to all cycles, whatever the pieces, options and containers."""

import warnings

import numpy as np
import pytest
from conftest import peak_memory

import spectral_moments as sm
from spectral_moments import estimate
from spectral_moments.engine import arrays, choice, graphs, planner, reduction, sums
from spectral_moments.engine.arrays import map_parts
from spectral_moments.engine.graphs import word_weights
from spectral_moments.engine.sums import cut_rows, kept_pairs
from spectral_moments.engine.systems import open_design
from spectral_moments.estimation import measure

da = pytest.importorskip("dask.array")

RNG = np.random.default_rng(0)
P, Q = 24, 9
PHI = sm.Linear(4).sample(P, Q, random_state=0) + 0.5
TRIALS = PHI + RNG.standard_normal((3, P, Q))
GAPS = np.where(RNG.random((P, Q)) < 0.1, np.nan, PHI)
GROUPS, EQUAL = RNG.integers(0, 9, P), np.repeat(np.arange(8), 3)
COLUMNS = [0, 0, 1, 1, 2, 3, 4, 5, 6]
MANY = sm.Linear(8).sample(3000, 20, random_state=0) + 0.5
METHODS = ("sums", "all_cycles")


@pytest.fixture
def small(monkeypatch):
    "Pieces of seven rows, no deletions one by one, and sums however few rows there are."
    monkeypatch.setattr(sums, "STRIP", 64 * Q * 7)
    monkeypatch.setattr(reduction, "KEPT", 0)
    monkeypatch.setattr(choice, "LITERAL", 0)


CASES = {
    "plain": (PHI, {}),
    "trials": (TRIALS, {}),
    "gaps": (GAPS, {}),
    "groups": (PHI, dict(groups=GROUPS)),
    "equal groups": (PHI, dict(groups=EQUAL)),
    "one group and rows": (PHI, dict(groups=np.maximum(np.arange(P) - 8, 0))),
    "population": (PHI, dict(population=(None, Q))),
    "both populations": (PHI, dict(population=(100, 12))),
    "row weights": (PHI, dict(row_weights=RNG.random(P) + 0.5)),
    "column weights": (PHI, dict(column_weights=RNG.random(Q) + 0.5)),
    "column groups": (PHI, dict(column_groups=COLUMNS)),
    "trials, groups, population": (TRIALS, dict(groups=GROUPS, population=(None, Q))),
    "noise": (PHI, dict(noise=0.1, population=(None, Q))),
    "noise of entries": (PHI, dict(noise=RNG.random((P, Q)))),
    "gaps and groups": (GAPS, dict(groups=GROUPS)),
    "both groups": (PHI, dict(groups=GROUPS, column_groups=COLUMNS)),
}


def powers(n_max):
    return tuple(("phi",) * n for n in range(1, n_max + 1))


def deviations(systems, words, **options):
    "Those of rows by sums over rows, and by literal deletions."

    def reduced(name, rows, **asked):
        mine = dict(options)
        for by_row in {"groups", "row_weights", "noise"} & options.keys():
            given = np.asarray(options[by_row])
            mine[by_row] = given[rows] if given.ndim else options[by_row]
        design = open_design({k: x[..., rows, :] for k, x in systems.items()}, **mine)
        found = reduction.reduce(design, words, name, **asked)
        powers = {k: 4.0**x.source.exponent for k, x in design.systems.items()}
        return design, found, [np.prod([powers[k] for k in word]) for word in words]

    every = np.arange(next(iter(systems.values())).shape[-2])
    design, found, scale = reduced("sums", every, replicates=True)
    found = (found.axes["inputs"].deviations.T * scale / design.unseen("inputs")).T
    unit = every if design.rows.groups is None else design.rows.groups

    def value(rows):
        _, found, scale = reduced("all_cycles", rows)
        return found.values * scale

    each = [value(unit != u) for u in range(unit.max() + 1)]
    expected = (np.array(each) - value(every)).T
    size = abs(expected).max(1, keepdims=True)
    return found / size, expected / size, size[:, 0]


def pairs_of_rows(data, **options):
    "The part of a row in the one sum over pairs of rows, but for the row itself."
    design = open_design({"phi": data}, **options)
    layout = design.layout._replace(about_mean=False)
    known = sums.Deletions(powers(3), layout, design.units)
    held, times = word_weights(powers(3), layout, held=True), 0
    for k, (graph, positions) in enumerate(held.graphs):
        term = sums.split_graph(graph, layout.features)
        if [len(columns) for _, columns in term] == [3, 3]:
            weight = np.einsum("dqt,dt->q", known.weights, np.array(held.sums)[..., k])
            times = times + weight[2] * sum(positions)
    K = (data - data.mean(0)) @ (data - data.mean(0)).T
    return times * (np.sum(K**3, 1) - np.diag(K) ** 3)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_values_columns_and_deletions(small, case, center):
    "Values and columns as by all cycles; rows as if each were deleted."
    data, options = CASES[case]
    options = options | dict(center=center)
    most = min(3, int(reduction.reach(open_design({"phi": data}, **options), "sums")))
    found, expected = (estimate(data, most, method=m, **options) for m in METHODS)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-10)
    exact = min(most, 2) if center else most  # orders without pairs of rows
    columns = (est.parts["features"][:exact] for est in (found, expected))
    np.testing.assert_allclose(*columns, rtol=1e-10)
    found, expected, size = deviations({"phi": data}, powers(most), **options)
    if exact < most and "trials" not in case:
        found[2] -= pairs_of_rows(data, **options) / size[2]
        exact = most
    np.testing.assert_allclose(found[:exact], expected[:exact], atol=1e-9)
    if most < 3:
        with pytest.raises(ValueError, match="the highest order of sums over rows"):
            estimate(data, most + 1, method="sums", **options)


@pytest.mark.parametrize(
    ("case", "center"),
    [
        ("plain", True),
        ("noise", True),
        ("plain", False),
        ("noise", False),
        ("trials", False),
    ],
)
def test_order_four(small, case, center):
    "All rows are kept, so all pairs of rows are there: values as by all cycles."
    data, options = CASES[case]
    one, two = (estimate(data, 4, method=m, center=center, **options) for m in METHODS)
    np.testing.assert_allclose(one.values, two.values, rtol=1e-10)
    values = estimate(data, 4, method="sums", center=center, stderr=False, **options).values
    np.testing.assert_allclose(values, one.values, rtol=1e-12)


HEAVY = RNG.standard_normal((600, 20)) @ RNG.standard_normal((20, 20))
HEAVY *= np.arange(1, 21) ** -0.5  # where sums over distinct columns nearly cancel


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("data", [MANY[:600], HEAVY], ids=["alike", "unequal columns"])
def test_errors_of_order_four(data, center):
    "Rows as if each were deleted, columns as by all cycles; what is left out is stated."
    found, expected, _ = deviations({"phi": data}, powers(4), center=center)
    np.testing.assert_allclose(found[:2], expected[:2], atol=1e-9)
    rest = np.sqrt(((found - expected) ** 2).sum(1) / (expected**2).sum(1))
    assert rest[2] < (2e-3 if center else 1e-9)
    assert rest[3] < 1e-2  # pairs of rows, and the noise of rows that are kept
    one, two = (estimate(data, 4, method=m, center=center) for m in METHODS)
    np.testing.assert_allclose(one.values[3], two.values[3], atol=1e-2 * two.stderr[3])
    columns = (est.parts["features"][3] for est in (one, two))
    np.testing.assert_allclose(*columns, rtol=1e-2)
    assert one.parts["kept rows"][3] < 1e-2 * one.stderr[3]


@pytest.mark.parametrize("trials", [0, 2])
def test_pairs_of_rows_are_a_small_part_of_an_error(trials):
    "Order 3 centred: the one part that is left out has a relative size of 1 / P^2."
    data = MANY[:600]
    data = data + RNG.standard_normal((trials, 600, 20)) if trials else data
    found, expected, _ = deviations({"phi": data}, powers(3))
    np.testing.assert_allclose(found[:2], expected[:2], atol=1e-9)
    rest = np.sqrt(((found - expected)[2] ** 2).sum() / (expected[2] ** 2).sum())
    assert rest < 2e-3  # and the noise of the rows that are kept


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("options", [{}, dict(groups=GROUPS), dict(population={"b": 20})])
def test_words(small, options, center):
    systems = {"a": TRIALS, "b": PHI[:, :6] + RNG.standard_normal((P, 6))}
    words = (("a", "b"), ("a", "a")) + (() if center else (("a", "b", "b"),))
    options = options | dict(center=center)
    one, two = (measure(open_design(systems, **options), words, method=m) for m in METHODS)
    np.testing.assert_allclose(one.values, two.values, rtol=1e-10)
    for kind in {*one.parts} - {"inputs"}:
        np.testing.assert_allclose(one.parts[kind], two.parts[kind], rtol=1e-9)
    found, expected, _ = deviations(systems, words, **options)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_pieces_are_whole_groups():
    groups = RNG.integers(0, 40, 500)
    groups[100:300] = 40
    groups = np.unique(groups, return_inverse=True)[1]
    pieces = cut_rows(groups, 60)
    assert sorted(np.concatenate(pieces)) == list(range(500))
    owners = [set(groups[rows]) for rows in pieces]
    assert sum(map(len, owners)) == len(set(groups))
    assert {40} in owners  # a large group comes alone
    assert all(len(rows) < 120 for rows, own in zip(pieces, owners) if own != {40})


def test_pairs_of_kept_rows_are_unbiased():
    "The mean over all samples of a fixed size, with some rows that are always kept."
    x = RNG.standard_normal(7)
    exact, total = np.outer(x, x) ** 3, 0
    from itertools import combinations

    samples = [(0, 1, *rest) for rest in combinations(range(2, 7), 3)]
    for rows in map(list, samples):
        pairs = kept_pairs(np.array([1, 1, 5 / 3, 5 / 3, 5 / 3]))
        total += (pairs * exact[np.ix_(rows, rows)]).sum() / len(samples)
    np.testing.assert_allclose(total, exact.sum(), rtol=1e-12)


@pytest.mark.parametrize("options", [{}, dict(center=False), dict(population=(None, 20))])
def test_one_answer_for_all_containers(nothing_loaded, tmp_path, options):
    np.save(tmp_path / "a.npy", MANY)
    given = {
        "file": np.load(tmp_path / "a.npy", mmap_mode="r"),
        "dask": da.from_array(MANY, chunks=(700, 20)),
    }
    expected = estimate(MANY, 4, method="sums", **options)
    for data in given.values():
        found = estimate(data, 4, **options)
        assert found.methods == ["sums"] * 4
        np.testing.assert_allclose(found.values, expected.values, rtol=1e-11)
        np.testing.assert_allclose(found.stderr, expected.stderr, rtol=1e-10)


@pytest.mark.parametrize("stderr", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        {},
        dict(center=False),
        dict(population=(None, 20)),
        dict(groups=np.arange(3000) // 5),
    ],
)
@pytest.mark.parametrize("n_max", [3, 4])
def test_passes_over_a_file(nothing_loaded, tmp_path, monkeypatch, options, stderr, n_max):
    """One for the values, one for the errors of rows, and some rows at even distances.

    Order four takes three, with errors or without: means, sums, and what needs sums.
    """
    np.save(tmp_path / "a.npy", MANY)
    read, take = [], arrays._Files.take

    def counted(self, trials, rows):
        found = take(self, trials, rows)
        read.append(found.shape[1])
        return found

    monkeypatch.setattr(arrays._Files, "take", counted)
    given = np.load(tmp_path / "a.npy", mmap_mode="r")
    n_max = 2 if "groups" in options else n_max
    estimate(given, n_max, stderr=stderr, **options)
    passes = 3 if n_max == 4 else 1 + stderr
    assert sum(read) <= 3000 * passes + 5 * 512


def test_what_some_rows_did_not_tell(nothing_loaded, tmp_path):
    "A gap, and an infinite entry, that no sample of rows has seen."
    phi = MANY.copy()
    for value in (np.nan, np.inf):
        phi[1234, 5] = value
        np.save(tmp_path / "a.npy", phi)
        given = np.load(tmp_path / "a.npy", mmap_mode="r")
        if value == np.inf:
            with pytest.raises(ValueError, match="infinite"):
                estimate(given, 2)
            continue
        found, expected = (estimate(x, 2) for x in (given, phi))
        np.testing.assert_allclose(found.values, expected.values, rtol=1e-11)
        np.testing.assert_allclose(found.stderr, expected.stderr, rtol=1e-3)


@pytest.mark.parametrize("given", ["trials", "three trials", "noise"])
def test_noise_of_a_finite_population_is_in_the_error(nothing_loaded, given):
    "Of a Dask array as of one in memory, from some of its rows."
    number = 3 if "three" in given else 2
    noise = np.random.default_rng(3).standard_normal((number, 3000, 20))
    data = MANY + noise[0] if given == "noise" else MANY + noise
    options = dict(population=(3000, 20), **(dict(noise=1.0) if given == "noise" else {}))
    chunked = da.from_array(data, chunks=(700, 20) if data.ndim == 2 else (number, 700, 20))
    found, expected = (estimate(x, 2, **options) for x in (chunked, data))
    parts = found.parts["trials"], expected.parts["trials"]
    np.testing.assert_allclose(*parts, rtol=0.6)


def test_groups_on_dask_and_in_a_file(nothing_loaded, tmp_path):
    np.save(tmp_path / "a.npy", MANY)
    groups = RNG.integers(0, 500, 3000)
    expected = estimate(MANY, 2, groups=groups)
    for data in (np.load(tmp_path / "a.npy", mmap_mode="r"), da.from_array(MANY, (700, 7))):
        found = estimate(data, 2, groups=groups)
        np.testing.assert_allclose(found.values, expected.values, rtol=1e-11)
        np.testing.assert_allclose(found.stderr, expected.stderr, rtol=1e-10)


def test_unequal_groups_of_many_rows():
    "Numbers of ways to choose rows are beyond 64 bits; doubling all rows changes little."
    rng = np.random.default_rng(0)
    groups = np.sort(np.concatenate([np.arange(200), rng.integers(0, 200, 100)]))
    phi = MANY[: len(groups), :4]
    times = 2**8  # (76,800 rows)^4 > 2^63
    many = np.tile(phi, (times, 1))
    labels = (np.arange(times)[:, None] * 200 + groups).ravel()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        one, two = estimate(phi, 2, groups=groups), estimate(many, 2, groups=labels)
    ratio = one.parts["inputs"] / two.parts["inputs"] / np.sqrt(times)
    np.testing.assert_allclose(ratio, 1, rtol=0.05)


@pytest.mark.parametrize("stderr", [True, False])
@pytest.mark.parametrize("container", ["file", "dask"])
def test_progress_in_rows(nothing_loaded, tmp_path, caplog, container, stderr):
    "Rows read, of all in all passes; of a sketch, whose rounds are not known, rows read."
    np.save(tmp_path / "a.npy", MANY)
    data = np.load(tmp_path / "a.npy", mmap_mode="r")
    if container == "dask":
        data = da.from_array(MANY, chunks=(700, 20))
    options = dict(stderr=stderr, progress=True)
    with caplog.at_level("INFO", logger="spectral_moments"):
        estimate(data, 3, **options)
        assert caplog.messages == [f"{3000 * (1 + stderr)} of {3000 * (1 + stderr)} rows"]
        caplog.clear()
        estimate(data, 4, **options)
        assert caplog.messages == ["9000 of 9000 rows"]
        caplog.clear()
        if container == "file":
            estimate(data, 4, method="sketched", n_permutations=1, center=False, **options)
            (line,) = caplog.messages  # two passes, and a block to see where it lies
            assert 6000 <= int(line.removesuffix(" rows")) < 6200


def test_kept_rows_are_unbiased_and_tell_their_noise(monkeypatch):
    "The one graph of pairs of rows, from few of them."
    monkeypatch.setattr(sums, "KEPT", 60)
    phi = MANY[:700] + 1.0
    exact = estimate(phi, 3, method="all_cycles", stderr=False).values[2]
    design = open_design({"phi": phi})
    systems = design.systems
    views = reduction.draw_views(design, RNG, halves={1: None})
    words = tuple(("phi",) * n for n in (1, 2, 3))
    found, noise = [], []
    for seed in range(40):
        options = dict(layout=design.layout, units=design.units, replicates=True)
        options["rng"] = np.random.default_rng(seed)
        means = sums.summed_means(systems, views, words, **options)
        found.append(means.values[2] * 4.0 ** (3 * systems["phi"].source.exponent))
        noise.append(means.noise[2, 2] * 4.0 ** (6 * systems["phi"].source.exponent))
    error = np.std(found) / np.sqrt(40)
    assert abs(np.mean(found) - exact) < 4 * error
    assert 0.6 < np.mean(noise) / np.var(found) < 4  # pairs count twice: at most


@pytest.mark.parametrize(("n_max", "matrices"), [(3, 4), (4, 13)])
def test_memory_is_strips_and_a_few_matrices(tmp_path, n_max, matrices):
    data = np.memmap(tmp_path / "a", dtype="f4", shape=(200_000, 64), mode="w+")
    for start in range(0, 200_000, 20_000):
        data[start : start + 20_000] = RNG.standard_normal((20_000, 64))
    data.flush()
    given = np.memmap(tmp_path / "a", dtype="f4", shape=(200_000, 64), mode="r")
    numbers = 6 * matrices * 64**2 + 4 * n_max * 200_000
    formula = 60 * 2**21 + 8 * numbers  # of `summed_means`
    assert peak_memory(lambda: estimate(given, n_max)) < formula


def test_sum_of_results_in_a_tree(nothing_loaded):
    from spectral_moments.engine.sources import open_source

    source = open_source(da.from_array(MANY, chunks=(100, 20)))
    pieces = [sums.Piece(slice(k, k + 100), {}) for k in range(0, 3000, 100)]
    total = map_parts(
        lambda w, p, x: [x.sum((0, 1))], [source], pieces, None, sums.added_sums
    )
    expected = MANY.sum(0) * 2.0**-source.exponent
    np.testing.assert_allclose(total[0], expected, rtol=1e-11)


def test_a_dominant_row_is_noted_at_order_three():
    phi = MANY[:600].copy()
    phi[7] *= 30
    notes = " ".join(estimate(phi, 3, method="sums").notes)
    assert "from order 3 on sums over rows leave out pairs of inputs" in notes


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("population", [(None, 6), (520, None)])
def test_parts_of_trials_in_a_finite_population(population):
    "Deletions have the estimate as their mean; three parts of trials are not summed."
    rng = np.random.default_rng(3)
    x = rng.normal(size=(520, 2)) @ rng.normal(size=(2, 6)) + 1
    x = x + rng.normal(size=(4, 520, 6))
    found = sm.estimate(x, 3, population=population)
    off = found.axes["inputs"].deviations.mean(axis=1) * 520
    assert (abs(off) < 1e-6 * abs(found.values)).all()
    assert {*found.methods} == {"sums" if population[0] is None else "all_cycles"}


# ------------------------------------------------------------------------ very many rows
@pytest.mark.parametrize("container", ["memory", "file", "dask"])
@pytest.mark.parametrize(
    ("n_max", "options"),
    [
        (3, {}),
        (4, {}),
        (3, dict(center=False)),
        (2, dict(groups=np.arange(3000) // 2)),
        (2, dict(groups=np.concatenate([np.arange(1500), np.arange(1500) // 2]))),
    ],
)
def test_some_of_very_many_rows_stand_for_all(
    nothing_loaded, tmp_path, monkeypatch, container, n_max, options
):
    "Their deviations are those of all, whether the family gives few or is cut afterwards."
    np.save(tmp_path / "a.npy", MANY)
    data = {
        "memory": MANY,
        "file": np.load(tmp_path / "a.npy", mmap_mode="r"),
        "dask": da.from_array(MANY, chunks=(700, 20)),
    }[container]
    method = "all_cycles" if container == "memory" and n_max < 4 else "sums"
    expected = estimate(data, n_max, method=method, **options)
    monkeypatch.setattr(graphs, "TOLD", 700)
    found = estimate(data, n_max, method=method, **options)
    np.testing.assert_array_equal(found.values, expected.values)
    axis, whole = found.axes["inputs"], expected.axes["inputs"]
    number = whole.deviations.shape[1]
    told, each = graphs.Units(number).told
    np.testing.assert_array_equal(axis.stands_for, each)
    assert len(each) == 700 and each.sum() == number and (np.diff(told) > 0).all()
    scale = abs(whole.deviations).max(1, keepdims=True)
    difference = axis.deviations - whole.deviations[:, told]
    shared = difference.mean(1, keepdims=True)  # where kept rows moved all of them alike
    assert abs((difference - shared) / scale).max() < 1e-10
    np.testing.assert_allclose(found.parts["inputs"], expected.parts["inputs"], rtol=0.25)


def test_units_that_are_told_are_drawn_evenly(monkeypatch):
    "Every unit has the chance of its run of neighbours; few units are all told."
    assert graphs.Units(5).told == (slice(None), None)
    monkeypatch.setattr(graphs, "TOLD", 4)
    told, each = graphs.Units(10).told
    ends = np.cumsum(each)
    assert (told < ends).all() and (told >= ends - each).all() and each.max() <= 3


def test_no_list_of_all_rows(nothing_loaded, monkeypatch):
    "A list of the rows would be 34 MB."
    monkeypatch.setattr(graphs, "TOLD", 1024)
    monkeypatch.setattr(sums, "STRIP", 2**21)

    def read(rows):
        numbers = arrays.row_numbers(rows, 2**22)
        return np.stack([np.sin(numbers), np.cos(1.7 * numbers)], axis=1)

    data = arrays.Rows((2**22, 2), float, read, direct=True)
    assert peak_memory(lambda: estimate(data, 2)) < 8 * 2**22


def test_several_pieces_add_in_doubles():
    "Few entries are summed in long doubles, which no BLAS takes: not if they are the last."
    few, many = [np.ones((2, 2), np.longdouble)], [np.ones((2, 2))]
    assert sums.added_sums([few])[0].dtype == np.longdouble
    for parts in ([many, few], [few, many, many]):
        (found,) = sums.added_sums(parts)
        assert found.dtype == float and (found == len(parts)).all()


def test_form_of_the_first_slope():
    "A form and a sum over columns of the same entries are two things, also for slope 1."
    rng = np.random.default_rng(0)
    x, matrix = rng.standard_normal((5, 200)), rng.standard_normal((200, 200))
    graph = planner.Open(((0, 0, "phi"), (0, 1, "phi")), ("features", "features"))
    ends = planner.Open(((0, 0, "phi"),), ("features",))
    uses = [sums.Use(ends, np.ones(1), 0), sums.Use(graph, np.ones(1), 1)]
    slopes = [np.ones(200), matrix + matrix.T]
    forms = sums.Forms(1, slopes, uses, []).completed()
    assert len(forms.halves) == 1
    rows, *_ = sums.row_shares(forms, {"phi": x})
    form = np.einsum("ij,jk,ik->i", x, slopes[1], x)
    np.testing.assert_allclose(rows[0], x.sum(1) + form, rtol=1e-11)
