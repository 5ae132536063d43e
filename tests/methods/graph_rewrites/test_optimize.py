"""Rewritten networks: the same numbers, the same parameters, and a report of what changed."""

import json
import types

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

from mxopt import kernels
from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan
from mxopt.methods.graph_rewrites import USUAL, GraphRewrites, chosen, optimize, rewriting
from mxopt.recipes.segmentation.recipe import segmentation
from mxopt.train.fit import fit


def dilated(dilation, inputs=3, channels=4, bias=False):
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(
            channels, 3, padding=dilation, dilation=dilation, in_channels=inputs, use_bias=bias
        ),
        nn.BatchNorm(in_channels=channels),
        nn.Activation("relu"),
    )
    net.initialize(mx.init.Normal(1))
    return net


def gradients(net, x, parameters):
    x = x.copy()
    x.attach_grad()
    with autograd.record():
        loss = (net(x) ** 2).sum()
    loss.backward()
    found = {name: p.grad().asnumpy().copy() for name, p in parameters.items()
             if p.grad_req != "null"}  # fmt: skip
    return {**found, "input": x.grad.asnumpy()}


def assert_same(plain, rewritten):
    assert plain.keys() == rewritten.keys()
    for name, expected in plain.items():
        largest = max(1, np.abs(expected).max())
        np.testing.assert_allclose(rewritten[name], expected, atol=1e-4 * largest, err_msg=name)


@pytest.mark.parametrize("dilation", [5, 8, 12, 20])
@pytest.mark.parametrize(("hybrid", "bias"), [(False, False), (True, False), (True, True)])
def test_unseen_taps_change_neither_outputs_nor_gradients(dilation, hybrid, bias):
    net = dilated(dilation, bias=bias)
    if bias:
        net[0].bias.set_data(nd.arange(4))
    x = nd.random.normal(shape=(2, 3, 8, 9))
    fast = optimize(net, x)
    assert "dilated" in fast.report
    if hybrid:
        fast.hybridize(static_alloc=True, static_shape=True)
    parameters = net.collect_params()
    plain, rewritten = gradients(net, x, parameters), gradients(fast, x, parameters)
    assert_same(plain, rewritten)


@pytest.mark.parametrize("pool", [nn.MaxPool2D(2), nn.MaxPool2D(3, 2, 1), nn.GlobalMaxPool2D()])
def test_maxima_before_relu_change_neither_outputs_nor_gradients(pool):
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3, activation="relu", in_channels=3), pool, nn.Dense(2))
    net.initialize(mx.init.Normal(1))
    x = nd.random.normal(shape=(2, 3, 9, 9))
    net(x)
    fast = optimize(net, x, rewrites=["pool_first"])
    assert fast.changes["maxima computed before ReLU"]
    parameters = net.collect_params()
    assert_same(gradients(net, x, parameters), gradients(fast, x, parameters))


