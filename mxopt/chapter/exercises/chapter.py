"""Checks of the exercises of the chapter's notebooks."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd

from mxopt.chapter.exercises import checked, must

# 8_1: the tour


@checked
def clock(seconds: Callable) -> None:
    """Check ``seconds(function)``, which measures how long a function's operators take."""
    a = nd.random.uniform(shape=(600, 600))

    def work():
        b = a
        for _ in range(20):
            b = nd.dot(b, a) / 300
        return b

    work().wait_to_read()
    begin = time.perf_counter()
    work().wait_to_read()
    true = time.perf_counter() - begin
    found = seconds(work)
    must(isinstance(found, float), "return a number of seconds")
    must(found > 0.3 * true, "the engine was still computing when your clock stopped: wait for it")
    for _ in range(3):
        work()  # in the queue when the clock of the answer starts
    late = seconds(lambda: None)
    must(late < 0.3 * true, "your clock counts what was queued before: wait before you start it")


@checked
def stays_on_device(kind: Callable) -> None:
    """Check ``kind(raw, prepare, device)``, a data set that is prepared once, on the device."""
    raw = gluon.data.SimpleDataset([(nd.full((2, 2), n), nd.array([n])) for n in range(5)])
    calls = []
    device = mx.cpu(1)  # another context than the raw arrays'

    def prepare(image, label):
        calls.append((image.context, label.context))
        return image * 2, label

    data = kind(raw, prepare, device)
    for _ in range(2):
        samples = [data[index] for index in range(len(data))]
    must(len(data) == 5, "len() must be the number of samples")
    must(len(calls) == 5, f"prepare was called {len(calls)} times for 5 samples in two epochs")
    must(calls[0][0] == device, "copy the image to the device before it is prepared")
    must(calls[0][1] == device, "labels travel too: copy them as well")
    must(all(part.context == device for part in samples[3]), "results must stay on the device")
    values = samples[3][0].asnumpy().tolist(), samples[3][1].asscalar()
    must(values == ([[6.0, 6.0], [6.0, 6.0]], 3.0), "sample 3 has other values than it should")


@checked
def lost_in_float16(lost: list) -> None:
    """Check which of ``VALUES`` become 0 or infinite in float16."""
    values = np.array(FLOAT16_VALUES)
    with np.errstate(over="ignore"):
        half = values.astype("float16")
    expected = {float(v) for v, h in zip(values, half) if h == 0 or np.isinf(h)}
    found = {float(value) for value in lost}
    must(found <= set(map(float, values)), f"choose among {FLOAT16_VALUES}")
    extra, missing = found - expected, expected - found
    must(not extra, f"{min(extra, default=0):g} survives, if with fewer digits: try astype")
    must(not missing, "one more is lost: above 65504 there is infinity, below about 6e-8 zero")


FLOAT16_VALUES = [70000.0, 65000.0, 1e-4, 1e-7, 2e-8, 1e-9]


@checked
def loss_scale(scale: float) -> None:
    """Check a power of two by which gradients from 1e-9 to 100 survive in float16."""
    exponent = math.log2(scale)
    must(exponent == int(exponent), "a power of two changes no digit: take 2 ** n")
    must(np.float16(1e-9 * scale) > 0, "1e-9 still becomes 0: take a larger scale")
    must(np.isfinite(np.float16(100 * scale)), "100 overflows: take a smaller scale")


@checked
def data_parallel_step(step: Callable) -> None:
    """Check ``step(net, trainer, loss, data, label, contexts)`` against a single device."""
    contexts = [mx.cpu(number) for number in range(3)]
    data, label = nd.random.uniform(shape=(7, 4)), nd.array([0, 1, 1, 0, 1, 0, 0])
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    start = nd.random.uniform(-1, 1, shape=(2, 4))

    def trained(devices, one_step):
        net = gluon.nn.Dense(2, in_units=4)
        net.initialize(ctx=devices)
        net.weight.set_data(start)
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0})
        one_step(net, trainer, loss, data, label, devices)
        return [copy.asnumpy() for copy in net.weight.list_data()]

    def alone(net, trainer, loss, data, label, devices):
        with autograd.record():
            value = loss(net(data), label)
        value.backward()
        trainer.step(len(data))

    [expected] = trained(contexts[:1], alone)
    copies = trained(contexts, step)
    must(not np.array_equal(copies[0], start.asnumpy()), "the weights did not change: update them")
    same = all(np.allclose(copies[0], copy) for copy in copies)
    must(same, "the devices have different weights now: did each compute a part of the batch?")
    must(
        np.allclose(copies[0], expected, atol=1e-5),
        "one device makes another step: the gradient is divided by the size of the whole batch, "
        "and seven samples do not split evenly among three devices",
    )


