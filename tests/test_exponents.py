"""Laws fitted to moments: exact moments, errors by simulation, refusals, plots."""

from dataclasses import replace
from functools import partial

import matplotlib
import numpy as np
import pytest

import spectral_moments as sm
from spectral_moments.engine.reduction import Axis
from spectral_moments.errors import normal_units
from spectral_moments.results import power_words
from spectral_moments.spectrum import power_laws as laws

matplotlib.use("Agg")


def exact(m, error=1e-4):
    return sm.from_moments(m, error * m)


def known(m, J, shape, sides=(0.0, 0.0), methods=None):
    "An estimate whose jackknife says J, relative, from order 2 on, and `sides` of m(1)."
    axes, C = {}, np.zeros((len(m), len(m)))
    C[1:, 1:] = J * np.multiply.outer(m[1:], m[1:]) / 2  # half of it from either side
    for name, error in zip(("inputs", "features"), sides):
        C[0, 0] = error**2
        axes[name] = Axis(normal_units(C))
    methods = methods or ["all_cycles"] * len(m)
    return sm.Estimate(m, axes, power_words(len(m)), {"phi": shape}, methods)


@pytest.mark.parametrize("at", [3, 8])
def test_exact_broken_law_fits(at):
    n = np.arange(1, 8)
    m = np.exp(laws.broken_moments((0.4, 1.6, 0.0), np.maximum(n, 2), at))
    m[0] = 2 * m[1]
    fit = sm.power_law(exact(m), range(2, 8), law="broken")
    np.testing.assert_allclose(fit.moments, m[1:], rtol=1e-3)
    assert fit.parameters["break"] in laws.BREAKS and fit.dof == 2


def test_laws_are_sums_over_their_eigenvalues():
    n, i = np.arange(2, 8), np.arange(1, 200_001.0)
    total = lambda values: np.log((values ** n[:, None]).sum(axis=1))
    found = laws.power_moments((1.2, -0.5), n)
    np.testing.assert_allclose(found, -0.5 * n + total(i**-1.2), rtol=1e-6)
    found = laws.power_moments((0.7, 0.0), n, 1000)
    np.testing.assert_allclose(found, total(i[:1000] ** -0.7), rtol=1e-10)
    found = laws.exponential_moments((0.3, 0.1), n)
    np.testing.assert_allclose(found, 0.1 * n + total(np.exp(-0.3 * (i - 1))), rtol=1e-10)
    bent = np.where(i <= 8, i**-0.6, 8.0 ** (1.5 - 0.6) * i**-1.5)
    found = laws.broken_moments((0.6, 1.5, 0.0), n, 8)
    np.testing.assert_allclose(found, total(bent), rtol=1e-6)


def first_errors(m, noisy, P, Q):
    "Standard errors of m(1) due to rows and columns, by the jackknife."
    return np.sqrt([2 * m[1] / k + (noisy**2 + m[0] ** 2) / (P * Q) for k in (P, Q)])


@pytest.mark.parametrize("scale", [1.0, 1e-3])
@pytest.mark.parametrize("tails", [(1, 1), (3, 1), (1, 3)])
def test_noise_from_the_error_of_the_first_moment(scale, tails):
    n, P, Q = np.arange(2, 6), 60, 90
    m = np.array([20.0, *np.exp(laws.power_moments([0.8, 0.0], np.arange(2, 11)))])
    parts = sum(laws.shared_parts([v, *m[1:]], n, P, Q) for v in (20.0, 34.0))
    unit, p = np.multiply.outer(m[1:5], m[1:5]), np.arange(1, 11)[:, None, None]
    sides = scale * first_errors(m, 34.0, P, Q) * tails  # heavy tails on one side only
    law = laws.power_moments, [0.8, np.log(scale)], n, 20 * scale
    V, J = laws.law_covariance(*law, (2, P, Q), sides)
    np.testing.assert_allclose(V, parts.sum(axis=0) / unit, rtol=1e-9)
    np.testing.assert_allclose(J, (p * parts).sum(axis=0) / unit, rtol=1e-9)
    quiet = laws.law_covariance(*law, (1, P, Q), (0, 0))[0]
    np.testing.assert_allclose(
        laws.law_covariance(*law, (2, P, Q), (0, 0))[0], quiet, rtol=1e-9
    )
    assert (V.diagonal() > 1.2 * quiet.diagonal()).all()