def test_means_and_activations_that_are_read_twice_are_kept():
    class Twice(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            x = F.relu(x)
            return F.Pooling(x, kernel=(2, 2), pool_type="max").sum() + x.sum()

    means = nn.HybridSequential()
    means.add(nn.Activation("relu"), nn.AvgPool2D(2))
    for net in (Twice(), means):
        assert optimize(net, nd.ones((1, 2, 4, 4)), rewrites=["pool_first"]).changes == {}


class Bounded(gluon.HybridBlock):
    """Two bounded convolutions, as in MobileNetV2."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2D(16, 1, in_channels=3)
        self.second = nn.Conv2D(16, 3, padding=1, groups=16, in_channels=16)

    def hybrid_forward(self, F, x):
        return F.clip(self.second(F.clip(self.first(x), 0, 6)), 0, 6)


@pytest.mark.parametrize("hybrid", [False, True])
def test_bounded_relus_change_neither_outputs_nor_gradients(hybrid):
    net = Bounded()
    net.initialize(mx.init.Normal(3))
    net.first.bias.set_data(nd.random.normal(2, 3, shape=(16,)))
    x = nd.random.normal(shape=(2, 3, 8, 9))
    fast = optimize(net, x)
    assert "bounded ReLUs" in fast.report
    if hybrid:
        fast.hybridize(static_alloc=True, static_shape=True)
    out = fast(x).asnumpy()
    assert out.min() == 0
    assert out.max() == pytest.approx(6)
    parameters = net.collect_params()
    plain, rewritten = gradients(net, x, parameters), gradients(fast, x, parameters)
    assert_same(plain, rewritten)


def test_a_value_that_others_read_too_is_not_bounded_elsewhere():
    class Shared(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.layer = nn.Conv2D(16, 1, in_channels=3)

        def hybrid_forward(self, F, x):
            x = self.layer(x)
            return F.clip(x, 0, 6) + x

    net = Shared()
    net.initialize()
    assert optimize(net, nd.ones((1, 3, 4, 4))).report == "nothing to change"


def test_weights_are_saved_and_loaded_as_the_networks_own(tmp_path):
    net = Bounded()
    net.initialize(mx.init.Normal(1))
    fast = optimize(net, nd.ones((1, 3, 4, 4)))
    assert list(fast.collect_params()) == list(net.collect_params())
    fast.save_parameters(str(tmp_path / "fast.params"))
    other = Bounded()
    other.load_parameters(str(tmp_path / "fast.params"))
    np.testing.assert_array_equal(other.first.weight.data().asnumpy(),
                                  net.first.weight.data().asnumpy())  # fmt: skip


def test_a_kernel_that_sees_most_of_the_image_stays_as_it_is():
    fast = optimize(dilated(2), nd.ones((1, 3, 30, 30)))
    assert fast.report == "nothing to change"


def test_training_the_rewritten_network_trains_the_original():
    net, x = dilated(9), nd.random.normal(shape=(2, 3, 8, 8))
    fast = optimize(net, x)
    trainer = gluon.Trainer(fast.collect_params(), "sgd", {"learning_rate": 0.1})
    before = net[0].weight.data().copy()
    with autograd.record():
        loss = fast(x).sum()
    loss.backward()
    trainer.step(2)
    assert (net[0].weight.data() != before).sum().asscalar() > 0
    np.testing.assert_allclose(net(x).asnumpy(), fast(x).asnumpy(), atol=1e-4)


def test_samples_of_another_shape_go_through_the_original():
    net = dilated(9)
    fast = optimize(net, nd.ones((2, 3, 8, 8)))
    x = nd.random.normal(shape=(1, 3, 20, 20))
    np.testing.assert_allclose(fast(x).asnumpy(), net(x).asnumpy(), atol=1e-5)


def test_symbols_go_through_the_original():
    net = dilated(9)
    fast = optimize(net, nd.ones((2, 3, 8, 8)))
    assert fast(mx.sym.var("data")).list_arguments() == net(mx.sym.var("data")).list_arguments()


def test_an_unknown_rewrite_is_refused_with_those_there_are():
    with pytest.raises(PlanError, match="'magic'; there are fold_batch_norm, inverted_residual"):
        optimize(dilated(9), nd.ones((2, 3, 8, 8)), rewrites=["magic"])


def test_a_block_without_a_graph_is_refused():
    class Eager(gluon.Block):
        def forward(self, x):
            return x * float(x.sum().asscalar())

    with pytest.raises(PlanError, match="Eager cannot be traced"):
        optimize(Eager(), nd.ones((2, 3)))


class Narrow(gluon.HybridBlock):
    """24 channels between convolutions, added once, as in MobileNetV2."""

    def __init__(self, tell=False):
        super().__init__()
        self.tell = tell
        self.first = nn.Conv2D(24, 1, in_channels=3)
        self.second = nn.Conv2D(24, 3, padding=1, in_channels=24, use_bias=False)
        self.third = nn.Conv2D(5, 1, in_channels=24)

    def hybrid_forward(self, F, x):
        x = self.first(x)
        x = x + self.second(x)
        return (self.third(x), x) if self.tell else self.third(x)


@pytest.mark.parametrize("hybrid", [False, True])
def test_filled_up_channels_change_neither_outputs_nor_gradients(hybrid):
    net = Narrow()
    net.initialize(mx.init.Normal(1))
    net.first.bias.set_data(nd.random.normal(shape=(24,)))
    x = nd.random.normal(shape=(2, 3, 8, 9))
    fast = optimize(net, x)
    assert fast.changes["channels filled up to blocks of 16"] == [
        "24 to 32", "24 to 32", "24 + 8 read"
    ]  # fmt: skip
    if hybrid:
        fast.hybridize(static_alloc=True, static_shape=True)
    parameters = net.collect_params()
    plain, rewritten = gradients(net, x, parameters), gradients(fast, x, parameters)
    assert {name: array.shape for name, array in rewritten.items()} == {
        name: array.shape for name, array in plain.items()
    }
    assert_same(plain, rewritten)


def test_channels_that_the_caller_sees_are_not_filled_up():
    net = Narrow(tell=True)
    net.initialize(mx.init.Normal(1))
    assert optimize(net, nd.ones((1, 3, 4, 4))).report == "nothing to change"


def test_channels_filled_up_let_their_neighbours_be_bounded():
    class Bottleneck(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.narrow = nn.Conv2D(24, 1, in_channels=16)
            self.wide = nn.Conv2D(32, 1, in_channels=24)

        def hybrid_forward(self, F, x):
            return F.clip(self.wide(self.narrow(x)), 0, 6)

    net = Bottleneck()
    net.initialize()
    x = nd.ones((1, 16, 4, 4))
    assert "bounded" not in optimize(net, x, rewrites=["relu6"]).report
    assert "bounded" in optimize(net, x).report


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("scale", [False, True])
def test_folded_batch_norms_change_neither_outputs_nor_gradients(bias, scale):
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(6, 3, in_channels=3, use_bias=bias),
        nn.BatchNorm(in_channels=6, use_global_stats=True, scale=scale),
        nn.Activation("relu"),
        nn.Conv2D(4, 1, in_channels=6),
    )
    net.initialize(mx.init.Normal(1))
    for name, parameter in net.collect_params().items():
        if not name.endswith("weight"):
            parameter.set_data(nd.random.uniform(0.5, 2, shape=parameter.shape))
    x = nd.random.normal(shape=(2, 3, 8, 9))
    assert "folded" not in optimize(net, x).report  # only where it is named
    fast = optimize(net, x, rewrites=["fold_batch_norm"])
    assert fast.changes == {"fixed batch norms folded into convolutions": ["6 channels"]}
    fast.hybridize(static_alloc=True, static_shape=True)
    parameters = net.collect_params()
    plain, rewritten = gradients(net, x, parameters), gradients(fast, x, parameters)
    assert scale == any("gamma" in name for name in plain)
    assert_same(plain, rewritten)


def test_a_network_that_is_rewritten_learns_the_same():
    # ResNet-50 at 32 px: 4 x 4 places, of which dilated kernels see little.
    losses = []
    for rewrites in ("none", "usual", "dead_taps"):
        recipe = segmentation("deeplab_resnet50", size=32, limit=2)
        plan = Plan(batch_size=2, graph_rewrites=rewrites)
        figures = fit(recipe, plan, lambda *_, **__: None, evaluate=False)
        losses.append(figures["train_loss"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    assert losses[0] == pytest.approx(losses[2], rel=1e-4)


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


@pytest.mark.skipif(not kernels.available(), reason="no compiler")
@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize(
    ("how", "changes"),
    [
        ({}, 2),
        ({"activate": "relu"}, 2),
        ({"expands": False}, 2),
        ({"stride": 2, "added": False}, 1),
        ({"stem": True, "expands": False, "added": False}, 1),
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
    names = [node["op"] for node in json.loads(fast.rewritten._cached_graph[1].tojson())["nodes"]]
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


@pytest.mark.skipif(not kernels.available(), reason="no compiler")
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


@pytest.mark.skipif(not kernels.available(), reason="no compiler")
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
    names = [node["op"] for node in json.loads(fast.rewritten._cached_graph[1].tojson())["nodes"]]
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


@pytest.mark.skipif(not kernels.available(), reason="no compiler")
def test_a_branch_whose_weight_is_computed_later_is_its_own_operator():
    net, x = Scaled(), nd.random.normal(shape=(1, 128, 8, 8))
    net.initialize(mx.init.Normal(0.1))
    fast = optimize(net, x, rewrites=["fewer_products"])
    names = [node["op"] for node in json.loads(fast.rewritten._cached_graph[1].tojson())["nodes"]]
    assert (names.count("mxopt_seen_taps"), names.count("Convolution")) == (1, 1)
    parameters = net.collect_params()
    assert_same(gradients(net, x, parameters), gradients(fast, x, parameters))


@pytest.mark.skipif(not kernels.available(), reason="no compiler")
@pytest.mark.parametrize(
    "how", [{"strides": 2}, {"groups": 2}, {"padding": 0}, {"use_bias": True}, {"channels": 64}]
)
def test_other_convolutions_are_kept(how):
    how = {"channels": 128, "padding": 1, "use_bias": False, **how}
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Conv2D(kernel_size=3, in_channels=128, **how))
    net.initialize()
    fast = optimize(net, nd.ones((1, 128, 8, 8)), rewrites=["fewer_products"])
    assert not fast.changes


def test_accumulated_gradients_are_told_to_rewrites(monkeypatch):
    asked = []
    monkeypatch.setattr(rewriting, "optimize", lambda net, x, **how: asked.append(how["adds"]))
    for accumulated in (1, 2):
        plan = Plan(graph_rewrites="usual", grad_accumulation=accumulated)
        run = types.SimpleNamespace(plan=plan)
        run.replace_trained = lambda net, change: change(net, None)
        GraphRewrites().network(run, None)
    assert asked == [False, True]


def test_usual_rewrites_can_be_joined_with_others():
    assert chosen("usual+inverted_residual") == (*USUAL, "inverted_residual")
    assert "inverted_residual" not in USUAL


def test_a_rewrite_that_does_not_exist_is_refused_by_the_plan():
    with pytest.raises(
        PlanError, match="no rewrite is called 'bounds'; take none, or some of usual"
    ):
        Plan(graph_rewrites="dead_taps+bounds")


@pytest.mark.parametrize("precision", ["amp", "bfloat16"])
@pytest.mark.parametrize("rewrites", ["usual", "relu6"])
def test_mixed_precision_is_refused_with_what_to_set(precision, rewrites):
    with pytest.raises(PlanError, match=r"would compute in float32 .* set graph_rewrites='none'"):
        Plan(precision=precision, graph_rewrites=rewrites)
    assert Plan(precision=precision, graph_rewrites="none").precision == precision
