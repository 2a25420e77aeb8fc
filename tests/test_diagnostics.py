"""The twelve notes: data that deserve each of them, data that do not, and clean data."""

import re
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import normal

import spectral_moments as sm
from spectral_moments import diagnostics, errors
from spectral_moments.engine.average import typical_sizes
from spectral_moments.engine.data import open_data
from spectral_moments.errors import Replicates
from spectral_moments.processes import RBF, Linear, PowerLaw

CLEAN = Linear(20).sample(200, 64, random_state=1)


def notes(phi, n_max=2, **options):
    return sm.estimate(phi, n_max, **options).notes


@pytest.mark.parametrize("process", [Linear(20), RBF(3, kernel_cov=0.25), PowerLaw(1.0)])
def test_clean_data_carry_no_note(process):
    "At most one of fifty draws, and then an uncertain moment."
    noted = 0
    for seed in range(25):
        for shape in ((60, 80), (100, 75)):
            noted += bool(notes(process.sample(*shape, random_state=seed)))
    assert noted <= 1


# --- 1: uncertain moments -----------------------------------------------------------------


def test_uncertain_moments():
    est = sm.estimate(Linear(20).sample(60, 80, random_state=0), 4)
    share = est.stderr[3] / est.values[3]
    assert share > 0.5 > est.stderr[2] / est.values[2]
    sentence = f"m(4) is uncertain (standard error {share:.0%} of its value): "
    assert est.notes == [sentence + "do not interpret it."]
    weak = sm.estimate(Linear(400).sample(30, 30, random_state=3), 3)
    assert weak.values[2] < 0 and "m(3) is not distinguishable from zero." in weak.notes
    many = notes(CLEAN[:60], 5, center=False)
    assert len(many) == 1 and many[0].startswith("m(3), m(4), m(5) are uncertain (")
    assert not notes(CLEAN, 2)


def test_too_few_rows_for_an_error():
    found = notes(normal((4, 30), 1), 4, center=False)
    unknown = "Too few rows or columns for a standard error at m(4); use a smaller n_max, "
    assert unknown + "or measure more." in found
    assert not any("Too few rows" in note for note in notes(CLEAN, 3))


def test_a_whole_layer_of_few_features():
    "The ball in ten coordinates: the dimension has no upper end unless these are all."
    ball = normal((100, 10), 5)
    hint = 'If these 10 features are all there are, pass population="all".'
    found = sm.estimate(ball).dimension()
    assert found.notes[0].startswith("m(2) is ") and found.notes[1:] == [hint]
    assert sm.estimate(ball, population="all").dimension().notes == []
    clean = sm.estimate(CLEAN[:, :10] @ np.diag([9.0] + [1.0] * 9))
    assert hint not in clean.dimension().notes and hint in str(sm.estimate(ball))


# --- 2: consecutive rows ------------------------------------------------------------------

ROWS = (
    "Consecutive rows are correlated. If they belong together (a movie, a document), "
    "give them the same label in groups=; otherwise dimension, errors and p-values are too "
    "small, alignments too large. Inputs that were only sorted are independent."
)


@pytest.mark.parametrize("seed", range(3))
def test_consecutive_rows(seed):
    movies = np.repeat(CLEAN[:50], 4, axis=0) + 0.5 * normal((200, 64), seed)
    assert notes(movies) == [ROWS]
    assert notes(movies, groups=np.repeat(np.arange(50), 4)) == []
    shuffled = movies[np.random.default_rng(seed).permutation(200)]
    assert ROWS not in notes(shuffled)
    advice = "neighbouring electrodes), give them the same label in column_groups="
    assert any("Consecutive columns" in x and advice in x for x in notes(movies.T))
    stream = sm.Stream(64).update(movies).estimate()  # rows in any order
    assert ROWS not in stream.notes


# --- 3: copies ----------------------------------------------------------------------------


def test_duplicates():
    copied = np.vstack([CLEAN, CLEAN[:7]])
    (note,) = notes(copied)
    assert note == (
        "7 of 207 rows are duplicates (200, 201, 202, 203, 204, ...). Remove them, or "
        "label them in groups=."
    )
    assert notes(copied, groups=np.arange(207) % 200) == []
    (note,) = notes(CLEAN[:, [*range(64), 3, 11]])
    assert note.startswith("2 of 66 columns are duplicates (64, 65). Remove them, or label")


