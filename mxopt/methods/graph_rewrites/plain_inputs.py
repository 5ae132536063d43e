"""Inputs of kernels in MXNet's plain layout, converted once and not by every reader."""

from __future__ import annotations

from mxopt.methods.graph_rewrites.graph import KERNEL, SUMS, Graph, Node, Output

# Operators whose outputs are in a layout of oneDNN if one of their inputs is.
_KEEPING = ("Activation", "BatchNorm", "Concat", "Pooling", *SUMS)


def plain_inputs(graph: Graph, node: Node):
    """Convert what a kernel reads from oneDNN's operators before it is read.

    MXNet converts it for each operator of a library that reads it, forward and backward, and a
    static graph keeps all these copies. Its ``Reshape`` writes plain arrays, and its input is not
    needed in the backward pass.

    Args:
        graph: graph that new nodes are added to.
        node: node to rewrite.

    Returns:
        The new output, the kind of the change and its description; None to keep the node.
    """
    if not node.op.startswith(KERNEL):
        return None
    places = [place for place, link in enumerate(node.inputs) if _is_blocked(graph, link)]
    if not places:
        return None
    links = list(node.inputs)
    for place in places:
        links[place] = graph.once("Reshape", links[place], shape=(0, 0, 0, 0))
    made, _ = graph.add(node.op, node.name, *links, **node.attributes)
    for number, which in node.traced.readers:
        if number == node.number:
            graph.changed[number, which] = made, which
    return (made, 0), "kernels that read arrays converted once", node.op


def _is_blocked(graph: Graph, output: Output) -> bool:
    """Return whether an operator of oneDNN computes an output, in a layout of its own."""
    node = graph.nodes[output[0]]
    keeping = node["op"] in _KEEPING
    return node["op"] == "Convolution" or (
        keeping and any(_is_blocked(graph, tuple(link[:2])) for link in node["inputs"])
    )
