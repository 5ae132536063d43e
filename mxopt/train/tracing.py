"""Tracing: how large everything in a network's graph is, without computing it.

A hybrid block called with symbols returns its graph, and MXNet infers from the shapes of the inputs
those of all that is in it: some hundredths of a second for a hundred layers.
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
        fixed: bytes that inputs and outputs of all operators take whatever the batch; ``sample``:
            for each sample of it.
        shapes: of the parameters, by name.
    """

    fixed: int
    sample: int
    shapes: dict[str, tuple]


def trace(net: gluon.Block, recipe: Recipe, numbers: Float32, arrays: list) -> Traced:
    """Return the sizes in the graph of a network and its loss.

    A loss that cannot be traced, because it looks at values, is left out.

    Args:
        net: of hybrid blocks, hybridised or not; its parameters may wait for their shapes.
        recipe: its loss, and how many of the arrays the network takes.
        numbers: the precision.
        arrays: like those of a batch of one sample, (1, ...) each.

    Raises:
        Exception: whatever a network does that does not take symbols.
    """
    inputs = [mx.sym.var(f"data{index}") for index in range(len(arrays))]
    output = net(*inputs[: recipe.inputs])
    with contextlib.suppress(Exception):
        output = recipe.loss(numbers.outputs(output), *inputs[recipe.inputs :])
    outputs = list(output) if isinstance(output, (list, tuple)) else [output]
    graph = mx.sym.Group(outputs).get_internals()
    (one, shapes), (two, _) = (_sizes(graph, arrays, samples) for samples in (1, 2))
    # Constants, such as a table of positions, are there once.
    return Traced(max(0, 2 * one - two), two - one, shapes)


def output_like(block: gluon.Block, array: np.ndarray) -> np.ndarray:
    """Return an array of the shape that a block makes of one of this shape, (1, ...)."""
    _, [shape], _ = block(mx.sym.var("data0")).infer_shape(data0=array.shape)
    return np.empty(shape, array.dtype)


def _sizes(graph: mx.sym.Symbol, arrays: list, samples: int) -> tuple[int, dict]:
    """Return the bytes of a graph's inputs and outputs, and the shapes of its arguments."""
    arguments = graph.list_arguments()
    data = {f"data{index}": array for index, array in enumerate(arrays)}
    data = {name: array for name, array in data.items() if name in arguments}
    shapes = {name: (samples, *array.shape[1:]) for name, array in data.items()}
    of_arguments, outputs, _ = graph.infer_shape(**shapes)
    _, types, _ = graph.infer_type(**{name: array.dtype for name, array in data.items()})
    weights = {*arguments, *graph.list_auxiliary_states()} - data.keys()
    total = sum(
        math.prod(shape) * np.dtype(kind).itemsize
        for name, shape, kind in zip(graph.list_outputs(), outputs, types)
        if name not in weights
    )
    return total, dict(zip(arguments, of_arguments))