@pytest.mark.parametrize("seed", range(3))
def test_rows_that_are_alike_by_themselves(seed):
    "Blank inputs, dead units, counts, sparse codes and few dimensions."
    rng = np.random.default_rng([61, seed])
    blank = Linear(8).sample(60, 50, rng)
    blank[rng.random(60) < 0.3] = 0.0
    dead = np.maximum(Linear(8).sample(60, 50, rng), 0)
    dead[:, :5] = 0.2
    counts = rng.poisson(np.exp(normal((300, 2), seed) @ normal((2, 200), 9) - 3)) * 1.0
    codes = rng.standard_normal((300, 30)) * (rng.random((300, 30)) < 0.04)
    line = Linear(1).sample(300, 40, rng)
    for x in (blank, dead, counts, counts > 0, codes @ normal((30, 60)), line):
        x = np.asarray(x, dtype=float)
        for side in (x, x.T):
            assert not len(diagnostics.find_duplicates(side))


# --- 4: units that dominate ---------------------------------------------------------------


@pytest.mark.parametrize("gain", [20.0, 2000.0])
def test_one_massive_feature(gain):
    phi = CLEAN * np.where(np.arange(64) == 11, gain, 1.0)
    assert any("1 of 64 features (11) causes 9" in x for x in notes(phi))
    (note,) = notes(phi, population="all")
    assert note.startswith("1 of 64 features (11) has ") and note.endswith("check it.")
    assert notes(CLEAN, population="all") == []


def test_influential_units():
    even = normal((2, 200))
    assert diagnostics.influential_units(Replicates(even)) == []
    even[1, [5, 9]] = 100, 60
    (note,) = diagnostics.influential_units(Replicates(even), "features")
    assert note.startswith("2 of 200 features (5, 9) cause 9")
    assert note.endswith("% of the feature error: check them.")
    (note,) = diagnostics.influential_units(Replicates(even[:, :20]), "groups of inputs")
    assert "20 groups of inputs (5, 9)" in note and "input error" in note
    for some in (np.full((1, 60), np.nan), np.zeros((2, 60)), even[:, :15]):
        assert diagnostics.influential_units(Replicates(some)) == []


# --- 5: axes, 6: missing entries, 7: repeats ----------------------------------------------


def test_axes_in_another_order():
    shifted = CLEAN + 20 * np.random.default_rng(0).standard_normal(64)
    offset = "Nearly all variance is one common offset per row. Are the rows inputs? "
    assert offset + "Otherwise pass phi.T." in notes(shifted.T) and notes(shifted) == []
    trials = CLEAN[:90, :30] + normal((3, 90, 30))
    assert notes(trials, trials=True) == []
    for moved, sizes in [
        (np.moveaxis(trials, 0, 2), "90 repeats of 30 inputs x 3 features"),
        ((CLEAN + normal((5, 200, 64))).T, "64 repeats of 200 inputs x 5 features"),
    ]:  # as Matlab stores neurons x inputs x repeats
        (first, *_) = notes(moved, trials=True)
        assert first.startswith(f"{sizes}: are the axes repeats, inputs, features")


def test_missing_entries():
    gaps = CLEAN.copy()
    gaps[:, :16] = np.nan
    assert notes(gaps) == ["16 of 64 columns have no entry: remove them."]
    scattered = np.where(np.random.default_rng(0).random((200, 64)) < 0.1, np.nan, CLEAN)
    assert notes(scattered) == []
    pairs = np.full((12, 12), np.nan)
    np.fill_diagonal(pairs, 1.0 + np.arange(12))
    found = notes(pairs, 2, center=False)
    few = "Too few fully observed cycles for m(2); use a smaller n_max, or drop"
    assert found[0].startswith(few)


def test_random_samples_of_rows():
    "Of a sample of the rows the remedy is a larger one, and more draws if there are any."
    numbers = dict(values=np.ones(1), stderr=np.full(1, 0.1))
    data = SimpleNamespace(matrices={"phi": None}, with_noise_law=False)
    draws = errors.normal_replicates(np.full((1, 1), 0.08**2))
    scaled = SimpleNamespace(**numbers, replicates={"draws": draws})
    known = dict(values=np.ones(1), words=[("phi",) * 3], scaled=scaled)
    known["orders"], lost = np.array([3]), np.zeros(1, dtype=bool)
    for method, settings, remedies in [
        ("blocks of rows", {"sampled": {"orders": [3, 4]}}, ["sample"]),
        ("all cycles", {"sampled": {"orders": [3, 4]}}, ["sample"]),
        ("increasing", {"sampled": {"orders": [3]}}, ["sample and n_permutations"]),
        ("blocks of rows", {"sampled": None}, []),  # all rows were used
        ("increasing (10 permutations)", {"sampled": None}, ["n_permutations"]),
    ]:
        found = SimpleNamespace(**known, methods=[method], settings=settings)
        problems = diagnostics._moment_notes(data, found, lost)
        assert [x.split("raise ")[1].rstrip(".") for x in problems] == remedies


