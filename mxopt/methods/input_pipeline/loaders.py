"""Loaders, which yield the batches of an epoch from the host or from the devices."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import NamedTuple

import mxnet as mx
from mxnet import gluon, nd

from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan
from mxopt.data import ndarray_memory as host
from mxopt.methods.data_parallel.parallel import WHOLE, Share, split_and_load, split_sizes
from mxopt.methods.input_pipeline import gluon_workers
from mxopt.methods.input_pipeline.samplers import EpochSampler, ShareSampler, epoch_order
from mxopt.methods.input_pipeline.space import check_shared_memory, loaded_ahead, under_way
from mxopt.methods.shared_memory_loader import workers


class Batch(NamedTuple):
    """The data of one step.

    Attributes:
        shards: for each context that has samples, a tuple of arrays (samples, ...) on it.
        size: number of samples (or tokens) of the step, in all processes.
        idle: whether this process has no samples in the step. The batch then has a sample of
            another process, so that the same graph can run with a loss multiplied by 0.
    """

    shards: list[tuple]
    size: int
    idle: bool = False


class HostLoader:
    """Loads batches on the host and copies them to the contexts.

    Batches are made by ``gluon.data.DataLoader`` with Gluon's own batchify functions, or with
    ``loader="shared_memory"`` by :mod:`mxopt.methods.shared_memory_loader`.

    Args:
        dataset: data set, indexed by sample numbers.
        plan: batch size, seed, loader, number of workers and prefetching.
        contexts: contexts to copy the batches to.
        shuffle: whether each epoch has another order.
        batchify: function that makes a batch's arrays from a list of samples, in this process;
            that of the plan's loader if not given.
        share: this process's part of every batch; all of it if not given.
        finish: function applied to the arrays of each context, on that context; None for none.
            One that ``reads_at_once`` may be given workers' shared memory, which is overwritten
            after it has returned.

    Attributes:
        epoch: number of the next epoch, from 0; it determines the order.
        step: number of its first batches to skip.

    Raises:
        CapacityError: shared memory is too small for the batches of the workers.
    """

    def __init__(
        self,
        dataset,
        plan: Plan,
        contexts: list,
        shuffle: bool,
        batchify=None,
        share: Share = WHOLE,
        finish: Callable | None = None,
    ):
        self._contexts, self._share, self._finish = contexts, share, finish
        self._batch_size, self.step = plan.batch_size, 0
        self._sampler = EpochSampler(len(dataset), shuffle, plan.seed)
        starts = range(0, len(dataset), plan.batch_size)
        self._sizes = [min(plan.batch_size, len(dataset) - start) for start in starts]
        self._batches = self._batched(self._sampler)
        if plan.num_workers:
            samples = min(plan.batch_size, len(dataset))
            check_shared_memory(samples * host.sample_bytes(dataset[0]), under_way(plan))
        self._load = self._loading(dataset, plan, batchify)

    def _loading(self, dataset, plan: Plan, batchify) -> Callable:
        """Return a function that returns the arrays of an epoch's batches, one after the other."""
        batches, count, ahead = self._batches, plan.num_workers, loaded_ahead(plan)
        ours = plan.loader == "shared_memory"
        # From page-locked memory a GPU copies by itself, while the program goes on.
        pinned = {}
        if self._contexts[0].device_type == "gpu":
            pinned = {"pin_memory": True, "pin_device_id": plan.device_indices[0]}
        if count and ours:
            working, finish = workers.Workers(dataset, count), self._finish
            if not getattr(finish, "reads_at_once", False) or self._contexts != [mx.cpu()]:
                return lambda: working.load(batches, ahead, following=self._following())
            self._finish = None  # done by the loader
            return lambda: working.load(
                batches, ahead, lambda batch: finish(*batch), self._following()
            )
        if count:
            loader = gluon_workers.GluonWorkers(dataset, batches, count, ahead, **pinned)
        else:
            batchify = batchify or (host.batchify if ours else None)
            loader = gluon.data.DataLoader(
                dataset, batch_sampler=batches, batchify_fn=batchify, **pinned
            )
        return lambda: iter(loader)

    def _batched(self, sampler: EpochSampler) -> ShareSampler:
        """Return a sampler of this process's part of the batches of an epoch."""
        return ShareSampler(gluon.data.BatchSampler(sampler, self._batch_size, "keep"), self._share)

    def _following(self) -> Iterator:
        """Yield the sample numbers of the next epoch's batches if it is a training epoch.

        The other splits may not be read again, and what was loaded of them would be lost.
        """
        if self._sampler.shuffled:
            yield from self._batched(copy.copy(self._sampler))  # its epoch is not begun

    @property
    def epoch(self) -> int:
        """The number of the next epoch, from 0; it determines the order."""
        return self._sampler.epoch

    @epoch.setter
    def epoch(self, number: int):
        self._sampler.epoch = number

    def __len__(self):
        return len(self._batches)

    def __iter__(self):
        step, self.step = self.step, 0
        self._sampler.skipped = step * self._batch_size
        for arrays, size in zip(self._load(), self._sizes[step:]):
            idle = not self._share.of(range(size))
            shards = split_and_load(arrays, self._contexts)
            yield Batch(_finished(shards, self._finish), size, idle)


