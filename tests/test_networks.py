"""Networks: what is sampled of layers, what the sample answers, a loss with a gradient."""

import contextlib
import copy
import io
import itertools
import math
import pickle

import numpy as np
import pytest
import torch
from conftest import normal
from torch import nn

import spectral_moments as sm
from spectral_moments import networks
from spectral_moments.checks import ArgumentError
from spectral_moments.networks import POSITIONS, inverse_dimension, record

quiet = pytest.mark.filterwarnings("ignore::spectral_moments.EstimateWarning")
watch = sm.watch


class Many(nn.Module):
    "One activation in two places, and a layer that returns a tuple."

    def __init__(self):
        super().__init__()
        self.first, self.act, self.twice = nn.Linear(5, 9), nn.ReLU(), nn.ReLU()
        self.last = nn.Linear(9, 9)
        self.cells = nn.LSTM(3, 7, batch_first=True)
        self.unused = nn.Linear(2, 2)

    def forward(self, x):
        x = self.twice(self.twice(self.last(self.act(self.first(x)))))
        return self.cells(x.reshape(-1, 3, 3))[0]


class Odd(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Many()


def alone(layer):
    "A model of one layer, whose name is 0."
    return nn.Sequential(layer)


def array(tensor):
    return tensor.detach().double().numpy()


def close(found, expected, rtol=1e-5, atol=1e-6):
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)


def watched(model, x, layers="0", **options):
    "A watch that has seen x."
    with watch(model, layers, **options) as seen:
        model(x)
    return seen


def n_hooks(model):
    parts = (part.__dict__ for part in model.modules())
    return sum(len(p["_forward_hooks"]) + len(p["_forward_pre_hooks"]) for p in parts)


def test_rows_are_those_of_direct_collection(model):
    x = torch.randn(50, 5)
    nested = alone(Odd(lambda x: {"note": "text", "hidden": (None, [x]), "more": -x}))
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        found = watched(nested, x.to(dtype)).sample("0").values
        np.testing.assert_array_equal(found, array(x.to(dtype)))
    with watch(model, ["act", "last", "first"]) as seen:
        assert n_hooks(model) == 5
        for batch in x.split(20):
            model(batch)
    assert n_hooks(model) == 0
    first = model.first(x)
    expected = {"first": first, "act": first.clip(0), "last": model.last(first.clip(0))}
    for name, rows in expected.items():
        found = seen.sample(name)
        close(found.values, array(rows))
        assert found.values.dtype == np.float64 and found.groups is None
    with pytest.raises(ArgumentError, match="not called"):
        watched(model, x, "unused").sample("unused")


@quiet
def test_answers_are_those_of_the_sample(model):
    x = torch.randn(40, 5)
    with watch(model, ["act", "last"]) as seen:
        model(x)
    rows = array(model.last(model.first(x).clip(0)))
    for of, population in (("layer", "all"), ("infinite", None)):
        expected = sm.estimate(rows, 3, population=population)
        found = seen.estimate("last", 3, of=of)
        close(found.values, expected.values, rtol=1e-4, atol=0)
        close(found.stderr, expected.stderr, rtol=1e-3, atol=0)
        value = seen.dimension(of)["last"].value
        assert value == pytest.approx(expected.dimension().value, rel=1e-4)
    kept = seen.estimate("last", center=False)
    assert kept.values[0] == pytest.approx((rows**2).mean(), rel=1e-5)
    table = seen.dimension()
    assert [*table] == ["act", "last"] and "last" in str(table)
    assert table.records()[-1]["value"] > 1
    systems = {name: seen.sample(name).values for name in table}
    expected = sm.alignments(systems, population="all")["act", "last"]
    assert "Single trial" not in str(seen.alignments()) + str(seen.estimate("act"))
    found = seen.alignments()["act", "last"]
    assert found.value == pytest.approx(expected.value, rel=1e-6)
    with pytest.raises(ArgumentError, match="'layer' or 'infinite'"):
        seen.estimate("act", of="law")


def test_sampled_positions_are_uniform_and_the_same_in_all_layers():
    model = nn.Sequential(nn.Identity(), nn.Linear(1, 1, bias=False))
    nn.init.constant_(model[1].weight, 2.0)
    x = torch.arange(6.0)[:, None].expand(3000, 6, 1)
    with watch(model, ["0", "1"], rows=None) as seen:
        model(x)
    place = seen.sample("0").values[:, 0]
    assert (abs(np.bincount(place.astype(int)) - 500) < 100).all()  # 4.9 deviations
    np.testing.assert_array_equal(seen.sample("1").values[:, 0], 2 * place)


