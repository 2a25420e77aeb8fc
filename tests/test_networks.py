"""Networks: models of every shape, hooks without a trace, a dimension with a gradient."""

import contextlib
import copy
import io
import itertools
import math

import numpy as np
import pytest
import torch
from conftest import normal

import spectral_moments as sm
from spectral_moments import diagnostics
from spectral_moments.checks import ArgumentError
from spectral_moments.engine.blocks import walk_lanes
from spectral_moments.engine.graphs import Layout, word_weights
from spectral_moments.engine.planner import graph_sums
from spectral_moments.engine.sources import Pair
from spectral_moments.layers import POSITIONS
from spectral_moments.networks import (
    inverse_dimension,
    record,
    rms_normalized,
)
from spectral_moments.results import power_words
from spectral_moments.similarity import gram_mean, row_debiased_alignment

ignore_doubts = pytest.mark.filterwarnings("ignore::spectral_moments.EstimateWarning")


# --- record ---


def matrix(*args, **options):
    "The values of a recording."
    return record(*args, **options).values


def alone(layer):
    "A model of one layer, whose name is 0."
    return torch.nn.Sequential(layer)


def outputs(module, x):
    "What a module returns, as an array."
    return module(x).detach().double().numpy()


def interrupt(*_):
    "A hook that ends a pass."
    raise KeyboardInterrupt


def close(found, expected, rtol=1e-5, atol=1e-6):
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)


class Named(torch.nn.Module):
    "Layers of many kinds; `unused` is never called, `twice` is called twice."

    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.ReLU(inplace=True))
        self.norm = torch.nn.BatchNorm1d(7)
        self.drop = torch.nn.Dropout(0.5)
        self.twice = torch.nn.Identity()
        self.unused = torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.twice(self.twice(self.drop(self.norm(self.body(x)))))


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Named()


def test_names_and_modules(model):
    x = torch.randn(9, 5)
    linear = outputs(model.body[0], x)
    for layer in ("body.0", model.body[0]):
        phi = matrix(model, layer, x)
        assert phi.dtype == np.float64 and phi.shape == (9, 7)
        np.testing.assert_array_equal(phi, linear)  # though the next layer is in place
    np.testing.assert_array_equal(matrix(model, "body", x), linear.clip(0))
    np.testing.assert_array_equal(matrix(model, "", x), outputs(model.eval(), x))


def test_model_is_left_as_it_was(model):
    model.norm.eval()  # a frozen part in a model that trains
    state = {name: value.clone() for name, value in model.state_dict().items()}
    calls = []
    model.norm.register_forward_hook(lambda *_: calls.append(1))
    a, b = (matrix(model, "drop", torch.randn(4, 5)) for _ in range(2))
    matrix(model, "norm", torch.randn(4, 5))
    assert model.training and model.drop.training and not model.norm.training
    assert all((value == state[name]).all() for name, value in model.state_dict().items())
    assert len(calls) == 3 and len(model.norm._forward_hooks) == 1
    assert not model.drop._forward_hooks
    assert all(parameter.grad is None for parameter in model.parameters())
    assert torch.is_grad_enabled() and (a != b).any()


@pytest.mark.parametrize("batch_size", [1, 3, 10, 11, 1000])
def test_batches_do_not_matter(model, batch_size):
    x = normal((11, 5), 0)
    found = matrix(model, "norm", x, batch_size=batch_size)
    close(found, matrix(model, "norm", x), rtol=1e-4)


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16]
)
def test_precisions(dtype):
    layer = torch.nn.Linear(3, 2, bias=False).to(dtype)
    x = torch.randn(6, 3, dtype=torch.float64)
    phi = matrix(alone(layer), "0", x)
    assert phi.dtype == np.float64
    np.testing.assert_array_equal(phi, outputs(layer, x.to(dtype)))


def test_kinds_of_inputs():
    model, x = alone(torch.nn.Linear(3, 4)), normal((8, 3), 0)
    expected, frozen = matrix(model, "0", x), x.copy()
    frozen.flags.writeable = False
    for same in (x.tolist(), frozen, np.asfortranarray(x), x[::-1][::-1], torch.tensor(x)):
        np.testing.assert_array_equal(matrix(model, "0", same), expected)
    words, numbers = alone(torch.nn.Embedding(10, 4)), np.arange(6).reshape(3, 2)
    assert matrix(words, "0", numbers, positions="mean").shape == (3, 4)
    bare = alone(torch.nn.ReLU())  # a model without parameters
    np.testing.assert_array_equal(matrix(bare, "0", x), x.clip(0))


def test_positions():
    conv, x = alone(torch.nn.Conv2d(2, 3, 2)), torch.randn(5, 2, 4, 6)
    out = outputs(conv, x)  # (5, 3, 3, 5)
    patches = out.transpose(0, 2, 3, 1).reshape(5, 15, 3)
    found = {p: matrix(conv, "0", x, positions=p, random_state=0) for p in POSITIONS}
    np.testing.assert_array_equal(found["features"], patches.reshape(5, 45))
    np.testing.assert_array_equal(found["inputs"], patches.reshape(75, 3))
    close(found["mean"], out.mean(axis=(2, 3)), rtol=1e-12, atol=0)
    for row, image in zip(found["sample"], patches, strict=True):
        assert (row == image).all(axis=1).any()
    options = dict(positions="sample", batch_size=2)
    same, other = (matrix(conv, "0", x, random_state=s, **options) for s in (0, 1))
    close(same, found["sample"], rtol=0, atol=1e-5)  # for every batch size
    assert (same != other).any()


def test_sampled_positions_are_uniform():
    x = torch.arange(6.0).expand(3000, 1, 6)
    options = dict(positions="sample", feature_axis=1, random_state=0)
    phi = matrix(alone(torch.nn.Identity()), "0", x, **options)
    counts = np.bincount(phi[:, 0].astype(int), minlength=6)
    assert (abs(counts - 500) < 100).all()  # 4.9 standard deviations


def test_feature_axis():
    for conv, x in (
        (torch.nn.Conv1d(2, 3, 2), torch.randn(5, 2, 4)),  # the kind of module tells
        (torch.nn.Conv2d(1, 3, 2), torch.randn(4, 1, 3, 3)),
    ):
        phi = matrix(alone(conv), "0", x, positions="mean")
        same = matrix(alone(conv), "0", x, positions="mean", feature_axis=1)
        np.testing.assert_array_equal(phi, same)
        expected = outputs(conv, x).mean(axis=tuple(range(2, x.ndim)))
        close(phi, expected, rtol=1e-12, atol=0)


class Fourier(torch.nn.Module):
    def forward(self, x):
        return torch.fft.fft(x)


def test_integer_inputs():
    pixels = np.random.default_rng(0).integers(0, 256, (3, 1, 4, 4)).astype(np.uint8)
    for model in (
        torch.nn.Sequential(torch.nn.Conv2d(1, 2, 2), torch.nn.Flatten()),
        torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 2)),
    ):
        for inputs in (pixels, torch.tensor(pixels), torch.tensor(pixels).long()):
            with pytest.raises(TypeError, match=r"inputs.float\(\) / 255"):
                matrix(model, "1", inputs)
        matrix(model, "1", pixels / 255)
        matrix(model, "1", torch.tensor(pixels).float() / 255)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        matrix(model, "1", torch.randn(4, 5))  # an error of another kind stays


def test_every_name_of_a_shared_layer():
    shared, x = torch.nn.Linear(3, 3), torch.randn(4, 3)
    model = torch.nn.ModuleDict({"left": shared, "right": shared})
    model.forward = lambda x: model["right"](x)
    np.testing.assert_array_equal(matrix(model, "right", x), matrix(model, "left", x))
    with pytest.raises(ValueError, match="its layers are 'left', 'right'"):
        matrix(model, "middle", x)


