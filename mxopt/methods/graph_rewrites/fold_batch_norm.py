"""Folding of batch norms with fixed statistics into the convolution before them."""

from __future__ import annotations

from mxopt.methods.graph_rewrites.graph import Graph, Node


def fixed_norm(graph: Graph, node: Node):
    """Fold a batch norm that uses its running statistics in training too.

    With ``use_global_stats``, common in fine-tuning with small batches, a batch norm is y =
    scale (x - mean) + beta with scale = gamma / sqrt(variance + epsilon). Together with the
    convolution it is a convolution whose filters are multiplied by scale, and whose bias is beta -
    mean scale. Both are computed in every step, so gamma and beta are still trained.

    Args:
        graph: graph that new nodes are added to.
        node: node to rewrite.

    Returns:
        The new output, the kind of the change and its description; None to keep the node.
    """
    own = node.attributes
    before = foldable(graph, node)
    if before is None or not own.get("use_global_stats"):
        return None
    data, weight, *bias = (tuple(link[:2]) for link in before["inputs"])
    _, gamma, beta, mean, variance = node.inputs

    def add(op, label, *inputs, **attributes):
        return graph.add(op, f"{node.name}_{label}", *inputs, **attributes)

    scale = add("_plus_scalar", "variance", variance, scalar=own.get("eps", 1e-3))
    scale = add("rsqrt", "rsqrt", scale)
    if not own.get("fix_gamma", True):
        scale = add("elemwise_mul", "scale", gamma, scale)
    filters = add("Reshape", "filters", scale, shape=(-1, 1, 1, 1))
    weight = add("broadcast_mul", "weight", weight, filters)
    shift = add("elemwise_sub", "shift", beta, add("elemwise_mul", "centre", mean, scale))
    for each in bias:
        shift = add("elemwise_add", "bias", shift, add("elemwise_mul", "scaled", each, scale))
    attributes = {**before["attrs"], "no_bias": False}
    folded = add("Convolution", "folded", data, weight, shift, **attributes)
    what = f"{before['attrs']['num_filter']} channels"
    return folded, "fixed batch norms folded into convolutions", what


def foldable(graph: Graph, node: Node) -> dict | None:
    """Return the convolution whose output only this batch norm reads; None if there is none.

    Args:
        graph: graph that new nodes are added to.
        node: any node.
    """
    if node.op != "BatchNorm" or node.attributes.get("axis", 1) != 1:
        return None
    before = graph.nodes[node.inputs[0][0]]
    readers = node.traced.readers
    alone = len(readers[node.sources[0]]) == 1
    if before["op"] != "Convolution" or not alone:
        return None
    return None if any(readers[node.number, output] for output in (1, 2)) else before
