"""Averaged weights: evaluate the mean of the weights of the last steps.

With small batches the weights fluctuate around a minimum, and their mean is closer to it (Polyak
and Juditsky, 1992; over checkpoints, Vaswani et al., 2017, section 6.1; over steps, Izmailov et
al., 2018). ``plan.swa_start`` is the epoch after which the mean starts; it may be a fraction.
Training continues with the weights themselves; validation, test and ``on_epoch`` use the mean.

When to use it: the validation curve fluctuates, or the best epoch would be selected. What it costs:
one more copy of the weights and a pass over them in every step. Batch statistics are not averaged.
"""

from __future__ import annotations

import contextlib

from mxnet import gluon


class Average:
    """The mean of a network's weights over the steps at which :meth:`add` was called.

    Args:
        parameters: parameters of the network; those without gradients are not averaged.

    Attributes:
        means: the means, float32, on the first device.
        steps: number of steps in the means.
    """

    def __init__(self, parameters: gluon.ParameterDict):
        self._parameters = [p for p in parameters.values() if p.grad_req != "null"]
        self.means: list = []
        self.steps = 0

    def add(self) -> None:
        """Add the current weights to the mean, which is kept in float32."""
        self.steps += 1
        weights = [p.list_data()[0].astype("float32", copy=False) for p in self._parameters]
        if self.steps == 1:
            self.means = [weight.copy() for weight in weights]
            return
        for mean, weight in zip(self.means, weights):
            mean += (weight - mean) / self.steps

    def put(self) -> None:
        """Replace the weights by their mean; does nothing before the first step."""
        for parameter, mean in zip(self._parameters, self.means):
            parameter.set_data(mean.astype(parameter.dtype, copy=False))

    @contextlib.contextmanager
    def in_place(self):
        """Replace the weights by their mean during a ``with`` block."""
        weights = [p.list_data()[0].copy() for p in self._parameters] if self.steps else []
        self.put()
        try:
            yield
        finally:
            for parameter, weight in zip(self._parameters, weights):
                parameter.set_data(weight)
