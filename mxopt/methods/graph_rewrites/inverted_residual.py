"""MobileNetV2's blocks as one operator of :mod:`mxopt.kernels`."""

from __future__ import annotations

from typing import NamedTuple

from mxopt.methods.graph_rewrites.graph import SUMS, Graph, Node, attributes, is_relu

KERNEL = "mxopt_inverted_residual"
_SUMS = (*SUMS, "broadcast_add")
_KIND = "inverted residual blocks computed by one kernel"


def fused_block(graph: Graph, node: Node):
    """Compute an inverted residual block with one operator.

    The block is a 1 x 1 convolution with ReLU or ReLU6, a depthwise 3 x 3 convolution with the
    same, and a 1 x 1 convolution, all with biases, to whose output the block's input may be added
    (Sandler et al., "MobileNetV2", 2018, section 3.3). The operator does not keep what is between
    them: it computes some channels at a time, and again for the gradient.

    Args:
        graph: graph that new nodes are added to.
        node: node to rewrite: the block's last convolution, or the sum after it.

    Returns:
        The new output, the kind of the change and its description; None to keep the node.
    """
    if node.op in _SUMS:
        return _sum(graph, node)
    if node.op != "Convolution" or not _pointwise(node.attributes):
        return None
    second = _before(graph, node.traced, node.inputs[0], node.sources[0])
    depthwise = second and _before(graph, node.traced, second.links[0], second.sources[0])
    six = second and _six(second.node)
    if not depthwise or six is None or not _depthwise(depthwise.node):
        return None
    own = attributes(depthwise.node)
    settings = {"stride": own.get("stride", (1, 1))[0], "dilation": own.get("dilate", (1, 1))[0]}
    first = _before(graph, node.traced, depthwise.links[0], depthwise.sources[0])
    expand = first and _before(graph, node.traced, first.links[0], first.sources[0])
    begin, parameters = depthwise.links[0], [*depthwise.links[1:], *node.inputs[1:]]
    expands = bool(
        expand
        and _six(first.node) == six
        and expand.node["op"] == "Convolution"
        and _pointwise(attributes(expand.node))
    )
    # The activation of another layer's output, such as of a network's first convolution.
    clips = bool(not expands and first and _six(first.node) == six)
    if expands:
        begin, parameters = expand.links[0], [*expand.links[1:], *parameters]
    elif clips:
        begin = first.links[0]
    settings.update(six=six, expands=int(expands), clips=int(clips), residual=0)
    parameters = [graph.for_kernel(parameter) for parameter in parameters]
    made = graph.add(KERNEL, f"{node.name}_block", begin, *parameters, **settings)
    return made, _KIND, f"{own['num_filter']} channels"


def _sum(graph: Graph, node: Node):
    """Take the sum of a block's input and output into the operator."""
    for place, other in ((0, 1), (1, 0)):
        block = graph.nodes[node.inputs[place][0]]
        alone = len(node.traced.readers[node.sources[place]]) == 1
        links = [tuple(link[:2]) for link in block["inputs"]]
        if alone and block["op"] == KERNEL and links[0] == tuple(node.inputs[other]):
            made = graph.add(KERNEL, f"{node.name}_block", *links,
                             **{**block["attrs"], "residual": 1})  # fmt: skip
            return made, "sums taken into the kernel of a block", "residual"
    return None


class _Before(NamedTuple):
    """A node that computes an input of another one, and its own inputs in both graphs."""

    node: dict
    links: list
    sources: list


def _before(graph: Graph, traced, link, source) -> _Before | None:
    """Return the node of an output that nothing else reads; None if something does."""
    new, old = graph.nodes[link[0]], traced.nodes[source[0]]
    if len(traced.readers[tuple(source)]) > 1 or new["op"] != old["op"] or new["op"] == "null":
        return None
    links, sources = ([tuple(one[:2]) for one in each["inputs"]] for each in (new, old))
    return _Before(new, links, sources)


def _six(node: dict) -> int | None:
    """Return 1 for ReLU6, 0 for ReLU, None for other operators."""
    own = attributes(node)
    if node["op"] == "clip" and (own["a_min"], own["a_max"]) == (0, 6):
        return 1
    return 0 if is_relu(node["op"], own) else None


def _pointwise(own: dict) -> bool:
    return (
        tuple(own["kernel"]) == (1, 1)
        and not own.get("no_bias", False)
        and own.get("num_group", 1) == 1
        and tuple(own.get("stride") or (1, 1)) == (1, 1)
        and not any(own.get("pad") or ())
    )


def _depthwise(node: dict) -> bool:
    if node["op"] != "Convolution":
        return False
    own = attributes(node)
    stride, dilate = tuple(own.get("stride") or (1, 1)), tuple(own.get("dilate") or (1, 1))
    return (
        tuple(own["kernel"]) == (3, 3)
        and not own.get("no_bias", False)
        and own.get("num_group", 1) == own["num_filter"] > 1
        and tuple(own.get("pad") or (0, 0)) == dilate
        and stride[0] == stride[1] in (1, 2)
        and dilate[0] == dilate[1]
        and (stride[0] == 1 or dilate[0] == 1)
    )
