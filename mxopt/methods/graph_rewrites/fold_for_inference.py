"""Folding of batch norms into convolutions, once and for all: for networks that only predict."""

from __future__ import annotations

import mxnet as mx
from mxnet import autograd, gluon, nd

from mxopt.methods.graph_rewrites.fold_batch_norm import foldable
from mxopt.methods.graph_rewrites.graph import Graph, Node, rewrite, trace


def folded(net: gluon.HybridBlock, *example: nd.NDArray) -> gluon.SymbolBlock:
    """Return a network for inference without the batch norms that follow a convolution.

    A batch norm that uses its running statistics is y = s (x - mean) + beta with s = gamma /
    sqrt(variance + epsilon), so filters multiplied by s and a bias of beta - s mean do the same.

    Args:
        net: an initialised network of hybrid blocks; it is not changed, and keeps its own arrays.
        *example: inputs like those to come, on the network's device.

    Raises:
        PlanError: the network cannot be traced.
    """
    with autograd.predict_mode():
        net(*example)
    symbol, inputs, shapes = trace(net, *example)
    context = example[0].context
    values = {name: p.data(context) for name, p in net.collect_params().items()}
    graph, _ = rewrite(symbol, shapes, lambda graph, node: _folded(graph, node, values))
    block = gluon.SymbolBlock(graph, inputs)
    for name, parameter in block.collect_params().items():
        parameter.shape = values[name].shape
        parameter.initialize(mx.init.Zero(), ctx=context)
        parameter.set_data(values[name])
    return block


def _folded(graph: Graph, node: Node, values: dict):
    """Replace a batch norm and the convolution before it; add the new filters to ``values``."""
    before = foldable(graph, node)
    if before is None:
        return None
    links = [tuple(link[:2]) for link in before["inputs"]]
    names = [graph.nodes[number]["name"] for number, _ in [*links[1:], *node.inputs[1:]]]
    if any(name not in values for name in names):  # filters that are computed
        return None
    weight, *bias, gamma, beta, mean, variance = (values[name] for name in names)
    own = node.attributes
    scale = 1 / (variance + own.get("eps", 1e-3)).sqrt()
    if not own.get("fix_gamma", True):
        scale = scale * gamma
    shift = beta - scale * mean
    if bias:
        shift = shift + scale * bias[0]
    made = []
    filters = weight * scale.reshape((-1, *(1,) * (weight.ndim - 1)))
    for label, array in (("weight", filters), ("bias", shift)):
        name = f"{node.name}_folded_{label}"
        values[name] = array
        made.append(graph.add("null", name))
    attributes = {**before["attrs"], "no_bias": False}
    output = graph.add("Convolution", f"{node.name}_folded", links[0], *made, **attributes)
    return output, "batch norms folded into convolutions", f"{weight.shape[0]} channels"
