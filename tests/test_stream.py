"""Streams: batches in any order, merges, samples, what is refused."""

import pickle

import numpy as np
import pytest
from conftest import normal
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_array

import spectral_moments as sm
from spectral_moments import Stream, estimate
from spectral_moments.checks import ArgumentError
from spectral_moments.stream import Reservoir

RNG = np.random.default_rng(0)
PHI = sm.Linear(4).sample(400, 12, random_state=0) + 0.5
REPEATS = PHI + 0.5 * RNG.standard_normal((2, 400, 12))
GAPS = np.where(RNG.random(PHI.shape) < 0.05, np.nan, PHI)
GROUPS = np.repeat(np.arange(160), [1, 2, 3, 4] * 40)


def fed(data, sizes, groups=None, **options):
    "A stream that saw rows in batches of these sizes."
    stream, ends = Stream(data.shape[-1], **options), np.cumsum([0, *sizes])
    for start, stop in zip(ends, ends[1:]):
        some = None if groups is None else groups[start:stop]
        stream.update(data[..., start:stop, :], some, trials=data.ndim == 3 or None)
    return stream


CASES = {
    "plain": (PHI, None, {}),
    "uncentred": (PHI, None, dict(center=False)),
    "population": (PHI, None, dict(population=20)),
    "all features": (PHI, None, dict(population="all")),
    "groups": (PHI, GROUPS, {}),
    "repeats": (REPEATS, None, {}),
    "repeats, groups": (REPEATS, GROUPS, dict(population=30)),
    "large mean": (PHI + np.linspace(10, 30, 12), None, {}),
}


@pytest.mark.parametrize("case", CASES)
def test_sums_of_all_rows_and_errors_of_a_sample(case):
    "Orders 1 and 2 are those of all rows; errors are near, features' very near."
    data, groups, options = CASES[case]
    known = options | {"trials": data.ndim == 3 or None}
    whole = estimate(data, 3, groups=groups, method="all_cycles", **known)
    for seed, sizes in enumerate([[10] * 40, [150, 50, 190, 10]]):
        stream = fed(data, sizes, groups, n_max=3, sample=200, random_state=seed, **options)
        est = stream.estimate()
        np.testing.assert_allclose(est.values[:2], whole.values[:2], rtol=1e-8)
        assert abs(est.values - whole.values)[2] < 3 * est.error_by_source["draws"][2]
        assert est.methods[:2] == ["all rows"] * 2
        assert est.settings["sampled"]["of"] == 400 and est.shapes["phi"][1:] == (400, 12)
        for kind, near in (("inputs", 0.4), ("features", 0.05)):
            one, two = (x.error_by_source[kind][:2] for x in (est, whole))
            np.testing.assert_allclose(one, two, rtol=near, atol=1e-12, err_msg=kind)
        bare = stream.estimate(stderr=False)
        np.testing.assert_array_equal(bare.values, est.values)
        assert not bare.replicates
    if groups is not None:
        assert est.settings["groups"] == {"inputs": 160}


@settings(max_examples=25, deadline=None, derandomize=True)
@given(cuts=st.lists(st.integers(0, 400), max_size=4), turn=st.booleans())
def test_merged_in_any_order(cuts, turn):
    edges = [0, *sorted(cuts), 400]
    streams = [fed(PHI[a:b], [b - a], sample=60) for a, b in zip(edges, edges[1:])]
    streams = [pickle.loads(pickle.dumps(stream)) for stream in streams]  # other processes
    total = Stream(12, sample=60)
    for stream in reversed(streams) if turn else streams:
        rows = stream.n_rows
        total = total.merge(stream)
        assert stream.n_rows == rows
    assert total.n_rows == 400
    expected = estimate(PHI, 2, method="all_cycles", stderr=False).values
    np.testing.assert_allclose(total.estimate().values, expected, rtol=1e-9)


def test_a_merge_of_streams_of_other_scales():
    "The first rows set the scale, which differs between processes."
    small, large = PHI[:200] * 1e-3, PHI[200:] * 1e3
    both = fed(small, [200], sample=50).merge(fed(large, [200], sample=50))
    whole = estimate(np.concatenate([small, large]), 2, stderr=False).values
    np.testing.assert_allclose(both.estimate().values, whole, rtol=1e-8)
    rows = PHI * 1e-100, PHI + 1
    whole = estimate(np.concatenate(rows), 2, stderr=False).values
    tiny, large = (fed(x, [400], sample=50) for x in rows)
    for both in (tiny.merge(large), large.merge(tiny)):
        np.testing.assert_allclose(both.estimate().values, whole, rtol=1e-8)
    for unit in (1e-150, 1e150, 1e-200):
        est = fed(PHI * unit, [100] * 4, sample=50).estimate()
        (a, b), (c, d) = est.scaled.values, estimate(PHI).values
        one, two = a**2 / b, c**2 / d
        assert one == pytest.approx(two, rel=1e-8)


def test_every_row_is_as_likely_in_the_sample():
    counts = np.zeros(60)
    for seed in range(300):
        one, two = Reservoir(12, 2 * seed), Reservoir(12, 2 * seed + 1)
        for part in np.split(np.arange(40.0), 5):
            one.add(part.reshape(1, -1, 1), None)
        two.add(np.arange(40.0, 60).reshape(1, -1, 1), None)
        one.merge(two)
        assert one.rows.shape == (1, 12, 1) and one.n_groups == 60
        counts[one.rows.ravel().astype(int)] += 1
    assert counts.sum() == 300 * 12  # 60 of each, with a standard deviation of 7
    assert counts.min() > 33 and counts.max() < 90
    assert abs(counts[:40].mean() - 60) < 3


