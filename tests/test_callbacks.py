"""Callbacks: gates, keys, and trainers, the real ones where they are installed."""

import math
import sys
import types
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import spectral_moments as sm
from spectral_moments import callbacks
from spectral_moments.checks import ArgumentError
from spectral_moments.results import SCALES, Axis, Quantity

pytestmark = pytest.mark.filterwarnings("ignore::spectral_moments.EstimateWarning")
PARTS = {"Lightning": "lightning.pytorch", "HuggingFace": "transformers"}
PARTS["TorchMetric"] = "torchmetrics"


class Metric:
    "What torchmetrics documents: states with a default, which `reset` brings back."

    def __init__(self):
        self.defaults = {}

    def add_state(self, name, default, dist_reduce_fx):
        assert dist_reduce_fx == "cat"
        self.defaults[name] = default
        setattr(self, name, default.clone())

    def reset(self):
        for name, default in self.defaults.items():
            setattr(self, name, default.clone())


class Callback:
    "What the trainers document: a class to inherit from."


@pytest.fixture(params=["stub", "real"])
def library(request, monkeypatch):
    "A function that gives a callback's class, made of a stub or of the real library."

    def get(name):
        monkeypatch.delitem(vars(callbacks), name, raising=False)
        if request.param == "real":
            pytest.importorskip(PARTS[name])
            return getattr(callbacks, name)
        _, base, libraries = callbacks.MADE[name]
        for known in libraries:
            stub = types.ModuleType(known)
            setattr(stub, base, Metric if base == "Metric" else Callback)
            monkeypatch.setitem(sys.modules, known, stub)
            monkeypatch.setitem(sys.modules, known.split(".")[0], stub)
        return getattr(callbacks, name)

    yield get
    for name in PARTS:
        vars(callbacks).pop(name, None)


class Net(torch.nn.Module):
    "As the modules of Lightning: a step calls a part."

    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.Tanh())

    def training_step(self, x):
        return self.net(x).square().mean()


def quantity(low, high):
    "A number with this interval, nearly."
    error = (high - low) / 2 / 1.96
    units = np.array([1, -1]) * error * math.sqrt(1 / 2 / (1 - 1 / 2))
    return Quantity((low + high) / 2, {("call", "probes"): Axis(units)}, SCALES["identity"])


def test_gates_act_when_the_interval_excludes_the_threshold():
    gate = callbacks.Gate("a", least=10, most=20, action="stop")
    assert "at most 9" in gate.verdict("a", quantity(8, 9))
    assert "at least 21" in gate.verdict("a", quantity(21, 22))
    for low, high in ((8, 11), (12, 13), (19, 21), (5, 30)):
        assert gate.verdict("a", quantity(low, high)) is None
    assert gate.verdict("b", quantity(1, 2)) is None
    with pytest.raises(ArgumentError, match="'warn' or 'stop'"):
        callbacks.Gate(action="shout")


@pytest.mark.parametrize("stop", [True, False])
def test_lightning(library, stop):
    gate = callbacks.Gate(**({"most": 1e-3} if stop else {"least": 1}), action="stop")
    watching = library("Lightning")("net.1", gate=gate, every=2)
    module, logged, trainer = Net(), [], SimpleNamespace(should_stop=False)
    module.log_dict = logged.append
    watching.on_fit_start(trainer, module)
    for step in range(3):
        module.training_step(torch.randn(80, 20))
        module.net.eval()(torch.randn(5, 20))  # a pass that does not count
        module.net.train()
        watching.on_train_batch_end(trainer, module, None, None, step)
    watching.on_train_epoch_end(trainer, module)
    watching.teardown(trainer, module, "fit")
    assert not module.net[1]._forward_hooks and trainer.should_stop == stop
    (keys,) = logged
    assert keys.keys() == {f"dimension/net.1{end}" for end in ("", "/low", "/high")}
    assert keys["dimension/net.1/low"] < keys["dimension/net.1"]
    assert watching.last["net.1"].of_layer.shape == (1, 160, 30)


