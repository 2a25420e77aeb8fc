"""Feature learning: wrong files, models of every shape, a study that is interrupted."""

import gzip
import itertools
import json
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import RESULTS, load_study, normal, peak_memory, silent, succeed
from sklearn.datasets import load_digits

from spectral_moments import feature_learning, increasing, naive, participation_ratio
from spectral_moments.feature_learning import (
    FASHION_FILES,
    SCALINGS,
    Networks,
    Scaling,
    draw_split,
    fashion_folders,
    find_fashion_mnist,
    first_moment_powers,
    follow,
    load_fashion_mnist,
    member,
    read_idx,
    train,
)
from spectral_moments.networks import record, rms_normalized

try:
    find_fashion_mnist()
except FileNotFoundError:
    FASHION = False
else:
    FASHION = True


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)


@pytest.fixture(scope="module")
def split(digits):
    return draw_split(*digits, 200, 100, 0)


# --- Fashion-MNIST ---


def idx(array, code=8, announced=None):
    shape = announced or array.shape
    return (
        bytes([0, 0, code, len(shape)])
        + struct.pack(f">{len(shape)}I", *shape)
        + array.tobytes()
    )


@pytest.fixture
def files(tmp_path, monkeypatch):
    "A folder with a small Fashion-MNIST, and its arrays."
    monkeypatch.setitem(FASHION_FILES, "train", (*FASHION_FILES["train"][:2], 20))
    rng = np.random.default_rng(0)
    images = rng.integers(256, size=(20, 28, 28), dtype=np.uint8)
    labels = rng.integers(10, size=20, dtype=np.uint8)
    for name, array in zip(FASHION_FILES["train"], (images, labels)):
        (tmp_path / name).write_bytes(gzip.compress(idx(array)))
    return tmp_path, images, labels


def replace(folder, which, content):
    path = folder / FASHION_FILES["train"][which]
    path.write_bytes(content)
    return path


def test_sound_files(files):
    folder, images, labels = files
    for place in (folder, str(folder)):
        found = load_fashion_mnist(place)
        np.testing.assert_array_equal(found[0], images)
        np.testing.assert_array_equal(found[1], labels)


def test_cache_comes_first(files, monkeypatch):
    folder, images, _ = files
    cache = folder / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    place = cache / "spectral_moments" / "fashion-mnist"
    place.mkdir(parents=True)
    for name in FASHION_FILES["train"][:2]:
        (place / name).write_bytes((folder / name).read_bytes())
    assert find_fashion_mnist()[0].parent == place
    np.testing.assert_array_equal(load_fashion_mnist()[0], images)
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(folder))
    assert fashion_folders()[0] == folder / ".cache" / "spectral_moments" / "fashion-mnist"
    assert fashion_folders()[1] == Path("/usr/share/datasets/fashion-mnist")


def test_missing_files_say_how_to_get_them(tmp_path, files):
    folder, _, _ = files
    (folder / FASHION_FILES["train"][1]).unlink()  # half of the files is not enough
    with pytest.raises(
        FileNotFoundError, match="apt-get install dataset-fashion-mnist"
    ) as e:
        load_fashion_mnist(folder)
    for part in ("train", "test"):
        assert all(name in str(e.value) for name in FASHION_FILES[part][:2])
    assert str(folder) in str(e.value)
    with pytest.raises(ValueError, match="part = 'validation' must be one of train, test"):
        load_fashion_mnist(part="validation")


@pytest.mark.parametrize("keep", [0.5, 0.99])
def test_truncated_gzip(files, keep):
    folder, images, _ = files
    content = gzip.compress(idx(images))
    replace(folder, 0, content[: int(keep * len(content))])
    with pytest.raises(ValueError, match="ends too early.*fetch it again"):
        load_fashion_mnist(folder)


def test_empty_file(files):
    folder, _, _ = files
    path = replace(folder, 0, b"")
    with pytest.raises(ValueError, match="is empty; delete it and fetch it again") as e:
        load_fashion_mnist(folder)
    assert str(path) in str(e.value)


