"""Alignment of systems: unbiased by enumeration, options, streams, and what is refused."""

import itertools
import json
import math
import warnings

import numpy as np
import pytest
from conftest import load_study, normal, silent

import spectral_moments as sm
from spectral_moments.engine.cross import cross_table
from spectral_moments.processes import LinearPair, RBFPair
from spectral_moments.similarity import (
    AlignmentStream,
    alignment,
    alignments,
    corrected_ratio,
    cross_moments,
)
from spectral_moments.engine.sources import open_source


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sm.EstimateWarning)
        yield


def traces(phi, psi, **options):
    "Numerator and denominators."
    found = alignment(phi, psi, **options)
    return np.array([found.numerator.value, *(d.value for d in found.denominators)])


def population(one, two, center=True):
    "The three traces of a finite population, features drawn independently."
    P = len(one)
    x, y = (z - z.mean(0) if center else z for z in (one, two))
    pairs = ((x, y), (x, x), (y, y))
    return np.array([np.mean((a.T @ b / P) ** 2) for a, b in pairs])


# --- unbiased, exactly --------------------------------------------------------------------


@pytest.mark.parametrize("center", [True, False])
def test_traces_are_unbiased_over_every_sample(center):
    rng = np.random.default_rng(0)
    one, two = rng.integers(-3, 4, (2, 2)) + 0.5, rng.integers(-3, 4, (2, 3)) * 1.0
    P, total, count = 4 if center else 2, 0.0, 0
    for rows in itertools.product(range(2), repeat=P):
        for a in itertools.product(range(2), repeat=2):
            for b in itertools.product(range(3), repeat=2):
                phi, psi = one[np.ix_(rows, a)], two[np.ix_(rows, b)]
                total = total + traces(phi, psi, center=center)
                count += 1
    np.testing.assert_allclose(total / count, population(one, two, center), rtol=1e-10)


def test_shared_features_are_unbiased_over_every_sample():
    rng = np.random.default_rng(1)
    one, two = rng.integers(-3, 4, (2, 2, 3)) + 0.5
    found = {True: 0.0, False: 0.0}
    samples = itertools.product(
        itertools.product(range(2), repeat=4), itertools.product(range(3), repeat=2)
    )
    samples = [*samples]
    for rows, a in samples:
        phi, psi = one[np.ix_(rows, a)], two[np.ix_(rows, a)]
        for shared in found:
            found[shared] = found[shared] + traces(phi, psi, shared_features=shared)
    truth = population(one, two)
    np.testing.assert_allclose(found[True] / len(samples), truth, rtol=1e-10)
    assert abs(found[False][0] / len(samples) - truth[0]) > 0.05 * truth[0]


def test_trials_remove_noise_that_both_systems_share():
    "All noise of one trial is +1 or -1 for an input, in all features of both systems."
    phi, psi = normal((4, 2), 0), normal((4, 2), 1)
    total, single, signs = 0.0, 0.0, [*itertools.product((-1.0, 1.0), repeat=4)]
    for one, two in itertools.product(signs, signs):
        noise = np.array([one, two])[:, :, None]
        total = total + traces(phi + noise, psi + noise)
        single = single + traces(phi + noise[0], psi + noise[0])
    np.testing.assert_allclose(total / len(signs) ** 2, traces(phi, psi), rtol=1e-9)
    assert single[0] / len(signs) ** 2 > traces(phi, psi)[0] + 0.5


# --- values, options ----------------------------------------------------------------------


def test_scales_offsets_and_orders_do_not_matter():
    phi, psi = LinearPair(5, 0.5).sample(30, 12, 20, 0)
    one = alignment(phi, psi)
    for other in (
        alignment(1e150 * phi, 1e-150 * psi),
        alignment(phi + 7, -psi),
        alignment(psi, phi),
        alignment(phi[::-1, ::-1], psi[::-1]),
    ):
        np.testing.assert_allclose(other.value, one.value, rtol=1e-7)
        np.testing.assert_allclose(other.stderr, one.stderr, rtol=1e-6)
    turned = alignment(psi, phi)
    np.testing.assert_allclose(turned.stderr_columns, one.stderr_columns[::-1], rtol=1e-8)


