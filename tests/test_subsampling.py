"""The check over submatrices: exact for means over cycles, at every order, and refusals."""

import math

import numpy as np
import pytest
from conftest import normal
from scipy.special import stdtr

import spectral_moments as sm
from spectral_moments.engine.sources import Recording
from spectral_moments.spectrum.submatrices import (
    parts_in_a_set,
    skewed_t_test,
    submatrices,
    two_halves,
)


def test_whole_is_the_estimate_of_the_whole():
    phi = normal((20, 15))
    check = sm.subsample_check(phi, 3, n_draws=2, center=False)
    np.testing.assert_allclose(check.whole["all_cycles"], sm.all_cycles(phi, 3), rtol=1e-12)
    np.testing.assert_allclose(check.whole["naive"], sm.naive(phi, 3), rtol=1e-12)
    trials = normal((2, 20, 15), 1)
    found = sm.subsample_check(trials, n_draws=2, center=False).whole
    np.testing.assert_allclose(found["all_cycles"], sm.all_cycles(trials, 2), rtol=1e-12)
    np.testing.assert_allclose(found["naive"], sm.naive(trials.mean(0), 2), rtol=1e-12)


def test_seed_decides():
    phi = normal((3, 30, 20))
    one, two, other = (
        sm.subsample_check(phi, n_draws=3, random_state=s) for s in (1, 1, 2)
    )
    assert str(one) == str(two) != str(other)


