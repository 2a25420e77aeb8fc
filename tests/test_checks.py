"""Every option is used as it is meant, or refused by name."""

import pickle

import numpy as np
import pytest

from spectral_moments.checks import (
    ArgumentError,
    check_count,
    check_flag,
    check_n_jobs,
    check_order,
    check_random_state,
)


def test_the_error_carries_the_name_of_the_argument():
    with pytest.raises(ArgumentError, match="^n_max = 0 is too small") as caught:
        check_order(0, (3, 5))
    assert caught.value.argument == "n_max"
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, TypeError)
    again = pickle.loads(pickle.dumps(caught.value))  # from a worker of a cluster
    assert (again.argument, str(again)) == ("n_max", str(caught.value))


@pytest.mark.parametrize(
    ("n_max", "message"),
    [
        (0, "n_max = 0 is too small"),
        (-1, "at least 1"),
        (2.0, "n_max must be a whole number"),
        (np.float64(2), "whole number"),
        (True, "whole number"),
        ("2", "whole number"),
        (None, "whole number"),
        (4, r"exceeds min\(P, Q\) = 3.*3 x 5.*lower n_max"),
    ],
)
def test_orders_refused(n_max, message):
    with pytest.raises(ArgumentError, match=message):
        check_order(n_max, (3, 5))


def test_orders():
    assert check_order(3, (3, 5)) == 3
    assert type(check_order(np.uint8(2), (7, 3, 5))) is int


def test_random_state():
    assert check_random_state(3).integers(1 << 30) == check_random_state(
        np.int64(3)
    ).integers(1 << 30)
    generator = np.random.default_rng(0)
    assert check_random_state(generator) is generator
    assert check_random_state().random() != check_random_state().random()
    with pytest.raises(ArgumentError, match="random_state = -1"):
        check_random_state(-1)
    with pytest.raises(ArgumentError, match="random_state must be"):
        check_random_state("seed")
    with pytest.raises(
        ArgumentError, match="None, an int or a numpy Generator, not a RandomS"
    ):
        check_random_state(np.random.RandomState(1))


def test_counts():
    assert check_count(0, "k", least=0) == 0
    assert check_n_jobs(2) == 2
    assert check_n_jobs() >= 1
    with pytest.raises(ArgumentError, match="n_jobs = 0"):
        check_n_jobs(0)
    with pytest.raises(ArgumentError, match="n_jobs must be a whole number"):
        check_n_jobs("all")


def test_flag():
    assert check_flag(np.False_, "x") is False
    for bad in ("True", 1, None, np.array([True])):
        with pytest.raises(ArgumentError, match="x must be True or False"):
            check_flag(bad, "x")
