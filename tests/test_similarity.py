"""Alignments: the definition, unbiased by enumeration, permutation test, best, refusals."""

import itertools
import math
import pickle
import re

import numpy as np
import pytest
from conftest import normal

import spectral_moments as sm
from spectral_moments import similarity
from spectral_moments.similarity import (
    alignment,
    alignment_from_kernels,
    alignments,
)


def linear_pair(P, Q1, Q2, angle, seed, dim=4):
    "Two linear systems of `dim` equal eigenvalues with the alignment cos(angle)^2."
    rng = np.random.default_rng(seed)
    x, own = rng.standard_normal((2, P, dim))
    y = math.cos(angle) * x + math.sin(angle) * own
    return x @ rng.standard_normal((dim, Q1)), y @ rng.standard_normal((dim, Q2))


def same(found, other, rtol=1e-8):
    "Assert that two alignments have the same value and error."
    expected = [other.value, other.stderr]
    np.testing.assert_allclose([found.value, found.stderr], expected, rtol=rtol, atol=1e-9)


def traces(phi, psi, **options):
    "Return the estimates of tr T1 T2, tr T1^2 and tr T2^2; 0 where lost to rounding."
    values = alignment(phi, psi, stderr=False, **options).estimate.values
    return np.nan_to_num(values[[1, 0, 2]])


def mean_squared_covariance(phi, psi, same_features, groups, center=True):
    "Return the mean over distinct inputs and features, with all sums written out."
    weight, total, count = 1.0 / np.bincount(groups)[groups], 0.0, 0.0
    for inputs in itertools.permutations(range(len(phi)), 4 if center else 2):
        if len({*groups[list(inputs)]}) < len(inputs):
            continue
        w, (i, j, *others) = weight[list(inputs)].prod(), inputs
        x, y = phi[[i, j]], psi[[i, j]]
        if center:  # differences of two inputs have twice the covariance
            x, y = (x - phi[others]) / math.sqrt(2), (y - psi[others]) / math.sqrt(2)
        products = np.prod(x, axis=0)[:, None] * np.prod(y, axis=0)
        if same_features:
            products = products[~np.eye(len(products), dtype=bool)]
        total, count = total + w * products.mean(), count + w
    return total / count


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("groups", [np.arange(6), np.array([0, 0, 1, 2, 2, 3])])
def test_the_definition(groups, center):
    phi, psi = normal((6, 3)) + 1, normal((6, 2), 1)
    found = traces(phi, psi, groups=groups, center=center)
    pairs = ((phi, psi, False), (phi, phi, True), (psi, psi, True))
    direct = [mean_squared_covariance(*pair, groups, center) for pair in pairs]
    np.testing.assert_allclose(found, direct, rtol=1e-9)
    again = phi + 0.3 * normal((6, 3), 2)
    shared = traces(phi, again, groups=groups, center=center, shared_features=True)
    direct = mean_squared_covariance(phi, again, True, groups, center)
    np.testing.assert_allclose(shared[0], direct, rtol=1e-9)


def population_traces(one, two, center=True):
    "Return the three traces of a population of inputs, features drawn independently."
    x, y = (z - z.mean(0) if center else z for z in (one, two))
    pairs = ((x, y), (x, x), (y, y))
    return np.array([np.mean((a.T @ b / len(one)) ** 2) for a, b in pairs])


@pytest.mark.parametrize("center", [True, False])
def test_unbiased_over_every_sample(center):
    rng = np.random.default_rng(0)
    one, two = rng.integers(-3, 4, (2, 2)) + 0.5, rng.integers(-3, 4, (2, 3)) * 1.0
    total, count = 0.0, 0
    for rows in itertools.product(range(2), repeat=4 if center else 2):
        for a in itertools.product(range(2), repeat=2):
            for b in itertools.combinations_with_replacement(range(3), 2):
                weight = 2 - (b[0] == b[1])  # both orders
                phi, psi = one[np.ix_(rows, a)], two[np.ix_(rows, b)]
                total = total + weight * traces(phi, psi, center=center)
                count += weight
    expected = population_traces(one, two, center)
    np.testing.assert_allclose(total / count, expected, rtol=1e-9)


