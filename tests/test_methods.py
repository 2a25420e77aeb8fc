"""Which method gives which order, what stands in, what is refused, what is sampled."""

import re

import numpy as np
import pytest
import torch
from conftest import normal

import spectral_moments as sm
from spectral_moments.checks import ArgumentError
from spectral_moments.engine import average as engine_average
from spectral_moments.engine import methods
from spectral_moments.engine.average import Options, random_blocks
from spectral_moments.engine.data import AxisInfo, open_data
from spectral_moments.estimation import estimate_words

X = normal((16, 3), 1) @ normal((3, 12), 2) + 0.5 * normal((16, 12), 3) + 1
GAPS = X.copy()
GAPS[3, 4] = np.nan
COUNTS = np.random.default_rng(0).poisson(3, (16, 12)).astype(float)
GROUPS, COLUMNS = np.arange(16) // 2, np.arange(12) // 2
REPEATS = X + normal((2, 16, 12), 4)
WAY = {"c": "all cycles", "i": "increasing (6 permutations)"}
WAY |= {"m": "all cycles of random members (6 draws)"}
WAY |= {"p": "all cycles of random pairs (6 draws)"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("x", "options", "expected"),
    [
        (X, {}, "cccci"),
        (X, dict(center=False), "ccccii"),
        (REPEATS, dict(trials=True), "cccci"),
        (COUNTS, dict(noise="poisson"), "cccci"),
        (X, dict(groups=GROUPS), "cccm"),
        (X, dict(groups=GROUPS, center=False), "cccmii"),
        (X, dict(column_groups=COLUMNS), "ccmmi"),
        (X, dict(column_groups=COLUMNS, center=False), "ccmmi"),
        (X, dict(groups=GROUPS, column_groups=COLUMNS), "cmmm"),
        (GAPS, {}, "ccppi"),
        (GAPS, dict(center=False), "ccccii"),
        (GAPS, dict(groups=GROUPS), "cpp"),
        (GAPS, dict(groups=GROUPS, center=False), "cccmi"),
        (X, dict(population=20), "cccc"),
        (X, dict(population="all"), "cccc"),
        (X, dict(method="increasing"), "iiii"),
        (X, dict(method="all_cycles"), "cccc"),
        (X, dict(method="all_cycles", groups=GROUPS), "cccm"),
    ],
)
def test_table_of_methods(x, options, expected):
    est = sm.estimate(x, len(expected), n_permutations=6, **options)
    assert est.methods == [WAY[letter] for letter in expected]
    assert np.isfinite(est.values).all() and np.isfinite(est.stderr[:4]).all()


def test_numbers_of_draws():
    labels = lambda x, **options: sm.estimate(x, 5, center=False, **options).methods[-1]
    assert labels(X) == "increasing (32 permutations)"
    assert labels(X, n_permutations=0, stderr=False) == "increasing (order given)"
    data = open_data({"phi": np.ones((400, 260))})
    assert methods.choose_method(data, 5, Options()).draws == 10  # a large matrix


def words(given, asked, **options):
    return estimate_words(open_data(given, **options), [tuple(word) for word in asked])


TWO = {"a": X, "b": X[:, :5] ** 2}


def test_words_of_several_systems():
    for options in ({}, dict(center=False)):
        est = words(TWO, ["aabb", "abab", "bbb", "ab"], **options)
        assert est.methods == ["all cycles"] * 4 and np.isfinite(est.stderr).all()
    for options in (dict(groups=GROUPS), dict(groups=GROUPS, center=False)):
        assert words(TWO, ["ab", "aa", "b"], **options).methods == ["all cycles"] * 3
        with pytest.raises(ArgumentError, match="order 3 is above 2") as error:
            words(TWO, ["aab"], **options)
        assert error.value.argument == "words"
    with pytest.raises(ArgumentError, match="above 4"):
        words(TWO, ["aabba"])
    for center in (False, True):
        with pytest.raises(ArgumentError, match="above 2"):
            words(TWO | {"a": GAPS}, ["aab"], center=center)


