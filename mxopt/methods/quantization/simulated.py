"""Training that sees the rounding of integers (quantisation-aware training, Jacob et al., 2017).

Weights and inputs of convolutions and dense layers are rounded to the values that integers of a few
bits can hold, and computed with as float32. Rounding has a gradient of 0 almost everywhere, so the
gradient is passed on as if nothing had been rounded (the straight-through estimator, Bengio et al.,
2013), to weights in full precision, which are the network's parameters.
"""

from __future__ import annotations

from mxnet import autograd, gluon, nd

from mxopt.core.errors import PlanError
from mxopt.methods.graph_rewrites.graph import Graph, Node, Output, rewrite, trace
from mxopt.methods.graph_rewrites.rewriting import Optimized, with_graph

LAYERS = ("Convolution", "FullyConnected")
_SMALLEST = 1e-30  # in place of a largest value of 0, which nothing can be divided by


def simulate(net: gluon.HybridBlock, *example: nd.NDArray, bits: int = 8) -> Optimized:
    """Return a network with the same parameters that rounds as integers of some bits would.

    A layer's weights have a scale for each channel, the largest absolute value of the channel
    divided by 2^(bits - 1) - 1, as in :func:`~mxopt.methods.quantization.to_int8`. Its input has
    one scale, from the batch at hand; where no element is negative, as after ReLU, the sign's bit
    doubles the number of steps.

    Args:
        net: an initialised network of hybrid blocks; its parameters are trained through the result.
        *example: inputs with the shapes of later ones, except for the number of samples.
        bits: from 2 to 8.

    Raises:
        PlanError: the bits are not in that range, the network cannot be traced, or has no layers
            that are rounded.
    """
    if bits not in range(2, 9):
        raise PlanError(f"bits={bits!r} must be a whole number from 2 to 8")
    with autograd.predict_mode():
        net(*example)  # infers unknown shapes of parameters
    symbol, inputs, shapes = trace(net, *example)
    done: dict[Output, Output] = {}
    steps = 2 ** (bits - 1) - 1
    graph, changes = rewrite(
        symbol, shapes, lambda graph, node: _with_rounded_inputs(graph, node, steps, done)
    )
    if not changes:
        raise PlanError(f"{type(net).__name__} has no convolution or dense layer to round")
    return with_graph(net, example, graph, inputs, changes)


def _with_rounded_inputs(graph: Graph, node: Node, steps: int, done: dict[Output, Output]):
    """Replace a layer by the same layer with rounded inputs; see ``rewrite`` for the result."""
    if node.op not in LAYERS:
        return None
    data, weight, *bias = node.inputs
    for output, per_channel in ((data, False), (weight, True)):
        if output not in done:  # another layer may read it too
            axes = range(1, len(graph.shapes[output])) if per_channel else None
            done[output] = _rounded(graph, f"{node.name}_{len(done)}", output, steps, axes)
    made = graph.add(node.op, f"{node.name}_rounded", done[data], done[weight], *bias,
                     **node.attributes)  # fmt: skip
    return made, f"inputs rounded to {steps} steps on each side of 0", node.name


def _rounded(graph: Graph, name: str, values: Output, steps: int, axes) -> Output:
    """Add the rounded values of an output, with the gradient of the output itself.

    Args:
        graph: graph that nodes are added to.
        name: beginning of the nodes' names.
        values: the output.
        steps: number of values above zero.
        axes: axes that share a scale; None for all, and for one more bit where nothing is negative.
    """

    def add(op, *inputs, **attributes):
        nonlocal count
        count += 1
        return graph.add(op, f"{name}_{op.strip('_').lower()}{count}", *inputs, **attributes)

    count = 0
    over = {"keepdims": True, **({} if axes is None else {"axis": tuple(axes)})}
    fixed = add("BlockGrad", values)
    largest = add("_maximum_scalar", add("max", add("abs", fixed), **over), scalar=_SMALLEST)
    scale = add("_div_scalar", largest, scalar=steps)
    if axes is None:
        positive = add("_greater_equal_scalar", add("min", fixed, **over), scalar=0)
        scale = add("elemwise_div", scale, add("_plus_scalar", positive, scalar=1))
    rounded = add("broadcast_mul", add("rint", add("broadcast_div", fixed, scale)), scale)
    return add("elemwise_add", values, add("BlockGrad", add("elemwise_sub", rounded, fixed)))