def test_one_file_of_two(files, tmp_path, monkeypatch):
    folder, images, _ = files
    place = tmp_path / "spectral_moments" / "fashion-mnist"
    place.mkdir(parents=True)
    names = FASHION_FILES["train"][:2]
    (place / names[0]).write_bytes((folder / names[0]).read_bytes())
    with pytest.raises(FileNotFoundError, match=f"lacks only {names[1]}") as error:
        load_fashion_mnist(place)
    assert f"lacks only {names[0]}" not in str(error.value)
    monkeypatch.setattr(feature_learning, "fashion_folders", lambda: [place, folder])
    np.testing.assert_array_equal(load_fashion_mnist()[0], images)  # the next folder


def test_not_gzip(files):
    folder, images, _ = files
    replace(folder, 0, idx(images))
    with pytest.raises(ValueError, match="not a sound gzip file"):
        load_fashion_mnist(folder)
    content = bytearray(gzip.compress(idx(images)))
    content[len(content) // 2] ^= 0xFF
    replace(folder, 0, bytes(content))
    with pytest.raises(ValueError, match="train-images.*fetch it again"):
        load_fashion_mnist(folder)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty; delete it and fetch it again"),
        (b"\x00\x00", "starts with 00 00, not"),
        (idx(np.zeros(20, np.uint8)), "starts with 00 00 08 01, not with 00 00 08 03"),
        (idx(np.zeros((20, 28, 28), np.uint8), code=13), "starts with 00 00 0d 03"),
        (b"P5 28 28", "not an IDX file of bytes with 3 axes"),
        (idx(np.zeros((20, 28, 28), np.uint8))[:9], "ends within its header"),
        (idx(np.zeros((19, 28, 28), np.uint8), announced=(20, 28, 28)), "but holds 14896"),
        (
            idx(np.zeros((21, 28, 28), np.uint8), announced=(20, 28, 28)),
            "20 x 28 x 28 bytes",
        ),
        (idx(np.zeros((19, 28, 28), np.uint8)), "19 images but .* 20 labels"),
        (idx(np.zeros((20, 28, 27), np.uint8)), "20 x 28 x 27 .* has 20 x 28 x 28"),
    ],
)
def test_wrong_images(files, content, message):
    folder, _, _ = files
    replace(folder, 0, gzip.compress(content))
    with pytest.raises(ValueError, match=message) as error:
        load_fashion_mnist(folder)
    assert "train-images" in str(error.value)


def test_wrong_labels(files):
    folder, _, _ = files
    replace(folder, 1, gzip.compress(idx(np.full(20, 10, np.uint8))))
    with pytest.raises(ValueError, match="has the label 10; they go from 0 to 9"):
        load_fashion_mnist(folder)
    replace(folder, 1, gzip.compress(idx(np.zeros(21, np.uint8))))
    with pytest.raises(ValueError, match="do not belong together"):
        load_fashion_mnist(folder)


def test_consistent_files_of_the_wrong_count(files):
    folder, _, _ = files
    replace(folder, 0, gzip.compress(idx(np.zeros((10, 28, 28), np.uint8))))
    replace(folder, 1, gzip.compress(idx(np.zeros(10, np.uint8))))
    with pytest.raises(ValueError, match="10 x 28 x 28 bytes; Fashion-MNIST has 20"):
        load_fashion_mnist(folder)


def test_several_gzip_members(files):
    folder, images, _ = files
    content = idx(images)
    path = replace(folder, 0, gzip.compress(content[:99]) + gzip.compress(content[99:]))
    np.testing.assert_array_equal(read_idx(path, 3), images)


def test_gzip_bombs_are_not_unpacked(files):
    folder, images, _ = files
    huge = struct.pack(">4B3I", 0, 0, 8, 3, 2**20, 28, 28)  # announced
    replace(folder, 0, gzip.compress(huge + bytes(2**20)))
    with pytest.raises(ValueError, match="announces 1048576 x 28 x 28 bytes, more than"):
        load_fashion_mnist(folder)
    bomb = gzip.compress(idx(images) + bytes(2**28), 1)  # not announced
    assert len(bomb) < 2**21
    path = replace(folder, 0, bomb)
    with pytest.raises(ValueError, match="announces 20 x 28 x 28 bytes but holds more"):
        load_fashion_mnist(folder)

    def refused():
        with pytest.raises(ValueError, match="holds more"):
            read_idx(path, 3)

    assert peak_memory(refused) < 2**23  # of 2**28
    replace(folder, 0, gzip.compress(huge[:4] + b"\xff" * 12))
    with pytest.raises(ValueError, match="4294967295 x 4294967295 .* more than 1073741824"):
        read_idx(path, 3)