def test_a_system_is_aligned_with_itself():
    phi = normal((20, 8))
    found = alignments({"a": phi, "b": phi[:, ::-1]})
    np.testing.assert_allclose(np.diag(found.values), 1, rtol=1e-12)
    np.testing.assert_allclose(np.diag(found.stderr), 0, atol=1e-7)
    same = alignment(phi, phi, shared_features=True)
    np.testing.assert_allclose([same.value, same.stderr], [1, 0], atol=1e-7)


def test_errors_have_three_parts():
    found = alignment(*LinearPair(5, 0.5).sample(30, 12, 20, 0))
    parts = np.hypot(found.stderr_rows, np.hypot(*found.stderr_columns))
    np.testing.assert_allclose(parts, found.stderr, rtol=1e-10)
    assert len(alignment(*normal((2, 9, 5)), shared_features=True).stderr_columns) == 1


@pytest.mark.parametrize("shape", [(12, 30, 40), (40, 10, 12), (20, 8, 50)])
def test_three_ways_to_make_the_products_agree(shape):
    P, Q1, Q2 = shape
    phi, psi = LinearPair(6, 0.5).sample(P, Q1, Q2, 0)
    found = cross_table(
        {"a": open_source(phi), "b": open_source(psi)}, [("a", "b"), ("a", "a")], rng=None
    )["a", "b"]
    K, L = (
        z @ z.T * 4.0 ** -open_source(x).exponent
        for x in (phi, psi)
        for z in [x - x.mean(0)]
    )
    k, m = np.diag(K), np.diag(L)
    tr = (K * L).sum() - P / (P - 2) * k @ m + k.sum() * m.sum() / ((P - 1) * (P - 2))
    np.testing.assert_allclose(found.value, tr / (P * (P - 3) * Q1 * Q2), rtol=1e-9)


def test_moments_agree_with_those_of_one_system():
    phi = normal((14, 9)) + 1
    found = cross_moments(phi, normal((14, 6), 1), ["aa", "aaa", "aaaa"])
    one = sm.estimate(phi, 4, method="all_cycles", center=True)
    np.testing.assert_allclose(found.values, one.values[1:], rtol=1e-8)
    np.testing.assert_allclose(found.stderr[1:], one.stderr[2:], rtol=1e-6)


def test_words_know_their_systems():
    phi, psi = normal((14, 9)) + 1, normal((14, 6), 1)
    words = ("ab", "ba", "aab", "aba", "baa", "abb", "bba")
    one, other = cross_moments(phi, psi, words), cross_moments(psi, phi, words)
    np.testing.assert_allclose(one.values[2:5], one.values[2], rtol=1e-8)
    np.testing.assert_allclose(one.stderr[2:5], one.stderr[2], rtol=1e-6)
    np.testing.assert_allclose(one["aab"].value, other["bba"].value, rtol=1e-8)
    np.testing.assert_allclose(one["aab"].stderr, other["abb"].stderr, rtol=1e-6)
    assert "aab" in str(one)


def test_five_letters():
    word, x = "aabab", {"a": normal((5, 3)), "b": normal((5, 2), 1)}
    rows = np.array([*itertools.permutations(range(5))]).T
    total, count = 0.0, 0
    for columns in itertools.product(*(range(x[w].shape[1]) for w in word)):
        if len(set(zip(word, columns))) == 5:
            steps = [x[w][:, c] for w, c in zip(word, columns)]
            terms = [steps[k][rows[k]] * steps[k][rows[k - 4]] for k in range(5)]
            total, count = total + np.prod(terms, axis=0).mean(), count + 1
    found = cross_moments(x["a"], x["b"], word, center=False)
    np.testing.assert_allclose(found.values, total / count, rtol=1e-8)
    phi, psi = LinearPair(2, 0.4, exponent=0).sample(200, 60, 60, 1)
    found = cross_moments(phi + 5, psi - 3, word, random_state=0)[word]
    same = cross_moments(phi, psi, word, random_state=0)[word]
    np.testing.assert_allclose(found, same, rtol=1e-8)
    plain = cross_moments(phi, psi, word, center=False)[word]
    assert abs(found.value - plain.value) < 0.5 * plain.value


