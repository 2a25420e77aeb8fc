"""Feature learning: images by hash, networks, what is measured, and the stored study."""

from itertools import combinations

import feature_learning
import numpy as np
import pytest
import torch
from common import RESULTS, Part, Run
from conftest import normal
from feature_learning import (
    NAMES,
    SETTINGS,
    Networks,
    draw_split,
    first_moment_powers,
    follow,
    plain_ratio,
    rms_normalized,
    train,
    train_group,
)
from sklearn.datasets import load_digits

from spectral_moments import all_cycles, increasing, naive


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)


@pytest.fixture(scope="module")
def split(digits):
    return draw_split(*digits, 200, 100, 0)


@pytest.fixture(autouse=True)
def threads():
    "The study uses one thread; the other tests do not notice."
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_follow_measures_what_it_says(split):
    networks = Networks(64, 40, seeds=[7])
    raw = networks.hidden(split.test_images)[0]
    phi = rms_normalized(raw)
    (found,) = follow(networks, [split], 2, n_max=4)
    np.testing.assert_allclose(found["naive"][0], naive(phi, 4), rtol=1e-9)
    np.testing.assert_allclose(found["ours"][0, :2], increasing(phi, 2), rtol=1e-9)
    np.testing.assert_allclose(found["size"][0] * phi, raw, rtol=1e-9)


def test_plain_ratio_is_a_jackknife():
    phi = np.abs(normal((12, 9), 0)) * np.arange(1, 10)
    m, variance = all_cycles(phi, 2), 0.0
    for axis in (0, 1):
        left = [all_cycles(np.delete(phi, i, axis), 2) for i in range(phi.shape[axis])]
        step = np.array(left) / m @ [2, -1]
        variance += (len(step) - 1) * step.var()
    value, error = plain_ratio(phi)
    np.testing.assert_allclose(error, value * np.sqrt(variance), rtol=1e-9)


@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (3, 6), (6, 3)])
def test_powers_are_means_over_chains(shape):
    phi, expected = normal(shape, 0), []
    for n in range(1, min(shape) + 1):
        rows, columns = (list(combinations(range(size), n)) for size in shape)
        expected.append(np.mean([np.prod(phi[i, a] ** 2) for i in rows for a in columns]))
    found = first_moment_powers(phi, min(shape))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_study(tmp_path):
    subsets = dict(width=12, neurons=6, epochs=[0, 2], partitions=3, with_error=1)
    tiny = dict(widths=[8, 12], subsets=subsets | {"n_permutations": 1}, n_train=40)
    tiny |= dict(n_test=30, epochs=2, measured=[0, 1, 2], n_max=4, n_permutations=1)
    settings = {"digits": tiny | {"repetitions": 5}}
    part = Part(feature_learning.measure, settings, 0)
    part.measure(Run(part, tmp_path / "draws"))
    with np.load(tmp_path / "feature_learning.npz") as arrays:
        shapes = {name.removeprefix("digits "): x.shape for name, x in arrays.items()}
        ours = arrays["digits ours"]
    assert shapes["ours"] == (5, 2, 3, 4) and shapes["part ours"] == (5, 3, 2, 4)
    assert shapes["subsets"] == (5, 2, 4, 8, 4) and shapes["ratio"] == (5, 2, 3, 2)
    images = load_digits()
    split = draw_split(images.images, images.target, 40, 30, 4)
    networks = Networks(64, 8, seeds=[4])
    list(train(networks, [split], 2))
    phi = rms_normalized(networks.hidden(split.test_images)[0])
    np.testing.assert_allclose(ours[4, 0, 2, :2], increasing(phi, 2), rtol=1e-4)


def test_stored_arrays():
    with np.load(RESULTS / "feature_learning.npz") as arrays:
        assert arrays["fashion ours"].shape == (29, 6, 16, 7)
        assert arrays["fashion subsets"].shape == (29, 3, 4, 8, 7)


@pytest.mark.parametrize("width", SETTINGS["digits"]["widths"])
def test_stored_arrays_are_drawn_again(width):
    digits = SETTINGS["digits"]
    settings = {"digits": digits | dict(epochs=0, measured=[0])}
    found = train_group(settings, [("digits", width, [0, 1])], 0)
    column = digits["widths"].index(width)
    with np.load(RESULTS / "feature_learning.npz") as arrays:
        for name in NAMES:
            drawn = [network[name][0] for network in found]
            stored = arrays[f"digits {name}"][:2, column, 0]
            np.testing.assert_allclose(drawn, stored, rtol=1e-5, err_msg=name)
