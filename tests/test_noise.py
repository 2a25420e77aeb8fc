"""Noise of a known law: exact by enumeration, statistical; the noise itself."""

import itertools

import numpy as np
import pytest

import spectral_moments as sm
from spectral_moments.noise import noise_check, noise_moments

# --- the law of the noise -----------------------------------------------------------------


def binomial(mean):
    "Values and probabilities of two draws with this mean."
    p = mean / 2
    return (0.0, 1.0, 2.0), ((1 - p) ** 2, 2 * p * (1 - p), p**2)


def normal(mean, variance):
    "Values and probabilities with the first three moments of a normal law."
    step = np.sqrt(3 * variance)
    return (mean - step, mean, mean + step), (1 / 6, 2 / 3, 1 / 6)


CASES = {
    "plain": ((3, 3), dict(center=False)),
    "third": ((3, 3), dict(center=False, n_max=3)),
    "centred": ((4, 3), {}),
    "centred third": ((6, 3), dict(n_max=3)),
    "groups": ((5, 3), dict(groups=[0, 0, 1, 2, 3])),
    "missing": ((5, 3), dict(center=False)),
}


@pytest.mark.parametrize("law", ["binomial", "normal"])
@pytest.mark.parametrize("case", CASES)
def test_the_mean_over_the_noise_is_the_estimate_without_noise(case, law):
    shape, options = CASES[case]
    options = dict(n_max=2, method="all_cycles", stderr=False) | options
    rng = np.random.default_rng(0)
    mu = rng.choice([0.0, 2.0], shape)  # whose binomial noise is zero
    noisy = [(0, 0), (0, 1), (1, 0), (1, 1)]
    variance = np.zeros(shape)
    for entry in noisy:
        mu[entry], variance[entry] = rng.uniform(0.3, 1.7), 1.5
    if case == "missing":
        mu[3, 2] = np.nan
    noise = ("binomial", 2) if law == "binomial" else variance
    clean = sm.estimate(mu, **options).values
    laws = [binomial(mu[e]) if law == "binomial" else normal(mu[e], 1.5) for e in noisy]
    total = biased = 0.0
    for draws in itertools.product(*(zip(*one, strict=True) for one in laws)):
        x, chance = mu.copy(), 1.0
        for entry, (value, probability) in zip(noisy, draws, strict=True):
            x[entry] = value
            chance *= probability
        found = sm.estimate(x, noise=noise, **options).values
        total = total + chance * np.nan_to_num(found)  # NaN: zero, all digits cancel
        biased = biased + chance * sm.estimate(x, **options).values
    np.testing.assert_allclose(total, clean, rtol=1e-9, atol=1e-12)
    assert biased[0] > clean[0] + 0.05  # negative control


def spikes(P, Q, rng):
    "Rates whose covariance has dimension 8, and m(1) = 0.49."
    x, w = rng.choice([-1.0, 1.0], (P, 8)), rng.choice([-1.0, 1.0], (8, Q))
    return 2 + 0.7 * x @ w / 8**0.5


@pytest.mark.parametrize("law", ["poisson", 1.44])
def test_mean_and_coverage(law):
    "Right on average with errors of the right size; without the law neither is."
    rng, found, plain = np.random.default_rng(0), [], []
    truth = np.array([0.49, 0.49**2 / 8])
    for _ in range(40):
        rate = spikes(80, 60, rng)
        x = rng.poisson(rate) if law == "poisson" else rng.normal(rate, 1.2)
        found.append(sm.estimate(x, 2, noise=law))
        plain.append(sm.estimate(x, 2, stderr=False).values)
    values = np.array([e.values for e in found])
    spread = values.std(axis=0, ddof=1)
    assert (abs(values.mean(axis=0) - truth) < 4 * spread / 40**0.5).all()
    assert np.mean(plain, axis=0)[0] > 2 * truth[0]  # negative control
    errors = np.sqrt(np.mean([e.stderr**2 for e in found], axis=0))
    assert (0.75 * spread < errors).all() and (errors < 1.6 * spread).all()
    ends = [e.dimension().interval() for e in found]
    assert np.mean([low < 8 < high for low, high in ends]) > 0.85


COUNTS = np.random.default_rng(2).poisson(3.0, (30, 20)).astype(float)