def test_shared_features_are_unbiased_over_every_sample():
    one, two = np.random.default_rng(1).integers(-3, 4, (2, 2, 3)) + 0.5
    found = {True: 0.0, False: 0.0}
    columns = itertools.product(range(3), repeat=2)
    samples = [*itertools.product(itertools.product(range(2), repeat=4), columns)]
    for rows, a in samples:
        phi, psi = one[np.ix_(rows, a)], two[np.ix_(rows, a)]
        for shared in found:
            found[shared] = found[shared] + traces(phi, psi, shared_features=shared)
    expected = population_traces(one, two)
    np.testing.assert_allclose(found[True] / len(samples), expected, rtol=1e-9)
    assert abs(found[False][0] / len(samples) - expected[0]) > 0.05 * expected[0]


def test_a_finite_layer_is_unbiased_over_its_subsets():
    "All pairs of four units, without replacement: the traces of the layer of four."
    one, two = normal((2, 6, 4))
    pairs = [*itertools.permutations(range(4), 2)]
    found = np.mean(
        [traces(one[:, a], two, population=4) for a in map(list, pairs)], axis=0
    )
    np.testing.assert_allclose(found, traces(one, two, population="all"), rtol=1e-9)
    K, L = one @ one.T, two @ two.T
    whole = alignment(one, two, population="all")
    np.testing.assert_allclose(whole.uncorrected, song(K, L), rtol=1e-9)


def song(K, L):
    "Return the ratio of unbiased HSIC (Song et al. 2012), written as in the paper."

    def hsic(K, L):
        P, K, L = len(K), K - np.diag(np.diag(K)), L - np.diag(np.diag(L))
        middle = K.sum() * L.sum() / ((P - 1) * (P - 2))
        rows = 2 / (P - 2) * (K @ L).sum()
        return (np.trace(K @ L) + middle - rows) / (P * (P - 3))

    return hsic(K, L) / math.sqrt(hsic(K, K) * hsic(L, L))


@pytest.mark.parametrize(
    ("repeats", "center"),
    [((2, 2), True), ((3, 2), False), ((4, 3), False), ((2, 4), False)],
)
def test_trials_remove_noise_that_both_systems_share(repeats, center):
    "The noise of one repeat is +1 or -1 for an input, in all features of both systems."
    inputs, total, single = 4 if center else 2, [], []
    phi, psi = normal((inputs, 2), 0), normal((inputs, 2), 1)
    signs = itertools.product((-1.0, 1.0), repeat=max(repeats) * inputs)
    for noise in map(np.array, signs):
        noise = noise.reshape(-1, inputs, 1)
        both = (x + noise[:T] for x, T in zip((phi, psi), repeats))
        total.append(traces(*both, trials=True, center=center))
        single.append(traces(phi + noise[0], psi + noise[0], center=center))
    exact = traces(phi, psi, center=center)
    np.testing.assert_allclose(np.mean(total, axis=0), exact, rtol=1e-9)
    assert np.mean(single, axis=0)[0] > exact[0] + 0.5


@pytest.mark.parametrize("unit", [1e150, 1e-160])
def test_units_whose_squares_are_beyond_doubles(unit):
    given = dict(zip("ab", linear_pair(30, 12, 20, 0.5, 0)))
    one, other = alignments(given), alignments(given | {"b": unit * given["b"]})
    same(other["a", "b"], one["a", "b"], 1e-6)
    same(other.best(), one.best(), 1e-6)
    same(other.ceiling(), one.ceiling(), 1e-6)
    assert other.permutation_test(19).p_values == one.permutation_test(19).p_values


def test_the_error_is_that_of_literal_deletions():
    phi, psi = linear_pair(40, 15, 25, 0.7, 3)
    found, variance = alignment(phi, psi), 0.0
    ratio = lambda x, y: alignment(x, y, stderr=False).uncorrected
    for left_out in (
        [ratio(np.delete(phi, i, 0), np.delete(psi, i, 0)) for i in range(40)],
        [ratio(np.delete(phi, i, 1), psi) for i in range(15)],
        [ratio(phi, np.delete(psi, i, 1)) for i in range(25)],
    ):
        variance += (len(left_out) - 1) * np.var(left_out)
    np.testing.assert_allclose(found.stderr, math.sqrt(variance), rtol=0.05)


