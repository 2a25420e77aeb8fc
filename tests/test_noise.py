"""Noise whose law is known: exact by quadrature, statistical, refused, at every door."""

import itertools

import numpy as np
import pytest

import spectral_moments as sm
from spectral_moments.engine.reduction import reduce
from spectral_moments.engine.sources import Noise, Source
from spectral_moments.engine.systems import Design, Side, System

# --- exactly ------------------------------------------------------------------------------


def nodes(law, mean, spread, degree):
    "Values and probabilities with all moments of a law of noise up to `degree`."
    if law == "gaussian" and not spread or law != "gaussian" and not mean:
        return [mean], [1.0]
    count = degree // 2 + 1
    k = np.arange(count)
    if law == "gaussian":
        diagonal, squares = mean + 0 * k, spread * k
    elif law == "poisson":
        diagonal, squares = mean + k, mean * k
    else:  # binomial, of `spread` draws
        p = mean / spread
        diagonal = p * (spread - k) + k * (1 - p)
        squares = k * (spread - k + 1) * p * (1 - p)
    off = np.sqrt(squares[1:])
    values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(off, 1) + np.diag(off, -1))
    return values, vectors[0] ** 2


def expected(statistic, mu, law, spread, degree):
    "Mean of a polynomial of independent entries, without error."
    spread, total = np.broadcast_to(0.0 if spread is None else spread, mu.shape), 0.0
    pairs = zip(mu.ravel(), spread.ravel())
    laws = [[*zip(*nodes(law, *pair, degree), strict=True)] for pair in pairs]
    for each in itertools.product(*laws):
        x, chance = zip(*each, strict=True)
        total = total + np.prod(chance) * statistic(np.reshape(x, mu.shape))
    return total


def values(x, words, known, *, noise=None, columns=None, other=None):
    "All cycles of words over phi, and over psi, which has no noise."
    source = Source(x[None], 0, bool(np.isnan(x).any()))
    systems = {"phi": System(source, columns or Side())}
    systems["phi"] = systems["phi"]._replace(noise=noise)
    if other is not None:
        name = "features of {}".format
        systems["phi"] = systems["phi"]._replace(space=name("phi"))
        systems["psi"] = System(Source(other[None]), Side(), name("psi"))
    return reduce(Design(systems, **known), tuple(words), "all_cycles", rng=None).values


def powers(n):
    return [("phi",) * k for k in range(1, n + 1)]


