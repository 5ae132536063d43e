"""Every operator that a network uses, run alone on a CPU and on a GPU, forward and backward.

The operators are read from the graph of the network and its loss, with the attributes and the
shapes that they have there, so that nothing is forgotten and nothing is listed by hand.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import mxnet as mx
import numpy as np
from mxnet import autograd, nd

from mxopt.train.work import Node, nodes

# The input of an operator that has numbers of rows, and the attribute that limits them.
_INDICES = {"Embedding": (0, "input_dim"), "one_hot": (0, "depth"), "pick": (1, ""),
            "take": (1, ""), "SequenceMask": (1, "")}  # fmt: skip
# What they return is drawn at random, differently on each kind of device.
_RANDOM = ("_random", "_sample", "shuffle")


def of_graph(graph: mx.sym.Symbol, shapes: dict[str, tuple]) -> list[Node]:
    """Return the different operators of a graph, in the order in which they are computed.

    Args:
        graph: the outputs of a network, or of its loss.
        shapes: shapes of the graph's inputs.
    """
    found = (node for node in nodes(graph, shapes) if not node.name.startswith(_RANDOM))
    return list(dict.fromkeys(found))


def compare(operator: Node, there: mx.Context, dtype: str = "float32") -> float:
    """Return how far the results of an operator on another device are from those on the CPU.

    Outputs and gradients are compared. The CPU computes in float32.

    Args:
        operator: the operator.
        there: the other device.
        dtype: dtype of the inputs there, ``float32`` or ``float16``.

    Returns:
        The largest difference of all arrays, each divided by the largest absolute value that the
        CPU computed; infinite if one result is not finite where the other is.

    Raises:
        MXNetError: the device cannot compute it.
    """
    here = list(_results(operator, mx.cpu(), "float32"))
    if dtype == "float16":  # what is too large for it is infinite there
        with np.errstate(over="ignore"):
            here = [array.astype("float16").astype("float32") for array in here]
    return max(map(_distance, here, _results(operator, there, dtype)))


def _results(operator: Node, context: mx.Context, dtype: str) -> Iterator[np.ndarray]:
    """Yield the first output, and the gradient of every input that has one."""
    names = [f"input{number}" for number in range(len(operator.inputs))]
    # The scale and the statistics of batch normalisation are float32 in any case.
    kinds = [dtype] + ["float32" if operator.name == "BatchNorm" else dtype] * len(names)
    arrays = {
        name: nd.array(values, ctx=context, dtype=kind)
        for name, values, kind in zip(names, _values(operator), kinds)
    }
    symbol = _alone(operator, names)
    compute = nd.CachedOp(symbol)
    inputs = [arrays[name] for name in symbol.list_inputs()]
    place, _ = _INDICES.get(operator.name, (None, ""))  # row numbers have no gradient
    learned = [arrays[name] for name in symbol.list_arguments() if name != f"input{place}"]
    for array in learned:
        array.attach_grad()
    # Dropout draws at random when it trains.
    with autograd.record(train_mode=operator.name != "Dropout"):
        output = compute(*inputs)
    output = output[0] if isinstance(output, (list, tuple)) else output
    yield output.astype("float32").asnumpy()
    if output.dtype not in (np.float32, np.float16) or not learned:
        return
    # Not ones: the gradient of a normalisation would be nothing but rounding.
    head = np.random.RandomState(1).uniform(-1, 1, output.shape)
    output.backward(nd.array(head, ctx=context, dtype=output.dtype))
    for array in learned:
        yield array.grad.astype("float32").asnumpy()


def _alone(operator: Node, names: list[str]) -> mx.sym.Symbol:
    """Return a graph that is nothing but the operator."""
    nodes = [{"op": "null", "name": name, "inputs": []} for name in names]
    inputs = [[number, 0, 0] for number in range(len(names))]
    node = {"op": operator.name, "name": "alone", "inputs": inputs}
    node["attrs"] = dict(operator.attributes)
    text = {"nodes": [*nodes, node], "arg_nodes": list(range(len(names))),
            "heads": [[len(names), 0, 0]]}  # fmt: skip
    return mx.sym.load_json(json.dumps(text))


def _values(operator: Node) -> Iterator[np.ndarray]:
    """Yield values for the inputs: the same every time, positive, and valid rows."""
    random = np.random.RandomState(0)
    place, limit = _INDICES.get(operator.name, (None, ""))
    for number, shape in enumerate(operator.inputs):
        if number != place:
            yield random.uniform(0.1, 1, shape)
            continue
        limits = [other for n, other in enumerate(operator.inputs) if n != place] or [shape]
        most = int(dict(operator.attributes).get(limit, 0)) or min(limits[0])
        yield random.randint(0, most, shape)


def _distance(here: np.ndarray, there: np.ndarray) -> float:
    if not np.array_equal(np.isfinite(here), np.isfinite(there)):
        return float("inf")
    finite = np.isfinite(here)
    if not finite.any():
        return 0.0
    scale = max(float(np.abs(here[finite]).max()), 1e-6)
    return float(np.abs(here[finite] - there[finite]).max()) / scale
