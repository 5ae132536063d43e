"""Padding of channels to whole blocks of oneDNN's memory layout."""

from __future__ import annotations

from mxopt.methods.graph_rewrites.graph import Graph, Node, Traced, attributes
from mxopt.methods.graph_rewrites.relu6 import BLOCK

# With fewer channels, such as those of a classifier, too many would be added.
FEWEST = 17


def whole_blocks(graph: Graph, node: Node):
    """Pad the channels between convolutions with zeros to a multiple of 16.

    oneDNN's fast kernels need channels in blocks of 16; with 24 channels, the largest layers of
    MobileNetV2 do not use that layout. Channels computed with a weight and a bias of zero are zero,
    and channels read with a weight of zero add nothing. The parameters are unchanged: the zeros are
    concatenated in every step, which costs little.

    Args:
        graph: graph that new nodes are added to.
        node: node to rewrite.

    Returns:
        The new output, the kind of the change and its description; None to keep the node.
    """
    if not _dense(node.op, node.attributes):
        return None
    data, weight, *bias = node.inputs
    more, also = _missing(node.traced, node.number), _missing(node.traced, node.sources[0][0])
    if not more and not also:
        return None
    own = node.attributes
    filters, kernel = own["num_filter"], tuple(own["kernel"])
    shape = graph.shapes[weight]
    if also:
        zeros = graph.full((filters, also, *kernel), 0)
        weight = graph.add("Concat", f"{node.name}_read", weight, zeros, dim=1, num_args=2)
    if more:
        zeros = graph.full((more, shape[1] + also, *kernel), 0)
        weight = graph.add("Concat", f"{node.name}_made", weight, zeros, dim=0, num_args=2)
        bias = [graph.add("Concat", f"{node.name}_bias", each, graph.full((more,), 0), dim=0,
                          num_args=2) for each in bias]  # fmt: skip
    filled = graph.add("Convolution", f"{node.name}_filled", data, weight, *bias,
                       **{**own, "num_filter": filters + more})  # fmt: skip
    what = f"{filters} to {filters + more}" if more else f"{shape[1]} + {also} read"
    return filled, "channels filled up to blocks of 16", what


def _missing(traced: Traced, start: int) -> int:
    """Return the number of channels to add to a node's output; 0 if that is impossible.

    It is possible if only convolutions over all channels, and sums between them, compute and read
    the output.
    """
    places = {id(raw): number for number, raw in enumerate(traced.nodes)}
    family, todo, filters = set(), [start], 0
    while todo:
        number = todo.pop()
        if number in family:
            continue
        family.add(number)
        raw = traced.nodes[number]
        if raw["op"] == "elemwise_add":
            todo += [link[0] for link in raw["inputs"]]
        elif _dense(raw["op"], attributes(raw)):
            filters = attributes(raw)["num_filter"]
        else:
            return 0
        for reader, slot in traced.readers[number, 0]:
            if reader["op"] == "elemwise_add":
                todo.append(places[id(reader)])
            elif slot or not _dense(reader["op"], attributes(reader)):
                return 0
    return -filters % BLOCK if filters >= FEWEST else 0


def _dense(op: str, own: dict) -> bool:
    """Return whether a node is a convolution with one group, over all channels."""
    return op == "Convolution" and own.get("num_group", 1) == 1
