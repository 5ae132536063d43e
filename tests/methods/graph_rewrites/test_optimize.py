"""Rewritten networks: the same numbers, the same parameters, and a report of what changed."""

import types

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn
from rewritten import assert_same, gradients

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


@pytest.mark.parametrize(("sides", "size"), [
    ((4, 5), {"height": 9, "width": 7}),
    ((5, 4), {"height": 3, "width": 1}),
    ((1, 6), {"height": 8, "width": 6}),
    ((5, 3), {"scale_height": 2.5, "scale_width": 4}),
])  # fmt: skip
def test_resizing_by_products_changes_neither_outputs_nor_gradients(sides, size):
    class Resized(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.layer = nn.Conv2D(3, 1, in_channels=2)

        def hybrid_forward(self, F, x):
            return F.contrib.BilinearResize2D(self.layer(x), **size)

    net = Resized()
    net.initialize(mx.init.Normal(1))
    x = nd.random.normal(shape=(2, 2, *sides))
    fast = optimize(net, x)
    (what,) = fast.changes["bilinear resizing by matrix products"]
    assert what == "{} x {} to {} x {}".format(*sides, *net(x).shape[2:])
    fast.hybridize(static_alloc=True, static_shape=True)
    parameters = net.collect_params()
    assert_same(gradients(net, x, parameters), gradients(fast, x, parameters))


def test_resizing_by_other_rules_is_kept():
    class Resized(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            centred = F.contrib.BilinearResize2D(x, height=8, width=8, align_corners=False)
            return F.contrib.BilinearResize2D(centred, x, mode="like")

    assert optimize(Resized(), nd.ones((1, 1, 4, 4))).changes == {}


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


@pytest.mark.slow
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


def test_operators_beside_kernels_share_one_temporary_memory_on_one_device():
    one = {"MXNET_CPU_TEMP_COPY": "1"}
    assert GraphRewrites.environment(Plan(graph_rewrites="usual+plain_layout")) == one
    for other in ({"devices": "cpu:0-1"}, {"graph_rewrites": "usual"}):
        plan = Plan(**{"graph_rewrites": "usual+plain_layout", **other})
        assert GraphRewrites.environment(plan) == {}


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
