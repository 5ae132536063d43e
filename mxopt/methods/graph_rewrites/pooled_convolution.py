"""A convolution, ReLU and the maxima of windows as one operator of :mod:`mxopt.kernels`."""

from __future__ import annotations

from mxopt.methods.graph_rewrites.graph import Graph, Node, attributes, is_relu

# Convolutions of more channels are left to MXNet's operators.
MOST = 64


def pooled_convolution(graph: Graph, node: Node):
    """Compute a 3 x 3 convolution, ReLU and the maxima of windows of 2 x 2 by one operator.

    The operator does not write the convolution's output, which is four times as large as its own.
    Only one position of a window has a gradient, or none, where MXNet's operators compute those of
    all four.

    Args:
        graph: graph that new nodes are added to.
        node: node to rewrite: the ReLU or the maxima, whichever comes last.

    Returns:
        The new output, the kind of the change and its description; None to keep the node.
    """
    last, middle, first = _chain(node)
    if not first or not _convolution(first) or {_kind(last), _kind(middle)} != {"relu", "maxima"}:
        return None
    data, weight, *bias = (graph.place(each) for each in first["inputs"])
    shape = graph.shapes.get(data)
    if not shape or shape[1] > MOST:
        return None
    filters = attributes(first)["num_filter"]
    bias = bias[0] if bias else graph.full((filters,), 0)
    made = graph.add("mxopt_pooled_convolution", f"{node.name}_kernel", data,
                     *map(graph.for_kernel, (weight, bias)))  # fmt: skip
    what = f"{shape[1]} to {filters} channels at {shape[2]} x {shape[3]}"
    return made, "convolutions with ReLU and maxima by one kernel", what


def _chain(node: Node) -> tuple:
    """Return a node, the one before it and the one before that; None for what others read too."""
    chain = [node.traced.nodes[node.number]]
    while len(chain) < 3 and chain[-1] and chain[-1]["inputs"]:
        source = tuple(chain[-1]["inputs"][0][:2])
        alone = len(node.traced.readers[source]) == 1
        chain.append(node.traced.nodes[source[0]] if alone else None)
    return (*chain, None, None)[:3]


def _kind(node: dict) -> str:
    """Return ``relu``, ``maxima`` for those of windows of 2 x 2, or nothing for other operators."""
    op, own = node["op"], attributes(node)
    if is_relu(op, own):
        return "relu"
    whole = own.get("global_pool") or own.get("pooling_convention", "valid") != "valid"
    if op != "Pooling" or own.get("pool_type", "max") != "max" or whole:
        return ""
    windows = tuple(own["kernel"]) == (2, 2) == tuple(own.get("stride") or (1, 1))
    return "maxima" if windows and not any(own.get("pad") or ()) else ""


def _convolution(node: dict) -> bool:
    own = attributes(node)
    return (
        node["op"] == "Convolution"
        and tuple(own["kernel"]) == (3, 3)
        and tuple(own.get("pad") or (0, 0)) == (1, 1)
        and all(tuple(own.get(name) or (1, 1)) == (1, 1) for name in ("stride", "dilate"))
        and own.get("num_group", 1) == 1
    )