@pytest.mark.skipif(not FASHION, reason="Fashion-MNIST is not installed")
@pytest.mark.parametrize(("part", "count"), [("train", 60000), ("test", 10000)])
def test_real_files(part, count):
    images, labels = load_fashion_mnist(part=part)
    assert images.shape == (count, 28, 28) and images.dtype == labels.dtype == np.uint8
    assert (np.bincount(labels) == count // 10).all()
    assert labels[0] == 9  # an ankle boot opens both parts
    assert images.mean() == pytest.approx(73, abs=0.3)


# --- splits ---


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


def test_black_images_stay_black():
    split = draw_split(np.zeros((4, 2, 2)), np.zeros(4, int), 3, 1)
    assert not split.train_images.any() and split.test_images.shape == (1, 4)


def test_split_messages(digits):
    with pytest.raises(ValueError, match="n_train \\+ n_test = 1800, but there are 1797"):
        draw_split(*digits, 1700, 100)
    with pytest.raises(ValueError, match="5 images but 4 labels"):
        draw_split(np.ones((5, 2)), np.ones(4, int), 2, 1)


# --- networks ---


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


def test_member_is_the_same_function(split):
    networks = Networks(64, 50, seeds=[3, 4, 5])
    list(train(networks, [split] * 3, 2))
    x = torch.tensor(split.test_images)
    for index in range(3):
        module = member(networks, index)
        assert [name for name, _ in module.named_children()] == [
            "first",
            "hidden",
            "second",
        ]
        np.testing.assert_allclose(
            module(x).detach(), networks(x)[index].detach(), atol=1e-5
        )
        phi = record(module, "hidden", split.test_images)
        np.testing.assert_allclose(phi, networks.features(x)[index].detach(), atol=1e-5)


def test_company_does_not_matter(digits):
    splits = [draw_split(*digits, 150, 50, seed) for seed in range(3)]
    together = follow(Networks(64, 20, seeds=[0, 1, 2]), splits, 2)
    alone = follow(Networks(64, 20, seeds=[1]), [splits[1]], 2)
    for name in ("naive", "ours", "ratio", "loss", "accuracy"):
        np.testing.assert_allclose(together[name][1], alone[name][0], rtol=1e-4)


def test_seeds_and_widths_differ():
    a, b = Networks(6, 5, seeds=[0, 1]).first
    assert (a != b).all()
    assert (Networks(6, 5).first[0] == a).all()
    assert (Networks(6, 6).first[0, :, :5] * 6**0.5 != a * 5**0.5).any()


def test_training_learns(split):
    networks = Networks(64, 64, seeds=[0])
    found = follow(networks, [split], 10, measured=[0, 5, 10], n_max=3)
    assert found["epochs"].tolist() == [0, 5, 10]
    assert found["accuracy"][0, -1] > 0.75 > 0.3 > found["accuracy"][0, 0]
    assert (np.diff(found["loss"][0]) < 0).all()


def test_own_scaling(split):
    half = Scaling(first=1, multiplier=0.5, rate=0.5)
    pair = [Networks(64, 30, scaling=scaling) for scaling in (half, "maximal update")]
    for networks in pair:
        assert list(train(networks, [split], 1)) == [0, 1]
    assert (pair[0].first == pair[1].first).all()


def test_last_batch_may_be_short(split):
    odd = split._replace(
        train_images=split.train_images[:33], train_labels=split.train_labels[:33]
    )
    assert list(train(Networks(64, 8), [odd], 2)) == [0, 1, 2]


def test_training_messages(split):
    with pytest.raises(ValueError, match="scaling = 'mup' must be one of maximal update"):
        Networks(64, 32, scaling="mup")
    with pytest.raises(ValueError, match="width"):
        Networks(64, 0)
    with pytest.raises(ValueError, match="seeds is empty"):
        Networks(64, 8, seeds=[])
    with pytest.raises(
        ValueError, match="2 networks, but 1 splits"
    ):  # before the first step
        train(Networks(64, 8, seeds=[0, 1]), [split], 1)
    with pytest.raises(ValueError, match="epochs"):
        train(Networks(64, 8), [split], 0)


def test_progress_bar(split, capsys, monkeypatch):
    list(train(Networks(64, 8), [split], 3))
    assert capsys.readouterr().err == ""
    list(train(Networks(64, 8), [split], 3, progress=True))
    shown = capsys.readouterr().err
    assert "width 8" in shown and "3/3" in shown
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match=r"pip install 'spectral_moments\[progress\]'"):
        next(iter(train(Networks(64, 8), [split], 1, progress=True)))