@pytest.mark.parametrize("positions", POSITIONS)
def test_shapes(positions):
    rows = 3 if positions == "inputs" else 1
    columns = 3 if positions == "features" else 1
    for layer, x in (
        (torch.nn.Linear(4, 6), torch.randn(5, 3, 4)),
        (torch.nn.Conv3d(1, 6, (1, 2, 2)), torch.randn(5, 1, 3, 2, 2)),
    ):
        phi = matrix(alone(layer), "0", x, positions=positions)
        assert phi.shape == (5 * rows, 6 * columns)
    model, x = alone(torch.nn.Linear(2, 2)), torch.randn(4, 2)  # there are none
    same = matrix(model, "0", x, positions=positions)
    np.testing.assert_array_equal(same, matrix(model, "0", x))


def test_record_messages(model):
    x, maps, conv = torch.randn(4, 5), torch.randn(3, 1, 4, 4), torch.nn.Conv2d(1, 2, 2)
    same, mean = torch.nn.Identity(), dict(positions="mean")
    axes = r"\(4, 5, 1\).*feature_axis=1 \(Conv1d\) or -1 \(transformer\)"
    for net, layer, given, options, message in (
        (model, "head", x, {}, "'head' is not in .*; its layers are 'body', 'body.0'"),
        (model, torch.nn.Linear(2, 2), x, {}, "layer = a Linear is not in the model"),
        (model, "unused", x, {}, "layer 'unused' was not called in one pass"),
        (model, "twice", x, {}, "layer 'twice' was called 2 times"),
        (model, "body", x[:0], {}, "inputs is empty"),
        (model, "body", torch.tensor(1.0), {}, "inputs is empty"),
        (model, "body", x, dict(batch_size=0), "batch_size"),
        (model, "body", x, dict(positions="channels"), "'channels' must be one of"),
        (lambda x: x, "body", x, {}, "model is a function, not a torch.nn.Module"),
        (alone(torch.nn.LSTM(5, 3)), 0, x, mean, "one sequence, without an axis of inputs"),
        (alone(torch.nn.Flatten(0)), 0, x, {}, r"returned shape \(20,\); its first axis"),
        (alone(Fourier()), 0, x, {}, "layer '0' returns complex numbers"),
        (alone(conv), 0, maps, {}, "a position is by positions='features' or 'inputs'"),
        (alone(conv), 0, maps, mean | dict(feature_axis=4), "feature_axis = 4"),
        (alone(conv), 0, maps, mean | dict(feature_axis=0), "feature_axis = 0"),
        (alone(same), 0, x[..., None], mean, axes),  # may be anything
    ):
        with pytest.raises(ArgumentError, match=message):
            record(net, layer, given, **options)


def test_normalised():
    model, x = alone(torch.nn.Linear(3, 4)), torch.randn(7, 3)
    phi = matrix(model, "0", x, normalize=True)
    assert np.mean(phi**2) == pytest.approx(1)
    np.testing.assert_allclose(phi, rms_normalized(matrix(model, "0", x)))
    for scale in (1e-300, 1e300):
        np.testing.assert_allclose(rms_normalized(phi * scale), phi, rtol=1e-12)
    for wrong, message in ((0.0, "the largest entry of phi is 0.0.*dead"), (np.nan, "nan")):
        with pytest.raises(ValueError, match=message):
            rms_normalized(np.array([[0.0, wrong]]))


class Overwriting(torch.nn.Module):
    "Changes what it is given before anything else."

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(5, 4)

    def forward(self, x):
        return self.layer(x.mul_(3).add_(1))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("kind", ["array", "tensor", "read-only"])
def test_record_leaves_its_inputs_alone(kind, dtype):
    in_place = torch.nn.Sequential(torch.nn.ReLU(inplace=True), torch.nn.Linear(5, 4))
    for model, layer in ((Overwriting(), "layer"), (in_place, "1")):
        model = model.to(torch.float32 if dtype == "f4" else torch.float64)
        x = normal((11, 5)).astype(dtype)
        given = torch.from_numpy(x.copy()) if kind == "tensor" else x.copy()
        if kind == "read-only":
            given.flags.writeable = False
        first = matrix(model, layer, given, batch_size=4)
        np.testing.assert_array_equal(np.asarray(given), x)
        np.testing.assert_array_equal(matrix(model, layer, given, batch_size=4), first)
        close(first, outputs(model, torch.from_numpy(x.copy())))


@ignore_doubts
def test_everything_uses_the_groups():
    conv = torch.nn.Sequential(torch.nn.Conv2d(1, 6, 2), torch.nn.ReLU())
    x = torch.randn(12, 1, 4, 4) + torch.randn(12, 1, 1, 1)
    for positions, name in (("inputs", "groups"), ("features", "column_groups")):
        phi = record(conv, "1", x, positions=positions)
        given = {name: getattr(phi, name)}
        found, told = sm.estimate(phi, 3), sm.estimate(phi.values, 3, **given)
        np.testing.assert_array_equal(found.values, told.values)
        np.testing.assert_array_equal(found.stderr, told.stderr)
        assert found.values[1] != sm.estimate(phi.values, 3).values[1]
    one, two = (record(conv, layer, x, positions="inputs") for layer in "01")
    told = sm.alignment(one.values, two.values, groups=one.groups)
    assert sm.alignment(one, two).value == told.value
    assert told.value != sm.alignment(one.values, two.values).value


def test_record_with_groups_and_a_mask():
    tokens, x = torch.nn.Sequential(torch.nn.Linear(4, 6)), torch.randn(5, 3, 4)
    mask = np.array([[1, 1, 0], [0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 1, 1]])
    options = dict(mask=mask, groups=list("aabbc"), batch_size=2)
    found = record(tokens, "0", x, positions="inputs", **options)
    whole = tokens(x).detach().double().numpy()
    np.testing.assert_allclose(found.values, whole[mask > 0], rtol=1e-5, atol=1e-6)
    assert "".join(found.groups) == "aabbbbccc"
    mean = matrix(tokens, "0", x, positions="mean", **options)
    expected = [w[m > 0].mean(0) for w, m in zip(whole, mask) if m.any()]
    np.testing.assert_allclose(mean, expected, rtol=1e-5, atol=1e-6)
    one = matrix(tokens, "0", x, positions="sample", **options)
    for row, w, m in zip(one, whole[mask.any(1)], mask[mask.any(1)], strict=True):
        assert np.isclose(w[m > 0], row, atol=1e-6).all(1).any()
    for name, given, positions, message in (
        ("mask", mask, "features", "positions='features'"),
        ("mask", mask[:, :2], "mean", "has shape .* 3 positions"),
        ("mask", mask - 1, "mean", "True or 1"),
        ("mask", lambda batch: mask[:3], "mean", "where 5 inputs passed"),
        ("groups", mask, "mean", "where 5 inputs passed"),
    ):
        with pytest.raises(ArgumentError, match=message) as error:
            record(tokens, "0", x, positions=positions, **{name: given})
        assert error.value.argument == name


