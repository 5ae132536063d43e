"""1 x 1 convolutions and batch norms by kernels, in the layout of those for 3 x 3 convolutions.

oneDNN's operators keep channels in blocks of 16, the operators of :mod:`mxopt.kernels` in MXNet's
plain layout. Where both alternate, every array between them is converted, forward and backward.
"""

from __future__ import annotations

from mxopt import kernels
from mxopt.methods.graph_rewrites.graph import (
    KERNEL,
    SUMS,
    Graph,
    Node,
    Output,
    attributes,
    is_relu,
)

NORM, POINTWISE = "mxopt_batch_norm", "mxopt_pointwise"
# What batch norms follow that are computed by a kernel.
_PLAIN = (POINTWISE, "mxopt_winograd", "mxopt_seen_taps")
# Convolutions of fewer channels or filters are left to MXNet's operator; without Intel's AMX also
# those that have fewer than WIDE of both.
LEAST, WIDE = 64, 512


def plain_layout(graph: Graph, node: Node):
    """Compute a 1 x 1 convolution or a batch norm, and the sum and the ReLU after it, by a kernel.

    The convolution's kernel multiplies by the tiles of Intel's AMX where there are any. A batch
    norm is computed by the kernel after other kernels, and with its ReLU also before them; the sum
    of two batch norms is one kernel, so that neither is kept.

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
    data, *parameters = node.inputs
    if not _suits_pointwise(graph, node.attributes, parameters):
        return None
    weight = parameters[0]
    made = graph.add(POINTWISE, f"{node.name}_pointwise", data, graph.for_kernel(weight))
    filters, channels = graph.shapes[weight][:2]
    return made, "1 x 1 convolutions by a kernel", f"{channels} to {filters} channels"


def _suits_pointwise(graph: Graph, own: dict, parameters: list[Output]) -> bool:
    """Return whether a kernel computes a convolution of these attributes and parameters."""
    shape = graph.shapes.get(parameters[0]) if len(parameters) == 1 else None
    if not shape or len(shape) != 4 or own.get("num_group", 1) != 1:
        return False
    ones = all(tuple(own.get(name) or (1, 1)) == (1, 1) for name in ("kernel", "stride"))
    if not ones or any(own.get("pad") or ()) or min(shape[:2]) < LEAST:
        return False
    return kernels.multiplies_by_tiles() or max(shape[:2]) >= WIDE


def _norm(graph: Graph, node: Node):
    made = None
    if graph.nodes[node.inputs[0][0]]["op"] in _PLAIN:
        made = _kernel(graph, node.name, node.attributes, node.inputs)
    return made and (made, "batch norms by a kernel", f"{graph.shapes[node.inputs[0]][1]} channels")


def _kernel(graph: Graph, name: str, own: dict, inputs: list[Output]) -> Output | None:
    """Add a batch norm by the kernel; return None if the kernel does not compute this one."""
    shape = graph.shapes.get(inputs[0])
    odd = own.get("fix_gamma", True) or own.get("use_global_stats") or own.get("output_mean_var")
    if odd or own.get("axis", 1) != 1 or not shape or len(shape) != 4:
        return None
    x, gamma, beta, *running = inputs
    parameters = map(graph.for_kernel, (gamma, beta))
    how = {"epsilon": own.get("eps", 1e-3), "momentum": own.get("momentum", 0.9)}
    return graph.add(NORM, f"{name}_kernel", x, *parameters, *running, graph.draws(),
                     relu=0, added=0, **how)  # fmt: skip


def _sum(graph: Graph, node: Node):
    for place, other in ((0, 1), (1, 0)):
        norm = _alone(graph, node, place)
        if not norm or norm["attrs"]["added"] != "0":
            continue
        name, kind = f"{node.name}_kernel", "sums taken into the kernel of a batch norm"
        second = _alone(graph, node, other) or _left(graph, node, other)
        if second and second["attrs"] == norm["attrs"]:
            links = [tuple(link[:2]) for link in second["inputs"][:5]]  # without the draws
            return _again(graph, norm, name, *links, added=2), kind, "of two batch norms"
        return _again(graph, norm, name, node.inputs[other], added=1), kind, "residual"
    return None


def _relu(graph: Graph, node: Node):
    norm = _alone(graph, node, 0)
    if not norm and _only_kernels_read(graph, node):
        norm = _left(graph, node, 0)
    if not norm:
        return None
    made = _again(graph, norm, f"{node.name}_kernel", relu=1)
    return made, "ReLUs taken into the kernel of a batch norm", "ReLU"


def _only_kernels_read(graph: Graph, node: Node) -> bool:
    """Return whether kernels of the plain layout read a node's output, and nothing else does."""
    for reader, _ in node.traced.readers[node.number, 0]:
        links = reader["inputs"][1:]
        variables = [graph.place(n) for n in links if node.traced.nodes[n[0]]["op"] == "null"]
        pointwise = reader["op"] == "Convolution" and _suits_pointwise(
            graph, attributes(reader), variables
        )
        if not pointwise and not reader["op"].startswith(KERNEL):
            return False
    return True


def _alone(graph: Graph, node: Node, place: int) -> dict | None:
    """Return the batch norm by the kernel that is an input, if nothing else reads it."""
    norm = graph.nodes[node.inputs[place][0]]
    alone = len(node.traced.readers[node.sources[place]]) == 1
    return norm if norm["op"] == NORM and norm["attrs"]["relu"] == "0" and alone else None


def _left(graph: Graph, node: Node, place: int) -> dict | None:
    """Return the kernel of an input, if that is a batch norm by oneDNN that nothing else reads."""
    norm = graph.nodes[node.inputs[place][0]]
    if norm["op"] != "BatchNorm" or len(node.traced.readers[node.sources[place]]) != 1:
        return None
    links = [tuple(link[:2]) for link in norm["inputs"]]
    made = _kernel(graph, norm["name"], attributes(norm), links)
    return made and graph.nodes[made[0]]


def _again(graph: Graph, norm: dict, name: str, *more, **changes):
    links = [tuple(link[:2]) for link in norm["inputs"]]
    return graph.add(NORM, name, *links, *more, **{**norm["attrs"], **changes})
