"""Laws fitted to moments: exact moments, errors by simulation, refusals, printing."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import spectral_moments as sm
from spectral_moments.errors import normal_replicates
from spectral_moments.results import power_words
from spectral_moments.spectrum import power_laws as laws

CYCLES, INCREASING = "all cycles", "increasing (10 permutations)"
PAIRS = "all cycles of random pairs (32 draws)"


def exact(m, error=1e-4):
    return sm.from_moments(m, error * m)


def known(m, J, shape, m1_errors=(0.0, 0.0), method=CYCLES):
    "An estimate with the relative jackknife covariance J from order 2 on."
    replicates, C = {}, np.zeros((len(m), len(m)))
    C[1:, 1:] = J * np.multiply.outer(m[1:], m[1:]) / 2  # half of it from either axis
    for name, error in zip(("inputs", "features"), m1_errors):
        C[0, 0] = error**2
        replicates[name] = normal_replicates(C)
    words = power_words(len(m))
    return sm.Estimate(m, replicates, words, {"phi": shape}, [method] * len(m))


def test_laws_are_sums_over_their_eigenvalues():
    n, i = np.arange(2, 8), np.arange(1, 200_001.0)
    total = lambda values: np.log((values ** n[:, None]).sum(axis=1))
    found = laws.power_moments((1.2, -0.5), n)
    np.testing.assert_allclose(found, -0.5 * n + total(i**-1.2), rtol=1e-6)
    found = laws.power_moments((0.7, 0.0), n, 1000)
    np.testing.assert_allclose(found, total(i[:1000] ** -0.7), rtol=1e-10)
    found = laws.exponential_moments((0.3, 0.1), n)
    np.testing.assert_allclose(found, 0.1 * n + total(np.exp(-0.3 * (i - 1))), rtol=1e-10)


# --- errors -------------------------------------------------------------------------------


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
    errors = scale * first_errors(m, 34.0, P, Q) * tails  # heavy tails on one axis only

    def covariance(T, errors):
        est = known(scale * m, 0.0, (T, P, Q), errors)
        return laws.law_covariance(laws.power_moments, [0.8, np.log(scale)], n, est)

    V, J = covariance(2, errors)
    np.testing.assert_allclose(V, parts.sum(axis=0) / unit, rtol=1e-9)
    np.testing.assert_allclose(J, (p * parts).sum(axis=0) / unit, rtol=1e-9)
    quiet, two = (covariance(T, (0.0, 0.0))[0] for T in (1, 2))
    np.testing.assert_allclose(two, quiet, rtol=1e-9)
    assert (V.diagonal() > 1.2 * quiet.diagonal()).all()


@pytest.mark.parametrize("method", [CYCLES, INCREASING, PAIRS])
def test_size_of_errors(method):
    "Midway between law and data; of other methods than all cycles, that of the data."
    shape, n, m = (1, 300, 600), np.arange(2, 5), sm.PowerLaw(1.0).moments(4)
    J = laws.law_covariance(laws.power_moments, (1.0, 0.0), n, known(m, 0.0, shape))[1]
    one, quarter = (
        sm.power_law(known(m, size * J, shape, method=method)).stderr for size in (1, 0.25)
    )
    expected = (1 + 0.25) / 2 if method == CYCLES else 0.25
    assert (quarter / one) ** 2 == pytest.approx(expected, rel=0.2)


def test_coverage():
    "Of 20 matrices, two noisy trials; the slope of the sample is far off."
    rng, process, held = np.random.default_rng(5), sm.PowerLaw(1.0), 0
    for _ in range(20):
        trials = process.sample(60, 90, rng) + 2 * rng.standard_normal((2, 60, 90))
        low, high = sm.power_law(sm.estimate(trials, 4, trials=True)).interval()
        held += low < 1 < high
    assert held >= 18


# --- which orders -------------------------------------------------------------------------


def test_orders():
    est = exact(sm.PowerLaw(1.0).moments(8))
    orders = lambda *x: laws.orders_to_fit(*x)[0].tolist()
    assert orders(est) == [2, 3, 4] and orders(est, [4, 2, 4]) == [2, 4]
    for methods, expected in (
        ([CYCLES] * 3 + [INCREASING] * 5, [2, 3]),  # the scatter of the fourth is another
        ([CYCLES] * 2 + [INCREASING] * 6, [2, 3, 4]),  # one order is no fit
        ([INCREASING] * 8, [2, 3, 4]),
    ):
        assert orders(replace(est, methods=methods)) == expected
    stderr = est.stderr.copy()
    stderr[3] = 2 * est.values[3]
    assert orders(sm.from_moments(est.values, stderr)) == [2, 3]


def test_uncertain_orders_may_be_fitted():
    "Orders that the jackknife calls uncertain because it counts their noise six times."
    shape, law, n = (2, 150, 300), (0.7, 0.0), np.arange(2, 5)
    m, f = sm.PowerLaw(0.7, 20_000).moments(4), partial(laws.power_moments, rank=20_000)
    errors = first_errors(m, 2.5 * m[0], *shape[1:])  # as with strong noise
    V, J = laws.law_covariance(f, law, n, known(m, 0.0, shape, errors))
    assert V[1, 1] < 1 < J[1, 1]
    est = known(m, J, shape, errors)
    fit = sm.power_law(est, rank=20_000)
    assert fit.orders[1] == 3 and abs(fit.exponent - 0.7) < fit.stderr
    assert not est.usable[2]
    with pytest.raises(ValueError, match="needs two"):  # without the shape
        sm.power_law(sm.from_moments(m, covariance=est.covariance), rank=20_000)


def test_an_order_that_is_only_noise():
    m, shape = sm.PowerLaw(1.0).moments(4), (1, 12, 12)
    est = known(m, np.diag([0.1, 0.5, 9.0]), shape)
    assert sm.power_law(est).orders.tolist() == [2, 3]
    with pytest.raises(ValueError, match=r"m\(4\) is only noise"):
        sm.power_law(est, [2, 3, 4])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(orders=[2]), "needs two"),
        (dict(orders=[1, 2, 3]), "at least 2"),
        (dict(orders=[{}, {}]), "orders must be a whole number"),
        (dict(orders=[[1], [2, 3]]), "orders must be a whole number"),
        (dict(orders=[2, 9]), r"two certain .*not estimated: \[9\]"),
        (dict(law="broken"), "is not 'power' or 'exponential'"),
        (dict(rank=0), "rank"),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(ValueError, match=message):
        sm.power_law(exact(sm.PowerLaw(1.0).moments(6)), **arguments)
    with pytest.raises(ValueError, match="standard errors"):
        sm.power_law(sm.PowerLaw(1.0).moments(6))


# --- test, alternative, notes -------------------------------------------------------------


def test_the_slowest_decay_can_be_fitted():
    slowest = laws.power_moments((0.5051, np.log(0.2)), np.arange(2, 5))
    fit = sm.power_law(exact(np.r_[30.0, np.exp(slowest)], 0.2))
    assert 0.505 <= fit.exponent < 0.6 and fit.stderr > 0


def test_no_test_without_a_third_order():
    fit = sm.power_law(exact(sm.PowerLaw(1.0).moments(3)))
    assert np.isnan(fit.p_value) and fit.alternative is None and "no test" in str(fit)


def test_each_law_is_rejected_where_the_other_holds():
    power, decay = sm.PowerLaw(1.0).moments(4), sm.RBF(1, input_cov=9.0).moments(4)
    for m, right, wrong in (
        (power, "power", "exponential"),
        (decay, "exponential", "power"),
    ):
        est = exact(m, 0.002)
        good, bad = (sm.power_law(est, law=law) for law in (right, wrong))
        assert good.p_value > 0.05 > good.alternative.p_value
        assert good.alternative.law == wrong and bad.alternative.p_value > 0.05
        assert not good.notes and "(not rejected)" in str(good)
        (note,) = [x for x in bad.notes if "Fit rejected" in x]  # advises the other law
        assert f"law='{right}'" in note and f"'{wrong}'" not in note and note in str(bad)
        assert {row["law"] for row in bad.records()} == {right, wrong}


def drawn(eigenvalues, seed, shape=(90, 120)):
    rng = np.random.default_rng([90, seed])
    x, w = (rng.standard_normal((size, len(eigenvalues))) for size in shape)
    return x * np.sqrt(eigenvalues) @ w.T


def test_level_of_the_test():
    "True laws are seldom rejected, wrong ones often."
    i = np.arange(1.0, 151)
    rejected = {}
    for name, values in (("true", 1 / i), ("false", np.where(i <= 20, 1.0, 0.0))):
        fits = [sm.power_law(sm.estimate(drawn(values, k), 4)) for k in range(12)]
        rejected[name] = np.mean([fit.p_value < 0.05 for fit in fits])
    assert rejected["true"] <= 0.15 and rejected["false"] >= 0.7


def test_notes():
    est = sm.estimate(drawn(np.arange(1.0, 151) ** -0.9, 4), 4)
    assert sm.power_law(est).notes == est.notes  # nothing of its own; theirs travel
    vague = sm.power_law(exact(sm.PowerLaw(1.0).moments(3), 0.3))
    assert "hardly determined" in vague.notes[0]


def test_interval():
    fit = sm.power_law(exact(sm.PowerLaw(1.0).moments(5), 0.05))
    low, high = fit.interval(0.95)
    step = 1.96 * fit.stderr / fit.exponent
    assert [low, high] == pytest.approx(fit.exponent * np.exp([-step, step]), rel=1e-4)
    wide = sm.power_law(exact(sm.PowerLaw(1.0).moments(3), 0.1), [2, 3]).interval(0.999)
    assert 0 < wide[0] < low < high < wide[1]  # never below zero


def test_a_whole_layer_has_as_many_eigenvalues_as_features():
    "A slow decay: a law of infinitely many eigenvalues would be far too steep."
    process = sm.PowerLaw(0.6, 64)
    features = np.linalg.qr(np.random.default_rng(0).standard_normal((64, 64)))[0]
    latents = np.random.default_rng(1).standard_normal((600, 64))
    phi = latents * np.sqrt(process.eigenvalues(64)) @ features
    fit = sm.power_law(sm.estimate(phi, 4, population="all"))
    endless = sm.power_law(sm.estimate(phi, 4, population="all"), rank=10**6)
    assert abs(fit.exponent - 0.6) < 3 * fit.stderr < 0.1 < endless.exponent - 0.6 + 0.1
    assert endless.exponent - 0.6 > 3 * endless.stderr


@pytest.mark.parametrize("n_inputs", [25, 60])
def test_few_inputs_are_noted(n_inputs):
    phi = sm.PowerLaw(1.5).sample(n_inputs, 80, random_state=1)
    notes = sm.power_law(sm.estimate(phi, 4)).notes
    assert any("Fewer than 30 inputs" in note for note in notes) == (n_inputs < 30)
