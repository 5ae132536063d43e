"""Fused updates train as MXNet's optimizers do, and refuse what they cannot update."""

import os
import subprocess
import sys

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, gluon, nd

from mxopt import kernels, methods
from mxopt.core.errors import DeviceError, PlanError
from mxopt.core.plan import Plan
from mxopt.methods.fused_updates import FusedAdam, FusedSGD
from mxopt.recipes import load
from mxopt.train import fit

compiled = pytest.mark.skipif(not kernels.available(), reason="no compiler for mxopt's kernels")
ADAM = {"optimizer": "adam", "learning_rate": 0.01}
SGD = {"momentum": 0.9, "weight_decay": 1e-3}


def losses(switches, **more) -> list[float]:
    """Train the tiny network, and return the loss of every epoch."""
    found = []

    def write(event, **figures):
        if event == "epoch":
            found.append(figures["train_loss"])

    recipe = load("segmentation", network="tiny", size=48, limit=12)
    fit.fit(recipe, Plan(epochs=3, **switches), write, evaluate=False, **more)
    return found


@compiled
@pytest.mark.parametrize(
    "switches",
    [
        SGD,
        {"weight_decay": 1e-3},
        ADAM,
        {**SGD, "hybridize": "static", "gradients": "released"},
        {**SGD, "devices": "cpu:0-3"},
        {**SGD, "devices": "cpu:0-3", "clip_norm": 0.5},
        {**ADAM, "grad_accumulation": 2, "clip_norm": 0.5},
        {**ADAM, "schedule": "cosine", "warmup_epochs": 1},
    ],
    ids=str,
)
def test_training_is_that_of_mxnets_optimizers(switches):
    found = losses({**switches, "updates": "fused"})
    assert len(set(found)) == 3
    np.testing.assert_allclose(found, losses(switches), rtol=1e-3)


@compiled
def test_a_checkpoint_restores_the_states(tmp_path):
    switches = {**ADAM, "updates": "fused"}
    whole = losses(switches)

    class Stop(Exception):
        pass

    def stop(net):
        raise Stop

    with pytest.raises(Stop):  # after the first epoch, whose checkpoint is there
        losses(switches, checkpoints=tmp_path, on_epoch=stop)
    assert losses(switches, checkpoints=tmp_path)[-2:] == whole[-2:]


@compiled
@pytest.mark.parametrize(("at_once", "calls"), [(None, 1), ("1", 4), ("3", 2)])
@pytest.mark.parametrize("optimizer", ["fusedsgd", "fusedadam"])
def test_so_many_parameters_are_updated_in_a_call(optimizer, at_once, calls, monkeypatch):
    monkeypatch.delenv("MXNET_OPTIMIZER_AGGREGATION_SIZE", raising=False)
    if at_once:
        monkeypatch.setenv("MXNET_OPTIMIZER_AGGREGATION_SIZE", at_once)
    net, counted = _two_layers(), []
    name = {"fusedsgd": "mxopt_sgd_updates", "fusedadam": "mxopt_adam_updates"}[optimizer]
    operator = getattr(nd, name)
    monkeypatch.setattr(
        nd, name, lambda *a, **k: counted.append(len(k["out"])) or operator(*a, **k)
    )
    trainer = gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.1})
    _step(net, trainer)
    assert len(counted) == calls
    assert sum(counted) == 4


@compiled
@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("predicts", ["before", "between"])
def test_predictions_lose_no_update(predicts, static):
    # They leave weights in layouts of oneDNN.
    images, found = nd.random.uniform(shape=(2, 64, 16, 16)), []
    for optimizer in ("sgd", "fusedsgd"):
        mx.random.seed(1)
        net = gluon.nn.HybridSequential()
        net.add(gluon.nn.Conv2D(64, 3, in_channels=64), gluon.nn.Dense(128, in_units=64 * 14 * 14))
        net.initialize(mx.init.Uniform(0.1))
        if static:
            net.hybridize(static_alloc=True, static_shape=True)
        trainer = gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 1e-3})
        before = net[1].weight.data().asnumpy()
        for _ in range(4):
            if predicts == "before":
                net(images)
            with autograd.record():
                loss = (net(images) ** 2).mean()
            loss.backward()
            if predicts == "between":
                net(images)
            trainer.step(2)
        assert np.abs(net[1].weight.data().asnumpy() - before).max() > 3e-4
        found.append([value.data().asnumpy() for value in net.collect_params().values()])
    for own, other in zip(*found):
        np.testing.assert_allclose(other, own, rtol=1e-4, atol=1e-6)


