"""Streams: batches, merges, files, interruptions; what no reader of the chapter needs."""

import copy
import io
import json
import os
import pickle
import re
import subprocess
import sys
import threading
import warnings
import zipfile

import numpy as np
import pytest
from conftest import ROOT, peak_memory
from hypothesis import given, settings
from hypothesis import strategies as st

import spectral_moments as sm
from spectral_moments import Stream, estimate
from spectral_moments.engine import stream as module


def structured(P, Q, seed=0):
    return sm.Linear(4).sample(P, Q, random_state=seed) + 0.5


def values(stream):
    return stream.estimate(stderr=False).values


RNG = np.random.default_rng(0)
PHI = structured(400, 8)
TRIALS = PHI + RNG.standard_normal((2, 400, 8))
GAPS = np.where(RNG.random(PHI.shape) < 0.1, np.nan, PHI)
GROUPS = np.repeat(np.arange(100), 4)


@pytest.fixture(autouse=True)
def no_deletions(monkeypatch):
    "Errors by the derivative, as a stream has them."
    monkeypatch.setattr("spectral_moments.engine.choice.LITERAL", 0)


@pytest.fixture
def few(monkeypatch):
    "So few rows are kept that the sums have to tell."
    monkeypatch.setattr(module, "SAMPLE", 160)
    monkeypatch.setattr(module, "LARGEST", 16)


@pytest.mark.parametrize("population", [None, (None, 24)])
def test_numbers_from_long_streams(few, population):
    "What is derived from sums does not move with the rows that happen to be kept."
    x = structured(3000, 24, seed=1)
    whole = estimate(x, 2, population=population).dimension()
    for seed in range(5):
        stream = Stream(24, 2, population=population, random_state=seed).update(x)
        found = stream.estimate().dimension()
        assert abs(found.value - whole.value) < 0.1 * whole.stderr
        assert found.stderr == pytest.approx(whole.stderr, rel=0.4)


def test_alignments_from_long_streams(few):
    "The same for two systems."
    both = structured(3000, 24, seed=2)
    systems = {"a": both[:, :14], "b": both[:, 10:] ** 2}
    known = dict(population=(None, {"a": 14, "b": 14}))
    whole = sm.alignments(systems, **known)["a", "b"]
    for seed in range(5):
        stream = sm.AlignmentStream(random_state=seed, **known).update(systems)
        found = stream.estimate()["a", "b"]
        assert abs(found.value - whole.value) < 0.1 * whole.stderr


WEIGHTS = RNG.random(400) + 0.5
COUNTS = RNG.poisson(np.exp(PHI / 6)).astype(float)
COLUMNS = [0, 0, 1, 2, 3, 4, 5, 6]
FINITE = dict(population=(None, 20))

CASES = {  # data, options of update, options of the stream
    "plain": (PHI, {}, {}),
    "trials": (TRIALS, {}, {}),
    "three trials": (np.concatenate([TRIALS, TRIALS[:1] + 1]), {}, {}),
    "gaps": (GAPS, {}, {}),
    "groups": (PHI, dict(groups=GROUPS), {}),
    "population": (PHI, {}, FINITE),
    "both populations": (PHI, {}, dict(population=(1000, 20))),
    "trials, groups, population": (TRIALS, dict(groups=GROUPS), FINITE),
    "row weights": (PHI, dict(row_weights=WEIGHTS), {}),
    "column weights": (PHI, {}, dict(column_weights=WEIGHTS[:8])),
    "column groups": (PHI, {}, dict(column_groups=COLUMNS)),
    "counts": (COUNTS, {}, dict(noise="poisson")),
    "binomial": (np.minimum(COUNTS, 9), {}, dict(noise=("binomial", 9))),
    "variance": (PHI, {}, dict(noise=WEIGHTS[:8], **FINITE)),
}


def streams(data, rows, count, n_max, **options):
    "Some streams with batches of eight rows between them, in random order."
    found = [Stream(8, n_max, **options) for _ in range(count)]
    for k in np.random.default_rng(0).permutation(50):
        part = slice(8 * k, 8 * k + 8)
        mine = {name: x[part] for name, x in rows.items()}
        found[k % count].update(data[..., part, :], **mine)
    return found


