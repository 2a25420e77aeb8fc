"""Feature learning: images by hash, networks, what is measured, and the stored study."""

import gzip
import json
from itertools import combinations

import feature_learning
import numpy as np
import pytest
import torch
from conftest import RESULTS, load_study, normal, silent
from feature_learning import (
    FASHION,
    SCALINGS,
    Networks,
    draw_split,
    first_moment_powers,
    follow,
    load_fashion_mnist,
    plain_ratio,
    train,
)
from sklearn.datasets import load_digits

from spectral_moments import all_cycles, increasing, naive, participation_ratio
from spectral_moments.networks import rms_normalized


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


# --- images -------------------------------------------------------------------------------


def test_fashion_is_checked_by_hash(tmp_path):
    with pytest.raises(FileNotFoundError, match="apt-get install dataset-fashion-mnist"):
        load_fashion_mnist(tmp_path)
    for name in FASHION:
        (tmp_path / name).write_bytes(gzip.compress(bytes(99)))
    with pytest.raises(ValueError, match="train-images.* has another hash"):
        load_fashion_mnist(tmp_path)


def test_fashion():
    try:
        images, labels = load_fashion_mnist()
    except FileNotFoundError:
        pytest.skip("Fashion-MNIST is not installed")
    assert images.shape == (60000, 28, 28) and images.dtype == labels.dtype == np.uint8
    assert (np.bincount(labels) == 6000).all() and labels[0] == 9  # an ankle boot


def test_split_is_one_draw(digits):
    images, labels = (
        np.arange(1, 41, dtype=np.uint8)[:, None] * np.ones((1, 3)),
        np.arange(40),
    )
    images[:, 1] = 41 - images[:, 0]  # distinct directions
    split = draw_split(images, labels, 30, 10, 1)
    assert sorted([*split.train_labels, *split.test_labels]) == list(range(40))
    unit = images / np.linalg.norm(images, axis=1, keepdims=True)
    np.testing.assert_allclose(split.test_images, unit[split.test_labels], rtol=1e-6)
    assert split.train_images.dtype == np.float32 and split.train_labels.dtype == np.int64
    again, other = (draw_split(images, labels, 30, 10, seed) for seed in (1, 2))
    np.testing.assert_array_equal(split.train_images, again.train_images)
    assert (split.train_labels != other.train_labels).any()


# --- networks -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCALINGS)
def test_start_of_a_network(name):
    scaling, N = SCALINGS[name], 400
    networks = Networks(100, N, seeds=[0, 1], scaling=name)
    assert networks.first.shape == (2, 100, N) and networks.second.shape == (2, N, 10)
    sizes = networks.first.detach().std(), networks.second.detach().std()
    np.testing.assert_allclose(
        [float(s) for s in sizes], [N ** (-scaling.first / 2), N**-0.5], rtol=0.05
    )
    x = torch.eye(100)[:5]
    phi = networks.features(x)
    assert float((phi.detach() ** 2).mean()) == pytest.approx(
        0.5, rel=0.1
    )  # the same for all
    np.testing.assert_allclose(
        networks(x).detach(), (phi @ networks.second).detach() * N**-scaling.multiplier
    )


