"""Sketch, stream, cluster: what no reader of the chapter needs to see."""

import itertools
import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spectral_moments as sm
from spectral_moments import scale
from spectral_moments.recursion import increasing
from spectral_moments.results import EstimateWarning
from spectral_moments.scale import LocalMatrix, Stream, sketched

quiet = pytest.mark.filterwarnings("ignore::spectral_moments.results.EstimateWarning")


def structured(P, Q, seed=0):
    return sm.Linear(4).sample(P, Q, random_state=seed)


# ---------------------------------------------------------------------------------- sketch
@quiet
def test_full_rank_is_exact():
    for shape in ((30, 12), (12, 30), (17, 17)):
        phi = structured(*shape)
        est = sketched(phi, 5, rank=100, n_probes=2, n_permutations=0, random_state=0)
        np.testing.assert_allclose(est.values, increasing(phi, 5), rtol=1e-9)
        assert (est.probe_error <= 1e-9 * abs(est.values)).all()


@quiet
def test_probe_error_is_the_spread_over_seeds():
    phi = np.random.default_rng(0).standard_normal((80, 60)) + 0.3
    options = dict(rank=4, n_probes=20, n_permutations=0, stderr=False)
    found = [sketched(phi, 4, random_state=seed, **options) for seed in range(120)]
    values = np.array([f.values for f in found])
    spread = values.std(axis=0, ddof=1)[1:]
    told = np.sqrt(np.mean([f.probe_error**2 for f in found], axis=0))[1:]
    np.testing.assert_allclose(told, spread, rtol=0.25)  # 120 draws: 6.5% of spread
    centre = (values.mean(axis=0) - increasing(phi, 4))[1:]
    assert (abs(centre) < 4 * spread / np.sqrt(120)).all()


@quiet
def test_row_blocks_do_not_matter(monkeypatch):
    phi = structured(61, 23)
    options = dict(n_permutations=0, random_state=1, rank=5, n_probes=21)
    whole = sketched(phi, 6, **options)
    for size in (2, 4, 14):
        monkeypatch.setattr(scale, "BLOCK", 8 * 23 * size)
        np.testing.assert_allclose(
            sketched(phi, 6, **options).values, whole.values, rtol=1e-9
        )
    monkeypatch.setattr(scale, "STATE", 1)  # one block of lanes at a time
    np.testing.assert_allclose(sketched(phi, 6, **options).values, whole.values, rtol=1e-9)


@quiet
def test_threads_do_not_matter():
    phi = structured(40, 50)
    a, b = (sketched(phi, 5, random_state=3, n_jobs=jobs) for jobs in (1, 3))
    np.testing.assert_array_equal(a.values, b.values)


@quiet
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint64", "bool", ">f8"])
def test_dtypes(dtype):
    phi = (10 * structured(30, 20)).astype(dtype)
    before = phi.copy()
    phi.setflags(write=False)
    est = sketched(phi, 3, rank=20, n_permutations=0, random_state=0)
    np.testing.assert_array_equal(phi, before)
    np.testing.assert_allclose(est.values, increasing(before.astype(float), 3), rtol=1e-9)


@quiet
def test_inputs_of_every_kind(tmp_path):
    import torch

    phi = structured(30, 20)
    options = dict(n_permutations=0, random_state=0)
    expected = sketched(phi, 4, **options).values
    np.save(tmp_path / "phi.npy", phi)
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "phi.h5", "w") as file:
        file["phi"] = phi
        np.testing.assert_allclose(
            sketched(file["phi"], 4, **options).values, expected, rtol=1e-9
        )
        assert np.isfinite(sketched(file["phi"], 4, random_state=1).values).all()
    for given_phi in (
        phi.tolist(),
        np.asfortranarray(phi),
        phi[::-1][::-1],
        torch.tensor(phi),
        np.load(tmp_path / "phi.npy", mmap_mode="r"),
        phi[None],
    ):
        np.testing.assert_allclose(
            sketched(given_phi, 4, **options).values, expected, rtol=1e-9
        )