def highest(rows, options, data, center):
    "The highest order of a stream with these options."
    named = " ".join([*rows, *options])
    less = np.isnan(data).any() or "weights" in named or "groups" in named
    return 2 if center and less else 3


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_all_cycles_in_any_order_and_merge(case, center, kept, request):
    if not kept:
        request.getfixturevalue("few")
    data, rows, options = CASES[case]
    n_max = highest(rows, options, data, center)
    about = dict(center=center, **options)
    expected = estimate(data, n_max, method="all_cycles", **rows, **about)
    one, two, three = streams(data, rows, 3, n_max, **about)
    found = one.merge(two.merge(three)).estimate()
    exact = n_max if kept or not center else min(n_max, 2)
    np.testing.assert_allclose(found.values[:exact], expected.values[:exact], rtol=1e-10)
    drawn = found.parts.get("kept rows", np.zeros(n_max))
    rounding = 1e-9 * abs(expected.values)
    assert (abs(found.values - expected.values) <= 4 * drawn + rounding).all()
    assert [*found.parts] == [*expected.parts] or not kept
    if kept and "groups" not in rows:
        np.testing.assert_allclose(found.stderr, expected.stderr, rtol=1e-9)
        return
    near = dict(inputs=0.5, features=0.1, trials=0.5)  # so few are kept
    for kind in expected.parts:
        for n, parts in enumerate(zip(found.parts[kind], expected.parts[kind]), 1):
            far = 3 if n == 3 and kind == "features" else 1  # a third of all rows
            np.testing.assert_allclose(*parts, rtol=far * near[kind], atol=1e-12)
    assert found.shapes["phi"] == expected.shapes["phi"]


@given(
    cuts=st.lists(st.integers(0, 60), max_size=5),
    join=st.integers(0, 6),
    center=st.booleans(),
)
@settings(max_examples=25, deadline=None)
def test_batches_and_merges(cuts, join, center):
    parts = np.split(PHI[:60], sorted(cuts))
    made = [Stream(8, center=center), Stream(8, center=center)]
    for k, part in enumerate(parts):
        made[k >= join].update(part)
    whole = Stream(8, center=center).update(PHI[:60])
    merged = made[0].merge(made[1])
    assert merged.n_rows == 60
    np.testing.assert_allclose(values(merged), values(whole), rtol=1e-10)


def test_kept_rows_do_not_depend_on_the_batches(few):
    one, two = Stream(8), Stream(8).update(PHI)
    for batch in np.split(PHI, [3, 50, 51, 200]):
        one.update(batch)
    np.testing.assert_array_equal(one._state.kept["phi"], two._state.kept["phi"])
    other = Stream(8, random_state=1).update(PHI)
    assert not np.array_equal(other._state.kept["phi"], two._state.kept["phi"])


def test_kept_rows_are_a_uniform_sample(few):
    "Also of rows that are all alike."
    for rows in (np.ones((4000, 3)), np.random.default_rng(1).standard_normal((4000, 3))):
        keys = module._keys(rows[None], 0, 0)
        assert len(set(keys)) == 4000
        counts = np.histogram(keys, bins=20, range=(0, 1))[0]
        assert ((counts - 200) ** 2 / 200).sum() < 50


def test_largest_rows_are_kept(few):
    phi = structured(2000, 8)
    phi[77] *= 30
    state = Stream(8, center=False).update(phi)._state
    assert (state.kept["phi"][0] == phi[77]).all(1).any()
    place = np.flatnonzero((state.kept["phi"][0] == phi[77]).all(1))[0]
    assert state.weights[place] == 1 and abs(state.weights.sum() - 2000) < 1e-9


def test_errors_do_not_depend_on_the_mean(few):
    expected = Stream(8).update(PHI).estimate()
    for shift in (1, 30):
        found = Stream(8).update(PHI + shift).estimate()
        np.testing.assert_allclose(
            found.parts["features"], expected.parts["features"], rtol=0.3
        )
        np.testing.assert_allclose(
            found.parts["inputs"], expected.parts["inputs"], rtol=0.3
        )
    groups = np.arange(400)
    notes = Stream(8, 2).update(PHI + 30, groups=groups).estimate().notes
    assert any("far from the origin" in note for note in notes)


def test_origin_keeps_digits(few):
    "Columns whose means are a million times their spread."
    phi = PHI + 1e6
    expected = values(Stream(8).update(PHI))
    lost = Stream(8).update(phi).estimate(stderr=False)
    assert np.isnan(lost.values[1]) and any("rounding" in note for note in lost.notes)
    kept = Stream(8, origin=module.origin_of(phi[:20])).update(phi)
    np.testing.assert_allclose(values(kept)[:2], expected[:2], rtol=1e-8)
    with pytest.raises(ValueError, match="origin must be 8 finite numbers"):
        Stream(8, origin=[1.0])
    with pytest.raises(ValueError, match="(?s)origin is .* here and .* in other"):
        kept.merge(Stream(8))