class Fixed:
    "Random numbers of our choice: keys and places of the inputs."

    def __init__(self, keys, places):
        self.numbers, self.at = np.array([keys, places]), 0

    def random(self, shape):
        self.at += shape[0]
        return self.numbers[:, self.at - shape[0] : self.at].T


def second_moment(phi, repeated=False):
    "Mean over pairs of rows and columns of different groups; over all, if repeated."
    phi, _, channels = phi
    (P, Q), channels = phi.shape, np.arange(phi.shape[1]) if channels is None else channels
    rows, columns = ~np.eye(P, dtype=bool), channels[:, None] != channels
    if repeated:
        rows, columns = np.ones((P, P)), np.ones((Q, Q))
    total = np.einsum("ia,ib,jb,ja,ij,ab->", phi, phi, phi, phi, rows, columns)
    return total / (rows.sum() * columns.sum())


@pytest.mark.parametrize("positions", POSITIONS)
def test_the_mean_over_all_samples_is_the_layer(positions, monkeypatch):
    n_positions, n_channels = 2, 3
    model, x = alone(nn.Identity()), torch.tensor(normal((3, n_positions, n_channels), 0))
    units = 4 if positions == "features" else 2
    n_units = n_positions * n_channels if positions == "features" else n_channels
    places = itertools.product((0.2, 0.7) if positions == "sample" else (0.2,), repeat=3)
    orders = itertools.permutations((0.1, 0.5, 0.9))
    subsets = itertools.combinations(range(n_units), units)
    found, biased = [], []
    for keys, at, some in itertools.product(orders, [*places], [*subsets]):
        seen = watch(model, 0, positions=positions, rows=2, units=units)
        monkeypatch.setattr(networks, "draw_units", lambda *_, some=some: np.array(some))
        with seen:
            seen.rng = Fixed(keys, at)
            model(x[:2])
            model(x[2:])
        assert seen.sample("0").values.shape == (2, units)
        found.append(second_moment(seen.sample("0")))
        biased.append(second_moment(seen.sample("0"), repeated=True))
    whole = array(x)
    rows = dict(sample=whole, mean=whole.mean(1), features=whole.reshape(3, -1))[positions]
    channels = np.tile(np.arange(3), 2) if positions == "features" else None
    if positions == "sample":  # pairs of different inputs at any two places
        pairs = [[whole[i, a], whole[j, b]] for i in range(3) for j in range(3) if i != j
                 for a in (0, 1) for b in (0, 1)]  # fmt: skip
        truth = np.mean([second_moment((np.array(p), None, None)) for p in pairs])
    else:
        truth = second_moment((rows, None, channels))
    assert np.mean(found) == pytest.approx(truth, rel=1e-12)
    assert abs(np.mean(biased) / truth - 1) > 0.1  # negative control


def test_every_input_is_sampled_equally_often():
    model, counts = alone(nn.Identity()), np.zeros(60)
    x = torch.arange(60.0)[:, None].expand(60, 2)
    for seed in range(300):
        with watch(model, 0, rows=12, random_state=seed) as seen:
            for batch in x.split(7):
                model(batch)
                rows = [drawn.rows["0"] for drawn in seen.sampled.passes]  # no batches
                assert sum(x.untyped_storage().nbytes() for x in rows) <= 4 * 2 * 50
        rows = seen.sample("0").values[:, 0]
        assert len(rows) == 12 and (np.diff(rows) > 0).all()  # in the order of passing
        counts[rows.astype(int)] += 1
    deviations = (counts - 60) / math.sqrt(300 * 0.2 * 0.8)
    assert (abs(deviations) < 4.5).all() and (deviations**2).mean() < 1.6


def test_the_layer_counts_all_of_its_units():
    model, x = alone(nn.Linear(5, 90)), torch.randn(60, 5)
    one, two = (watched(model, x, units=20).estimate("0") for _ in range(2))
    assert one.values[1] == two.values[1] and one.settings["population"] == {"features": 90}
    assert (one.error_by_source["features"] > 0).all()
    assert (watched(model, x).estimate("0").error_by_source["features"] < 1e-9).all()