@pytest.mark.filterwarnings("ignore")  # of the library itself
def test_lightning_trains():
    pl = pytest.importorskip("lightning.pytorch")

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = Net()

        def training_step(self, batch, _):
            return self.net.training_step(batch[0])

        def validation_step(self, batch, _):
            self.net.training_step(batch[0])

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.01)

    data = torch.utils.data.TensorDataset(torch.randn(256, 20))
    loader = torch.utils.data.DataLoader(data, 32)
    several = [
        callbacks.Lightning("net.net.1"),
        callbacks.Lightning(
            "net.net.1", mode="eval", prefix="val", gate=callbacks.Gate(most=1)
        ),
    ]
    quiet = dict.fromkeys(("logger", "enable_progress_bar", "enable_checkpointing"), False)
    trainer = pl.Trainer(max_epochs=1, callbacks=several, **quiet)
    with pytest.warns(sm.EstimateWarning, match="above 1"):
        trainer.fit(module := Module(), loader, loader)
    found = {name: float(x) for name, x in trainer.callback_metrics.items()}
    for prefix in ("dimension", "val"):
        assert 5 < found[f"{prefix}/net.net.1/low"] < found[f"{prefix}/net.net.1/high"] < 20
    assert not module.net.net[1]._forward_hooks


def test_hugging_face(library):
    gate = callbacks.Gate(most=1e-3, action="stop")
    watching = library("HuggingFace")("net.1", gate=gate)
    state = SimpleNamespace(global_step=7, log_history=[])
    control = SimpleNamespace(should_training_stop=False, should_log=True)
    model = Net()
    watching.on_train_begin(None, state, control, model=model, optimizer=None)
    model.training_step(torch.randn(90, 20))
    assert watching.on_step_end(None, state, control, model=model) is control
    assert watching.on_epoch_end(None, state, control) is control
    assert control.should_training_stop and state.log_history[0]["step"] == 7
    watching.log = logged = lambda keys: logged.__dict__.update(keys)
    model.training_step(torch.randn(90, 20))
    watching.on_epoch_end(None, state, control)
    assert "dimension/net.1/high" in logged.__dict__ and len(state.log_history) == 1
    watching.on_train_end(None, state, control)
    assert not model.net[1]._forward_hooks and control.should_log


@pytest.mark.parametrize("far", [3.0, 1e4])  # means may be far from zero
@pytest.mark.parametrize("law", [True, False])
def test_metrics_join(library, law, far):
    torch.manual_seed(0)
    Metric, x = library("TorchMetric"), torch.randn(400, 6) @ torch.randn(6, 25) + far
    one, two, whole = (Metric(25, law=law) for _ in range(3))
    for k, part in enumerate(x.split(16)):
        (one if k % 2 else two).update(part)
        getattr(whole, "forward", whole.update)(part)  # the real one: torchmetrics' own
        if not k:  # one update tells a value, and nothing of its error
            assert math.isfinite(whole.found().plain)
    for name in callbacks.SUMS:  # what torch.distributed does with the states of two
        setattr(one, name, torch.stack([getattr(one, name), getattr(two, name)]))
    size = None if law else 25
    told = sm.estimate(x.double().numpy(), 2, population=(None, size)).dimension()
    for metric in (one, whole):
        assert metric.found().plain == pytest.approx(told.plain, rel=1e-5)
        found = metric.compute()
        assert found["low"] < found["value"] < found["high"]
        assert 0.4 < float(found["high"] - found["low"]) / np.ptp(told.interval()) < 2.5
    whole.reset()
    assert not whole.gram.any()
    with pytest.raises(ValueError, match="no inputs"):
        whole.found()
    with pytest.raises(ArgumentError, match=r"not \(inputs, 25\)"):
        whole.update(x[:, :3])


def test_what_is_not_installed(monkeypatch):
    for name, library in PARTS.items():
        if name in vars(callbacks):
            continue
        for known in callbacks.MADE[name][2]:
            monkeypatch.setitem(sys.modules, known.split(".")[0], None)
            monkeypatch.setitem(sys.modules, known, None)
        with pytest.raises(ImportError, match=f"pip install {library.split('.')[0]}"):
            getattr(callbacks, name)
    assert not hasattr(callbacks, "Keras")
