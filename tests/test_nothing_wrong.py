"""What version 0.1 got wrong without a word: each of these failed there."""

import copy
import functools
import math
import warnings

import numpy as np
import pytest
from conftest import rational

import spectral_moments as sm
from spectral_moments import EstimateWarning, Linear, Stream, all_cycles, increasing
from spectral_moments.engine.graphs import cycle, graph_terms
from spectral_moments.engine.planner import graph_sums

pytestmark = pytest.mark.filterwarnings("ignore::spectral_moments.results.EstimateWarning")
estimate = functools.partial(sm.estimate, center=False)  # as in version 0.1


def noted(result, words):
    return any(words in note for note in result.notes)


# -------------------------------------------------------------- one saturated entry
def exact(phi, n_max):
    "Means over all cycles in rational arithmetic."
    whole, found = {"phi": rational(phi)}, []
    for n in range(1, n_max + 1):
        graphs, weights = zip(*graph_terms(cycle(n)))
        total = sum(w * t for w, t in zip(weights, graph_sums(graphs, whole).totals))
        found.append(float(total / math.prod(math.perm(size, n) for size in phi.shape)))
    return found


def right_or_told(result, truth, rtol=1e-6):
    "Every order agrees with the truth, or is named and not usable."
    for n, (value, good) in enumerate(zip(truth, result.usable), 1):
        near = np.isclose(result.values[n - 1], value, rtol=rtol)
        named = any(f"m({n})" in note for note in result.notes)
        assert near or (named and not good), (n, result.values[n - 1], value)


def test_one_saturated_entry():
    phi = Linear(5).sample(60, 80, random_state=0)
    clean = all_cycles(phi, 5)
    phi[3, 4] = 9999
    result = estimate(phi, 5, random_state=0)
    assert not result.usable.any() and noted(result, "lose their digits")
    assert (abs(result.values[2:] - clean[2:]) < 4 * result.stderr[2:]).all()
    alone = estimate(phi, 5, method="all_cycles")
    assert np.isnan(alone.values[4]) and not alone.usable[4]
    assert noted(alone, "use method='auto' or 'increasing', or repair")
    with pytest.warns(EstimateWarning, match="lose their digits"):
        assert np.isnan(all_cycles(phi, 5)[4])
    assert not noted(estimate(Linear(5).sample(60, 80, random_state=0), 5), "digits")


def test_one_saturated_entry_centred():
    phi = Linear(5).sample(12, 9, random_state=0)
    phi[2, 3] = 1e6
    for method in ("auto", "all_cycles", "increasing", "blocks"):
        result = estimate(phi, 3, center=True, method=method, random_state=0)
        assert not result.usable.any()
        assert all(any(f"m({n})" in note for note in result.notes) for n in (1, 2, 3))
    found = sm.participation_ratio(phi, center=True)
    assert np.isnan(found.value) or not found.stderr < abs(found.value)


@pytest.mark.parametrize("size", [1e3, 1e5, 1e8, 1e12])
@pytest.mark.parametrize("shape", [(8, 7), (40, 30)])  # extended precision, and doubles
def test_outliers_of_every_size(size, shape):
    phi = np.random.default_rng(3).integers(-3, 4, shape).astype(float)
    phi[1, 2] = size
    if shape == (8, 7):
        truth = exact(phi, 3)
        right_or_told(estimate(phi, 3, method="all_cycles"), truth)
    result = estimate(phi, 4, random_state=0)
    assert not result.usable[1:].any() or not noted(result, "digits")


# ------------------------------------------------------ the order of rows and columns
def tuning_curves():
    "Inputs and features sorted by preference, as figures show them."
    rng = np.random.default_rng(0)
    x, c = np.sort(rng.random(50)), np.sort(rng.random(60))
    return np.exp(-((x[:, None] - c) ** 2) / 0.02)


@pytest.mark.parametrize("method", ["auto", "increasing", "blocks", "sketched"])
def test_sorted_rows_and_columns_do_no_harm(method):
    phi = tuning_curves()
    truth = all_cycles(phi, 5)
    result = estimate(phi, 5, method=method, n_permutations=20, random_state=0)
    assert (abs(result.values / truth - 1)[2:] < [0.05, 0.15, 0.3]).all()
    given = estimate(phi, 5, method="increasing", n_permutations=0).values
    np.testing.assert_allclose(given, increasing(phi, 5), rtol=1e-12)
    assert (abs(given / truth - 1)[2:] > [0.05, 0.15, 0.3]).all()  # negative control


def test_sorted_rows_in_a_stream():
    phi = tuning_curves()
    truth = all_cycles(phi, 3)
    found = Stream(60, 3, center=False).update(phi[:25]).update(phi[25:]).estimate().values
    np.testing.assert_allclose(found, truth, rtol=1e-9)  # in whatever order


# ------------------------------------------------------------------------- trials


def test_three_axes_are_trials_and_said_so():
    batch = np.random.default_rng(0).standard_normal((4, 20, 30))
    assert "4 trials" in str(estimate(batch, 2)).splitlines()[0]
    with pytest.raises(ValueError, match="4 x 20 x 30, and trials=False; reshape"):
        estimate(batch, 2, trials=False)
    assert estimate(batch[0], 2, trials=False).shape == (1, 20, 30)
    assert estimate(batch[:1], 2, trials=False).shape == (1, 20, 30)
    import torch

    with pytest.raises(ValueError, match="trials=False"):
        estimate(torch.from_numpy(batch), 2, trials=False)