@quiet
def test_scale_of_the_entries():
    phi = structured(30, 20)
    options = dict(n_permutations=0, random_state=0, stderr=False)
    base = sketched(phi, 4, **options).values
    for power in (-200, 200, 120):
        scaled = sketched(np.ldexp(phi, power), 2, **options).values
        np.testing.assert_allclose(
            scaled, np.ldexp(base[:2], [2 * power, 4 * power]), rtol=1e-9
        )
    wild = phi[:6] * np.array([1e-290, 1e290, 1e-290, 1e290, 1, 1])[:, None]
    with pytest.raises(ValueError, match="too many different sizes"):
        sketched(wild, 6)
    zeros = sketched(np.zeros((5, 5)), 3, stderr=False)
    np.testing.assert_array_equal(zeros.values, 0)


@pytest.mark.parametrize(
    ("phi", "options", "message"),
    [
        (np.ones((3, 4)) * 1j, {}, "complex"),
        (np.array([["a"]]), {}, "dtype"),
        (np.ones((0, 4)), {}, "empty"),
        (np.ones((2, 3, 4)), {}, "2 trials"),
        (np.ma.masked_array(np.ones((4, 4)), False), {}, "masked"),
        (np.full((4, 4), np.nan), {}, "NaN"),
        (np.full((4, 4), np.inf), {}, "infinite"),
        (np.ones((4, 4)), {"n_max": 5}, "exceeds min"),
        (np.ones((4, 4)), {"n_probes": 1}, "n_probes = 1"),
        (np.ones((4, 4)), {"rank": -1}, "rank = -1"),
        (np.ones((4, 4)), {"tolerance": 0}, "tolerance"),
        (np.ones((4, 4)), {"tolerance": "a"}, "tolerance"),
        (np.ones((4, 4)), {"n_probes": 15}, "too few to judge"),
        (np.ones((4, 4)), {"n_permutations": -1}, "n_permutations"),
    ],
)
def test_sketch_refuses(phi, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        sketched(phi, **{"n_max": 2, **options})


@quiet
def test_sketch_stops_by_itself(monkeypatch):
    rounds = []
    walk = LocalMatrix.walk

    def counted(*args, **kwargs):
        rounds.append(1)
        return walk(*args, **kwargs)

    monkeypatch.setattr(LocalMatrix, "walk", counted)
    phi = structured(200, 150)
    est = sketched(phi, 4, rank=0, n_probes=16, tolerance=0.5, random_state=0)
    few = len(rounds)
    sampling = np.sqrt(est.stderr**2 - est.probe_error**2)
    assert few < scale.MOST and (est.probe_error <= 0.5001 * sampling).all()
    rounds.clear()
    finer = sketched(phi, 4, rank=0, n_probes=16, tolerance=0.2, random_state=0)
    assert len(rounds) > few
    assert (finer.probe_error[1:] < est.probe_error[1:]).all()


def test_sketch_says_when_it_gives_up():
    phi = np.random.default_rng(0).standard_normal((200, 150)) + 1
    with pytest.warns(EstimateWarning, match="raise n_probes or rank"):
        sketched(phi, 3, rank=0, n_probes=16, tolerance=1e-3, random_state=0)


def test_orders_that_are_zero_in_the_first_round():
    spikes = (np.random.default_rng(5).random((40, 40)) < 0.03).astype(float)
    options = dict(n_permutations=100, random_state=1)
    for seed in range(3):
        est = sketched(
            spikes, 4, rank=40, stderr=False, **{**options, "random_state": seed}
        )
        assert np.isfinite(est.probe_error).all()
        expected = increasing(spikes, 3, **options)[2]
        np.testing.assert_allclose(est.values[2], expected, rtol=0.7)  # 100 orders each


@pytest.mark.parametrize("unit", [1e-13, 1e40])
def test_units_do_not_matter(unit):
    phi = sm.RBF(3, kernel_cov=0.25).sample(120, 100, random_state=0)
    n_max = 6 if unit < 1 else 3
    powers = unit ** (2 * np.arange(1, n_max + 1))
    options = dict(rank=8, n_probes=16, n_permutations=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EstimateWarning)
        for call in (
            lambda x: sketched(x, n_max, **options),
            lambda x: Stream(100, n_max).update(x).estimate(),
        ):
            plain, scaled = call(phi), call(phi * unit)
            np.testing.assert_allclose(scaled.values / powers, plain.values, rtol=1e-6)
            np.testing.assert_allclose(scaled.stderr / powers, plain.stderr, rtol=1e-6)
            np.testing.assert_array_equal(scaled.usable, plain.usable)


@quiet
def test_error_bars_do_not_change_the_estimate():
    phi = structured(30, 20)
    options = dict(rank=4, n_permutations=2, random_state=0)
    a, b = (sketched(phi, 3, stderr=told, **options).values for told in (True, False))
    np.testing.assert_array_equal(a, b)


def test_memory_map_larger_than_memory(tmp_path):
    "A file of 400 MB, in a process that may allocate 250 MB beyond its start."
    path = tmp_path / "large.npy"
    rng = np.random.default_rng(0)
    large = np.lib.format.open_memmap(path, mode="w+", dtype="float64", shape=(12500, 4000))
    for left in range(0, 12500, 2500):
        large[left : left + 2500] = rng.standard_normal((2500, 1))  # every column the same
    large.flush()
    del large
    script = f"""
        import resource, warnings
        import numpy as np
        import spectral_moments as sm
        warnings.simplefilter("ignore")
        small = np.random.default_rng(0).standard_normal((64, 64))
        options = dict(rank=2, n_probes=14, n_permutations=1, random_state=0, n_jobs=1)
        sm.sketched(small, 2, **options)
        used = int(open("/proc/self/statm").read().split()[5]) * resource.getpagesize()
        limit = used + 250 * 2**20
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        try:
            np.ones((12500, 4000))
        except MemoryError:
            print("limited")
        phi = np.load({str(path)!r}, mmap_mode="r")
        print(*sm.sketched(phi, 2, stderr=False, **options).values)
    """
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    out = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    first, values = out.stdout.split("\n")[:2]
    assert first == "limited"
    x = np.concatenate(
        [np.random.default_rng(0).standard_normal((12500, 1))[:, 0]]
    )  # rank one: inc(2) = e_2(x^2) * C(Q, 2)
    squares = x**2
    second = (squares.sum() ** 2 - (squares**2).sum()) / (12500 * 12499)
    np.testing.assert_allclose(
        [float(v) for v in values.split()], [squares.mean(), second], rtol=1e-9
    )


# ---------------------------------------------------------------------------------- stream
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_stream_is_increasing_whatever_the_batches(data):
    P, Q = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 40))
    n_max = data.draw(st.integers(1, min(P, Q, 6)))
    phi = structured(P, Q, data.draw(st.integers(0, 99)))
    cuts = sorted(data.draw(st.lists(st.integers(0, P), max_size=5)))
    pieces = np.split(phi, cuts)
    stream, whole = Stream(Q, n_max), Stream(Q, n_max).update(phi)
    for piece in pieces:
        stream.update(piece)
    values = stream.estimate(stderr=False).values
    np.testing.assert_array_equal(values, whole.estimate(stderr=False).values)
    sizes = increasing(abs(phi), n_max)  # a sum of both signs may cancel
    np.testing.assert_array_less(
        abs(values - increasing(phi, n_max)), 1e-11 * sizes + 1e-300
    )
    merged = Stream(Q, n_max)
    for piece in pieces:
        merged = merged.merge(Stream(Q, n_max).update(piece))
    np.testing.assert_array_less(
        abs(merged.estimate(stderr=False).values - values), 1e-11 * sizes + 1e-300
    )


