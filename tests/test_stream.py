"""Streams: batches, merges, files, interruptions; what no reader of the chapter needs."""

import copy
import io
import itertools
import json
import pickle
import threading
import zipfile

import numpy as np
import pytest
from conftest import normal, peak_memory
from hypothesis import given, settings
from hypothesis import strategies as st

import spectral_moments as sm
from spectral_moments import Stream, increasing
from spectral_moments.engine import stream as module
from spectral_moments.engine.stream import counted_summary, extended, merged

pytestmark = pytest.mark.filterwarnings("ignore::spectral_moments.results.EstimateWarning")


def structured(P, Q, seed=0):
    return sm.Linear(4).sample(P, Q, random_state=seed)


def values(stream):
    return stream.estimate(stderr=False).values


def as_given(Q, n_max, **options):
    "A stream that takes rows and columns as they come."
    return Stream(Q, n_max, shuffle=False, **options)


# ------------------------------------------------------------------------------ summaries
@pytest.mark.parametrize("mergeable", [False, True])
def test_rows_of_ones_in_closed_form(mergeable):
    ones = np.ones((7, 5))
    walked = extended(counted_summary(0, 5, 4, mergeable=mergeable), ones, ones)
    told = counted_summary(7, 5, 4, mergeable=mergeable)
    assert told.n_rows == walked.n_rows == 7
    for one, other in zip(told[:2], walked[:2]):
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_allclose(one, other, rtol=1e-14)


def test_merge_is_associative():
    parts = [np.random.default_rng(i).standard_normal((5, 6)) for i in range(3)]
    a, b, c = (
        extended(counted_summary(0, 6, 4), x, x, exponent=k) for k, x in enumerate(parts)
    )
    left, right = merged(merged(a, b), c), merged(a, merged(b, c))
    assert left.exponent == right.exponent == 2 and left.n_rows == right.n_rows == 15
    for one, other in zip(left[:2], right[:2]):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12 * abs(one).max())


# -------------------------------------------------------------------------------- batches
@settings(max_examples=30, deadline=None)
@given(st.data())
def test_stream_is_increasing_whatever_the_batches(data):
    P, Q = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 40))
    n_max = data.draw(st.integers(1, min(P, Q, 6)))
    phi = structured(P, Q, data.draw(st.integers(0, 99)))
    cuts = sorted(data.draw(st.lists(st.integers(0, P), max_size=5)))
    pieces = np.split(phi, cuts)
    stream = as_given(Q, n_max)
    for piece in pieces:
        stream.update(piece)
    bound = 1e-11 * increasing(abs(phi), n_max) + 1e-300  # a sum of both signs may cancel
    expected = increasing(phi, n_max)
    assert (abs(values(stream) - expected) <= bound).all()
    joined = as_given(Q, n_max)
    for piece in pieces:
        joined = joined.merge(as_given(Q, n_max).update(piece))
    assert (abs(values(joined) - expected) <= bound).all()


@pytest.mark.parametrize("size", [1, 3, 50])
def test_batches_beyond_the_pool(monkeypatch, size):
    monkeypatch.setattr(module, "BATCH", 6)
    monkeypatch.setattr(module, "POOL", 15)
    phi = structured(50, 21)
    stream = as_given(21, 4)
    for batch in np.split(phi, range(size, 50, size)):
        stream.update(batch)
    assert stream._state.pool.shape[1] < 6
    np.testing.assert_allclose(values(stream), increasing(phi, 4), rtol=1e-10)
    mixed = Stream(21, 4, random_state=0)
    for batch in np.split(phi, range(size, 50, size)):
        mixed.update(batch)
    assert 15 <= mixed._state.pool.shape[1] < 21
    np.testing.assert_allclose(values(mixed)[:2], increasing(phi, 2), rtol=1e-10)


def test_same_seed_same_stream(monkeypatch):
    monkeypatch.setattr(module, "BATCH", 8)
    monkeypatch.setattr(module, "POOL", 16)
    phi = structured(60, 12)
    one, two, other = (Stream(12, 4, random_state=s).update(phi) for s in (1, 1, 2))
    np.testing.assert_array_equal(values(one), values(two))
    assert (values(one) != values(other))[2:].all()
    first, second = (Stream(12, 4, random_state=1, n_jobs=k).update(phi) for k in (1, 3))
    np.testing.assert_array_equal(values(first), values(second))


