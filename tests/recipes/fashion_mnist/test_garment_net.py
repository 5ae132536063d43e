"""The recipe of garments: the source's network, counted, and trained."""

import math

import mxnet as mx
import numpy as np
import pytest
from mxnet import nd

from mxopt import Plan, recipes
from mxopt.core.errors import PlanError
from mxopt.recipes.fashion_mnist.recipe import GarmentNet, merged, narrowed
from mxopt.train import fit


def size(net):
    return sum(math.prod(parameter.shape) for parameter in net.collect_params().values())


@pytest.mark.parametrize(
    ("bias", "hidden", "count"),
    [(True, 512, 1_630_090), (False, 512, 1_629_472), (True, 0, 32 * 10 + 64 * 289 + 31_370)],
)
def test_the_network_has_as_many_parameters_as_the_source_says(bias, hidden, count):
    assert size(GarmentNet(bias, hidden)) == count


@pytest.mark.parametrize("bias", [True, False])
def test_two_dense_layers_are_merged_into_one_that_computes_the_same(bias):
    mx.random.seed(1)
    net = GarmentNet(bias)
    net.initialize(mx.init.Xavier())
    if bias:
        for layer in net.head:
            layer.bias.set_data(nd.random.normal(shape=layer.bias.shape))
    before = {name: value.data().asnumpy() for name, value in net.collect_params().items()}
    images = nd.random.uniform(shape=(5, 1, 28, 28))
    one = merged(net)
    assert len(one.head) == 1
    np.testing.assert_allclose(one(images).asnumpy(), net(images).asnumpy(), rtol=1e-4, atol=1e-5)
    for name, value in net.collect_params().items():
        assert (value.data().asnumpy() == before[name]).all()
    with pytest.raises(PlanError, match="nothing to merge"):
        merged(one)


@pytest.mark.parametrize(("bias", "hidden"), [(True, 512), (False, 0)])
def test_channels_that_compute_nothing_can_be_left_out(bias, hidden):
    mx.random.seed(2)
    net = GarmentNet(bias, hidden)
    net.initialize(mx.init.Xavier())
    first, second = net.features[0], net.features[2]
    # Every other channel of the first convolution, and the last eight of the second, are zero.
    for layer, zero in ((first, slice(1, None, 2)), (second, slice(56, None))):
        weight = layer.weight.data()
        weight[zero] = 0
        if bias:
            layer.bias.set_data(nd.random.normal(shape=layer.bias.shape))
            layer.bias.data()[zero] = 0
    images = nd.random.uniform(shape=(5, 1, 28, 28))
    small = narrowed(net, (16, 56))
    assert small.channels == (16, 56)
    assert size(small) < 0.95 * size(net)
    np.testing.assert_allclose(small(images).asnumpy(), net(images).asnumpy(), rtol=1e-4, atol=1e-5)
    assert narrowed(net, (8, 8)).channels == (8, 8)
    for wrong in ((33, 64), (0, 1), (1,)):
        with pytest.raises(PlanError, match="cannot be chosen among"):
            narrowed(net, wrong)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"channels": [0, 3]}, "two numbers of channels"),
        ({"limit": 0}, "limit=0 must be"),
        ({"hidden": -1}, "hidden=-1 must be"),
        ({"initial": "he"}, "initial='he' is not a choice; take one of glorot, fan_in"),
    ],
)
def test_sizes_that_cannot_be_are_refused(options, message):
    with pytest.raises(PlanError, match=message):
        recipes.load("fashion_mnist", **options)


@pytest.mark.parametrize(("initial", "bound"), [("glorot", 6 / (3136 + 512)), ("fan_in", 1 / 3136)])
def test_initial_weights_have_the_distribution_that_was_asked_for(initial, bound):
    mx.random.seed(0)
    net = recipes.load("fashion_mnist", initial=initial).network([mx.cpu()])
    net(nd.zeros((1, 1, 28, 28)))
    weight = net.head[0].weight.data().asnumpy()
    assert weight.shape == (512, 3136)
    assert abs(weight).max() == pytest.approx(bound**0.5, rel=1e-3)
    assert weight.std() == pytest.approx((bound / 3) ** 0.5, rel=1e-2)
    assert (net.head[0].bias.data().asnumpy() == 0).all()


def test_the_stand_in_is_learned():
    made = recipes.load("fashion_mnist", stand_in=True)
    plan = Plan(optimizer="adam", learning_rate=1e-3, batch_size=64, epochs=2, preprocess="cached",
                hybridize="static")  # fmt: skip
    figures = fit.fit(made, plan, lambda *args, **fields: None)
    assert figures["samples"] == 2 * 1350
    assert figures["test_accuracy"] > 0.6