# --- watch ---


def test_follow_measures_what_it_says(split):
    networks = Networks(64, 40, seeds=[7])
    x = torch.tensor(split.test_images)
    raw = networks.features(x)[0].detach().double().numpy()
    phi = rms_normalized(raw)
    shown = []
    keep = lambda seed, epoch, layer: shown.append((seed, epoch, layer.shape))
    found = follow(networks, [split], 2, n_max=4, keep=keep)
    assert shown == [(7, 0, (100, 40)), (7, 2, (100, 40))]
    np.testing.assert_allclose(found["naive"][0, 0], naive(phi, 4), rtol=1e-5)
    np.testing.assert_allclose(
        found["ratio"][0, 0], feature_learning.plain_ratio(phi), rtol=1e-5
    )
    np.testing.assert_allclose(found["ours"][0, 0, :2], increasing(phi, 2), rtol=1e-5)
    np.testing.assert_allclose(found["size"][0, 0] * phi, raw, rtol=1e-4, atol=1e-5)
    assert abs(found["powers"][0, 0] - 1).max() < 0.5
    shapes = {name: values.shape for name, values in found.items()}
    assert shapes == {
        "epochs": (2,),
        **dict.fromkeys(("loss", "accuracy"), (1, 2)),
        **dict.fromkeys(("naive", "ours", "powers"), (1, 2, 4)),
        "size": (1, 2, 1),
        "ratio": (1, 2, 2),
    }
    for name in ("naive", "ours"):
        np.testing.assert_allclose(found[name][..., 0], 1)


# --- powers of the first moment ---


@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (3, 6), (6, 3), (1, 5)])
def test_powers_are_means_over_chains(shape):
    phi = normal(shape, 0)
    orders = range(1, min(shape) + 1)
    expected = []
    for n in orders:
        rows = list(itertools.combinations(range(shape[0]), n))
        columns = list(itertools.combinations(range(shape[1]), n))
        expected.append(np.mean([np.prod(phi[i, a] ** 2) for i in rows for a in columns]))
    found = first_moment_powers(phi, min(shape))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    flipped = first_moment_powers(phi[::-1, ::-1].T, min(shape))
    np.testing.assert_allclose(found, flipped, rtol=1e-12)


def test_powers_over_permutations():
    phi = normal((5, 4), 0).tolist()
    found = first_moment_powers(phi, 3, n_permutations=4000, random_state=0)
    orders = [
        np.ix_(rows, columns)
        for rows in itertools.permutations(range(5))
        for columns in itertools.permutations(range(4))
    ]
    every = np.mean([first_moment_powers(np.array(phi)[o], 3) for o in orders], axis=0)
    np.testing.assert_allclose(found, every, rtol=0.1)  # 4 standard errors
    same = [first_moment_powers(phi, 3, n_permutations=2, random_state=1) for _ in "ab"]
    np.testing.assert_array_equal(*same)
    assert first_moment_powers(phi, 3)[0] == pytest.approx(np.mean(np.square(phi)))
    with pytest.raises(ValueError, match="n_max"):
        first_moment_powers(phi, 5)
    with pytest.raises(ValueError, match="n_permutations"):
        first_moment_powers(phi, 2, n_permutations=-1)


# --- without torch ---


def test_no_module_imports_torch():
    succeed(
        "-c",
        "import importlib, pkgutil, sys, spectral_moments\n"
        "for info in pkgutil.iter_modules(spectral_moments.__path__):\n"
        "    if info.name != 'sklearn':  # the twin of its estimators\n"
        "        importlib.import_module(f'spectral_moments.{info.name}')\n"
        "assert not {'torch', 'sklearn', 'tqdm'} & set(sys.modules)",
    )


def test_without_torch():
    shown = succeed(
        "-c",
        "import sys; sys.modules['torch'] = None\n"
        "import numpy as np\n"
        "from spectral_moments import feature_learning as f, networks as n\n"
        "split = f.draw_split(np.ones((5, 2)), np.zeros(5, int), 3, 2, 0)\n"
        "for call in (lambda: f.Networks(2, 3), lambda: n.record(None, '', [1])):\n"
        "    try: call()\n"
        "    except ImportError as error: print(error)\n",
    )
    assert shown.stdout.count("pip install 'spectral_moments[torch]'") == 2


