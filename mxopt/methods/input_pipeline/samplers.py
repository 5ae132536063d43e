"""Samplers: the order of an epoch's samples, and the part of this process."""

from __future__ import annotations

import numpy as np
from mxnet import gluon

from mxopt.methods.data_parallel.parallel import Share


class EpochSampler(gluon.data.Sampler):
    """Yields every index once, in another order in each epoch if shuffled.

    Args:
        length: number of samples.
        shuffle: whether to shuffle.
        seed: seed of the orders.

    Attributes:
        shuffled: as ``shuffle``.
        epoch: number of the next epoch, from 0.
        skipped: number of its first indices to skip.
    """

    def __init__(self, length: int, shuffle: bool, seed: int):
        self._length, self.shuffled, self._seed = length, shuffle, seed
        self.epoch = self.skipped = 0

    def __iter__(self):
        order = epoch_order(self._length, self.shuffled, self._seed, self.epoch)[self.skipped :]
        self.epoch, self.skipped = self.epoch + 1, 0
        return iter(order.tolist())

    def __len__(self):
        return self._length


def epoch_order(length: int, shuffle: bool, seed: int, epoch: int) -> np.ndarray:
    """Return the order of an epoch's samples: int64, shape (length,).

    Args:
        length: number of samples.
        shuffle: whether to shuffle; if not, the order is that of the data set.
        seed: seed of the orders.
        epoch: number of the epoch, from 0.
    """
    if not shuffle:
        return np.arange(length)
    return np.random.RandomState([seed, epoch]).permutation(length)


class ShareSampler(gluon.data.Sampler):
    """Yields a process's part of every batch; the batch's first row if that part is empty.

    Args:
        batches: sampler of whole batches.
        share: the process's part.
    """

    def __init__(self, batches: gluon.data.BatchSampler, share: Share):
        self._batches, self._share = batches, share

    def __iter__(self):
        for rows in self._batches:
            yield self._share.of(rows) or rows[:1]

    def __len__(self):
        return len(self._batches)
