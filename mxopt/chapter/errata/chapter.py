"""Errata of chapter 8 of the book, as programs: see :mod:`mxopt.chapter.errata`."""

from __future__ import annotations

import math
import subprocess
import sys

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd

from mxopt.chapter.errata.erratum import Erratum
from mxopt.methods.engine.clock import timed
from mxopt.report import book


def clock_without_waiting(size: int = 700, length: int = 10) -> tuple[float, float]:
    """Time matrix products until they are enqueued, and until they are computed.

    Args:
        size: the matrices are (size, size), float32.
        length: number of products, each of the previous result.

    Returns:
        Both times in seconds.
    """
    result = matrix = nd.random.uniform(0, 2 / size, shape=(size, size))
    with timed() as clock:
        for _ in range(length):
            result = nd.dot(result, matrix)
    return clock.enqueued, clock.seconds


def loader_over_the_old_data(samples: int = 20) -> tuple[float, float]:
    """Count the transforms in an epoch of a loader that should read preprocessed data."""
    calls = []

    def transform(sample):
        calls.append(1)
        return sample

    lazy = gluon.data.SimpleDataset(list(range(samples))).transform(transform)
    prepared = gluon.data.SimpleDataset([lazy[row] for row in range(samples)])
    counts = []
    for dataset in (lazy, prepared):  # as printed, the new loader reads the old data set
        calls.clear()
        list(gluon.data.DataLoader(dataset, batch_size=4))
        counts.append(len(calls))
    return tuple(counts)


def validation_that_rolls_over(images: int = 25, batch: int = 16) -> tuple[float, float]:
    """Return the mean loss of the second epoch, if the loss of every image is 1.

    Args:
        images: size of the validation set.
        batch: size of its batches.

    Returns:
        The mean with ``rollover``, and with the last batch kept.
    """
    losses = gluon.data.ArrayDataset(np.ones(images, np.float32))
    means = []
    for last_batch in ("rollover", "keep"):
        loader = gluon.data.DataLoader(losses, batch, last_batch=last_batch)
        epochs = [sum(float(b.sum().asscalar()) for b in loader) / images for _ in range(2)]
        means.append(epochs[1])
    return tuple(means)


def loss_that_is_a_sum(batch: int = 4, devices: int = 4) -> tuple[float, float]:
    """Return the loss of an epoch of three batches, if the loss of every image is 1.

    Args:
        batch: images on each device.
        devices: number of devices.

    Returns:
        The sum divided by the number of batches, and the mean over images.
    """
    batches = [[nd.ones(batch, mx.cpu(i)) for i in range(devices)] for _ in range(3)]
    total = sum(float(shard.sum().asscalar()) for shards in batches for shard in shards)
    return total / len(batches), total / (len(batches) * batch * devices)


def throughput_clock_never_reset(logs: int = 10, tokens: int = 1000) -> tuple[float, float]:
    """Return the tokens per second in the last of several log lines, one second apart.

    Args:
        logs: number of log lines.
        tokens: tokens since the previous line.

    Returns:
        The figure with a clock that is never reset, and with one that is reset at each line.
    """
    start = reset = 0.0
    for line in range(1, logs + 1):
        now = float(line)
        wrong, right = tokens / (now - start), tokens / (now - reset)
        reset = now
    return wrong, right


def overflow_applied(contexts: int = 2) -> tuple[float, float]:
    """Return the share of weights that are finite after a step with infinite gradients."""
    shares = []
    for on_kvstore in (True, False):
        net = gluon.nn.Dense(4, in_units=4)
        devices = [mx.cpu(i) for i in range(contexts)]
        net.initialize(ctx=devices)
        trainer = gluon.Trainer(net.collect_params(), "sgd", update_on_kvstore=on_kvstore)
        with autograd.record():
            losses = [(net(nd.ones((1, 4), ctx)) * math.inf).sum() for ctx in devices]
        autograd.backward(losses)
        if on_kvstore:
            trainer.step(1)
        else:
            trainer.allreduce_grads()
            gradients = [p.list_grad()[0] for p in net.collect_params().values()]
            if all(np.isfinite(g.asnumpy()).all() for g in gradients):
                trainer.update(1)
        weights = net.weight.list_data()[0].asnumpy()
        shares.append(float(np.isfinite(weights).mean()))
    return tuple(shares)


def float32_after_amp() -> tuple[float, float]:
    """Return the bits of a float32 layer's output after, and without, ``amp.init``."""
    work = """
import mxopt, mxnet as mx
from mxnet.contrib import amp
{}
net = mx.gluon.nn.Dense(2)
net.initialize()
print(net(mx.nd.ones((1, 2))).dtype)
"""
    bits = []
    for before in ("amp.init(target_dtype='bfloat16')", ""):
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", work.format(before)],
                              capture_output=True, text=True, check=True)  # fmt: skip
        bits.append(32.0 if "float32" in done.stdout else 16.0)
    return tuple(bits)