def test_defaults_and_words():
    check = sm.subsample_check(normal((100, 50)), n_draws=2, random_state=0)
    assert check.shapes == [(10, 5), (20, 10), (40, 20), (70, 35)]
    text = str(check)
    assert "Mean over 2 random submatrices" in text and "10 x 5" in text
    assert "Mean over all submatrices" in str(
        sm.subsample_check(normal((5, 3)), shapes=[(4, 2)], n_draws=None)
    )
    small = sm.subsample_check(normal((12, 6)), 3, n_draws=2)
    assert small.shapes == [(6, 3), (8, 4)]  # large enough, and each size once


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((normal((6, 5)), 2), dict(shapes=[(7, 5)]), "is not a part"),
        ((normal((6, 5)), 2), dict(shapes=[(4,)]), "is not a part"),
        ((normal((6, 5)), 2), dict(shapes=[(3, 3)]), "too small"),
        ((normal((6, 5)), 4), {}, "is not a part"),
        ((normal((40, 40)), 2), dict(shapes=[(20, 20)], n_draws=None), "pass n_draws"),
        ((normal((6, 5)), 2), dict(n_draws=1), "n_draws"),
        ((normal((6, 5)), 0), {}, "n_max"),
        ((np.full((6, 5), np.nan), 2), {}, "phi"),
        ((normal((2, 2, 6, 5)), 2), {}, "axes"),
        ((normal((6, 5)), 2), dict(center="yes"), "center"),
    ],
)
def test_refusals(arguments, options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        sm.subsample_check(*arguments, **options)


def test_parts():
    rng = np.random.default_rng(0)
    every = [(tuple(r), tuple(c)) for r, c in submatrices((5, 4), (3, 2), None, rng)]
    assert len(set(every)) == len(every) == math.comb(5, 3) * math.comb(4, 2)
    for rows, columns in submatrices((5, 4), (3, 2), 4, rng):
        assert len(set(rows)) == 3 and len(set(columns)) == 2
    assert parts_in_a_set((24, 30), (5, 6), 100) == 4
    assert parts_in_a_set((24, 30), (5, 6), 25) == 2  # ten sets come first
    assert (
        parts_in_a_set((24, 30), (5, 6), None) == parts_in_a_set((24, 30), (20, 6), 99) == 1
    )
    sets = list(submatrices((24, 30), (5, 6), 10, rng, 4))
    assert len(sets) == 8
    for side in (0, 1):
        for four in (sets[:4], sets[4:]):
            assert len({int(x) for part in four for x in part[side]}) == 4 * (5, 6)[side]
    trials = normal((5, 3, 2))
    assert two_halves(trials[:1], rng) is not None and len(two_halves(trials[:1], rng)) == 1
    one, two = two_halves(trials, rng)
    np.testing.assert_allclose(3 * one + 2 * two, trials.sum(0), rtol=1e-12)


# --- the sweep ---


def test_sweeps_take_what_estimate_takes():
    phi, groups = sm.Linear(4).sample(40, 30, 1), np.arange(40) // 2
    options = dict(column_weights=np.linspace(1, 2, 30))
    one = sm.dimension_sweep(phi, (0.5,), groups=groups, n_draws=4, **options)
    two = sm.dimension_sweep(Recording(phi, groups), (0.5,), n_draws=4, **options)
    np.testing.assert_array_equal(one.moments[0], two.moments[0])
    whole = sm.participation_ratio(phi, groups=groups, **options)
    assert one.whole.value == two.whole.value == whole.value
    finite = sm.dimension_sweep(phi, (0.5,), n_draws=2, population=(None, 60))
    assert finite.whole.value == sm.participation_ratio(phi, population=(None, 60)).value
    with pytest.raises(ValueError, match="is not a part"):
        sm.dimension_sweep(phi, (1.5,))


# --- gaps, and how often the check is wrong ---


@pytest.mark.parametrize("seed", [3, 4])
def test_a_gap_changes_little(seed):
    phi = sm.Linear(5).sample(30, 36, random_state=seed)
    holes = phi.copy()
    holes[seed, 2 * seed] = np.nan
    options = dict(n_draws=12, random_state=seed)
    whole, gaps = (sm.subsample_check(x, 2, **options) for x in (phi, holes))
    for name in whole.values:
        one, two = (check.ratios(name)[0][1:] for check in (whole, gaps))
        np.testing.assert_allclose(two, one, atol=0.1)
    trials = np.stack([holes, phi + normal((30, 36), seed)])
    assert np.isfinite(sm.subsample_check(trials, 2, **options).ratios("naive")[0]).all()


def test_one_gap_brings_no_draws():
    """Orders 3 and 4 follow from the complete rows, whatever the seed."""
    phi = sm.PowerLaw(1.0, 60).sample(120, 100, random_state=12)
    holes = phi.copy()
    holes[70, 5] = np.nan
    whole = sm.estimate(phi, 4)
    found = [sm.estimate(holes, 4, random_state=seed) for seed in (0, 1)]
    np.testing.assert_array_equal(found[0].values, found[1].values)
    assert (abs(found[0].values - whole.values) < 0.1 * whole.stderr).all()
    np.testing.assert_allclose(found[0].stderr, whole.stderr, rtol=0.05)
    assert "n = 3, 4: from the 119 of 120 inputs without gaps" in found[0].notes
    rows = found[0].axes["inputs"].deviations
    assert rows.shape == (4, 120) and not rows[2:, 70].any() and rows[:2, 70].all()


def test_gaps_of_two_systems():
    phi, psi = sm.Linear(5).sample(40, 30, 1), normal((40, 20), 2)
    phi[3, 4] = np.nan
    found = sm.cross_moments(phi, psi, ("ab", "abb"), groups=np.arange(40) // 2)
    rest = np.delete(np.arange(40), 3)
    part = sm.cross_moments(
        phi[rest], psi[rest], ("abb",), groups=(np.arange(40) // 2)[rest]
    )
    np.testing.assert_allclose(found.values[1], part.values[0], rtol=1e-10)


def test_how_often_the_check_is_wrong():
    """All sizes and orders are tested at once; the naive estimator is found out."""
    p = {"all_cycles": [], "naive": []}
    for seed in range(16):
        phi = sm.Linear(5).sample(24, 30, random_state=80 + seed)
        check = sm.subsample_check(phi, 2, n_draws=40, random_state=seed)
        for name in p:
            p[name].append(check.p_value(name))
    assert np.mean(np.array(p["all_cycles"]) < 0.05) < 0.2
    assert np.mean(np.array(p["naive"]) < 0.05) > 0.9
    assert "p of all (Holm)" in str(check)
    all_of_them = sm.subsample_check(phi[:5, :3], shapes=[(4, 2)], n_draws=None)
    assert math.isnan(all_of_them.p_value("naive"))


def two_by_hand(x):
    "m(1) and m(2) of all cycles, for a count of many matrices."
    P, Q = x.shape
    squares, K = x**2, x @ x.T
    closed = (K**2).sum() - (np.diag(K) ** 2).sum() - (squares.sum(0) ** 2).sum()
    cycles = P * (P - 1) * Q * (Q - 1)
    return np.array([squares.mean(), (closed + (squares**2).sum()) / cycles])


def test_how_often_the_check_is_wrong_on_skewed_parts():
    """Student's test of independent parts is wrong in .18 and .08 of these."""
    phi = normal((9, 7))
    np.testing.assert_allclose(two_by_hand(phi), sm.all_cycles(phi, 2), rtol=1e-10)
    naive = lambda x: np.array([(x**2).mean(), ((x @ x.T) ** 2).mean() / x.shape[1] ** 2])
    np.testing.assert_allclose(naive(phi), sm.naive(phi, 2), rtol=1e-10)
    own, rates = dict(ours=two_by_hand, naive=naive), []
    for skewed in (False, True):
        wrong = {name: [] for name in own}
        for seed in range(120):
            rng = np.random.default_rng(500 + seed)
            phi = rng.standard_normal((30, 2)) @ rng.standard_normal((2, 26))
            if skewed:
                phi = np.exp(rng.standard_normal((30, 1))) * rng.standard_normal((30, 26))
            options = dict(center=False, estimators=own, random_state=seed)
            check = sm.subsample_check(phi, 2, **options)
            for name in own:
                wrong[name].append(check.p_value(name) < 0.05)
        rates.append([np.mean(x) for x in wrong.values()])
    assert max(rates[0][0], rates[1][0]) < 0.1 and min(rates[0][1], rates[1][1]) > 0.9, (
        rates
    )


def test_test_of_skewed_numbers():
    """It is Student's where nothing is skewed, and right more often where much is."""
    even = np.array([[-2.0, 3], [-1, 4], [1, 6], [2, 7]])  # symmetric about 0 and 5
    t = even.mean(0) / (even.std(0, ddof=1) / 2)
    np.testing.assert_allclose(skewed_t_test(even), 2 * stdtr(3, -abs(t)), rtol=1e-12)
    assert np.isnan(skewed_t_test(np.full((5, 1), 0.1))).all()
    assert np.isnan(skewed_t_test(np.ones((1, 2)))).all()
    x = np.random.default_rng(3).standard_exponential((4000, 40)) ** 2 - 2
    found = np.array([skewed_t_test(y[:, None])[0] for y in x])
    student = 2 * stdtr(39, -abs(x.mean(1) / (x.std(1, ddof=1) / np.sqrt(40))))
    assert (found < 0.05).mean() < 0.8 * (student < 0.05).mean()


@pytest.mark.parametrize("function", [sm.subsample_check, sm.dimension_sweep])
def test_a_tensor_with_three_axes_is_refused(function):
    torch = pytest.importorskip("torch")
    with pytest.raises(ValueError, match="tensor of shape .*trials=True"):
        function(torch.zeros(3, 20, 16))
    assert function(torch.randn(3, 20, 16), trials=True, n_draws=2)