def test_live_check_without_the_images(monkeypatch, capsys):
    "The chapter's check runs on digits if there are no pictures of clothes, and can fail."
    cells = json.loads((RESULTS.parent / "nbs/17_feature_learning.ipynb").read_text())[
        "cells"
    ]
    (source,) = (
        "".join(c["source"])
        for c in cells
        if "load_fashion_mnist()\n" in "".join(c["source"])
    )
    monkeypatch.setattr(feature_learning, "fashion_folders", lambda: [RESULTS / "nowhere"])
    about, arrays = results(RESULTS)
    known = vars(feature_learning) | dict(about=about, stored=arrays, digits=load_digits())
    check = source[: source.index("names = ")]
    exec(check, dict(known))
    assert "the check runs on digits" in capsys.readouterr().out
    known["stored"] = arrays | {"digits ours": arrays["digits ours"] * 1.001}
    with pytest.raises(AssertionError):
        exec(check, known)


# --- the study ---

TINY = {
    "digits": dict(
        widths=[8, 12],
        subsets=dict(
            width=12, neurons=6, epochs=[0, 2], partitions=3, with_error=1, n_permutations=1
        ),
        n_train=40,
        n_test=30,
        epochs=2,
        measured=[0, 1, 2],
        n_max=4,
        n_permutations=1,
    )
}
TRAINED = {"digits": TINY["digits"] | {"subsets": None}}


@pytest.fixture
def study():
    threads = torch.get_num_threads()
    yield load_study("feature_learning")
    torch.set_num_threads(threads)


def results(folder):
    about = json.loads((folder / "feature_learning.json").read_text())
    with np.load(folder / "feature_learning.npz") as arrays:
        return about, dict(arrays)


