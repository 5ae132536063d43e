"""The input pipeline: where samples are transformed, and where the results are kept.

``plan.preprocess`` selects one of four placements of the transform:

=============  =================  ========================  ====================================
placement      runs on            results are kept          cost
=============  =================  ========================  ====================================
``lazy``       host, every epoch  not at all                time in every epoch
``cached``     host, once         in host memory            host memory
``device``     device, once       on the devices, in parts  device memory; no copies afterwards
``roundtrip``  device, once       in host memory            a copy back, then one for each batch
=============  =================  ========================  ====================================

With ``plan.image_dtype="uint8"`` the last part of the transform, which converts bytes to float32,
is applied to the batch on its device. What is kept, passed by workers and copied then takes a
quarter of the memory.

A loader yields ``Batch``: one tuple of arrays for each context, images *and* labels. The order of
the samples depends only on the seed and the epoch, so placements can be compared at equal work.
Iterating over a loader yields the batches of its ``epoch`` from its ``step`` on, without reading
earlier ones, and then sets these to the next epoch and 0.
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
from mxopt.methods.input_pipeline.loaders import DeviceLoader, HostLoader
from mxopt.methods.shared_memory_loader.rows import TakeRows


def make_loader(
    dataset, transform, plan: Plan, contexts: list, shuffle: bool = True, share: Share = WHOLE
):
    """Return the loader that the plan's placement asks for.

    Args:
        dataset: raw samples, each a tuple of arrays or numbers, as ``gluon.data.Dataset`` gives
            them.
        transform: converts the arrays of a raw sample to the tuple that is batched; it must run on
            the context of its arrays. For ``image_dtype="uint8"`` it needs two methods:
            ``compact(*sample)``, whose result is batched, and ``expand(*arrays)``, which completes
            a batch on its device. ``plan.transforms`` is not looked at: pass the result of
            :func:`mxopt.methods.opencv_transforms.select`.
        plan: placement, loader, workers, batch size and seed.
        contexts: contexts to copy the batches to.
        shuffle: whether each epoch has another order.
        share: this process's part of every batch.

    Returns:
        A :class:`HostLoader` or :class:`DeviceLoader`: an iterable of ``Batch`` with every sample
        once an epoch; the last batch may be smaller.

    Raises:
        DataError: the data set is empty, or samples that are kept differ in shape.
        CapacityError: the samples that are kept do not fit into memory.
        PlanError: there are more contexts than samples in a batch; or the transform lacks
            ``compact`` and ``expand``.
    """
    if not len(dataset):
        raise DataError("the data set is empty: a loader needs at least one sample")
    transform, finish = halves(transform, plan)
    if plan.preprocess == "lazy":
        dataset = _taken_by(transform, dataset, plan).transform(transform)
        return HostLoader(dataset, plan, contexts, shuffle, share=share, finish=finish)
    check_memory(dataset, transform, plan, contexts)
    if plan.preprocess == "cached":
        [arrays] = preprocess(dataset, transform, [mx.cpu()], plan.transform_batch)
    elif plan.preprocess == "roundtrip":
        arrays = _to_host(preprocess(dataset, transform, contexts))
    else:
        resident = preprocess(dataset, transform, contexts, plan.transform_batch)
        return DeviceLoader(resident, plan, shuffle, share, finish)
    if plan.num_workers or plan.loader == "gluon":
        rows = gluon.data.ArrayDataset(*arrays)
        return HostLoader(rows, plan, contexts, shuffle, share=share, finish=finish)
    rows = gluon.data.SimpleDataset(range(len(dataset)))
    return HostLoader(rows, plan, contexts, shuffle, TakeRows(arrays), share, finish)


def _taken_by(transform, dataset, plan: Plan):
    """Return the data set, with samples of NumPy arrays where these do for all that follows."""
    numpy = plan.loader == "shared_memory" and getattr(transform, "takes_numpy", False)
    return dataset.in_numpy() if numpy and hasattr(dataset, "in_numpy") else dataset


def halves(transform, plan: Plan) -> tuple[Callable, Callable | None]:
    """Split a transform into the parts before and after batching.

    Args:
        transform: converts the arrays of a raw sample to those that are batched.
        plan: the switches, for ``image_dtype``.

    Returns:
        The part that is applied to a sample before it is kept or batched, and the part that is
        applied to a batch on its device; the second is None unless ``image_dtype`` is ``uint8``.

    Raises:
        PlanError: ``image_dtype`` is ``uint8``, and the transform lacks ``compact`` and
            ``expand``.
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


