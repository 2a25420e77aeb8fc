"""What no reader of the chapter on the inner loop needs to see."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spectral_moments.engine.inner_loop import increasing_sums

ORDERS = (1, 2, 5, 11)  # each length is compiled once


def plain_state(enter, leave, starts, n_max):
    """The streaming recurrence in numpy, shape (n_max, Q, lanes)."""
    R = np.zeros((n_max, enter.shape[1], starts.shape[1]))
    for a in range(len(enter)):
        c = np.zeros((n_max + 1, starts.shape[1]))
        c[0] = starts[a]
        for b in range(enter.shape[1]):
            r = R[:, b].copy()
            R[:, b] += c[:-1] * leave[a, b]
            c[1:] += r * enter[a, b]
    return R


def plain_sums(enter, leave, n_max):
    """Sums over increasing cycles by the recurrence in numpy."""
    R = plain_state(enter, leave, np.eye(len(enter)), n_max)
    return np.einsum("kbh,hb->k", R, enter)


def matrices(shape, seed, single):
    """Positive entries: no cancellation, so that a relative tolerance is meant."""
    enter, leave = np.random.default_rng(seed).random((2, *shape))
    return enter, enter if single else leave


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    P=st.integers(1, 20),
    Q=st.integers(1, 20),
    seed=st.integers(0, 1000),
    single=st.booleans(),
    n_jobs=st.integers(1, 3),
    data=st.data(),
)
def test_sums_and_influences(P, Q, seed, single, n_jobs, data):
    n_max = data.draw(st.sampled_from([n for n in ORDERS if n <= min(P, Q)]))
    enter, leave = matrices((P, Q), seed, single)
    expected = plain_sums(enter, leave, n_max)
    sums = increasing_sums(enter, leave, n_max, n_jobs=n_jobs)
    np.testing.assert_allclose(sums.total, expected, rtol=1e-12)
    assert sums.rows is None and sums.columns is None
    total, rows, columns = increasing_sums(
        enter, leave, n_max, influences=True, n_jobs=n_jobs
    )
    np.testing.assert_allclose(total, expected, rtol=1e-12)
    assert rows.shape == (n_max, P) and columns.shape == (n_max, Q)
    atol = 1e-9 * expected
    for axis, through in enumerate((rows, columns)):
        np.testing.assert_allclose(
            through.sum(axis=1), np.arange(1, n_max + 1) * expected, rtol=1e-9
        )
        i = seed % through.shape[1]
        without = [np.delete(x, i, axis) for x in (enter, leave)]
        assert (abs(plain_sums(*without, n_max) + through[:, i] - expected) <= atol).all()


def test_more_columns_than_marks():
    """The way back with blocks wider than the cache would have them."""
    phi = np.random.default_rng(2).random((6, 900))
    total, rows, columns = increasing_sums(phi, phi, 5, influences=True)
    np.testing.assert_allclose(total, plain_sums(phi, phi, 5), rtol=1e-12)
    np.testing.assert_allclose(columns.sum(axis=1), np.arange(1, 6) * total, rtol=1e-11)
    expected = total - increasing_sums(*[np.delete(phi, 3, 0)] * 2, 5).total
    np.testing.assert_allclose(rows[:, 3], expected, rtol=1e-11)


def test_any_layout_is_read():
    phi = np.random.default_rng(3).random((20, 30))
    wide = np.zeros((40, 90))
    wide[::2, ::3] = phi
    read_only = phi.copy()
    read_only.flags.writeable = False
    expected = increasing_sums(phi, phi, 5, influences=True)
    for given_phi in (np.asfortranarray(phi), wide[::2, ::3], read_only):
        for x, y in zip(
            increasing_sums(given_phi, given_phi, 5, influences=True), expected, strict=True
        ):
            np.testing.assert_array_equal(x, y)
