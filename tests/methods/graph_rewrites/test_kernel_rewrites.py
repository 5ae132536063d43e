"""Rewrites that need a compiler: parts of networks computed by mxopt's kernels."""

import json

import mxnet as mx
import pytest
from mxnet import gluon, nd
from mxnet.gluon import nn
from rewritten import assert_same, gradients

from mxopt import kernels
from mxopt.core.errors import PlanError
from mxopt.methods.graph_rewrites import optimize

pytestmark = pytest.mark.skipif(not kernels.available(), reason="no compiler")


def operators_of(fast):
    return [node["op"] for node in json.loads(fast.rewritten._cached_graph[1].tojson())["nodes"]]


class Residual(gluon.HybridBlock):
    """A block of MobileNetV2, with or without its expansion, and what may be added to it."""

    def __init__(
        self, expands=True, activate="clip", stride=1, added=True, shared=False, stem=False
    ):
        super().__init__()
        self._activate, self._added, self._shared = activate, added, shared
        width = 48 if expands else 8
        self.expand = nn.Conv2D(width, 1, in_channels=8) if expands else None
        self.stem = nn.Conv2D(8, 3, 2, 1, in_channels=8) if stem else None
        self.depthwise = nn.Conv2D(width, 3, stride, 1, groups=width, in_channels=width)
        self.project = nn.Conv2D(8, 1, in_channels=width)

    def hybrid_forward(self, F, x):
        def active(y):
            return F.clip(y, 0, 6) if self._activate == "clip" else F.Activation(y, "relu")

        x = F.identity(x)
        x = active(self.stem(x)) if self.stem else x
        y = active(self.expand(x)) if self.expand else x
        z = self.project(active(self.depthwise(y)))
        if self._shared:
            return F.concat(z, y, dim=1)
        return x + z if self._added else z


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize(
    ("how", "changes"),
    [
        ({}, 2),
        ({"activate": "relu"}, 2),
        ({"expands": False}, 2),
        ({"stride": 2, "added": False}, 1),
        ({"stem": True, "expands": False, "added": False}, 2),  # also the stem's output
        ({"stem": True, "expands": False}, 2),  # the activation is read twice, and stays
    ],
)
def test_blocks_computed_by_one_kernel(how, changes, hybrid):
    mx.random.seed(2)
    net = Residual(**how)
    net.initialize(mx.init.Normal(0.5))
    x = nd.random.normal(0, 2, shape=(2, 8, 9, 7))
    fast = optimize(net, x, rewrites=["inverted_residual"])
    assert len(fast.changes) == changes
    names = operators_of(fast)
    assert names.count("clip") == (1 if net.stem and net._added else 0)
    if hybrid:
        fast.hybridize(static_alloc=True, static_shape=True)
    parameters = net.collect_params()
    plain, rewritten = gradients(net, x, parameters), gradients(fast, x, parameters)
    assert_same(plain, rewritten)
    for parameter in parameters.values():
        parameter.grad_req = "add"
    gradients(fast, x, parameters)
    twice = gradients(fast, x, parameters)
    assert_same({name: (1 + (name != "input")) * g for name, g in plain.items()}, twice)


def test_a_block_whose_middle_is_read_elsewhere_keeps_its_expansion():
    net = Residual(shared=True)
    net.initialize(mx.init.Normal(0.5))
    x = nd.random.normal(0, 2, shape=(1, 8, 6, 6))
    fast = optimize(net, x, rewrites=["inverted_residual"])
    nodes = fast.rewritten._cached_graph[1].get_internals().list_outputs()
    assert any("block" in name for name in nodes)  # depthwise and projection
    parameters = net.collect_params()
    assert_same(gradients(net, x, parameters), gradients(fast, x, parameters))


