"""Random probes: exact where they must be, noise as told, memory bounded."""

import itertools
import os
import textwrap

import numpy as np
import pytest
from conftest import succeed

import spectral_moments as sm
from spectral_moments import estimate, increasing, sketched
from spectral_moments.engine import sketch as module
from spectral_moments.engine.sources import View, open_source

pytestmark = pytest.mark.filterwarnings("ignore::spectral_moments.results.EstimateWarning")


EDGES = np.arange(7) * 13 // 6  # of blocks of two or three rows


def structured(P, Q, seed=0):
    return sm.Linear(4).sample(P, Q, random_state=seed)


def as_given(phi, n_max, *, rank=64, n_probes=64, seed=0):
    "Means and noise of one round, rows and columns in the order given."
    source = open_source(phi)
    rng = np.random.default_rng(seed) if isinstance(seed, int) else seed
    found = module.sketch_means(
        source, View(), n_max, rng=rng, rank=rank, n_probes=n_probes
    )
    return found, found.noise, 4.0 ** (source.exponent * np.arange(1, n_max + 1))


@pytest.mark.parametrize("shape", [(30, 12), (12, 30), (17, 17)])
def test_full_rank_is_exact(shape, monkeypatch):
    monkeypatch.setattr(module, "BLOCKS", 60)  # single rows and columns
    phi = structured(*shape)
    found, noise, unit = as_given(phi, 5, rank=100, n_probes=2)
    np.testing.assert_allclose(found.values * unit, increasing(phi, 5), rtol=1e-9)
    assert (np.sqrt(np.diag(noise)) <= 1e-9 * abs(found.values)).all()


def test_noise_is_the_spread_over_seeds():
    phi = np.random.default_rng(0).standard_normal((80, 60)) + 0.3
    drawn = [as_given(phi, 4, rank=4, n_probes=20, seed=seed) for seed in range(120)]
    values = np.array([found.values for found, _, _ in drawn])
    spread = values.std(axis=0, ddof=1)[1:]
    told = np.sqrt(np.mean([np.diag(noise) for _, noise, _ in drawn], axis=0))[1:]
    np.testing.assert_allclose(told, spread, rtol=0.25)  # 120 draws: 6.5% of spread
    exact = as_given(phi, 4, rank=60)[0].values
    centre = (values.mean(axis=0) - exact)[1:]
    assert (abs(centre) < 4 * spread / np.sqrt(120)).all()


def test_every_sign_vector():
    "The mean over all signs, with the probes put in where the random ones are drawn."
    phi = structured(5, 4)
    values = []

    class Fixed(np.random.Generator):
        def choice(self, options, size):
            return np.transpose([self.signs, self.signs])

    for signs in itertools.product((-1.0, 1.0), repeat=4):
        rng = Fixed(np.random.PCG64(0))
        rng.signs = signs
        found, _, unit = as_given(phi, 3, rank=1, n_probes=2, seed=rng)
        values.append(found.values * unit)
    np.testing.assert_allclose(np.mean(values, axis=0), increasing(phi, 3), rtol=1e-10)


def test_row_blocks_do_not_matter(monkeypatch):
    phi = structured(61, 23)
    results = []
    for size in (2**22, 8 * 6 * 26 * 2, 1):
        monkeypatch.setattr(module, "LANE_BYTES", size)
        monkeypatch.setattr(module, "BLOCKS", 122)
        results.append(as_given(phi, 6, rank=5, n_probes=21)[0].values)
    for found in results[1:]:
        np.testing.assert_allclose(found, results[0], rtol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint64", "bool", ">f8"])
def test_dtypes(dtype):
    phi = abs(10 * structured(30, 20)).astype(dtype)
    before = phi.copy()
    phi.setflags(write=False)
    values = sketched(phi, 3, rank=20, n_permutations=4, random_state=0)
    np.testing.assert_array_equal(phi, before)
    expected = sketched(before.astype(float), 3, rank=20, n_permutations=4, random_state=0)
    np.testing.assert_allclose(values, expected, rtol=1e-9)
    exact = increasing(before.astype(float), 2)
    np.testing.assert_allclose(values[:2], exact, rtol=0.02)  # few blocks, four orders


def test_inputs_of_every_kind(tmp_path):
    import torch

    phi = structured(30, 20)
    options = dict(random_state=0)
    expected = sketched(phi, 4, **options)
    np.save(tmp_path / "phi.npy", phi)
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "phi.h5", "w") as file:
        file["phi"] = phi
        np.testing.assert_allclose(sketched(file["phi"], 4, **options), expected, rtol=1e-9)
    for given_phi in (
        phi.tolist(),
        np.asfortranarray(phi),
        phi[::-1][::-1],
        torch.tensor(phi),
        np.load(tmp_path / "phi.npy", mmap_mode="r"),
        phi[None],
    ):
        np.testing.assert_allclose(sketched(given_phi, 4, **options), expected, rtol=1e-9)