def test_mean_over_seeds_is_the_mean_over_all_cycles(monkeypatch):
    "Columns are permuted once and for all, rows by the seed."
    monkeypatch.setattr(module, "BATCH", 4)
    monkeypatch.setattr(module, "POOL", 8)
    phi = np.sort(structured(12, 9, seed=3), axis=0)
    found = np.array([values(Stream(9, 3, random_state=s).update(phi)) for s in range(400)])
    rng = np.random.default_rng(0)
    columns = np.random.default_rng(9).permutation(9)
    rows = np.array(
        [increasing(phi[rng.permutation(12)][:, columns], 3) for _ in range(400)]
    )
    error = np.hypot(found.std(0, ddof=1), rows.std(0, ddof=1)) / 20
    assert (abs(found.mean(0) - rows.mean(0))[2] < 4 * error[2]).all()
    given_order = increasing(phi, 3)[2]
    assert abs(given_order - rows.mean(0)[2]) > 4 * error[2]  # negative control


# ------------------------------------------------------------- trials, gaps, centring, all
def test_trials_by_halves():
    rng = np.random.default_rng(1)
    phi = structured(30, 8) + rng.standard_normal((3, 30, 8))
    stream = as_given(8, 3).update(phi[:, :11]).update(phi[:, 11:])
    enter, leave = phi[::2].mean(0), phi[1]

    def mean(n):
        "By direct sums over increasing rows and columns."
        total, rows, columns = 0.0, range(30), range(8)
        for r in itertools.combinations(rows, n):
            for c in itertools.combinations(columns, n):
                total += np.prod([leave[i, k] for i, k in zip(r, c)]) * np.prod(
                    [enter[i, k] for i, k in zip(r[1:] + r[:1], c)]
                )
        return total

    import math

    direct = [mean(n) / math.comb(30, n) / math.comb(8, n) for n in (1, 2)]
    np.testing.assert_allclose(values(stream)[:2], direct, rtol=1e-9)
    assert stream.estimate().shape == (3, 30, 8)
    with pytest.raises(ValueError, match="rows have 2 trials and the stream has 3"):
        stream.update(phi[:2])
    with pytest.raises(ValueError, match="different numbers of trials"):
        stream.merge(as_given(8, 3).update(phi[:2]))


def test_gaps_are_counted(monkeypatch):
    monkeypatch.setattr(module, "BATCH", 7)
    phi = structured(40, 9)
    gaps = np.where(np.random.default_rng(1).random(phi.shape) < 0.1, np.nan, phi)
    gaps[:20] = phi[:20]  # the counts begin late
    stream = as_given(9, 3).update(gaps)
    np.testing.assert_allclose(values(stream), increasing(gaps, 3), rtol=1e-9)
    halves = [as_given(9, 3).update(part) for part in (gaps[:20], gaps[20:])]
    np.testing.assert_allclose(values(halves[0].merge(halves[1])), increasing(gaps, 3))
    nothing = as_given(9, 3).update(np.full((5, 9), np.nan)).update(phi)
    np.testing.assert_allclose(values(nothing), increasing(phi, 3), rtol=1e-9)


def test_masks_are_gaps():
    phi = structured(20, 6)
    hidden = np.ma.masked_array(phi, phi > 1)
    expected = values(as_given(6, 2).update(hidden.filled(np.nan)))
    for rows in (hidden, list(hidden)):
        np.testing.assert_array_equal(values(as_given(6, 2).update(rows)), expected)
    one_by_one = as_given(6, 2)
    for row in hidden:
        one_by_one.update(row)
    np.testing.assert_allclose(values(one_by_one), expected, rtol=1e-12)
    assert abs(expected / values(as_given(6, 2).update(phi)) - 1).max() > 0.01


