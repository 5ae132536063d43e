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

With ``plan.image_dtype="uint8"`` the last part of the transform, which makes four bytes of every
one, is left to the batch, where it is wanted: what is kept, passed on by workers and copied is a
quarter.

A loader yields ``Batch``: one tuple of arrays for each context, images *and* labels. The order of
the samples depends only on seed and epoch, so placements can be compared at equal work. A pass is
over the loader's ``epoch`` and begins at its ``step``, for which nothing before is read; after it
they are the next epoch and 0.
"""

from __future__ import annotations

from collections.abc import Callable

import mxnet as mx
from mxnet import gluon, nd

from mxopt import machine
from mxopt.core.errors import CapacityError, DataError, PlanError
from mxopt.core.plan import Plan
from mxopt.data import ndarray_memory
from mxopt.methods.data_parallel.parallel import WHOLE, Share, split_sizes
from mxopt.methods.input_pipeline.loaders import DeviceLoader, HostLoader, TakeRows


def make_loader(
    dataset, transform, plan: Plan, contexts: list, shuffle: bool = True, share: Share = WHOLE
):
    """Return the loader that the plan's placement asks for.

    Args:
        dataset: raw samples, each a tuple of arrays or numbers, as ``gluon.data.Dataset`` gives
            them.
        transform: turns one raw sample's arrays into the tuple that is batched; it must run on
            whichever context its arrays are on. With ``image_dtype="uint8"`` it has two halves:
            ``compact(*sample)``, whose result is batched, and ``expand(*arrays)``, which finishes
            a batch where it is wanted.
        contexts: where the batches are wanted.
        shuffle: whether each epoch has an order of its own.
        share: this process's part of every batch.

    Returns:
        A :class:`HostLoader` or :class:`DeviceLoader`: an iterable of ``Batch``, one pass an
        epoch, every sample once, the last batch as small as it comes.

    Raises:
        DataError: the data set is empty, or samples that are to be kept differ in shape.
        CapacityError: the samples to be kept do not fit into memory.
        PlanError: as for :class:`DeviceLoader`; or the transform has no halves.
    """
    if not len(dataset):
        raise DataError("the data set is empty: a loader needs at least one sample")
    transform, finish = halves(transform, plan)
    if plan.preprocess == "lazy":
        dataset = dataset.transform(transform)
        return HostLoader(dataset, plan, contexts, shuffle, share=share, finish=finish)
    check_memory(dataset, transform, plan, contexts)
    if plan.preprocess == "cached":
        [arrays] = preprocess(dataset, transform, [mx.cpu()])
    elif plan.preprocess == "roundtrip":
        arrays = _to_host(preprocess(dataset, transform, contexts))
    else:
        return DeviceLoader(preprocess(dataset, transform, contexts), plan, shuffle, share, finish)
    if plan.num_workers:
        # Worker processes hand over what is in shared memory, where a batch of rows is not.
        rows = gluon.data.ArrayDataset(*arrays)
        return HostLoader(rows, plan, contexts, shuffle, share=share, finish=finish)
    rows = gluon.data.SimpleDataset(range(len(dataset)))
    return HostLoader(rows, plan, contexts, shuffle, TakeRows(arrays), share, finish)


def halves(transform, plan: Plan) -> tuple[Callable, Callable | None]:
    """Return what is done to a sample before it is batched or kept, and to a batch where it is
    wanted; that is None unless the plan's pixels stay ``uint8`` until then.

    Raises:
        PlanError: they do, and the transform has no ``compact`` and ``expand``.
    """
    if plan.image_dtype == "float32":
        return transform, None
    if not (hasattr(transform, "compact") and hasattr(transform, "expand")):
        name = getattr(transform, "__name__", type(transform).__name__)
        raise PlanError(
            f"image_dtype={plan.image_dtype!r} needs a transform with the methods compact and "
            f"expand, as mxopt.recipes.segmentation.transform.Transform has; {name} has none: "
            "take image_dtype='float32'"
        )
    return transform.compact, transform.expand


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
                for shape, dtype in map(ndarray_memory.shape_and_dtype, sample)
            )
        for kept, part in zip(resident[device], sample):
            shape, _ = ndarray_memory.shape_and_dtype(part)
            if kept.shape[1:] != shape:
                raise DataError(
                    f"sample {number} has shape {shape} after its transform and others have "
                    f"{kept.shape[1:]}; samples that are kept must be of one shape"
                )
            kept[row] = part
    return [arrays for arrays in resident if arrays is not None]


def memory_needed(dataset, transform) -> int:
    """Return the bytes that all samples take after the transform, judged by the first one."""
    return len(dataset) * ndarray_memory.sample_bytes(transform(*dataset[0]))


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
        places = [("the host", machine.memory_available())]
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
