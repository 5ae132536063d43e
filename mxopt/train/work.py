"""The work of a training step: arithmetic and memory traffic, counted in the network's graph.

Counted are multiplications and additions of convolutions and matrix products, two operations for
each pair, and the bytes that every operator reads and writes if each array is read and written
once. The backward pass of a product has two products of the same size, one for each gradient, so a
step has three times the work of a forward pass (Kaplan et al., "Scaling Laws for Neural Language
Models", 2020, section 2.1).
"""

from __future__ import annotations

import ast
import json
import math
from dataclasses import dataclass

import mxnet as mx

# A step's work as a multiple of the forward pass's.
STEP = 3
# Operators that only give their input another shape.
_VIEWS = ("Reshape", "reshape", "expand_dims", "squeeze", "Flatten", "BlockGrad", "_copy")


@dataclass(frozen=True)
class Node:
    """One operator of a graph.

    Attributes:
        name: of the operator, such as ``Convolution``.
        attributes: its attributes, as text.
        inputs: shapes of its inputs.
        outputs: shapes of its outputs.
    """

    name: str
    attributes: tuple[tuple[str, str], ...]
    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]

    @property
    def operations(self) -> int:
        """Multiplications and additions of the forward pass; 0 if it is neither product nor sum."""
        options, size = dict(self.attributes), math.prod(self.outputs[0])
        if self.name == "Convolution":
            return 2 * size * math.prod(self.inputs[1][1:])  # (out, in / groups, height, width)
        if self.name == "Deconvolution":
            return 2 * math.prod(self.inputs[0]) * math.prod(self.inputs[1][1:])
        if self.name == "FullyConnected":
            return 2 * size * self.inputs[1][1]
        if self.name in ("dot", "batch_dot"):
            turned = ast.literal_eval(options.get("transpose_a", "False"))
            return 2 * size * self.inputs[0][-2 if turned else -1]
        return 0

    @property
    def bytes(self) -> int:
        """Bytes that the forward pass reads and writes, in float32."""
        if self.name in _VIEWS:
            return 0
        return 4 * sum(map(math.prod, (*self.inputs, self.outputs[0])))


def nodes(graph: mx.sym.Symbol, shapes: dict[str, tuple]) -> list[Node]:
    """Return the operators of a graph, in the order in which they are computed.

    Args:
        graph: the outputs of a network, or of its loss.
        shapes: shapes of the graph's inputs.
    """
    internals = graph.get_internals()
    _, found, _ = internals.infer_shape(**shapes)
    text = json.loads(internals.tojson(remove_amp_cast=False))
    shape_of = {tuple(head[:2]): shape for head, shape in zip(text["heads"], found)}
    return [
        Node(
            node["op"],
            tuple(sorted(node.get("attrs", {}).items())),
            tuple(shape_of[source, output] for source, output, *_ in node["inputs"]),
            tuple(shape for (source, _), shape in shape_of.items() if source == number),
        )
        for number, node in enumerate(text["nodes"])
        if node["op"] != "null"
    ]


def seconds(operators: list[Node], operations_per_second: float, bytes_per_second: float) -> float:
    """Return how long a step takes at least: every operator at one of the two limits.

    Williams et al., "Roofline: An Insightful Visual Performance Model", 2009.

    Args:
        operators: of the forward pass.
        operations_per_second: peak of the device.
        bytes_per_second: bandwidth of the device's memory.
    """
    return STEP * sum(
        max(node.operations / operations_per_second, node.bytes / bytes_per_second)
        for node in operators
    )


def exchange_seconds(weights: int, devices: int, bytes_per_second: float) -> float:
    """Return how long it takes at least to sum the gradients of several devices.

    Each device sends and receives 2 (n - 1) / n times its gradients (Patarasuk and Yuan,
    "Bandwidth Optimal All-reduce Algorithms for Clusters of Workstations", 2009).

    Args:
        weights: bytes of the gradients.
        devices: number of devices n.
        bytes_per_second: what one device sends to another.
    """
    return 2 * (devices - 1) / devices * weights / bytes_per_second