def test_centred_stream_is_unbiased(monkeypatch):
    monkeypatch.setattr(module, "BATCH", 8)
    monkeypatch.setattr(module, "POOL", 16)
    process, rng = sm.Linear(3), np.random.default_rng(0)
    truth, found, plain = process.moments(3), [], []
    for seed in range(150):
        phi = process.sample(40, 30, random_state=seed)
        phi = phi[np.argsort(phi[:, 0])] + 2 * np.ones(30)  # sorted rows do no harm
        found.append(values(Stream(30, 3, center=True, random_state=rng).update(phi)))
        plain.append(values(Stream(30, 3, random_state=rng).update(phi)))
    error = np.std(found, axis=0, ddof=1) / np.sqrt(150)
    assert (abs(np.mean(found, axis=0) - truth) < 4 * error).all()
    assert (np.mean(plain, axis=0) > 2 * truth).all()  # negative control


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("T", [1, 2])
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_every_combination(center, T, gaps, shuffle, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 8)
    monkeypatch.setattr(module, "POOL", 16)
    rng = np.random.default_rng(1)
    phi = structured(60, 9) + 0.2 * rng.standard_normal((T, 60, 9))
    if gaps:
        phi[rng.random(phi.shape) < 0.05] = np.nan
    stream = Stream(9, 2, center=center, shuffle=shuffle, random_state=0)
    halves = [copy.copy(stream), copy.copy(stream)]
    stream.update(phi[:, :40])
    stream.save(tmp_path / "s.npz")
    again = Stream.load(tmp_path / "s.npz")
    for s in (stream, again):
        s.update(phi[:, 40:])
    one, two = stream.estimate(), again.estimate()
    np.testing.assert_array_equal(one.values, two.values)
    np.testing.assert_array_equal(one.stderr, two.stderr)
    reference = sm.estimate(phi if T > 1 else phi[0], 2, center=center, random_state=0)
    assert (abs(one.values - reference.values) < 1.5 * reference.stderr).all()
    np.testing.assert_allclose(one.stderr, reference.stderr, rtol=0.5)
    joined = halves[0].update(phi[:, :25]).merge(halves[1].update(phi[:, 25:]))
    assert (abs(values(joined) - reference.values) < 1.5 * reference.stderr).all()


# ----------------------------------------------------------------------------- the errors
def test_error_equals_the_one_in_memory():
    phi = structured(80, 30)
    expected = sm.estimate(phi, 3, center=False).stderr
    found = Stream(30, 3).update(phi).estimate()
    np.testing.assert_allclose(found.stderr, expected, rtol=1e-9)  # every row is kept
    parts = np.hypot(*found.parts.values())
    np.testing.assert_allclose(found.stderr, parts, rtol=1e-9)


def test_kept_rows_are_a_random_sample_and_the_largest(monkeypatch):
    monkeypatch.setattr(module, "SAMPLE", 10)
    monkeypatch.setattr(module, "LARGEST", 3)
    phi = np.arange(200.0)[:, None] + np.zeros((200, 2))
    means, together = [], []
    for seed in range(300):
        stream = Stream(2, 1, random_state=seed).update(phi[:70]).update(phi[70:])
        first = Stream(2, 1, random_state=seed).update(phi[:70])
        second = Stream(2, 1, random_state=seed + 10**6).update(phi[70:])
        for s, into in ((stream, means), (first.merge(second), together)):
            kept, weights = s._state.sample()
            assert 10 <= kept.shape[1] <= 13
            assert {197.0, 198.0, 199.0} <= set(kept[0, :, 0])
            np.testing.assert_allclose(weights.sum(), 200)
            into.append((weights * kept[0, :, 0]).sum() / 200)
    for sample in (means, together):
        error = np.std(sample, ddof=1) / np.sqrt(300)
        assert abs(np.mean(sample) - 99.5) < 4 * error


def test_rare_strong_rows_are_in_the_errors(monkeypatch):
    "Without the largest rows the error is missed by most samples."
    monkeypatch.setattr(module, "SAMPLE", 60)
    monkeypatch.setattr(module, "LARGEST", 20)
    found, spread = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        phi = rng.standard_normal((800, 12))
        phi[rng.permutation(800)[:8]] *= 6  # one row in a hundred
        stream = Stream(12, 2, random_state=seed).update(phi)
        found.append(stream.estimate().parts["inputs"][0])
        spread.append(sm.estimate(phi, 2, center=False).parts["inputs"][0])
    np.testing.assert_allclose(np.mean(found), np.mean(spread), rtol=0.25)
    assert min(found) > 0.6 * min(spread)