def test_only_the_jackknife_over_single_rows_and_columns_is_corrected():
    phi = sm.PowerLaw(0.8, 2000).sample(100, 150, 1)
    est = sm.estimate(phi, 4, center=False)
    once = sm.power_law(est, [2, 3]).stderr["exponent"]
    rows = dict(inputs=est.axes["inputs"], probes=est.axes["features"])
    for change in (dict(methods=["sketched"] * 4), dict(axes=rows)):
        often = sm.power_law(replace(est, **change), [2, 3]).stderr["exponent"]
        assert once < 0.97 * often


def test_orders_of_one_family():
    m, walk = sm.PowerLaw(1.0).moments(6), "increasing"
    for families, orders in (
        (["all_cycles"] * 3 + [walk] * 3, [2, 3]),  # the scatter of the fourth is unknown
        (["all_cycles"] * 2 + [walk] * 4, [2, 3, 4]),  # one order is no fit
        ([walk] * 6, [2, 3, 4]),
    ):
        est = replace(exact(m, 1 / 9), methods=families)
        assert laws.orders_to_fit(est, None, 2)[0].tolist() == orders
        assert laws.orders_to_fit(est, [2, 4], 2)[0].tolist() == [2, 4]  # what is asked for


def test_orders_that_only_the_jackknife_doubts():
    process, shape, law = sm.PowerLaw(0.7, 20_000), (2, 150, 300), (0.7, 0.0)
    m, n, f = process.moments(8), np.arange(2, 5), partial(laws.power_moments, rank=20_000)
    sides = first_errors(m, 2.5 * m[0], *shape[1:])  # as with strong noise
    V, J = laws.law_covariance(f, law, n, m[0], shape, sides)
    assert V[1, 1] < 1 < J[1, 1]  # order 3: noise that the jackknife counts six times
    est = known(m[:4], J, shape, sides)
    fit = sm.power_law(est, rank=20_000)
    assert fit.orders[1] == 3 and abs(fit.exponent - 0.7) < fit.stderr["exponent"]
    with pytest.raises(ValueError, match="needs 2"):
        sm.power_law(sm.from_moments(m[:4], covariance=est.covariance), rank=20_000)


def test_errors_lie_between_law_and_data():
    process, shape, n = sm.PowerLaw(1.0), (1, 150, 300), np.arange(2, 5)
    m = process.moments(4)
    J = laws.law_covariance(laws.power_moments, (1.0, 0.0), n, m[0], shape, (0, 0))[1]
    fits = [sm.power_law(known(m, factor * J, shape)) for factor in (1.0, 3.0)]
    errors = [fit.stderr["exponent"] ** 2 for fit in fits]
    assert errors[1] / errors[0] == pytest.approx((1 + 3) / 2, rel=0.1)


def test_increasing_cycles_have_scatter_of_their_own():
    shape, n, m = (1, 300, 600), np.arange(2, 5), sm.PowerLaw(1.0).moments(4)
    J = laws.law_covariance(laws.power_moments, (1.0, 0.0), n, m[0], shape, (0, 0))[1]
    errors = {}
    for family in ("all_cycles", "increasing"):
        for more in (0.0, 0.1):
            noisy = J + np.diag([0, more, 4 * more])
            fit = sm.power_law(known(m, noisy, shape, methods=[family] * 4))
            errors[family, more] = fit.stderr["exponent"]
    assert errors["increasing", 0.0] == pytest.approx(errors["all_cycles", 0.0], rel=0.1)
    assert errors["all_cycles", 0.1] == pytest.approx(errors["all_cycles", 0.0], rel=1e-9)
    assert errors["increasing", 0.1] > 1.3 * errors["increasing", 0.0]