def learning_rates_six_orders_apart(steps: int = 50) -> tuple[float, float]:
    """Return the final loss of a float32 training at two learning rates.

    Args:
        steps: steps of gradient descent.

    Returns:
        The loss at a millionth of the learning rate, and at the learning rate.
    """
    losses = []
    for rate in (0.5e-6, 0.5):
        weight = nd.zeros((1,))
        for _ in range(steps):
            weight -= rate * 2 * (weight - 1)
        losses.append(float(((weight - 1) ** 2).asscalar()))
    return tuple(losses)


def thirty_epochs_labelled_ten() -> tuple[float, float]:
    """Return the seconds per epoch of the book's last AMP run, by its label and by its loop."""
    seconds = book.beside("precision")["amp-triple-epochs"].value
    return seconds / 10, seconds / 30


def best_epoch_of_the_validation(images: int = 25, epochs: int = 30) -> tuple[float, float]:
    """Return the reported mIoU of a network that no longer learns: best epoch, and last epoch.

    The IoU of every image is drawn in each epoch, with mean 0.9 and standard deviation 0.1.

    Args:
        images: size of the validation set.
        epochs: number of epochs.
    """
    random = np.random.RandomState(0)
    scores = random.normal(0.9, 0.1, (2000, epochs, images)).mean(axis=2)
    return float(scores.max(axis=1).mean()), float(scores[:, -1].mean())


ERRATA = (
    Erratum(
        "A clock that does not wait",
        "The clock stops when the operators are enqueued; the engine has yet to compute them.",
        "`mxopt.methods.engine.timed` waits for the engine before the clock starts and before it "
        "stops.",
        clock_without_waiting,
        "seconds",
        exact=False,
    ),
    Erratum(
        "The optimised loader is timed on the old data set",
        "The loader for the preprocessed data is created with the data set that is not "
        "preprocessed, so the same work is timed twice.",
        "Two arms differ only in their plans, and the record holds a checksum of the samples.",
        loader_over_the_old_data,
        "transforms in an epoch of 20 samples",
    ),
    Erratum(
        "Validation that rolls over",
        "25 images in batches of 16 with `rollover`: the rest of an epoch is counted in the next "
        "one, and the sum is always divided by 25.",
        "The last batch is kept and weighted by its size: every image counts once.",
        validation_that_rolls_over,
        "mean loss of the second epoch, where every image has a loss of 1",
    ),
    Erratum(
        "A loss that is a sum",
        "Losses are summed over the images of a batch and over the devices, and divided by the "
        "number of batches: with four GPUs and four images on each, the loss is sixteen times too "
        "high.",
        "Losses are means over samples, or over tokens.",
        loss_that_is_a_sum,
        "loss of an epoch, where every image has a loss of 1",
    ),
    Erratum(
        "A throughput clock that is never reset",
        "Each log line divides the words since the previous line by the seconds since the start, "
        "so the throughput seems to fall from line to line.",
        "Steady-state throughput is the words of all steps but the first, divided by the seconds "
        "of the same steps.",
        throughput_clock_never_reset,
        "words per second in the tenth line, at a constant 1,000",
    ),
    Erratum(
        "An overflow that is applied before it is detected",
        "Under AMP the `Trainer` is created without `update_on_kvstore=False`: with several "
        "devices the weights are updated where the gradients are summed, before they can be "
        "checked.",
        "`mxopt.train.optimizer.make_trainer` does not update on the kvstore; an overflow skips "
        "the step.",
        overflow_applied,
        "share of weights that are finite afterwards",
    ),
    Erratum(
        "float32 cells that run after `amp.init()`",
        "`amp.init()` changes the operators of the whole process and cannot be undone: later cells "
        "that are described as float32 are not.",
        "Every run has its own process.",
        float32_after_amp,
        "bits of a float32 layer's output",
    ),
    Erratum(
        "Learning rates that differ by six orders of magnitude",
        "The float32 and the float16 run are compared by their losses, but trained at learning "
        "rates that differ by a factor of a million.",
        "`before.diff(after)` names everything that differs, and `mxopt compare --effect-of` "
        "refuses a pair that differs in more than one switch.",
        learning_rates_six_orders_apart,
        "final loss of the same float32 training at both rates",
    ),
    Erratum(
        "Thirty epochs labelled ten",
        "The last AMP run trains thirty epochs and is printed as ten.",
        "The record holds every epoch and the number of samples; `mxopt verify` counts them.",
        thirty_epochs_labelled_ten,
        "seconds per epoch",
    ),
    Erratum(
        "The best epoch is chosen and reported on the same data",
        "The epoch with the best validation score is kept, and that score is reported.",
        "The last epoch is tested once, on a split that was not used for any choice.",
        best_epoch_of_the_validation,
        "reported mIoU of a network whose true mIoU is 0.9",
    ),
)