# ------------------------------------------------------------------------ sizes and scales
@pytest.mark.parametrize("factor", [1e40, 1e-60])
def test_one_row_of_another_size(factor):
    phi = np.random.default_rng(0).standard_normal((40, 20))
    phi[3] *= factor
    for size in (40, 7):
        stream = as_given(20, 4)
        for batch in np.split(phi, range(size, 40, size)):
            stream.update(batch)
        np.testing.assert_allclose(values(stream), increasing(phi, 4), rtol=1e-9)
    halves = [as_given(20, 4).update(part) for part in np.split(phi, 2)]
    before = [values(half) for half in halves]
    np.testing.assert_allclose(
        values(halves[0].merge(halves[1])), increasing(phi, 4), rtol=1e-9
    )
    np.testing.assert_array_equal(before, [values(half) for half in halves])


@pytest.mark.parametrize("unit", [1e-13, 1e40])
def test_units_do_not_matter(unit):
    phi = sm.RBF(3, kernel_cov=0.25).sample(120, 50, random_state=0)
    n_max = 6 if unit < 1 else 3
    powers = unit ** (2 * np.arange(1, n_max + 1))
    plain, scaled = (
        Stream(50, n_max, random_state=0).update(x).estimate() for x in (phi, phi * unit)
    )
    np.testing.assert_allclose(scaled.values / powers, plain.values, rtol=1e-6)
    np.testing.assert_allclose(scaled.stderr / powers, plain.stderr, rtol=1e-6)
    np.testing.assert_array_equal(scaled.usable, plain.usable)


def test_merge_of_different_scales():
    phi = structured(30, 10) * np.where(np.arange(30) < 12, 1e-20, 1e20)[:, None]
    first, second = as_given(10, 3).update(phi[:12]), as_given(10, 3).update(phi[12:])
    np.testing.assert_allclose(values(first.merge(second)), increasing(phi, 3), rtol=1e-9)
    growing = as_given(10, 3)
    for row in np.split(phi, 30):
        growing.update(row)
    np.testing.assert_allclose(values(growing), increasing(phi, 3), rtol=1e-9)
    zeros = as_given(10, 3).update(np.zeros((300, 10)))
    expected = increasing(np.concatenate([np.zeros((300, 10)), phi[12:]]), 3)
    np.testing.assert_allclose(values(zeros.merge(second)), expected, rtol=1e-9)


# -------------------------------------------------------------- merges, copies, refusals
def test_merge_leaves_its_parts():
    phi = structured(40, 18)
    parts = [as_given(18, 4).update(x) for x in np.split(phi, [7, 19, 20])]
    before = [values(p) for p in parts if p.n_rows >= 4]
    a = parts[0].merge(parts[1]).merge(parts[2]).merge(parts[3])
    b = parts[0].merge(parts[1].merge(parts[2].merge(parts[3])))
    c = parts[0].merge(parts[1]).merge(parts[2].merge(parts[3]))
    for stream in (a, b, c):
        assert stream.n_rows == 40 and stream.mergeable
        np.testing.assert_allclose(values(stream), increasing(phi, 4), rtol=1e-10)
    np.testing.assert_array_equal(before, [values(p) for p in parts if p.n_rows >= 4])
    more = a.update(phi)  # a merged stream goes on
    expected = increasing(np.concatenate([phi, phi]), 4)
    np.testing.assert_allclose(values(more), expected, rtol=1e-10)


def test_merged_streams_have_their_own_generator(monkeypatch):
    monkeypatch.setattr(module, "SAMPLE", 5)
    phi = structured(60, 6)
    first, second = (Stream(6, 2, random_state=s).update(phi) for s in (1, 2))
    joined, other = first.merge(second), first.merge(second)
    second.update(phi)
    for stream in (joined, other):
        stream.update(phi)
    np.testing.assert_array_equal(joined._state.kept, other._state.kept)


def test_copies_share_nothing():
    phi = structured(30, 6)
    for function in (copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))):
        stream = Stream(6, 2, random_state=0).update(phi[:20])
        before, twin = values(stream), function(stream)
        twin.update(100 * phi[20:])
        np.testing.assert_array_equal(values(stream), before)
        stream.update(100 * phi[20:])  # the generator too goes on as if alone
        np.testing.assert_array_equal(values(stream), values(twin))
        np.testing.assert_array_equal(stream._state.keys, twin._state.keys)