ENGINES = """
import mxopt
import mxnet as mx
from mxnet import autograd, gluon, nd
from mxopt.methods.fused_updates import OPTIMIZERS  # registers them
images, found = nd.random.uniform(shape=(2, 32, 9, 9)), []
for optimizer in ("sgd", "adam", "fusedsgd", "fusedadam"):
    mx.random.seed(1)
    net = gluon.nn.Conv2D(32, 3, in_channels=32)
    net.initialize(mx.init.Uniform(0.1))
    trainer = gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.01})
    for _ in range(4):
        with autograd.record():
            loss = (net(images) ** 2).mean()
        loss.backward()
        net(images)
        trainer.step(1)
    found.append(net.weight.data())
for own, fused in zip(found, found[2:]):
    print(float((own - fused).abs().max().asscalar()))
print(float((found[0] - found[1]).abs().max().asscalar()))
"""


@compiled
@pytest.mark.parametrize("engine", ["NaiveEngine", "ThreadedEngine"])
def test_under_other_engines(engine):
    environment = {**os.environ, **methods.environment(Plan(engine=engine))}
    done = subprocess.run([sys.executable, "-c", ENGINES], env=environment, check=False,
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    *same, other = map(float, done.stdout.split())
    assert max(same) < 1e-5 < other


@compiled
def test_rates_and_decays_of_single_parameters_are_kept():
    weights = []
    for optimizer in ("sgd", "fusedsgd"):
        mx.random.seed(1)
        net = _two_layers()
        net[1].weight.lr_mult, net[0].bias.wd_mult = 0.1, 0.0
        options = {"learning_rate": 0.1, "wd": 0.5, "momentum": 0.9, "clip_gradient": 0.2}
        trainer = gluon.Trainer(net.collect_params(), optimizer, options)
        for _ in range(3):
            _step(net, trainer)
        weights.append([value.data().asnumpy() for value in net.collect_params().values()])
    for expected, found in zip(*weights):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@compiled
@pytest.mark.parametrize("optimizer", [FusedSGD, FusedAdam])
def test_other_weights_are_refused(optimizer):
    with pytest.raises(DeviceError, match="is float16, default, cpu; fused updates take float32"):
        optimizer().create_state(0, nd.ones((3,), dtype="float16"))
    with pytest.raises(DeviceError, match="float32, row_sparse, cpu"):
        optimizer().create_state(0, nd.ones((3, 2)).tostype("row_sparse"))


@pytest.mark.parametrize(
    ("switches", "words"),
    [
        ({"optimizer": "lamb"}, "no operator for optimizer='lamb'; take sgd or adam"),
        ({"precision": "float16"}, "precision='float16' has others"),
        ({"devices": "gpu:0"}, "devices='gpu:0' leave it out"),
    ],
)
def test_a_plan_without_such_an_operator_is_refused(switches, words):
    with pytest.raises(PlanError, match=words):
        Plan(updates="fused", **switches)


def test_without_a_compiler_it_is_refused_before_training(monkeypatch):
    def load():
        raise DeviceError("mxopt's kernels need g++")

    monkeypatch.setattr(kernels, "load", load)
    with pytest.raises(DeviceError, match="need g"):
        losses({**ADAM, "updates": "fused"})


def _two_layers() -> gluon.Block:
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(5, in_units=3), gluon.nn.Dense(2, in_units=5))
    net.initialize(mx.init.Uniform(1))
    return net


def _step(net, trainer) -> None:
    with autograd.record():
        loss = (net(nd.arange(6).reshape((2, 3))) ** 2).sum()
    loss.backward()
    trainer.step(2)