GROUPED = dict(population=20, column_groups=COLUMNS)
REFUSED = [  # phi, n_max, options, argument, part of the message
    (X, 2, dict(method="naive"), "method", "sm.naive"),
    (X, 2, dict(method="both"), "method", "use one of auto"),
    (X, 5, dict(method="all_cycles"), "n_max", "above 4.*or 'auto'"),
    (X, 5, dict(population=20), "n_max", "above 4.*use a smaller n_max$"),
    (X, 4, dict(population=20, groups=GROUPS), "n_max", "groups and pop.*each group$"),
    (GAPS, 3, dict(population=20), "n_max", "above 2"),
    (X, 2, dict(population=20, method="increasing"), "method", "use 'auto'"),
    (COUNTS, 2, dict(noise="poisson", method="increasing"), "method", "use 'auto'"),
    (X[:3], 2, {}, "n_max", r"needs 4 inputs \(or center=False\).*are 3"),
    (X[:1], 1, {}, "n_max", r"needs 2 inputs \(or center=False\).* are 1$"),
    (X, 2, dict(groups=X[:, 0] > 1), "n_max", "4 groups of inputs.*are 2"),
    (X, 3, dict(column_groups=COLUMNS < 3), "n_max", "3 groups of features.*are 2"),
    (X, 13, {}, "n_max", "needs 13 rows and columns; phi is 16 x 12"),
    (X, 0, {}, "n_max", "too small"),
    (X, 2, GROUPED, "population", "one of the two"),
    (X, 2, dict(n_permutations=-1), "n_permutations", "too small"),
    (X, 2, dict(sample=3), "sample", "at least 16"),
    (X, 2, dict(stderr=1), "stderr", "True or False"),
    (X, 2, dict(random_state="1"), "random_state", "must be a seed >= 0"),
    (X, 2, dict(n_jobs=0), "n_jobs", "too small"),
]


@pytest.mark.parametrize(("x", "n_max", "options", "argument", "message"), REFUSED)
def test_refusals(x, n_max, options, argument, message):
    with pytest.raises(ArgumentError) as error:
        sm.estimate(x, n_max, **options)
    assert error.value.argument == argument
    assert re.search(message, str(error.value)), str(error.value)


def test_words_that_are_refused():
    narrow = {"a": X, "b": X[:, :1]}
    for given, asked, message in (
        (narrow, ["bb"], "the word b b needs 2 features; there are 1"),
        (TWO, [], "word"),
        (TWO, ["ac"], "c"),
    ):
        with pytest.raises(ArgumentError, match=message) as error:
            words(given, asked)
        assert error.value.argument == "words" and "n_max" not in str(error.value)


# --- rounding -----------------------------------------------------------------------------

SPIKE = normal((40, 50), 5)
SPIKE[3, 4] = 1e12


def test_what_is_lost_to_rounding_comes_from_increasing_cycles():
    est = sm.estimate(SPIKE, 4, center=False)
    assert est.methods == ["all cycles"] + ["increasing (32 permutations)"] * 3
    assert est.values[0] == pytest.approx(1e24 / 2000, rel=1e-9)
    assert np.isfinite(est.values).all() and np.isfinite(est.stderr).all()
    assert any("increasing cycles were used instead" in note for note in est.notes)
    rest = np.delete(SPIKE, 3, axis=0)
    assert sm.estimate(rest, 4, center=False).methods == ["all cycles"] * 4


@pytest.mark.parametrize("options", [dict(method="all_cycles"), dict(population=60)])
def test_what_is_lost_and_has_no_other_method(options):
    est = sm.estimate(SPIKE, 4, center=False, **options)
    assert np.isnan(est.values[1:]).all() and np.isfinite(est.values[0])
    assert any("m(2), m(3), m(4) lost" in note for note in est.notes)
    assert not any("used instead" in note for note in est.notes)


def test_zero_is_not_lost():
    for x in (np.zeros((8, 8)), np.eye(9), np.full((9, 8), 3.0)):
        est = sm.estimate(x, 4)
        assert est.methods == ["all cycles"] * 4 and np.isfinite(est.values).all()


# --- tall and large data ------------------------------------------------------------------


