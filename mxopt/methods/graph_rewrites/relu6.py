"""Bounded ReLUs, such as ReLU6, computed in oneDNN's memory layout."""

from __future__ import annotations

from mxopt.methods.graph_rewrites.graph import Graph, Node

# Channels in a block of oneDNN's layout; colour images, with fewer, have a special kernel.
BLOCK, COLOURS = 16, 3


def bounded_relu(graph: Graph, node: Node):
    """Compute ``clip(convolution, 0, b)``, such as ReLU6, in oneDNN's layout.

    MXNet 1.9 has ``clip`` for the plain layout only: each one costs two conversions, and two more
    in the backward pass. But min(max(x, 0), b) equals max(b - max(b - x, 0), 0). The inner
    difference is computed by the convolution, with negated weights; the outer one by a depthwise
    convolution with the weight -1; and max(x, 0) is ReLU.

    Args:
        graph: graph that new nodes are added to.
        node: node to rewrite.

    Returns:
        The new output, the kind of the change and its description; None to keep the node.
    """
    own = node.attributes
    if node.op != "clip" or own.get("a_min") != 0 or len(node.traced.readers[node.sources[0]]) > 1:
        return None
    source, shape = graph.nodes[node.inputs[0][0]], graph.shapes.get(node.inputs[0])
    if source["op"] != "Convolution" or len(source["inputs"]) != 3 or not shape or len(shape) != 4:
        return None
    bound, channels = own["a_max"], shape[1]
    data, weight, bias = (tuple(link[:2]) for link in source["inputs"])
    # Next to a convolution with other numbers of channels oneDNN 2.4 uses another layout, and both
    # ReLUs would need conversions. Colour images are an exception.
    inputs = graph.shapes.get(data, (0, 1))[1]
    readers = [reader for reader, _ in node.traced.readers[node.number, 0]]
    outputs = [int(n["attrs"]["num_filter"]) for n in readers if n["op"] == "Convolution"]
    if any(n % BLOCK for n in (channels, inputs, *outputs) if n != COLOURS):
        return None
    negated = graph.add("negative", f"{node.name}_weight", weight)
    rest = graph.add("_rminus_scalar", f"{node.name}_bias", bias, scalar=bound)
    below = graph.add("Convolution", f"{node.name}_below", data, negated, rest, **source["attrs"])
    below = graph.add("Activation", f"{node.name}_inner", below, act_type="relu")
    minus, bounds = graph.full((channels, 1, 1, 1), -1), graph.full((channels,), bound)
    found = graph.add("Convolution", f"{node.name}_above", below, minus, bounds, kernel=(1, 1),
                      num_filter=channels, num_group=channels)  # fmt: skip
    found = graph.add("Activation", f"{node.name}_outer", found, act_type="relu")
    return found, "bounded ReLUs kept in the convolutions' layout", f"0 to {bound:g}"