def test_dicts_and_loaders():
    class Two(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 6)

        def forward(self, x, shift=0.0):
            return self.layer(x + shift)

    model, x, s = Two(), torch.randn(30, 4), torch.randn(30, 4)
    both = dict(x=x.numpy(), shift=s)
    first = lambda model, batch: model(batch[0])
    expected = model.layer(x).detach().double().numpy()
    shifted = model.layer(x + s).detach().double().numpy()
    data = torch.utils.data.TensorDataset(x, torch.arange(30))
    loader = torch.utils.data.DataLoader(data, 7)
    close = dict(rtol=1e-5, atol=1e-6)
    for given, options, result in (
        (both, {}, shifted),
        ([dict(x=x[:9], shift=s[:9]), dict(x=x[9:], shift=s[9:])], {}, shifted),
        (x.split(8), {}, expected),
        (([part] for part in x.split(8)), {}, expected),
        (loader, dict(call=first), expected),
    ):
        options = options | dict(batch_size=11)
        np.testing.assert_allclose(
            matrix(model, "layer", given, **options), result, **close
        )
    found = record(model, 0, loader, call=first, groups=lambda batch: batch[1] // 3)
    np.testing.assert_array_equal(found.groups, np.arange(30) // 3)
    for given, message in (
        (loader, r"2 things each; .* call=lambda model, batch: model\(batch\[0\]\)"),
        (dict(y=x), "does not take a batch with 'y'"),
        (dict(x=x, shift=s[:9]), "must all count the inputs; found 9, 30"),
        ({}, "found none"),
        ([], "inputs is empty"),
        (3.0, "is a float; give an array"),
    ):
        with pytest.raises(ArgumentError, match=message) as error:
            record(model, "layer", given)
        assert error.value.argument == "inputs"


def test_inputs_on_the_second_axis_and_packed_ones():
    torch.manual_seed(0)
    lengths, x = [5, 2, 4, 1], torch.randn(4, 5, 3)
    real = np.arange(5) < np.array(lengths)[:, None]
    pack = torch.nn.utils.rnn.pack_padded_sequence
    packed = pack(x, lengths, batch_first=True, enforce_sorted=False)
    first, second = alone(torch.nn.GRU(3, 6, batch_first=True)), alone(torch.nn.GRU(3, 6))
    second.load_state_dict(first.state_dict())
    expected = first(x)[0].detach().double().numpy()[real]
    for model, given, options in (
        (first, x, dict(mask=real)),
        (second, x.transpose(0, 1), dict(mask=real, batch_first=False)),
        (first, packed, {}),
        (second, packed, {}),
    ):
        found = record(model, "0", given, positions="inputs", batch_size=3, **options)
        close(found.values, expected)
        assert [*np.unique(found.groups, return_counts=True)[1]] == lengths
    block = torch.nn.TransformerEncoderLayer(6, 2, 8).eval()  # inputs on the second axis
    tokens, options = torch.randn(5, 7, 6), dict(positions="mean")
    for layer in ("", "linear1"):
        assert len(matrix(block, layer, tokens, batch_first=False, **options)) == 7
    with pytest.raises(ArgumentError, match="say batch_first=False") as error:
        record(block, "linear1", tokens, **options)
    assert error.value.argument == "batch_first"


# --- watch ---


class Many(torch.nn.Module):
    "One activation in many places, a tuple, a part that is called by itself."

    def __init__(self):
        super().__init__()
        self.first, self.act = torch.nn.Linear(5, 9), torch.nn.ReLU()
        self.last = torch.nn.Linear(9, 9)
        self.cells = torch.nn.LSTM(3, 7, batch_first=True)

    def forward(self, x):
        x = self.act(self.last(self.act(self.first(x))))
        return self.cells(x.reshape(-1, 3, 3))[0]


def hooks(model):
    parts = (part.__dict__ for part in model.modules())
    return sum(len(p["_forward_hooks"]) + len(p["_forward_pre_hooks"]) for p in parts)


def test_everything_is_kept_if_there_is_room():
    torch.manual_seed(0)
    model, x = Many(), torch.randn(50, 5)
    with sm.watch(model, ["act", "cells", model.last], random_state=0) as seen:
        assert hooks(model) == 5
        for batch in x.split(20):
            model(batch)
    assert hooks(model) == 0
    assert seen.n_inputs == dict.fromkeys(("act", "last", "act (call 2)", "cells"), 50)
    kept, groups, _ = seen.sample("act")
    assert groups is None
    close(kept, outputs(lambda x: model.act(model.first(x)), x))


@ignore_doubts
def test_answers_are_those_of_the_sample():
    torch.manual_seed(0)
    model, x = Many(), torch.randn(40, 5)
    with sm.watch(model, ["act", "last"], n_max=2, random_state=0) as seen:
        model(x)
    psi, table = matrix(model, "last", x), seen.dimension()
    for law, population in ((True, None), (False, (None, 9))):
        full = sm.estimate(psi, 2, population=population)
        found = seen.estimates(law=law)["last"]
        np.testing.assert_allclose(found.values, full.values, rtol=1e-6)
        np.testing.assert_allclose(found.stderr, full.stderr, rtol=1e-6)
        value = getattr(table["last"], "law" if law else "layer").value
        assert value == pytest.approx(full.dimension().value, rel=1e-6)
    assert (found.parts["features"] < 1e-9).all()  # all of the units were seen
    assert "this layer" in str(table) and "<table" in table._repr_html_()
    assert [*table] == ["act", "last", "act (call 2)"] and len(table) == 3
    frame = table.to_frame()
    assert frame.shape == (3, 10) and frame.loc["last", "layer_value"] == value
    columns = seen._named()["last"].columns
    seen.reset()
    assert seen.n_inputs == {}
    model(x)
    assert seen.n_inputs == {}  # it is closed
    with seen:
        model(x)
    assert seen._named()["last"].columns is columns
    seen.reset()
    with pytest.raises(ValueError, match="layer 'act' was not called"):
        seen.estimates()


def test_training_is_the_same_to_the_last_bit():
    def trained(watched):
        torch.manual_seed(1)
        layers = torch.nn.Linear(5, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.3)
        model = torch.nn.Sequential(*layers)
        adam = torch.optim.Adam(model.parameters())
        seen = sm.watch(model, ["0", "2"], inputs=20, units=4)
        with seen if watched else contextlib.nullcontext():
            for _ in range(30):
                adam.zero_grad()
                model(torch.randn(16, 5)).square().mean().backward()
                adam.step()
        assert model.training and torch.is_grad_enabled()
        return torch.cat([x.flatten().double() for x in model.state_dict().values()])

    assert torch.equal(trained(False), trained(True))


def test_hooks_are_removed_on_any_exit(model):
    many = Many()
    for error in (RuntimeError, KeyboardInterrupt, GeneratorExit):
        with pytest.raises(error), sm.watch(many, "act"):
            raise error
        assert hooks(many) == 0
    with pytest.raises(RuntimeError, match="shapes"), sm.watch(many, "act") as seen:
        many(torch.randn(3, 4))
    with seen, pytest.raises(RuntimeError, match="already open"):
        seen.open()
    assert hooks(many) == 0
    many(torch.randn(3, 5))
    assert seen.n_inputs == {}  # nothing is seen outside
    handle = model.drop.register_forward_hook(interrupt)
    with pytest.raises(KeyboardInterrupt):
        matrix(model, "norm", torch.randn(4, 5))
    handle.remove()
    assert hooks(model) == 0 and all(part.training for part in model.modules())
    assert torch.is_grad_enabled()


def test_copies_of_the_model_are_not_watched():
    model, x = torch.nn.Sequential(torch.nn.Linear(5, 8)), torch.randn(10, 5)
    with sm.watch(model, "0") as seen:
        other, file = copy.deepcopy(model), io.BytesIO()
        torch.save(model, file)
        other(x)
        file.seek(0)
        torch.load(file, weights_only=False)(x)
    assert seen.n_inputs == {}


def test_parts_that_are_called_by_themselves_and_checkpoints():
    from torch.utils.checkpoint import checkpoint

    model, x = Many(), torch.randn(10, 5, requires_grad=True)
    with sm.watch(model, "first") as seen:
        model.first(x)
        model.first(x[:5])
        checkpoint(model.first, x, use_reentrant=False).sum().backward()
    assert seen.n_inputs == {"first": 25}


@pytest.mark.parametrize("how", ["function", "method"])
def test_compiled(how):
    torch.manual_seed(0)
    plain = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh())
    model, x = plain, torch.randn(30, 5)
    if how == "function":
        model = torch.compile(plain, backend="eager")
    else:
        model.compile(backend="eager")
    model(x)
    with sm.watch(model, ["1", ""], random_state=0) as seen:
        model(x)
    expected = outputs(plain.forward, x)
    for name in ("1", "the model itself"):
        close(seen.sample(name).values, expected)
    close(matrix(model, "1", x), expected)
    assert hooks(plain) == 0


@pytest.mark.parametrize("positions", POSITIONS)
def test_watch_positions(positions):
    conv, x = alone(torch.nn.Conv2d(1, 6, 2)), torch.randn(40, 1, 4, 5)
    options = dict(positions=positions, inputs=24, units=10, random_state=0)
    with sm.watch(conv, "0", **options) as seen:
        for batch in x.split(16):
            conv(batch)
    phi, groups, column_groups = seen.sample("0")
    assert phi.shape == (24, 10 if positions == "features" else 6)
    if positions != "mean":
        assert {*np.round(phi.ravel(), 5)} <= {*np.round(outputs(conv, x).ravel(), 5)}
    if positions == "inputs":
        assert [*np.unique(groups, return_counts=True)[1]] == [4] * 6
    else:
        assert groups is None
    assert (column_groups is not None) == (positions == "features")


def test_memory_does_not_grow_with_the_steps():
    model, options = torch.nn.Sequential(torch.nn.Linear(5, 50)), dict(inputs=40, units=8)
    with sm.watch(model.eval(), "0", random_state=0, **options) as seen:
        for _ in range(500):
            model(torch.randn(16, 5))
            (layer,) = seen._seen.values()
            rows = [rows for rows, *_ in layer.kept + layer.waiting]
            held = sum(x.untyped_storage().nbytes() for x in rows)  # not parts of batches
            assert held <= 4 * 8 * (2 * 40 + 16 + 1024 + 16)
    assert seen.n_inputs == {"0": 8000} and seen.sample("0").values.shape == (40, 8)


def test_select_and_dicts():
    class Answer(torch.nn.Module):
        def forward(self, x):
            return {"note": "text", "hidden": x * 2, "more": (x[:, :3], None)}

    model, x = alone(Answer()), torch.randn(9, 5)
    for select, width in ((None, 5), (lambda out: out["more"], 3)):
        with sm.watch(model, "0", select=select) as seen:
            model(x)
        assert seen.sample("0").values.shape == (9, width)
    text = sm.watch(model, "0", select=lambda out: "text")
    with pytest.raises(TypeError, match="without a tensor"), text:
        model(x)


def test_watch_messages():
    model, same = Many(), alone(torch.nn.Identity())
    for layers, options, message in (
        ("frist", {}, "layer = 'frist' is not in the model"),
        ([], {}, "layers is empty"),
        ("act", dict(positions="channels"), "positions = 'channels'"),
        ("act", dict(units=0), "units"),
        ("act", dict(mode="test"), "mode = 'test' must be one of 'train', 'eval'"),
    ):
        with pytest.raises(ArgumentError, match=message):
            sm.watch(model, layers, **options)
    with sm.watch(same, "0"):
        same(torch.randn(4, 3))
        with pytest.raises(ValueError, match="every pass needs the same"):
            same(torch.randn(4, 5))
    with sm.watch(model, ["first", "cells"]) as seen:
        model.first(torch.randn(9, 5))
        model.cells(torch.randn(9, 2, 3))
    with pytest.raises(ValueError, match="0 inputs in common"):
        seen.alignments()


def views(count, seed):
    "`count` images in eight views each, and the number of the image of each."
    torch.manual_seed(seed)
    images = torch.randn(count, 40).repeat_interleave(8, 0)
    numbers = torch.arange(count).repeat_interleave(8)
    return images + 0.3 * torch.randn(8 * count, 40), numbers


def test_views_of_one_image():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(40, 96), torch.nn.Tanh())
    whole = record(model, "1", views(3000, 0)[0][::8])  # one view of each
    truth = sm.estimate(whole, 2, population=(None, 96), stderr=False).dimension().plain
    found = {"with": [], "without": []}
    for seed in range(1, 17):
        x, ids = views(64, seed)
        for name, groups in (("with", lambda batch, ids=ids: ids), ("without", None)):
            with sm.watch(model, "1", groups=groups, n_max=2) as seen:
                model(x)
            found[name].append(seen.estimates()["1"].dimension())
    values, errors = np.array([[x.value, x.stderr] for x in found["with"]]).T
    assert abs(values.mean() - truth) < 4 * values.std() / math.sqrt(15)
    assert 0.7 < math.sqrt((errors**2).mean()) / values.std() < 2.5
    without = np.array([x.plain for x in found["without"]])  # negative control
    assert abs(without.mean() - truth) > 20 * without.std() / math.sqrt(15)


