"""A slice of the hostile calls of hostile.py; `make hostile` runs all of them."""

import contextlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import hostile
from conftest import RESULTS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs limits of Linux")


@pytest.mark.parametrize(
    ("which", "first", "count"),
    [("data", 0, 100), ("files", 0, 120), ("surroundings", 0, 2)],
)
def test_slice(which, first, count):
    found = hostile.run(which, first, count)
    assert found["failures"] == {}
    assert sum(found["counts"].values()) == count
    assert set(found["counts"]) <= set(hostile.GOOD)
    stored = json.loads((RESULTS / "hostile.json").read_text())
    if which == "data":
        assert found["first"] == stored["first_draws"][which]


@pytest.mark.parametrize("seed", [3402, 4659, 9571])
def test_once_failed(seed, tmp_path):
    "Calls that were silently wrong, or failed without help, before they were mended."
    for _ in range(2):  # what is imported now need not be later
        with contextlib.suppress(hostile.Failed):
            hostile.data_call(seed, tmp_path)
    assert hostile.data_call(seed, tmp_path) in hostile.GOOD


@pytest.mark.filterwarnings("ignore::spectral_moments.results.EstimateWarning")
@pytest.mark.parametrize("trials", [1, 2])
def test_a_verdict_where_only_what_gaps_change_is_drawn(trials):
    import spectral_moments as sm

    rng = np.random.default_rng(0)
    phi = 3 * rng.standard_normal((trials, 10, 8)) + 1
    phi[rng.random(phi.shape) < 0.06] = np.nan
    with hostile.Watch() as watch:
        found = sm.estimate(phi, 4, trials=True)
    truth = watch.truth(found.methods[3], 4, "numpy")
    assert found.values[3] == pytest.approx(float(truth), rel=1e-9)


@pytest.mark.filterwarnings("ignore::spectral_moments.results.EstimateWarning")
def test_harness_notices():
    "Each promise, broken on purpose."
    import warnings

    import spectral_moments as sm

    phi = np.arange(12.0).reshape(3, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sm.estimate(phi, 2, center=False)  # what is imported now need not be later
    guarded = lambda call: hostile.guarded(call, phi, "numpy", 1.0)
    assert guarded(lambda: sm.estimate(phi, 2, center=False)) in hostile.GOOD

    def foreign():
        warnings.warn("x", RuntimeWarning, stacklevel=1)

    def changes():
        phi[0, 0] += 1

    def useless():
        raise ValueError("no")

    def crash():
        raise ZeroDivisionError

    def twice():
        warnings.warn("x", sm.EstimateWarning, stacklevel=1)
        return sm.estimate(phi, 2, center=False)

    with hostile.Watch() as watch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sm.estimate(phi, 2, center=False, stderr=False)
    values = sm.all_cycles(phi, 2) * [1, 1.01]
    parts = (values, ["all_cycles"] * 2, np.ones(2, dtype=bool), [])
    for call, message in (
        (foreign, "RuntimeWarning"),
        (changes, "input was changed"),
        (lambda: np.seterr(all="ignore"), "surroundings were changed"),
        (lambda: warnings.simplefilter("ignore"), "filters were changed"),
        (useless, "does not help"),
        (crash, "ZeroDivisionError"),
        (twice, "said twice"),
    ):
        before = np.geterr()
        with pytest.raises(hostile.Failed, match=message):
            guarded(call)
        np.seterr(**before)
    with pytest.raises(hostile.Failed, match=r"m\(2\) = .* exactly"):
        hostile.check_values(*parts, watch, "numpy", 0.0)
    parts = (np.array([np.nan]), ["all_cycles"], [False], [])
    with pytest.raises(hostile.Failed, match="NaN without a word"):
        hostile.check_values(*parts, watch, "numpy", 0.0)


def test_exact_arithmetic():
    from spectral_moments import all_cycles, increasing, kong_valiant, naive

    rng = np.random.default_rng(0)
    phi = rng.standard_normal((6, 5))
    gaps = np.where(rng.random(phi.shape) < 0.1, np.nan, phi)
    for given in (phi, gaps):
        for function in (all_cycles, increasing, naive, kong_valiant):
            with hostile.Watch() as watch:
                values = function(given, 3)
            (name,) = {seen[0] for seen in watch.seen}
            truth = [float(watch.truth(name, n, "numpy")) for n in (1, 2, 3)]
            np.testing.assert_allclose(values, truth, rtol=1e-10)


DEADLY = {"os.kill(os.getpid(), 11)": "signal 11", "signal.pause()": "time-out"}
DEADLY["[0] * 10**10"] = "MemoryError"


def test_children_may_die(monkeypatch, tmp_path):
    "A crash, an endless loop and too much memory are outcomes of one call."
    script = tmp_path / "hostile.py"
    text = Path(hostile.__file__).read_text()
    change = "    sound = files_call.sound\n"
    assert text.count(change) == 1
    deaths = (f"    if seed == {k}:\n        {x}\n" for k, x in enumerate(DEADLY, 1))
    text = text.replace(change, "".join(deaths) + change)
    text = text.replace("SECONDS = 60", "SECONDS = 3")
    here = f"parents[0] and Path({str(hostile.ROOT)!r})"
    script.write_text(text.replace("parents[1]", here))
    monkeypatch.setattr(hostile, "__file__", str(script))
    found = hostile.run("files", 0, 5)
    assert found["counts"]["failed"] == 3 and [*found["failures"]] == ["1", "2", "3"]
    for said, why in zip(found["failures"].values(), DEADLY.values()):
        assert why in said


def test_every_refusal_is_one_sentence(tmp_path):
    "Whatever is passed for an argument: an answer, or a line that names it."
    for seed in range(200):
        hostile.option_call(seed, tmp_path)


@pytest.mark.parametrize("place", hostile.PLACES)
def test_doors_and_options(place, tmp_path):
    "Each door with each option: the sum over all tuples, or a refusal in a sentence."
    stored = json.loads((RESULTS / "doors.json").read_text())["doors"]
    found = hostile.product(tmp_path, pairs=False, places=[place])
    for asked, row in found.items():
        assert row[place] in hostile.CELLS, asked
        assert row[place] == "equal" or stored[asked][place] != "equal", asked
    assert {row[place] for row in stored.values()} <= set(hostile.CELLS)


@pytest.mark.filterwarnings("ignore::spectral_moments.results.EstimateWarning")
def test_a_sketch_never_drops_groups(tmp_path, monkeypatch):
    "Found by the product of doors: files, and whatever was over the budget."
    import spectral_moments as sm
    from spectral_moments.engine import choice

    both = ("groups", "column groups")
    for place in ("file", "shards", "Dask"):
        assert hostile.try_cell(place, both, tmp_path) == "equal"
    small = hostile.Small(both)
    for name in ("LEAST", "MOST"):
        monkeypatch.setattr(choice, name, 1)
    found = sm.estimate(small.systems["a"], 2, **small.options("phi"))
    np.testing.assert_allclose(found.values, hostile.powers(small), rtol=1e-9)


def test_stored_table():
    stored = json.loads((RESULTS / "hostile.json").read_text())
    assert stored["calls"] >= 1000 and not any(stored["failures"].values())
    total = sum(sum(counts.values()) for counts in stored["outcomes"].values())
    assert total == stored["calls"]
