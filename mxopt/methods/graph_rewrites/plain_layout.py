"""1 x 1 convolutions and batch norms by kernels, in the layout of those for 3 x 3 convolutions.

oneDNN's operators keep channels in blocks of 16, the operators of :mod:`mxopt.kernels` in MXNet's
plain layout. Where both alternate, every array between them is converted, forward and backward.
"""

from __future__ import annotations

from mxopt import kernels
from mxopt.methods.graph_rewrites.graph import SUMS, Graph, Node, is_relu

NORM, POINTWISE = "mxopt_batch_norm", "mxopt_pointwise"
# What batch norms follow that are computed by a kernel.
_PLAIN = (POINTWISE, "mxopt_winograd", "mxopt_seen_taps")
# Convolutions of fewer channels or filters are left to MXNet's operator.
LEAST = 64


def plain_layout(graph: Graph, node: Node):
    """Compute a 1 x 1 convolution or a batch norm, and the sum and the ReLU after it, by a kernel.

    The convolution's kernel multiplies by the tiles of Intel's AMX, and is used where there are
    any.

    Args:
        graph: graph that new nodes are added to.
        node: node to rewrite.

    Returns:
        The new output, the kind of the change and its description; None to keep the node.
    """
    if node.op == "Convolution":
        return _pointwise(graph, node)
    if node.op == "BatchNorm":
        return _norm(graph, node)
    if node.op in SUMS:
        return _sum(graph, node)
    if is_relu(node.op, node.attributes):
        return _relu(graph, node)
    return None


def _pointwise(graph: Graph, node: Node):
    own, shape = node.attributes, graph.shapes.get(node.inputs[0])
    if not shape or len(shape) != 4 or len(node.inputs) != 2 or own.get("num_group", 1) != 1:
        return None
    ones = all(tuple(own.get(name) or (1, 1)) == (1, 1) for name in ("kernel", "stride"))
    if not ones or any(own.get("pad") or ()) or min(shape[1], own["num_filter"]) < LEAST:
        return None
    if not kernels.multiplies_by_tiles():
        return None
    data, weight = node.inputs
    made = graph.add(POINTWISE, f"{node.name}_pointwise", data, graph.for_kernel(weight))
    return made, "1 x 1 convolutions by AMX", f"{shape[1]} to {own['num_filter']} channels"


def _norm(graph: Graph, node: Node):
    own, shape = node.attributes, graph.shapes.get(node.inputs[0])
    odd = own.get("fix_gamma", True) or own.get("use_global_stats") or own.get("output_mean_var")
    if odd or own.get("axis", 1) != 1 or not shape or len(shape) != 4:
        return None
    if graph.nodes[node.inputs[0][0]]["op"] not in _PLAIN:
        return None
    x, gamma, beta, *running = node.inputs
    parameters = map(graph.for_kernel, (gamma, beta))
    how = {"epsilon": own.get("eps", 1e-3), "momentum": own.get("momentum", 0.9)}
    made = graph.add(NORM, f"{node.name}_kernel", x, *parameters, *running, graph.draws(),
                     relu=0, added=0, **how)  # fmt: skip
    return made, "batch norms by a kernel", f"{shape[1]} channels"


def _sum(graph: Graph, node: Node):
    for place, other in ((0, 1), (1, 0)):
        norm = _alone(graph, node, place)
        if norm and norm["attrs"]["added"] == "0":
            made = _again(graph, norm, f"{node.name}_kernel", node.inputs[other], added=1)
            return made, "sums taken into the kernel of a batch norm", "residual"
    return None


def _relu(graph: Graph, node: Node):
    norm = _alone(graph, node, 0)
    if not norm:
        return None
    made = _again(graph, norm, f"{node.name}_kernel", relu=1)
    return made, "ReLUs taken into the kernel of a batch norm", "ReLU"


def _alone(graph: Graph, node: Node, place: int) -> dict | None:
    """Return the batch norm by the kernel that is an input, if nothing else reads it."""
    norm = graph.nodes[node.inputs[place][0]]
    alone = len(node.traced.readers[node.sources[place]]) == 1
    return norm if norm["op"] == NORM and norm["attrs"]["relu"] == "0" and alone else None


def _again(graph: Graph, norm: dict, name: str, *more, **attributes):
    links = [tuple(link[:2]) for link in norm["inputs"]]
    return graph.add(NORM, name, *links, *more, **{**norm["attrs"], **attributes})