def preprocess(dataset, transform, contexts: list, at_once: int = 1) -> list[tuple]:
    """Transform every sample on the contexts and keep the results there.

    Sample ``i`` is kept on context ``i % len(contexts)``.

    Args:
        dataset: raw samples.
        transform: converts the arrays of a raw sample to those that are kept.
        contexts: contexts to run on.
        at_once: number of samples that are transformed at once, with ``transform.batched``, a
            function of arrays (samples, ...).

    Returns:
        For each context a tuple of arrays (its samples, ...). They are filled in place, so that
        memory has the results only once.

    Raises:
        DataError: a sample's shape differs from the first one's.
    """
    if at_once > 1:
        devices = enumerate(contexts[: len(dataset)])
        apart = (range(first, len(dataset), len(contexts)) for first, _ in devices)
        return [
            _transformed(dataset, transform, context, rows, at_once)
            for context, rows in zip(contexts, apart)
        ]
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


def _transformed(dataset, transform, context, rows: range, at_once: int) -> tuple:
    """Return the arrays of some samples on a context, transformed so many at once."""
    first = map(ndarray_memory.shape_and_dtype, transform(*dataset[rows[0]]))
    arrays = tuple(
        nd.empty((len(rows), *shape), ctx=context, dtype=dtype) for shape, dtype in first
    )
    for start in range(0, len(rows), at_once):
        part = rows[start : start + at_once]
        raw = _raw(dataset, slice(part.start, part.stop, part.step))
        done = transform.batched(*(_on(context, array) for array in raw))
        for kept, values in zip(arrays, done):
            kept[start : start + len(part)] = values
    return arrays


def _raw(dataset, selection: slice) -> tuple:
    """Return arrays (samples, ...) of some raw samples."""
    if hasattr(dataset, "rows"):
        return dataset.rows(selection)
    samples = [dataset[index] for index in range(*selection.indices(len(dataset)))]
    return tuple(
        nd.stack(*parts) if isinstance(parts[0], nd.NDArray) else nd.array(parts)
        for parts in zip(*samples)
    )


def memory_needed(dataset, transform) -> int:
    """Return the bytes of all samples after the transform, computed from the first one.

    Args:
        dataset: raw samples.
        transform: converts the arrays of a raw sample to those that are kept.
    """
    return len(dataset) * ndarray_memory.sample_bytes(transform(*dataset[0]))


def check_memory(dataset, transform, plan: Plan, contexts: list) -> None:
    """Check that the samples fit into the memory where the plan keeps them.

    Args:
        dataset: raw samples.
        transform: converts the arrays of a raw sample to those that are kept.
        plan: the switches, for ``preprocess``.
        contexts: contexts among which the samples are divided.

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
    """Copy an array to a context; return plain numbers, such as some labels, unchanged."""
    return part.as_in_context(context) if isinstance(part, nd.NDArray) else part


def _to_host(resident: list[tuple]) -> tuple:
    """Copy arrays on several contexts to the host, in the order of the data set."""
    whole = []
    for parts in zip(*resident):
        length = sum(len(part) for part in parts)
        array = nd.empty((length, *parts[0].shape[1:]), ctx=mx.cpu(), dtype=parts[0].dtype)
        for device, part in enumerate(parts):
            array[device :: len(parts)] = part.as_in_context(mx.cpu())
        whole.append(array)
    return tuple(whole)
