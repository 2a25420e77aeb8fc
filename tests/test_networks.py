"""Networks: what is sampled of layers, what the sample answers, a loss with a gradient."""

import contextlib
import copy
import itertools
import math
import pickle
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from conftest import normal
from torch import nn

import spectral_moments as sm
from spectral_moments import networks
from spectral_moments.checks import ArgumentError
from spectral_moments.networks import inverse_dimension, record

watch, POSITIONS = sm.watch, ("sample", "mean", "features")


class Many(nn.Module):
    "One activation in two places, and a layer that is not called."

    def __init__(self):
        super().__init__()
        self.first, self.act, self.twice = nn.Linear(5, 9), nn.ReLU(), nn.ReLU()
        self.last = nn.Linear(9, 9)
        self.unused = nn.Linear(2, 2)

    def forward(self, x):
        return self.twice(self.twice(self.last(self.act(self.first(x)))))


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


def refused(argument, message, call, *args, **options):
    with pytest.raises(ArgumentError, match=message) as error:
        call(*args, **options)
    assert error.value.argument == argument


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
    refused(
        "layers",
        "no pass with rows of unused",
        watched(model, x, "unused").sample,
        "unused",
    )


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
        value = seen.dimension(of=of)["last"].value
        assert value == pytest.approx(expected.dimension().value, rel=1e-4)
    given = seen.dimension(population=None)["last"].value  # of the call, not of the layer
    assert given == seen.dimension(of="infinite")["last"].value
    assert "infinitely many" in str(seen.alignments(population=None))
    kept = seen.estimate("last", center=False)
    assert kept.values[0] == pytest.approx((rows**2).mean(), rel=1e-5)
    table = seen.dimension()
    assert [*table] == ["act", "last"] and "last" in str(table)
    last = table.records()[-1]
    assert last["name"] == "last" and last["value"] > 1
    systems = {name: seen.sample(name).values for name in table}
    expected = sm.alignments(systems, population="all")["act", "last"]
    assert "Single trial" not in str(seen.alignments()) + str(seen.estimate("act"))
    found = seen.alignments()["act", "last"]
    assert found.value == pytest.approx(expected.value, rel=1e-6)
    places = watched(model, x, "act", positions="features")
    assert places.estimate("act").values.tolist() == seen.estimate("act").values.tolist()
    for which, of in ((seen, "law"), (places, "infinite")):
        refused("of", "one of .'layer'", which.estimate, "act", of=of)


def test_few_rows_are_stored_in_order_and_the_same_of_all_layers():
    model = nn.Sequential(nn.Identity(), nn.Linear(1, 1, bias=False))
    nn.init.constant_(model[1].weight, 2.0)
    with watch(model, ["0", "1"], rows=12) as seen:
        for batch in torch.arange(360.0).reshape(60, 6, 1).split(7):
            model(batch)
            rows = [drawn.rows["0"] for drawn in seen.passes]  # no batches
            assert sum(x.untyped_storage().nbytes() for x in rows) <= 4 * 50
    one, two = (seen.sample(name).values[:, 0] for name in "01")
    assert len(one) == 12 and (np.diff(one) > 0).all() and len({*(one % 6)}) > 3
    np.testing.assert_array_equal(two, 2 * one)


def second_moment(phi, repeated=False):
    "Mean over pairs of different rows and of different columns; over all, if repeated."
    rows, columns = (~np.eye(n, dtype=bool) | repeated for n in phi.shape)
    total = np.einsum("ia,ib,jb,ja,ij,ab->", phi, phi, phi, phi, rows, columns)
    return total / (rows.sum() * columns.sum())


@pytest.mark.parametrize("positions", POSITIONS)
def test_the_mean_over_all_samples_is_the_layer(positions, monkeypatch):
    model, x = alone(nn.Identity()), torch.tensor(normal((3, 2, 3), 0))
    n_units, units = (6, 4) if positions == "features" else (3, 2)
    places = itertools.product((0.2, 0.7) if positions == "sample" else (0.2,), repeat=3)
    orders = itertools.permutations((0.1, 0.5, 0.9))
    subsets = itertools.combinations(range(n_units), units)
    found, biased = [], []
    for keys, at, some in itertools.product(orders, places, subsets):
        monkeypatch.setattr(networks, "draw_units", lambda *_, some=some: np.array(some))
        with watch(model, "0", positions=positions, rows=2, units=units) as seen:
            numbers = iter(np.split(np.array([keys, at]).T, [2]))
            seen.rng = SimpleNamespace(random=lambda shape, numbers=numbers: next(numbers))
            model(x[:2])
            model(x[2:])
        sample = seen.sample("0").values
        assert sample.shape == (2, units)
        found.append(second_moment(sample))
        biased.append(second_moment(sample, repeated=True))
    if positions == "sample":  # pairs of different inputs at any two places
        pairs = itertools.permutations(range(3), 2)
        places = itertools.product(range(2), repeat=2)
        both = itertools.product(pairs, places)
        truth = np.mean([second_moment(array(x[[*i], [*at]])) for i, at in both])
    else:
        truth = second_moment(array(x.mean(1) if positions == "mean" else x.flatten(1)))
    assert np.mean(found) == pytest.approx(truth, rel=1e-12)
    assert abs(np.mean(biased) / truth - 1) > 0.1  # negative control


