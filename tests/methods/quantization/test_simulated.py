"""Training that simulates integers: what is rounded, gradients, and what it wins with few bits."""

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, gluon, nd

from mxopt.chapter import deployment
from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan
from mxopt.methods.quantization import dequantized, simulate, to_int8


def _rounded_by_hand(array, steps):
    """Round to one scale, with twice the steps if nothing is negative."""
    scale = np.abs(array).max() / np.float32(steps * (1 + (array.min() >= 0)))
    return np.rint(array / scale) * scale


@pytest.fixture
def layer():
    mx.random.seed(2)
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(3, in_units=5, activation="relu"), gluon.nn.Dense(2, in_units=3))
    net.initialize(mx.init.Normal(1.0))
    net[0].bias.set_data(nd.ones(3))
    return net


@pytest.mark.parametrize("positive", [False, True])
def test_weights_and_inputs_are_rounded_as_integers_are(layer, positive):
    inputs = nd.random.normal(shape=(4, 5))
    inputs = inputs.abs() if positive else inputs
    first, second = layer
    weights = [dequantized(*to_int8(b.weight.data().asnumpy(), axis=0)) for b in (first, second)]
    hidden = _rounded_by_hand(inputs.asnumpy(), 127) @ weights[0].T + first.bias.data().asnumpy()
    hidden = _rounded_by_hand(np.maximum(hidden, 0), 127)
    wanted = hidden @ weights[1].T + second.bias.data().asnumpy()
    np.testing.assert_allclose(simulate(layer, inputs)(inputs).asnumpy(), wanted, atol=2e-5)
    assert abs(wanted - layer(inputs).asnumpy()).max() > 1e-4, "nothing was rounded"


def test_a_gradient_passes_the_rounding_unchanged(layer):
    inputs = nd.random.normal(shape=(4, 5))
    inputs.attach_grad()
    net = simulate(layer[0], inputs, bits=3)
    with autograd.record():
        total = (net(inputs) * nd.arange(12).reshape((4, 3))).sum()
    total.backward()
    weight = layer[0].weight
    active = net(inputs).asnumpy() > 0
    slope = active * np.arange(12).reshape((4, 3))
    x = _rounded_by_hand(inputs.asnumpy(), 3)
    steps = np.abs(weight.data().asnumpy()).max(axis=1, keepdims=True) / np.float32(3)
    rounded = np.rint(weight.data().asnumpy() / steps) * steps
    np.testing.assert_allclose(weight.grad().asnumpy(), slope.T @ x, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(inputs.grad.asnumpy(), slope @ rounded, rtol=1e-5, atol=1e-5)


def test_zeros_stay_zeros(layer):
    zeros = nd.zeros((4, 5))
    layer[0].weight.set_data(nd.zeros((3, 5)))
    assert np.isfinite(simulate(layer, zeros)(zeros).asnumpy()).all()


@pytest.mark.parametrize("hybridize", [False, True])
def test_convolutions_are_rounded_for_any_number_of_samples(hybridize):
    mx.random.seed(0)
    net = gluon.nn.HybridSequential()
    net.add(
        gluon.nn.Conv2D(4, 3, in_channels=3, use_bias=False),
        gluon.nn.BatchNorm(in_channels=4),
        gluon.nn.Conv2D(4, 3, groups=4, in_channels=4),
        gluon.nn.Flatten(),
        gluon.nn.Dense(2),
    )
    net.initialize(mx.init.Xavier())
    image = nd.random.normal(shape=(1, 3, 8, 8))
    made = simulate(net, image, bits=4)
    assert [len(found) for found in made.changes.values()] == [3], made.changes
    if hybridize:
        made.hybridize(static_alloc=True, static_shape=True)
    alone, several = made(image).asnumpy(), made(nd.concat(*[image] * 5, dim=0)).asnumpy()
    np.testing.assert_allclose(several, np.repeat(alone, 5, axis=0), atol=1e-6)
    assert abs(alone - net(image).asnumpy()).max() > 1e-4
    assert set(made.collect_params()) == set(net.collect_params())


def test_few_bits_need_a_training_that_knows_of_them():
    plan = Plan(
        optimizer="adam", learning_rate=2e-3, batch_size=16, epochs=3, hybridize="static",
        preprocess="cached",
    )  # fmt: skip
    job = {"recipe": "fashion_mnist", "train": True, "times": 1, "stand_in": True, "limit": 640}
    job.update(channels=[8, 16], hidden=0)
    scores = {
        bits: deployment.inference(
            plan.replace(simulated_bits=bits), lambda *_, **__: None, form="rounded-2", **job
        )["test_accuracy"]
        for bits in (0, 2)
    }
    assert scores[2] > scores[0] + 0.05, scores  # 0.09 to 0.22 with three seeds


@pytest.mark.parametrize(
    ("switches", "words"),
    [
        ({"simulated_bits": 1}, "from 2 to 8"),
        ({"simulated_bits": 9}, "from 2 to 8"),
        ({"simulated_bits": 8, "graph_rewrites": "usual"}, "graph_rewrites='none'"),
        ({"simulated_bits": 8, "precision": "bfloat16"}, "precision='float32'"),
    ],
)
def test_what_cannot_be_is_refused(switches, words):
    with pytest.raises(PlanError, match=words):
        Plan(**switches)


def test_networks_without_layers_are_refused():
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Activation("relu"))
    with pytest.raises(PlanError, match="no convolution or dense layer"):
        simulate(net, nd.ones((1, 2)))
