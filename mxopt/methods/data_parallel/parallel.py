"""Data parallelism: each device computes the gradient of its part of a batch.

The steps are: choose contexts, copy the weights to each, split the batch, compute on all devices
at the same time, sum the gradients, update the weights on each. MXNet's engine runs the devices
concurrently as long as the program does not wait, so losses are gathered as arrays, not as Python
numbers. On a machine without GPUs the same code runs on several CPU contexts, and must give the
results of a single one.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import mxnet as mx
from mxnet import nd

from mxopt.core.errors import DeviceError, PlanError
from mxopt.core.plan import Plan


def contexts(plan: Plan) -> list[mx.Context]:
    """Return the plan's devices as MXNet contexts.

    ``cpu:0-3`` gives four contexts on the same processor, for tests of multi-device code.

    Raises:
        DeviceError: a GPU does not exist, or this build of MXNet cannot use it.
    """
    if plan.device_kind == "cpu":
        return [mx.cpu(index) for index in plan.device_indices]
    count = mx.context.num_gpus()
    missing = [index for index in plan.device_indices if index >= count]
    if missing:
        raise DeviceError(
            f"devices={plan.devices!r}: there is no gpu:{missing[0]}; MXNet sees {count} GPU(s) "
            "here. See `mxopt doctor` for why, or take devices='cpu:0'"
        )
    return [mx.gpu(index) for index in plan.device_indices]


def split_sizes(samples: int, parts: int) -> list[int]:
    """Return the number of samples in each part: as even as possible, the smallest last.

    >>> split_sizes(10, 4), split_sizes(2, 4)
    ([3, 3, 2, 2], [1, 1, 0, 0])

    Args:
        samples: number of samples.
        parts: number of parts.
    """
    share, rest = divmod(samples, parts)
    return [share + (index < rest) for index in range(parts)]


class Share(NamedTuple):
    """The part of every batch that belongs to one of several processes that train together.

    >>> [Share(worker, 3).of([7, 5, 8, 6]) for worker in range(3)]
    [[7, 5], [8], [6]]

    Attributes:
        worker: number of the process, from 0.
        workers: number of processes.
    """

    worker: int = 0
    workers: int = 1

    def of(self, rows):
        """Return the worker's part of a batch's rows; empty if there are too few for it."""
        sizes = split_sizes(len(rows), self.workers)
        start = sum(sizes[: self.worker])
        return rows[start : start + sizes[self.worker]]


# The share of a single process: all rows.
WHOLE = Share()


def split_and_load(arrays, contexts: list[mx.Context]) -> list[tuple]:
    """Split a batch along its first axis and copy each part to its context.

    Args:
        arrays: arrays of the batch, each of shape (samples, ...).
        contexts: contexts to copy the parts to.

    Returns:
        One tuple of arrays for each context that has samples. With fewer samples than contexts
        the last contexts have none (``gluon.utils.split_and_load`` raises an error then).
    """
    shards, start = [], 0
    for size, context in zip(split_sizes(len(arrays[0]), len(contexts)), contexts):
        if size:
            shards.append(tuple(a[start : start + size].as_in_context(context) for a in arrays))
        start += size
    return shards


def gather(arrays: list[nd.NDArray]) -> nd.NDArray:
    """Return the sum of one array from each device, on the first device, without waiting."""
    total = arrays[0]
    for array in arrays[1:]:
        total = total + array.as_in_context(total.context)
    return total


def mark_idle(parameters, idle: list[mx.Context]) -> None:
    """Set the gradient to zero on contexts without samples, so that the sum is correct.

    Otherwise they would add the gradient of the previous step again. Gradients that are
    accumulated over several batches (``grad_req="add"``) are kept.

    Args:
        parameters: the parameters.
        idle: contexts that had no samples in this step.
    """
    for parameter in parameters:
        if parameter.grad_req == "null":
            continue
        for context in idle:
            if parameter.grad_req == "write":
                parameter.grad(context)[:] = 0
            parameter.data(context)._fresh_grad = True


def scaled(plan: Plan, devices: str, rule: str = "linear") -> Plan:
    """Return the plan for more devices, with a larger batch size and learning rate.

    The batch size grows in proportion to the number of devices.

    >>> scaled(Plan(batch_size=4, learning_rate=0.1), "gpu:0-3").batch_size
    16

    Args:
        plan: the plan for its own devices.
        devices: the new devices, such as ``gpu:0-3``.
        rule: how the learning rate grows: ``linear`` (Goyal et al., "Accurate, Large Minibatch
            SGD", 2017), ``sqrt`` (with the square root: Krizhevsky, "One weird trick for
            parallelizing convolutional neural networks", 2014), or ``none``.

    Raises:
        PlanError: the rule does not exist.
    """
    many = plan.replace(devices=devices)
    factor = len(many.device_indices) / len(plan.device_indices)
    growth = {"linear": factor, "sqrt": math.sqrt(factor), "none": 1.0}
    if rule not in growth:
        raise PlanError(f"rule={rule!r} is not a choice; take one of {', '.join(growth)}")
    return many.replace(
        batch_size=max(1, round(plan.batch_size * factor)),
        learning_rate=plan.learning_rate * growth[rule],
    )