def test_gaps_without_centring_and_with():
    pair = LinearPair(4, 0.6, exponent=0)
    rng, found = np.random.default_rng(0), []
    for seed in range(60):
        phi, psi = pair.sample(40, 15, 15, seed)
        for x in (phi, psi):
            x[rng.random(x.shape) < 0.15] = np.nan
        found.append(traces(phi + 3, psi, random_state=0)[0])
    error = np.std(found, ddof=1) / math.sqrt(60)
    assert abs(np.mean(found) - pair.moment("ab")) < 4 * error
    full = normal((9, 5)), normal((9, 6), 1)
    hole = full[0].copy()
    hole[0, 0] = np.nan
    near = traces(hole, full[1], center=False)
    assert np.isfinite(near).all() and near[2] == traces(*full, center=False)[2]


# --- bias and coverage --------------------------------------------------------------------


def test_bias_and_coverage():
    pair, found = RBFPair(2, (0.5, 2.0)), []
    for seed in range(150):
        result = alignment(*pair.sample(50, 30, 40, seed))
        found.append([result.value, result.stderr, result.ratio])
    value, error, _ = np.array(found).T
    truth = pair.alignment()
    assert abs(value.mean() - truth) < 0.25 * value.std()
    assert np.mean(abs(value - truth) < 1.96 * error) > 0.88
    assert 0.85 < math.sqrt(np.mean(error**2)) / value.std() < 1.7


def test_corrected_ratio():
    zero = np.zeros((3, 3))
    assert corrected_ratio([1.0, 4.0, 1.0], zero) == (0.5, 0.0)
    assert math.isnan(corrected_ratio([1.0, -4.0, 1.0], zero).value)
    assert math.isnan(corrected_ratio([1.0, -4.0, -1.0], zero).value)  # no silent root
    plain = corrected_ratio([1.0, 4.0, 1.0], np.full((3, 3), np.nan))
    assert plain.value == 0.5 and math.isnan(plain.stderr)


# --- several systems, streams -------------------------------------------------------------


def test_several_systems_are_pairs():
    phi, psi = LinearPair(5, 0.5).sample(30, 12, 20, 0)
    chi = normal((30, 7))
    found = alignments({"phi": phi, "psi": psi, "chi": chi})
    for x, y, pair in (("phi", "psi", (phi, psi)), ("chi", "phi", (chi, phi))):
        alone = alignment(*pair)
        np.testing.assert_allclose(found[x, y].value, alone.value, rtol=1e-10)
        np.testing.assert_allclose(found[x, y].stderr, alone.stderr, rtol=1e-8)
    assert found["chi", "phi"] is found["phi", "chi"]
    assert found.values.shape == found.stderr.shape == (3, 3)
    assert "chi" in str(found) and found.plot().get_xticks().size == 3


def test_stream_of_one_batch_is_the_whole_and_scales_do_not_matter():
    phi, psi = LinearPair(5, 0.5).sample(60, 12, 20, 0)
    whole = alignments({"a": phi, "b": psi})["a", "b"]
    one = AlignmentStream().update({"a": phi, "b": psi}).estimate()["a", "b"]
    np.testing.assert_allclose([one.value, one.stderr], [whole.value, whole.stderr])
    streams = AlignmentStream(), AlignmentStream()
    for k in range(0, 60, 5):
        part = slice(k, k + 5)
        streams[0].update({"a": phi[part], "b": psi[part]})
        streams[1].update({"a": 1e3 * phi[part], "b": psi[part] * 1e-9})
    first, second = (s.estimate()["a", "b"] for s in streams)
    np.testing.assert_allclose(second.value, first.value, rtol=1e-8)
    np.testing.assert_allclose(second.stderr, first.stderr, rtol=1e-6)
    assert streams[0].n_rows == 60 and streams[0].n_batches == 12


def test_merge_is_the_same_as_one_stream_after_the_other():
    phi, psi = LinearPair(5, 0.5).sample(60, 12, 20, 0)
    parts = [{"a": phi[k : k + 6] * 2.0**k, "b": psi[k : k + 6]} for k in range(0, 60, 6)]
    one, left, right = AlignmentStream(), AlignmentStream(), AlignmentStream()
    for k, part in enumerate(parts):
        one.update(part)
        (left if k < 4 else right).update(part)
    both = left.merge(right)
    assert left.n_batches == 4 and both.n_batches == 10
    expected, found = one.estimate()["a", "b"], both.estimate()["a", "b"]
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-9)
    np.testing.assert_allclose(found.stderr, expected.stderr, rtol=1e-6)
    assert AlignmentStream().merge(one).n_rows == one.merge(AlignmentStream()).n_rows == 60


