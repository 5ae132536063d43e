"""The moving average of a network's weights, with the warm-up of timm's ``ModelEmaV3``."""

from mxnet import gluon, nd

from mxopt.methods.weight_averaging.averaging import Average


def warm_decay(decay: float, step: int) -> float:
    """Return the decay of an update: ``min(decay, 1 - (1 + step) ** (-2 / 3))``.

    The first updates are thus a mean over few weights, and the initial ones leave no trace. This
    is the warm-up of ``ModelEmaV3`` in timm, with its defaults gamma = 1 and power = 2/3.

    Args:
        decay: of long runs, in [0, 1); ``0.5 ** (1 / h)`` for Composer's half-life of h updates.
        step: updates done before, from 0.
    """
    return min(decay, 1 - (1 + step) ** (-2 / 3))


def move(averages: list[nd.NDArray], weights: list[nd.NDArray], decay: float) -> None:
    """Move averages towards weights in place: ``average = decay average + (1 - decay) weight``.

    Args:
        averages: float32, changed in place.
        weights: of the same shapes, float32.
        decay: 0 copies the weights, 1 changes nothing.
    """
    for average, weight in zip(averages, weights):
        average += (1 - decay) * (weight - average)


class MovingAverage(Average):
    """The moving average of the weights of a network.

    Args:
        parameters: of the network; those without gradients are left alone.
        decay: see :func:`warm_decay`.
    """

    def __init__(self, parameters: gluon.ParameterDict, decay: float):
        super().__init__(parameters)
        self.decay = decay

    def add(self) -> None:
        """Take the weights as they are now into the average, which is kept in float32."""
        weights = [p.list_data()[0].astype("float32", copy=False) for p in self._parameters]
        if not self.steps:
            self.means = [weight.copy() for weight in weights]
        move(self.means, weights, warm_decay(self.decay, self.steps))
        self.steps += 1