class Branches(gluon.HybridBlock):
    """DeepLab's head: a 1 x 1 convolution, two dilated ones and the mean, beside each other."""

    def __init__(self, channels=128):
        super().__init__()
        with self.name_scope():
            layers = ("one", 1, 1), ("two", 3, 1), ("far", 3, 6), ("end", 3, 9)
            for name, size, dilation in layers:
                pad = dilation * (size // 2)
                conv = gluon.nn.Conv2D(channels, size, 1, pad, dilation, use_bias=False)
                setattr(self, name, conv)
            self.bias = gluon.nn.Conv2D(channels, 3, padding=1)

    def hybrid_forward(self, F, x):
        mean = F.broadcast_like(F.contrib.AdaptiveAvgPooling2D(x), x)
        pooled = F.broadcast_like(F.Pooling(x, global_pool=True, pool_type="avg"), x)
        y = F.relu(self.one(x)) + F.relu(self.far(x)) + self.end(x) * pooled + mean
        return self.bias(F.relu(self.two(y)))


def branches(adds=True):
    net = Branches()
    net.initialize(mx.init.Xavier())
    x = nd.random.normal(shape=(2, 128, 10, 9))
    return net, x, optimize(net, x, rewrites=["fewer_products"], adds=adds)


@pytest.mark.parametrize("adds", [True, False])
@pytest.mark.parametrize("static", [True, False])
def test_convolutions_by_kernels_with_fewer_products(adds, static):
    net, x, fast = branches(adds)
    assert {name.split(" ")[0]: found for name, found in fast.changes.items()} == {
        "dilated": [
            "1 x 1 beside them",
            "dilated by 6 at 10 x 9: 33% of its products",
            "dilated by 9 at 10 x 9: 13% of its products",
            "a mean beside them",
        ],
        "3": ["dilated by 1 at 10 x 9: 40% of its products"],
    }
    names = operators_of(fast)
    assert (names.count("mxopt_seen_taps"), names.count("mxopt_winograd")) == (1, 1)
    assert names.count("Convolution") == 1  # that with a bias
    fast.hybridize(static_alloc=static, static_shape=static)
    parameters = net.collect_params()
    plain, rewritten = gradients(net, x, parameters), gradients(fast, x, parameters)
    assert_same(plain, rewritten)
    for parameter in parameters.values():
        parameter.grad_req = "add"
    if not adds:
        with pytest.raises(PlanError, match="adds=False"):
            gradients(fast, x, parameters)
        fast(x)  # in prediction there are no gradients
        return
    gradients(fast, x, parameters)
    twice = gradients(fast, x, parameters)
    assert_same({name: (1 + (name != "input")) * g for name, g in plain.items()}, twice)


class Scaled(gluon.HybridBlock):
    """Two dilated convolutions of one input; the weight of the second is computed."""

    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.first = self.params.get("first", shape=(128, 128, 3, 3))
            self.second = self.params.get("second", shape=(128, 128, 3, 3))

    def hybrid_forward(self, F, x, first, second):
        how = {"kernel": (3, 3), "dilate": (6, 6), "pad": (6, 6), "no_bias": True}
        y = F.Convolution(x, first, num_filter=128, **how)
        return y * F.Convolution(x, second * 2, num_filter=128, **how)


def test_a_branch_whose_weight_is_computed_later_is_its_own_operator():
    net, x = Scaled(), nd.random.normal(shape=(1, 128, 8, 8))
    net.initialize(mx.init.Normal(0.1))
    fast = optimize(net, x, rewrites=["fewer_products"])
    names = operators_of(fast)
    assert (names.count("mxopt_seen_taps"), names.count("Convolution")) == (1, 1)
    parameters = net.collect_params()
    assert_same(gradients(net, x, parameters), gradients(fast, x, parameters))


@pytest.mark.parametrize(
    "how", [{"strides": 2}, {"groups": 2}, {"padding": 0}, {"use_bias": True}, {"channels": 32}]
)
def test_other_convolutions_are_kept(how):
    how = {"channels": 128, "padding": 1, "use_bias": False, **how}
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Conv2D(kernel_size=3, in_channels=128, **how))
    net.initialize()
    fast = optimize(net, nd.ones((1, 128, 8, 8)), rewrites=["fewer_products"])
    assert not fast.changes


class Bottleneck(gluon.HybridBlock):
    """A block of ResNet-50, and what is beside it."""

    def __init__(self, channels):
        super().__init__()
        wide = {"use_bias": False, "in_channels": channels}
        narrow = {"use_bias": False, "in_channels": 128}
        self.down = gluon.nn.HybridSequential()
        self.down.add(
            gluon.nn.Conv2D(channels, 1, **wide), gluon.nn.BatchNorm(in_channels=channels)
        )
        self.first = gluon.nn.Conv2D(128, 1, **wide)
        self.middle = gluon.nn.Conv2D(128, 3, padding=1, **narrow)
        self.last = gluon.nn.Conv2D(channels, 1, **narrow)
        for name, count in (("one", 128), ("two", 128), ("three", channels)):
            setattr(self, f"norm_{name}", gluon.nn.BatchNorm(in_channels=count))

    def hybrid_forward(self, F, x):
        y = F.Activation(self.norm_one(self.first(x)), "relu")
        y = F.relu(self.norm_two(self.middle(y)))
        return F.relu(self.norm_three(self.last(y)) + self.down(x)) + 1