def test_an_error_of_few_inputs_has_few_degrees_of_freedom():
    phi, psi = linear_pair(40, 30, 30, 0.7, 0)
    even = alignment(phi, psi)
    rare = np.where(np.arange(40) < 3, 1.0, 0.02)[:, None]  # all but three are faint
    few = alignment(rare * phi, rare * psi)
    assert few.distribution.degrees < 4 < even.distribution.degrees


def test_population():
    phi, psi = linear_pair(30, 12, 20, 0.5, 0)
    whole = alignment(phi, psi, population="all")
    same(alignment(phi, psi, population={"phi": 12, "psi": "all"}), whole)
    assert whole.error_by_source.get("features of phi", 0.0) == 0
    both = alignment(phi, psi, population=40)
    same(both, alignment(phi, psi, population={"phi": 40, "psi": 40}))
    assert "12 of 40 features" in str(both) and "all 12 features" in str(whole)
    one = alignment(phi, psi, population={"phi": "all"})
    assert whole.uncorrected < one.uncorrected < alignment(phi, psi).uncorrected


def test_expected_errors_and_sizes():
    found = alignment(*linear_pair(60, 20, 20, 0.7, 1))
    assert found.expected_stderr(600, 200) < found.stderr / 2
    np.testing.assert_allclose(found.expected_stderr(), found.stderr)
    floor = found.expected_stderr(Q=10**9)  # what more features alone can reach
    needed = found.sizes_needed(0.8 * floor)
    assert needed["features"] is None and min(needed["both"]) > 20
    assert found.expected_stderr(*needed["both"]) <= 0.8 * floor


def test_missing_entries_and_unequal_trials():
    phi, psi = linear_pair(40, 15, 15, 0.6, 0)
    rng = np.random.default_rng(0)
    holes = [np.where(rng.random(x.shape) < 0.1, np.nan, x) for x in (phi + 3, psi)]
    whole, gappy = alignment(phi, psi), alignment(*holes)
    assert abs(gappy.value - whole.value) < 2 * gappy.stderr
    assert gappy.permutation_test(199).p_value == 1 / 200 and "% missing" in str(gappy)
    noisy = phi + 0.1 * normal((3, 40, 15)), psi + 0.1 * normal((6, 40, 15), 1)
    found = alignment(*noisy, trials=True)
    assert found.estimate.shapes == {"phi": (3, 40, 15), "psi": (6, 40, 15)}
    assert abs(found.value - whole.value) < found.stderr