def test_merge_refuses():
    a = Stream(5, 2).update(structured(9, 5))
    with pytest.raises(TypeError, match="other must be a Stream"):
        a.merge(3)
    for other in (Stream(6, 2), Stream(5, 1), Stream(5, 2, center=True), as_given(5, 2)):
        with pytest.raises(ValueError, match="only streams of the same features"):
            a.merge(other)
    cheap = Stream(5, 2, mergeable=False).update(structured(9, 5))
    with pytest.raises(ValueError, match="mergeable=True"):
        a.merge(cheap)
    assert not cheap.merge(a).mergeable  # it may come first
    first = as_given(5, 2, mergeable=False).update(structured(9, 5))
    assert not first.merge(as_given(5, 2).update(structured(9, 5))).mergeable
    empty = a.merge(Stream(5, 2, mergeable=False))
    np.testing.assert_array_equal(values(empty), values(a))
    assert empty.n_rows == 9 and empty.mergeable


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.ones((3, 4)), "4 entries"),
        (np.full((3, 5), np.inf), "infinite"),
        (np.ones((3, 5)) * 1j, "complex"),
        (np.array([["a"] * 5]), "dtype"),
        (np.ones((2, 3, 5)), "rows have 2 trials and the stream has 1"),
        (np.ones((1, 2, 3, 5)), "4 axes"),
        ("rows", "load it first"),
        (None, "rows is None"),
        (3.0, "0 axes"),
    ],
)
def test_update_refuses(rows, message):
    stream = Stream(5, 2).update(structured(9, 5))
    before = values(stream)
    with pytest.raises((ValueError, TypeError), match=message):
        stream.update(rows)
    assert stream.n_rows == 9  # nothing was taken
    np.testing.assert_array_equal(values(stream), before)


def test_stream_refuses():
    with pytest.raises(ValueError, match="exceeds n_features"):
        Stream(3, 4)
    for wrong in (dict(center=1), dict(shuffle="no")):
        with pytest.raises(TypeError, match="must be True or False"):
            Stream(3, 2, **wrong)
    with pytest.raises(ValueError, match="update it with more"):
        Stream(3, 3).update(np.ones((2, 3))).estimate()
    with pytest.raises(ValueError, match="has 5 rows, .* needs 6 distinct ones"):
        Stream(3, 3, center=True).update(np.ones((5, 3))).estimate()
    with pytest.raises(TypeError, match="stderr must be True or False"):
        Stream(3, 1).update(np.ones((2, 3))).estimate(stderr="no")
    assert Stream(3, 2).update(np.empty((0, 3))).update([]).n_rows == 0
    with pytest.raises(ValueError, match="empty|entries"):
        Stream(3, 2).update(np.empty((0, 7)))


def test_stream_takes_tensors_and_lists():
    import torch

    phi = structured(20, 6)
    expected = values(as_given(6, 2).update(phi))
    for rows in (
        phi.tolist(),
        torch.tensor(phi, requires_grad=True),
        np.asfortranarray(phi),
    ):
        np.testing.assert_array_equal(values(as_given(6, 2).update(rows)), expected)
    assert Stream(6, 2).update(torch.tensor(phi)[0]).n_rows == 1
    assert Stream(6, 2).update(phi.tolist()[0]).n_rows == 1