@pytest.mark.parametrize("power", [-400, -40, 40, 400])
def test_any_scale(few, power):
    expected, stream = values(Stream(8, 2).update(PHI)), Stream(8, 2)
    for batch in np.split(np.ldexp(PHI, power), 4):
        stream.update(batch)
    count = 1 if abs(power) > 200 else 2  # what doubles can hold
    expected = np.ldexp(expected[:count], 2 * power * np.arange(1, 3)[:count])
    np.testing.assert_allclose(values(stream)[:count], expected, rtol=1e-9)


def test_batches_of_different_scales(few):
    scale = np.repeat(2.0 ** np.arange(-20, 20, 10), 100)[:, None]
    phi = PHI * scale
    stream = Stream(8, 2, center=False)
    for batch in np.split(phi, 8):
        stream.update(batch)
    expected = estimate(phi, 2, center=False, method="all_cycles", stderr=False).values
    np.testing.assert_allclose(values(stream), expected, rtol=1e-10)


def test_what_is_refused():
    for n_max in (4, 9):
        with pytest.raises(ValueError, match="orders up to 3"):
            Stream(8, n_max)
    with pytest.raises(ValueError, match="than it has features"):
        Stream(2, 3)
    with pytest.raises(ValueError, match="entries and the stream has 8 features"):
        Stream(8).update(np.ones((4, 7)))
    with pytest.raises(ValueError, match="infinite"):
        Stream(8).update(np.full((4, 8), np.inf))
    with pytest.raises(ValueError, match="orders up to 2.*n_max=2"):
        Stream(8).update(GAPS)
    with pytest.raises(ValueError, match="orders up to 2.*n_max=2"):
        Stream(8).update(PHI, groups=GROUPS)
    with pytest.raises(ValueError, match="and the first batch"):
        Stream(8).update(PHI).update(TRIALS)
    with pytest.raises(ValueError, match="all batches have groups or none"):
        Stream(8, 2).update(PHI).update(PHI, groups=GROUPS)
    with pytest.raises(ValueError, match="those before had none"):
        Stream(8, 2).update(PHI).update(GAPS)
    with pytest.raises(ValueError, match="0 distinct rows"):
        Stream(8).estimate()
    with pytest.raises(ValueError, match="5 distinct rows.*needs 6"):
        Stream(8).update(PHI[:5]).estimate()
    with pytest.raises(ValueError, match="not a Stream"):
        Stream(8).merge(PHI)
    with pytest.raises(ValueError, match="n_max is 3 here and 2 in other"):
        Stream(8).merge(Stream(8, 2))
    with pytest.raises(ValueError, match="trials, features, groups"):
        Stream(8).update(PHI).merge(Stream(8).update(TRIALS))


def test_rows_of_all_kinds():
    frame = pytest.importorskip("pandas").DataFrame(PHI)
    stream = Stream(8).update(frame.iloc[0]).update(PHI[1:3].tolist()).update(PHI[:0])
    stream.update([]).update(PHI[3:].astype("f4").astype(float))
    assert stream.n_rows == 400 and "400 rows x 8 features" in repr(stream)
    torch = pytest.importorskip("torch")
    other = Stream(8).update(torch.tensor(PHI))
    np.testing.assert_allclose(values(stream), values(other), rtol=1e-5)


def test_interrupted_update_leaves_the_stream(monkeypatch):
    stream = Stream(8).update(PHI[:100])
    before = values(stream)

    def fail(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "_added", fail)
        with pytest.raises(KeyboardInterrupt):
            stream.update(PHI[100:])
    assert stream.n_rows == 100
    np.testing.assert_array_equal(values(stream), before)
    np.testing.assert_array_equal(values(stream.update(PHI[100:]))[:2], values(whole())[:2])


def whole():
    return Stream(8).update(PHI[:100]).update(PHI[100:])


def test_copies_are_independent():
    stream = Stream(8).update(PHI[:100])
    for other in (
        copy.copy(stream),
        copy.deepcopy(stream),
        pickle.loads(pickle.dumps(stream)),
    ):
        other.update(PHI[100:])
        assert stream.n_rows == 100 and other.n_rows == 400
        np.testing.assert_array_equal(values(other), values(whole()))


def test_empty_streams_merge():
    stream, empty = Stream(8).update(PHI), Stream(8)
    for both in (stream.merge(empty), empty.merge(stream)):
        np.testing.assert_array_equal(values(both), values(stream))
    assert empty.merge(empty).n_rows == 0


