"""Rewriting of a network into one that computes the same faster on a CPU.

``optimize(net, example)`` traces a hybrid block into MXNet's graph, applies the rewrites of
``USUAL`` for the shapes of the example, and returns a block with the new graph. The parameters are
the same objects, so training one block trains the other. The outputs agree up to rounding: every
rewrite is an identity, not an approximation.

>>> fast = optimize(net, nd.zeros((4, 3, 240, 240)))            # doctest: +SKIP
>>> print(fast.report)                                          # doctest: +SKIP
taps that see only padding left out: 2 (3 x 3 dilated by 24 at 30 x 30: 22% of its work)

When to use it: on a CPU, with samples of one shape. What it costs: one trace and one comparison of
the outputs of both networks. Samples of another shape are computed by the original network.
"""

from __future__ import annotations

import json

from mxnet import autograd, gluon, nd

from mxopt import kernels
from mxopt.core.errors import PlanError
from mxopt.data import ndarray_memory
from mxopt.kernels.operators import check_written
from mxopt.methods.graph_rewrites import KERNELS, NAMES, USUAL
from mxopt.methods.graph_rewrites.dead_taps import unseen_taps
from mxopt.methods.graph_rewrites.fewer_products import fewer_products
from mxopt.methods.graph_rewrites.fold_batch_norm import fixed_norm
from mxopt.methods.graph_rewrites.graph import KERNEL, flat, rewrite, trace
from mxopt.methods.graph_rewrites.inverted_residual import fused_block
from mxopt.methods.graph_rewrites.pad_channels import whole_blocks
from mxopt.methods.graph_rewrites.plain_inputs import plain_inputs
from mxopt.methods.graph_rewrites.plain_layout import plain_layout
from mxopt.methods.graph_rewrites.pool_first import pool_first
from mxopt.methods.graph_rewrites.pooled_convolution import pooled_convolution
from mxopt.methods.graph_rewrites.relu6 import bounded_relu
from mxopt.methods.graph_rewrites.resize_by_products import resize_by_products

TOLERANCE = 1e-4
_CHANGES = (
    fixed_norm,
    fused_block,
    fewer_products,
    plain_layout,
    pooled_convolution,
    unseen_taps,
    whole_blocks,
    bounded_relu,
    pool_first,
    resize_by_products,
)
REWRITES = dict(zip(NAMES, _CHANGES))


class Optimized(gluon.HybridBlock):
    """The result of :func:`optimize`, with the inputs and outputs of the original network.

    Args:
        original: the network, which has the parameters.
        rewritten: block with the rewritten graph.
        shapes: shapes of the inputs that it was rewritten for, without the samples.
        changes: descriptions of the changed nodes, for each kind of change.
        adds: whether gradients may be added to.
        kernels: whether operators of :mod:`mxopt.kernels` read the parameters.
        **kwargs: arguments of ``gluon.HybridBlock``.

    Attributes:
        original: the network.
        rewritten: block with the rewritten graph.
        changes: descriptions of the changed nodes, for each kind of change.
    """

    def __init__(self, original, rewritten, shapes, changes, adds=True, kernels=False, **kwargs):
        super().__init__(**kwargs)
        self.original, self.rewritten = original, rewritten
        self.changes, self._shapes = changes, shapes
        parameters = list(original.collect_params().values())
        self._written = [] if adds else parameters
        self._read_by_kernels = parameters if kernels else []
        self._predicted = False

    @property
    def report(self) -> str:
        """Summary of the changes, one line for each kind."""
        lines = [f"{name}: {len(found)} ({found[0]})" for name, found in self.changes.items()]
        return "\n".join(lines) or "nothing to change"

    def collect_params(self, select=None):
        """Return the parameters of the original network; the rewritten graph trains no others."""
        return self.original.collect_params(select)

    def _collect_params_with_prefix(self, prefix=""):
        # Weights are saved and loaded under the names of the original network.
        return self.original._collect_params_with_prefix(prefix)

    def forward(self, *inputs):
        """Compute the output, with the original network for shapes that differ or are unknown.

        A prediction leaves weights in a layout of oneDNN, and a kernel would be given a converted
        copy in every step. So they are put back before the next training step.

        Raises:
            PlanError: gradients are added to, and the network was rewritten with ``adds=False``.
        """
        check_written(self._written, "call optimize(..., adds=True) in place of adds=False")
        if not autograd.is_training():
            self._predicted = True
        elif self._predicted:
            self._predicted = False
            _put_back(self._read_by_kernels)
        same = [getattr(x, "shape", ())[1:] for x in inputs] == self._shapes
        return (self.rewritten if same else self.original)(*inputs)


def optimize(
    net: gluon.HybridBlock, *example: nd.NDArray, rewrites=None, adds: bool = True
) -> Optimized:
    """Return a network that computes the same with the same parameters.

    Args:
        net: an initialised network of hybrid blocks only.
        *example: inputs with the shapes of later inputs, except for the number of samples.
        rewrites: names in ``REWRITES``; those in ``USUAL`` if not given.
        adds: whether gradients may be added to (``grad_req="add"``), as when those of several
            batches are summed. If not, kernels read parameters without a copy.

    Raises:
        DeviceError: one of ``KERNELS`` is among them, and there is no compiler for it.
        PlanError: a rewrite does not exist; the network cannot be traced; or the outputs differ by
            more than 1e-4 of the largest one, which would be a defect of a rewrite.
    """
    chosen = list(USUAL if rewrites is None else rewrites)
    for name in chosen:
        if name not in REWRITES:
            raise PlanError(f"no rewrite is called {name!r}; there are {', '.join(REWRITES)}")
    if set(chosen) & set(KERNELS):
        kernels.load()
    with autograd.predict_mode():
        before = flat(net(*example))  # also infers unknown shapes of parameters
    graph, inputs, shapes = trace(net, *example)
    changes = {}
    for name in (name for name in REWRITES if name in chosen):
        graph, found = rewrite(graph, shapes, REWRITES[name], adds)
        changes.update(found)
    graph, found = rewrite(graph, shapes, plain_inputs, adds)
    changes.update(found)
    optimized = with_graph(net, example, graph, inputs, changes, adds)
    with autograd.predict_mode():
        after = flat(optimized(*example))
    for old, new in zip(before, after):
        difference = float((old - new).abs().max().asscalar())
        if not difference <= TOLERANCE * max(1.0, float(old.abs().max().asscalar())):
            raise PlanError(
                f"the rewritten {type(net).__name__} differs by {difference:.2g}; leave out "
                f"rewrites ({', '.join(chosen)}) until it does not"
            )
    return optimized


def with_graph(net: gluon.HybridBlock, example, graph, inputs, changes, adds=True) -> Optimized:
    """Return a block that computes another graph with a network's parameters.

    Args:
        net: the network.
        example: inputs, of the shapes that the graph is for.
        graph: the symbol.
        inputs: the variables of its inputs.
        changes: descriptions of the changed nodes, for each kind of change.
        adds: whether gradients may be added to.
    """
    parameters = gluon.ParameterDict(shared=net.collect_params())
    parameters.update(net.collect_params())
    block = gluon.SymbolBlock(graph, inputs, params=parameters)
    shapes = [array.shape[1:] for array in example]
    by_kernels = any(node["op"].startswith(KERNEL) for node in json.loads(graph.tojson())["nodes"])
    return Optimized(net, block, shapes, changes, adds, by_kernels)


def _put_back(parameters) -> None:
    """Put parameters back into MXNet's own layout, which is that of a view of their memory."""
    for parameter in parameters:
        for array in parameter.list_data():
            ndarray_memory.view(array)