def some(shape, count, seed=0):
    "A matrix of which `count` entries are random, near each other."
    rng = np.random.default_rng(seed)
    where = np.zeros(shape, dtype=bool)
    where[0, : (count + 1) // 2] = where[-1, : count // 2] = True
    return rng.uniform(0.3, 2.0, shape), where


GROUPS, WEIGHTS = np.array([0, 0, 1, 1, 2, 3]), np.array([1.0, 2, 3, 1])


def finite(size):
    return Side(population=size)


GROUPED, WEIGHTED = dict(rows=Side(groups=GROUPS)), dict(rows=Side(weights=WEIGHTS))
CENTRED = dict(center=True)
#: shape, orders, degree of an entry, random entries, options
CASES = {
    "first": ((2, 2), 1, 2, 4, {}),
    "second": ((2, 3), 2, 2, 6, {}),
    "third": ((3, 3), 3, 2, 5, {}),
    "centred": ((4, 2), 2, 2, 6, CENTRED),
    "centred third": ((6, 3), 3, 2, 5, CENTRED),
    "finite columns": ((3, 2), 2, 4, 4, dict(columns=finite(3))),
    "finite rows": ((2, 3), 2, 4, 4, dict(rows=finite(2))),
    "finite": ((2, 2), 2, 4, 4, dict(rows=finite(2), columns=finite(2))),
    "finite third": ((3, 3), 3, 6, 3, dict(rows=finite(5), columns=finite(4))),
    "finite centred": ((4, 2), 2, 4, 4, dict(rows=finite(5), columns=finite(2)) | CENTRED),
    "all columns, centred": ((6, 3), 3, 6, 3, dict(columns=finite(3)) | CENTRED),
    "groups": ((6, 2), 2, 2, 5, GROUPED),
    "groups, third": ((6, 3), 3, 2, 4, GROUPED),
    "groups, third, all columns": ((6, 3), 3, 6, 3, GROUPED | dict(columns=finite(3))),
    "groups, centred": ((6, 2), 2, 2, 5, GROUPED | CENTRED),
    "groups, all columns": ((6, 2), 2, 4, 4, GROUPED | CENTRED | dict(columns=finite(2))),
    "weights": ((4, 3), 2, 2, 5, WEIGHTED),
    "weights, centred": ((4, 3), 2, 2, 5, WEIGHTED | CENTRED),
}


@pytest.mark.parametrize("law", ["binomial", "poisson", "gaussian"])
@pytest.mark.parametrize("case", CASES)
def test_exact(case, law):
    "The mean over the noise is the estimate without noise, to the last digit."
    shape, n, degree, count, options = CASES[case]
    options = dict(options)
    known = {key: options.pop(key) for key in ("center", "rows") if key in options}
    mu, where = some(shape, count)
    if law == "gaussian":
        spread = np.where(where, np.linspace(0.5, 2, mu.size).reshape(shape), 0.0)
        noise = Noise("gaussian", spread)
    elif law == "poisson":
        mu, spread, noise = np.where(where, mu, 0.0), None, Noise("poisson")
    else:
        mu, spread, noise = np.where(where, mu, 0.0), 7.0, Noise("binomial", 7)
    of = lambda x, **law: values(x, powers(n), known, **law, **options)
    clean = of(mu)
    found = expected(lambda x: of(x, noise=noise), mu, law, spread, degree)
    size = np.maximum(abs(clean), 1e-2)
    np.testing.assert_allclose(found / size, clean / size, atol=1e-9, rtol=0)
    with_bias = expected(of, mu, law, spread, degree)
    assert with_bias[0] > clean[0] + 0.05  # negative control
    if degree > 2 and law == "gaussian":
        assert (abs(with_bias - clean) > 0.01 * size).all()


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("population", [None, 3])
@pytest.mark.parametrize("gap", [False, True])
def test_exact_words_and_gaps(center, population, gap):
    words = [("phi", "psi"), ("phi", "phi"), ("phi",)]
    if not center:
        words.insert(0, ("phi", "phi", "psi"))
    mu, where = some((6, 3), 4)
    if gap:
        mu[3, 1] = np.nan
    other = np.random.default_rng(1).standard_normal((6, 2))
    spread = np.where(where, 1.5, 0.0)
    options = dict(other=other, columns=Side(population=population))
    of = lambda x, **law: values(x, words, dict(center=center), **options, **law)
    clean, noise, degree = of(mu), Noise("gaussian", spread), 4 if population else 2
    found = expected(lambda x: of(x, noise=noise), mu, "gaussian", spread, degree)
    np.testing.assert_allclose(found, clean, rtol=1e-9)
    assert expected(of, mu, "gaussian", spread, degree)[-1] > clean[-1] + 0.1


# --- statistically ------------------------------------------------------------------------


def spikes(P, Q, rng):
    "Rates whose covariance has dimension 8, and m(1) = 0.49."
    x, w = rng.choice([-1.0, 1.0], (P, 8)), rng.choice([-1.0, 1.0], (8, Q))
    return 2 + 0.7 * x @ w / 8**0.5


TRUTH = np.array([0.49, 0.49**2 / 8])


def draw(law, rate, rng):
    "A matrix with noise of this law around the rates."
    if law == "poisson":
        return rng.poisson(rate).astype(float)
    return rate + 1.2 * rng.standard_normal(rate.shape)


LAWS = {"poisson": "poisson", "gaussian": 1.44}


@pytest.mark.parametrize("law", LAWS)
def test_mean_and_coverage(law):
    "Right on average with errors of the right size; without the law neither is."
    rng, found, plain = np.random.default_rng(0), [], []
    for _ in range(40):
        x = draw(law, spikes(80, 60, rng), rng)
        found.append(sm.estimate(x, 2, noise=LAWS[law]))
        plain.append(sm.estimate(x, 2, stderr=False).values)
    values = np.array([e.values for e in found])
    spread = values.std(axis=0, ddof=1)
    assert (abs(values.mean(0) - TRUTH) < 4 * spread / 40**0.5).all()
    assert np.mean(plain, axis=0)[0] > 2 * TRUTH[0]  # negative control
    errors = np.sqrt(np.mean([e.stderr**2 for e in found], axis=0))
    assert (0.75 * spread < errors).all() and (errors < 1.6 * spread).all()
    ends = [e.dimension().interval() for e in found]
    assert np.mean([low < 8 < high for low, high in ends]) > 0.85


def test_a_finite_population_has_errors_of_its_noise():
    "If nothing is sampled, noise alone moves the estimate: the axis of trials says so."
    rng = np.random.default_rng(1)
    rate = spikes(30, 20, rng)
    options = dict(population=(30, 20))
    truth = sm.estimate(rate, 2, stderr=False, **options).values
    found = [
        sm.estimate(rng.poisson(rate), 2, noise="poisson", **options) for _ in range(40)
    ]
    values = np.array([e.values for e in found])
    spread = values.std(axis=0, ddof=1)
    assert (abs(values.mean(0) - truth) < 4 * spread / 40**0.5).all()
    errors = np.sqrt(np.mean([e.stderr**2 for e in found], axis=0))
    assert (0.8 * spread < errors).all() and (errors < 1.8 * spread).all()
    half = sm.estimate(rng.poisson(rate), 2, noise="poisson", population=(60, 40))
    assert "trials" not in half.axes  # inputs and features tell all of it
    naive = [sm.estimate(rng.poisson(rate), 2, **options).values for _ in range(9)]
    assert (np.mean(naive, axis=0) > 1.5 * truth).all()  # negative control


# --- doors --------------------------------------------------------------------------------


COUNTS = np.random.default_rng(2).poisson(3.0, (30, 20)).astype(float)


@pytest.mark.parametrize(
    ("data", "noise", "words"),
    [
        (COUNTS + 0.5, "poisson", "z-scored"),
        (COUNTS - 3, "poisson", "negative"),
        ((COUNTS - COUNTS.mean(0)) / COUNTS.std(0), "poisson", "z-scored"),
        (COUNTS / 3, "poisson", "not whole"),
        (COUNTS, ("binomial", 4), "too large"),
        (np.stack([COUNTS, COUNTS]), "poisson", "2 trials"),
        (np.stack([COUNTS, COUNTS]), 1.0, "2 trials"),
        (COUNTS, np.ones(30), "shape"),
        (COUNTS, np.ones((20, 30)), "shape"),
        (COUNTS, -1.0, "not negative"),
        (COUNTS, np.nan, "finite"),
        (COUNTS, "gamma", "is not known"),
        (COUNTS, ("binomial",), "is not known"),
        (1.0 * (COUNTS > 2), ("binomial", 1), "lower n_max"),
    ],
)
def test_refused(data, noise, words):
    with pytest.raises(ValueError, match=words) as told:
        sm.estimate(data, 2, noise=noise)
    assert told.value.argument == "noise"


def test_doors_that_know_no_law():
    with pytest.raises(ValueError, match="does not know noise"):
        sm.estimate(COUNTS, 2, noise="poisson", method="blocks")
    with pytest.raises(ValueError, match="must be a dict"):
        sm.alignment(COUNTS, COUNTS, noise="poisson")


def test_shapes_of_variances_agree():
    one = sm.estimate(COUNTS, 3, noise=2.0).values
    for variance in (np.full(20, 2.0), np.full((30, 20), 2.0)):
        np.testing.assert_allclose(sm.estimate(COUNTS, 3, noise=variance).values, one)
    np.testing.assert_allclose(
        sm.estimate(COUNTS, 3, noise=0.0).values, sm.estimate(COUNTS, 3).values, rtol=1e-9
    )


@pytest.mark.parametrize("factor", [1e-120, 2.0**-30, 1.0, 3e5, 1e60])
def test_scaling(factor):
    "Variances scale with the data; counts times a constant are other counts, or none."
    one = sm.estimate(COUNTS, 2, noise=2.0, population=(40, 20)).values
    some = sm.estimate(COUNTS * factor, 2, noise=2.0 * factor**2, population=(40, 20))
    for n, power in enumerate((2, 4)):
        if 1e-280 < factor**power < 1e280:
            np.testing.assert_allclose(some.values[n] / factor**power, one[n], rtol=1e-9)


def test_large_counts():
    "Falling powers of any number of counts, whatever the unit of the source."
    large = np.random.default_rng(4).poisson(1e6, (20, 12)).astype(float)
    found = sm.estimate(large, 1, noise="poisson", center=False).values[0]
    np.testing.assert_allclose(found, (large * (large - 1)).mean(), rtol=1e-12)


def test_high_orders_by_other_families():
    "Only m(1) uses an entry twice, so that every family knows the orders beyond."
    with_law = sm.estimate(COUNTS, 6, noise="poisson", stderr=False)
    without = sm.estimate(COUNTS, 6, stderr=False)
    np.testing.assert_allclose(with_law.values[1:], without.values[1:], rtol=1e-9)
    assert with_law.values[0] < without.values[0] - 2
    assert with_law.methods[0] == "all_cycles"


def test_it_says_what_was_removed():
    assert "noise counts as dimensions" in str(sm.estimate(COUNTS, 2))
    text = str(sm.estimate(COUNTS, 2, noise="poisson"))
    assert "noise counts as dimensions" not in text and "a gain that features share" in text
    assert sm.estimate(COUNTS, 2, noise="poisson").to_dict()["settings"]["noise"]


def test_command_line(tmp_path, capsys):
    from spectral_moments.io.command_line import main

    path = str(tmp_path / "x.npy")
    np.save(path, COUNTS)
    laws = {"poisson": "poisson", "binomial:30": ("binomial", 30), "2.5": 2.5}
    for text, noise in laws.items():
        assert main(["estimate", path, "--noise", text, "--n-max", "2"]) == 0
        m = sm.estimate(COUNTS, 2, noise=noise).values
        assert f"{m[0]:.4g}" in capsys.readouterr().out
    assert main(["estimate", path, "--noise", "binomial:2"]) != 0
    assert "--noise" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["estimate", path, "--noise", "gamma"])