@pytest.mark.parametrize(
    ("T", "n_max", "matrices", "splits"),
    [(1, 2, 1, 1), (1, 3, 4, 1), (2, 3, 16, 1), (3, 2, 3, 3)],
)
def test_memory_of_a_stream(T, n_max, matrices, splits):
    "The formula of the docstring, for the state; and what an update takes beside."
    Q = 64
    stream, rows = Stream(Q, n_max), np.random.default_rng(2).standard_normal((T, 2000, Q))
    stream.update(rows[0] if T == 1 else rows)
    state = stream._state
    held = sum(
        np.asarray(x).nbytes for x in (*state.sums, *state.kept.values(), state.keys)
    )
    assert held <= 8 * ((matrices * Q**2 + 30 * Q) * splits + 1152 * T * Q)
    assert sum(len(g.legs) == 2 for g in stream._graphs(stream._kind)) == matrices * splits
    given = rows[0] if T == 1 else rows
    assert peak_memory(lambda: [stream.update(given) for _ in range(5)]) < 4e7 * T


def test_the_shell_loop_of_the_chapter(tmp_path):
    "Shards, a process each, and the sum of their streams."
    import re
    import subprocess
    import sys
    from pathlib import Path

    chapter = Path(__file__).parents[1] / "nbs" / "26_cluster.ipynb"
    cells = ["".join(cell["source"]) for cell in json.loads(chapter.read_text())["cells"]]
    (loop,) = re.findall("```bash\n(.*?)```", "\n".join(cells), flags=re.S)
    for k, part in enumerate(np.split(PHI, 4)):
        np.save(tmp_path / f"shard-{k}.npy", part)
    loop = loop.replace("python ", f"{sys.executable} ")
    done = subprocess.run(
        ["bash", "-c", loop], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(Stream(8, 2).update(PHI).estimate()).strip()


# ------------------------------------------------------------------------------- files
@pytest.mark.parametrize("case", CASES)
def test_saved_streams_go_on(few, tmp_path, case):
    data, rows, options = CASES[case]
    (stream,) = streams(data, rows, 1, 2, **options)
    stream.save(tmp_path / "s.npz")
    loaded = Stream.load(tmp_path / "s.npz")
    for one in (stream, loaded):
        one.update(data, **rows)
    found, expected = loaded.estimate(), stream.estimate()
    np.testing.assert_array_equal(found.values, expected.values)
    np.testing.assert_array_equal(found.stderr, expected.stderr)


def test_an_empty_stream_can_be_saved(tmp_path):
    Stream(8, 2, center=False).save(tmp_path / "s.npz")
    loaded = Stream.load(tmp_path / "s.npz")
    assert (loaded.n_rows, loaded.n_max, loaded.center) == (0, 2, False)


@pytest.fixture
def saved(tmp_path):
    "Path of a stored stream, and its arrays by name."
    path = tmp_path / "stream.npz"
    Stream(9).update(structured(40, 9)).save(path)
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
    with pytest.raises(FileNotFoundError):
        Stream.load(path.with_name("absent.npz"))
    with pytest.raises(IsADirectoryError):
        Stream.load(path.parent)


@pytest.mark.parametrize("number", [0, 1, 2, 3, 5, -1])
@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.astype("f4"),
        lambda x: x.astype(">f8"),
        lambda x: x.astype(complex),
        lambda x: np.ones(3)[None, None, None, None],
        lambda x: np.full(x.shape, np.inf),
        lambda x: x.astype(object),
        None,
    ],
)
def test_arrays_of_another_kind(saved, number, change):
    path, arrays = saved
    name = [name for name in arrays if name != "settings"][number]
    new = {} if change is None else {name: change(arrays[name])}
    np.savez(path, **{k: x for k, x in arrays.items() if k != name} | new)
    refused(path)


@pytest.mark.parametrize(
    "change",
    [
        dict(n_features=8),
        dict(n_features=10**9),
        dict(n_features="9"),
        dict(n_max=10**6),
        dict(n_max=0),
        dict(n_max=True),
        dict(center="no"),
        dict(population=3),
        dict(origin=[1]),
        dict(origin=[float("nan")] * 9),
        dict(random_state=-1),
        dict(kind=[[[2, 9]], False, False, False]),
        dict(kind=[[[1, 9]], True, False, False]),
        dict(kind=[[[1, 9]], 1, 1, 1]),
        dict(sizes=[]),
        dict(sizes=[[1, 5]]),
        dict(sizes=[[0, 40]]),
        dict(exponent=10**9),
        dict(exponent=None),
        dict(names=[]),
        dict(format="spectral_moments stream 3"),
    ],
)
def test_settings_of_another_kind(saved, change):
    path, arrays = saved
    told = json.loads(str(arrays["settings"])) | change
    np.savez(path, **arrays | {"settings": np.array(json.dumps(told))})
    refused(path)