@pytest.mark.parametrize("where", [1, 3, 5])
def test_interrupted_update_leaves_the_stream_as_it_was(monkeypatch, where):
    for name, size in (("BATCH", 8), ("MOST", 16), ("POOL", 16)):
        monkeypatch.setattr(module, name, size)
    phi = structured(120, 12)
    stream, twin = (Stream(12, 3, random_state=0).update(phi[:60]) for _ in range(2))
    before, calls, advance = values(stream), [], module.advanced

    def interrupt(*args, **options):
        calls.append(1)
        if len(calls) == where:
            raise KeyboardInterrupt
        return advance(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(module, "advanced", interrupt)
        with pytest.raises(KeyboardInterrupt):
            stream.update(phi[60:])
    assert stream.n_rows == 60
    np.testing.assert_array_equal(values(stream), before)
    for s in (stream, twin):  # and it goes on as if nothing had happened
        s.update(phi[60:])
    np.testing.assert_array_equal(values(stream), values(twin))


# ---------------------------------------------------------------------------------- files
def test_save_and_load(tmp_path):
    phi, path = structured(70, 9), tmp_path / "stream.npz"
    stream = Stream(9, 3, random_state=4).update(phi[:40])
    stream.save(path)
    loaded = Stream.load(path)
    assert repr(loaded) == repr(stream) == "Stream(40 rows x 9 features, n_max=3)"
    for s in (stream, loaded):
        s.update(phi[40:])
    a, b = stream.estimate(), loaded.estimate()
    np.testing.assert_array_equal(a.values, b.values)
    np.testing.assert_array_equal(a.stderr, b.stderr)  # the same rows are kept
    assert loaded.merge(loaded).n_rows == 140
    assert [p.name for p in tmp_path.iterdir()] == ["stream.npz"]
    Stream(9, 3, mergeable=False).update(phi).save(path)
    assert not Stream.load(path).mergeable
    Stream(9, 3, center=True, shuffle=False).save(path)
    empty = Stream.load(path)
    assert (empty.n_rows, empty.center, empty.shuffle) == (0, True, False)
    assert empty.update(phi).n_rows == 70


@pytest.mark.parametrize("kind", ["MT19937", "Philox", "SFC64", "PCG64DXSM"])
def test_save_with_any_generator(tmp_path, kind):
    rng = np.random.Generator(getattr(np.random, kind)(3))
    stream = Stream(4, 2, random_state=rng).update(np.eye(4))
    stream.save(tmp_path / "s.npz")
    loaded = Stream.load(tmp_path / "s.npz")
    assert loaded._rng.random() == stream._rng.random()


@pytest.fixture
def saved(tmp_path):
    "Path of a stored stream, and its arrays by name."
    path = tmp_path / "stream.npz"
    Stream(9, 3, random_state=0).update(structured(40, 9)).save(path)
    with np.load(path) as file:
        return path, {name: file[name] for name in file.files}


def refused(path, words=""):
    with pytest.raises(
        ValueError, match=f"not a complete file of a stream.*{words}"
    ) as told:
        Stream.load(path)
    assert str(path) in str(told.value) and "previous one" in str(told.value)


def test_damaged_files(saved):
    path, _ = saved
    whole = path.read_bytes()
    for size in (0, 10, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        refused(path)
    flipped = bytearray(whole)
    flipped[len(whole) // 3] ^= 255
    path.write_bytes(flipped)
    refused(path)
    np.savez(path, other=np.ones(3))
    refused(path)
    np.save(path.with_suffix(".npy"), np.ones(3))
    refused(path.with_suffix(".npy"))
    with pytest.raises(FileNotFoundError):
        Stream.load(path.with_name("absent.npz"))
    with pytest.raises(IsADirectoryError):
        Stream.load(path.parent)


@pytest.mark.parametrize("name", ["sums_Z", "sums_E", "pool", "kept", "keys"])
@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.astype("f4"),
        lambda x: x.astype(">f8"),
        lambda x: np.nan_to_num(x).astype(int),
        lambda x: x.astype(complex),
        lambda x: x[..., :-1],
        lambda x: x[None],
        lambda x: np.full_like(x, np.inf),
        lambda x: x.astype(object),
    ],
)
def test_arrays_of_another_kind(saved, name, change):
    path, arrays = saved
    np.savez(path, **arrays | {name: change(arrays[name])})
    refused(path)


def test_fortran_order_is_read_as_it_is(saved):
    path, arrays = saved
    expected = values(Stream.load(path))
    turned = {k: np.asfortranarray(v) if v.ndim > 1 else v for k, v in arrays.items()}
    np.savez(path, **turned)
    np.testing.assert_array_equal(values(Stream.load(path)), expected)


@pytest.mark.parametrize(
    "change",
    [
        dict(n_features=8),
        dict(n_features=10**9),
        dict(n_features="9"),
        dict(n_max=10**6),
        dict(n_max=0),
        dict(n_max=True),
        dict(n_seen=-1),
        dict(n_seen=None),
        dict(n_seen=41),
        dict(n_seen=10**12),
        dict(center="no"),
        dict(shuffle=1),
        dict(sums=[40]),
        dict(sums=[40, 10**9]),
        dict(sums=None),
        dict(counts=[40, 0]),
        dict(rng={"bit_generator": "seed"}),
        dict(rng={"bit_generator": "RandomState"}),
        dict(rng={}),
        dict(rng=None),
        dict(format="spectral_moments stream 1"),
    ],
)
def test_settings_of_another_kind(saved, change):
    path, arrays = saved
    told = json.loads(str(arrays["settings"])) | change
    np.savez(path, **arrays | {"settings": np.array(json.dumps(told))})
    refused(path)


def test_missing_parts(saved):
    path, arrays = saved
    for name in ("settings", "sums_Z", "kept", "keys"):
        np.savez(path, **{k: v for k, v in arrays.items() if k != name})
        refused(path)


def test_sizes_are_checked_before_memory_is_taken(saved):
    "A header that announces gigabytes, in a file of a few kilobytes."
    path, arrays = saved
    told = json.loads(str(arrays["settings"])) | dict(n_features=2**14, n_max=3)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, dict(descr="<f8", fortran_order=False, shape=(3, 2**14, 2**14))
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, array in (arrays | {"settings": np.array(json.dumps(told))}).items():
            with file.open(f"{name}.npy", "w") as part:
                if name == "sums_Z":
                    part.write(header.getvalue() + bytes(1000))
                else:
                    np.lib.format.write_array(part, np.asarray(array))
    assert peak_memory(refused, path, "header promises") < 5e7


def test_interrupted_save_leaves_the_previous_file(tmp_path, monkeypatch):
    path = tmp_path / "stream.npz"
    stream = Stream(9, 3).update(structured(40, 9))
    stream.save(path)
    before = path.read_bytes()
    for error in (KeyboardInterrupt, OSError(28, "No space left on device"), MemoryError):

        def fail(file, error=error, **arrays):
            file.write(b"half of it")
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(np, "savez", fail)
            with pytest.raises(type(error) if isinstance(error, OSError) else error):
                stream.update(structured(5, 9)).save(path)
        assert path.read_bytes() == before
        assert [p.name for p in tmp_path.iterdir()] == ["stream.npz"]


def test_two_threads_save_to_one_path(tmp_path):
    path, failures = tmp_path / "stream.npz", []
    streams = [Stream(9, 3).update(structured(n, 9)) for n in (20, 50)]

    def work(stream):
        try:
            for _ in range(30):
                stream.save(path)
                assert Stream.load(path).n_rows in (20, 50)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(s,)) for s in streams * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert [p.name for p in tmp_path.iterdir()] == ["stream.npz"]