def test_the_layer_counts_all_of_its_units():
    model, x = alone(nn.Linear(5, 90)), torch.randn(60, 5)
    one, two = (watched(model, x, units=20).estimate("0") for _ in range(2))
    assert one.values[1] == two.values[1] and one.settings["population"] == {"features": 90}
    assert (one.error_by_source["features"] > 0).all()
    assert (watched(model, x).estimate("0").error_by_source["features"] < 1e-9).all()


def test_groups_and_masks():
    model, x = nn.Sequential(nn.Linear(4, 6)), torch.randn(30, 5, 4)
    ids, mask = np.arange(30) // 3, np.random.default_rng(0).random((30, 5)) < 0.6
    mask[7] = False
    model.forward = lambda x, numbers: model[0](x)
    given = dict(groups=lambda x, numbers: ids[numbers])  # numpy or torch
    given["mask"] = lambda x, numbers: torch.tensor(mask[numbers])
    out = array(model[0](x))
    for positions in ("sample", "mean"):
        with watch(model, "0", positions=positions, **given) as seen:
            for part in torch.arange(30).split(11):
                model(x[part], numbers=part.numpy())
        rows, groups = seen.sample("0")[:2]
        np.testing.assert_array_equal(groups, np.delete(ids, 7))
        for row, whole, real in zip(rows, np.delete(out, 7, 0), np.delete(mask, 7, 0)):
            if positions == "mean":
                close(row, whole[real].mean(0))
            else:
                assert np.isclose(whole[real], row, atol=1e-6).all(1).any()
    assert seen.estimate("0").settings["groups"] == {"inputs": 10}


def test_inputs_of_nothing_but_padding():
    model, x, mask = alone(nn.Linear(4, 6)), torch.randn(5, 3, 4), np.ones((5, 3), int)
    mask[2] = 0
    for positions in POSITIONS:
        seen = watched(model, x, mask=lambda x: mask, positions=positions)
        assert len(seen.sample("0").values) == 4
    mask[0, 1] = 0
    options = dict(mask=lambda x: mask, positions="features")
    refused("positions", "padding for features", watched, model, x, **options)
    pooled = nn.Sequential(nn.Linear(4, 6), Odd(lambda x: x.mean(1)))
    assert len(watched(pooled, x, "1", mask=lambda x: mask).sample("1").values) == 4
    masks, labels = (mask[:, :2], mask[:3], mask[:, 0], mask[:, None]), ([1], 1, None, mask)
    for name, values in (("mask", masks), ("groups", labels)):
        for wrong in values:
            options = {name: lambda batch, wrong=wrong: wrong}
            refused(name, f"{name} has ", watched, model, x, **options)


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
        refused("feature_axis", "feature_axis=1 or -1", watched, conv, tokens, layer)
    for axis in (0, 4, "x", [1]):
        known = dict(feature_axis=axis)
        refused("feature_axis", "the axes are", watched, alone(nn.ReLU()), maps, **known)


def test_inputs_on_the_second_axis():
    torch.manual_seed(0)
    first, second = alone(nn.GRU(3, 6, batch_first=True)), alone(nn.GRU(3, 6))
    second.load_state_dict(first.state_dict())
    x = torch.randn(4, 5, 3)
    one = watched(first, x, positions="mean").sample("0")
    two = watched(second, x.transpose(0, 1), positions="mean").sample("0")
    close(two.values, one.values)
    block = nn.TransformerEncoderLayer(6, 2, 8).eval()
    tokens = torch.randn(5, 7, 6)
    for layer in ("", "linear1"):
        seen = watched(block, tokens, layer, batch_first=False)
        assert len(seen.sample(layer).values) == 7
    refused("batch_first", "batch_first=True", watched, block, tokens, "linear1")