@pytest.mark.parametrize("kind", ["array", "tensor", "function"])
def test_groups_and_masks_of_batches(kind):
    model, x = torch.nn.Sequential(torch.nn.Linear(4, 6)), torch.randn(30, 5, 4)
    ids, mask = np.arange(30) // 3, np.random.default_rng(0).random((30, 5)) < 0.6
    mask[7] = False
    numbers = torch.arange(30)
    model.forward = lambda x, numbers: model[0](x)
    given = dict(groups=ids, mask=mask)
    if kind == "tensor":
        given = {name: torch.tensor(value) for name, value in given.items()}
    elif kind == "function":
        of = lambda known: lambda batch: known[batch["numbers"].numpy()]
        given = {name: of(value) for name, value in given.items()}
    for positions in ("sample", "inputs", "mean"):
        with sm.watch(model, "0", positions=positions, **given) as seen:
            for part in numbers.split(11):
                model(x[part], numbers=part)
        assert seen.n_inputs == {"0": 29}
        values, groups, _ = seen.sample("0")
        out = model[0](x).detach().double().numpy()
        counts = np.minimum(mask.sum(1), 4 if positions == "inputs" else 1)
        np.testing.assert_array_equal(groups, np.repeat(ids, counts))
        columns = seen._named()["0"].columns
        if positions == "mean":
            expected = [w[m].mean(0)[columns] for w, m in zip(out, mask) if m.any()]
            np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-6)
            continue
        known = {tuple(np.round(row[columns], 5)) for row in out[mask]}
        rows = [tuple(np.round(row, 5)) for row in values]
        assert {*rows} <= known and len({*rows}) == len(rows)
    options = dict(positions="mean", feature_axis=-1, **given)
    with sm.watch(model, ["0", ""], **options) as seen:
        model(x, numbers=numbers)
    assert seen.alignments().estimate.settings["groups"]["inputs"] == 10
    with (
        sm.watch(model, "0", groups=ids[:20]),
        pytest.raises(ArgumentError, match="where 30 inputs passed"),
    ):
        model(x, numbers=numbers)


def test_a_part_that_is_called_is_a_pass():
    class Training(torch.nn.Module):  # as those of Lightning
        def __init__(self):
            super().__init__()
            self.net = Many()

        def training_step(self, x):
            return self.net(x)

    model = Training()
    with sm.watch(model, ["net.act", "net.last"]) as seen:
        for x in torch.randn(4, 10, 5):
            model.training_step(x)
    names = "net.act", "net.last", "net.act (call 2)"
    assert seen.n_inputs == dict.fromkeys(names, 40)
    assert seen.alignments().names == names


def test_numbers_modes_and_pauses():
    model = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh())
    x = torch.randn(70, 5)
    assert [*sm.watch(model, [0, -1]).layers] == ["0", "1"]
    assert [*sm.watch(torch.nn.DataParallel(model), 1).layers] == ["1"]
    with pytest.raises(ValueError, match="layer = 2 is not in the model"):
        sm.watch(model, 2)
    both, only = sm.watch(model, 1).open(), sm.watch(model, 1, mode="eval").open()
    assert repr(both) == "Watch(1; open)"
    model(x)
    assert both.n_inputs == {"1": 70} and only.n_inputs == {}
    with both.pause():
        model(x)
        assert repr(both) == "Watch(1: 70 inputs x 8 units; paused)"
    model.eval()(2 * x)
    assert [*both] == ["1 (train)", "1 (eval)"] and only.n_inputs == {"1": 70}
    both.close(), only.close()
    for name, given in (("1 (train)", x), ("1 (eval)", 2 * x)):
        np.testing.assert_array_equal(both.sample(name).values, outputs(model, given))
    assert len(both.plot().containers) == 2  # this layer, the law behind it
    with pytest.raises(ArgumentError, match="mode='train' or mode='eval'"):
        both.alignments()


