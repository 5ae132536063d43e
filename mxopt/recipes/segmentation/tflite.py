"""Read the convolutions of a quantised TensorFlow Lite file as float32 arrays.

    >>> convolutions = read("deeplabv3_mnv2_pascal_quant.tflite")     # doctest: +SKIP
    >>> convolutions[0].weight.shape, convolutions[0].stride          # doctest: +SKIP
    ((32, 3, 3, 3), (2, 2))

The ``tflite`` package, generated from TensorFlow's schema, decodes the file without checking it.
This module adds the checks: a damaged file raises one ``DataError`` that names it, or gives wrong
numbers, but never causes a long wait or a large allocation. Whether the bytes are the published
ones is checked by SHA-256 (:func:`mxopt.data.verify`).
"""

from __future__ import annotations

import functools
import math
import struct
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tflite

from mxopt.core.errors import DataError

IDENTIFIER, SCHEMA_VERSION = b"TFL3", 3
# What the tflite package raises where an offset points outside the file.
_BAD_OFFSET_ERRORS = (
    struct.error,
    IndexError,
    TypeError,
    ValueError,
    OverflowError,
    AttributeError,
)
# A damaged length field may give a million operators or axes in a file of a few megabytes.
_MOST_OPERATORS, _MOST_AXES = 10_000, 8
_DTYPES = {tflite.TensorType.UINT8: "uint8", tflite.TensorType.INT32: "<i4"}
_OPTIONS = {
    tflite.BuiltinOperator.CONV_2D: tflite.Conv2DOptions,
    tflite.BuiltinOperator.DEPTHWISE_CONV_2D: tflite.DepthwiseConv2DOptions,
}


class Convolution(NamedTuple):
    """One convolution of the file.

    Attributes:
        weight: float32, shape (output, input, height, width), input 1 if it is depthwise.
        bias: float32, shape (output,).
        stride: (vertical, horizontal), in pixels.
        dilation: (vertical, horizontal), in pixels.
    """

    weight: np.ndarray
    bias: np.ndarray
    stride: tuple[int, int]
    dilation: tuple[int, int]


def read(path: str | Path) -> list[Convolution]:
    """Return the convolutions of a TensorFlow Lite file, in the order in which they are computed.

    Args:
        path: a file with one subgraph, its tensors quantised per tensor and not per channel.

    Raises:
        DataError: the file is missing, not TensorFlow Lite of schema version 3, cut off or
            damaged, or quantised per channel; the message names the file.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise DataError(
            f"The weights {path} cannot be read ({error.strerror}): give a readable .tflite file."
        ) from error
    try:
        return _convolutions(content)
    except DataError as error:
        reason = str(error)
    except _BAD_OFFSET_ERRORS as error:
        reason = f"an offset points outside the file ({error})"
    raise DataError(
        f"The weights {path} are not a usable TensorFlow Lite file: {reason}; fetch them again."
    )


def _convolutions(content: bytes) -> list[Convolution]:
    if content[4:8] != IDENTIFIER:
        raise DataError(f"bytes 4 to 7 are {content[4:8]!r}, not {IDENTIFIER!r}")
    model = tflite.Model.GetRootAs(content)
    if model.Version() != SCHEMA_VERSION:
        raise DataError(f"its schema has version {model.Version()}, not {SCHEMA_VERSION}")
    if model.SubgraphsLength() != 1:
        raise DataError(f"it has {model.SubgraphsLength()} subgraphs, not 1")
    graph = model.Subgraphs(0)
    if not 0 < graph.OperatorsLength() <= _MOST_OPERATORS:
        raise DataError(f"it has {graph.OperatorsLength()} operators, not 1 to {_MOST_OPERATORS:,}")

    @functools.cache  # a damaged file may refer to one tensor many times: read it once
    def values(index: int) -> np.ndarray:
        return _values(model, _item(graph, "Tensors", index))

    found = []
    for index in range(graph.OperatorsLength()):
        operator = graph.Operators(index)
        code = _item(model, "OperatorCodes", operator.OpcodeIndex())
        # The first field is one byte and became too small; later files use the second one.
        kind = max(code.DeprecatedBuiltinCode(), code.BuiltinCode())
        if kind not in _OPTIONS:
            continue
        if operator.InputsLength() != 3:
            raise DataError(f"convolution {len(found)} has no weight or no bias")
        weight, bias = (values(operator.Inputs(number)) for number in (1, 2))
        # From (output, height, width, input), and (1, height, width, channels) if depthwise.
        depthwise = kind == tflite.BuiltinOperator.DEPTHWISE_CONV_2D
        weight = weight.transpose((3, 0, 1, 2) if depthwise else (0, 3, 1, 2))
        options = options_of(operator, _OPTIONS[kind])
        stride = options.StrideH(), options.StrideW()
        dilation = options.DilationHFactor(), options.DilationWFactor()
        found.append(Convolution(weight, bias, stride, dilation))
    return found


def options_of(operator: tflite.Operator, kind: type):
    """Return an operator's options.

    Args:
        operator: an operator of a subgraph.
        kind: class of the options, such as ``tflite.Conv2DOptions``.
    """
    table, options = operator.BuiltinOptions(), kind()
    options.Init(table.Bytes, table.Pos)
    return options


def _values(model: tflite.Model, tensor: tflite.Tensor) -> np.ndarray:
    """Return a tensor's values, dequantised to float32."""
    name, quantised = tensor.Name().decode("utf-8", "replace"), tensor.Quantization()
    scales = quantised.ScaleLength() if quantised else 0
    zero_points = quantised.ZeroPointLength() if quantised else 0
    if not scales == zero_points == 1:
        raise DataError(
            f"tensor {name!r} has {scales} scales and {zero_points} zero points; only tensors with "
            "one of each can be read"
        )
    scale, zero_point = quantised.Scale(0), quantised.ZeroPoint(0)
    if not (math.isfinite(scale) and scale > 0):
        raise DataError(f"tensor {name!r} has the scale {scale}, not a positive number")
    if tensor.Type() not in _DTYPES:
        raise DataError(f"tensor {name!r} has values of type {tensor.Type()}, not uint8 or int32")
    stored = _item(model, "Buffers", tensor.Buffer())
    if stored.DataIsNone():
        raise DataError(f"tensor {name!r} has no values in the file")
    stored = stored.DataAsNumpy().view(_DTYPES[tensor.Type()])
    if tensor.ShapeLength() > _MOST_AXES:
        raise DataError(f"tensor {name!r} has {tensor.ShapeLength()} axes, more than {_MOST_AXES}")
    shape = tuple(tensor.Shape(axis) for axis in range(tensor.ShapeLength()))
    if min(shape, default=0) < 0 or math.prod(shape) != stored.size:
        raise DataError(f"tensor {name!r} has {stored.size} values and the shape {shape}")
    stored = stored.reshape(shape)
    # In float64, whose rounding errors are far below the precision of the float32 result.
    return ((stored.astype(np.float64) - zero_point) * scale).astype(np.float32)


def _item(owner, items: str, index: int):
    """Return item ``index`` of one of a table's lists, such as a model's ``Buffers``."""
    length = getattr(owner, f"{items}Length")()
    if not 0 <= index < length:
        raise DataError(f"item {index} of {items} is missing; there are {length}")
    return getattr(owner, items)(index)