@quiet
def test_batches_beyond_the_buffer(monkeypatch):
    monkeypatch.setattr(scale, "BUFFER", 6)
    phi = structured(50, 21)
    one_by_one = Stream(21, 4, random_state=0)
    for row in phi:
        one_by_one.update(row)
    once = Stream(21, 4, random_state=0).update(phi)
    a, b = one_by_one.estimate(), once.estimate()
    np.testing.assert_array_equal(a.values, b.values)
    np.testing.assert_array_equal(a.stderr, b.stderr)
    np.testing.assert_allclose(a.values, increasing(phi, 4), rtol=1e-10)


@quiet
def test_stream_error_equals_the_one_in_memory():
    phi = structured(80, 30)
    expected = sm.estimate(phi, 3, method="increasing", random_state=0).stderr
    np.testing.assert_allclose(Stream(30, 3).update(phi).estimate().stderr, expected)


def test_kept_rows_are_a_random_sample(monkeypatch):
    monkeypatch.setattr(scale, "SAMPLE", 10)
    phi = np.arange(200.0)[:, None] + np.zeros((200, 2))
    means, together = [], []
    for seed in range(300):
        stream = Stream(2, 1, random_state=seed).update(phi[:70]).update(phi[70:])
        stream._flush()
        assert len(stream._kept) == 10 and (np.diff(stream._kept[:, 0]) > 0).all()
        means.append(stream._kept[:, 0].mean())
        first = Stream(2, 1, random_state=seed).update(phi[:70])
        second = Stream(2, 1, random_state=seed + 10**6).update(phi[70:])
        together.append(first.merge(second)._kept[:, 0].mean())
    for sample in (means, together):
        error = np.std(sample, ddof=1) / np.sqrt(300)
        assert abs(np.mean(sample) - 99.5) < 4 * error
        np.testing.assert_allclose(
            np.var(sample), (200**2 - 1) / 12 / 10 * 190 / 199, rtol=0.35
        )