def test_hidden_layer_is_that_of_the_network(split):
    networks, x = Networks(64, 50, seeds=[3, 4]), torch.tensor(split.test_images)
    list(train(networks, [split] * 2, 1))
    layers = networks.hidden(split.test_images)
    assert layers.shape == (2, 100, 50) and layers.dtype == np.float64
    first, second = (w.detach().double().numpy() for w in (networks.first, networks.second))
    for phi, w, a, y in zip(layers, first, second, networks(x).detach()):
        expected = np.maximum(split.test_images @ w, 0) * 50**0.5
        np.testing.assert_allclose(phi, expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(phi @ a * 50**-0.5, y, rtol=1e-3, atol=1e-5)


def test_company_does_not_matter(digits):
    splits = [draw_split(*digits, 150, 50, seed) for seed in range(3)]
    together = follow(Networks(64, 20, seeds=[0, 1, 2]), splits, 2)
    (alone,) = follow(Networks(64, 20, seeds=[1]), [splits[1]], 2)
    for name in ("naive", "ours", "ratio", "loss", "accuracy"):
        np.testing.assert_allclose(together[1][name], alone[name], rtol=1e-4)


def test_seeds_and_widths_differ():
    a, b = Networks(6, 5, seeds=[0, 1]).first
    assert (a != b).all()
    assert (Networks(6, 5).first[0] == a).all()
    assert (Networks(6, 6).first[0, :, :5] * 6**0.5 != a * 5**0.5).any()


def test_training_learns(split):
    odd = split._replace(
        train_images=split.train_images[:-1], train_labels=split.train_labels[:-1]
    )  # the last batch is short
    (found,) = follow(Networks(64, 64), [odd], 10, measured=[0, 5, 10], n_max=3)
    assert found["accuracy"][-1] > 0.75 > 0.3 > found["accuracy"][0]
    assert (np.diff(found["loss"]) < 0).all()


def test_follow_measures_what_it_says(split):
    networks, shown = Networks(64, 40, seeds=[7]), []
    raw = networks.hidden(split.test_images)[0]
    phi = rms_normalized(raw)
    also = lambda seed, epoch, layer: shown.append((seed, epoch, layer.shape))
    (found,) = follow(networks, [split], 2, n_max=4, also=also)
    assert shown == [(7, 0, (100, 40)), (7, 2, (100, 40))]
    np.testing.assert_allclose(found["naive"][0], naive(phi, 4), rtol=1e-9)
    np.testing.assert_allclose(found["ours"][0, :2], increasing(phi, 2), rtol=1e-9)
    np.testing.assert_allclose(found["size"][0] * phi, raw, rtol=1e-9)
    assert abs(found["powers"][0] - 1).max() < 0.5
    for name in ("naive", "ours"):
        np.testing.assert_allclose(found[name][:, 0], 1)


# --- ratios and powers of the first moment ------------------------------------------------


def test_plain_ratio_is_a_jackknife():
    phi = np.abs(normal((12, 9), 0)) * np.arange(1, 10)
    m, variance = all_cycles(phi, 2), 0.0
    for axis in (0, 1):
        left = [all_cycles(np.delete(phi, i, axis), 2) for i in range(phi.shape[axis])]
        step = np.array(left) / m @ [2, -1]
        variance += (len(step) - 1) * step.var()
    value, error = plain_ratio(phi)
    top = first_moment_powers(phi, 2, n_permutations=4000, random_state=0)[1]
    np.testing.assert_allclose(value, top / m[1], rtol=0.01)  # over all orders
    np.testing.assert_allclose(error, value * np.sqrt(variance), rtol=1e-9)


@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (3, 6), (6, 3), (1, 5)])
def test_powers_are_means_over_chains(shape):
    phi, expected = normal(shape, 0), []
    for n in range(1, min(shape) + 1):
        rows, columns = (list(combinations(range(size), n)) for size in shape)
        expected.append(np.mean([np.prod(phi[i, a] ** 2) for i in rows for a in columns]))
    found = first_moment_powers(phi, min(shape))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


# --- the study ----------------------------------------------------------------------------

SUBSETS = dict(
    width=12, neurons=6, epochs=[0, 2], partitions=3, with_error=1, n_permutations=1
)
TINY = {
    "digits": dict(
        widths=[8, 12],
        subsets=SUBSETS,
        n_train=40,
        n_test=30,
        epochs=2,
        measured=[0, 1, 2],
        n_max=4,
        n_permutations=1,
        repetitions=5,
    )
}


def results(folder):
    about = json.loads((folder / "feature_learning.json").read_text())
    with np.load(folder / "feature_learning.npz") as arrays:
        return about, dict(arrays)