def test_refusals(model):
    x = torch.randn(8, 5)
    pack = nn.utils.rnn.pack_sequence
    flat = nn.Sequential(Odd(lambda x: x.reshape(-1, 1)), nn.Linear(1, 3))
    growing = alone(Odd(lambda x: x.repeat(1, len(x))))
    parallel = nn.DataParallel(alone(nn.ReLU()))
    parallel.device_ids = [0, 1]
    parts = nn.Sequential(nn.Linear(5, 4), Odd(lambda x: x[:3]))
    packed, both = alone(Odd(lambda x: (pack([*x]), x))), ["function.0", "function.1"]
    for net, layer, given, message in (
        (model, "twice", x, "called twice in a pass; watch the modules around it"),
        (alone(Odd(torch.fft.fft)), "0", x, "no numbers"),
        (alone(nn.Flatten(0)), "0", x, "no numbers"),
        (alone(Odd(lambda x: "text")), "0", x, "no numbers"),
        (packed, "0", x[..., None], "packed sequences: pad them"),
        (flat, "1", x, "40 rows for 8 inputs"),
        (Odd(parts), both, x, "its shape changes; watch it by itself"),
    ):
        refused("layers", message, watched, net, given, layer)
        assert n_hooks(net) == 0
    with watch(growing, "0"):
        growing(x)
        refused("layers", "its shape changes", growing, x[:4])
    refused("layers", "no layer 'frist'; the layers are 'first', ", watch, model, "frist")
    for wrong in (3, [], None, {}, np.eye(2)):
        refused("layers", "no layer .*; the layers are 'first'", watch, model, wrong)
    refused("layers", "no layer .'act', 'last'.;", record, model, ["act", "last"], x)
    refused("model", "torch.nn.Module", watch, [model], "act")
    refused("groups", "a label of each input", watch, model, "act", groups=[1] * 8)
    refused("mask", "False for padding", watch, model, "act", mask=x)
    refused("model", "several devices", watch, parallel, "module.0")
    for name, wrong in (("positions", "channels"), ("mode", "None"), ("rows", 0)):
        refused(name, f"{name} (must|=)", watch, model, "act", **{name: wrong})
    refused("mode", "mode must", watch, model, "act", mode=np.eye(2))
    with watch(model, "act") as seen:
        model.act(x)  # a call from outside of the model is no pass
    assert not seen.passes


def test_training_is_the_same_to_the_last_bit():
    def trained(use):
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Dropout(0.3))
        adam = torch.optim.Adam(model.parameters())
        seen = watch(model, ["0", "2"], rows=20, units=4)
        with seen if use else contextlib.nullcontext():
            for _ in range(30):
                adam.zero_grad()
                model(torch.randn(16, 5)).square().mean().backward()
                adam.step()
        assert model.training and torch.is_grad_enabled() and bool(seen.passes) == use
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
        assert seen.open() is seen and n_hooks(model) == 3  # not twice
        with pytest.raises(KeyError), seen.pause():
            raise KeyError(model(torch.randn(3, 5)).shape)
        model(torch.randn(4, 5))  # after a pass that failed, and a pause that did
    assert n_hooks(model) == 0 and len(seen.sample("act").values) == 4


def test_copies_of_the_model_are_not_watched(model):
    with watch(model, "act", groups=lambda x: range(6)) as seen:
        copy.deepcopy(model)(torch.randn(6, 5))
        pickle.loads(pickle.dumps(model))(torch.randn(6, 5))
    assert not seen.passes


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
    compiled = partial(torch.compile, backend="eager")
    model = compiled(plain) if how == "function" else plain
    step = compiled(lambda x: model(x)) if how == "step" else model
    if how == "method":
        model.compile(backend="eager")
    step(x)
    with watch(model, ["1", ""]) as seen:
        step(x)
    for name in ("1", ""):
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


@torch.no_grad()
def test_the_sample_belongs_to_the_weights_as_they_are():
    torch.manual_seed(5)
    model, x = alone(nn.Linear(3, 30, bias=False)), torch.randn(30, 100, 3)
    weight, mixed = model[0].weight, []
    weight[3:] = 0  # three units are used in each state, all of them over time
    with watch(model, "0", rows=None) as seen:
        for batch in x:
            model(batch)
            mixed.append(seen.sample("0").values)
            weight.copy_(weight.roll(1, 0))  # other rows, the same spectrum
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
    both, only = watch(model, "1").open(), watch(model, "1", mode="train").open()
    model(x)
    with both.pause():
        model(x)
    assert (len(both.sample("1").values), len(only.sample("1").values)) == (70, 140)
    model.eval()(2 * x)  # a change of mode begins a new sample
    both.close(), only.close()
    with both.pause():
        pass
    assert n_hooks(model) == 0  # a closed watch stays closed
    np.testing.assert_array_equal(both.sample("1").values, array(model(2 * x)))
    assert len(only.sample("1").values) == 140