@pytest.mark.parametrize("kind", [np.asarray, torch.tensor])
def test_groups_and_masks(kind):
    model, x = nn.Sequential(nn.Linear(4, 6)), torch.randn(30, 5, 4)
    ids, mask = np.arange(30) // 3, np.random.default_rng(0).random((30, 5)) < 0.6
    mask[7] = False
    model.forward = lambda x, numbers: model[0](x)
    given = dict(
        groups=lambda x, numbers: kind(ids[numbers]),
        mask=lambda x, numbers: kind(mask[numbers]),
    )
    out = array(model[0](x))
    for positions in ("sample", "mean"):
        with watch(model, "0", positions=positions, **given) as seen:
            for part in torch.arange(30).split(11):
                model(x[part], numbers=part.numpy())
        rows, groups, _ = seen.sample("0")
        np.testing.assert_array_equal(groups, np.delete(ids, 7))
        for row, whole, real in zip(rows, np.delete(out, 7, 0), np.delete(mask, 7, 0)):
            if positions == "mean":
                close(row, whole[real].mean(0))
            else:
                assert np.isclose(whole[real], row, atol=1e-6).all(1).any()
    assert seen.estimate("0").settings["groups"] == {"inputs": 10}


def test_a_mask_of_whole_inputs_and_of_features():
    model, x, mask = alone(nn.Linear(4, 6)), torch.randn(5, 3, 4), np.ones((5, 3), bool)
    mask[2] = False
    for positions in POSITIONS:
        for given in (mask, mask[:, 0]):
            options = dict(mask=lambda x, given=given: given, positions=positions)
            assert len(watched(model, x, **options).sample("0").values) == 4
    mask[0, 1] = False
    with pytest.raises(ArgumentError, match="padding for features") as error:
        watched(model, x, mask=lambda x: mask, positions="features")
    assert error.value.argument == "positions"
    pooled = nn.Sequential(nn.Linear(4, 6), Odd(lambda x: x.mean(1)))
    assert len(watched(pooled, x, "1", mask=lambda x: mask).sample("1").values) == 4
    for name, wrong in (("mask", mask[:, :2]), ("mask", mask[:3]), ("groups", [1])):
        with pytest.raises(ArgumentError, match=f"{name} has ") as error:
            watched(model, x, **{name: lambda batch, wrong=wrong: wrong})
        assert error.value.argument == name


def test_axes():
    tokens, maps = torch.randn(5, 7, 8), torch.randn(5, 4, 4, 8)
    for layer, x, options, width in (
        (nn.Linear(8, 6), tokens, {}, 6),
        (nn.Linear(8, 6), maps, {}, 6),  # features last, as in a Swin transformer
        (nn.Conv2d(4, 3, 2), maps, {}, 3),
        (nn.ReLU(), maps, {}, 4),
        (nn.ReLU(), maps, dict(feature_axis=-1), 8),
        (nn.Conv1d(7, 3, 2), tokens, dict(feature_axis=1), 3),
    ):
        assert watched(alone(layer), x, **options).sample("0").values.shape == (5, width)
    conv = nn.Sequential(nn.Conv1d(7, 3, 2), nn.ReLU())
    for layer in "01":
        with pytest.raises(ArgumentError, match="feature_axis=1 or -1") as error:
            watched(conv, tokens, layer)
        assert error.value.argument == "feature_axis"


def test_inputs_on_the_second_axis():
    torch.manual_seed(0)
    first, second = alone(nn.GRU(3, 6, batch_first=True)), alone(nn.GRU(3, 6))
    second.load_state_dict(first.state_dict())
    x = torch.randn(4, 5, 3)
    options = dict(positions="mean")
    expected = watched(first, x, **options).sample("0").values
    close(watched(second, x.transpose(0, 1), **options).sample("0").values, expected)
    block = nn.TransformerEncoderLayer(6, 2, 8).eval()
    for layer in ("", "linear1"):
        seen = watched(block, torch.randn(5, 7, 6), layer, batch_first=False)
        assert len(seen.sample(layer or "the model itself").values) == 7
    with pytest.raises(ArgumentError, match="batch_first=True") as error:
        watched(block, torch.randn(5, 7, 6), "linear1")
    assert error.value.argument == "batch_first"


