"""The moving average of a network's weights, with the warm-up of timm's ``ModelEmaV3``."""

from mxnet import gluon, nd

from mxopt.methods.weight_averaging.averaging import Average


def warm_decay(decay: float, step: int) -> float:
    """Return the decay of an update: ``min(decay, 1 - (1 + step) ** (-2 / 3))``.

    At first the average is thus over few updates, and the initial weights have no weight in it.
    This is the warm-up of ``ModelEmaV3`` in timm, with its defaults gamma = 1 and power = 2/3.

    Args:
        decay: decay after the warm-up, in [0, 1); ``0.5 ** (1 / h)`` for a half-life of h updates
            as in Composer.
        step: number of updates before this one.
    """
    return min(decay, 1 - (1 + step) ** (-2 / 3))


def move(averages: list[nd.NDArray], weights: list[nd.NDArray], decay: float) -> None:
    """Move averages towards weights in place: ``average = decay average + (1 - decay) weight``.

    Args:
        averages: float32 arrays, changed in place.
        weights: float32 arrays of the same shapes.
        decay: 0 copies the weights, 1 changes nothing.
    """
    for average, weight in zip(averages, weights):
        # One operator, without copies: the step of SGD along the gradient average - weight.
        nd.sgd_update(average, weight, lr=1 - decay, wd=1.0, rescale_grad=-1.0, out=average)


class MovingAverage(Average):
    """The moving average of the weights of a network.

    Args:
        parameters: parameters of the network; those without gradients are not averaged.
        decay: decay after the warm-up (:func:`warm_decay`).
    """

    def __init__(self, parameters: gluon.ParameterDict, decay: float):
        super().__init__(parameters)
        self.decay = decay

    def add(self) -> None:
        """Update the average, which is kept in float32, with the current weights."""
        weights = [p.list_data()[0].astype("float32", copy=False) for p in self._parameters]
        if not self.steps:
            self.means = [weight.copy() for weight in weights]
        move(self.means, weights, warm_decay(self.decay, self.steps))
        self.steps += 1