# --- the noise itself ---------------------------------------------------------------------


def test_check_of_poisson_noise():
    "The law is kept where it holds, at its level, and dropped where it does not."
    rng, rate = np.random.default_rng(6), spikes(100, 40, np.random.default_rng(7))
    kept = [sm.noise_check(rng.poisson(rate, (2, 100, 40))).holds for _ in range(60)]
    assert np.mean(kept) > 0.85
    gain = rng.gamma(25, 1 / 25, (3, 100, 1))
    assert not sm.noise_check(rng.poisson(gain * rate)).holds
    wide = rng.negative_binomial(2, 2 / (2 + rate), (3, 100, 40))
    check = sm.noise_check(wide)
    assert not check.holds and len(check.odd) > 20
    assert "does not hold" in str(check) and check.plot() is not None
    narrow = rng.binomial(4, rate / 4.5, (3, 100, 40))
    assert sm.noise_check(narrow).single.value < 0.7
    one = sm.noise_check(rng.poisson(rate))
    assert one.holds is None and "needs two trials" in str(one)
    assert sm.noise_check(narrow[0]).holds is False
    gaps = rng.poisson(rate, (3, 100, 40)).astype(float)
    gaps[2, :50] = np.nan
    assert 0.9 < sm.noise_check(gaps).single.value < 1.1
    with pytest.raises(ValueError, match="counts"):
        sm.noise_check(rate)


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
        found.append(sm.noise_moments(trials))
    values = np.array([x.estimate.values for x in found])
    truth = [3, 3, 4, 3, 3 * 0.49]
    spread = values.std(axis=0, ddof=1)
    assert (abs(values.mean(0) - truth) < 4 * spread / 26**0.5).all()
    errors = np.sqrt(np.mean([x.estimate.stderr**2 for x in found], axis=0))
    assert (0.7 * spread < errors).all() and (errors < 1.8 * spread).all()
    ends = [x.alignment.interval() for x in found]
    assert np.mean([low < 0.49 < high for low, high in ends]) > 0.8
    assert found[0].estimate.words[-1] == ("signal", "noise")