def test_refusals(model):
    x = torch.randn(8, 5)
    pack = nn.utils.rnn.pack_sequence
    flat = nn.Sequential(Odd(lambda x: x.reshape(-1, 1)), nn.Linear(1, 3))
    growing = alone(Odd(lambda x: x.repeat(1, len(x))))
    parallel = nn.DataParallel(alone(nn.ReLU()))
    parallel.device_ids = [0, 1]
    for net, layer, given, options, message in (
        (model, "frist", x, {}, "layers = 'frist' must be names in the model: first, act"),
        (model, nn.Linear(2, 2), x, {}, "must be names in the model"),
        (model, [], x, {}, "must be names in the model"),
        (model, "twice", x, {}, "called twice in a pass; watch the modules around it"),
        (model, "act", x, dict(positions="channels"), "positions must be one of"),
        (model, "act", x, dict(mode="test"), "mode must be"),
        (model, "act", x, dict(rows=0), "rows"),
        (parallel, 0, x, {}, "several devices"),
        (alone(Odd(torch.fft.fft)), 0, x, {}, "no real numbers"),
        (alone(nn.Flatten(0)), 0, x, {}, "no real numbers"),
        (alone(Odd(lambda x: "text")), 0, x, {}, "no real numbers"),
        (alone(Odd(lambda x: (pack([*x]), x))), 0, x[..., None], {}, "pad them"),
        (flat, 1, x, {}, "40 rows for 8 inputs"),
        (Odd(nn.Sequential(nn.Linear(5, 4), Odd(lambda x: x[:3]))),
         ["function.0", "function.1"], x, {}, "watch it by itself"),
    ):  # fmt: skip
        with pytest.raises(ArgumentError, match=message):
            watched(net, given, layer, **options)
        assert n_hooks(net) == 0
    with watch(growing, 0):
        growing(x)
        with pytest.raises(ArgumentError, match="watch it by itself"):
            growing(x[:4])
    with watch(model, "act") as seen:
        model.act(x)  # a call from outside of the model is no pass
    assert not seen.sampled.passes


def test_training_is_the_same_to_the_last_bit():
    def trained(use):
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Dropout(0.3))
        adam = torch.optim.Adam(model.parameters())
        with (
            watch(model, ["0", "2"], rows=20, units=4) if use else contextlib.nullcontext()
        ):
            for _ in range(30):
                adam.zero_grad()
                model(torch.randn(16, 5)).square().mean().backward()
                adam.step()
        assert model.training and torch.is_grad_enabled()
        return torch.cat([x.flatten().double() for x in model.state_dict().values()])

    assert torch.equal(trained(False), trained(True))


def test_hooks_are_removed_on_any_exit(model):
    for error in (RuntimeError, KeyboardInterrupt, GeneratorExit):
        with pytest.raises(error), watch(model, "act"):
            raise error
        assert n_hooks(model) == 0
    with watch(model, "act") as seen:
        with pytest.raises(RuntimeError, match="shapes"):
            model(torch.randn(3, 4))
        with pytest.raises(RuntimeError, match="already open"):
            seen.open()
        with pytest.raises(KeyError), seen.pause():
            raise KeyError(model(torch.randn(3, 5)).shape)
        model(torch.randn(4, 5))  # after a pass that failed, and a pause that did
    assert n_hooks(model) == 0 and len(seen.sample("act").values) == 4


def test_copies_of_the_model_are_not_watched(model):
    with watch(model, "act", groups=lambda x: range(6)) as seen:
        other, file = copy.deepcopy(model), io.BytesIO()
        torch.save(model, file)
        other(torch.randn(6, 5))
        file.seek(0)
        torch.load(file, weights_only=False)(torch.randn(6, 5))
    assert not seen.sampled.passes


def test_what_checkpoints_run_again_does_not_count(model):
    from torch.utils.checkpoint import checkpoint

    x = torch.randn(10, 5, requires_grad=True)
    outer = Odd(lambda x: checkpoint(inner, x, use_reentrant=False))
    inner = outer.inner = nn.Sequential(nn.Linear(5, 4), nn.Tanh())
    with watch(outer, "inner.1") as seen, watch(model, "act") as whole:
        outer(x).sum().backward()
        checkpoint(model, x, use_reentrant=False).sum().backward()
    assert len(seen.sample("inner.1").values) == len(whole.sample("act").values) == 10


