"""SGD and Adam whose updates are operators of :mod:`mxopt.kernels`.

Both are registered with MXNet under their names in lower case, so that
``gluon.Trainer(parameters, "fusedadam")`` takes one as well.
"""

from __future__ import annotations

import math
import os

import mxnet as mx
from mxnet import nd

from mxopt import kernels
from mxopt.core.errors import DeviceError

# Parameters that one call updates, if MXNet's variable does not say otherwise: all of them.
ALL = 1_000_000


class _Fused:
    """What both optimizers have in common; MXNet's class is behind it among their bases."""

    def __init__(self, **options):
        super().__init__(**options)
        kernels.load()
        self.aggregate_num = int(os.environ.get("MXNET_OPTIMIZER_AGGREGATION_SIZE", ALL))

    def create_state(self, index, weight):
        """Return the states of a parameter, as MXNet's optimizer makes them."""
        if kernels.kind(weight) != kernels.KIND:
            raise DeviceError(
                f"a weight of shape {weight.shape} is {', '.join(kernels.kind(weight))}; fused "
                "updates take float32, default (dense), cpu: use MXNet's own optimizer"
            )
        return super().create_state(index, weight)

    def update_multi_precision(self, index, weight, grad, state):
        """Enqueue the update of one parameter, or of a list of them."""
        if not isinstance(index, (list, tuple)):
            index, weight, grad, state = [index], [weight], [grad], [state]
        self._update_count(index)
        self._enqueue(index, weight, grad, state)

    update = update_multi_precision

    def _call(self, operator, index, arrays, rates, **settings):
        """Call an operator; ``arrays`` has a tuple for each parameter, the weight first."""
        weights = [weight for weight, *_ in arrays]
        for weight in weights:
            if weight.ndim > 1:
                # A prediction leaves it in a layout of oneDNN, which only MXNet's operators write.
                nd.reshape(weight, shape=weight.shape, out=weight)
        operator(
            *(array for each in arrays for array in each),
            out=weights,
            rates=_text(rates),
            decays=_text(self._get_wds(index)),
            rescale=self.rescale_grad,
            clip=self.clip_gradient or -1,
            **settings,
        )


def _text(numbers) -> str:
    return " ".join(repr(float(number)) for number in numbers)


@mx.optimizer.register
class FusedSGD(_Fused, mx.optimizer.SGD):
    """``mxnet.optimizer.SGD`` for dense float32 weights on a CPU.

    Args:
        **options: as ``mxnet.optimizer.SGD`` takes them.

    Raises:
        DeviceError: the operators cannot be compiled here, or a weight is another kind of array.
    """

    def _enqueue(self, index, weights, gradients, states):
        moments = [[] if momentum is None else [momentum] for momentum in states]
        arrays = [(w, g, *more) for w, g, more in zip(weights, gradients, moments)]
        self._call(nd.mxopt_sgd_updates, index, arrays, self._get_lrs(index),
                   momentum=self.momentum)  # fmt: skip


@mx.optimizer.register
class FusedAdam(_Fused, mx.optimizer.Adam):
    """``mxnet.optimizer.Adam`` for dense float32 weights on a CPU.

    Args:
        **options: as ``mxnet.optimizer.Adam`` takes them.

    Raises:
        DeviceError: as :class:`FusedSGD`.
    """

    def _enqueue(self, index, weights, gradients, states):
        arrays = [(w, g, *both) for w, g, both in zip(weights, gradients, states)]
        steps = [self._index_update_count[each] for each in index]
        rates = [rate * self._correction(step) for rate, step in zip(self._get_lrs(index), steps)]
        self._call(nd.mxopt_adam_updates, index, arrays, rates, beta1=self.beta1,
                   beta2=self.beta2, epsilon=self.epsilon)  # fmt: skip

    def _correction(self, step: int) -> float:
        """Return the factor for means that began at 0 (Kingma and Ba, 2015, section 3)."""
        return math.sqrt(1 - self.beta2**step) / (1 - self.beta1**step)


# By the name of MXNet's optimizer.
OPTIMIZERS = {"sgd": FusedSGD, "adam": FusedAdam}