@ignore_doubts
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("positions", ["sample", "mean"])
def test_sums_are_those_of_all_inputs(center, positions):
    torch.manual_seed(0)
    conv = torch.nn.Sequential(torch.nn.Conv2d(1, 12, 2), torch.nn.ReLU()).eval()
    x, real = (
        torch.randn(3000, 1, 3, 3) + torch.randn(3000, 1, 1, 1),
        np.arange(3000) % 3 > 0,
    )
    options = dict(positions=positions, center=center, mask=real, inputs=100)
    with (
        sm.watch(conv, 1, **options) as seen,
        sm.watch(conv, 1, **options | {"inputs": 3000}) as all_,
    ):
        for part in x.split(170):
            conv(part)
    whole, table = all_.sample("1").values, seen.dimension()
    for law, size in ((True, None), (False, 12)):
        told = sm.estimate(whole, 2, center=center, population=(None, size))
        found = seen.estimates(law=law, n_max=2)["1"]
        np.testing.assert_allclose(found.values, told.values, rtol=1e-6)
        assert found.shape == (1, 2000, 12)
        ratio = found.parts["inputs"] / told.parts["inputs"]
        assert (ratio > 0.5).all() and (ratio < 2).all()
        np.testing.assert_allclose(
            found.parts["features"], told.parts["features"], rtol=0.02, atol=1e-12
        )
    assert table["1"].law.plain == pytest.approx(
        seen.estimates(law=True, n_max=2)["1"].dimension().plain
    )
    assert seen.estimates()["1"].shape == (1, 100, 12)  # orders up to four, of the sample
    assert f"{table['1'].layer}" in str(table)


def test_errors_of_sums_are_those_of_the_spread():
    torch.manual_seed(0)
    model, found = torch.nn.Sequential(torch.nn.Linear(9, 20), torch.nn.ReLU()).eval(), []
    for _ in range(60):
        with sm.watch(model, 1) as seen:
            model(torch.randn(700, 9))
        found.append(seen.dimension()["1"].layer)
    values = np.array([x.value for x in found])
    errors = math.sqrt(np.mean([x.stderr**2 for x in found]))
    assert 0.75 < errors / values.std() < 1.3  # 0.09 is a standard error
    truth = sm.estimate(record(model, 1, torch.randn(20000, 9)), 2, population=(None, 20))
    truth = truth.dimension().plain
    inside = np.mean([low < truth < high for low, high in (x.interval() for x in found)])
    assert inside > 0.83  # four standard errors below 0.95


@ignore_doubts
@pytest.mark.parametrize("grouped", [True, False])
@pytest.mark.parametrize("training", [True, False])
def test_watches_merge(grouped, training):
    torch.manual_seed(0)
    model, x = Many().train(training), torch.randn(300, 5)
    numbers = torch.arange(300) // 3
    given = dict(units=6, inputs=200, n_max=2)
    parts = [
        sm.watch(model, ["act", "last"], groups=g, **given)
        for g in (numbers[:120] if grouped else None, numbers[120:] if grouped else None)
    ]
    one = sm.watch(
        model,
        ["act", "last"],
        groups=numbers if grouped else None,
        **given | {"inputs": 300},
    )
    parts[1].rng = np.random.default_rng(7)  # as another process has
    for seen, some in ((parts[0], x[:120]), (parts[1], x[120:]), (one, x)):
        with seen:
            for batch in some.split(60):
                model(batch)
    both = parts[0].merge(parts[1])
    assert both.n_inputs == one.n_inputs == dict.fromkeys(one.n_inputs, 300)
    kept = both.sample("act")
    assert kept.values.shape == (200, 6) and parts[0].n_inputs["act"] == 120
    rows = {tuple(row) for row in np.round(one.sample("act").values, 5)}
    assert {tuple(row) for row in np.round(kept.values, 5)} <= rows
    if not (grouped or training):  # sums: the same numbers
        for name, found in both.estimates().items():
            np.testing.assert_allclose(
                found.values, one.estimates()[name].values, rtol=1e-6
            )
    assert both.alignments().names == one.alignments().names
    with sm.watch(model, ["act", "last"], random_state=5, **given) as other:
        model(x)
    with pytest.raises(ArgumentError, match="other units"):
        both.merge(other)
    with pytest.raises(ArgumentError, match="not a Watch"):
        both.merge(3)


def _worker(rank, path):
    "One of two processes that learn together, each from every other batch."
    torch.set_num_threads(1)
    start = dict(init_method=f"file://{path}/store", rank=rank, world_size=2)
    torch.distributed.init_process_group("gloo", **start)
    model, x = _shared()
    model = torch.nn.parallel.DistributedDataParallel(model)
    found = _trained(model, [parts[rank] for parts in _pairs(x)], rank == 0)
    torch.save(found, f"{path}/{rank}")
    torch.distributed.destroy_process_group()


def _shared():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(5, 200), torch.nn.ReLU())
    return model, torch.randn(400, 5)


def _pairs(x):
    "Batches of two processes."
    return x.reshape(4, 2, 50, 5)


def _trained(model, batches, alone=False):
    "What was seen in four steps of training and in evaluation after it, by all processes."
    sgd = torch.optim.SGD(model.parameters(), 0.1)
    with sm.watch(model, ["0", 1], n_max=2, inputs=400, exact=True) as seen:
        for batch in batches:
            sgd.zero_grad()
            model(batch).square().mean().backward()
            sgd.step()
        model.eval()
        for batch in batches:
            with torch.no_grad():
                model(batch)
        if alone:  # one process may look at more, as for a validation
            with seen.pause(), torch.no_grad():
                getattr(model, "module", model)(batches[0])
    whole = seen.gather() if torch.distributed.is_initialized() else seen
    moments = {name: x.values for name, x in whole.estimates(law=True).items()}
    align = whole.alignments("train")["0 (train)", "1 (train)"].value
    return moments, align, whole.n_inputs


@ignore_doubts
def test_two_processes_are_as_good_as_one(tmp_path):
    torch.multiprocessing.spawn(_worker, (str(tmp_path),), nprocs=2)
    model, x = _shared()
    moments, align, n_inputs = _trained(model, [torch.cat([*both]) for both in _pairs(x)])
    assert {*n_inputs.values()} == {400} and len(moments) == 4  # two layers, two modes
    for rank in "01":
        found = torch.load(tmp_path / rank, weights_only=False)
        for name, told in moments.items():
            np.testing.assert_allclose(found[0][name], told, rtol=1e-4)
        assert found[1] == pytest.approx(align, rel=1e-4) and found[2] == n_inputs


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("name", ["layers.1", "layers.0.linear1"])
def test_transformers_in_evaluation(name):
    block = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model, x = torch.nn.TransformerEncoder(block, 2).eval(), torch.randn(9, 7, 8)
    padding = torch.arange(7) >= torch.randint(2, 8, (9, 1))
    real = lambda batch: ~batch["src_key_padding_mask"]
    with sm.watch(model, name, mask=real) as seen, torch.no_grad():
        model(x, src_key_padding_mask=padding)  # torch would leave out or nest the parts
    assert seen.n_inputs == {name: 9} and torch.backends.mha.get_fastpath_enabled()