@pytest.mark.parametrize("how", ["function", "method", "step"])
def test_compiled(how):
    torch.manual_seed(0)
    plain, x = nn.Sequential(nn.Linear(5, 8), nn.Tanh()), torch.randn(30, 5)
    model, step = plain, lambda x: model(x)
    if how == "function":
        model = torch.compile(plain, backend="eager")
    elif how == "method":
        model.compile(backend="eager")
    else:
        step = torch.compile(step, backend="eager")
    step(x)
    with watch(model, ["1", ""]) as seen:
        step(x)
    for name in ("1", "the model itself"):
        close(seen.sample(name).values, array(plain.forward(x)))
    assert n_hooks(plain) == 0


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("name", ["layers.1", "layers.0.linear1"])
def test_transformers_in_evaluation(name):
    block = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model, x = nn.TransformerEncoder(block, 2).eval(), torch.randn(9, 7, 8)
    padding = torch.arange(7) >= torch.randint(2, 8, (9, 1))
    real = lambda x, src_key_padding_mask: ~src_key_padding_mask
    with watch(model, name, mask=real) as seen, torch.no_grad():
        model(x, src_key_padding_mask=padding)  # torch would leave out or nest the parts
    assert len(seen.sample(name).values) == 9
    assert torch.backends.mha.get_fastpath_enabled()


def learn(model, x, steps):
    "Steps that turn the rows of a linear layer, without changing its spectrum."
    for step in range(steps):
        model(x[step])
        with torch.no_grad():
            model[0].weight.copy_(model[0].weight.roll(1, 0))


def test_the_sample_belongs_to_the_weights_as_they_are():
    torch.manual_seed(5)
    model, x = alone(nn.Linear(3, 30, bias=False)), torch.randn(30, 100, 3)
    with torch.no_grad():
        model[0].weight[3:] = 0  # three units are used in each state, all of them over time
    mixed = []
    with watch(model, 0, rows=None) as seen:
        for batch in x:
            learn(model, batch[None], 1)
            mixed.append(seen.sample("0").values)
    assert len(mixed[-1]) == 100
    low, high = seen.dimension()["0"].interval()
    truth = watched(model, torch.randn(3000, 3), rows=None).dimension()["0"].value
    assert low < truth < high and high < 3
    mixture = sm.participation_ratio(np.concatenate(mixed), population="all")
    assert mixture.interval()[0] > 15  # what rows of all states would say


def test_states_are_seen_for_every_optimizer(model):
    x = torch.randn(12, 5)
    for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop):
        optimizer = kind(model.parameters(), lr=0.01)
        with watch(model, "act") as seen:
            for _ in range(3):
                for part in x.split(4):  # gradients of three passes are one state
                    model(part).square().mean().backward()
                optimizer.step()
        assert len(seen.sample("act").values) == 12


def test_modes():
    model, x = nn.Sequential(nn.Linear(5, 8), nn.Tanh()), torch.randn(70, 5)
    both, only = watch(model, 1).open(), watch(model, 1, mode="train").open()
    model(x)
    with both.pause():
        model(x)
    assert (len(both.sample("1").values), len(only.sample("1").values)) == (70, 140)
    model.eval()(2 * x)  # a change of mode begins a new sample
    both.close(), only.close()
    np.testing.assert_array_equal(both.sample("1").values, array(model(2 * x)))
    assert len(only.sample("1").values) == 140


@quiet
@pytest.mark.parametrize("grouped", [True, False])
def test_watches_merge(model, grouped):
    x, labels = torch.randn(300, 5), np.arange(300) // 3
    parts, layers = [], ["act", "last"]
    for k, some in enumerate((slice(0, 120), slice(120, 300), slice(0, 300))):
        options = dict(rows=300 if k == 2 else 200, units=6)
        groups = iter(np.split(labels[some], range(60, 300, 60)))
        if grouped:
            options["groups"] = lambda x, groups=groups: next(groups)
        parts.append(watch(model, layers, **options))
        parts[k].rng = np.random.default_rng(k)  # other processes
        with parts[k]:
            for batch in x[some].split(60):
                model(batch)
    one, two, whole = parts
    both = one.merge(pickle.loads(pickle.dumps(two)))
    assert len(one.sample("act").values) == 120
    kept, every = both.sample("act"), whole.sample("act")
    assert kept.values.shape == (200, 6)
    known = {tuple(row): k for k, row in enumerate(every.values)}
    numbers = [known[tuple(row)] for row in kept.values]
    assert len({*numbers}) == 200 and abs(np.mean(np.array(numbers) < 120) - 0.4) < 0.15
    if grouped:
        np.testing.assert_array_equal(kept.groups, every.groups[numbers])
    assert both.alignments().names == whole.alignments().names
    with pytest.raises(ArgumentError, match="other units"):
        both.merge(watched(model, x, "act", random_state=5))