def test_watches_merge(model):
    x, parts = torch.randn(300, 5), []
    for k, some in enumerate((x[:120], x[120:], x)):
        options = dict(rows=300 if k == 2 else 200, units=6, groups=lambda x: x[:, 0])
        parts.append(watch(model, ["act", "last"], **options))
        parts[k].rng = np.random.default_rng(k)  # other processes
        with parts[k]:
            for batch in some.split(60):
                model(batch)
    one, two, whole = parts
    both = one.merge(pickle.loads(pickle.dumps(two)))
    assert len(one.sample("last").values) == 120
    sample, every = both.sample("last"), whole.sample("last")
    known = {tuple(row): k for k, row in enumerate(every.values)}
    numbers = np.array([known[tuple(row)] for row in sample.values])
    assert sample.values.shape == (200, 6) and len({*numbers}) == 200
    assert abs(np.mean(numbers < 120) - 0.4) < 0.15
    np.testing.assert_array_equal(sample.groups, every.groups[numbers])
    assert both.alignments().names == whole.alignments().names
    other = watched(model, x, "act", random_state=5)
    refused("other", "other units", both.merge, other)


def test_record(model):
    model.last.eval()  # a frozen part in a model that trains
    x = torch.randn(11, 5)
    expected = array(model.first(x))
    for inputs in (x, x.numpy(), x.split(3)):
        close(record(model, "first", inputs).values, expected)
    found = record(model, "first", x, groups=lambda x: torch.arange(11) // 2)
    np.testing.assert_array_equal(found.groups, np.arange(11) // 2)
    assert "Single trial" not in str(sm.estimate(found))  # nothing was measured
    refused("layers", "called twice", record, model, "twice", x)
    with pytest.raises(RuntimeError, match="shapes"):
        record(model, "first", x[:, :3])
    assert model.training and model.act.training and not model.last.training
    assert n_hooks(model) == 0 and torch.is_grad_enabled()
    assert all(weight.grad is None for weight in model.parameters())


def test_single_trials_are_named_where_noise_was_measured():
    layer = record(alone(nn.ReLU()), "0", torch.tensor(normal((12, 9), 0)))
    systems = {"layer": layer, "V4": normal((12, 6), 1)}
    assert "Single trial" not in str(sm.alignments(systems))
    systems["IT"] = normal((12, 7), 2)
    assert "Single trial" in str(sm.alignments(systems))  # of V4 and IT
    for population in (None, "all"):
        found = sm.participation_ratio(layer, population=population)
        assert "Single trial" not in str(found)


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
    for wrong in (tokens, x.long(), x.numpy()):
        refused("phi", r"phi must be a tensor .* phi.mean\(1\)", inverse_dimension, wrong)
    groups = torch.arange(12).repeat_interleave(mask.sum(1))
    found = inverse_dimension(tokens[mask], groups=groups)
    expected = sm.estimate(tokens[mask].numpy(), groups=groups.numpy()).values
    assert found.item() == pytest.approx(expected[1] / expected[0] ** 2, rel=1e-6)
    for few, message in ((x[:3], "needs 4 inputs"), (x[:, :1], "needs 2 features")):
        refused("n_max", message, inverse_dimension, few)
    refused("population", "population", inverse_dimension, x, population=3)


def test_sampled_positions_are_uniform_and_the_same_in_all_layers():
    model = nn.Sequential(nn.Identity(), nn.Linear(1, 1, bias=False))
    nn.init.constant_(model[1].weight, 2.0)
    x = torch.arange(6.0)[:, None].expand(3000, 6, 1)
    with watch(model, ["0", "1"], rows=None) as seen:
        model(x)
    place = seen.sample("0").values[:, 0]
    assert (abs(np.bincount(place.astype(int)) - 500) < 100).all()  # 4.9 deviations
    np.testing.assert_array_equal(seen.sample("1").values[:, 0], 2 * place)


def test_every_input_is_sampled_equally_often():
    model, counts = alone(nn.Identity()), np.zeros(60)
    x = torch.arange(60.0)[:, None].expand(60, 2)
    for seed in range(300):
        with watch(model, "0", rows=12, random_state=seed) as seen:
            for batch in x.split(7):
                model(batch)
                rows = [drawn.rows["0"] for drawn in seen.passes]  # no batches
                assert sum(x.untyped_storage().nbytes() for x in rows) <= 4 * 2 * 50
        rows = seen.sample("0").values[:, 0]
        assert len(rows) == 12 and (np.diff(rows) > 0).all()  # in the order of passing
        counts[rows.astype(int)] += 1
    deviations = (counts - 60) / math.sqrt(300 * 0.2 * 0.8)
    assert (abs(deviations) < 4.5).all() and (deviations**2).mean() < 1.6