def test_repeats():
    trials = CLEAN + normal((3, 200, 64))
    assert notes(trials, trials=True) == []
    copied = trials[[0, 1, 0]]
    assert notes(copied, trials=True) == ["1 of 3 repeats are copies (2): remove them."]
    gains = trials * np.array([1.0, 1.1, 3.0])[:, None, None]
    (note,) = notes(gains, trials=True)
    assert note == "Repeat 2 is 3 times larger than repeat 0: normalise the repeats."


# --- 8: the mean, 9: numbers, 10: draws, 11: noise ----------------------------------------


def test_the_mean_was_kept():
    (note,) = notes(CLEAN + 20, center=False)
    assert re.fullmatch(
        r"The mean response is 9.% of m\(1\); center=True removes it.", note
    )
    assert notes(CLEAN + 20) == notes(CLEAN, center=False) == []


def test_numbers():
    equal = ["All entries are equal: is it the right matrix?"]
    equal += ["m(1), m(2) are not distinguishable from zero."]
    for constant in (np.ones((20, 20)), np.zeros((20, 20)), np.full((2, 20, 20), 3.3)):
        assert notes(constant, trials=True if constant.ndim == 3 else None) == equal
    assert sm.participation_ratio(np.full((30, 20), 3.3)).notes == equal
    assert equal[0] not in notes(np.where(np.eye(20) > 0, 2.0, 1.0))
    far = sm.estimate(CLEAN * 1e100, 3)
    beyond = "m(2), m(3) beyond the range of doubles: divide phi by a constant."
    assert beyond in far.notes
    assert not np.isnan(far.dimension().value)
    spike = CLEAN[:60].copy()
    spike[3, 4] = 1e6
    digits = "lost all digits to entries far larger than the others: "
    lost = sm.estimate(spike, 4, method="all_cycles")
    assert any(digits + "repair them" in x for x in lost.notes)
    assert np.isnan(lost.values[-1])
    replaced = sm.estimate(spike, 4)
    assert any(digits + "increasing cycles were used instead." in x for x in replaced.notes)
    assert np.isfinite(replaced.values).all() and not replaced.usable[1:].any()
    assert not any("digits" in x for x in notes(CLEAN, 4))
    rare = np.zeros((20, 5))  # no cycle of order 2, and most rows are blank
    rare[::10, 0] = 1.0
    assert not any("digits" in x for x in notes(rare, center=False))
    rare[::10, 1] = 1e20, 1.0
    assert any("digits" in x for x in notes(rare, center=False))
    assert typical_sizes(open_data({"phi": 0 * rare}), [("phi",)]) == 0
    binary = (np.random.default_rng(3).random((9, 3)) < 0.8) * 1.0
    assert not any("digits" in x for x in notes(binary))
    twice = normal((2, 20, 5))
    twice[1, 2, 1] = 1e308  # divided by it, products of the others are zero
    far = sm.estimate(twice, trials=True, stderr=False)
    assert np.isnan(far.values).all() and "beyond the range" in far.notes[-1]


def test_random_draws():
    few, many = (notes(CLEAN[:60], 5, n_permutations=count) for count in (2, 100))
    assert any("random draws are a third of the error" in note for note in few)
    assert not any("random draws" in note for note in many)
    with np.errstate(all="raise"):  # no number is divided by an error of zero
        sm.estimate(np.zeros((12, 11)), 6, center=False)


def test_counts_of_a_single_trial():
    rng = np.random.default_rng(2)
    counts = rng.poisson(np.exp(0.2 * CLEAN / CLEAN.std())).astype(float)
    hint = "Single trial of whole numbers: if they are counts, "
    hint += 'noise="poisson" removes their noise.'
    assert hint in notes(counts) and hint not in notes(counts, noise="poisson")
    for others in (counts / 3, rng.integers(0, 255, (90, 50))):
        assert hint not in notes(others)
    twice = rng.poisson(np.exp(0.2 * CLEAN / CLEAN.std()), (2, 200, 64)).astype(float)
    assert hint not in notes(twice, trials=True)
    (wrong,) = notes(np.round(20 + 0.5 * normal((80, 60))).clip(0), 1, noise="poisson")
    assert (
        wrong == "m(1) below zero by more than two errors: the law of the noise is wrong."
    )


