"""Data parallelism in six steps: contexts, a copy of the weights on each, split the batch,
compute on every device at the same time, add up the gradients, update everywhere.

MXNet's engine makes the devices work at the same time on its own, as long as nobody waits: so
losses are gathered as arrays, never as Python numbers. On a machine without GPUs the same code
runs over several CPU contexts, and there it must give the numbers of a single one.
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

    ``cpu:0-3`` gives four contexts on the same processor, for testing what needs several devices.

    Raises:
        DeviceError: a GPU is not there, or this build of MXNet cannot use any.
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
    """Return how many samples each part gets: as even as whole numbers allow, zeros last.

    >>> split_sizes(10, 4), split_sizes(2, 4)
    ([3, 3, 2, 2], [1, 1, 0, 0])
    """
    share, rest = divmod(samples, parts)
    return [share + (index < rest) for index in range(parts)]


class Share(NamedTuple):
    """Which rows of every batch are a worker's, where several processes train together.

    >>> [Share(worker, 3).of([7, 5, 8, 6]) for worker in range(3)]
    [[7, 5], [8], [6]]
    """

    worker: int = 0
    workers: int = 1

    def of(self, rows):
        """Return the worker's part of a batch's rows, none if there are too few for all."""
        sizes = split_sizes(len(rows), self.workers)
        start = sum(sizes[: self.worker])
        return rows[start : start + sizes[self.worker]]


# All rows: there is one process.
WHOLE = Share()


def split_and_load(arrays, contexts: list[mx.Context]) -> list[tuple]:
    """Cut a batch along its first axis and copy each piece to its context.

    Args:
        arrays: the batch's arrays, each of shape (samples, ...).
        contexts: where the pieces go.

    Returns:
        One tuple of arrays for each context that got samples: with fewer samples than contexts
        the last contexts get none (``gluon.utils.split_and_load`` fails there).
    """
    shards, start = [], 0
    for size, context in zip(split_sizes(len(arrays[0]), len(contexts)), contexts):
        if size:
            shards.append(tuple(a[start : start + size].as_in_context(context) for a in arrays))
        start += size
    return shards


def gather(arrays: list[nd.NDArray]) -> nd.NDArray:
    """Add up one array a device on the first of them, without waiting for any."""
    total = arrays[0]
    for array in arrays[1:]:
        total = total + array.as_in_context(total.context)
    return total


def mark_idle(parameters, idle: list[mx.Context]) -> None:
    """Give contexts that had no samples a zero gradient, so that the sum over contexts is right.

    Without it they would add the gradient of the step before once more. Where gradients are added
    up over several batches (``grad_req="add"``) what is there already stays.
    """
    for parameter in parameters:
        if parameter.grad_req == "null":
            continue
        for context in idle:
            if parameter.grad_req == "write":
                parameter.grad(context)[:] = 0
            parameter.data(context)._fresh_grad = True


def scaled(plan: Plan, devices: str, rule: str = "linear") -> Plan:
    """Return the plan for more devices, with batch size and learning rate grown by a rule.

    The batch grows with the number of devices, so that each keeps its share. The learning rate
    grows ``linear`` (Goyal et al., "Accurate, Large Minibatch SGD", 2017), by the square root
    (``sqrt``: Krizhevsky, "One weird trick for parallelizing convolutional neural networks",
    2014), or stays (``none``).

    >>> scaled(Plan(batch_size=4, learning_rate=0.1), "gpu:0-3").batch_size
    16

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