def test_notes_of_a_stream():
    phi = structured(60, 8)
    copies = Stream(8, 2).update(np.concatenate([phi, phi]))
    notes = copies.estimate().notes
    assert any("60 of 120 rows are exact copies" in note for note in notes)
    notes = Stream(8, 2).update(phi + 5).estimate().notes
    assert any("mean over inputs" in note for note in notes)


@pytest.mark.parametrize("size", [4000, 50])
def test_sorted_rows_are_noted(size):
    "Also where the pool is far too small to mix them."
    rng = np.random.default_rng(0)
    steps, slow = rng.standard_normal((4000, 12)), np.zeros((4000, 12))
    for i in range(1, 4000):
        slow[i] = 0.9 * slow[i - 1] + steps[i]
    gaps = np.where(rng.random(slow.shape) < 0.1, np.nan, slow)
    for phi, told in ((slow, True), (gaps, True), (steps, False), (steps + 3, False)):
        stream = Stream(12, 2, random_state=0)
        for batch in np.split(phi, range(size, 4000, size)):
            stream.update(batch)
        notes = stream.estimate().notes
        assert any("more alike than distant ones" in note for note in notes) == told
    mixed = Stream(12, 2, random_state=0).update(slow[rng.permutation(4000)])
    assert not any("alike" in note for note in mixed.estimate().notes)


def test_rows_of_any_size_can_be_saved(tmp_path):
    stream = Stream(3, 2).update(np.full((30, 3), 1e200) * normal((30, 3)))
    stream.save(tmp_path / "s.npz")
    np.testing.assert_array_equal(values(Stream.load(tmp_path / "s.npz")), values(stream))
