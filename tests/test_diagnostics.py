"""Every doubt: when it is raised, what it names, and when it is not."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectral_moments import Linear, Stream, estimate
from spectral_moments.diagnostics import data_notes, dominant_units, moment_notes, rare_note
from spectral_moments.engine.reduction import Axis
from spectral_moments.engine.sources import open_source
from spectral_moments.engine.systems import Side
from spectral_moments.errors import usable

NORMAL = np.random.default_rng(17).standard_normal((60, 40))


def about(x, center=False, **options):
    return " ".join(data_notes(open_source(x), center=center, **options))


def test_data_notes():
    assert "mean over inputs" in about(NORMAL + 3) and about(NORMAL + 3, center=True) == ""
    assert "constant" in about(np.ones((5, 5)))
    walk = np.cumsum(np.random.default_rng(18).standard_normal((200, 10)), axis=0)
    assert "neighbouring rows" in about(walk, center=True)
    together = Side(groups=np.arange(200) // 20)
    assert about(walk, center=True, ordered=False) == about(walk, True, rows=together) == ""
    assert "all trials are the same" in about(np.stack([NORMAL, NORMAL]))


def test_rows_and_trials_are_named():
    copied = np.vstack([NORMAL, NORMAL[:7]])
    note = about(copied)
    assert "7 of 67 rows are exact copies of others (rows 60, 61, 62, 63, 64, ...)" in note
    assert about(copied, rows=Side(groups=np.arange(67) % 60)) == ""
    assert about(copied, rows=Side(population=67)) == ""  # these are all there are
    copied[3] = np.nan  # not seen at all, and not counted
    assert "(rows 60, 61, 62, 64, 65, ...)" in about(copied)
    noise = np.random.default_rng(19).standard_normal((3, 60, 40))
    gains = NORMAL * np.array([2.0, 1.0, 4.0])[:, None, None] + noise
    assert "trial 2 is 2.94 times as large as trial 1" in about(gains)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_columns_are_checked_as_rows_are(seed):
    rng = np.random.default_rng([60, seed])
    inputs, weights = rng.standard_normal((70, 5)), rng.standard_normal((5, 90))
    for k in range(1, 90):  # neighbouring electrodes, correlation 0.9
        weights[:, k] = 0.9 * weights[:, k - 1] + np.sqrt(0.19) * weights[:, k]
    electrodes = inputs @ weights
    assert "neighbouring columns are more alike" in about(electrodes)
    shuffled = electrodes[:, rng.permutation(90)]
    for known in (Side(groups=np.arange(90) // 9), Side(population=90)):
        assert about(electrodes, columns=known) == about(shuffled, columns=known) == ""
    plain = Linear(7).sample(50, 40, rng)
    copied = plain[:, [*range(40), 3, 11]]
    assert "2 of 42 columns are exact copies of others (columns 40, 41)" in about(copied)
    assert about(copied[:, :40]) == about(copied, columns=Side(population=42)) == ""
    for axis, what in enumerate(("rows", "columns")):
        again = np.take(plain, range(15), axis)
        again = again + 0.01 * np.std(plain) * rng.standard_normal(again.shape)
        size = plain.shape[axis]
        note = about(np.concatenate([plain, again], axis))
        assert f"30 of {size + 15} {what} are nearly copies of others ({what} 0 and" in note
        assert f"0 and {size}, 1 and {size + 1}, " in note


@pytest.mark.parametrize("T", [3, 4])
def test_a_trial_that_came_twice(T):
    trials = NORMAL + 2 * np.random.default_rng(T).standard_normal((T, 60, 40))
    trials[:, 5] = np.nan
    assert about(trials) == ""
    trials[T - 1] = trials[1]
    assert about(
        trials
    ) == f"trial {T - 1} is a copy of trial 1, whose noise it brings " + ("back: drop it")


@pytest.mark.parametrize("seed", range(4))
def test_no_false_doubts(seed):
    """Blank inputs, dead units, counts, sparse codes and few dimensions come out alike."""
    rng = np.random.default_rng([61, seed])
    blank = Linear(8).sample(60, 50, rng)
    blank[rng.random(60) < 0.3] = 0.0
    dead = np.maximum(Linear(8).sample(60, 50, rng), 0)
    dead[:, :5] = 0.2
    rates = np.exp(rng.standard_normal((300, 2)) @ rng.standard_normal((2, 200)) - 3)
    counts = rng.poisson(rates).astype(float)
    codes = rng.standard_normal((300, 30)) * (rng.random((300, 30)) < 0.04)
    sparse = codes @ rng.standard_normal((30, 60))
    line = Linear(1).sample(300, 40, rng)
    for x in (blank, dead, counts, 1.0 * (counts > 0), sparse, line):
        assert about(x, center=True) == ""


def test_copies_far_apart_in_a_large_matrix():
    x = Linear(9).sample(1500, 30, random_state=4)
    assert "1500 of 3000 rows are exact copies" in about(np.vstack([x, x]))
    near = x + 0.01 * np.random.default_rng(5).standard_normal(x.shape)
    assert "rows are nearly copies" in about(np.vstack([x, near]))


def test_dominant_units():
    rng = np.random.default_rng(6)
    even = rng.standard_normal((2, 200))
    assert dominant_units(Axis(even)) is None
    even[1, 5] = 100
    note = dominant_units(Axis(even), "inputs")
    assert note.startswith("3 of 200 inputs carry 9") and "(numbers 5, " in note
    many = np.r_[rng.standard_normal(990), rng.standard_normal(10) * 100][None]
    note = dominant_units(Axis(many), "features")
    assert "10 of 1000 features" in note and ", ...)" in note
    for size in (1e-200, 1e200):  # no square leaves the range
        assert dominant_units(Axis(size * even)) is not None
    assert dominant_units(Axis(even[:, :7])) is None  # too few to tell
    note = dominant_units(Axis(even[:, :20]))
    assert note.startswith("2 of 20 inputs carry 9") and "(numbers 5, " in note
    assert dominant_units(Axis(rng.standard_normal((2, 20)))) is None
    assert dominant_units(Axis(even, np.full(200, 9.0))) is None  # a sample of them
    assert dominant_units(Axis(np.full((1, 60), np.nan))) is None
    assert dominant_units(Axis(np.zeros((2, 60)))) is None


def test_what_is_known_is_not_doubted():
    """All columns are there: none can be missing, however much one of them carries."""
    phi = Linear(4).sample(60, 80, random_state=1)
    phi[:, 7] *= 8
    notes = lambda **options: estimate(phi, 2, **options).notes
    carried = lambda **options: [x for x in notes(**options) if "features carry" in x]
    assert "(numbers 7," in carried()[0]
    assert carried(population=(None, 80)) == []


@pytest.mark.parametrize("gain", [20.0, 200.0, 2000.0])
@pytest.mark.parametrize("shape", [(24, 30), (50, 70)])
def test_one_neuron_far_larger_than_the_others(shape, gain):
    phi = Linear(6).sample(*shape, random_state=8)
    phi[:, 11] *= gain
    notes = estimate(phi, 3).notes
    assert any("features carry" in x and "(numbers 11" in x for x in notes)


def test_kinds_that_may_be_missing():
    """The strong inputs, one in twenty, are in none of these thirty."""
    for seed in (4, 5, 6):
        phi = Linear(5).sample(30, 90, random_state=seed)
        (note,) = [x for x in estimate(phi, 3).notes if "may be missing" in x]
        assert note.startswith("m(1), m(2)") and "of 30 inputs" in note
        assert "one in 10" in note
        finite = estimate(phi, 3, population=(30, None)).notes
        assert not any("of 30 inputs" in x for x in finite)
    assert rare_note({"inputs": 160, "features": 160}, np.array([1, 2, 3, 4])) == []
    assert rare_note({"inputs": 20}, np.array([], dtype=int)) == []
    (note,) = rare_note({"inputs": 90, "features": 119}, np.array([1, 2, 3]))
    assert note.startswith("m(3): of 90 inputs and 119 features, a kind that makes up less")


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_errors_that_are_too_large(seed):
    rng = np.random.default_rng([62, seed])
    x, w = rng.standard_normal((2, 150, 4))
    x, w = (y / np.linalg.norm(y, axis=1, keepdims=True) for y in (x, w))
    tuning = np.exp(3 * x @ w.T)  # curves of one shape, on a sphere
    note = "hardly more than by chance"
    assert any(note in y for y in estimate(tuning, 2).notes)
    uneven = tuning * np.exp(0.5 * rng.standard_normal((150, 1)))
    for phi in (uneven, uneven.T, Linear(6).sample(80, 100, rng)):
        assert not any(note in y for y in estimate(phi, 2).notes)


LABELS = [f"m({n})" for n in range(1, 9)]


def test_moment_notes():
    values, errors = [1.0, 0.5, -0.3, 0.1, np.nan], [0.1, 0.25, 0.1, 0.2, 0.1]
    notes = moment_notes(LABELS[:5], values, errors, usable(values, errors))
    assert [note.split(":")[0] for note in notes] == [
        "m(5)",
        "m(3) = -0.3",
        "relative standard errors not below one half (m(2)",
    ]
    assert moment_notes(LABELS[:1], [1.0], [0.1], [True]) == []
    values, errors = [1.0, 0.5, 0.3], [0.1, 0.4, 0.01]
    notes = moment_notes(LABELS[:3], values, errors, usable(values, errors))
    assert notes[1] == "m(3): not usable, because a lower order is not"


@given(st.lists(st.tuples(st.floats(-2, 2), st.floats(0, 2)), min_size=1, max_size=7))
def test_every_unusable_order_is_named_once(pairs):
    values, errors = np.array(pairs).T
    good = usable(values, errors)
    said = " ".join(moment_notes(LABELS[: len(values)], values, errors, good))
    assert [said.count(label) for label in LABELS[: len(good)]] == (~good * 1).tolist()


@pytest.mark.parametrize("result", ["estimate", "stream"])
def test_a_doubt_is_said_once(result):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if result == "estimate":
            found = estimate(NORMAL[:12] + 9, 4, center=False)
        else:
            stream = Stream(40, 3, center=False)
            stream.update(NORMAL[:12] + 9)
            found = stream.estimate()
    assert any("mean over inputs" in note for note in found.notes)
    assert len(found.notes) == len(set(found.notes))


def test_weights_that_are_far_from_even():
    phi = Linear(4).sample(80, 50, random_state=3)
    rng = np.random.default_rng(63)
    said = lambda w: [x for x in estimate(phi, 2, row_weights=w).notes if "weight" in x]
    assert said(np.ones(80)) == said(rng.uniform(0.9, 1.1, 80)) == []
    (note,) = said(rng.uniform(0.2, 1.8, 80))
    assert note.startswith("the weights leave the worth of") and "too low" not in note
    far = np.exp(1.5 * rng.standard_normal(80))
    (note,) = said(far)
    assert "come out too low" in note and f"(numbers {far.argmax()}, " in note


def test_draws_of_what_has_no_error():
    "Nothing but zeros through random orders: no number is divided by an error of zero."
    with np.errstate(all="raise"):
        est = estimate(np.zeros((12, 11)), 6, center=False)
    assert "draws" in est.axes and not est.stderr.any()


def test_axes_in_another_order():
    "A matrix the wrong way round, trials as the last axis, columns that hold nothing."
    phi = Linear(20).sample(200, 40, random_state=0)
    shifted = phi + 2 * np.arange(40)
    assert "If they are features, pass the transpose" in about(shifted.T, center=True)
    assert about(shifted, center=True) == ""
    trials = phi[:90, :30] + np.random.default_rng(1).standard_normal((3, 90, 30))
    question = "90 trials of 30 inputs x 3 features: are the axes of phi trials"
    assert any(x.startswith(question) for x in estimate(np.moveaxis(trials, 0, 2), 2).notes)
    assert not any("are the axes" in note for note in estimate(trials, 2).notes)
    phi[:, :10] = np.nan
    assert "10 of 40 columns have no entry" in about(phi, center=True)


def test_what_a_sample_of_columns_does_not_say():
    "Rows with entries in a few of many columns are not said to be empty."
    x = np.full((300, 3000), np.nan)
    x[:, ::3] = Linear(20).sample(300, 1000, random_state=0)
    x[:120, 4:] = np.nan
    x[:120, :4] = 1.0
    assert "no entry" not in about(x, center=True)