def test_interrupted_passes():
    model, x = Many(), torch.randn(6, 5)
    with sm.watch(model, "act") as seen:
        handle = model.cells.register_forward_pre_hook(interrupt)
        with pytest.raises(KeyboardInterrupt):
            model(x)
        handle.remove()
        model(x)
    assert seen.n_inputs == {"act": 12, "act (call 2)": 12}


def test_the_units_stay():
    model, x = torch.nn.Sequential(torch.nn.Linear(5, 90)), torch.randn(50, 5)
    found = []
    with sm.watch(model, "0", units=20, n_max=2) as seen:
        for _ in range(3):
            seen.reset()
            model(x)
            found.append(seen.dimension()["0"].law.value)
    np.testing.assert_allclose(found, found[0], rtol=1e-12)


class Fixed:
    "Random numbers of our choice: keys and places of the inputs."

    def __init__(self, keys, places):
        self.numbers, self.at = np.array([keys, places]), 0

    def random(self, shape):
        self.at += shape[0]
        return self.numbers[:, self.at - shape[0] : self.at].T


def direct_second(phi, repeated=False):
    "Mean over pairs of rows and columns of different groups; over all, if repeated."
    phi, *labels = phi
    labels = [np.arange(n) if x is None else x for n, x in zip(phi.shape, labels)]
    rows, columns = (x[:, None] != x for x in labels)
    if repeated:
        rows, columns = np.ones(rows.shape), np.ones(columns.shape)
    total = np.einsum("ia,ib,jb,ja,ij,ab->", phi, phi, phi, phi, rows, columns)
    return total / (rows.sum() * columns.sum())


@pytest.mark.parametrize("positions", POSITIONS)
def test_mean_over_all_samples_is_the_layer(positions):
    S, C, units = (3 if positions == "inputs" else 2), 3, 2
    model, x = alone(torch.nn.Identity()), torch.tensor(normal((3, C, S), 0))
    options = dict(positions=positions, feature_axis=1)
    n_units = C * S if positions == "features" else C
    units = 3 if positions == "features" else units  # two channels at least
    drawn = positions in ("sample", "inputs")
    watched = dict(inputs=4 if positions == "inputs" else 2, units=units, patches=2)
    found, biased = [], []
    orders = itertools.permutations((0.1, 0.5, 0.9))
    places = itertools.product((np.arange(S) + 0.5) / S if drawn else [0], repeat=3)
    subsets = itertools.combinations(range(n_units), units)
    for keys, at, some in itertools.product(orders, places, subsets):
        seen = sm.watch(model, "0", **options, **watched)
        seen.rng, seen._columns = Fixed(keys, at), lambda *_, u=some: np.array(u)
        with seen:
            model(x[:2]), model(x[2:])
        found.append(direct_second(seen.sample("0")))
        biased.append(direct_second(seen.sample("0"), repeated=True))
    whole = "inputs" if drawn else positions
    truth = direct_second(record(model, "0", x, **options | {"positions": whole}))
    assert np.mean(found) == pytest.approx(truth, rel=1e-12)
    assert abs(np.mean(biased) / truth - 1) > 0.2  # negative control


@ignore_doubts
def test_alignments_are_those_of_the_layers():
    torch.manual_seed(0)
    block = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    model, x = torch.nn.TransformerEncoder(block, 2).eval(), torch.randn(150, 7, 32)
    x = (x + torch.randn(150, 1, 32)) / torch.arange(1, 33)  # directions of unequal size
    names = "layers.0", "layers.1"
    phi, psi = (matrix(model, n, x, positions="mean") for n in names)
    with sm.watch(model, names, positions="mean", random_state=0) as seen:
        model(x)
    found = seen.alignments()[names]  # units of one layer are made of those of the other
    assert found.ratio == pytest.approx(row_debiased_alignment(phi, psi), rel=1e-5)
    assert found.value < 1
    assert max(found.parts[f"features of {name}"] for name in names) < 1e-9
    assert sm.alignment(phi, psi).value > 1.5  # as if they were independent draws


def pair_means(x, y):
    "What each pair of columns gives to a trace, the mean over inputs removed."
    P, x, y = len(x), x - x.mean(0), y - y.mean(0)
    same = np.outer((x**2).sum(0), (y**2).sum(0)) - P * (P - 1) * (x**2).T @ y**2
    return ((P - 1) * (P - 2) * (x.T @ y) ** 2 + same) / (P * (P - 1) * (P - 2) * (P - 3))


def alignment_of_units(pairs, a, b):
    "Alignment of two layers as they are, from the units a and b of them."

    def trace(k, own):
        "A unit meets itself in one of as many cases as the layer has units."
        cells, R = pairs[k][np.ix_(own, own)], len(pairs[k])
        itself, Q = np.trace(cells), len(own)
        return itself / Q / R + (cells.sum() - itself) / (Q * (Q - 1)) * (1 - 1 / R)

    return pairs[1][np.ix_(a, b)].mean() / math.sqrt(trace(0, a) * trace(2, b))


def units_of_two_layers(equal):
    "(model, inputs, names, what pairs of units of two layers give to their traces)"
    torch.manual_seed(0)
    block = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    model, x = torch.nn.TransformerEncoder(block, 2).eval(), torch.randn(150, 7, 32)
    x = x if equal else (x + torch.randn(150, 1, 32)) / torch.arange(1, 33)
    names = "layers.0", "layers.1"
    phi, psi = (matrix(model, n, x, positions="features") for n in names)
    pairs = pair_means(phi, phi), pair_means(phi, psi), pair_means(psi, psi)
    return model, x, names, pairs


def seen_alignment(model, x, names, seed):
    "Alignment from 60 of 224 units of two layers, its errors, and the units."
    options = dict(positions="features", units=60, random_state=seed)
    with sm.watch(model, names, **options) as seen:
        model(x)
    found = seen.alignments()[names]
    parts = [found.parts[f"features of {name}"] for name in names]
    return found, parts, [seen._named()[name].columns for name in names]


@ignore_doubts
@pytest.mark.parametrize("equal", [True, False])  # whether directions of inputs are alike
def test_errors_of_alignments_over_positions(equal):
    model, x, names, pairs = units_of_two_layers(equal)
    errors, values, rng = [], [], np.random.default_rng(0)
    for seed in range(25):
        found, parts, units = seen_alignment(model, x, names, seed)
        assert found.ratio == pytest.approx(alignment_of_units(pairs, *units), rel=1e-5)
        errors.append(math.hypot(*parts))
        values.append(found.value)
    draws = rng.permuted(np.tile(np.arange(224), (1000, 1)), axis=1)[:, :60]
    spread = np.std([alignment_of_units(pairs, *two) for two in draws.reshape(-1, 2, 60)])
    truth = pairs[1].mean() / math.sqrt(pairs[0].mean() * pairs[2].mean())
    assert abs(np.mean(values) - truth) < 4 * spread / 5
    ratio = np.sqrt(np.mean(np.square(errors))) / spread  # the spread is known to 3%
    assert (1 if equal else 0.7) < ratio < 1.5


@ignore_doubts
@pytest.mark.parametrize("equal", [True, False])
def test_errors_of_alignments_are_those_of_literal_deletions(equal):
    model, x, names, pairs = units_of_two_layers(equal)
    for seed in range(3):
        _, parts, units = seen_alignment(model, x, names, seed)
        for k, part in enumerate(parts):
            without = []
            for left_out in range(60):
                rest = [*units]
                rest[k] = np.delete(units[k], left_out)
                without.append(alignment_of_units(pairs, *rest))
            told = math.sqrt((1 - 60 / 224) * 59 * np.var(without))
            assert part == pytest.approx(told, rel=0.002 if equal else 0.05)


