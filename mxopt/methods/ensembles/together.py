"""Several trained networks as one, which averages their probabilities."""

from __future__ import annotations

from collections.abc import Sequence

from mxnet import gluon, nd

from mxopt.core.errors import PlanError

# Added to probabilities before their logarithm, so that it stays finite.
_TINY = 1e-30


class Together(gluon.Block):
    """Networks for the same classes, whose probabilities are averaged.

    The output is the logarithm of the mean. It can take the place of a network's scores: its
    softmax is the mean, and its largest entry that of the mean.

    Args:
        nets: trained networks; of several outputs the first one counts.
        axis: axis of the classes in the outputs.

    Raises:
        PlanError: there is no network.
    """

    def __init__(self, nets: Sequence[gluon.Block], axis: int = 1):
        super().__init__()
        if not nets:
            raise PlanError("an ensemble needs at least one network")
        self._nets, self._axis = list(nets), axis
        for net in self._nets:
            self.register_child(net)

    def forward(self, *inputs):
        """Return the logarithm of the mean probabilities, in the shape of one network's scores."""
        outputs = [net(*inputs) for net in self._nets]
        scores = [out[0] if isinstance(out, (list, tuple)) else out for out in outputs]
        total = nd.add_n(*(nd.softmax(each, axis=self._axis) for each in scores))
        return nd.log(total / len(scores) + _TINY)