# 8_2: segmentation


@checked
def mean_iou(function: Callable) -> None:
    """Check ``function(found, truth)``: the mean IoU of two classes, of arrays of 0 and 1."""
    random = np.random.RandomState(0)
    for _ in range(5):
        found, truth = random.randint(0, 2, (2, 6, 6))
        scores = []
        for value in (0, 1):
            both = ((found == value) & (truth == value)).sum()
            either = ((found == value) | (truth == value)).sum()
            scores.append(both / either)
        answer, right = float(function(found, truth)), float(np.mean(scores))
        if abs(answer - right) < 1e-6:
            continue
        accuracy = (found == truth).mean()
        must(abs(answer - accuracy) > 1e-6, "that is the pixel accuracy: divide by what either has")
        must(abs(answer - scores[1]) > 1e-6, "that is people's IoU: take the mean with background")
        must(False, f"expected {right:.4f}, got {answer:.4f}")


@checked
def time_to_target(function: Callable) -> None:
    """Check ``function(seconds, scores, goal)``: when a score is first at the goal, or None."""
    seconds, scores = [10, 20, 30, 40], [0.2, 0.6, 0.5, 0.8]
    must(function(seconds, scores, 0.6) == 20, "the first time counts, even if it falls again")
    must(function(seconds, scores, 0.7) == 40, "0.7 is reached at 40 s")
    must(function(seconds, scores, 0.9) is None, "a run that never reaches the goal has no time")


@checked
def parts_of_a_speedup(step_ratio: float, steps_ratio: float) -> None:
    """Check the two ratios of before (2.0 s a step, 60 steps) and after (0.5 s, 40 steps).

    Args:
        step_ratio: how many times shorter a step is.
        steps_ratio: how many times fewer steps are needed.
    """
    must(abs(step_ratio - 4) < 1e-9, "seconds a step: 2.0 s before, 0.5 s after")
    must(abs(steps_ratio - 1.5) < 1e-9, "steps: 60 before, 40 after")


@checked
def is_shown(answers: dict) -> None:
    """Check whether three intervals of the difference in quality show that it holds."""
    right = {"[-0.004, +0.010]": True, "[-0.020, +0.030]": False, "[-0.009, -0.001]": True}
    for interval, holds in right.items():
        must(interval in answers, f"there is no answer for {interval}")
        low = interval[1:].split(",")[0]
        must(
            answers[interval] == holds,
            f"{interval}: compare its lower end, {low}, with -0.01; where the middle lies does not "
            "matter, and a small loss is allowed",
        )


# 8_3: translation


@checked
def padding_share(function: Callable) -> None:
    """Check ``function(batches)``: the share of padding, of lists of sentence lengths."""
    must(function([[3, 3], [5, 5]]) == 0, "sentences of equal length need no padding")
    found = function([[2, 4], [1, 1, 5]])
    must(abs(found - (2 + 8) / (8 + 15)) < 1e-9, "each batch is as long as its longest sentence")


@checked
def smoothed_loss(function: Callable) -> None:
    """Check ``function(probabilities, word, smoothing)``, the loss of one word."""
    p = np.array([0.7, 0.2, 0.1])
    must(abs(function(p, 0, 0.0) + math.log(0.7)) < 1e-6, "without smoothing it is -log p[word]")
    expected = -(0.9 * math.log(0.7) + 0.1 / 3 * np.log(p).sum())
    found = float(function(p, 0, 0.1))
    must(
        abs(found - expected) < 1e-6,
        "0.9 of the target is the word's, and 0.1 / 3 every word's, the right one included",
    )


@checked
def inverse_sqrt_rate(function: Callable) -> None:
    """Check ``function(step, warmup, peak)``: linear warm-up, then 1 / sqrt(step)."""
    must(abs(function(50, 100, 0.002) - 0.001) < 1e-9, "half of the warm-up, half of the peak")
    must(abs(function(100, 100, 0.002) - 0.002) < 1e-9, "the peak is at the end of the warm-up")
    must(abs(function(400, 100, 0.002) - 0.001) < 1e-9, "at four times the warm-up it has halved")


@checked
def fair_unit(answer: str) -> None:
    """Check which figure compares two ways of making batches."""
    must(answer != "steps a second", "steps of small batches are short: they do less work")
    must(answer != "sentences a second", "a batch of short sentences has many of them")
    must(answer == "target tokens a second", "choose one of the three")