def test_files(tmp_path, nothing_loaded):
    given = dict(zip("ab", linear_pair(300, 12, 20, 0.5, 0)))
    maps = {}
    for name, x in given.items():
        np.save(tmp_path / f"{name}.npy", x)
        maps[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
    found, expected = alignments(maps), alignments(given)
    np.testing.assert_allclose(
        found["a", "b"].uncorrected, expected["a", "b"].uncorrected, rtol=1e-9
    )
    np.testing.assert_allclose(found["a", "b"].stderr, expected["a", "b"].stderr, rtol=0.2)
    assert found.permutation_test(99).p_values == expected.permutation_test(99).p_values
    same(found.best(), expected.best(), 0.05)


def all_p_values(phi, psi, groups):
    "Return the share of all exchanges of groups whose numerator is at least as large."
    G = groups.max() + 1
    mean = lambda x: np.mean([x[groups == g].mean(0) for g in range(G)], 0)
    x, y = phi - mean(phi), psi - mean(psi)

    def numerator(order):
        order = np.concatenate([np.flatnonzero(groups == g) for g in order])
        total = 0.0
        for i, j in itertools.product(range(len(x)), repeat=2):
            if groups[i] != groups[j]:
                total += (x[i] @ x[j]) * (y[order[i]] @ y[order[j]])
        return total

    null = np.array([numerator(order) for order in itertools.permutations(range(G))])
    return np.mean(null >= null[0] - 1e-9)


@pytest.mark.parametrize("size", [1, 2])
def test_p_values_are_shares_of_permutations(size):
    "Of all 120 permutations of five inputs or groups, up to the Monte Carlo error."
    groups = np.repeat(np.arange(5), size)
    for seed in range(3):
        phi, psi = linear_pair(5 * size, 3, 4, 0.9, seed)
        found = alignment(phi, psi, groups=groups if size > 1 else None)
        test = found.permutation_test(1999, random_state=seed)
        share = all_p_values(phi, psi, groups)
        assert abs(test.p_value - share) < 4 * math.sqrt(share * (1 - share) / 1999) + 1e-3
        assert "1999 random permutations" in str(test) and len(test.null) == 1999


def test_groups_change_places_as_a_whole():
    "Inputs that are shown twice are groups; as single inputs they would be a relation."
    found = {True: 0, False: 0}
    for seed in range(40):
        phi, psi = (np.repeat(x, 3, 0) for x in linear_pair(8, 6, 6, math.pi / 2, seed))
        for grouped in found:
            options = dict(groups=np.repeat(np.arange(8), 3)) if grouped else {}
            test = alignment(phi, psi, stderr=False, **options).permutation_test(39)
            found[grouped] += test.p_value <= 0.05
    assert found[True] <= 6 and found[False] > 20


def test_noise_that_is_shared_is_no_relation():
    rng, found = np.random.default_rng(0), {"trials": 0, "mean": 0}
    for seed in range(40):
        phi, psi = linear_pair(25, 15, 15, math.pi / 2, seed)
        shared = 2 * rng.standard_normal((2, 25, 2))
        noisy = [x + shared @ rng.standard_normal((2, 15)) for x in (phi, psi)]
        test = alignment(*noisy, trials=True, stderr=False).permutation_test(39)
        found["trials"] += test.p_value <= 0.05
        test = alignment(*(x.mean(0) for x in noisy), stderr=False).permutation_test(39)
        found["mean"] += test.p_value <= 0.05
    assert found["trials"] <= 7 and found["mean"] > 35


def test_p_values_are_corrected_for_the_number_of_pairs():
    phi, psi = linear_pair(40, 20, 20, 0.6, 0)
    noise = {f"noise {k}": normal((40, 10), k) for k in range(4)}
    found = alignments({"a": phi, "b": psi, **noise})
    test = found.permutation_test(199)
    assert len(test.pairs) == 15 and "199 random permutations of 40" in str(test)
    assert test.p_value == test.p_corrected["a", "b"] == 1 / 200  # 15 pairs or one
    for pair, p in test.p_values.items():
        assert p <= test.p_corrected[pair]
    exceeded = test.null[:, 1:].max(axis=1) >= test.statistics[1:].max()
    second = test.pairs[1 + np.argmax(test.statistics[1:])]  # the first pair is a, b
    assert test.p_corrected[second] == pytest.approx((exceeded.sum() + 1) / 200)
    one = found.permutation_test(99, of="b")
    assert one.pairs[0] == ("a", "b") and {y for _, y in one.pairs} == {"b"}
    assert "p (corrected)" in str(one) and len(one.records()) == 5


def test_more_inputs_than_are_tested(monkeypatch):
    monkeypatch.setattr(similarity, "N_TESTED_ROWS", 50)
    monkeypatch.setattr(similarity, "N_HALVED_ROWS", 60)
    groups = np.repeat(np.arange(40), [2, 3] * 20)
    given = dict(zip("ab", linear_pair(100, 15, 15, 0.5, 0)))
    found = alignments(given, groups=groups)
    test = found.permutation_test(99)
    used = int(str(test).split("permutations of ")[1].split()[0])
    assert 16 < used <= 25 and f"{used} of 40 groups of inputs" in str(test)
    assert test.p_value == 0.01
    assert abs(found.best().value - found["a", "b"].value) < 3 * found.best().stderr


def test_several_systems_are_pairs():
    phi, psi = linear_pair(30, 12, 20, 0.5, 0)
    chi = normal((30, 7))
    found = alignments({"phi": phi, "psi": psi, "chi": chi})
    same(found["phi", "psi"], alignment(phi, psi))
    same(found["chi", "phi"], alignment(chi, phi))
    assert found.values.shape == found.stderr.shape == (3, 3)
    assert [row["second"] for row in found.records()] == ["psi", "chi", "chi"]
    difference = found["phi", "psi"] - found["psi", "phi"]  # paired
    np.testing.assert_allclose([difference.value, difference.stderr], 0, atol=1e-9)
    same(pickle.loads(pickle.dumps(found))["phi", "psi"], found["phi", "psi"])


@pytest.mark.parametrize("groups", [None, np.repeat(np.arange(30), 2)])
def test_the_best_pair(groups):
    phi, psi = linear_pair(60, 30, 30, 0.4, 0)
    systems = {"one": normal((60, 20)), "two": phi, "area": psi}
    found = alignments(systems, groups=groups).best("area")
    assert found.names == ("two", "area") and "chose two - area." in str(found)
    assert {*found.error_by_source} == {"inputs", "features of two", "features of area"}
    assert abs(found.value - math.cos(0.4) ** 2) < 3 * found.stderr
    assert alignments(systems, groups=groups).best("area").value == found.value


def test_the_best_of_equals_is_not_too_large():
    "Six layers that are equally like an area."
    truth, found = math.cos(0.7) ** 2, []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        x, systems = rng.standard_normal((60, 4)), {}
        for k in range(6):
            turned = math.cos(0.7) * x + math.sin(0.7) * rng.standard_normal((60, 4))
            systems[f"layer {k}"] = turned @ rng.standard_normal((4, 30))
        several = alignments(systems | {"area": x @ rng.standard_normal((4, 30))})
        largest = max(several[pair].value for pair in several.pairs("area"))
        found.append((several.best("area").value, largest))
    mean, error = np.mean(found, axis=0), np.std(found, axis=0) / 5
    assert abs(mean[0] - truth) < 3 * error[0] and mean[1] > truth + 4 * error[1]


def test_ceilings():
    rng = np.random.default_rng(3)
    x, own = rng.standard_normal((80, 6)), rng.standard_normal((2, 80, 6))
    see = lambda z: z @ rng.standard_normal((z.shape[1], 60))
    subjects = {k: see(np.hstack([x, z])) for k, z in zip(("Ada", "Bob"), own)}
    found = alignments({**subjects, "model": see(x)})
    top, pairs = found.ceiling(["Ada", "Bob"]), [found["model", x] for x in subjects]
    relative = sum(pairs) / 2 / top  # paired
    assert abs(top.value - 0.5) < 3 * top.stderr
    same(alignments(subjects).ceiling(), top, 1e-6)
    assert abs(relative.value - math.sqrt(0.5) / 0.5) < 3 * relative.stderr
    assert relative.stderr < math.hypot(top.stderr, (sum(pairs) / 2).stderr) / top.value
    strangers = alignments({"Ada": normal((40, 9)), "Bob": normal((40, 9), 1)}).ceiling()
    assert "undetermined" in str(top / strangers)


def test_kernels():
    phi, psi = linear_pair(25, 12, 40, 0.5, 0)
    K, L = phi @ phi.T, 1e-3 * psi @ psi.T
    found = alignment_from_kernels(K, L)
    np.testing.assert_allclose(found.uncorrected, song(K, L), rtol=1e-9)
    same(found, alignment(phi, psi, population="all"), 1e-6)
    middle = np.eye(25) - 1 / 25
    same(alignment_from_kernels(middle @ K @ middle, L), found, 1e-6)
    assert found.permutation_test(99).p_value == 0.01
    assert 0 < alignment_from_kernels(np.outer(K[0], K[0]), L).stderr < 1  # of rank one
    groups = alignment_from_kernels(K[:24, :24], L[:24, :24], groups=np.arange(24) // 2)
    assert "12 groups of inputs" in str(groups)


def test_notes_travel():
    x, w = normal((60, 12)), normal((12, 20), 1)
    again = x @ (w + normal((12, 20), 2)) / math.sqrt(2)
    found = alignment(x @ w, again)
    (above,) = [note for note in found.notes if "above 1" in note]
    assert "shared_features=True" in above and str(found).count(above) == 1
    found = alignment(x @ w, again, shared_features=True)
    assert not any("above 1" in note for note in found.notes)
    both = alignments({"a": x @ w, "b": x @ w, "c": normal((60, 20), 3)})
    assert any("above 1 (a - b)" in note for note in both.notes)


def test_notes_of_a_pair_are_about_the_pair():
    phi, psi = linear_pair(60, 20, 20, 0.5, 0)
    nothing = np.random.default_rng(4).standard_normal((60, 9))
    movie = np.repeat(normal((12, 15), 6), 5, 0) + 0.1 * normal((60, 15), 7)
    found = alignments({"a": phi, "b": psi, "weak": nothing, "movie": movie})
    assert any("Trace of weak weak" in note for note in found.notes)
    assert any(note.startswith("movie: ") for note in found.notes)
    assert found["a", "b"].notes == []
    assert any("Trace of weak weak" in note for note in found["a", "weak"].notes)
    assert any(note.startswith("movie: ") for note in found["movie", "b"].notes)


def test_printed():
    phi, psi = linear_pair(60, 40, 50, 0.5, 0)
    found = alignment(phi, psi)
    first, *others = str(found).splitlines()
    assert first.startswith(f"Alignment of phi and psi: {found.value:.3f}")
    assert "95% CI" in first and others[-1] == similarity.SHARED_NOISE
    assert "60 inputs x 40 features" in others[-2] and "mean removed" in others[-2]
    assert str(found.permutation_test(19)).endswith(similarity.SHARED_NOISE)
    several = alignments({"a": phi, "b": psi})
    assert str(several).count("Single trial") == 1
    repeats = alignment(*(np.stack([z, z + 0.1]) for z in (phi, psi)), trials=True)
    assert "Single trial" not in str(repeats) and "2 repeats" in str(repeats)
    assert {"value", "stderr", "notes"} <= {*found.to_dict()}
    assert several.records()[0]["value"] == found.value


X = normal((12, 5))
PAIR = {"a": X, "b": normal((12, 5), 1)}
UNEQUAL = np.repeat(np.arange(4), [1, 2, 4, 5])
REFUSED = {
    "t() has no option 'centre'; did you mean 'center'?": lambda: alignment(X, X, centre=1),
    "alignments() has no option 'centre'": lambda: alignments(PAIR, centre=True),
    "did you mean 'shared_features'": lambda: alignment(X, X, shared_feature=True),
    "from_kernels() has no option": lambda: alignment_from_kernels(X, X, scale=1),
    "phi has 12 rows and psi has 8": lambda: alignment(X, X[:8]),
    "the same feature": lambda: alignment(X, X[:, :4], shared_features=True),
    "three axes": lambda: alignment(X[None], X),
    "psi has only NaN": lambda: alignment(X, np.nan * X),
    "shared_features must be": lambda: alignment(X, X, shared_features=1),
    "phi, psi": lambda: alignment(X, X, population={"chi": 4}),
    "systems must be a dict of at least two": lambda: alignments([X, X]),
    "at least two, {name: matrix": lambda: alignments({1: X, 2: X}),
    "none can change places": lambda: alignment(X, X, groups=UNEQUAL).permutation_test(),
    "n_permutations": lambda: alignment(X, X).permutation_test(3),
    "'c' is not one of a, b": lambda: alignments(PAIR).best("c"),
    "at least two of": lambda: alignments(PAIR).ceiling(["a"]),
    "subjects must be": lambda: alignments(PAIR).ceiling(["a", "Eve"]),
    "K must be a Gram matrix": lambda: alignment_from_kernels(X, X),
    "no negative": lambda: alignment_from_kernels(np.ones((6, 6)) - np.eye(6), np.eye(6)),
    "finite, symmetric": lambda: alignment_from_kernels(np.triu(X @ X.T), X @ X.T),
    "K has 12 rows and L has 5": lambda: alignment_from_kernels(X @ X.T, X.T @ X),
}


@pytest.mark.parametrize("words", REFUSED)
def test_refused(words):
    with pytest.raises(sm.ArgumentError, match=re.escape(words)):
        REFUSED[words]()


@pytest.mark.parametrize("wrong", ["a", 0, ("a", "z"), ("a", "b", "a"), "ab"])
def test_what_is_no_pair(wrong):
    found = sm.alignments({name: normal((12, 6), k) for k, name in enumerate("ab")})
    with pytest.raises(KeyError, match="is not a pair of a, b"):
        found[wrong]


def test_notes_of_the_alignment_come_with_its_test():
    rng = np.random.default_rng(0)
    frames = [np.repeat(rng.normal(size=(20, 6)), 10, axis=0) for _ in range(2)]
    x, y = (x @ rng.normal(size=(6, 30)) + 0.1 * rng.normal(size=(200, 30)) for x in frames)
    found = sm.alignment(x, y)
    notes = [note for note in found.notes if "groups=" in note]
    assert notes and all(str(found).count(note) == 1 for note in notes)
    assert "p-values are too small" in str(found.permutation_test())
    movie = np.arange(200) // 10
    test = sm.alignment(x, y, groups=movie).permutation_test()
    assert "p-values" not in str(test) and test.p_value > 0.05