class DeviceLoader:
    """Takes batches from arrays on the contexts; nothing is copied between contexts.

    Each of n contexts has every n-th sample, and its part of a batch comes from those. On one
    context the batches equal those of :class:`HostLoader`.

    Args:
        resident: one tuple of arrays for each context.
        plan: batch size and seed.
        shuffle: whether each epoch has another order.
        share: this process's part of every batch; each process has all samples.
        finish: function applied to the arrays of each context, on that context; None for none.

    Attributes:
        epoch: number of the next epoch, from 0; it determines the order.
        step: number of its first batches to skip.

    Raises:
        PlanError: there are more contexts than samples in a batch.
    """

    def __init__(
        self,
        resident: list[tuple],
        plan: Plan,
        shuffle: bool,
        share: Share = WHOLE,
        finish: Callable | None = None,
    ):
        self._finish = finish
        self._resident, self._shuffle, self._seed = resident, shuffle, plan.seed
        self._share = share
        self._shares = split_sizes(plan.batch_size, len(resident))
        self.epoch = self.step = 0
        if not self._shares[-1]:
            raise PlanError(
                f"batch_size={plan.batch_size} leaves some of {len(resident)} devices without "
                "samples; preprocess='device' needs at least one for each"
            )

    def __len__(self):
        return max(
            -(-len(arrays[0]) // share) for arrays, share in zip(self._resident, self._shares)
        )

    def __iter__(self):
        orders = [self._order(arrays[0]) for arrays in self._resident]
        begin, self.epoch, self.step = self.step, self.epoch + 1, 0
        for step in range(begin, len(self)):
            shards, size = [], 0
            for arrays, order, share in zip(self._resident, orders, self._shares):
                rows = range(step * share, min((step + 1) * share, len(order)))
                size += len(rows)
                own = self._share.of(rows)
                if own:
                    shards.append(_taken(arrays, order[own.start : own.stop]))
            idle = not shards
            shards = shards or [_taken(self._resident[0], orders[0][:1])]
            yield Batch(_finished(shards, self._finish), size, idle)

    def _order(self, array: nd.NDArray) -> nd.NDArray:
        """Return the epoch's order of an array's rows, on its context.

        It is copied once: MXNet waits for running operators before it fills an array.
        """
        order = epoch_order(len(array), self._shuffle, self._seed, self.epoch)
        return nd.array(order, ctx=array.context, dtype="int32")


def _taken(arrays: tuple, rows: nd.NDArray) -> tuple:
    """Return rows of arrays."""
    return tuple(nd.take(array, rows) for array in arrays)


def _finished(shards: list[tuple], finish: Callable | None) -> list[tuple]:
    return [finish(*arrays) for arrays in shards] if finish else shards