def test_study_continues_where_it_stopped(study, tmp_path, monkeypatch):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    run = lambda seeds, parts, output: study.run(
        TINY, seeds, parts=parts, output=output, report=silent
    )
    run(5, tmp_path / "once", whole)
    done, run_task = [], study.run_task

    def interrupted(function, name, settings, seeds, width, *rest):
        if len(done) == 8:
            raise KeyboardInterrupt
        done.append((tuple(seeds), width))
        return run_task(function, name, settings, seeds, width, *rest)

    monkeypatch.setattr(study, "run_task", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(5, parts, tmp_path)
    few = [((seed,), "subsets") for seed in range(4)]
    assert done == [((0, 1, 2, 3), 12), ((0, 1, 2, 3), 8), *few, ((4,), 12), ((4,), 8)]
    about, _ = results(tmp_path)
    assert about["digits"]["seeds"] == [0, 1, 2, 3, 4]
    assert about["digits"]["subset seeds"] == [0, 1, 2, 3]  # the fifth is not complete
    (parts / ".99-digits_seed3_width8.npz").write_bytes(b"left over")
    done.clear()
    run(5, parts, tmp_path)
    assert done == [((4,), "subsets")]
    about, arrays = results(tmp_path)
    _, expected = results(whole)
    assert about["digits"]["subset seeds"] == [0, 1, 2, 3, 4]
    assert arrays.keys() == expected.keys()
    for name, values in arrays.items():
        np.testing.assert_allclose(values, expected[name], rtol=1e-4, err_msg=name)
    assert arrays["digits ours"].shape == (5, 2, 3, 4)
    assert arrays["digits part ours"].shape == (5, 3, 2, 4)
    assert arrays["digits subsets"].shape == (5, 2, 4, 8, 4)
    done.clear()
    run(5, parts, tmp_path)
    assert not done
    assert (parts / ".gitignore").read_text() == "*\n"


def test_what_is_stored_is_used_again(study, tmp_path):
    study.run(TRAINED, 2, parts=tmp_path / "one", output=tmp_path, report=silent)
    (tmp_path / "two").mkdir()
    study.adopt(TRAINED, tmp_path / "two", tmp_path)
    assert not study.missing(TRAINED, 2, tmp_path / "two")
    for width in (8, 12):
        one, two = (
            study.read_part(tmp_path / name, "digits", TRAINED["digits"], 1, width)
            for name in ("one", "two")
        )
        np.testing.assert_allclose(one["ours"], two["ours"], rtol=1e-6)
    other = {"digits": TRAINED["digits"] | {"n_train": 39}}
    (tmp_path / "three").mkdir()
    study.adopt(other, tmp_path / "three", tmp_path)
    assert len(study.missing(other, 2, tmp_path / "three")) == 2


@pytest.mark.filterwarnings("ignore::spectral_moments.results.EstimateWarning")
def test_mean_over_subsets_is_the_layer(study):
    phi = normal((30, 12), 0) * np.arange(1, 13)  # neurons of very different strength
    settings = TINY["digits"] | {"n_max": 4}
    settings["subsets"] = settings["subsets"] | {"partitions": 400, "with_error": 0}
    found = study.measure_layer(phi, settings, (0, 0), True)
    mean, error = found["finite"].mean(0), found["finite"].std(0) / np.sqrt(800)
    assert (abs(mean - found["all finite"]) < 4 * error + 1e-9).all()
    mean, error = found["ours"].mean(0), found["ours"].std(0) / np.sqrt(800)
    assert (abs(mean - found["all"]) < 4 * error + 1e-9).all()
    mean, error = found["naive"].mean(0), found["naive"].std(0) / np.sqrt(800)
    assert (mean - found["all"] > 4 * error)[1:].all()  # negative control


def test_parts_of_other_settings_are_not_used(study, tmp_path):
    parts = tmp_path / "parts"
    study.run(TRAINED, 1, parts=parts, output=tmp_path, report=silent)
    assert not study.missing(TRAINED, 1, parts)
    longer = {"digits": TRAINED["digits"] | {"epochs": 3}}
    assert len(study.missing(longer, 1, parts)) == 2
    wider = {"digits": TRAINED["digits"] | {"widths": [8, 12, 16]}}
    assert [task[-1] for task in study.missing(wider, 1, parts)] == [16]


def test_study_file_says_what_it_is(study, tmp_path):
    study.run(TRAINED, 1, parts=tmp_path / "parts", output=tmp_path, report=silent)
    about, _ = results(tmp_path)
    assert about["command"] == "python studies/feature_learning.py --seeds 1"
    assert about["versions"].keys() >= {"python", "numpy", "torch"}
    assert about["digits"]["settings"] == TRAINED["digits"]
    assert about["digits"]["epochs"] == [0, 1, 2]
    assert all(seconds > 0 for seconds in about["digits"]["seconds"].values())


def test_fewer_seeds_do_not_replace_more(study, tmp_path):
    options = dict(parts=tmp_path / "parts", output=tmp_path / "new", report=silent)
    study.run(TRAINED, 2, **options)  # which makes the folder
    before = (tmp_path / "new" / "feature_learning.npz").read_bytes()
    with pytest.raises(ValueError, match="holds results of 2 seeds.*--force"):
        study.run(TRAINED, 1, **options)
    for seeds in (0, -1):
        with pytest.raises(ValueError, match="must be at least 1"):
            study.run(TRAINED, seeds, force=True, **options)
    assert (tmp_path / "new" / "feature_learning.npz").read_bytes() == before
    study.run(TRAINED, 1, force=True, **options)
    assert results(tmp_path / "new")[0]["digits"]["seeds"] == [0]


@pytest.mark.parametrize("force", [False, True])
def test_an_interrupted_run_leaves_the_old_results(study, tmp_path, force):
    study.run(TRAINED, 2, parts=tmp_path / "parts", output=tmp_path, report=silent)
    _, before = results(tmp_path)
    longer = {"digits": TRAINED["digits"] | {"epochs": 3}}  # nothing of it is there
    reports = []

    def interrupt(*text, **_):
        reports.append(text)
        if len(reports) == 2:
            raise KeyboardInterrupt

    options = dict(parts=tmp_path / "other", output=tmp_path, report=interrupt)
    with pytest.raises(KeyboardInterrupt):
        study.run(longer, 2, force=force, **options)
    _, after = results(tmp_path)
    assert after.keys() == before.keys()
    for name, values in after.items():
        np.testing.assert_array_equal(values, before[name])


def test_a_study_that_is_stored_is_not_dropped(study, tmp_path):
    two = {"digits": TRAINED["digits"], "other": TRAINED["digits"]}
    options = dict(parts=tmp_path / "parts", output=tmp_path)
    study.run(two, 1, report=silent, **options)
    said = []
    study.run(TRAINED, 1, report=lambda text, **_: said.append(text), **options)
    assert "stays as it is" in said[-1]
    assert {"digits", "other"} <= results(tmp_path)[0].keys()


@pytest.mark.parametrize("damage", ["empty", "cut", "text", "no settings", "gone"])
def test_damaged_parts_are_computed_again(study, tmp_path, damage):
    parts = tmp_path / "parts"
    study.run(TRAINED, 1, parts=parts, output=tmp_path, report=silent)
    _, before = results(tmp_path)
    path = study.part_path(parts, "digits", 0, 8)
    content = path.read_bytes()
    path.unlink()
    if damage == "no settings":
        np.savez(path, loss=np.zeros(3))
    elif damage != "gone":
        damaged = {"empty": b"", "cut": content[: len(content) // 2], "text": b"text"}
        path.write_bytes(damaged[damage])
    assert [task[3:] for task in study.missing(TRAINED, 1, parts)] == [([0], 8)]
    study.run(TRAINED, 1, parts=parts, output=tmp_path, report=silent)
    _, after = results(tmp_path)
    for name, values in after.items():
        np.testing.assert_allclose(values, before[name], rtol=1e-5, err_msg=name)


def test_command_line_refuses(study, tmp_path, capsys):
    study.run(TRAINED, 2, parts=tmp_path / "parts", output=tmp_path, report=silent)
    for seeds, message in (("0", "must be at least 1"), ("1", "holds results of 2 seeds")):
        with pytest.raises(SystemExit):
            study.main(["--seeds", seeds, "--output", str(tmp_path)])
        assert message in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore::spectral_moments.results.EstimateWarning")
def test_centred_study(study, tmp_path):
    settings = dict(widths=[8, 12], seeds=[0, 1], n_train=40, n_test=30, epochs=[0, 2])
    study.centred(settings, tmp_path / "new", study="digits", report=silent)
    about = json.loads((tmp_path / "new" / "feature_learning_centred.json").read_text())
    assert about["settings"] == settings and about["versions"].keys() >= {"torch"}
    images = load_digits()
    split = draw_split(images.images, images.target, 40, 30, 1)
    networks = Networks(64, 12, seeds=[1])
    list(train(networks, [split], 2))
    phi = record(member(networks), "hidden", split.test_images)
    for name, center in (("centred", True), ("uncentred", False)):
        expected = participation_ratio(phi, center=center)
        np.testing.assert_allclose(about["widths"]["12"][name][1][1], expected, rtol=1e-3)


def test_stored_centred_study(study):
    path = RESULTS / "feature_learning_centred.json"
    about = json.loads(path.read_text())
    assert about["settings"] == study.CENTRED and path.stat().st_size < 20_000
    assert list(about["widths"]) == [str(width) for width in study.CENTRED["widths"]]
    for found in about["widths"].values():
        assert np.shape(found["centred"]) == np.shape(found["uncentred"]) == (3, 6, 2)
        assert np.isfinite(found["centred"]).all()


def test_stored_study(study):
    about, arrays = results(RESULTS)
    for name, settings in study.STUDIES.items():
        assert about[name]["settings"] == settings
        seeds, epochs = len(about[name]["seeds"]), len(about[name]["epochs"])
        assert seeds >= 12 and about[name]["epochs"] == settings["measured"]
        shape = seeds, len(settings["widths"]), epochs
        assert arrays[f"{name} naive"].shape == arrays[f"{name} ours"].shape == (*shape, 7)
        assert arrays[f"{name} powers"].shape == (*shape, 7)
        assert arrays[f"{name} size"].shape == (*shape, 1)
        assert arrays[f"{name} ratio"].shape == (*shape, 2)
        assert arrays[f"{name} loss"].shape == shape
    seeds = len(about["fashion"]["subset seeds"])
    assert arrays["fashion subsets"].shape == (seeds, 3, 4, 8, 7)
    assert arrays["fashion part ours"].shape == (seeds, 16, 8, 7)
    assert all(
        np.isfinite(values).all()
        for name, values in arrays.items()
        if "with error" not in name
    )
    for end in ("json", "npz"):
        assert (RESULTS / f"feature_learning.{end}").stat().st_size < 600_000