def test_study(tmp_path):
    common = load_study("common")
    run = common.Run(TINY, 0, report=silent, folder=tmp_path)
    about = feature_learning.measure(run)["digits"]
    with np.load(tmp_path / "feature_learning.npz") as arrays:
        shapes = {name.removeprefix("digits "): x.shape for name, x in arrays.items()}
        ours = arrays["digits ours"]
    assert about["seeds"] == [0, 1, 2, 3, 4] and about["epochs"] == [0, 1, 2]
    assert all(seconds > 0 for seconds in about["seconds"].values())
    assert shapes["ours"] == (5, 2, 3, 4) and shapes["part ours"] == (5, 3, 2, 4)
    assert shapes["subsets"] == (5, 2, 4, 8, 4) and shapes["ratio"] == (5, 2, 3, 2)
    assert shapes["finite with error"] == (5, 2, 2, 2, 4)
    images = load_digits()
    split = draw_split(images.images, images.target, 40, 30, 4)
    (alone,) = follow(Networks(64, 8, seeds=[4]), [split], 2, measured=[0, 1, 2], n_max=4)
    np.testing.assert_allclose(ours[4, 0, :, :1], alone["ours"][:, :1], rtol=1e-5)


@pytest.mark.filterwarnings("ignore::spectral_moments.results.EstimateWarning")
def test_centred_study():
    common = load_study("common")
    settings = dict(widths=[8, 12], repetitions=2, n_train=40, n_test=30, epochs=[0, 2])
    run = common.Run(settings | {"study": "digits"}, 0, report=silent)
    found = feature_learning.measure_centred(run)["widths"]
    images = load_digits()
    split = draw_split(images.images, images.target, 40, 30, 1)
    networks = Networks(64, 12, seeds=[1])
    list(train(networks, [split], 2))
    (phi,) = networks.hidden(split.test_images)
    for name, center in (("centred", True), ("uncentred", False)):
        q = participation_ratio(phi, center=center)
        np.testing.assert_allclose(found["12"][name][1][1], [q.value, q.stderr], rtol=1e-3)
    np.testing.assert_allclose(found["12"]["plain"][1][1], plain_ratio(phi), rtol=1e-3)


def test_stored_study():
    about, arrays = results(RESULTS)
    assert about["settings"] == feature_learning.SETTINGS
    for name, settings in about["settings"].items():
        assert about[name]["seeds"] == list(range(settings["repetitions"]))
        assert about[name]["epochs"] == settings["measured"]
        shape = settings["repetitions"], len(settings["widths"]), len(settings["measured"])
        ends = dict(naive=(7,), ours=(7,), powers=(7,), size=(1,), ratio=(2,), loss=())
        for key, end in ends.items():
            assert arrays[f"{name} {key}"].shape == (*shape, *end)
    assert arrays["fashion subsets"].shape == (29, 3, 4, 8, 7)
    assert arrays["fashion part ours"].shape == (29, 16, 8, 7)
    assert all(np.isfinite(x).all() for k, x in arrays.items() if "with error" not in k)
    for end in ("json", "npz"):  # the repository stays small
        assert (RESULTS / f"feature_learning.{end}").stat().st_size < 600_000


def test_stored_centred_study():
    about = json.loads((RESULTS / "feature_learning_centred.json").read_text())
    assert about["settings"] == feature_learning.CENTRED
    assert list(about["widths"]) == [str(width) for width in about["settings"]["widths"]]
    for found in about["widths"].values():
        for name in ("centred", "uncentred", "plain"):
            assert np.shape(found[name]) == (3, 6, 2) and np.isfinite(found[name]).all()


def test_live_check_without_the_images(capsys):
    "The chapter's check runs on digits if there are no pictures of clothes, and can fail."
    text = (RESULTS.parent / "nbs/17_feature_learning.ipynb").read_text()
    cells = ["".join(cell["source"]) for cell in json.loads(text)["cells"]]
    (source,) = (cell for cell in cells if "load_fashion_mnist()\n" in cell)

    def nowhere():
        raise FileNotFoundError

    about, arrays = results(RESULTS)
    known = vars(feature_learning) | dict(about=about, stored=arrays, digits=load_digits())
    known |= {"load_fashion_mnist": nowhere}
    check = source[: source.index("names = ")]
    exec(check, dict(known))
    assert "the check runs on digits" in capsys.readouterr().out
    known["stored"] = arrays | {"digits ours": arrays["digits ours"] * 1.001}
    with pytest.raises(AssertionError):
        exec(check, known)