def test_merge_is_associative_and_leaves_its_parts():
    phi = structured(40, 18)
    parts = [Stream(18, 4).update(x) for x in np.split(phi, [7, 19, 20])]
    before = [p.estimate(stderr=False).values.copy() for p in parts if p.n_rows >= 4]
    a = parts[0].merge(parts[1]).merge(parts[2]).merge(parts[3])
    b = parts[0].merge(parts[1].merge(parts[2].merge(parts[3])))
    c = parts[0].merge(parts[1]).merge(parts[2].merge(parts[3]))
    for stream in (a, b, c):
        assert stream.n_rows == 40 and stream.mergeable
        np.testing.assert_allclose(
            stream.estimate(stderr=False).values, increasing(phi, 4), rtol=1e-10
        )
    after = [p.estimate(stderr=False).values for p in parts if p.n_rows >= 4]
    np.testing.assert_array_equal(before, after)
    more = a.update(phi)  # a merged stream goes on
    np.testing.assert_allclose(
        more.estimate(stderr=False).values,
        increasing(np.concatenate([phi, phi]), 4),
        rtol=1e-10,
    )


@pytest.mark.parametrize("factor", [1e40, 1e60, 1e-60])
def test_one_row_of_another_size(factor):
    phi = np.random.default_rng(0).standard_normal((40, 20))
    phi[3] *= factor
    for size in (40, 7):
        stream = Stream(20, 6)
        for batch in np.split(phi, range(size, 40, size)):
            stream.update(batch)._flush()
        np.testing.assert_allclose(
            stream.estimate(stderr=False).values, increasing(phi, 6), rtol=1e-9
        )
    halves = [Stream(20, 6).update(part) for part in np.split(phi, 2)]
    before = [half.estimate(stderr=False).values for half in halves]
    np.testing.assert_allclose(
        halves[0].merge(halves[1]).estimate(stderr=False).values,
        increasing(phi, 6),
        rtol=1e-9,
    )
    after = [half.estimate(stderr=False).values for half in halves]
    np.testing.assert_array_equal(before, after)


def test_rows_of_hopelessly_different_sizes_are_refused():
    phi = structured(12, 12) * np.exp2(np.linspace(-500, 500, 12))[:, None]
    with pytest.raises(ValueError, match="range of doubles"):
        Stream(12, 12).update(phi).estimate(stderr=False)


def test_interrupted_update_is_noticed(monkeypatch):
    stream = Stream(40, 3, n_jobs=1).update(structured(300, 40))
    calls = []

    def interrupt(*args):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(scale.recursion, "advance_lanes", interrupt)
    with pytest.raises(KeyboardInterrupt):
        stream.update(structured(300, 40))
    for call in (
        stream.estimate,
        lambda: stream.update(np.ones(40)),
        lambda: stream.save("x"),
    ):
        with pytest.raises(RuntimeError, match="interrupted half-way"):
            call()


def test_merged_streams_have_their_own_generator(monkeypatch):
    monkeypatch.setattr(scale, "SAMPLE", 5)
    phi = structured(60, 6)
    first, second = (Stream(6, 2, random_state=s).update(phi) for s in (1, 2))
    joined, other = first.merge(second), first.merge(second)
    second.update(phi)._flush()
    for stream in (joined, other):
        stream.update(phi)._flush()
    np.testing.assert_array_equal(joined._kept, other._kept)