@pytest.mark.parametrize("channels", [128, 512])
@pytest.mark.parametrize("static", [True, False])
def test_a_block_in_the_plain_layout(static, channels):
    net, x = Bottleneck(channels), nd.random.normal(shape=(2, channels, 8, 9))
    net.initialize(mx.init.Xavier())
    fast = optimize(net, x, rewrites=["fewer_products", "plain_layout"], adds=False)
    own = kernels.multiplies_by_tiles() or channels == 512
    names = operators_of(fast)
    assert names.count("mxopt_pointwise") == (3 if own else 0)
    assert names.count("mxopt_batch_norm") == (3 if own else 2)
    assert names.count("relu") + names.count("Activation") == (0 if own else 1)
    assert names.count("elemwise_add") + names.count("_plus") == (0 if own else 1)
    fast.hybridize(static_alloc=static, static_shape=static)
    parameters = net.collect_params()
    plain = gradients(net, x, parameters)
    running = {name: p.data().copy() for name, p in parameters.items() if "running" in name}
    for name, values in running.items():
        parameters[name].set_data(nd.zeros_like(values) + ("var" in name))
    assert_same(plain, gradients(fast, x, parameters))
    for name, values in running.items():
        assert float((parameters[name].data() - values).abs().max().asscalar()) < 1e-5
    assert float((fast(x) - net(x)).abs().max().asscalar()) < 1e-4


@pytest.mark.parametrize(
    "how", [{"strides": 2}, {"groups": 2}, {"padding": 1}, {"use_bias": True}, {"channels": 32}]
)
def test_other_1_x_1_convolutions_are_kept(how):
    how = {"channels": 128, "use_bias": False, **how}
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Conv2D(kernel_size=1, in_channels=128, **how), gluon.nn.BatchNorm())
    net.initialize()
    fast = optimize(net, nd.ones((1, 128, 8, 8)), rewrites=["plain_layout"])
    assert not fast.changes


@pytest.mark.parametrize("how", [{"scale": False}, {"use_global_stats": True}])
def test_other_batch_norms_are_kept(how):
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Conv2D(128, 3, padding=1, use_bias=False, in_channels=128))
    net.add(gluon.nn.BatchNorm(in_channels=128, **how), gluon.nn.Activation("relu"))
    net.initialize()
    fast = optimize(net, nd.ones((1, 128, 8, 8)), rewrites=["fewer_products", "plain_layout"])
    assert operators_of(fast).count("BatchNorm") == 1
    assert operators_of(fast).count("mxopt_batch_norm") == 0


def test_a_batch_norm_that_onednn_reads_is_kept():
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Conv2D(128, 3, 2, 1, use_bias=False, in_channels=128))
    net.add(gluon.nn.BatchNorm(in_channels=128), gluon.nn.Activation("relu"))
    net.add(gluon.nn.MaxPool2D())
    net.initialize()
    fast = optimize(net, nd.ones((1, 128, 8, 8)), rewrites=["fewer_products", "plain_layout"])
    assert not fast.changes


class TwoNorms(gluon.HybridBlock):
    """The sum of two batch norms."""

    def __init__(self, epsilon):
        super().__init__()
        for name in ("first", "second"):
            setattr(self, name, gluon.nn.Conv2D(128, 3, padding=1, use_bias=False, in_channels=128))
        self.norm_first = gluon.nn.BatchNorm(in_channels=128)
        self.norm_second = gluon.nn.BatchNorm(in_channels=128, epsilon=epsilon)

    def hybrid_forward(self, F, x):
        return F.relu(self.norm_first(self.first(x)) + self.norm_second(self.second(x)))


@pytest.mark.parametrize(("epsilon", "number"), [(1e-5, 1), (1e-2, 2)])
def test_the_sum_of_two_batch_norms_is_one_kernel_if_they_have_the_same_settings(epsilon, number):
    mx.random.seed(1)  # as below
    net = TwoNorms(epsilon)
    net.initialize(mx.init.Xavier())
    x = nd.random.normal(shape=(2, 128, 8, 9))
    fast = optimize(net, x, rewrites=["fewer_products", "plain_layout"])
    assert operators_of(fast).count("mxopt_batch_norm") == number
    parameters = net.collect_params()
    assert_same(gradients(net, x, parameters), gradients(fast, x, parameters))