def test_scale_of_the_entries():
    phi = structured(30, 20)
    base = sketched(phi, 4, random_state=0)
    for power in (-200, 200, 120):
        scaled = sketched(np.ldexp(phi, power), 2, random_state=0)
        expected = np.ldexp(base[:2], [2 * power, 4 * power])
        np.testing.assert_allclose(scaled, expected, rtol=1e-9)
    np.testing.assert_array_equal(sketched(np.zeros((5, 5)), 3), 0)
    for unit in (1e-13, 1e40):
        powers = unit ** (2 * np.arange(1, 4))
        options = dict(method="sketched", n_permutations=2, random_state=0)
        plain, scaled = (estimate(x, 3, **options) for x in (phi, phi * unit))
        np.testing.assert_allclose(scaled.values / powers, plain.values, rtol=1e-6)
        np.testing.assert_allclose(scaled.stderr / powers, plain.stderr, rtol=1e-6)
        np.testing.assert_array_equal(scaled.usable, plain.usable)


@pytest.mark.parametrize(
    ("phi", "options", "message"),
    [
        (np.ones((3, 4)) * 1j, {}, "complex"),
        (np.array([["a"]]), {}, "dtype"),
        (np.ones((0, 4)), {}, "empty"),
        (np.full((4, 4), np.nan), {}, "only NaN"),
        (np.full((4, 4), np.inf), {}, "infinite"),
        (np.ones((4, 4)), {"n_max": 5}, "exceeds min"),
        (np.ones((4, 4)), {"n_probes": 1}, "n_probes = 1"),
        (np.ones((4, 4)), {"rank": -1}, "rank = -1"),
        (np.ones((4, 4)), {"n_permutations": 0}, "n_permutations"),
        (np.ones((4, 4)), {"random_state": "x"}, "random_state"),
    ],
)
def test_refused(phi, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        sketched(phi, **{"n_max": 2, **options})


def test_rounds_stop_when_the_noise_is_small():
    phi = structured(200, 150)
    easy = estimate(phi, 4, method="sketched", random_state=0)
    sampling = np.sqrt(easy.stderr**2 - easy.parts["probes"] ** 2)
    assert (easy.parts["probes"] < sampling).all()  # orders and pairs are drawn too
    hard = np.random.default_rng(0).standard_normal((200, 150))  # no leading directions
    one, many = (
        estimate(hard, 3, method="sketched", n_permutations=k, random_state=0)
        for k in (1, 12)
    )
    assert (many.parts["probes"][1:] < one.parts["probes"][1:]).all()
    assert one.parts["probes"][0] == 0  # m(1) needs no probes


@pytest.mark.parametrize("center", [False, True])
def test_the_error_of_the_draws_is_that_of_seeds(center):
    """The order of rows and columns is drawn, and their pairs, not only the probes."""
    phi = structured(120, 90)
    options = dict(method="sketched", center=center)
    found = [estimate(phi, 3, random_state=seed, **options) for seed in range(12)]
    spread = np.std([est.values for est in found], axis=0, ddof=1)
    stated = np.sqrt(np.mean([est.parts["probes"] ** 2 for est in found], axis=0))
    assert (stated[1:] > 0.6 * spread[1:]).all() and (stated[1:] < 3 * spread[1:]).all()


def test_blocks_about_their_own_means():
    "Cycles through increasing blocks of rows, each with its own covariance."
    x = structured(13, 4) + 3
    parts = [np.cov(x[a:b].T) * (b - a) for a, b in zip(EDGES, EDGES[1:])]
    sizes = np.diff(EDGES)
    order = [*itertools.combinations(range(6), 2)]
    pairs = [*itertools.combinations(range(4), 2)]
    second = sum(parts[a][c, d] * parts[b][d, c] for a, b in order for c, d in pairs)
    second /= sum(sizes[a] * sizes[b] for a, b in order) * len(pairs)
    first = sum(map(np.trace, parts)) / x.size
    source = open_source(x)
    found = module.sketch_means(
        source, View(), 2, rng=np.random.default_rng(0), rank=4, center=True
    )
    unit = 4.0 ** (source.exponent * np.arange(1, 3))
    np.testing.assert_allclose(found.values * unit, [first, second], rtol=1e-10)


def test_seeds_hardly_matter_to_a_centred_sketch():
    "m(1) needs no draw; the others agree with all cycles, and move by a tenth at most."
    x = sm.RBF(2).sample(160, 120, random_state=5) + 1
    found = [estimate(x, 3, method="sketched", random_state=seed) for seed in range(6)]
    values = np.array([est.values for est in found])
    exact, spread = estimate(x, 3), values.std(axis=0, ddof=1)
    np.testing.assert_allclose(values[:, 0], exact.values[0], rtol=1e-12)
    assert (spread < 0.1 * exact.stderr).all()
    gap = abs(values.mean(axis=0) - exact.values)[1:]
    assert (gap < 4 * spread[1:] / np.sqrt(6)).all()


def test_seeds_hardly_matter_to_a_sketch_with_a_gap():
    "Rows without gaps need no random pairs (.14 of the error before, and .11)."
    x = sm.PowerLaw(1.2, 200).sample(160, 200, random_state=11) + 0.5
    whole = estimate(x, 3, method="sketched")
    x[3, 7] = np.nan
    found = [estimate(x, 3, method="sketched", random_state=seed) for seed in range(8)]
    values = np.array([est.values for est in found])
    assert (values.std(axis=0, ddof=1) < 0.1 * whole.stderr).all()
    assert (abs(values.mean(axis=0) - whole.values) < 0.2 * whole.stderr).all()
    assert "n = 1, 2, 3: from the 199 of 200 features without gaps" in found[0].notes


def test_rounds_that_stop_state_a_longer_noise():
    "They stop where their spread looks small; a given number of rounds does not."
    x, known = structured(60, 50), dict(random_state=0, method="sketched")
    free = estimate(x, 3, **known)
    for rounds in range(4, 33):
        given = estimate(x, 3, n_permutations=rounds, **known)
        if np.allclose(given.values, free.values, rtol=1e-12):
            break
    more = free.parts["probes"][1:] / given.parts["probes"][1:]
    np.testing.assert_allclose(more, 1 + 1 / (rounds - 1), rtol=1e-9)


def test_error_bars_do_not_change_the_estimate():
    phi = structured(30, 20)
    options = dict(method="sketched", n_permutations=2, random_state=0)
    a, b = (estimate(phi, 3, stderr=told, **options).values for told in (True, False))
    np.testing.assert_array_equal(a, b)


def test_gaps_trials_and_centring():
    rng = np.random.default_rng(0)
    phi = structured(60, 40) + 0.3 * rng.standard_normal((2, 60, 40))
    phi[rng.random(phi.shape) < 0.05] = np.nan
    for center in (False, True):
        options = dict(center=center, random_state=0)
        found = estimate(phi, 3, method="sketched", n_permutations=8, **options)
        exact = estimate(phi, 3, method="blocks", n_permutations=8, **options)
        assert (abs(found.values - exact.values) < exact.stderr).all()
        np.testing.assert_allclose(found.stderr[:2], exact.stderr[:2], rtol=0.5)


def test_memory_map_larger_than_memory(tmp_path):
    "A file of 400 MB, in a process that may allocate 250 MB beyond its start."
    path = tmp_path / "large.npy"
    rng = np.random.default_rng(0)
    large = np.lib.format.open_memmap(path, mode="w+", dtype="float64", shape=(12500, 4000))
    for left in range(0, 12500, 2500):
        large[left : left + 2500] = rng.standard_normal((2500, 1))  # every column the same
    large.flush()
    del large
    script = f"""
        import resource, warnings
        import numpy as np
        import spectral_moments as sm
        warnings.simplefilter("ignore")
        small = np.random.default_rng(0).standard_normal((64, 64))
        options = dict(rank=2, n_probes=14, random_state=0)
        sm.sketched(small, 2, **options)
        used = int(open("/proc/self/statm").read().split()[5]) * resource.getpagesize()
        limit = used + 250 * 2**20
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        try:
            np.ones((12500, 4000))
        except MemoryError:
            print("limited")
        phi = np.load({str(path)!r}, mmap_mode="r")
        print(*sm.sketched(phi, 2, **options))
    """
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    out = succeed("-c", textwrap.dedent(script), env=environment, timeout=300)
    first, values = out.stdout.split("\n")[:2]
    assert first == "limited"
    squares = np.random.default_rng(0).standard_normal((12500, 1))[:, 0] ** 2
    one, two = (float(v) for v in values.split())  # rank one, in blocks of rows
    np.testing.assert_allclose(one, squares.mean(), rtol=1e-9)
    second = (squares.sum() ** 2 - (squares**2).sum()) / (12500 * 12499)
    np.testing.assert_allclose(two, second, rtol=2e-3)


def test_notes_of_a_sketch():
    phi = structured(40, 30)
    notes = estimate(phi + 5, 2, method="sketched", center=False).notes
    assert any("mean over inputs" in note for note in notes)