def test_groups_stay_whole_in_the_sample():
    sample = Reservoir(50, 0)
    for k in range(20):
        sample.add(normal((2, 12, 3), k), np.repeat(np.arange(4), [1, 2, 4, 5]))
    sizes = np.bincount(sample.groups)
    assert sample.n_groups == 80 and 38 < sample.rows.shape[1] <= 50
    assert {*sizes} <= {1, 2, 4, 5} and len(sizes) == len(sample.keys)


def test_missing_entries_come_into_the_sample():
    "Also after clean rows; then all orders are from the sample."
    stream = fed(PHI, [100] * 4, sample=300)
    clean = stream.estimate()
    stream.update(GAPS)
    assert stream.n_missing == np.isnan(GAPS).sum()
    est = stream.estimate()
    assert est.settings["sampled"]["orders"] == [1, 2] and est.settings["missing"]
    assert (abs(est.values - clean.values) < 4 * est.stderr).all()
    both = estimate(np.concatenate([PHI, GAPS]), 2)  # errors are those of all rows
    one, two = (x.error_by_source["inputs"] for x in (est, both))
    np.testing.assert_allclose(one, two, rtol=0.3)
    all_rows = fed(GAPS, [200, 200]).estimate()
    whole = estimate(GAPS, 2)
    np.testing.assert_allclose(all_rows.values, whole.values, rtol=1e-10)
    np.testing.assert_allclose(all_rows.stderr, whole.stderr, rtol=1e-10)


def test_refusals_leave_the_stream_as_it_was():
    stream = fed(PHI, [100, 300], sample=50)
    before = stream.estimate()
    for rows, options, argument in (
        (PHI[:, :5], {}, "rows"),
        (np.full((3, 12), np.inf), {}, "rows"),
        (PHI[:4], dict(groups=[1, 1, 2, 2]), "groups"),
        (PHI[:4], dict(groups=[1, 1, 2]), "groups"),
        (PHI[None, :4], {}, "rows"),
        (REPEATS[:, :4], dict(trials=True), "rows"),
        ("rows", {}, "rows"),
        (csc_array(PHI), {}, "rows"),
        (np.array(3.0), {}, "rows"),
        (PHI[:4], dict(trials=np.ones(2)), "trials"),
        (PHI * 1e100, {}, "rows"),
    ):
        with pytest.raises(ArgumentError) as error:
            stream.update(rows, **options)
        assert error.value.argument == argument
    after = stream.estimate()
    np.testing.assert_array_equal(before.values, after.values)
    np.testing.assert_array_equal(before.stderr, after.stderr)
    for other, word in (
        (Stream(11), "n_features"),
        (Stream(12, 3), "n_max"),
        (Stream(12, center=False), "center"),
        (Stream(12, population=20), "population"),
        (fed(PHI, [400], GROUPS), "groups"),
        (PHI, "not a Stream"),
    ):
        with pytest.raises(ArgumentError, match=word):
            stream.merge(other)
    with pytest.raises(ArgumentError, match="no rows"):
        Stream(12).estimate()
    with pytest.raises(ArgumentError, match="rows has only NaN entries"):
        Stream(12).update(np.full((3, 12), np.nan))
    with pytest.raises(ArgumentError, match="needs 4 inputs"):
        Stream(12).update(PHI[:3]).estimate()
    for options in (
        dict(n_max=13),
        dict(sample=3),
        dict(random_state=-1),
    ):
        with pytest.raises(ArgumentError, match=[*options][0]):
            Stream(12, **options)


def test_what_comes_is_copied_and_single_rows_are_read():
    rows = PHI.copy()
    stream = Stream(12)
    for row in rows[:5]:
        stream.update(row)
    stream.update(rows[5:].tolist())
    rows[:] = 0
    np.testing.assert_allclose(stream.estimate().values, estimate(PHI).values, rtol=1e-10)
    assert repr(stream) == "Stream(400 rows x 12 features, n_max=2)"


def test_order_of_rows_makes_no_note():
    "Rows sorted by class arrive so, and their order is not that of a measurement."
    x = np.repeat(normal((40, 12)), 10, axis=0) + 0.3 * normal((400, 12), 1)
    assert any("Consecutive rows" in note for note in estimate(x).notes)
    assert not any("Consecutive" in note for note in fed(x, [400]).estimate().notes)


def test_columns_far_from_zero_lose_digits():
    far = PHI + 1e6
    lost = fed(far, [200, 200], sample=64).estimate()
    assert np.isfinite(lost.values[0]) and np.isnan(lost.values[1])
    assert any("m(2) lost all digits" in note for note in lost.notes)
    near = fed(far - far[:50].mean(axis=0), [200, 200], sample=64).estimate()
    np.testing.assert_allclose(near.values, estimate(PHI).values, rtol=1e-6)


def test_ragged_rows_are_refused_by_name():
    stream = sm.Stream(2)
    with pytest.raises(sm.ArgumentError, match="rows"):
        stream.update([[1.0], [2.0, 3.0]])
    assert stream.update([]).n_rows == 0 == stream.update(np.empty((0, 2))).n_rows
