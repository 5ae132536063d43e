"""DeepLabv3 on MobileNetV2 with its weights from Pascal VOC, and new heads for other classes.

    >>> net = load(mx.cpu())                                  # doctest: +SKIP
    >>> net(nd.zeros((4, 3, 240, 240))).shape                 # doctest: +SKIP
    (4, 2, 240, 240)

The weights are those of a quantised TensorFlow Lite file, turned back into float32, with batch
normalisation folded into them.
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

# Pascal VOC's classes begin with the background; people are number 15.
VOC_BACKGROUND, VOC_PERSON = 0, 15
_SOURCE, _FILE = "deeplab-mobilenetv2", "deeplabv3_mnv2_pascal_quant.tflite"


def load(
    contexts,
    classes: int = 2,
    weights: str | Path | None = None,
    reset_head: bool = False,
    **options,
):
    """Return the network with weights from Pascal VOC on the contexts, ready to be trained.

    Args:
        contexts: one context or a list of them.
        classes: 21 keeps the original's scores, 2 makes them background and person (see
            :func:`person_head`), another number starts the last layer anew, at random.
        weights: a .tflite file; ``None`` takes the published one, from where
            ``mxopt.data.locate`` finds it, and checks its SHA-256.
        reset_head: whether to start the last layer anew even if the weights have scores for these
            classes, as is usual in fine-tuning (the chapter does).
        options: the others of :class:`MobileNetDeepLab`.

    Raises:
        DataError: the weights are not to be had, damaged, or of another network.
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
        raise DataError(f"The weights {weights} are not this network's: {error}.") from None
    if classes == 2 and not reset_head:
        person_head(net)
    elif reset_head or classes != VOC_CLASSES:
        new_head(net, classes)
    return net


def copy_weights(net: MobileNetDeepLab, convolutions: list[Convolution]) -> None:
    """Copy the weights of a file's convolutions into a network of 21 classes.

    Args:
        net: the network, initialized.
        convolutions: in the order of ``net.convolutions()``.

    Raises:
        DataError: the convolutions differ in number, shape, stride or dilation.
    """
    layers = net.convolutions()
    if len(convolutions) != len(layers):
        raise DataError(f"it has {len(layers)} convolutions and the file has {len(convolutions)}")
    for number, ((layer, dilation), found) in enumerate(zip(layers, convolutions)):
        weight, bias = found.weight, found.bias
        mine = layer.weight.shape, layer._kwargs["stride"], (dilation, dilation)
        theirs = weight.shape, found.stride, found.dilation
        if mine != theirs or bias.shape != layer.bias.shape:
            raise DataError(
                f"convolution {number} has shape, stride and dilation {mine} and a bias of "
                f"{layer.bias.shape}, in the file they are {theirs} and {bias.shape}"
            )
        if net.mirrored:
            weight = weight[:, :, ::-1, ::-1]
        layer.weight.set_data(nd.array(np.ascontiguousarray(weight)))
        layer.bias.set_data(nd.array(bias))


def person_head(net: MobileNetDeepLab) -> None:
    """Reduce the scores from Pascal VOC's 21 classes to two, background and person.

    The two rows of the last layer stay as they are, and 19 are dropped, so that the network finds
    people before any fine-tuning. Exact would be the logarithm of a sum of exponentials over all
    classes but one as the background, which a layer cannot hold; where people are in a picture,
    their rivals are rarely the other 19.
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
    """Replace the last layer by one with random weights (Xavier) for other classes."""
    head = net.head
    contexts = head.scores.weight.list_ctx()
    with head.name_scope():
        head.scores = nn.Conv2D(classes, 1, in_channels=head.scores.weight.shape[1])
    head.scores.initialize(mx.init.Xavier(), ctx=contexts)
    net.head = head  # set anew, it makes a hybridised network forget its graph of the old layer
