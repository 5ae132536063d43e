"""Maxima over windows before ReLU, which then has fewer elements to compute."""

from __future__ import annotations

from mxopt.methods.graph_rewrites.graph import Graph, Node, is_relu


def pool_first(graph: Graph, node: Node):
    """Compute ReLU after a max-pooling in place of before it.

    ReLU does not decrease, so the largest element stays the largest: max(relu(x)) = relu(max(x)).
    The gradient goes to the same element, or to none if all are negative. After windows of 2 x 2
    ReLU has a quarter of the elements, forward and backward.

    Args:
        graph: graph that new nodes are added to.
        node: node to rewrite.

    Returns:
        The new output, the kind of the change and its description; None to keep the node.
    """
    own = node.attributes
    if node.op != "Pooling" or own.get("pool_type", "max") != "max":
        return None
    source = graph.nodes[node.inputs[0][0]]
    if not is_relu(source["op"], source.get("attrs", {})):
        return None
    if len(node.traced.readers[node.sources[0]]) > 1:
        return None
    pooled = graph.add("Pooling", f"{node.name}_first", tuple(source["inputs"][0][:2]), **own)
    found = graph.add("Activation", f"{node.name}_relu", pooled, act_type="relu")
    windows = "all" if own.get("global_pool") else " x ".join(map(str, own.get("kernel", ())))
    return found, "maxima computed before ReLU", f"windows of {windows}"
