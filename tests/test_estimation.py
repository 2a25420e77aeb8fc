"""The calls: every kind of array, exact expectations, the estimators of the paper."""

import itertools
import math
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from conftest import cycle_mean, normal, rational

import spectral_moments as sm
from spectral_moments import all_cycles, estimate, increasing, kong_valiant, naive
from spectral_moments.checks import ArgumentError
from spectral_moments.engine.data import Recording, open_data
from spectral_moments.engine.methods import run_plan
from spectral_moments.processes import Discrete
from spectral_moments.results import power_words
from spectral_moments.teaching.cycles import mean_over_disjoint

PHI = sm.Linear(3, scale=0.3).sample(24, 30, random_state=1)
ESTIMATORS = (naive, kong_valiant, increasing, all_cycles)

# --- any array ----------------------------------------------------------------------------

WHOLE = np.random.default_rng(0).integers(-9, 9, (14, 11))
ARRAYS = {
    "list": WHOLE.tolist(),
    "int8": WHOLE.astype(np.int8),
    "uint16": (WHOLE + 9).astype(np.uint16),
    "float32": WHOLE.astype(np.float32),
    "longdouble": WHOLE.astype(np.longdouble),
    "columns first": np.asfortranarray(WHOLE, dtype=float),
    "big endian": WHOLE.astype(">f8"),
    "frame": pd.DataFrame(WHOLE),
    "tensor": torch.tensor(WHOLE, dtype=torch.float32),
    "masked": np.ma.masked_array(WHOLE, mask=False),
    "recording": Recording(WHOLE),
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_any_array(kind):
    x = ARRAYS[kind]
    before = np.asarray(x.values if kind in ("frame", "recording") else x).copy()
    shift = 9 if kind == "uint16" else 0
    expected = estimate(WHOLE.astype(float) + shift, 3)
    est = estimate(x, 3)
    np.testing.assert_allclose(est.values, expected.values, rtol=1e-12)
    np.testing.assert_allclose(est.stderr, expected.stderr, rtol=1e-10)
    after = x.values if kind in ("frame", "recording") else x
    np.testing.assert_array_equal(np.asarray(after), before)  # never modified


@pytest.mark.parametrize("function", [*ESTIMATORS, estimate])
def test_bad_arrays_and_orders(function):
    bad = [np.ones(3), [[np.inf, 1]], [[1j]], np.ones((0, 2)), "phi", None, [[1, 2], [3]]]
    bad += [
        scipy.sparse.eye(3),
        pd.DataFrame({"a": ["x"]}),
        {"a": PHI},
    ]
    for phi in bad:
        with pytest.raises(ArgumentError) as error:
            function(phi, 1)
        assert error.value.argument == "phi" and str(error.value).startswith("phi ")
    for n_max in (0, -1, 31, 2.0, "2", True, None):
        with pytest.raises(ArgumentError) as error:
            function(PHI, n_max)
        assert error.value.argument == "n_max"


def test_options_of_the_estimators():
    with pytest.raises(ArgumentError, match="must be 'rows' or 'columns'"):
        kong_valiant(PHI, 2, sampled="row")
    with pytest.raises(ArgumentError, match="above 4"):
        all_cycles(PHI, 5)
    with pytest.raises(ArgumentError, match="center must be True or False"):
        all_cycles(PHI, 2, center=1)
    with pytest.raises(ArgumentError, match="n_permutations"):
        increasing(PHI, 2, n_permutations=-1)


@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (1, 1)])
def test_one_row_or_column(shape):
    phi = normal(shape)
    est = estimate(phi, 1, center=False)
    assert np.isinf(est.stderr[0]) and est.values[0] == pytest.approx((phi**2).mean())


@pytest.mark.filterwarnings("ignore")
def test_seeds_and_threads():
    gaps = PHI.copy()
    gaps[2, 3] = np.nan
    for x, n_max in ((PHI, 6), (gaps, 3)):
        one, two, three = (estimate(x, n_max, n_jobs=jobs) for jobs in (1, 3, None))
        for other in (two, three):
            np.testing.assert_array_equal(one.values, other.values)
            np.testing.assert_array_equal(one.stderr, other.stderr)
        other = estimate(x, n_max, random_state=1)
        exact = [k for k, label in enumerate(one.methods) if label == "all cycles"]
        np.testing.assert_array_equal(one.values[exact], other.values[exact])
        assert one.values[-1] != other.values[-1]
        generator = np.random.default_rng(0)
        again = estimate(x, n_max, random_state=generator)
        np.testing.assert_array_equal(again.values, one.values)
        assert estimate(x, n_max, random_state=generator).values[-1] != one.values[-1]
    assert estimate(PHI, 6, random_state=None).values[-1] != one.values[-1]