def classes(P=3000, Q=24, seed=0):
    "Rows sorted by class, each with its own mean."
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(30, 5)) @ rng.normal(size=(5, Q))
    return np.repeat(means, P // 30, axis=0) + 0.5 * rng.normal(size=(P, Q)) + 1


@pytest.fixture
def blocks(monkeypatch):
    "Data of more than 500 rows are worked on in blocks of 400."
    monkeypatch.setattr(methods, "TALLEST", 500)
    monkeypatch.setattr(methods, "TALLEST_RATIO", 1)
    smaller = lambda axis, size, rng: random_blocks(axis, 400, rng)
    monkeypatch.setattr(engine_average, "random_blocks", smaller)


TALL = classes()
WHOLE = sm.estimate(TALL, 4)


@pytest.mark.parametrize("shuffled", [False, True])
def test_blocks_of_rows_in_memory(blocks, shuffled):
    "Within a tenth of the error of one piece, whatever the order of the rows."
    x = TALL[np.random.default_rng(1).permutation(len(TALL))] if shuffled else TALL
    est = sm.estimate(x, 4)
    assert est.methods == ["all rows"] * 2 + ["blocks of rows"] * 2
    np.testing.assert_allclose(est.values[:2], WHOLE.values[:2], rtol=1e-9)
    assert (abs(est.values - WHOLE.values) < 0.1 * WHOLE.stderr).all()
    np.testing.assert_allclose(est.stderr, WHOLE.stderr, rtol=0.05)
    assert est.settings["sampled"] is None


def test_blocks_of_a_whole_layer(blocks):
    est, whole = (
        sm.estimate(TALL, 4, population="all", method=m) for m in ("auto", "all_cycles")
    )
    assert (abs(est.values - whole.values) < 0.25 * whole.stderr).all()
    np.testing.assert_allclose(est.stderr, whole.stderr, rtol=0.1)


@pytest.mark.filterwarnings("ignore")
def test_blocks_with_any_option(blocks):
    gaps = TALL.copy()
    gaps[::50, 3] = np.nan
    groups = np.arange(3000) // 3
    assert sm.estimate(gaps, 2).methods == ["blocks of rows"] * 2
    assert sm.estimate(TALL, 3, groups=groups).methods[2] == "blocks of rows"
    est = sm.estimate(TALL, 2, column_groups=np.arange(24) // 2)
    assert est.methods == ["blocks of rows"] * 2
    far = sm.estimate(TALL[:800], 5, n_permutations=2, stderr=False)
    assert far.methods[4] == "increasing (2 permutations)"
    gaps = sm.estimate(gaps, 4)
    assert (abs(gaps.values - WHOLE.values) < WHOLE.stderr).all()


def stored(x, folder):
    np.save(folder / "x.npy", x)
    return np.load(folder / "x.npy", mmap_mode="r")


def test_files_dask_and_tensors_of_sorted_rows(nothing_loaded, tmp_path, blocks):
    "Orders 1 and 2 equal to rounding, 3 and 4 within two of the errors they state."
    array = pytest.importorskip("dask.array")
    shuffled = TALL[np.random.default_rng(1).permutation(len(TALL))]
    given = [stored(TALL, tmp_path), array.from_array(TALL, chunks=(700, 24))]
    given += [array.from_array(shuffled, chunks=(411, 10)), torch.tensor(TALL)]
    for x in given:
        est = sm.estimate(x, 4, sample=1000)
        np.testing.assert_allclose(est.values[:2], WHOLE.values[:2], rtol=1e-9)
        assert (abs(est.values - WHOLE.values) < 2 * est.stderr).all()
        assert (est.stderr < 1.3 * WHOLE.stderr).all()
        assert (est.stderr > 0.8 * WHOLE.stderr).all()
        if not isinstance(x, torch.Tensor):
            assert est.settings["sampled"] == dict(rows=1000, of=3000, orders=[3, 4])
            assert "1000 of 3000 rows" in str(est).replace(",", "")


def test_the_sample_states_its_error(nothing_loaded, tmp_path, blocks):
    "With all features known the sample's own rows dominate: other seeds are as far."
    x = stored(TALL, tmp_path)
    whole = sm.estimate(TALL, 3, population="all")
    found = [
        sm.estimate(x, 3, sample=500, population="all", random_state=seed)
        for seed in range(12)
    ]
    off = np.array([(est.values - whole.values)[2] for est in found])
    extra = np.mean([est.error_by_source["draws"][2] for est in found])
    assert extra / 2 < np.sqrt(np.mean(off**2)) < 2 * extra
    stated = np.array([est.stderr[2] for est in found])
    assert np.sum(abs(off) > 2 * stated) <= 1
    inputs = np.mean([est.error_by_source["inputs"][2] for est in found])
    assert inputs == pytest.approx(whole.error_by_source["inputs"][2], rel=0.3)
    all_rows = sm.estimate(x, 3, sample=None, population="all")
    assert (abs(all_rows.values - whole.values) < 0.25 * whole.stderr).all()
    assert all_rows.settings["sampled"] is None


def test_groups_of_a_large_file(nothing_loaded, tmp_path, blocks):
    groups, x = np.repeat(np.arange(300), 3), TALL[::3][:900]
    est = sm.estimate(stored(x, tmp_path), 3, groups=groups, sample=400)
    whole = sm.estimate(x, 3, groups=groups)  # in blocks
    exact = sm.estimate(x, 2, groups=groups, method="all_cycles").values
    np.testing.assert_allclose(est.values[:2], exact, rtol=1e-9)
    assert abs(est.values - whole.values)[2] < 2 * est.stderr[2]
    assert est.settings["groups"] == {"inputs": 300}
    scattered = np.random.default_rng(0).permutation(groups)  # groups cannot be read whole
    est = sm.estimate(stored(x, tmp_path), 2, groups=scattered, sample=None)
    whole = sm.estimate(x, 2, groups=scattered, method="all_cycles")
    np.testing.assert_allclose(est.values, whole.values, rtol=1e-8)


def test_groups_that_are_longer_than_a_block(nothing_loaded, tmp_path):
    "Blocks and samples hold enough groups for the highest order."
    groups = np.repeat(np.arange(20), 300)
    x = normal((20, 6), 1)[groups] + normal((6000, 6), 2)
    est = sm.estimate(x, 4, groups=groups, n_permutations=3)
    drawn = "all cycles of random members (3 draws)"
    assert est.methods == ["all rows"] * 2 + ["blocks of rows", drawn]
    whole = sm.estimate(x, 3, groups=groups, method="all_cycles")
    np.testing.assert_allclose(est.values[:3], whole.values, rtol=1e-9)
    np.testing.assert_allclose(est.stderr[2], whole.stderr[2], rtol=1e-9)
    many = sm.estimate(x, 3, groups=np.arange(6000) // 10, random_state=1)
    assert many.methods[2] == "blocks of rows" and np.isfinite(many.stderr).all()
    sampled = sm.estimate(stored(x, tmp_path), 3, groups=groups, sample=500)
    assert np.isfinite(sampled.stderr).all()
    stream = sm.Stream(6, 3, sample=16).update(x, groups).estimate()
    assert np.isfinite(stream.stderr).all()
    assert sampled.settings["sampled"] == dict(rows=2100, of=6000, orders=[3])


@pytest.mark.parametrize("groups", [None, np.random.default_rng(0).integers(0, 50, 400)])
def test_rows_of_a_sample(groups):
    axis, rng = AxisInfo(400, groups), np.random.default_rng(1)
    rows = engine_average.sample_rows(axis, 100, rng)
    assert (np.diff(rows) > 0).all() and 85 < len(rows) <= 100
    if groups is not None:
        assert np.isin(groups, groups[rows]).sum() == len(rows)
    for size in (None, 400, 1000):
        rows = engine_average.sample_rows(axis, size, rng)
        np.testing.assert_array_equal(rows, np.arange(400))


def test_a_method_that_is_an_array_is_refused_by_name():
    with pytest.raises(sm.ArgumentError, match="method = array.* is not known"):
        sm.participation_ratio(normal((20, 9), 0), method=np.ones(3))