def test_record(model):
    model.last.eval()  # a frozen part in a model that trains
    x = torch.randn(11, 5)
    expected = array(model.first(x))
    for batch_size in (1, 4, 256):
        close(record(model, "first", x, batch_size=batch_size).values, expected)
    close(record(model, "first", x.numpy()).values, expected)
    close(record(model, "first", x.split(3)).values, expected)
    found = record(model, "first", x, groups=lambda x: torch.arange(11) // 2)
    np.testing.assert_array_equal(found.groups, np.arange(11) // 2)
    assert "Single trial" not in str(sm.estimate(found))  # nothing was measured
    with pytest.raises(ArgumentError, match="called twice"):
        record(model, "twice", x)
    with pytest.raises(ArgumentError, match="record takes one layer"):
        record(model, ["first", "last"], x)
    with pytest.raises(RuntimeError, match="shapes"):
        record(model, "first", x[:, :3])
    assert model.training and model.act.training and not model.last.training
    assert n_hooks(model) == 0 and torch.is_grad_enabled()
    assert all(weight.grad is None for weight in model.parameters())


@quiet
def test_single_trials_are_named_where_noise_was_measured():
    def printed(names, trials=False):
        systems = {name: layer if name == "layer" else areas[name] for name in names}
        return str(sm.alignments(systems, trials=trials))

    areas = {"V4": normal((12, 6), 1), "IT": normal((12, 7), 2)}
    areas["two"] = normal((2, 12, 7), 3)
    layer = record(alone(nn.ReLU()), 0, torch.tensor(normal((12, 9), 0)))
    for names, noisy in ((["layer", "V4"], False), (["V4", "IT"], True)):
        assert ("Single trial" in printed(names)) == noisy
    assert "Single trial" in printed(["layer", "V4", "IT"])
    assert "Single trial" not in printed(["layer", "V4", "two"], True)
    for population in (None, "all"):
        assert "Single trial" not in str(
            sm.participation_ratio(layer, population=population)
        )


@quiet
@pytest.mark.parametrize("shape", [(6, 9), (9, 5)])
@pytest.mark.parametrize("center", [True, False])
def test_inverse_dimension_is_that_of_the_estimate(shape, center):
    x = torch.tensor(normal(shape, 1) + 0.5, requires_grad=True)
    labels = np.arange(shape[0]) % 5
    for options in ({}, dict(population="all"), dict(population=20), dict(groups=labels)):
        options["center"] = center
        inverse = lambda z, options=options: inverse_dimension(z, **options)
        assert torch.autograd.gradcheck(inverse, x)
        first, second = sm.estimate(x.detach().numpy(), 2, **options).values
        assert inverse(x).item() == pytest.approx(second / first**2, rel=1e-9)


def test_inverse_dimension_of_any_size_and_of_tokens():
    x = torch.randn(40, 3) @ torch.randn(3, 30)
    value = inverse_dimension(x)
    assert value.dtype == torch.float64 and 1 / 4 < value < 1
    for scale in (1e-30, 1e30):
        y = (x * scale).requires_grad_()
        inverse_dimension(y).backward()
        assert inverse_dimension(y).item() == pytest.approx(value.item(), rel=1e-4)
        assert y.grad.isfinite().all() and y.grad.dtype == torch.float32
    for constant in (torch.zeros(9, 5), torch.full((9, 5), 0.1)):
        constant.requires_grad_()
        inverse_dimension(constant).backward()
        assert inverse_dimension(constant) == 0 and not constant.grad.any()
    tokens, mask = torch.randn(12, 5, 8), torch.rand(12, 5) < 0.7
    with pytest.raises(ArgumentError, match=r"phi\[mask\]"):
        inverse_dimension(tokens)
    groups = torch.arange(12).repeat_interleave(mask.sum(1))  # the line of the message
    found = inverse_dimension(tokens[mask], groups=groups)
    expected = sm.estimate(tokens[mask].numpy(), groups=groups.numpy()).values
    assert found.item() == pytest.approx(expected[1] / expected[0] ** 2, rel=1e-6)
    for wrong, message in (
        (x[:3], "needs 4 inputs, 2 features"),
        (x.numpy(), "must be a tensor"),
    ):
        with pytest.raises(ArgumentError, match=message):
            inverse_dimension(wrong)
    with pytest.raises(ArgumentError, match="population"):
        inverse_dimension(x, population=3)
