"""Every option is used as it is meant, or refused by name."""

import pickle

import numpy as np
import pytest

from spectral_moments.checks import ArgumentError, check_order, check_random_state


def test_the_error_carries_the_name_of_the_argument():
    with pytest.raises(ArgumentError, match="^n_max = 0 is too small") as caught:
        check_order(0, (3, 5))
    assert caught.value.argument == "n_max"
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, TypeError)
    again = pickle.loads(pickle.dumps(caught.value))  # from a worker of a cluster
    assert (again.argument, str(again)) == ("n_max", str(caught.value))


def test_random_state():
    one, same = check_random_state(3), check_random_state(np.int64(3))
    assert one.integers(1 << 30) == same.integers(1 << 30)
    generator = np.random.default_rng(0)
    assert check_random_state(generator) is generator
    assert check_random_state().random() != check_random_state().random()
    for wrong, words in [
        (-1, "random_state = -1"),
        ("seed", "random_state must be None, an int or a numpy Generator, not a str"),
        (np.random.RandomState(1), "a numpy Generator, not a RandomState"),
    ]:
        with pytest.raises(ArgumentError, match=words):
            check_random_state(wrong)
