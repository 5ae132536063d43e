"""Samplers: the order of an epoch's samples, and which of them are this process's."""

from __future__ import annotations

import numpy as np
from mxnet import gluon

from mxopt.methods.data_parallel.parallel import Share


class EpochSampler(gluon.data.Sampler):
    """Visits every index once; shuffled anew in each epoch, the same way for the same seed.

    The next pass is that of ``epoch``, without the first ``skipped`` indices.
    """

    def __init__(self, length: int, shuffle: bool, seed: int):
        self._length, self._shuffle, self._seed = length, shuffle, seed
        self.epoch = self.skipped = 0

    def __iter__(self):
        order = epoch_order(self._length, self._shuffle, self._seed, self.epoch)[self.skipped :]
        self.epoch, self.skipped = self.epoch + 1, 0
        return iter(order.tolist())

    def __len__(self):
        return self._length


def epoch_order(length: int, shuffle: bool, seed: int, epoch: int) -> np.ndarray:
    """Return the order of the samples: int64, shape (length,)."""
    if not shuffle:
        return np.arange(length)
    return np.random.RandomState([seed, epoch]).permutation(length)


class ShareSampler(gluon.data.Sampler):
    """Draws a share of every batch; where that is nothing, the batch's first row."""

    def __init__(self, batches: gluon.data.BatchSampler, share: Share):
        self._batches, self._share = batches, share

    def __iter__(self):
        for rows in self._batches:
            yield self._share.of(rows) or rows[:1]

    def __len__(self):
        return len(self._batches)