@ignore_doubts
@pytest.mark.parametrize("center", [True, False])
def test_traces_of_all_subsets_are_those_of_the_layers(center):
    phi, psi = normal((7, 5), 0), normal((7, 4), 1) + 0.5
    psi += phi[:, :4]
    sizes = {"phi": 5, "psi": 4}
    options = dict(center=center, population=sizes)
    traces = lambda *xs: sm.alignments(dict(zip(sizes, xs)), **options).estimate.values
    several = [
        traces(phi[:, a], psi[:, b])
        for a in map(list, itertools.combinations(range(5), 3))
        for b in map(list, itertools.combinations(range(4), 3))
    ]
    np.testing.assert_allclose(np.mean(several, axis=0), traces(phi, psi), rtol=1e-10)
    if center:
        K, L = (z @ z.T / z.shape[1] for z in (phi, psi))
        expected = [gram_mean(*pair) for pair in ((K, K), (K, L), (L, L))]
        np.testing.assert_allclose(traces(phi, psi), expected, rtol=1e-10)
    for wrong, message in (
        ({"phi": 4}, "smaller than the 5"),
        ({"x": 9}, "must be a dict by the names"),
    ):
        with pytest.raises(ValueError, match=message):
            sm.alignments({"phi": phi, "psi": psi}, population=wrong)


@ignore_doubts
@pytest.mark.parametrize("positions", POSITIONS)
def test_the_layer_as_it_is(positions):
    torch.manual_seed(0)
    conv, x = torch.nn.Sequential(torch.nn.Conv2d(1, 6, 2)), torch.randn(40, 1, 3, 3)
    options = dict(positions=positions, patches=4, inputs=160, random_state=0)
    with sm.watch(conv, "0", n_max=2, **options) as seen:
        conv(x)
    found = seen.estimates()["0"]
    assert (found.parts["features"] < 1e-9).all()
    if positions != "sample":
        whole = record(conv, "0", x, positions=positions)._replace(column_groups=None)
        told = sm.estimate(whole, 2, population=(None, whole.values.shape[1]))
        np.testing.assert_allclose(found.values, told.values, rtol=1e-5)


def test_sentences_of_any_length():
    model = torch.nn.Sequential(torch.nn.Embedding(50, 6))
    known = {tuple(np.sort(row)) for row in model[0].weight.detach().double().numpy()}
    for positions in ("sample", "inputs"):
        with sm.watch(model, "0", positions=positions) as seen:
            for length in (1, 5, 2):  # a single word first
                model(torch.randint(50, (30, length)))
        assert {tuple(np.sort(row)) for row in seen.sample("0").values} <= known


