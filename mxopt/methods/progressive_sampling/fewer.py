"""How many samples an epoch has, and a loader that ends after so many."""

from __future__ import annotations

import itertools
import math

from mxopt.methods.input_pipeline.wrapped import Wrapped


def share(epoch: int, start: float, epochs: int) -> float:
    """Return the share of the samples in an epoch: ``start`` at first, and then more and more.

    >>> [share(epoch, 0.25, 3) for epoch in range(5)]
    [0.25, 0.5, 0.75, 1.0, 1.0]

    Args:
        epoch: number of the epoch, from 0.
        start: share in the first epoch.
        epochs: number of the first epoch with all samples.
    """
    return min(1.0, start + (1 - start) * epoch / epochs)


class FirstBatches(Wrapped):
    """The first batches of a loader.

    Args:
        loader: a loader of :mod:`mxopt.methods.input_pipeline`.
        part: share of its batches, rounded up.
    """

    def __init__(self, loader, part: float):
        super().__init__(loader)
        self._count = math.ceil(part * len(loader))

    def __len__(self):
        return self._count

    def __iter__(self):
        return itertools.islice(self._loader, self._count - self._loader.step)
