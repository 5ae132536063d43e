"""The input pipeline: where preprocessing runs, and where its result lives.

Four placements of one transform, chosen by ``plan.preprocess``:

============  =================  ===========================  ====================================
placement     runs on            result lives                 costs
============  =================  ===========================  ====================================
``lazy``      host, every epoch  nowhere, made for the batch  time in every epoch
``cached``    host, once         host memory                  host memory
``device``    device, once       the devices, spread evenly   device memory; no copies afterwards
``roundtrip`` device, once       host memory                  a copy back, then one for each batch
============  =================  ===========================  ====================================

A loader yields :class:`Batch`: one tuple of arrays for each context, images *and* labels. The
order of the samples depends only on seed and epoch, so placements can be compared at equal work.
A pass is over the loader's ``epoch`` and begins at its ``step``, for which nothing before is read;
after it they are the next epoch and 0.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import mxnet as mx
import numpy as np
from mxnet import gluon, nd

from mxopt import hardware, workers
from mxopt.errors import CapacityError, DataError, PlanError
from mxopt.parallel import WHOLE, Share, split_and_load, split_sizes
from mxopt.plan import Plan


class Batch(NamedTuple):
    """One step's data.

    Attributes:
        shards: for each context that has samples, a tuple of arrays (samples, ...) on it.
        size: samples of the step, those of other processes included.
        idle: whether none of them is this process's. It then holds another one's, so that the
            same graph can be run with a loss that counts nothing.
    """

    shards: list[tuple]
    size: int
    idle: bool = False


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


class HostLoader:
    """Batches assembled on the host, then copied to the contexts.

    By ``gluon.data.DataLoader`` in this process, or by ``plan.workers`` processes that are watched
    (:mod:`mxopt.workers`).

    Args:
        dataset: what is indexed.
        batchify: makes a batch's arrays of a list of samples; Gluon's own if not given.
        share: this process's part of every batch; all of it if not given.

    Raises:
        CapacityError: shared memory does not hold the batches that workers have under way.
    """

    def __init__(
        self,
        dataset,
        plan: Plan,
        contexts: list,
        shuffle: bool,
        batchify=None,
        share: Share = WHOLE,
    ):
        self._contexts, self._share, self._batch_size = contexts, share, plan.batch_size
        self.step = 0
        self._sampler = EpochSampler(len(dataset), shuffle, plan.seed)
        starts = range(0, len(dataset), plan.batch_size)
        self._sizes = [min(plan.batch_size, len(dataset) - start) for start in starts]
        batches = gluon.data.BatchSampler(self._sampler, plan.batch_size, "keep")
        self._batches = ShareSampler(batches, share)
        self._ahead = 2 * plan.workers if plan.prefetch is None else plan.prefetch
        if plan.workers:
            samples = min(plan.batch_size, len(dataset))
            workers.check_shared_memory(samples * sample_bytes(dataset[0]), self._ahead)
            self._workers = workers.Workers(dataset, plan.workers, batchify)
        else:
            self._workers = None
            self._loader = gluon.data.DataLoader(
                dataset, batch_sampler=self._batches, batchify_fn=batchify
            )

    @property
    def epoch(self) -> int:
        """The epoch that the next pass is, counted from 0; it decides the order."""
        return self._sampler.epoch

    @epoch.setter
    def epoch(self, number: int):
        self._sampler.epoch = number

    def __len__(self):
        return len(self._batches)

    def __iter__(self):
        step, self.step = self.step, 0
        self._sampler.skipped = step * self._batch_size
        working = self._workers
        loaded = working.load(self._batches, self._ahead) if working else self._loader
        for arrays, size in zip(loaded, self._sizes[step:]):
            idle = not self._share.of(range(size))
            yield Batch(split_and_load(arrays, self._contexts), size, idle)


class TakeRows:
    """Makes batches of row numbers: one ``take`` an array, instead of a slice a sample and a stack.

    Args:
        arrays: each of shape (samples, ...), on the host.
    """

    def __init__(self, arrays: tuple):
        self._arrays = arrays

    def __call__(self, rows: list[int]) -> list:
        """Return the arrays' rows, (len(rows), ...)."""
        index = nd.array(rows, dtype="int32")
        return [nd.take(array, index) for array in self._arrays]