class ReadTwice(gluon.HybridBlock):
    """Two batch norms, of which one is read twice; and the sum of one with itself."""

    def __init__(self):
        super().__init__()
        for name in ("first", "second"):
            setattr(self, name, gluon.nn.Conv2D(128, 3, padding=1, use_bias=False, in_channels=128))
            setattr(self, f"norm_{name}", gluon.nn.BatchNorm(in_channels=128))

    def hybrid_forward(self, F, x):
        y, z = self.norm_first(self.first(x)), self.norm_second(self.second(x))
        return F.relu(y) * (y + 1) + F.relu(z + z)


def test_a_batch_norm_that_is_read_twice_keeps_what_is_after_it():
    mx.random.seed(1)  # no input of a ReLU so close to 0 that rounding changes its sign
    net = ReadTwice()
    net.initialize(mx.init.Xavier())
    x = nd.random.normal(shape=(2, 128, 8, 9))
    fast = optimize(net, x, rewrites=["fewer_products", "plain_layout"])
    names = operators_of(fast)
    assert (names.count("mxopt_batch_norm"), names.count("relu")) == (2, 2)
    parameters = net.collect_params()
    assert_same(gradients(net, x, parameters), gradients(fast, x, parameters))


class Dilated(gluon.HybridBlock):
    """Two convolutions beside each other, each with its batch norm, after a strided one."""

    def __init__(self):
        super().__init__()
        how = {"in_channels": 128, "use_bias": False}
        self.stem = gluon.nn.HybridSequential()
        self.stem.add(gluon.nn.Conv2D(128, 3, 2, 1, **how), gluon.nn.BatchNorm(in_channels=128))
        for name, pad in (("near", 4), ("far", 6)):
            setattr(self, name, gluon.nn.Conv2D(128, 3, 1, pad, pad, **how))
            setattr(self, f"norm_{name}", gluon.nn.BatchNorm(in_channels=128))
        self.last = gluon.nn.Conv2D(128, 3, padding=1, **how)

    def hybrid_forward(self, F, x):
        x = F.Activation(self.stem(x), "relu")
        y = F.relu(self.norm_near(self.near(x)))
        z = F.relu(self.norm_far(self.far(x)))
        return self.last(x) + self.last(F.concat(y, z, dim=1).slice_axis(1, 64, 192))


def dilated():
    mx.random.seed(1)  # as above
    net = Dilated()
    net.initialize(mx.init.Xavier())
    x = nd.random.normal(shape=(2, 128, 14, 14))
    return net, x, optimize(net, x, rewrites=["fewer_products", "plain_layout"], adds=False)


@pytest.mark.parametrize("static", [True, False])
def test_what_kernels_read_from_onednn_is_converted_once(static):
    net, x, fast = dilated()
    names = operators_of(fast)
    assert names.count("mxopt_seen_taps") == 1
    assert names.count("mxopt_winograd") == 2  # one reads what the branches read, one does not
    assert names.count("Reshape") == 1
    fast.hybridize(static_alloc=static, static_shape=static)
    parameters = net.collect_params()
    assert_same(gradients(net, x, parameters), gradients(fast, x, parameters))


def test_batch_norms_after_all_branches_are_computed_by_kernels():
    _, _, fast = dilated()
    names = operators_of(fast)
    assert (names.count("mxopt_batch_norm"), names.count("BatchNorm")) == (3, 0)


def in_plain_layout(array):
    """Whether an array's memory can be read as it is, which MXNet refuses in oneDNN's layouts."""
    try:
        array.to_dlpack_for_read()
    except mx.MXNetError:
        return False
    return True


def test_weights_are_in_the_plain_layout_while_kernels_train():
    net, x, fast = dilated()
    weights = [net.near.weight, net.last.weight]
    for _ in range(2):
        net(x).wait_to_read()  # a prediction by MXNet's operators
        fast(x).wait_to_read()
        # Which layouts oneDNN takes depends on the processor; one weight is in its own everywhere.
        assert not all(in_plain_layout(weight.data()) for weight in weights)
        before = [weight.data().asnumpy() for weight in weights]
        gradients(fast, x, net.collect_params())
        assert all(in_plain_layout(weight.data()) for weight in weights)
        for weight, values in zip(weights, before):
            assert (weight.data().asnumpy() == values).all()
