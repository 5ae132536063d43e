"""Classification of garments: the network and the data of the first guide.

The network is that of "Accelerate Model Training with PyTorch 2.X", chapter 2: two convolutions of
3 x 3 with ReLU and max-pooling, a dense layer of 512 units, and one of 10 without an activation in
between. It has 1,630,090 parameters with biases and 1,629,472 without.
"""

from __future__ import annotations

import mxnet as mx
from mxnet import gluon, init, nd
from mxnet.gluon import nn

from mxopt.core.errors import PlanError
from mxopt.core.option_values import check_limit
from mxopt.core.recipe import Data, Recipe
from mxopt.data import sources
from mxopt.data.fashion_mnist import FashionMNIST

CLASSES = 10
# Channels of the two convolutions, and the positions that are left of an image behind them.
_CHANNELS = (32, 64)
_INITIAL = {"glorot": {}, "fan_in": {"factor_type": "in", "magnitude": 1}}  # of MXNet's Xavier
_POSITIONS = 7 * 7


class GarmentNet(gluon.HybridBlock):
    """Two convolutions and two dense layers.

    Takes images (samples, 1, 28, 28) float32 and returns scores (samples, 10).

    Args:
        bias: whether the layers have biases.
        hidden: units of the first dense layer; 0 leaves the layer out, as :func:`merged` does.
        channels: channels of both convolutions.

    Attributes:
        channels: as above.
        features: the convolutions, up to the flattened images.
        head: the dense layers.
    """

    def __init__(self, bias: bool = True, hidden: int = 512, channels=_CHANNELS, **kwargs):
        super().__init__(**kwargs)
        self.channels = tuple(channels)
        with self.name_scope():
            self.features = nn.HybridSequential()
            for outputs, inputs in zip(self.channels, (1, *self.channels)):
                self.features.add(
                    nn.Conv2D(outputs, 3, padding=1, activation="relu", use_bias=bias,
                              in_channels=inputs),
                    nn.MaxPool2D(2, 2),
                )  # fmt: skip
            self.features.add(nn.Flatten())
            self.head = nn.HybridSequential()
            units = [*([hidden] if hidden else []), CLASSES]
            flat = self.channels[-1] * _POSITIONS
            for inputs, outputs in zip([flat, *units], units):
                self.head.add(nn.Dense(outputs, use_bias=bias, in_units=inputs))

    def hybrid_forward(self, F, images):
        """Return scores (samples, 10)."""
        return self.head(self.features(images))


def merged(net: GarmentNet) -> GarmentNet:
    """Return a network that computes the same with one dense layer in place of two.

    Without an activation in between, two linear maps are one: W2 (W1 x + b1) + b2 =
    (W2 W1) x + (W2 b1 + b2).

    Args:
        net: an initialised network with a hidden layer; it is not changed.

    Raises:
        PlanError: the network has one dense layer already.
    """
    if len(net.head) != 2:
        raise PlanError("the network has one dense layer; there is nothing to merge")
    first, second = net.head
    bias = first.bias is not None
    contexts = first.weight.list_ctx()
    one = GarmentNet(bias, 0, net.channels)
    one.initialize(ctx=contexts)
    kept = zip(one.features.collect_params().values(), net.features.collect_params().values())
    for copy, parameter in kept:
        copy.set_data(parameter.data(contexts[0]))
    w1, w2 = first.weight.data(contexts[0]), second.weight.data(contexts[0])
    one.head[0].weight.set_data(nd.dot(w2, w1))
    if bias:
        b1, b2 = first.bias.data(contexts[0]), second.bias.data(contexts[0])
        one.head[0].bias.set_data(nd.dot(w2, b1) + b2)
    return one