def test_errors_follow_the_shift():
    "The covariance is that of the derivative of the whole fit, if the data agree."
    f, shape, n = partial(laws.power_moments, rank=20_000), (2, 150, 300), np.arange(2, 5)
    m = sm.PowerLaw(0.7, 20_000).moments(4)
    sides = first_errors(m, 2 * m[0], *shape[1:])

    def fitted(errors, theta=(0.7, 0.0)):
        values = np.array([m[0], *np.exp(f((0.7, 0.0), n) + errors)])
        for _ in range(12):  # until the reported covariance is that of the fitted law
            V, J = laws.law_covariance(f, theta, n, m[0], shape, sides)
            est = known(values, J, shape, sides)
            fit = sm.power_law(est, [2, 3, 4], rank=20_000)
            theta = np.array([fit.exponent, np.log(fit.scale)])
        return theta, fit.covariance, V

    h = 0.02
    slope = [(fitted(h * e)[0] - fitted(-h * e)[0]) / (2 * h) for e in np.eye(3)]
    _, covariance, V = fitted(np.zeros(3))
    np.testing.assert_allclose(covariance, np.transpose(slope) @ V @ slope, rtol=0.03)


def test_goodness_of_fit_without_freedom():
    assert np.isnan(laws.goodness_of_fit(np.zeros(2), np.eye(2), np.zeros((2, 2)), 0)).all()
    two = sm.power_law(exact(sm.PowerLaw(1.0).moments(3)))
    assert two.dof == 0 and np.isnan(two.p_value) and "no test" in str(two)


def test_orders():
    est = exact(sm.PowerLaw(1.0).moments(8))
    assert laws.orders_to_fit(est, None, 2)[0].tolist() == [2, 3, 4]
    assert laws.orders_to_fit(est, None, 5)[0].tolist() == [2, 3, 4, 5, 6]
    assert laws.orders_to_fit(est, [4, 2, 4], 2)[0].tolist() == [2, 4]
    values, stderr = est.values, est.stderr.copy()
    stderr[3] = 2 * values[3]
    partly = sm.from_moments(values, stderr)
    assert laws.orders_to_fit(partly, None, 2)[0].tolist() == [2, 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(orders=[2]), "needs 2"),
        (dict(orders=[1, 2, 3]), "at least 2"),
        (dict(orders=[2, 9]), "not usable"),
        (dict(law="linear"), "is not known"),
        (dict(law="broken", orders=[2, 3, 4]), "needs 4"),
        (dict(rank=0), "rank"),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(ValueError, match=message):
        sm.power_law(exact(sm.PowerLaw(1.0).moments(6)), **arguments)
    with pytest.raises(ValueError, match="standard errors"):
        sm.power_law(sm.PowerLaw(1.0).moments(6))


def drawn(eigenvalues, seed, shape=(90, 120)):
    rng = np.random.default_rng([90, seed])
    x, w = (rng.standard_normal((size, len(eigenvalues))) for size in shape)
    return x * np.sqrt(eigenvalues) @ w.T


RANK = np.arange(1.0, 151)
FALSE = {
    "spike": np.where(RANK == 1, 5.0, 1.0) * RANK**-0.7,
    "broken law": np.where(RANK <= 5, RANK**-2.0, 5**-1.2 * RANK**-0.8),
    "exponential": np.exp(-0.6 * (RANK - 1)),
}


@pytest.mark.parametrize("name", FALSE)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_false_law_is_rejected_or_not_excluded(name, seed):
    fit = sm.power_law(sm.estimate(drawn(FALSE[name], seed), 4))
    assert fit.p_value < 0.05 or (fit.power[name] < 0.8 and name in str(fit))
    if fit.p_value >= 0.05:
        assert "not excluded (power of the test)" in str(fit)