# --- exact expectations -------------------------------------------------------------------

PROCESS = Discrete([[1.0, -1.0, 2.0], [0.5, 3.0, 1.0]], input_probs=[0.6, 0.4])
CENTRED = PROCESS.table - PROCESS.input_probs @ PROCESS.table
TRUTH = PROCESS.moments(2)
CENTRED_TRUTH = Discrete(CENTRED, input_probs=PROCESS.input_probs).moments(2)


def moments(phi, method="auto", n_permutations=None, **options):
    "What `estimate` gives, without its notes, which take long."
    data, words = open_data({"phi": phi}, **options), tuple(power_words(2))
    rng, draws = np.random.default_rng(0), dict(n_permutations=n_permutations)
    found = run_plan(data, words, method=method, deviations=False, rng=rng, **draws)
    return np.ldexp(found.values, data.matrices["phi"].scale_exponent * np.array([2, 4]))


def expected(P, Q=2, prepare=lambda phi: phi, **options):
    "The mean over every sample."
    return PROCESS.expectation(lambda phi: moments(prepare(phi), **options), P, Q)


@pytest.mark.filterwarnings("ignore")
def test_unbiased():
    np.testing.assert_allclose(expected(3, center=False), TRUTH, rtol=1e-10)
    np.testing.assert_allclose(expected(4), CENTRED_TRUTH, rtol=1e-9)
    for estimator in (naive, increasing, all_cycles):
        mean = PROCESS.expectation(partial(estimator, n_max=2), 3, 2)
        biased = estimator is naive  # the negative control
        assert np.allclose(mean, TRUTH, rtol=1e-10) != biased
    by_pairs = expected(4, method="increasing", n_permutations=1)
    np.testing.assert_allclose(by_pairs, CENTRED_TRUTH, rtol=1e-9)


@pytest.mark.filterwarnings("ignore")
def test_unbiased_given_the_missing_entries():
    def holes(phi):
        phi = phi.copy()
        phi[0, 1] = np.nan
        return phi

    np.testing.assert_allclose(expected(5, prepare=holes), CENTRED_TRUTH, rtol=1e-9)
    np.testing.assert_allclose(expected(3, prepare=holes, center=False), TRUTH, rtol=1e-9)


@pytest.mark.filterwarnings("ignore")
def test_unbiased_with_repeats():
    "Signs of the noise are enumerated: +-1 in each entry of two repeats."
    table, total = np.array([[1.0, -1.0], [0.5, 3.0]]), 0.0
    signs = list(itertools.product((-1.0, 1.0), repeat=8))
    for noise in signs:
        repeats = table + np.reshape(noise, (2, 2, 2))
        total = total + moments(repeats, trials=True, center=False)
    exact = moments(table, center=False)
    np.testing.assert_allclose(total / len(signs), exact, rtol=1e-10)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("center", "sizes"), [(False, (1, 3)), (True, (2, 1, 1, 1))])
def test_a_group_is_drawn_then_an_input(center, sizes):
    """Brute force: films of two kinds with frames of their own, of unequal length, each
    of either kind with the same probabilities."""
    kinds = [np.array([[1.0, -1.0], [2.0, 0.5]]), np.array([[0.0, 1.5], [-1.0, 1.0]])]
    probs, groups = (0.6, 0.4), np.repeat(np.arange(len(sizes)), sizes)
    frames, weights = np.concatenate(kinds), np.repeat(probs, 2) / 2
    table = frames - weights @ frames if center else frames
    truth, mean, plain = Discrete(table, input_probs=weights).moments(2), 0.0, 0.0
    for kind in itertools.product((0, 1), repeat=len(sizes)):
        for frame in itertools.product((0, 1), repeat=len(groups)):
            x = np.array([kinds[kind[g]][f] for g, f in zip(groups, frame)])
            weight = math.prod(probs[k] for k in kind) / 2 ** len(groups)
            for columns, share in (([0, 0], 0.25), ([0, 1], 0.5), ([1, 1], 0.25)):
                y, part = x[:, columns], weight * share
                mean = mean + part * moments(y, center=center, groups=groups)
                if not center:
                    plain = plain + part * moments(y, center=False)
    np.testing.assert_allclose(mean, truth, rtol=1e-8)
    if not center:  # negative control: the frames of a film are alike
        assert abs(plain[1] / truth[1] - 1) > 0.05