@quiet
def test_merge_of_different_scales():
    phi = structured(30, 10) * np.where(np.arange(30) < 12, 1e-40, 1e30)[:, None]
    first, second = Stream(10, 3).update(phi[:12]), Stream(10, 3).update(phi[12:])
    np.testing.assert_allclose(
        first.merge(second).estimate(stderr=False).values, increasing(phi, 3), rtol=1e-9
    )
    growing = Stream(10, 3)
    for row in np.split(phi, 30):
        growing.update(row)._flush()
    np.testing.assert_allclose(
        growing.estimate(stderr=False).values, increasing(phi, 3), rtol=1e-9
    )
    zeros = Stream(10, 3).update(np.zeros((300, 10)))
    joined = zeros.merge(second).estimate(stderr=False).values
    np.testing.assert_allclose(
        joined, increasing(np.concatenate([np.zeros((300, 10)), phi[12:]]), 3), rtol=1e-9
    )


def test_merge_refuses():
    a = Stream(5, 2).update(structured(9, 5))
    with pytest.raises(TypeError, match="other must be a Stream"):
        a.merge(3)
    with pytest.raises(ValueError, match="n_features"):
        a.merge(Stream(6, 2))
    with pytest.raises(ValueError, match="n_max"):
        a.merge(Stream(5, 3))
    cheap = Stream(5, 2, mergeable=False).update(structured(9, 5))
    with pytest.raises(ValueError, match="mergeable=True"):
        a.merge(cheap)
    assert not cheap.merge(a).mergeable  # it may come first
    empty = a.merge(Stream(5, 2, mergeable=False))
    np.testing.assert_array_equal(
        empty.estimate(stderr=False).values, a.estimate(stderr=False).values
    )
    assert empty.n_rows == 9 and empty.mergeable


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.ones((3, 4)), "4 entries"),
        (np.full((3, 5), np.nan), "rows has NaN"),
        (np.full((3, 5), np.inf), "infinite"),
        (np.ones((3, 5)) * 1j, "complex"),
        (np.array([["a"] * 5]), "dtype"),
        (np.ones((2, 3, 5)), "trials"),
    ],
)
def test_update_refuses(rows, message):
    stream = Stream(5, 2).update(structured(9, 5))
    with pytest.raises((ValueError, TypeError), match=message):
        stream.update(rows)
    assert stream.n_rows == 9  # nothing was taken


def test_stream_refuses():
    with pytest.raises(ValueError, match="exceeds n_features"):
        Stream(3, 4)
    with pytest.raises(ValueError, match="update it with more"):
        Stream(3, 3).update(np.ones((2, 3))).estimate()
    assert Stream(3, 2).update(np.empty((0, 3))).update([]).n_rows == 0
    with pytest.raises(ValueError, match="empty|entries"):
        Stream(3, 2).update(np.empty((0, 7)))
    stream = Stream(40, 40).update(np.ones((256, 40)))
    stream._Z[0][:] = np.inf
    with pytest.raises(ValueError, match="range of doubles"):
        stream.estimate(stderr=False)


@quiet
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


@pytest.mark.parametrize("kind", ["MT19937", "Philox", "SFC64"])
def test_save_with_any_generator(tmp_path, kind):
    rng = np.random.Generator(getattr(np.random, kind)(3))
    stream = Stream(4, 2, random_state=rng).update(np.eye(4))
    stream.save(tmp_path / "s.npz")
    loaded = Stream.load(tmp_path / "s.npz")
    assert loaded._rng.random() == stream._rng.random()


