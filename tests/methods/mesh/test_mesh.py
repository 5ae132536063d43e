"""Split layers compute what whole ones compute, on meshes of several shapes."""

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, gluon, nd

from mxopt.core.errors import PlanError
from mxopt.methods import mesh as method
from mxopt.methods.mesh import Mesh

LOSS = gluon.loss.SoftmaxCrossEntropyLoss()
SHAPES = [(1, 1), (1, 2), (2, 1), (2, 4)]


def devices(rows, columns):
    return Mesh([[mx.cpu(row * columns + c) for c in range(columns)] for row in range(rows)])


@pytest.fixture
def whole():
    """Two layers on one device, a batch, and losses and gradients."""
    mx.random.seed(0)
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(8, activation="relu", in_units=12), gluon.nn.Dense(4, in_units=8))
    net.initialize(mx.init.Normal(0.5))
    for layer in net:
        layer.bias.set_data(nd.random.normal(shape=layer.bias.shape))
    x, y = nd.random.normal(shape=(6, 12)), nd.array([0, 1, 2, 3, 0, 1])
    with autograd.record():
        losses = LOSS(net(x), y)
    losses.backward()
    return net, x, y, losses.asnumpy()


def joined(block, name, axis):
    """The parts of a parameter's gradient, joined; each is the sum over the rows of the mesh."""
    parts = [getattr(part, name) for part in block.parts]
    sums = [sum(g.asnumpy() for g in p.list_grad()) for p in parts if p is not None]
    return np.concatenate(sums, axis=axis) if len(sums) > 1 else sums[0]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("gather", [False, True])
def test_two_split_layers_compute_what_the_whole_ones_do(whole, shape, gather):
    net, x, y, losses = whole
    mesh = devices(*shape)
    split = gluon.nn.Sequential()
    split.add(method.split(mesh, net[0], 0, gather), method.split(mesh, net[1], 1))
    found = method.gradients(mesh, split, LOSS, x, y)
    np.testing.assert_allclose(found.asnumpy(), losses, rtol=1e-5, atol=1e-6)
    pairs = [
        (joined(split[0], "weight", 0), net[0].weight),
        (joined(split[0], "bias", 0), net[0].bias),
        (joined(split[1], "weight", 1), net[1].weight),
        (joined(split[1], "bias", 0), net[1].bias),
    ]
    for own, expected in pairs:
        np.testing.assert_allclose(own, expected.grad().asnumpy(), rtol=1e-5, atol=1e-6)
    for block in split:
        for column, part in enumerate(block.parts):
            assert part.weight.list_ctx() == mesh.column(column)


@pytest.mark.parametrize("shape", SHAPES)
def test_trained_together_they_stay_one_network(whole, shape):
    net, x, y, _ = whole
    mesh = devices(*shape)
    split = gluon.nn.Sequential()
    split.add(method.split(mesh, net[0], 0, gather=False), method.split(mesh, net[1], 1))
    alone = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.05})
    several = method.trainers(split, "adam", {"learning_rate": 0.05})
    assert len(several) == mesh.columns
    for _ in range(3):
        with autograd.record():
            losses = LOSS(net(x), y)
        losses.backward()
        alone.step(6)
        found = method.gradients(mesh, split, LOSS, x, y)
        for trainer in several:
            trainer.step(6)
        np.testing.assert_allclose(found.asnumpy(), losses.asnumpy(), rtol=1e-4, atol=1e-5)


def test_a_layer_that_is_not_split_is_in_the_first_column(whole):
    net, x, y, losses = whole
    mesh = devices(2, 2)
    split = gluon.nn.Sequential()
    split.add(method.split(mesh, net[0], 0), method.split(mesh, net[1], None))
    assert split[1].parts[0].weight.list_ctx() == mesh.column(0)
    found = method.gradients(mesh, split, LOSS, x, y)
    np.testing.assert_allclose(found.asnumpy(), losses, rtol=1e-5, atol=1e-6)


def test_what_cannot_be_split_is_refused(whole):
    net = whole[0]
    with pytest.raises(PlanError, match="units=8 cannot be divided among 3 columns"):
        method.split(devices(1, 3), net[0], 0)
    with pytest.raises(PlanError, match="cannot have an activation"):
        method.split(devices(1, 2), net[0], 1)
    with pytest.raises(PlanError, match="are no mesh"):
        Mesh([[mx.cpu(0)], [mx.cpu(1), mx.cpu(2)]])
    with pytest.raises(PlanError, match="is on no device of the mesh"):
        devices(1, 2).row_of(nd.ones(1, ctx=mx.cpu(7)))


SIZES = {
    "dense0.weight": (8, 12),
    "dense0.bias": (8,),
    "dense1.weight": (4, 8),
    "dense1.bias": (4,),
}
LAYOUT = {r"dense0\.": 0, r"dense1\.weight": 1}


def test_patterns_lay_parameters_out_and_say_how_many_bytes_a_device_has():
    assert list(method.laid_out(SIZES, LAYOUT, 4).values()) == [0, 0, 1, None]
    assert method.bytes_per_device(SIZES, LAYOUT, 4) == (
        (24 + 2 + 8 + 4) * 4,
        (96 + 8 + 32 + 4) * 4,
    )
    with pytest.raises(PlanError, match="into 3 equal parts, as the pattern"):
        method.laid_out(SIZES, LAYOUT, 3)
    with pytest.raises(PlanError, match="matches no parameter"):
        method.laid_out(SIZES, {"dense2": 0}, 2)
    with pytest.raises(PlanError, match="along axis 1"):
        method.laid_out(SIZES, {"bias": 1}, 2)
