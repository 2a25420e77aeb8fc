"""Every argument is used as it is meant, or refused by name."""

import logging
import pickle
import time

import numpy as np
import pandas as pd
import pytest

from spectral_moments import checks
from spectral_moments.checks import ArgumentError


def refusal(call, *args, **kwargs):
    "The error that a call raises."
    with pytest.raises(ArgumentError) as caught:
        call(*args, **kwargs)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400
    return caught.value


def test_the_error_carries_the_name_of_the_argument():
    error = refusal(checks.check_order, 25, (20, 30))
    assert str(error) == "n_max = 25 needs 25 rows and columns; phi is 20 x 30"
    assert error.argument == "n_max"
    assert isinstance(error, ValueError) and isinstance(error, TypeError)
    again = pickle.loads(pickle.dumps(error))  # from a worker of a cluster
    assert (again.argument, str(again)) == ("n_max", str(error))
    assert len(str(ArgumentError("x", "many words " * 1000))) < 400


def test_counts():
    assert checks.check_count(np.int8(3), "k") == 3
    for wrong in (2.0, "3", None, True, np.arange(3), [1]):
        assert "k must be a whole number" in str(refusal(checks.check_count, wrong, "k"))
    assert "at least 1" in str(refusal(checks.check_count, 0, "k"))
    assert "at most 4" in str(refusal(checks.check_count, 5, "k", most=4))


def test_flags_levels_and_numbers():
    assert checks.check_flag(np.True_, "center") is True
    assert "True or False, not 1" in str(refusal(checks.check_flag, 1, "center"))
    assert checks.check_level(0.9) == 0.9
    for wrong in (0, 1, 95, np.nan, [0.9], "high"):
        assert refusal(checks.check_level, wrong).argument == "level"
    assert checks.check_positive(2, "scale", "m(1)") == 2.0
    for wrong in (0, -1, np.inf, np.nan, [1.0], "one", None):
        assert refusal(checks.check_positive, wrong, "scale", "m(1)").argument == "scale"
    assert checks.check_number(np.float32(-2), "angle") == -2.0
    for wrong in (np.nan, [1.0], "one", b"x", None):
        assert refusal(checks.check_number, wrong, "angle").argument == "angle"
    assert checks.check_numbers([1, 2], "values").dtype == float
    for wrong in (["a"], np.ones(2) * 1j, 10**400, [[1], [2, 3]]):
        assert "must be real numbers" in str(refusal(checks.check_numbers, wrong, "K"))


def test_random_state_and_cores():
    one, same = checks.check_random_state(3), checks.check_random_state(np.int64(3))
    assert one.integers(1 << 30) == same.integers(1 << 30)
    generator = np.random.default_rng(0)
    assert checks.check_random_state(generator) is generator
    assert checks.check_random_state().random() != checks.check_random_state().random()
    for wrong in (-1, "seed", 1.5):
        assert refusal(checks.check_random_state, wrong).argument == "random_state"
    assert checks.available_cores() >= 1


def test_labels():
    assert checks.check_labels(None, 3, "groups") is None
    for labels in (["b", "a", "b"], [7, 2, 7], pd.Categorical(["y", "x", "y"])):
        assert checks.check_labels(labels, 3, "groups").tolist() == [1, 0, 1]
    for wrong in ([1, 2], [[1], [2, 3]]):
        error = refusal(checks.check_labels, wrong, 3, "column_groups")
        assert "must hold 3 labels, one for each column (feature)" in str(error)
    na = pd.Series([1, 2, None], dtype="Int64")
    for missing in ([1.0, 2.0, np.nan], ["a", "b", None], na):
        error = refusal(checks.check_labels, missing, 3, "groups")
        assert "1 missing labels (the first at 2)" in str(error)


def test_population():
    assert checks.check_population(None, 20) is None
    assert checks.check_population("all", 20) == 20
    assert checks.check_population(np.int64(64), 20) == 64
    for wrong in (10**400, "ALL", 19, 64.0, {}, (100, 64), (1, 2, 3), True, np.nan):
        error = refusal(checks.check_population, wrong, 20)
        assert "the number of all features, at least the 20 measured" in str(error)
        assert error.argument == "population"


def test_options():
    def alike(phi, *, shared=False, center=True, **options):
        checks.check_options(alike, options, ("center", "groups"))

    alike(1, groups=2)
    for wrong, meant in (("centre", "center"), ("group", "groups"), ("shred", "shared")):
        error = refusal(alike, 1, **{wrong: True})
        assert str(error) == f"alike() has no option {wrong!r}; did you mean {meant!r}?"
        assert error.argument == wrong
    assert str(refusal(alike, 1, xyz=1)).endswith("'xyz'; use phi, shared, center, groups")


def test_progress_tells_how_long(caplog):
    for progress in (checks.Progress(0.02), checks.Progress(15.0), checks.Progress()):
        progress.total = 40
        for _ in range(5):
            time.sleep(0.03)
            progress.update(2)
    assert len(caplog.messages) == 5  # of the first
    assert caplog.messages[-1].startswith("10 of 40 steps, about")
    assert caplog.records[0].levelno == logging.WARNING


def test_texts(capsys):
    assert checks.printable("a\x1b]0;b\x07 ± é\n") == "a?]0;b? ± é\n"
    checks.show_error(checks.check_count, 0, "k")
    assert capsys.readouterr().out.startswith("ArgumentError: k = 0 is too small")
