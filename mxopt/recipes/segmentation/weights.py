"""Load DeepLabv3 on MobileNetV2 with weights from Pascal VOC, and give it heads for other classes.

    >>> net = load(mx.cpu())                                  # doctest: +SKIP
    >>> net(nd.zeros((4, 3, 240, 240))).shape                 # doctest: +SKIP
    (4, 2, 240, 240)

The weights come from a quantised TensorFlow Lite file and are converted back to float32. Batch
normalisation is folded into them.
"""

from __future__ import annotations

from pathlib import Path

import mxnet as mx
import numpy as np
from mxnet import nd
from mxnet.gluon import nn

from mxopt.core.errors import DataError
from mxopt.data import locate, verify
from mxopt.recipes.segmentation.mobilenet_deeplab import VOC_CLASSES, MobileNetDeepLab
from mxopt.recipes.segmentation.tflite import Convolution, read

# Pascal VOC's class 0 is the background, class 15 a person.
VOC_BACKGROUND, VOC_PERSON = 0, 15
_SOURCE, _FILE = "deeplab-mobilenetv2", "deeplabv3_mnv2_pascal_quant.tflite"


def load(
    contexts,
    classes: int = 2,
    weights: str | Path | None = None,
    reset_head: bool = False,
    **options,
):
    """Return the network with weights from Pascal VOC on the contexts, ready for training.

    Args:
        contexts: one context or a list of them.
        classes: number of classes. 21 keeps the original last layer, 2 reduces it to background and
            person (see :func:`person_head`), any other number replaces it by one with random
            weights.
        weights: a .tflite file; ``None`` takes the published one as found by
            ``mxopt.data.locate`` and checks its SHA-256.
        reset_head: whether to replace the last layer by one with random weights even for 2 or 21
            classes, as is usual in fine-tuning (the chapter does).
        options: the other arguments of :class:`MobileNetDeepLab`.

    Raises:
        DataError: the weights are unavailable, damaged, or those of another network.
        PlanError: as for :class:`MobileNetDeepLab`.
    """
    net = MobileNetDeepLab(**options)
    if weights is None:
        weights = locate(_SOURCE).path / _FILE
        verify(_SOURCE)
    convolutions = read(weights)
    net.initialize(ctx=contexts)
    try:
        copy_weights(net, convolutions)
    except DataError as error:
        raise DataError(
            f"The weights {weights} do not fit this network: {error}. Use the file that "
            f"`mxopt fetch {_SOURCE}` downloads."
        ) from None
    if classes == 2 and not reset_head:
        person_head(net)
    elif reset_head or classes != VOC_CLASSES:
        new_head(net, classes)
    return net


def copy_weights(net: MobileNetDeepLab, convolutions: list[Convolution]) -> None:
    """Copy the weights of a file's convolutions into a network of 21 classes.

    Args:
        net: the initialised network.
        convolutions: the file's convolutions, in the order of ``net.convolutions()``.

    Raises:
        DataError: the convolutions differ in number, shape, stride or dilation.
    """
    layers = net.convolutions()
    if len(convolutions) != len(layers):
        raise DataError(
            f"the network has {len(layers)} convolutions and the file has {len(convolutions)}"
        )
    for number, ((layer, dilation), found) in enumerate(zip(layers, convolutions)):
        weight, bias = found.weight, found.bias
        mine = layer.weight.shape, layer._kwargs["stride"], (dilation, dilation)
        theirs = weight.shape, found.stride, found.dilation
        if mine != theirs or bias.shape != layer.bias.shape:
            raise DataError(
                f"convolution {number} has shape, stride and dilation {mine} and a bias of shape "
                f"{layer.bias.shape}; in the file they are {theirs} and {bias.shape}"
            )
        if net.mirrored:
            weight = weight[:, :, ::-1, ::-1]
        layer.weight.set_data(nd.array(np.ascontiguousarray(weight)))
        layer.bias.set_data(nd.array(bias))


def person_head(net: MobileNetDeepLab) -> None:
    """Reduce the scores from Pascal VOC's 21 classes to two, background and person.

    The last layer keeps these two rows and drops the other 19, so the network finds people without
    fine-tuning. The exact background score would be the logarithm of the sum of exponentials of all
    scores but the person's, which a linear layer cannot compute. The difference is small, because
    pixels of people rarely score high in the 19 other classes.

    Args:
        net: the network, initialised, with 21 classes.
    """
    rows = [VOC_BACKGROUND, VOC_PERSON]
    context = net.head.scores.weight.list_ctx()[0]
    weight, bias = (
        p.data(context).asnumpy()[rows] for p in (net.head.scores.weight, net.head.scores.bias)
    )
    new_head(net, len(rows))
    net.head.scores.weight.set_data(nd.array(weight))
    net.head.scores.bias.set_data(nd.array(bias))


def new_head(net: MobileNetDeepLab, classes: int) -> None:
    """Replace the last layer by one with random weights (Xavier).

    Args:
        net: the network, initialised.
        classes: number of classes of the new layer.
    """
    head = net.head
    contexts = head.scores.weight.list_ctx()
    with head.name_scope():
        head.scores = nn.Conv2D(classes, 1, in_channels=head.scores.weight.shape[1])
    head.scores.initialize(mx.init.Xavier(), ctx=contexts)
    net.head = head  # the assignment clears a hybridised network's cached graph of the old layer
