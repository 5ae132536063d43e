"""Averaged weights: judge the mean of the last steps instead of the last one.

With small batches the weights jump about a good place; their mean lies nearer to it than any of
them (Polyak and Juditsky, 1992; over checkpoints, Vaswani et al., 2017, section 6.1; over steps,
Izmailov et al., 2018). ``plan.swa_start`` starts the mean after so many epochs, fractions
allowed. Training goes on with the weights as they are; validation, test and whoever gets the
network see the mean.

When to use it: the validation curve is jagged, or the best epoch would be picked. What it costs:
one more copy of the weights and a pass over them in every step. Batch statistics are not averaged.
"""

from __future__ import annotations

import contextlib

from mxnet import gluon


class Average:
    """The mean of a network's weights over the steps at which :meth:`add` was called.

    Args:
        parameters: of the network; those without gradients are left alone.
    """

    def __init__(self, parameters: gluon.ParameterDict):
        self._parameters = [p for p in parameters.values() if p.grad_req != "null"]
        self.means: list = []
        self.steps = 0

    def add(self) -> None:
        """Take the weights as they are now into the mean, which is kept in float32."""
        self.steps += 1
        weights = [p.list_data()[0].astype("float32", copy=False) for p in self._parameters]
        if self.steps == 1:
            self.means = [weight.copy() for weight in weights]
            return
        for mean, weight in zip(self.means, weights):
            mean += (weight - mean) / self.steps

    def put(self) -> None:
        """Replace the weights by their mean; before the first step there is none to put."""
        for parameter, mean in zip(self._parameters, self.means):
            parameter.set_data(mean.astype(parameter.dtype, copy=False))

    @contextlib.contextmanager
    def in_place(self):
        """Replace the weights by their mean for the time of a ``with`` block."""
        weights = [p.list_data()[0].copy() for p in self._parameters] if self.steps else []
        self.put()
        try:
            yield
        finally:
            for parameter, weight in zip(self._parameters, weights):
                parameter.set_data(weight)