def test_batches_of_four_are_unbiased():
    pair = LinearPair(3, 0.6, exponent=0)
    phi, psi = pair.sample(4000, 30, 30, 0)
    stream = AlignmentStream()
    for k in range(0, 4000, 4):
        stream.update({"a": phi[k : k + 4], "b": psi[k : k + 4]})
    found, whole = stream.estimate()["a", "b"], alignment(phi, psi)
    assert abs(found.value - whole.value) < 4 * found.stderr_rows


# --- answers and refusals -----------------------------------------------------------------


def test_constant_and_hopeless_systems_have_no_alignment():
    phi = normal((20, 6))
    for constant in (0.0, 0.1, 1e8 / 3):
        with pytest.warns(sm.EstimateWarning, match="same for all inputs"):
            found = alignment(phi, np.full((20, 5), constant))
        assert math.isnan(found.value) and math.isnan(found.stderr)
        json.dumps(found.to_dict(), allow_nan=False)
        found.plot()
    noise = next(
        x for x in (normal((8, 6), seed) for seed in range(99)) if traces(x, phi[:8])[1] < 0
    )
    with pytest.warns(sm.EstimateWarning, match="not positive"):
        assert math.isnan(alignment(noise, phi[:8]).value)


def test_four_inputs_give_a_value_without_an_error():
    phi, psi = LinearPair(2, 0.3).sample(4, 300, 300, 0)
    with pytest.warns(sm.EstimateWarning, match="at least 5 inputs"):
        found = alignment(phi, psi)
    assert math.isfinite(found.value) and math.isnan(found.stderr)


@pytest.mark.parametrize(
    ("phi", "psi", "options", "message"),
    [
        (normal((9, 4)), normal((8, 4)), {}, "phi has 9 rows and psi has 8"),
        (normal((3, 4)), normal((3, 4)), {}, "4 are needed"),
        (normal((1, 4)), normal((1, 4)), {"center": False}, "2 are needed"),
        (normal((9, 4)), normal((9, 1)), {}, "psi has 1 column"),
        (normal((9, 4)), normal((9, 5)), {"shared_features": True}, "the same feature"),
        (normal((9, 4)), np.full((9, 4), np.nan), {}, "psi has only NaN"),
        (normal((9, 4)), np.full((9, 4), np.inf), {}, "psi has infinite"),
        (normal((9, 4)), "psi.npy", {}, "psi is a str"),
        (normal((9, 4)), normal((9, 4)), {"center": 1}, "center must be"),
        (normal((9, 4)), normal((9, 4)), {"random_state": "x"}, "random_state"),
    ],
)
def test_what_is_refused(phi, psi, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        alignment(phi, psi, **options)


def test_what_else_is_refused():
    x = normal((9, 4))
    for systems in ([x, x], {"a": x}, {1: x, 2: x}):
        with pytest.raises(TypeError):
            alignments(systems)
    for words in (["abc"], [""], ["ababab"], ["aaaaa"], [3]):
        with pytest.raises(ValueError, match="word"):
            cross_moments(x, x, words)
    stream = AlignmentStream().update({"a": x, "b": x})
    for systems in ({"a": x, "b": x[:, :3]}, {"a": x, "c": x}, {"b": x, "a": x}):
        with pytest.raises(ValueError, match="every batch"):
            stream.update(systems)
    assert stream.n_batches == 1
    with pytest.raises(ValueError, match="options"):
        stream.merge(AlignmentStream(center=False))
    with pytest.raises(TypeError, match="AlignmentStream"):
        stream.merge(3)
    with pytest.raises(ValueError, match="no batch"):
        AlignmentStream().estimate()


def test_unequal_trials():
    phi, psi = LinearPair(4, 0.5).sample(30, 10, 12, 0)
    noisy = phi + 0.1 * normal((3, 30, 10)), psi + 0.1 * normal((6, 30, 12), 1)
    found = alignment(*noisy, random_state=0)
    assert found.shapes == ((3, 30, 10), (6, 30, 12)) and "3 and 6 trials" in str(found)
    assert abs(found.value - alignment(phi, psi).value) < found.stderr


def test_the_study_runs():
    study = load_study("alignment")
    from common import Run  # what the studies share

    study.SHAPES = study.SHAPES[1:3]
    found = study.measure(Run({"n_matrices": 5}, 0, report=silent))
    for part in found["pairs"].values():
        assert len(part["coverage"]) == len(study.SHAPES)
