"""Compute what a TensorFlow Lite file describes, operator by operator and in float32.

It shares no code with the network: shapes, order, strides, dilations and activations are the
file's, padding is TensorFlow's formula written out, arrays stay (samples, height, width, channels).
"""

from __future__ import annotations

import numpy as np
from mxnet import nd

ACTIVATE = {
    "none": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
}


def scores(operators, image: np.ndarray) -> np.ndarray:
    """Return the arg-max's input (height, width, 21) for an image (height, width, 3), -1 to 1."""
    size = image.shape[:2]
    known = {id(operators[0].inputs[0]): image[None]}
    for operator in operators:
        first = known.get(id(operator.inputs[0]))
        if operator.name == "ARG_MAX":
            return first[0]
        if operator.name.endswith("CONV_2D"):
            result = convolve(operator, first)
        elif operator.name == "ADD":
            result = first + known[id(operator.inputs[1])]
        elif operator.name == "AVERAGE_POOL_2D":
            result = first.mean(axis=(1, 2), keepdims=True)
        elif operator.name == "CONCATENATION":
            result = np.concatenate([known[id(tensor)] for tensor in operator.inputs], axis=3)
        elif operator.name == "RESIZE_BILINEAR":
            # The file's own sizes are those for an image of 513 pixels.
            coarse = {33: [-(-side // 16) for side in size], 513: size}
            result = stretch(first, coarse[operator.outputs[0].shape[1]])
        else:
            assert operator.name == "QUANTIZE"
            result = first
        known[id(operator.outputs[0])] = result
    raise AssertionError("the file does not end in an arg-max")


def convolve(operator, x):
    weight, bias = (tensor.values() for tensor in operator.inputs[1:])
    options = operator.options
    kernel = weight.shape[1:3]
    pads = [(0, 0), (0, 0), (0, 0), (0, 0)]
    for axis in (0, 1):
        side, stride = x.shape[1 + axis], options["stride"][axis]
        reach = (kernel[axis] - 1) * options["dilation"][axis] + 1
        # https://www.tensorflow.org/api_docs/python/tf/nn#notes_on_padding_2
        total = max((-(-side // stride) - 1) * stride + reach - side, 0)
        pads[1 + axis] = (total // 2, total - total // 2)
    x = np.pad(x, pads).transpose(0, 3, 1, 2)
    depthwise = operator.name == "DEPTHWISE_CONV_2D"
    weight = weight.transpose((3, 0, 1, 2) if depthwise else (0, 3, 1, 2))
    result = nd.Convolution(
        nd.array(x), nd.array(weight), nd.array(bias), kernel=kernel, stride=options["stride"],
        dilate=options["dilation"], num_filter=len(bias), num_group=len(bias) if depthwise else 1,
    )  # fmt: skip
    return ACTIVATE[options["activation"]](result.asnumpy().transpose(0, 2, 3, 1))


def stretch(x, size):
    """Interpolate linearly from border to border (align_corners), one axis after the other."""
    for axis, side in zip((1, 2), size):
        old = x.shape[axis]
        position = np.linspace(0, old - 1, side)
        low = np.minimum(position.astype(int), max(old - 2, 0))
        high = np.minimum(low + 1, old - 1)
        share = (position - low).reshape([-1 if a == axis else 1 for a in range(4)])
        x = np.take(x, low, axis) * (1 - share) + np.take(x, high, axis) * share
    return x