def test_sizes_are_checked_before_memory_is_taken(saved):
    "A header that announces gigabytes, in a file of a few kilobytes."
    path, arrays = saved
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, dict(descr="<f8", fortran_order=False, shape=(1, 2**30, 9))
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, array in arrays.items():
            with file.open(f"{name}.npy", "w") as part:
                if name == "array_0":
                    part.write(header.getvalue() + bytes(1000))
                else:
                    np.lib.format.write_array(part, np.asarray(array))
    assert peak_memory(refused, path, "header promises") < 5e7


def test_interrupted_save_leaves_the_previous_file(tmp_path, monkeypatch):
    path = tmp_path / "stream.npz"
    stream = Stream(9).update(structured(40, 9))
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
    made = [Stream(9).update(structured(n, 9)) for n in (20, 50)]

    def work(stream):
        try:
            for _ in range(20):
                stream.save(path)
                assert Stream.load(path).n_rows in (20, 50)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(s,)) for s in made * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert [p.name for p in tmp_path.iterdir()] == ["stream.npz"]


def test_notes_of_a_stream():
    phi = structured(60, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # doubts are notes
        notes = Stream(8, 2).update(np.concatenate([phi, phi])).estimate().notes
        assert any("60 of 120 rows are exact copies" in note for note in notes)
        notes = Stream(8, 2, center=False).update(phi + 5).estimate().notes
    assert any("mean over inputs" in note for note in notes)


# ------------------------------------------------------------------------- other engines
def blocks_of_the_page():
    "The code in the section *Without Dask* of the chapter on clusters."
    cells = json.loads((ROOT / "nbs/26_cluster.ipynb").read_text())["cells"]
    text = next("".join(c["source"]) for c in cells if "## Without Dask" in c["source"][0])
    return re.findall(r"```(?:bash|python)\n(.*?)```", text, flags=re.DOTALL)


@pytest.mark.parametrize("engine", ["shell", "ray", "pyspark"])
def test_merged_by_another_engine(tmp_path, engine):
    "The page's own lines give the estimate of all rows."
    if engine != "shell":
        pytest.importorskip(engine)
    phi = sm.Linear(4).sample(1200, 9, random_state=0)
    paths = [str(tmp_path / f"shard-{k}.npy") for k in range(4)]
    for path, rows in zip(paths, np.split(phi, 4)):
        np.save(path, rows)
    code = dict(zip(("shell", "ray", "pyspark"), blocks_of_the_page()))[engine]
    if engine == "shell":
        command = ["bash", "-c", code.replace("python -c", f"{sys.executable} -c")]
    else:
        command = [sys.executable, "-c", f"paths = {paths}\n{code}"]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    here = os.environ | {"PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable}
    options = dict(cwd=tmp_path, env=here, capture_output=True, text=True, timeout=300)
    done = subprocess.run(command, **options)
    whole = sm.Stream(9, 2).update(phi).estimate()
    assert all(f"{value:.4g}" in done.stdout for value in whole.values), done.stderr


def test_groups_that_are_cut(tmp_path):
    "A label that recurs in the next batch is told, labels that never do are not."
    stream, whole = Stream(8, 2), Stream(8, 2)
    for start in range(0, 400, 50):  # some groups of four rows lie in two batches
        part = slice(start, start + 50)
        stream.update(PHI[part], groups=GROUPS[part])
    whole.update(PHI[:200], groups=GROUPS[:200]).update(PHI[200:], groups=GROUPS[200:])
    assert any("labels of groups recur" in note for note in stream.estimate().notes)
    assert not any("recur" in note for note in whole.estimate().notes)
    both = whole.merge(stream)
    assert any("labels of groups recur" in note for note in both.estimate().notes)
    for old, rows in ((stream, slice(0, 0)), (whole, slice(398, 400))):
        file = io.BytesIO()
        old.save(file)
        path = tmp_path / "stream.npz"
        path.write_bytes(file.getvalue())
        again = Stream.load(path).update(PHI[rows], groups=GROUPS[rows])
        assert any("labels of groups recur" in note for note in again.estimate().notes)