def test_rows_of_one_input_are_not_inputs():
    class Flat(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(3, 4)

        def forward(self, some=None, *, x):
            return self.inner(x["values"].flatten(0, 1)).unflatten(0, (-1, 5))

    model, x = Flat(), {"values": torch.randn(8, 5, 3), "scale": torch.tensor(1.0)}
    with sm.watch(model, "inner"), pytest.raises(ValueError, match="40 rows for 8 inputs"):
        model(x=x)
    options = dict(select=lambda out: out.unflatten(0, (-1, 5)), positions="inputs")
    with sm.watch(model, "inner", **options) as seen:
        model(x=x)
    phi = seen.sample("inner")
    assert phi.values.shape == (32, 4) and len(set(phi.groups)) == 8  # four of five


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_means_over_positions_are_summed_in_double(dtype):
    conv = torch.nn.Sequential(torch.nn.Conv2d(1, 6, 2)).to(dtype)
    x = torch.randn(20, 1, 6, 6).to(dtype)
    with sm.watch(conv, "0", positions="mean", random_state=0) as seen:
        conv(x)
    expected = matrix(conv, "0", x, positions="mean")
    found = seen.sample("0").values.ravel()
    np.testing.assert_allclose(np.sort(found), np.sort(expected.ravel()), rtol=1e-12)


@ignore_doubts
def test_numbers_that_are_none():
    model, x = torch.nn.Sequential(torch.nn.Identity()), torch.randn(30, 6)
    x[3, 2] = math.nan
    with sm.watch(model, "0") as seen:
        model(x[:0])
        assert seen.n_inputs == {}
        model(x)
    assert "NaN in 1 of the 30 rows" in str(seen.dimension())
    with sm.watch(model, "0") as seen:
        model(x / 0)
    with pytest.raises(ValueError, match="layer '0' returned infinite numbers"):
        seen.dimension()
    with sm.watch(model, "0") as seen:
        model(x[:, :1])
    with pytest.raises(ValueError, match="has 30 inputs and 1 units"):
        seen.dimension()


@ignore_doubts
@pytest.mark.parametrize("training", [True, False])
def test_layers_that_sums_cannot_tell_of(training):
    model = torch.nn.Sequential(torch.nn.Identity()).train(training)
    x = torch.randn(300, 6) @ torch.randn(6, 6)
    far = x.double() + 1e5  # the sample answers: sums have lost their digits
    for given, origin in ((far, 1e5), (x.double() * 1e-55, 0.0)):
        with sm.watch(model, 0) as seen:
            model(given)
        told = sm.estimate(given.numpy() - origin, 2, population=(None, 6)).dimension()
        assert seen.dimension()["0"].layer.plain == pytest.approx(told.plain, rel=1e-6)
    for dead in (x * 0, x * 0 + 0.3):
        with sm.watch(model, 0) as seen:
            model(dead)
        assert "not known" in str(seen.dimension())


def test_one_watch_inside_of_another():
    model = torch.compile(torch.nn.Sequential(torch.nn.Linear(5, 8)), backend="eager")
    x, stance = torch.randn(9, 5), lambda: torch._dynamo.eval_frame._stance.stance
    outer, inner, before = sm.watch(model, "0"), sm.watch(model, "0"), stance()
    with outer, inner:
        model(x)
    with outer:
        model(x)
    assert (outer.n_inputs, inner.n_inputs) == ({"0": 18}, {"0": 9})
    outer.__enter__(), inner.__enter__()  # closed in the order in which they were opened
    outer.__exit__()
    model(x)
    inner.__exit__()
    assert (outer.n_inputs, inner.n_inputs) == ({"0": 18}, {"0": 18})
    assert stance() == before and hooks(model) == 0


# --- a dimension with a gradient ---


@ignore_doubts
@pytest.mark.parametrize("shape", [(5, 9), (9, 5), (4, 2)])
@pytest.mark.parametrize("center", [True, False])
def test_dimension_agrees_with_all_cycles(shape, center):
    x = torch.tensor(normal(shape, 1) + 0.5, requires_grad=True)
    for size in (None, shape[1], 20):
        options = dict(center=center, population=size)
        inverse = lambda z, options=options: inverse_dimension(z, **options)
        assert torch.autograd.gradcheck(inverse, x)
        options = dict(center=center, population=(None, size))
        first, second = sm.estimate(x.detach().numpy(), 2, **options).values
        assert inverse(x).item() == pytest.approx(second / first**2, rel=1e-9)


@ignore_doubts
def test_moments_have_gradients():
    x = torch.tensor(normal((9, 6), 0), requires_grad=True)
    for center in (True, False):
        assert torch.autograd.gradcheck(
            lambda z, center=center: sm.all_cycles(z, 3, center=center), x
        )


@ignore_doubts
@pytest.mark.parametrize("center", [True, False])
def test_large_moments_have_gradients(center):
    x, step = (torch.tensor(normal((300, 300), seed)) for seed in (0, 1))
    x += 3.0 * x[:, :1]
    moments = lambda t: sm.all_cycles(x + t * step, 4, center=center)
    t = torch.zeros((), dtype=torch.float64, requires_grad=True)
    slope = torch.autograd.grad(moments(t)[3], t)[0].item()
    with torch.no_grad():
        change = (moments(1e-4) - moments(-1e-4))[3].item() / 2e-4
    assert slope == pytest.approx(change, rel=1e-6) and slope != 0


def test_sizes_and_messages():
    x = torch.randn(40, 3) @ torch.randn(3, 30)
    value = inverse_dimension(x)
    assert value.dtype == torch.float64 and 1 / 4 < value < 1
    for scale in (1e-30, 1e30):
        y = (x * scale).requires_grad_()
        again = inverse_dimension(y)
        again.backward()
        assert again.item() == pytest.approx(value.item(), rel=1e-4)
        assert y.grad.isfinite().all() and y.grad.dtype == torch.float32
    single = inverse_dimension(x, dtype=torch.float32)
    assert single.dtype == torch.float32 and math.isclose(single, value, rel_tol=1e-3)
    for dead in (torch.zeros(9, 5), torch.full((9, 5), 0.1)):
        dead.requires_grad_()
        inverse_dimension(dead).backward()
        assert inverse_dimension(dead) == 0 and not dead.grad.any()
    for number in (math.nan, math.inf):  # is no dead layer
        broken = torch.randn(9, 5)
        broken[2, 1] = number
        assert inverse_dimension(broken).isnan()
    with pytest.raises(ValueError, match="population = 3 is too small"):
        inverse_dimension(x, population=3)
    with pytest.raises(ValueError, match="4 inputs and 2 features"):
        inverse_dimension(x[:3])
    with pytest.raises(TypeError, match="phi must be a torch tensor"):
        inverse_dimension(x.numpy())


# --- tensors stay where they are ---


class Leaving(Exception):
    "A tensor was about to leave torch."


@pytest.fixture
def no_transfer(monkeypatch):
    "Refuse to make numpy arrays of more than a few numbers, or to move them."
    for name, size in (("SAMPLED", 12), ("LOOKED", 0)):  # doubts look at a sample
        monkeypatch.setattr(diagnostics, name, size)
    for name in ("numpy", "__array__", "cpu", "tolist"):
        real = getattr(torch.Tensor, name)

        def guarded(tensor, *args, real=real, **options):
            if tensor.numel() > 300:  # less than the data: results by graph, row or column
                raise Leaving
            return real(tensor, *args, **options)

        monkeypatch.setattr(torch.Tensor, name, guarded)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_all_cycles_stay_on_their_device(no_transfer, center, dtype):
    x = torch.randn(40, 30, generator=torch.Generator().manual_seed(0)).to(dtype)
    with pytest.raises(Leaving):
        x.numpy()
    y = x.clone().requires_grad_()
    found = sm.all_cycles(y, 3, center=center)
    found[2].backward()
    assert found.dtype == torch.float64 and y.grad.dtype == dtype  # summed in double
    inverse_dimension(y, center=center).backward()


STAYING = ("auto", "all_cycles", "blocks", "sketched", "naive", "kv_row", "kv_col")
SPECIAL = (
    {},
    {"center": False},
    {"row_weights": np.arange(1.0, 21), "center": False},
    {"column_weights": np.arange(1.0, 17)},
    {"groups": np.arange(20) // 2, "center": False},
    {"population": (None, 40), "center": False},
    {"stderr": False},
)


def same_estimate(found, expected):
    assert found.methods == expected.methods and found.notes == expected.notes
    assert found.parts.keys() == expected.parts.keys()
    for name in ("values", "stderr", "covariance"):
        a, b = getattr(found, name), getattr(expected, name)
        if b is not None:
            np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-12, equal_nan=True)


@ignore_doubts
@pytest.mark.parametrize("shape", [(20, 16), (16, 20), (2, 20, 16)])
@pytest.mark.parametrize("gaps", [0.0, 0.06])
@pytest.mark.parametrize("method", STAYING)
def test_estimates_stay_on_their_device(no_transfer, method, gaps, shape):
    rng, x = np.random.default_rng(1), normal(shape, 0) + 0.5
    x[rng.random(shape) < gaps] = np.nan
    for special in SPECIAL if shape[-2] == 20 else SPECIAL[:2]:
        options = dict(method=method, random_state=0, n_permutations=1, **special)
        options |= dict(trials=True) if len(shape) == 3 else {}
        try:
            expected = sm.estimate(x, 3, **options)
        except ValueError as refused:
            with pytest.raises(ValueError, match=str(refused)[:30]):
                sm.estimate(torch.tensor(x), 3, **options)
            continue
        same_estimate(sm.estimate(torch.tensor(x), 3, **options), expected)


@ignore_doubts
def test_what_leaves_the_device(no_transfer):
    x = torch.tensor(normal((20, 16), 0))
    with pytest.raises(Leaving):  # the inner loop runs on the processor, and was asked for
        sm.estimate(x, 3, method="increasing", center=False)
    found = sm.estimate(x, 6, center=False)  # so it is not chosen
    assert found.methods == ["all_cycles"] * 5 + ["blocks"]
    wild = x.clone()
    wild[0, 0] = 1e9  # digits are lost: the answer comes from blocks, which only add
    found = sm.estimate(wild, 3, center=False)
    assert set(found.methods) == {"all_cycles", "blocks"}
    double = sm.estimate(x.float(), 4)  # single precision, summed in double
    same_estimate(double, sm.estimate(x.float().double(), 4))


def test_sums_are_made_where_the_tensors_are():
    x = torch.empty(16, 12, dtype=torch.float64, device="meta")  # a device without numbers
    weights = word_weights(tuple(power_words(4)), Layout(center=True))
    found = graph_sums(weights.graphs, {"phi": x}, weights.sums[0][:2])
    kept = (*found.totals, *(y for shares in found.shares for y in shares.values()))
    assert {y.device.type for y in kept} == {"meta"}
    edges, pair = np.array([0, 3, 7, 12]), Pair(x, x)
    part = lambda a: pair.part(slice(8 * a, 8 * a + 8))
    starts = lambda a, mine: x.new_zeros((16, 8))
    found = walk_lanes(part, range(2), starts, x, 3, edges, shares=True)
    assert {y.device.type for y in (found.lanes, found.columns)} == {"meta"}
    with pytest.raises(TypeError, match="meta"):
        sm.estimate(x, 2)


@ignore_doubts
def test_tensors_and_arrays_agree():
    for x in (normal((40, 30), 0), normal((40, 30), 0) * 1e-150, normal((2, 20, 12), 1)):
        for center in (True, False):
            y, known = torch.tensor(x), dict(center=center, trials=True)
            found = sm.all_cycles(y, 3, **known).numpy()
            np.testing.assert_allclose(found, sm.all_cycles(x, 3, center=center), rtol=1e-9)
    gaps = normal((12, 9), 0)
    gaps[0, :3] = np.nan
    np.testing.assert_allclose(
        sm.all_cycles(torch.tensor(gaps), 2), sm.all_cycles(gaps, 2), rtol=1e-12
    )
    for wrong, message in (
        (torch.full((4, 4), math.inf), "infinite"),
        (torch.full((4, 4), math.nan), "only NaN"),
        (torch.zeros(4), "axes"),
        (torch.zeros(0, 4), "empty"),
    ):
        with pytest.raises(ValueError, match=message):
            sm.all_cycles(wrong, 2)


def test_what_a_watch_cannot_be_asked():
    "Groups with exact sums, and functions of the batch that do not fit it."

    class Two(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(5, 8)

        def forward(self, tokens, mask):
            return self.inner(tokens * mask)

    net, tokens, mask = Two(), torch.randn(20, 5), torch.ones(20, 1)
    with pytest.raises(ValueError, match="leave out exact"):
        sm.watch(net, "inner", groups=np.arange(20), exact=True)
    for wrong in (lambda batch: batch[1], lambda tokens, mask: mask):
        seen = sm.watch(net, "inner", mask=wrong)
        with seen, pytest.raises(ValueError, match="a dict with 'tokens', 'mask'"):
            net(tokens, mask)
    with sm.watch(net, "inner", mask=lambda batch: batch["mask"][:, 0] > 0) as seen:
        net(tokens, mask)
    assert seen.n_inputs == {"inner": 20}
