"""A convolution, ReLU and maxima by one of mxopt's kernels."""

import json

import mxnet as mx
import pytest
from mxnet import gluon, nd
from mxnet.gluon import nn
from rewritten import assert_same, gradients

from mxopt import kernels
from mxopt.methods.graph_rewrites import optimize

pytestmark = pytest.mark.skipif(not kernels.available(), reason="no compiler")
NAME = "pooled_convolution"


def stack(*layers):
    net = nn.HybridSequential()
    net.add(*layers)
    net.initialize(mx.init.Xavier())
    return net


def times(fast):
    nodes = json.loads(fast.rewritten._cached_graph[1].tojson())["nodes"]
    return [node["op"] for node in nodes].count(f"mxopt_{NAME}")


@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize("static", [False, True])
def test_in_either_order_and_with_or_without_bias(static, adds):
    net = stack(
        nn.Conv2D(8, 3, padding=1, activation="relu", in_channels=3), nn.MaxPool2D(2, 2),
        nn.Conv2D(5, 3, padding=1, use_bias=False, in_channels=8), nn.MaxPool2D(),
        nn.Activation("relu"),
    )  # fmt: skip
    x = nd.random.normal(shape=(3, 3, 10, 13))
    fast = optimize(net, x, rewrites=[NAME, "pool_first"], adds=adds)
    assert times(fast) == 2
    fast.hybridize(static_alloc=static, static_shape=static)
    parameters = net.collect_params()
    if adds:
        parameters.setattr("grad_req", "add")
    plain = gradients(net, x, parameters)
    parameters.zero_grad()
    assert_same(plain, gradients(fast, x, parameters))


@pytest.mark.parametrize(
    ("convolution", "pooling"),
    [({"strides": 2}, {}), ({"groups": 2}, {}), ({"padding": 0}, {}), ({"dilation": 2}, {}),
     ({"kernel_size": 1}, {}), ({"in_channels": 66}, {}), ({}, {"pool_size": 3}),
     ({}, {"strides": 1}), ({}, {"padding": 1}), ({}, {"ceil_mode": True})],
)  # fmt: skip
def test_others_are_kept(convolution, pooling):
    how = {"channels": 4, "kernel_size": 3, "padding": 1, "in_channels": 6, **convolution}
    net = stack(nn.Conv2D(activation="relu", **how),
                nn.MaxPool2D(**{"pool_size": 2, "strides": 2, **pooling}))  # fmt: skip
    assert not optimize(net, nd.ones((1, how["in_channels"], 9, 9)), rewrites=[NAME]).changes


@pytest.mark.parametrize("last", [nn.AvgPool2D(2, 2), nn.GlobalMaxPool2D()])
def test_other_poolings_are_kept(last):
    net = stack(nn.Conv2D(4, 3, padding=1, activation="relu", in_channels=6), last)
    assert not optimize(net, nd.ones((1, 6, 8, 8)), rewrites=[NAME]).changes


class ReadTwice(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2D(4, 3, padding=1, in_channels=6)

    def hybrid_forward(self, F, x):
        y = F.relu(self.convolution(x))
        return F.Pooling(y, kernel=(2, 2), stride=(2, 2), pool_type="max"), F.mean(y)


def test_what_is_read_elsewhere_is_kept():
    net = ReadTwice()
    net.initialize()
    assert not optimize(net, nd.ones((1, 6, 8, 8)), rewrites=[NAME]).changes