def test_unbiased_for_a_finite_layer():
    "Every choice of two of four features, without replacement."
    layer = normal((3, 4), 5)
    K = layer @ layer.T / 4
    exact = (K**2)[~np.eye(3, dtype=bool)].mean()  # inputs remain a sample
    pairs = list(itertools.combinations(range(4), 2))
    found = [moments(layer[:, list(a)], population=4, center=False) for a in pairs]
    np.testing.assert_allclose(
        np.mean(found, axis=0), [(layer**2).mean(), exact], rtol=1e-10
    )
    wrong = [moments(layer[:, list(a)], center=False) for a in pairs]
    assert abs(np.mean(wrong, axis=0)[1] / exact - 1) > 0.1  # of infinitely many


def test_unbiased_for_counts():
    "Poisson noise of a rate of two, enumerated up to 16 counts; one input, one feature."
    k = np.arange(17)
    law = np.array([math.exp(-2) * 2.0**j / math.factorial(j) for j in k])
    options = dict(center=False, noise="poisson", stderr=False)
    found = [estimate([[float(j)]], 1, **options).values[0] for j in k]
    assert law @ found == pytest.approx(4.0, rel=1e-8)


# --- the estimators of the paper ----------------------------------------------------------


def test_exact_in_fractions():
    for P, Q, n in ((4, 4, 4), (5, 4, 3), (3, 7, 3), (7, 2, 2)):
        phi = normal((P, Q), P + Q)
        exact = float(mean_over_disjoint(rational(phi), n))
        assert all_cycles(phi, n)[-1] == pytest.approx(exact, rel=1e-9)
        assert exact == pytest.approx(cycle_mean({"a": phi}, "a" * n), rel=1e-9)


def one_sided(phi, n, sampled):
    "Products around increasing rows, all columns; in fractions."
    phi = rational(phi if sampled == "rows" else phi.T)
    K = phi.dot(phi.T) / Fraction(phi.shape[1])
    each = [
        math.prod(K[i[k - 1], i[k]] for k in range(n))
        for i in itertools.combinations(range(len(K)), n)
    ]
    return float(sum(each) / len(each))


def test_values_of_the_paper():
    phi = normal((6, 5), 3) + 0.5
    K = phi @ phi.T / phi.size
    power = np.linalg.matrix_power
    exact = [np.trace(power(K, n)) for n in (1, 2, 3)]
    np.testing.assert_allclose(naive(phi, 3), exact, rtol=1e-12)
    for sampled in ("rows", "columns"):
        exact = [one_sided(phi, n, sampled) for n in (1, 2, 3)]
        np.testing.assert_allclose(kong_valiant(phi, 3, sampled=sampled), exact, rtol=1e-10)
    centred = all_cycles(phi, 2, center=True)
    np.testing.assert_allclose(centred, estimate(phi, 2).values, rtol=1e-12)


@pytest.mark.parametrize("T", [2, 3, 4, 5])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_equal_repeats_are_one_matrix(estimator, T):
    phi = normal((8, 6), 5) + 0.5
    repeats = normal((T, 8, 6), 4)[:3]  # in any order: more of them are split at random
    one, two = (estimator(x, 3, trials=True) for x in (repeats, repeats[::-1]))
    np.testing.assert_allclose(one, two, rtol=1e-9)
    value = estimator(np.stack([phi] * T), 3, trials=True)
    np.testing.assert_allclose(value, estimator(phi, 3), rtol=1e-9)
    np.testing.assert_array_equal(estimator(phi[None], 3, trials=True), estimator(phi, 3))


def test_gradients_of_all_cycles():
    "Automatic differentiation against differences."
    phi = normal((7, 6), 6)
    x = torch.tensor(phi, requires_grad=True)
    for center in (False, True):
        value = all_cycles(x, 3, center=center)
        (gradient,) = torch.autograd.grad(value[2], x)
        step = np.zeros_like(phi)
        step[2, 3] = 1e-5
        ends = [all_cycles(phi + sign * step, 3, center=center)[2] for sign in (1, -1)]
        slope = (ends[0] - ends[1]) / 2e-5
        assert gradient[2, 3].item() == pytest.approx(slope, rel=1e-5, abs=1e-9)
    assert not isinstance(estimate(x, 2).values, torch.Tensor)
    for function in (naive, kong_valiant):  # arrays, whatever they are given
        np.testing.assert_allclose(function(x, 3), function(phi, 3), rtol=1e-12)


def test_what_is_advised_can_be_done():
    "The dimension needs order 2; no smaller order gives it."
    x = normal((30, 20), 7)
    needed = r"needs 4 inputs \(or center=False\); there are 3$"
    with pytest.raises(ValueError, match=needed):
        sm.participation_ratio(x[:3])
    assert sm.participation_ratio(x[:3], center=False) is not None
    with pytest.raises(ValueError, match="needs 6 inputs .* use a smaller n_max"):
        estimate(x[:5], 3)
    assert len(estimate(x[:5], 2).values) == 2