def test_damaged_files(tmp_path):
    path = tmp_path / "stream.npz"
    Stream(9, 3).update(structured(40, 9)).save(path)
    whole = path.read_bytes()
    for size in (0, 10, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match="not a complete file of a stream"):
            Stream.load(path)
    flipped = bytearray(whole)
    flipped[len(whole) // 3] ^= 255
    path.write_bytes(flipped)
    with pytest.raises(ValueError, match="not a complete file of a stream"):
        Stream.load(path)
    np.savez(path, other=np.ones(3))
    with pytest.raises(ValueError, match="not a complete file"):
        Stream.load(path)
    for change in ({"Z": np.ones((1, 1))}, {"kept": np.ones((2, 8))}, {"settings": "seed"}):
        path.write_bytes(whole)
        with np.load(path) as file:
            arrays = {name: file[name] for name in file.files}
        if "settings" in change:
            settings = json.loads(str(arrays["settings"]))
            settings["rng"]["bit_generator"] = "seed"
            change = {"settings": np.array(json.dumps(settings))}
        np.savez(path, **{**arrays, **change})
        with pytest.raises(ValueError, match="not a complete file of a stream"):
            Stream.load(path)
    np.save(tmp_path / "x.npy", np.ones(3))
    with pytest.raises(ValueError, match="not a complete file"):
        Stream.load(tmp_path / "x.npy")
    with pytest.raises(FileNotFoundError):
        Stream.load(tmp_path / "absent.npz")


def test_interrupted_save_leaves_the_previous_file(tmp_path, monkeypatch):
    path = tmp_path / "stream.npz"
    stream = Stream(9, 3).update(structured(40, 9))
    stream.save(path)
    before = path.read_bytes()

    def fail(file, **arrays):
        file.write(b"half of it")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(KeyboardInterrupt):
        stream.update(structured(5, 9)).save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["stream.npz"]


@quiet
def test_stream_pickles():
    stream = Stream(9, 3, random_state=0).update(structured(40, 9))
    again = pickle.loads(pickle.dumps(stream))
    np.testing.assert_array_equal(again.estimate().values, stream.estimate().values)


def test_stream_takes_tensors_and_lists():
    import torch

    phi = structured(20, 6)
    expected = Stream(6, 2).update(phi).estimate(stderr=False).values
    for rows in (
        phi.tolist(),
        torch.tensor(phi, requires_grad=True),
        np.asfortranarray(phi),
    ):
        stream = Stream(6, 2).update(rows)
        np.testing.assert_array_equal(stream.estimate(stderr=False).values, expected)
    assert Stream(6, 2).update(torch.tensor(phi)[0]).n_rows == 1
    assert Stream(6, 2).update(phi.tolist()[0]).n_rows == 1


# --------------------------------------------------------------------------------- cluster
@pytest.fixture(scope="module")
def cluster():
    "Two worker processes; the client is the active one."
    distributed = pytest.importorskip("dask.distributed")
    options = dict(n_workers=2, threads_per_worker=1, processes=True)
    with (
        warnings.catch_warnings(),
        distributed.LocalCluster(dashboard_address=None, **options) as cluster,
        distributed.Client(cluster),
    ):
        yield cluster


def as_dask(phi, chunks):
    import dask.array as da

    return da.from_array(phi, chunks=chunks)


@quiet
def test_cluster_equals_memory(cluster):
    phi = structured(300, 25)
    est = sm.estimate(as_dask(phi, (40, 25)), 5, random_state=0)
    assert est.methods == ["increasing"] * 5 and est.shape == (1, 300, 25)
    np.testing.assert_allclose(est.values, increasing(phi, 5), rtol=1e-10)
    local = sm.estimate(phi, 5, method="increasing", random_state=0)
    np.testing.assert_allclose(est.stderr, local.stderr, rtol=1e-10)


@quiet
def test_cluster_survives_the_death_of_a_worker(cluster):
    phi = structured(400, 25)

    def slowly(block):
        time.sleep(0.2)
        return block

    slow = as_dask(phi, (25, 25)).map_blocks(slowly, dtype=float)
    victims = []

    def kill():
        time.sleep(0.8)
        victims.append(next(iter(cluster.workers.values())).pid)
        os.kill(victims[0], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    est = sm.estimate(slow, 5, random_state=0)
    thread.join()
    assert victims and victims[0] not in [w.pid for w in cluster.workers.values()]
    np.testing.assert_allclose(est.values, increasing(phi, 5), rtol=1e-10)


@quiet
def test_cluster_all_cycles_and_sketch(cluster):
    phi = structured(60, 12)
    est = sm.estimate(as_dask(phi, (20, 12)), 4, method="all_cycles")
    np.testing.assert_allclose(est.values, sm.all_cycles(phi, 4), rtol=1e-10)
    assert est.methods == ["all_cycles"] * 4
    options = dict(n_permutations=0, random_state=1)
    est = sm.sketched(as_dask(phi, (20, 12)), 4, rank=3, n_probes=8, **options)
    local = sm.sketched(phi, 4, rank=3, n_probes=8, **options)
    np.testing.assert_allclose(est.values, local.values, rtol=1e-10)
    np.testing.assert_allclose(est.probe_error, local.probe_error, rtol=1e-8)
    np.testing.assert_allclose(est.stderr, local.stderr, rtol=1e-8)


@quiet
def test_cluster_permutations(cluster):
    phi = structured(60, 12)
    dask_phi = as_dask(phi, (20, 12))
    est = sm.estimate(dask_phi, 3, method="increasing", n_permutations=6, random_state=0)
    np.testing.assert_allclose(est.values[:2], increasing(phi, 2), rtol=1e-10)
    assert abs(est.values[2] / increasing(phi, 3)[2] - 1) > 1e-6  # other orders
    again = sm.estimate(dask_phi, 3, method="increasing", n_permutations=6, random_state=0)
    np.testing.assert_array_equal(est.values, again.values)


@quiet
def test_cluster_small_and_empty_chunks(cluster):
    phi = structured(60, 12)
    dask_phi = as_dask(phi, ((0, 0, 3, 1, 0, 6, 20, 30), 12))
    for options in ({}, {"method": "sketched"}, {"method": "all_cycles"}):
        est = sm.estimate(dask_phi, 2, n_permutations=0, random_state=0, **options)
        np.testing.assert_allclose(est.values, increasing(phi, 2), rtol=0.2)
    assert scale._groups((10, 10, 10, 50, 1), 25) == [[0, 1, 2], [3], [4]]


def test_cluster_columns_are_rechunked_with_a_warning(cluster):
    phi = structured(60, 12)
    with pytest.warns(EstimateWarning, match="rechunk"):
        est = sm.estimate(as_dask(phi, (20, 5)), 2)
    np.testing.assert_allclose(est.values, increasing(phi, 2), rtol=1e-10)
    with pytest.warns(EstimateWarning, match="rechunk"):
        sketched(as_dask(phi, (20, 5)), 2)


@quiet
def test_large_summaries_are_sketched(cluster, monkeypatch):
    monkeypatch.setattr(scale, "SUMMARY", 100)
    est = sm.estimate(as_dask(structured(60, 12), (20, 12)), 3, random_state=0)
    assert est.methods == ["sketched"] * 3


def test_dask_refuses(cluster):
    import dask.array as da

    phi = as_dask(structured(60, 12), (20, 12))
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        sm.estimate(phi[phi[:, 0] > 0], 2)
    with pytest.raises(ValueError, match="3 axes"):
        sm.estimate(da.stack([phi, phi]), 2)
    with pytest.raises(TypeError, match="complex"):
        sm.estimate(phi * 1j, 2)
    with pytest.raises(ValueError, match="exceeds min"):
        sm.estimate(phi, 13)
    with pytest.raises(TypeError, match="n_max must be a whole number"):
        sm.estimate(phi, None)
    with pytest.raises(ValueError, match="not offered for Dask"):
        sm.estimate(phi, 2, method="naive")
    with pytest.raises(ValueError, match="center"):
        sm.estimate(phi, 2, center=True)
    with pytest.raises(ValueError, match="larger than 4"):
        sm.estimate(phi, 5, method="all_cycles")
    for method in ("increasing", "all_cycles", "sketched"):
        with pytest.raises(ValueError, match="NaN"):
            sm.estimate(da.where(phi > 2, np.nan, phi), 2, method=method)


# ---------------------------------------------------------------------------- stored files
def test_precision_at_a_million_rows():
    stored = json.loads(Path("results/precision.json").read_text())
    last = stored["points"][-1]
    assert last["rows"] == 10**6
    assert max(last["relative_error"]) < 1e-13


def test_every_sign_vector_through_the_public_call(monkeypatch):
    "The mean over all signs, with the probes put in where the random ones are drawn."
    phi = structured(5, 4)
    values = []

    class Fixed(np.random.Generator):
        def choice(self, options, size):
            return np.transpose([self.signs, self.signs])

    for signs in itertools.product((-1.0, 1.0), repeat=4):
        rng = Fixed(np.random.PCG64(0))
        rng.signs = signs
        est = sketched(
            phi, 3, rank=1, n_probes=2, n_permutations=0, stderr=False, random_state=rng
        )
        values.append(est.values)
    np.testing.assert_allclose(np.mean(values, axis=0), increasing(phi, 3), rtol=1e-10)
