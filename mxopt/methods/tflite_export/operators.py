"""Conversion of MXNet's operators to those of TensorFlow Lite, one after the other.

MXNet's images are (samples, channels, height, width), TensorFlow Lite's (samples, height, width,
channels). What its operators mean is in ``tensorflow/lite/kernels``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mxopt.core.errors import PlanError
from mxopt.methods.graph_rewrites.graph import value
from mxopt.methods.tflite_export.file import File

_ACTIVATIONS = {"relu": "RELU", "sigmoid": "LOGISTIC", "tanh": "TANH"}
# Operators that do nothing when a network predicts.
_SAME = {"Dropout", "identity", "_copy", "BlockGrad"}
_VALID, _NO_ACTIVATION = 1, 0


class Value(NamedTuple):
    """A computed tensor.

    Attributes:
        number: its number in the file.
        shape: its shape in MXNet, with -1 samples.
    """

    number: int
    shape: tuple


class Conversion:
    """The file that is made of a graph, node after node.

    Args:
        network: name of the network, for error messages.
        parameters: its weights, by name.

    Attributes:
        file: the file.
        known: the graph's inputs, by name.
    """

    def __init__(self, network: str, parameters: dict[str, np.ndarray]):
        self.file, self._network, self._parameters = File(), network, parameters
        self.known: dict[str, Value] = {}

    def input(self, name: str, shape: tuple) -> Value:
        """Return the graph's input.

        Args:
            name: its name in the graph.
            shape: shape of an example, as MXNet has it.
        """
        self.known[name] = self._made(name, (-1, *shape[1:]))
        return self.known[name]

    def convert(self, node: dict, inputs: list):
        """Return what a node computes: a :class:`Value`, or the array of a parameter.

        Args:
            node: a node of MXNet's JSON.
            inputs: what the nodes that it reads compute.

        Raises:
            PlanError: its operator, or a setting of it, has no counterpart.
        """
        name, op = node["name"], node["op"]
        if op == "null":
            return self.known[name] if name in self.known else self._parameters[name]
        own = {key: value(text) for key, text in node.get("attrs", {}).items()}
        if op in _SAME:
            return inputs[0]
        if op not in _CONVERTERS:
            raise self._refused(name, f"has no counterpart for the operator {op}")
        return _CONVERTERS[op](self, name, own, *inputs)

    def _refused(self, name: str, why: str) -> PlanError:
        return PlanError(f"{self._network} cannot be exported to TensorFlow Lite: {name} {why}")

    def _made(self, name: str, shape: tuple) -> Value:
        """Return a new tensor for a result of this shape in MXNet."""
        theirs = (shape[0], *shape[2:], shape[1]) if len(shape) == 4 else shape
        return Value(self.file.tensor(name, theirs), shape)

    def _apply(self, kind, name, shape, inputs, options="", **fields) -> Value:
        """Add an operator with one result; arrays among its inputs become constants."""
        numbers = [
            one.number if isinstance(one, Value) else self.file.constant(f"{name}_{n}", one)
            for n, one in enumerate(inputs)
        ]
        made = self._made(name, shape)
        self.file.operator(kind, numbers, made.number, options, **fields)
        return made

    def _convolution(self, name, own, x, weight, bias=None) -> Value:
        count, channels = x.shape[:2]
        outputs, per_group, *kernel = weight.shape
        groups, dilation = own.get("num_group", 1), own.get("dilate") or (1, 1)
        stride, pad = own.get("stride") or (1, 1), own.get("pad") or (0, 0)
        if len(kernel) != 2 or groups not in (1, channels):
            raise self._refused(name, f"has {groups} groups of {per_group} channels")
        x = self._padded(name, x, pad)
        bias = np.zeros(outputs, "float32") if bias is None else bias
        sides = [
            (length - d * (k - 1) - 1) // s + 1
            for length, k, s, d in zip(x.shape[2:], kernel, stride, dilation)
        ]
        fields = {
            "Padding": _VALID, "StrideH": stride[0], "StrideW": stride[1],
            "DilationHFactor": dilation[0], "DilationWFactor": dilation[1],
            "FusedActivationFunction": _NO_ACTIVATION,
        }  # fmt: skip
        shape = (count, outputs, *sides)
        if groups == 1:
            filters = weight.transpose((0, 2, 3, 1))
            return self._apply("CONV_2D", name, shape, [x, filters, bias], "Conv2DOptions",
                               **fields)  # fmt: skip
        filters = weight.transpose((1, 2, 3, 0))
        return self._apply("DEPTHWISE_CONV_2D", name, shape, [x, filters, bias],
                           "DepthwiseConv2DOptions", DepthMultiplier=outputs // channels,
                           **fields)  # fmt: skip

    def _padded(self, name, x: Value, pad) -> Value:
        """Return the images with zeros around them."""
        if not any(pad):
            return x
        count, channels, height, width = x.shape
        around = np.array([(0, 0), (pad[0],) * 2, (pad[1],) * 2, (0, 0)], "int32")
        shape = (count, channels, height + 2 * pad[0], width + 2 * pad[1])
        return self._apply("PAD", f"{name}_padded", shape, [x, around], "PadOptions")

    def _fully_connected(self, name, own, x, weight, bias=None) -> Value:
        if len(x.shape) > 2:
            if not own.get("flatten", True):
                raise self._refused(name, "computes along the last axis (flatten=False)")
            x = self._flatten(f"{name}_flat", {}, x)
        bias = np.zeros(len(weight), "float32") if bias is None else bias
        return self._apply("FULLY_CONNECTED", name, (x.shape[0], len(weight)), [x, weight, bias],
                           "FullyConnectedOptions", KeepNumDims=False)  # fmt: skip

    def _flatten(self, name, own, x) -> Value:
        size = int(np.prod(x.shape[1:]))
        if len(x.shape) == 4 and x.shape[2:] != (1, 1):
            count, *rest = x.shape
            number = self.file.tensor(f"{name}_channels_first", (count, *rest))
            order = self.file.constant(f"{name}_order", np.array([0, 3, 1, 2], "int32"))
            self.file.operator("TRANSPOSE", [x.number, order], number, "TransposeOptions")
            x = Value(number, x.shape)
        shape = np.array([-1, size], "int32")
        return self._apply("RESHAPE", name, (x.shape[0], size), [x, shape])

    def _pooling(self, name, own, x) -> Value:
        kind, (count, channels, *sides) = own.get("pool_type", "max"), x.shape
        if kind not in ("max", "avg"):
            raise self._refused(name, f"pools by {kind!r}")
        if own.get("global_pool", False):
            axes = np.array([1, 2], "int32")
            reduced = "MEAN" if kind == "avg" else "REDUCE_MAX"
            return self._apply(reduced, name, (count, channels, 1, 1), [x, axes],
                               "ReducerOptions", KeepDims=True)  # fmt: skip
        kernel, stride = own["kernel"], own.get("stride") or (1, 1)
        left = [(length - k) % s for length, k, s in zip(sides, kernel, stride)]
        if any(own.get("pad") or ()):
            raise self._refused(name, f"pads with pad={own['pad']}")
        if own.get("pooling_convention", "valid") != "valid" and any(left):
            raise self._refused(name, "has windows over the border (ceil_mode)")
        shape = (count, channels, *((n - k) // s + 1 for n, k, s in zip(sides, kernel, stride)))
        return self._apply(
            "MAX_POOL_2D" if kind == "max" else "AVERAGE_POOL_2D", name, shape, [x],
            "Pool2DOptions", Padding=_VALID, StrideH=stride[0], StrideW=stride[1],
            FilterHeight=kernel[0], FilterWidth=kernel[1],
            FusedActivationFunction=_NO_ACTIVATION,
        )  # fmt: skip

    def _activation(self, name, own, x) -> Value:
        if own["act_type"] not in _ACTIVATIONS:
            raise self._refused(name, f"has the activation {own['act_type']!r}")
        return self._apply(_ACTIVATIONS[own["act_type"]], name, x.shape, [x])

    def _relu(self, name, own, x) -> Value:
        return self._apply("RELU", name, x.shape, [x])

    def _clip(self, name, own, x) -> Value:
        if (own["a_min"], own["a_max"]) != (0, 6):
            raise self._refused(name, f"clips to [{own['a_min']}, {own['a_max']}], not to [0, 6]")
        return self._apply("RELU6", name, x.shape, [x])

    def _softmax(self, name, own, x) -> Value:
        if len(x.shape) != 2 or own.get("temperature") not in (None, 1, 1.0):
            raise self._refused(name, "is a softmax along another axis, or with a temperature")
        return self._apply("SOFTMAX", name, x.shape, [x], "SoftmaxOptions", Beta=1.0)

    def _sum(self, name, own, left, right) -> Value:
        if not (isinstance(left, Value) and isinstance(right, Value) and left.shape == right.shape):
            raise self._refused(name, "adds arrays of two shapes")
        return self._apply("ADD", name, left.shape, [left, right], "AddOptions")

    def _concat(self, name, own, *parts) -> Value:
        axis, shape = own.get("dim", 1), list(parts[0].shape)
        if axis != 1:
            raise self._refused(name, f"joins arrays along axis {axis}")
        shape[1] = sum(part.shape[1] for part in parts)
        return self._apply("CONCATENATION", name, tuple(shape), parts, "ConcatenationOptions",
                           Axis=len(shape) - 1)  # fmt: skip

    def _image_normalize(self, name, own, x) -> Value:
        mean, deviation = (
            np.broadcast_to(np.atleast_1d(np.array(own.get(key, default), "float32")),
                            (x.shape[1],)).reshape((1, 1, 1, -1))
            for key, default in (("mean", 0.0), ("std", 1.0))
        )  # fmt: skip
        centred = self._apply("SUB", f"{name}_centred", x.shape, [x, mean])
        return self._apply("DIV", name, x.shape, [centred, deviation])


_CONVERTERS = {
    "Activation": Conversion._activation,
    "Concat": Conversion._concat,
    "Convolution": Conversion._convolution,
    "Flatten": Conversion._flatten,
    "FullyConnected": Conversion._fully_connected,
    "Pooling": Conversion._pooling,
    "_image_normalize": Conversion._image_normalize,
    "clip": Conversion._clip,
    "relu": Conversion._relu,
    "softmax": Conversion._softmax,
    **dict.fromkeys(("elemwise_add", "_plus", "_Plus", "broadcast_add"), Conversion._sum),
}