# --- 12: pairs of systems -----------------------------------------------------------------


def test_systems_that_share_features():
    noisy = CLEAN + 2 * normal(CLEAN.shape)
    alike = "Columns of phi and psi with the same number are alike. If they are the same "
    assert any(x.startswith(alike) for x in sm.alignment(CLEAN, noisy).notes)
    for options in (dict(shared_features=True), dict(population="all")):
        assert not any(alike in x for x in sm.alignment(CLEAN, noisy, **options).notes)
    other = Linear(20).sample(200, 64, random_state=9)
    assert not sm.alignment(CLEAN, other).notes


# --- all of them --------------------------------------------------------------------------


def test_notes_are_no_warnings_and_are_said_once():
    phi = np.vstack([CLEAN[:20], CLEAN[:5]]) + 30
    phi[2, 3] = np.nan
    before = np.geterr()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = notes(phi, 3, center=False)
        sm.estimate(CLEAN * 1e-150, 2), sm.estimate(np.stack([CLEAN] * 2), trials=True)
    assert np.geterr() == before
    assert len(found) == len({*found}) > 1 and all(note.endswith(".") for note in found)


@pytest.mark.parametrize("size", [1e3, 1e5, 1e8, 1e12])
def test_outliers_of_every_size(size):
    "One saturated entry: every order is right, or uncertain and named."
    phi = np.random.default_rng(3).integers(-3, 4, (40, 30)) + 0.5
    phi[1, 2] = size
    found = sm.estimate(phi, 4)
    named = " ".join(found.notes)
    assert all(good or f"m({n})" in named for n, good in zip(found.orders, found.usable))
    assert not found.usable[1:].any()


def test_large_data_are_looked_at_by_a_sample():
    "Of a memory map, 512 rows: duplicates and correlated rows are found all the same."
    walk = np.cumsum(normal((9000, 6)), axis=0)
    assert any("Consecutive rows" in x for x in notes(walk))
    tall = np.vstack([normal((3000, 40), 1)] * 2)
    assert any("3000 of 6000 rows are duplicates" in x for x in notes(tall))


def test_every_moment_without_a_value_is_named():
    "Tiny matrices, constant, with gaps, in any units: no warning escapes either."
    for seed in range(100):
        rng = np.random.default_rng(seed)
        (P, Q), n_max = rng.integers(2, 5, 2), int(rng.integers(1, 4))
        phi = rng.standard_normal((P, Q)) * 10.0 ** rng.integers(-200, 200)
        constant = [phi[:, :1], phi[:1], phi[:1, :1], phi][seed % 4]
        gaps = rng.random((P, Q)) < 0.8 * rng.random()
        phi = np.where(gaps, np.nan, np.broadcast_to(constant, (P, Q)))
        options = dict(center=seed % 3 > 0, population=[None, "all"][seed % 5 // 4])
        options["groups"] = rng.integers(0, 3, P) if seed % 7 == 0 else None
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                est = sm.estimate(phi, n_max, **options)
            except sm.ArgumentError:  # too small
                continue
            str(est), est[1].expected_stderr(9, 9), est[1].p_value(1.0)
        for n in est.orders[np.isnan(est.values)]:
            assert any(f"m({n})" in note for note in est.notes), (seed, est.notes)


def test_labels_of_frames_instead_of_movies():
    movies = np.repeat(CLEAN[:50], 4, axis=0) + 0.5 * normal((200, 64), 0)
    for frames in (np.arange(200), np.tile(np.arange(4), 50), np.tile(np.arange(40), 5)):
        found = notes(movies, groups=frames)
        assert "Consecutive rows of different groups are correlated" in str(found)
    assert notes(movies, groups=np.arange(200) // 4) == []


def test_inputs_of_very_different_strength():
    "Log-normal gains: most matrices would look certain if no strong row is in them."
    rng, noted = np.random.default_rng(3), 0
    for seed in range(20):
        gains = np.exp(0.8 * rng.standard_normal((60, 1)))
        phi = gains * Linear(20).sample(60, 80, random_state=seed)
        named = "differ widely in squared size", "of the input error"
        noted += any(text in note for note in notes(phi) for text in named)
    assert noted == 20
    assert not notes(np.random.default_rng(1).gamma(4, size=(60, 1)) ** 0.5 * CLEAN[:60])