def test_stated_power_is_about_the_rate_of_rejection():
    """Small for laws that look like a power law at this size, larger for a slow one."""
    slow = np.exp(-0.3 * (RANK - 1))
    for name, eigenvalues in (FALSE | {"slow": slow}).items():
        draws = (drawn(eigenvalues, seed, (80, 100)) for seed in range(20, 36))
        fits = [sm.power_law(sm.estimate(x, 4)) for x in draws]
        stated = np.mean(
            [fit.power["exponential" if name == "slow" else name] for fit in fits]
        )
        rejected = np.mean([fit.p_value < 0.05 for fit in fits])
        assert abs(rejected - stated) < 0.3, (name, rejected, stated)
        assert (stated > 0.25) == (name == "slow")


def test_power_grows_with_what_is_known():
    """From the level of the test to one."""
    m = sm.PowerLaw(1.0).moments(4)
    found = [sm.power_law(exact(m, error)).power for error in (0.2, 0.02, 0.002)]
    for name in FALSE:
        rough, fine, finest = (x[name] for x in found)
        assert 0.05 <= rough < 0.3 < finest and rough < fine <= finest
        assert finest > 0.99
    assert "not excluded" not in str(sm.power_law(exact(m, 0.002)))


def test_a_mean_and_a_steep_top_are_named():
    steep = drawn(RANK**-2.5, 3)
    assert any("95% of m(2)" in x for x in sm.power_law(sm.estimate(steep, 4)).notes)
    phi = drawn(RANK**-0.9, 4)
    assert sm.power_law(sm.estimate(phi, 4)).notes == []
    (note,) = sm.power_law(sm.estimate(phi, 4, center=False)).notes
    assert "the mean over inputs was kept" in note


def test_notes():
    assert not sm.power_law(exact(sm.PowerLaw(1.0).moments(6))).notes
    fit = sm.power_law(exact(sm.Linear(20).moments(6), 0.01))
    assert "do not follow this law" in fit.notes[0] and fit.notes[0] in str(fit)
    fit = sm.power_law(exact(sm.PowerLaw(1.0).moments(3), 0.3))
    assert "hardly determined" in fit.notes[0]


def test_laws_are_compared_on_orders_of_one_family():
    m = sm.PowerLaw(1.0).moments(7)
    est = replace(exact(m, 0.02), methods=["all_cycles"] * 4 + ["increasing"] * 3)
    found = sm.compare_laws(est)
    assert list(found) == ["power", "exponential"]
    assert found["power"].orders.tolist() == [2, 3, 4]
    found = sm.compare_laws(est, range(2, 8))
    assert found["broken"].orders.tolist() == list(range(2, 8))
    noise = sm.estimate(np.random.default_rng(3).standard_normal((8, 6)), 3)
    with pytest.raises(ValueError, match="only . usable from order 2 on"):
        sm.compare_laws(noise)


def test_eigenvalues_have_the_moments():
    m = sm.RBF(1, input_cov=9.0).moments(7)
    for fit in sm.compare_laws(exact(m, 0.05)).values():
        values = fit.eigenvalues(100_000)
        assert (np.diff(values) <= 0).all()
        m = (values ** fit.orders[:, None]).sum(axis=1)
        np.testing.assert_allclose(m, fit.moments, rtol=1e-3)


def test_interval_and_plot():
    fit = sm.power_law(exact(sm.PowerLaw(1.0).moments(5), 0.05))
    low, high = fit.interval(0.95)
    step = 1.96 * fit.stderr["exponent"] / fit.exponent
    assert [low, high] == pytest.approx(fit.exponent * np.exp([-step, step]), rel=1e-4)
    wide = sm.power_law(exact(sm.PowerLaw(1.0).moments(3), 0.1), [2, 3]).interval(0.999)
    assert 0 < wide[0] < low < high < wide[1]  # never below zero
    for law in ("power", "exponential", "broken"):
        fit = sm.power_law(exact(sm.PowerLaw(1.0).moments(7), 0.05), range(2, 8), law=law)
        assert fit.plot(count=20).get_xscale() == "log"
        assert law in str(fit)
