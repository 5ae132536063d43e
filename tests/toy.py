"""A recipe small enough for tests: images of two brightnesses, told apart by a small network."""

from __future__ import annotations

import dataclasses
import os
import signal

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

from mxopt.core.recipe import Data, Recipe


def samples(count: int, seed: int = 0):
    """Return ``count`` images (4, 4, 1) uint8 and whether they are bright, int32."""
    random = np.random.RandomState(seed)
    bright = random.randint(0, 2, count)
    images = random.randint(0, 128, (count, 4, 4, 1)) + 127 * bright[:, None, None, None]
    return gluon.data.SimpleDataset(
        [(nd.array(i, dtype="uint8"), nd.array([b], dtype="int32")) for i, b in zip(images, bright)]
    )


def flat_transform(image, label):
    return image.astype("float32").transpose((2, 0, 1)) / 255 - 0.5, label


def network(contexts, dropout=0.0):
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3), nn.Activation("relu"))
    if dropout:
        net.add(nn.Dropout(dropout))
    net.add(nn.Dense(2))
    net.initialize(mx.init.Xavier(), ctx=contexts)
    return net


def toy(
    train: int = 22, poison: int | None = None, dropout: float = 0.0, last: int | None = None,
    **replaced,
) -> Recipe:  # fmt: skip
    """Return the recipe.

    ``poison`` is a training sample whose label makes the loss infinite, ``last`` the step after
    which the process kills itself.
    """
    steps = []

    def data():
        dataset = samples(train)
        return Data(dataset, samples(7, 1), samples(5, 2), flat_transform, "stand-in", "a test")

    entropy = gluon.loss.SoftmaxCrossEntropyLoss()

    def loss(output, label):
        losses = entropy(output, label)
        steps.extend([1] * autograd.is_recording())
        if last is not None and len(steps) > last:
            os.kill(os.getpid(), signal.SIGKILL)
        return losses if poison is None else losses / nd.zeros_like(losses)

    parts = {
        "data": data,
        "network": lambda contexts: network(contexts, dropout),
        "loss": loss,
        "metric": mx.metric.Accuracy,
    }
    return Recipe("toy", **{**parts, **replaced})


class Forbidden(gluon.data.Dataset):
    """A split that nobody may read."""

    def __len__(self):
        return 5

    def __getitem__(self, index):
        raise AssertionError("this split was read")


def untested() -> Recipe:
    """Return the recipe with a test split that raises an error when it is read."""
    made = toy()
    return dataclasses.replace(
        made, data=lambda: dataclasses.replace(made.data(), test=Forbidden())
    )


def overflowing(after: int = 12) -> Recipe:
    """Return the recipe with gradients that are no numbers after so many steps, unlike losses."""
    entropy, steps = gluon.loss.SoftmaxCrossEntropyLoss(), []

    def loss(output, label):
        losses = entropy(output, label)
        if not autograd.is_recording():
            return losses
        steps.append(1)
        # The root of 0 has an infinite slope.
        return losses if len(steps) <= after else losses + nd.sqrt(0 * losses)

    return toy(loss=loss)


def sleepy(plan, write, fail="", kill=False, value=1.0, sleep=0.0):
    """A workload that does as it is told."""
    import time

    from mxopt.core.errors import DeviceError

    if kill:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(sleep)
    if fail == "refuse":
        raise DeviceError("not on this device")
    if fail:
        raise RuntimeError(fail)
    return {"seconds": value * plan.batch_size, "engine": os.environ["MXNET_ENGINE_TYPE"]}
