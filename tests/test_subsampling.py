"""The check over submatrices: exact for means over cycles, at every order, and refusals."""

import math
import warnings

import numpy as np
import pytest
from conftest import normal

import spectral_moments as sm
from spectral_moments.spectrum.submatrices import submatrices, two_halves


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("n_max", [1, 2, 3])
@pytest.mark.parametrize("T", [1, 5])
def test_exact_over_all_submatrices(n_max, center, T):
    phi = normal((T, 7, 4), seed=n_max) + 0.3
    shapes = [(6, 3)] if n_max == 3 else [(2 * n_max if center else n_max, n_max), (6, 3)]
    options = dict(shapes=shapes, n_draws=None, center=center, random_state=2)
    check = sm.subsample_check(phi if T > 1 else phi[0], n_max, **options)
    mean, error = check.ratios("all_cycles")
    np.testing.assert_allclose(mean, 1, rtol=1e-8)
    assert not error.any() and check.exhaustive
    if n_max > 1:  # negative control
        assert (abs(check.ratios("naive")[0][:, 1:] - 1) > 0.02).all()


def test_whole_is_the_estimate_of_the_whole():
    phi = normal((20, 15))
    check = sm.subsample_check(phi, 3, n_draws=2)
    np.testing.assert_allclose(check.whole["all_cycles"], sm.all_cycles(phi, 3), rtol=1e-12)
    np.testing.assert_allclose(check.whole["naive"], sm.naive(phi, 3), rtol=1e-12)
    trials = normal((2, 20, 15), 1)
    found = sm.subsample_check(trials, n_draws=2).whole
    np.testing.assert_allclose(found["all_cycles"], sm.all_cycles(trials, 2), rtol=1e-12)
    np.testing.assert_allclose(found["naive"], sm.naive(trials.mean(0), 2), rtol=1e-12)


def test_random_submatrices_and_their_errors():
    phi = sm.Linear(6).sample(80, 60, random_state=0)
    check = sm.subsample_check(
        phi, shapes=[(10, 10), (30, 30)], n_draws=300, random_state=1
    )
    mean, error = check.ratios("all_cycles")
    assert (abs(mean - 1) < 4 * error).all()
    mean, error = check.ratios("naive")
    assert (mean[:, 1] - 1 > 8 * error[:, 1]).all()
    assert [len(x) for x in check.values["naive"]] == [300, 300]


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
        sm.subsample_check(normal((4, 3)), shapes=[(3, 2)], n_draws=None)
    )
    small = sm.subsample_check(normal((12, 6)), 3, center=True, n_draws=2)
    assert small.shapes == [(6, 3), (8, 4)]  # large enough, and each size once


def test_own_estimators():
    phi = normal((8, 6))
    own = {
        "increasing": lambda x: sm.increasing(x, 2, n_jobs=1),
        "first": lambda x: x[:1, 0],
    }
    check = sm.subsample_check(phi, shapes=[(4, 3)], n_draws=None, estimators=own)
    np.testing.assert_allclose(check.ratios("increasing")[0], 1, rtol=1e-8)
    assert list(check.values) == list(own)


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((normal((6, 5)), 2), dict(shapes=[(7, 5)]), "is not a part"),
        ((normal((6, 5)), 2), dict(shapes=[(4,)]), "is not a part"),
        ((normal((6, 5)), 2), dict(shapes=[(3, 3)], center=True), "too small"),
        ((normal((6, 5)), 4), dict(center=True), "is not a part"),
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
    trials = normal((5, 3, 2))
    assert two_halves(trials[:1], rng) is not None and len(two_halves(trials[:1], rng)) == 1
    one, two = two_halves(trials, rng)
    np.testing.assert_allclose(3 * one + 2 * two, trials.sum(0), rtol=1e-12)


def test_plot():
    plt = pytest.importorskip("matplotlib.pyplot")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        check = sm.subsample_check(normal((30, 20)), n_draws=3)
        ax = check.plot(order=1)
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["all cycles", "naive"]
    assert "m(1)" in ax.get_ylabel() and len(ax.get_xticks()) == 4
    plt.close("all")
