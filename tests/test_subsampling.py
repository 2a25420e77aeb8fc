"""Submatrices: the mean over all of them equals the whole; the dimension by size."""

import itertools

import matplotlib
import numpy as np
import pytest

import spectral_moments as sm

matplotlib.use("Agg")


def mean_over_parts(f, phi, p, q, groups=None):
    "Mean of f over all p x q submatrices of the last two axes; groups of rows stay whole."
    P, Q = phi.shape[-2:]
    labels = np.arange(P) if groups is None else groups
    values = []
    for kept in itertools.combinations(np.unique(labels), p):
        rows = np.flatnonzero(np.isin(labels, kept))
        for columns in itertools.combinations(range(Q), q):
            values.append(f(phi[..., rows, :][..., list(columns)], labels[rows]))
    return np.mean(values, axis=0)


RNG = np.random.default_rng(3)
MATRIX, TRIALS = RNG.standard_normal((7, 4)) + 0.5, RNG.standard_normal((2, 7, 4)) + 0.5
GROUPS = np.array([0, 0, 1, 2, 3, 4, 4])
CASES = {
    "plain": (MATRIX, 2, (3, 3), dict(center=False)),
    "third order": (MATRIX, 3, (4, 3), dict(center=False)),
    "centred": (MATRIX, 2, (5, 3), {}),
    "trials": (TRIALS, 2, (3, 3), dict(center=False, trials=True)),
    "centred trials": (TRIALS, 2, (5, 3), dict(trials=True)),
    "a layer of six": (MATRIX, 2, (3, 3), dict(center=False, population=6)),
    "groups": (MATRIX, 2, (4, 3), dict(center=False, groups=GROUPS)),
    "centred groups": (MATRIX, 2, (4, 3), dict(groups=GROUPS)),
}


@pytest.mark.parametrize("case", CASES)
def test_the_mean_over_all_submatrices_is_the_whole(case):
    phi, n_max, (p, q), options = CASES[case]
    options = dict(options) | dict(method="all_cycles", stderr=False)
    groups = options.pop("groups", None)

    def moments(part, labels):
        own = {} if groups is None else dict(groups=labels)
        return sm.estimate(part, n_max, **options, **own).values

    whole = moments(phi, groups)
    mean = mean_over_parts(moments, phi, p, q, groups)
    np.testing.assert_allclose(mean, whole, rtol=1e-9)


def test_dimension_by_size_is_that_of_mean_moments():
    phi = sm.Linear(8).sample(30, 40, 2)
    found = sm.dimension_by_size(phi, (0.3, 1.0), n_draws=6, random_state=1)
    assert found.shapes == [(9, 12), (30, 40)]
    whole = sm.estimate(phi, 2)
    for m in found.moments[1]:  # the whole, six times
        np.testing.assert_allclose(m, whole.values, rtol=1e-9)
    m = found.moments[0].mean(axis=0)
    assert found.dimensions[0].uncorrected == pytest.approx(m[0] ** 2 / m[1])
    assert found.whole.value == pytest.approx(whole.dimension().value)
    row = found.records()[0]
    assert row["rows"] == 9 and row["columns"] == 12 and "whole matrix" in str(found)
    ax = found.plot(label="by size")
    assert ax.lines[0].get_ydata() == pytest.approx([q.value for q in found.dimensions])


def test_options_are_those_of_estimate():
    phi = sm.Linear(5).sample(40, 30, 0)
    layer = sm.dimension_by_size(phi, (0.5,), n_draws=4, population="all")
    expected = sm.participation_ratio(phi, population=30)
    assert layer.whole.value == pytest.approx(expected.value)
    assert layer.dimensions[0].value < 5  # of 30 features, not of infinitely many
    recording = sm.Recording(np.repeat(phi, 2, axis=0), groups=np.repeat(range(40), 2))
    grouped = sm.dimension_by_size(recording, (0.6,), n_draws=10)
    assert grouped.dimensions[0].value == pytest.approx(5, rel=0.35)
    missing = np.where(np.random.default_rng(0).random(phi.shape) < 0.2, np.nan, phi)
    assert np.isfinite(sm.dimension_by_size(missing, (0.4,), n_draws=4).moments[0]).all()
    one, each = (
        sm.dimension_by_size(phi, (0.5,), n_draws=4, noise=v).dimensions[0].value
        for v in (0.1, np.full(30, 0.1))
    )
    assert one == pytest.approx(each, rel=1e-9)
    large = sm.dimension_by_size(1e90 * phi, (0.5,), n_draws=4)
    assert large.whole.value == pytest.approx(sm.participation_ratio(phi).value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(n_draws=1), "n_draws = 1"),
        (dict(shares=(0.0,)), "shares"),
        (dict(shares=(2.0,)), "shares"),
        (dict(colour=1), r"dimension_by_size\(\) has no option"),
    ],
)
def test_refused(options, message):
    with pytest.raises(ValueError, match=message):
        sm.dimension_by_size(sm.Linear(5).sample(20, 20, 0), **options)
