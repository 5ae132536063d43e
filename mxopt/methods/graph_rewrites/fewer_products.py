"""3 x 3 convolutions by operators of :mod:`mxopt.kernels` that compute fewer products.

A position of the output has nine products for each filter and channel. Winograd's minimal filtering
(Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016) needs 36 for a square of
16. Where the dilation is of the order of the image's sides, many of the nine only read padding.
"""

from __future__ import annotations

from mxopt.methods.graph_rewrites.graph import Graph, Node, attributes

# A convolution is left to MXNet's operator unless at most this share of its products is enough, and
# it has as many channels and filters: the operators rearrange their inputs and outputs.
WORTH, LEAST = 0.7, 64


def fewer_products(graph: Graph, node: Node):
    """Compute a 3 x 3 convolution by the operator that needs the fewest products.

    Args:
        graph: graph that new nodes are added to.
        node: node to rewrite.

    Returns:
        The new output, the kind of the change and its description; None to keep the node.
    """
    shape = graph.shapes.get(node.inputs[0]) if node.inputs else None
    if shape is None or len(shape) != 4:
        return None
    return _seen_taps(graph, node, shape) or _winograd(graph, node, shape)


def _winograd(graph: Graph, node: Node, shape: tuple):
    """Compute a 3 x 3 convolution by Winograd's minimal filtering."""
    if not _fits(node.op, node.attributes, shape, side=3):
        return None
    share = winograd_share(shape[2:], _dilation(node.attributes))
    if share > WORTH:
        return None
    data, weight = node.inputs
    made = graph.add("mxopt_winograd", f"{node.name}_winograd", data, graph.for_kernel(weight),
                     dilation=_dilation(node.attributes))  # fmt: skip
    what = _described(node.attributes, shape, share)
    return made, "3 x 3 convolutions by Winograd's minimal filtering", what


def _seen_taps(graph: Graph, node: Node, shape: tuple):
    """Leave out the products of dilated 3 x 3 convolutions that read only padding.

    All of these convolutions that have the same input become one operator, with the 1 x 1
    convolutions and the mean beside them: their gradients of the input, several times as large as
    their outputs, are summed where they are computed.
    """
    if (node.number, 0) not in graph.changed:
        branches, nodes = {}, node.traced.nodes
        for number, other in enumerate(nodes):
            if other["inputs"] and tuple(other["inputs"][0][:2]) == tuple(node.sources[0]):
                # What is computed by later nodes is not in the new graph yet.
                stored = all(nodes[link[0]]["op"] == "null" for link in other["inputs"][1:])
                branches[number] = _branch(other, shape) if stored else None
        if branches[node.number] is None or max(filter(None, branches.values()), default=0) <= 1:
            return None
        order = [number for number in branches if branches[number]]
        # The mean, which has no weight, is the operator's last output.
        means = [number for number in branches if branches[number] == 0][:1]
        weights = [graph.place(nodes[number]["inputs"][1]) for number in order]
        dilations = " ".join(str(branches[number]) for number in order)
        made, _ = graph.add("mxopt_seen_taps", f"{node.name}_seen_taps", node.inputs[0],
                            *map(graph.for_kernel, weights), dilations=dilations,
                            mean=len(means))  # fmt: skip
        for output, number in enumerate(order + means):
            graph.changed[number, 0] = made, output
        if (node.number, 0) not in graph.changed:
            return None  # a second mean
    kind = "dilated convolutions by a kernel for the taps that see the image"
    if node.op == "Pooling":
        what = "a mean beside them"
    elif tuple(node.attributes["kernel"]) == (1, 1):
        what = "1 x 1 beside them"
    else:
        what = _described(node.attributes, shape, seen_share(shape[2:], _dilation(node.attributes)))
    return graph.changed[node.number, 0], kind, what


def _branch(node: dict, shape: tuple) -> int | None:
    """Return the dilation of a convolution that the kernel for seen taps computes.

    Args:
        node: node as in MXNet's JSON.
        shape: shape of its input.

    Returns:
        1 for a convolution of 1 x 1, 0 for the mean of all pixels; None for other nodes.
    """
    own = attributes(node)
    if node["op"] == "Pooling" and own.get("global_pool") and own.get("pool_type") == "avg":
        return 0
    if _fits(node["op"], own, shape, side=1):
        return 1
    if not _fits(node["op"], own, shape, side=3):
        return None
    sides, dilation = shape[2:], _dilation(own)
    enough = min(WORTH, winograd_share(sides, dilation))
    return dilation if seen_share(sides, dilation) <= enough else None


def _described(own: dict, shape: tuple, share: float) -> str:
    rows, columns = shape[2:]
    return f"dilated by {_dilation(own)} at {rows} x {columns}: {share:.0%} of its products"


def _fits(op: str, own: dict, shape: tuple | None, side: int) -> bool:
    """Return whether a node is a convolution that the kernels compute.

    Args:
        op: name of its operator.
        own: its attributes.
        shape: shape of its input, or None.
        side: side of its filters.
    """
    if op != "Convolution" or shape is None or len(shape) != 4:
        return False
    dilation = tuple(own.get("dilate") or (1, 1))
    pad = tuple(own.get("pad") or (0, 0))
    return (
        tuple(own["kernel"]) == (side, side)
        and tuple(own.get("stride") or (1, 1)) == (1, 1)
        and own.get("num_group", 1) == 1
        and bool(own.get("no_bias", False))
        and dilation[0] == dilation[1]
        and pad == (dilation if side == 3 else (0, 0))
        and min(shape[1], own["num_filter"]) >= LEAST
    )


def _dilation(own: dict) -> int:
    return (own.get("dilate") or (1, 1))[0]


def winograd_share(sides: tuple, dilation: int) -> float:
    """Return which share of the products is left: 36 for each four rows of four columns.

    Args:
        sides: rows and columns.
        dilation: dilation of the convolution, and what its input is padded by.
    """
    share = 1.0
    for side in sides:
        windows = min(dilation, side) * -(-side // (4 * dilation))
        share *= 6 * windows / (3 * side)
    return share


def seen_share(sides: tuple, dilation: int) -> float:
    """Return which share of the products does not read padding.

    Args:
        sides: rows and columns.
        dilation: as for :func:`winograd_share`.
    """
    share = 1.0
    for side in sides:
        share *= (side + 2 * max(0, side - dilation)) / (3 * side)
    return share