class DeviceLoader:
    """Batches taken from arrays that live on the contexts; nothing is copied between them.

    Each context holds every n-th sample and draws its share of a batch from those. On one
    context the batches are those of :class:`HostLoader`.

    Args:
        resident: one tuple of arrays for each context.
        share: this process's part of every batch; each process holds all samples.

    Raises:
        PlanError: there are more contexts than samples in a batch.
    """

    def __init__(self, resident: list[tuple], plan: Plan, shuffle: bool, share: Share = WHOLE):
        self._resident, self._shuffle, self._seed = resident, shuffle, plan.seed
        self._share = share
        self._shares = split_sizes(plan.batch_size, len(resident))
        self.epoch = self.step = 0
        if not self._shares[-1]:
            raise PlanError(
                f"batch_size={plan.batch_size} gives some of {len(resident)} devices no sample; "
                "preprocess='device' needs at least one for each"
            )

    def __len__(self):
        return max(
            -(-len(arrays[0]) // share) for arrays, share in zip(self._resident, self._shares)
        )

    def __iter__(self):
        orders = [
            epoch_order(len(arrays[0]), self._shuffle, self._seed, self.epoch)
            for arrays in self._resident
        ]
        begin, self.epoch, self.step = self.step, self.epoch + 1, 0
        for step in range(begin, len(self)):
            shards, size = [], 0
            for arrays, order, share in zip(self._resident, orders, self._shares):
                rows = order[step * share : (step + 1) * share]
                size += len(rows)
                own = self._share.of(rows)
                if len(own):
                    shards.append(_taken(arrays, own))
            idle = not shards
            yield Batch(shards or [_taken(self._resident[0], orders[0][:1])], size, idle)


def _taken(arrays: tuple, rows) -> tuple:
    """Return the rows of arrays, on the context where they are."""
    index = nd.array(rows, ctx=arrays[0].context, dtype="int32")
    return tuple(nd.take(array, index) for array in arrays)


def make_loader(
    dataset, transform, plan: Plan, contexts: list, shuffle: bool = True, share: Share = WHOLE
):
    """Return the loader that the plan's placement asks for.

    Args:
        dataset: raw samples, each a tuple of arrays or numbers, as ``gluon.data.Dataset`` gives
            them.
        transform: turns one raw sample's arrays into the tuple that is batched; it must run on
            whichever context its arrays are on.
        contexts: where the batches are wanted.
        shuffle: whether each epoch has an order of its own.
        share: this process's part of every batch.

    Returns:
        A :class:`HostLoader` or :class:`DeviceLoader`: an iterable of :class:`Batch`, one pass
        an epoch, every sample once, the last batch as small as it comes.

    Raises:
        DataError: the data set is empty, or samples that are to be kept differ in shape.
        CapacityError: the samples to be kept do not fit into memory.
        PlanError: as for :class:`DeviceLoader`.
    """
    if not len(dataset):
        raise DataError("the data set is empty: a loader needs at least one sample")
    if plan.preprocess == "lazy":
        return HostLoader(dataset.transform(transform), plan, contexts, shuffle, share=share)
    check_memory(dataset, transform, plan, contexts)
    if plan.preprocess == "cached":
        [arrays] = preprocess(dataset, transform, [mx.cpu()])
    elif plan.preprocess == "roundtrip":
        arrays = _to_host(preprocess(dataset, transform, contexts))
    else:
        return DeviceLoader(preprocess(dataset, transform, contexts), plan, shuffle, share)
    if plan.workers:
        # Worker processes hand over what Gluon's own batchify puts into shared memory.
        return HostLoader(gluon.data.ArrayDataset(*arrays), plan, contexts, shuffle, share=share)
    rows = gluon.data.SimpleDataset(range(len(dataset)))
    return HostLoader(rows, plan, contexts, shuffle, TakeRows(arrays), share)


def preprocess(dataset, transform, contexts: list) -> list[tuple]:
    """Transform every sample on the contexts and keep the results there.

    Sample ``i`` goes to context ``i % len(contexts)``.

    Returns:
        For each context a tuple of arrays (its samples, ...), filled in place, so that memory
        holds the result once.

    Raises:
        DataError: a sample's shape differs from the first one's.
    """
    resident: list = [None] * len(contexts)
    counts = split_sizes(len(dataset), len(contexts))
    for number in range(len(dataset)):
        device, row = number % len(contexts), number // len(contexts)
        sample = transform(*(_on(contexts[device], part) for part in dataset[number]))
        if resident[device] is None:
            resident[device] = tuple(
                nd.empty((counts[device], *shape), ctx=contexts[device], dtype=dtype)
                for shape, dtype in map(_shape_and_dtype, sample)
            )
        for kept, part in zip(resident[device], sample):
            shape, _ = _shape_and_dtype(part)
            if kept.shape[1:] != shape:
                raise DataError(
                    f"sample {number} has shape {shape} after its transform and others have "
                    f"{kept.shape[1:]}; samples that are kept must be of one shape"
                )
            kept[row] = part
    return [arrays for arrays in resident if arrays is not None]


def memory_needed(dataset, transform) -> int:
    """Return the bytes that all samples take after the transform, judged by the first one."""
    return len(dataset) * sample_bytes(transform(*dataset[0]))


def sample_bytes(sample) -> int:
    """Return the bytes of a sample, an array or a tuple of them."""
    parts = map(_shape_and_dtype, sample if isinstance(sample, tuple) else (sample,))
    return sum(math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in parts)


def check_memory(dataset, transform, plan: Plan, contexts: list) -> None:
    """Make sure that the samples fit where the plan's placement keeps them.

    Raises:
        CapacityError: they do not; the message gives what is needed and what is free.
    """
    needed = memory_needed(dataset, transform)
    on_gpu = plan.preprocess == "device" and contexts[0].device_type == "gpu"
    if on_gpu:
        needed = -(-needed // len(contexts))
        places = [(str(c), mx.context.gpu_memory_info(c.device_id)[0]) for c in contexts]
    else:
        places = [("the host", hardware.memory_available())]
    for place, free in places:
        if needed > free:
            raise CapacityError(
                f"preprocess={plan.preprocess!r} would keep {needed / 2**20:,.0f} MiB on {place}, "
                f"which has {free / 2**20:,.0f} MiB free; take preprocess='lazy', smaller images, "
                "or more devices"
            )


def _on(context, part):
    """Copy an array to a context; a plain number, as some data sets give labels, stays one."""
    return part.as_in_context(context) if isinstance(part, nd.NDArray) else part


def _shape_and_dtype(part) -> tuple[tuple, type]:
    array = part if isinstance(part, nd.NDArray) else np.asarray(part)
    return array.shape, array.dtype


def _to_host(resident: list[tuple]) -> tuple:
    """Copy arrays spread over contexts back, in the order of the data set."""
    whole = []
    for parts in zip(*resident):
        length = sum(len(part) for part in parts)
        array = nd.empty((length, *parts[0].shape[1:]), ctx=mx.cpu(), dtype=parts[0].dtype)
        for device, part in enumerate(parts):
            array[device :: len(parts)] = part.as_in_context(mx.cpu())
        whole.append(array)
    return tuple(whole)