def test_noise_of_the_features_measured():
    rng = np.random.default_rng(9)
    trials, v = shared_noise(120, 12, 4, 0.7, rng)
    found = sm.noise_moments(trials, population=(None, 12))
    cov = (v @ v.T + np.eye(12)) / 12
    truth = [np.trace(cov), np.trace(cov @ cov)]
    np.testing.assert_allclose(found.estimate.values[2:4], truth, rtol=0.3)
    error = found.estimate.stderr[2:4]
    assert (abs(found.estimate.values[2:4] - truth) < 4 * error).all()
    gaps = trials.copy()
    gaps[3, ::7] = np.nan
    some = sm.noise_moments(gaps).estimate
    assert (abs(some.values[2:4] - [4, 3]) < 5 * some.stderr[2:4] + 1).all()
    for bad, words in ((trials[0], "one trial"), (trials[:1], "one trial")):
        with pytest.raises(ValueError, match=words):
            sm.noise_moments(bad)
    with pytest.raises(ValueError, match="n_max"):
        sm.noise_moments(trials, 1)
    grouped = sm.noise_moments(trials, groups=np.repeat(np.arange(30), 4))
    assert grouped.estimate.axes["inputs"].deviations.shape[1] == 30


def test_errors_of_many_rows_in_groups():
    "Masks of one turn of a loop do not reach the next (600 rows, two turns)."
    x = np.random.default_rng(0).standard_normal((600, 80))
    groups = np.repeat(range(150), 4)
    found = sm.estimate(x, 2, groups=groups, center=False)
    keep = groups != 7
    without = sm.estimate(x[keep], 2, groups=groups[keep], center=False, stderr=False)
    change = without.values - found.values
    np.testing.assert_allclose(found.axes["inputs"].deviations[:, 7], change, rtol=1e-6)


@pytest.mark.parametrize("options", [{}, dict(population=(None, 20)), dict(center=False)])
@pytest.mark.parametrize("noise", ["poisson", 2.0])
def test_sums_agree(noise, options):
    "Sums over rows know the law as all cycles do."
    ways = [
        sm.estimate(COUNTS, 3, method=method, noise=noise, stderr=False, **options).values
        for method in ("sums", "all_cycles")
    ]
    np.testing.assert_allclose(*ways, rtol=1e-6, atol=1e-9)
