"""Operations and bytes of each operator of a network, counted from the shapes of its graph."""

from __future__ import annotations

import json
from typing import NamedTuple

from mxnet import gluon, nd

from mxopt.methods.graph_rewrites.graph import output_shapes, trace, value

_FLOAT32 = 4  # bytes
# Each number of the output is a sum over one slice of the weight.
_BY_WEIGHT = ("Convolution", "FullyConnected", "mxopt_dense", "mxopt_pointwise")


class Operator(NamedTuple):
    """What a node of the graph computes.

    Attributes:
        name: name of the node.
        kind: name of MXNet's operator.
        multiply_adds: multiplications that are followed by an addition, as many as the operator
            computes: kernels may leave out some of the layer's. 0 for what has none, such as an
            activation.
        bytes: of all inputs, parameters and the output, in float32, each read or written once.
    """

    name: str
    kind: str
    multiply_adds: int
    bytes: int


def operators(net: gluon.HybridBlock, *example: nd.NDArray) -> list[Operator]:
    """Return the operators of a network's forward pass, in order.

    Args:
        net: an initialised network of hybrid blocks.
        *example: inputs with the shapes to count for.

    Raises:
        PlanError: the network cannot be traced.
    """
    net(*example)
    symbol, _, shapes = trace(net, *example)
    known = {name: own[0] for name, own in output_shapes(symbol, shapes).items()}
    nodes = json.loads(symbol.tojson())["nodes"]
    found = []
    for node in nodes:
        if node["op"] == "null" or known.get(node["name"]) is None:
            continue
        inputs = [known.get(nodes[link[0]]["name"]) for link in node["inputs"]]
        output = known[node["name"]]
        own = {key: value(text) for key, text in node.get("attrs", {}).items()}
        sizes = [_size(shape) for shape in (*inputs, output) if shape is not None]
        count = _multiply_adds(node["op"], own, inputs, output)
        found.append(Operator(node["name"], node["op"], count, _FLOAT32 * sum(sizes)))
    return found


def multiply_adds(net: gluon.HybridBlock, *example: nd.NDArray) -> int:
    """Return the multiply-adds of a network's forward pass.

    Args:
        net: an initialised network of hybrid blocks.
        *example: inputs with the shapes to count for.
    """
    return sum(operator.multiply_adds for operator in operators(net, *example))


def _multiply_adds(kind: str, own: dict, inputs: list, output: tuple) -> int:
    """Return the number of one operator; a matrix product has one for each term of a sum."""
    if kind in _BY_WEIGHT:
        return _size(output) * _size(inputs[1][1:])
    if kind == "Deconvolution":
        return _size(inputs[0]) * _size(inputs[1][1:])
    if kind == "dot":
        return _size(output) * inputs[0][0 if own.get("transpose_a") else -1]
    if kind == "batch_dot":
        return _size(output) * inputs[0][-2 if own.get("transpose_a") else -1]
    if kind == "mxopt_attention":  # scores, and their product with the values
        memory, lengths = (inputs[0], inputs[1]) if own.get("own") else inputs[1:3]
        # All keys of a sample; their mean where samples are in one row, without padding.
        return 2 * _size(output) * memory[0] * memory[1] // lengths[0]
    if kind == "mxopt_inverted_residual":
        *first, depthwise, _, projection, _ = inputs[1:]
        expanded = _size(inputs[0]) * first[0][0] if first else 0
        pixels = output[0] * _size(output[2:])
        return expanded + pixels * (_size(depthwise) + _size(projection))
    if kind == "mxopt_cross_entropy":
        _, weight, labels, *_ = inputs
        return _size(labels) * _size(weight)
    if kind == "mxopt_pooled_convolution":
        samples, _, *sides = inputs[0]
        return samples * _size(sides) * _size(inputs[1])
    if kind == "mxopt_winograd":  # 36 products for 4 x 4 outputs, instead of 144
        samples, _, *sides = inputs[0]
        windows = [_windows(side, own.get("dilation", 1)) for side in sides]
        return samples * _size(windows) * 36 * _size(inputs[1][:2])
    if kind == "mxopt_seen_taps":
        samples, _, *sides = inputs[0]
        dilations = map(int, str(own["dilations"]).split())
        return samples * sum(
            _size(weight[:2]) * _size([_seen(side, weight[2], dilation) for side in sides])
            for weight, dilation in zip(inputs[1:], dilations)
        )
    return 0


def _windows(side: int, dilation: int) -> int:
    """Return how many windows of four outputs, ``dilation`` apart, an axis is divided into."""
    return min(dilation, side) * -(-side // (4 * dilation))


def _seen(side: int, taps: int, dilation: int) -> int:
    """Return how often a tap sees a pixel and not padding, along one axis."""
    return sum(max(0, side - dilation * abs(tap - taps // 2)) for tap in range(taps))


def _size(shape: tuple) -> int:
    size = 1
    for length in shape:
        size *= length
    return size