def narrowed(net: GarmentNet, channels) -> GarmentNet:
    """Return a network of the strongest channels of another one.

    Of each convolution those channels are kept whose filters have the largest L1 norms (Li et al.,
    "Pruning Filters for Efficient ConvNets", 2017, section 3.1), in their order, and of the layer
    after it the weights that read them.

    Args:
        net: an initialised network; it is not changed.
        channels: channels of both convolutions of the new network.

    Raises:
        PlanError: there are not as many channels.
    """
    channels = tuple(channels)
    if len(channels) != 2 or not all(0 < n <= most for n, most in zip(channels, net.channels)):
        raise PlanError(f"channels={list(channels)} cannot be chosen among {list(net.channels)}")
    first, second = (layer for layer in net.features if isinstance(layer, nn.Conv2D))
    bias = first.bias is not None
    context = first.weight.list_ctx()[0]
    found = GarmentNet(bias, net.head[0].weight.shape[0] if len(net.head) == 2 else 0, channels)
    found.initialize(ctx=first.weight.list_ctx())
    rows = []
    for layer, count in zip((first, second), channels):
        norms = abs(layer.weight.data(context)).sum(axis=(1, 2, 3))
        rows.append(nd.topk(norms, k=count).sort())
    into = (layer for layer in found.features if isinstance(layer, nn.Conv2D))
    for layer, new, kept, read in zip((first, second), into, rows, (None, rows[0])):
        weight = layer.weight.data(context).take(kept)
        new.weight.set_data(weight if read is None else weight.take(read, axis=1))
        if bias:
            new.bias.set_data(layer.bias.data(context).take(kept))
    old, new = net.head[0], found.head[0]
    weight = old.weight.data(context).reshape((0, net.channels[-1], _POSITIONS))
    new.weight.set_data(weight.take(rows[1], axis=1).reshape((0, -1)))
    if bias:
        new.bias.set_data(old.bias.data(context))
    if len(net.head) == 2:
        for name in ("weight", "bias")[: 1 + bias]:
            getattr(found.head[1], name).set_data(getattr(net.head[1], name).data(context))
    return found


class Prepare:
    """The transform: bytes to numbers from 0 to 1, channels first."""

    def __call__(self, image, label):
        """Return an image (1, 28, 28) float32 from 0 to 1, and its class.

        Args:
            image: (28, 28, 1) uint8.
            label: its class.
        """
        return image.astype("float32").transpose((2, 0, 1)) / 255, label

    def batched(self, images, labels):
        """Return images (samples, 1, 28, 28) float32 from 0 to 1, and their classes.

        Args:
            images: (samples, 28, 28, 1) uint8.
            labels: their classes, (samples,).
        """
        return images.astype("float32").transpose((0, 3, 1, 2)) / 255, labels


def fashion_mnist(
    root: str | None = None,
    limit: int | None = None,
    bias: bool = True,
    hidden: int = 512,
    channels=_CHANNELS,
    initial: str = "glorot",
    stand_in: bool = False,
) -> Recipe:
    """Return the recipe of the first guide: garments, and the network of its source.

    Args:
        root: folder of the data set; None takes the one that ``mxopt.data.locate`` finds.
        limit: maximum number of images in each split; None for all.
        bias: whether the layers have biases.
        hidden: units of the first dense layer; 0 leaves the layer out.
        channels: channels of both convolutions.
        initial: distribution of the initial weights of a layer with n inputs: ``glorot`` as in
            Gluon's examples, uniform between +-sqrt(6 / (n + outputs)), or ``fan_in`` as in
            PyTorch's layers, uniform between +-sqrt(1 / n). Biases are 0.
        stand_in: whether to take the drawn garments even if the real ones are available.

    Raises:
        PlanError: ``limit``, ``hidden``, ``channels`` or ``initial`` cannot be.
    """
    check_limit(limit)
    if hidden < 0:
        raise PlanError(f"hidden={hidden} must be a number of units, or 0 for no such layer")
    if len(channels) != 2 or not all(isinstance(n, int) and n > 0 for n in channels):
        raise PlanError(f"channels={channels} must be two numbers of channels, such as [32, 64]")

    if initial not in _INITIAL:
        raise PlanError(f"initial={initial!r} is not a choice; take one of {', '.join(_INITIAL)}")

    def data() -> Data:
        folder = root or (sources.stand_in("fashion-mnist").path if stand_in else None)
        splits = {name: FashionMNIST(name, folder) for name in ("train", "validation", "test")}
        found = splits["train"].location
        if limit:
            splits = {name: part.take(min(limit, len(part))) for name, part in splits.items()}
        return Data(**splits, transform=Prepare(), kind=found.kind, origin=found.origin)

    def network(contexts):
        net = GarmentNet(bias, hidden, channels)
        net.initialize(init.Xavier(**_INITIAL[initial]), ctx=contexts)
        return net

    return Recipe(
        name="fashion_mnist",
        data=data,
        network=network,
        loss=gluon.loss.SoftmaxCrossEntropyLoss(),
        metric=mx.metric.Accuracy,
    )