# ----------------------------------------------------------- masks, copies, underflow
def test_masks_are_never_lost():
    phi = Linear(3).sample(20, 15, random_state=0)
    hidden = np.ma.masked_array(phi, phi > 1)
    expected = estimate(hidden.filled(np.nan), 2).values
    for given in (hidden, list(hidden), [list(row) for row in hidden], hidden[None]):
        np.testing.assert_array_equal(estimate(given, 2).values, expected)
    assert abs(expected / estimate(phi, 2).values - 1).max() > 0.05
    twice = estimate([hidden, hidden + 1], 2, trials=True).values
    filled = hidden.filled(np.nan)
    expected = estimate(np.stack([filled, filled + 1]), 2).values
    np.testing.assert_array_equal(twice, expected)


def test_copy_of_a_stream_is_a_copy():
    phi = Linear(3).sample(40, 6, random_state=0)
    stream = Stream(6, 2).update(phi[:20])
    before = stream.estimate(stderr=False).values
    copy.copy(stream).update(phi[20:])
    np.testing.assert_array_equal(stream.estimate(stderr=False).values, before)


@pytest.mark.parametrize("method", ["auto", "increasing", "blocks", "all_cycles"])
@pytest.mark.parametrize("large", [1e60, 1e100, 1e-60])
def test_underflow_is_told(method, large):
    phi = np.ones((4, 4))
    phi[1, 2] = large
    truth = exact(phi, 4)
    with np.errstate(all="raise", under="ignore"):
        result = estimate(phi, 4, method=method, random_state=0)
    for n, value in enumerate(truth, 1):
        found = result.values[n - 1]
        told = any(f"n = {n}" in x or f", {n}" in x for x in result.notes)
        apart = method in ("increasing", "blocks") or result.methods[n - 1] == "increasing"
        near = np.isclose(found, value, rtol=1e-6) or (apart and n > 2 and found != 0)
        assert near or (np.isnan(found) and told and not result.usable[n - 1])
    assert not (result.stderr == 0)[np.isfinite(result.values)].any()


def test_zeros_that_are_zero():
    "No underflow is suspected where there is none."
    for phi in (np.zeros((5, 5)), np.eye(6), 1e-100 * np.eye(6)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = increasing(phi, 3)
        np.testing.assert_array_equal(found[1:], 0)


def test_sizes_that_doubles_cannot_hold_are_refused():
    phi = abs(np.random.default_rng(7).standard_normal((6, 7)))
    phi *= np.array([1e-290, 1e290, 1e-290, 1e290, 1, 1])[:, None]
    for call in (lambda: estimate(phi, 3), lambda: increasing(phi, 5)):
        with pytest.raises(ValueError, match="sizes differ by more than doubles can hold"):
            call()


# ------------------------------------------------------------------------ warnings
def test_only_our_warnings_and_nothing_else_changes():
    phi = Linear(3).sample(30, 20, random_state=0)
    gaps = np.where(np.eye(30, 20) > 0, np.nan, phi)
    before, filters = np.geterr(), list(warnings.filters)
    as_tensor = pytest.importorskip("torch").from_numpy
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for given in (phi, gaps, np.stack([phi, gaps]), phi * 1e-150, phi + 50):
            for center in (False, True):
                estimate(given, 2, center=center, random_state=0)
        for function in (increasing, all_cycles, lambda x, n: all_cycles(as_tensor(x), n)):
            function(phi * 1e-150, 4)
    assert {w.category for w in caught} <= {EstimateWarning}
    assert all(w.filename == __file__ for w in caught)
    assert np.geterr() == before and warnings.filters == filters


# ------------------------------------------------------------- bounds in the wrong order
def test_bounds_of_no_spectrum():
    with pytest.raises(ValueError, match="no spectrum has these moments.*feasible"):
        sm.operator_norm([1, 0.5, 9])
    low, high = sm.operator_norm([1, 0.5, 0.3])
    assert low < high


# ------------------------------------------------- found by hostile calls, then mended
def test_small_weights_are_not_gaps():
    rng = np.random.default_rng(2)
    x, w = rng.standard_normal((12, 8)), np.full(12, 1.0)
    w[1:] = 1e-9
    est = estimate(x, 2, method="all_cycles", row_weights=w, stderr=False)
    K = (x @ x.T) ** 2 - (x**2) @ (x**2).T  # different columns
    pairs = np.outer(w, w) * (1 - np.eye(12))
    expected = (pairs * K).sum() / pairs.sum() / (8 * 7)
    np.testing.assert_allclose(est.values[1], expected, rtol=1e-4)


def test_tensors_with_gradients_in_a_list():
    torch = pytest.importorskip("torch")
    x = torch.randn(5, 4, requires_grad=True)
    with pytest.raises((TypeError, ValueError), match="phi.*(pass|must)"):
        estimate([x, x], 2, trials=True)
