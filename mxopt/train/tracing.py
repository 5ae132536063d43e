"""Tracing: the sizes of all arrays in a network's graph, without computing them.

A hybrid block called with symbols returns its graph. MXNet infers all shapes in it from those of
the inputs, in some hundredths of a second for a hundred layers.
"""

from __future__ import annotations

import contextlib
import math
from typing import NamedTuple

import mxnet as mx
import numpy as np
from mxnet import gluon

from mxopt.core.recipe import Recipe
from mxopt.methods.precision.amp import Float32


class Traced(NamedTuple):
    """The sizes in a graph.

    Attributes:
        fixed: bytes of the inputs and outputs of all operators that do not depend on the batch.
        sample: bytes of them for each sample of the batch.
        shapes: shapes of the parameters, by name.
    """

    fixed: int
    sample: int
    shapes: dict[str, tuple]


def trace(net: gluon.Block, recipe: Recipe, numbers: Float32, arrays: list) -> Traced:
    """Return the sizes in the graph of a network and its loss.

    A loss that cannot be traced, because it depends on values, is left out.

    Args:
        net: network of hybrid blocks, hybridised or not; its parameters may have unknown shapes.
        recipe: the recipe, for its loss and its number of inputs.
        numbers: the precision.
        arrays: arrays with the shapes and dtypes of a batch of one sample, (1, ...) each.

    Raises:
        Exception: the network does not accept symbols.
    """
    inputs = [mx.sym.var(f"data{index}") for index in range(len(arrays))]
    output = net(*inputs[: recipe.inputs])
    with contextlib.suppress(Exception):
        output = recipe.loss(numbers.outputs(output), *inputs[recipe.inputs :])
    outputs = list(output) if isinstance(output, (list, tuple)) else [output]
    graph = mx.sym.Group(outputs).get_internals()
    # A parameter's symbol keeps the dtype that it had before a cast of the network.
    kinds = {name: parameter.dtype for name, parameter in net.collect_params().items()}
    (one, shapes), (two, _) = (_sizes(graph, arrays, kinds, samples) for samples in (1, 2))
    # Constants, such as a table of positions, do not grow with the batch.
    return Traced(max(0, 2 * one - two), two - one, shapes)


def output_like(block: gluon.Block, array: np.ndarray) -> np.ndarray:
    """Return an array with the shape of a block's output; its values are undefined.

    Args:
        block: a block that accepts symbols.
        array: input of the block, shape (1, ...).
    """
    _, [shape], _ = block(mx.sym.var("data0")).infer_shape(data0=array.shape)
    return np.empty(shape, array.dtype)


def _sizes(graph: mx.sym.Symbol, arrays: list, kinds: dict, samples: int) -> tuple[int, dict]:
    """Return the bytes of a graph's inputs and outputs, and the shapes of its arguments."""
    arguments = graph.list_arguments()
    data = {f"data{index}": array for index, array in enumerate(arrays)}
    data = {name: array for name, array in data.items() if name in arguments}
    shapes = {name: (samples, *array.shape[1:]) for name, array in data.items()}
    of_arguments, outputs, _ = graph.infer_shape(**shapes)
    kinds = {**kinds, **{name: array.dtype for name, array in data.items()}}
    _, types, _ = graph.infer_type(**{name: kinds[name] for name in arguments if name in kinds})
    weights = {*arguments, *graph.list_auxiliary_states()} - data.keys()
    total = sum(
        math.prod(shape) * np.dtype(kind).itemsize
        for name, shape, kind in zip(graph.list_outputs(), outputs, types)
        if name not in weights
    )
    return total, dict(zip(arguments, of_arguments))
