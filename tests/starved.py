"""Recipes for the search of the largest batch: one runs out of memory, others are broken."""

import dataclasses
import os
import signal as signals

import toy
from mxnet import MXNetError


def recipe():
    """A recipe whose device has memory for eleven samples."""
    made = toy.toy(train=40)

    def loss(output, *labels):
        if len(output) > 11:
            raise MXNetError("cudaMalloc retry failed: out of memory")
        return made.loss(output, *labels)

    return dataclasses.replace(made, loss=loss)


def killed(signal="SIGKILL"):
    """A recipe whose process is killed by a signal if a batch has more than five samples."""
    made = toy.toy(train=40)

    def loss(output, *labels):
        if len(output) > 5:
            os.kill(os.getpid(), signals.Signals[signal])
        return made.loss(output, *labels)

    return dataclasses.replace(made, loss=loss)


def with_a_broken_loader():
    """A recipe whose error only mentions memory."""

    def loss(output, *labels):
        raise ValueError("a worker ended; take loader='shared_memory'")

    return dataclasses.replace(toy.toy(train=40), loss=loss)


def broken():
    """A recipe that cannot be trained at all."""

    def loss(output, *labels):
        raise ValueError("broken")

    return dataclasses.replace(toy.toy(train=40), loss=loss)