def test_variances_of_any_shape_and_unit_agree():
    one = sm.estimate(COUNTS, 3, noise=2.0).values
    for variance in (np.full(20, 2.0), np.full((30, 20), 2.0)):
        np.testing.assert_allclose(sm.estimate(COUNTS, 3, noise=variance).values, one)
    none = sm.estimate(COUNTS, 3).values
    np.testing.assert_allclose(sm.estimate(COUNTS, 3, noise=0.0).values, none, rtol=1e-9)
    large = sm.estimate(3e5 * COUNTS, 2, noise=2.0 * 9e10).values
    np.testing.assert_allclose(large, one[:2] * [9e10, 81e20], rtol=1e-9)
    many = np.random.default_rng(4).poisson(1e6, (20, 12)).astype(float)
    found = sm.estimate(many, 1, noise="poisson", center=False).values[0]
    np.testing.assert_allclose(found, (many * (many - 1)).mean(), rtol=1e-12)


# --- the noise itself ---------------------------------------------------------------------


def test_factors_by_hand():
    x = np.random.default_rng(3).poisson(2.0, (3, 12, 5)).astype(float)
    check = noise_check(x)
    variance, mean = x.var(axis=0, ddof=1), x.mean(axis=0)
    assert check.single.value == pytest.approx(variance.sum() / mean.sum())
    total = x.sum(axis=2)
    assert check.summed.value == pytest.approx(
        total.var(0, ddof=1).sum() / total.mean(0).sum()
    )
    without = [
        np.delete(variance, i, 0).sum() / np.delete(mean, i, 0).sum() for i in range(12)
    ]
    error = np.sqrt(11 / 12 * ((without - np.mean(without)) ** 2).sum())
    assert check.single.stderr == pytest.approx(error)


def test_check_of_poisson_noise():
    "The law is kept where it holds, at its level, and rejected where it does not."
    rng, rate = np.random.default_rng(6), spikes(100, 40, np.random.default_rng(7))
    kept = [noise_check(rng.poisson(rate, (2, 100, 40))).holds for _ in range(40)]
    assert np.mean(kept) > 0.85
    gain = rng.gamma(25, 1 / 25, (3, 100, 1))
    assert noise_check(rng.poisson(gain * rate)).holds is False
    check = noise_check(rng.negative_binomial(2, 2 / (2 + rate), (3, 100, 40)))
    assert check.holds is False and "law does not hold" in str(check)
    narrow = rng.binomial(4, rate / 4.5, (3, 100, 40))
    assert noise_check(narrow).single.value < 0.7 and noise_check(narrow).holds is False
    for wrong in (np.stack([rate, rate]), np.zeros((2, 9, 9))):
        with pytest.raises(ValueError, match="must be counts"):
            noise_check(wrong)
    assert noise_check(rng.poisson(rate[:1], (3, 1, 40))).single.error == np.inf
    with pytest.raises(ValueError, match="one repeat .* pass two or more"):
        noise_check(rng.poisson(rate))


def shared_noise(P, Q, T, rho, rng):
    "Three directions of signal and of noise, alignment rho^2, and private noise."
    w, u = rng.standard_normal((2, Q, 3))
    v = rho * w + np.sqrt(1 - rho**2) * u
    noise = rng.standard_normal((T, P, 3)) @ v.T + rng.standard_normal((T, P, Q))
    return rng.standard_normal((P, 3)) @ w.T + noise, v


def test_moments_of_the_noise():
    rng, found = np.random.default_rng(8), []
    for k in range(26):
        trials, _ = shared_noise(30, 25, 2 + k % 2, 0.7, rng)
        found.append(noise_moments(trials))
    values = np.array([x.estimate.values for x in found])
    spread = values.std(axis=0, ddof=1)
    assert (abs(values.mean(axis=0) - [3, 3, 4, 3, 3 * 0.49]) < 4 * spread / 26**0.5).all()
    errors = np.sqrt(np.mean([x.estimate.stderr**2 for x in found], axis=0))
    assert (0.7 * spread < errors).all() and (errors < 1.8 * spread).all()
    ends = [x.alignment.interval() for x in found]
    assert np.mean([low < 0.49 < high for low, high in ends]) > 0.8


def test_noise_of_the_features_measured_groups_and_refusals():
    trials, v = shared_noise(120, 12, 4, 0.7, np.random.default_rng(9))
    est = noise_moments(trials, population="all").estimate
    cov = (v @ v.T + np.eye(12)) / 12
    truth = [np.trace(cov), np.trace(cov @ cov)]
    assert (abs(est.values[2:4] - truth) < 4 * est.stderr[2:4]).all()
    grouped = noise_moments(trials, groups=np.repeat(np.arange(30), 4))
    assert grouped.estimate.replicates["inputs"].deviations.shape[1] == 30
    for bad, options, words in (
        (trials[0], {}, "one repeat"),
        (np.where(trials > 0, trials, np.nan), {}, "NaN entries"),
        (trials, dict(n_max=1), "n_max"),
        (trials, dict(centre=False), r"noise_moments\(\) has no option"),
    ):
        with pytest.raises(ValueError, match=words):
            noise_moments(bad, **options)
