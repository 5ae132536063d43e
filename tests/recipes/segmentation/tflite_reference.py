"""Compute what a TensorFlow Lite file describes, operator by operator and in float32.

It shares no code with the network: shapes, order, strides, dilations and activations are the
file's, padding is TensorFlow's formula written out, arrays stay (samples, height, width, channels).
"""

from __future__ import annotations

import numpy as np
import tflite
from mxnet import nd
from tflite import ActivationFunctionType, BuiltinOperator

from mxopt.recipes.segmentation.tflite import options_of, read

ACTIVATE = {
    ActivationFunctionType.NONE: lambda x: x,
    ActivationFunctionType.RELU: lambda x: np.maximum(x, 0),
    ActivationFunctionType.RELU6: lambda x: np.clip(x, 0, 6),
}


def scores(path, image: np.ndarray) -> np.ndarray:
    """Return the arg-max's input (height, width, 21) for an image (height, width, 3), -1 to 1."""
    model, convolutions = tflite.Model.GetRootAs(path.read_bytes()), iter(read(path))
    graph, size = model.Subgraphs(0), image.shape[:2]
    known = {graph.Inputs(0): image[None]}
    for index in range(graph.OperatorsLength()):
        operator = graph.Operators(index)
        code = model.OperatorCodes(operator.OpcodeIndex()).DeprecatedBuiltinCode()
        output, first = operator.Outputs(0), known.get(operator.Inputs(0))
        if code == BuiltinOperator.ARG_MAX:
            return first[0]
        if code == BuiltinOperator.CONV_2D:
            options = options_of(operator, tflite.Conv2DOptions)
            result = convolve(next(convolutions), options.FusedActivationFunction(), first)
        elif code == BuiltinOperator.DEPTHWISE_CONV_2D:
            options = options_of(operator, tflite.DepthwiseConv2DOptions)
            activation = options.FusedActivationFunction()
            result = convolve(next(convolutions), activation, first, first.shape[3])
        elif code == BuiltinOperator.ADD:
            result = first + known[operator.Inputs(1)]
        elif code == BuiltinOperator.AVERAGE_POOL_2D:
            result = first.mean(axis=(1, 2), keepdims=True)
        elif code == BuiltinOperator.CONCATENATION:
            result = np.concatenate([known[i] for i in operator.InputsAsNumpy()], axis=3)
        elif code == BuiltinOperator.RESIZE_BILINEAR:
            # The file's own sizes are those for an image of 513 pixels.
            coarse = {33: [-(-side // 16) for side in size], 513: size}
            result = stretch(first, coarse[graph.Tensors(output).Shape(1)])
        else:
            assert code == BuiltinOperator.QUANTIZE
            result = first
        known[output] = result
    raise AssertionError("the file does not end in an arg-max")


def convolve(convolution, activation, x, groups=1):
    weight, bias, strides, dilation = convolution
    kernel = weight.shape[2:]
    pads = [(0, 0), (0, 0), (0, 0), (0, 0)]
    for axis in (0, 1):
        side, stride = x.shape[1 + axis], strides[axis]
        reach = (kernel[axis] - 1) * dilation[axis] + 1
        # https://www.tensorflow.org/api_docs/python/tf/nn#notes_on_padding_2
        total = max((-(-side // stride) - 1) * stride + reach - side, 0)
        pads[1 + axis] = (total // 2, total - total // 2)
    x = np.pad(x, pads).transpose(0, 3, 1, 2)
    result = nd.Convolution(
        nd.array(x), nd.array(weight), nd.array(bias), kernel=kernel, stride=strides,
        dilate=dilation, num_filter=len(bias), num_group=groups,
    )  # fmt: skip
    return ACTIVATE[activation](result.asnumpy().transpose(0, 2, 3, 1))


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
