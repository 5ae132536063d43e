"""Checks of the guides' exercises, as those of :mod:`mxopt.chapter.exercises`."""

from __future__ import annotations

import math
from collections.abc import Callable
from unittest import mock

import numpy as np
from mxnet import autograd, gluon, init, nd

from mxopt.chapter.exercises import checked, must

# The program and its environment


@checked
def one_layer(merge: Callable) -> None:
    """Check ``merge(w1, b1, w2, b2)``, which makes one dense layer of two."""
    random = np.random.RandomState(0)
    shapes = ((7, 5), (7,), (3, 7), (3,))
    w1, b1, w2, b2 = (nd.array(random.normal(size=shape)) for shape in shapes)
    x = nd.array(random.normal(size=(4, 5)))
    two = nd.dot(nd.dot(x, w1.T) + b1, w2.T) + b2
    w, b = merge(w1, b1, w2, b2)
    must(w.shape == (3, 5), f"the weight has to be (outputs, inputs), (3, 5) here, not {w.shape}")
    must(b.shape == (3,), f"the bias has to be (outputs,), (3,) here, not {b.shape}")
    without = abs(nd.dot(x, w.T) - (two - nd.dot(w2, b1) - b2)).max().asscalar()
    must(without < 1e-4, "the weight computes something else: in which order are they multiplied?")
    must(
        abs(nd.dot(x, w.T) + b - two).max().asscalar() < 1e-4,
        "the weight is right, the bias is not: the first one passes through the second layer too",
    )


@checked
def faster(three: Callable) -> None:
    """Check ``three(before, after)``: time saved, more work in the same time, and the ratio."""
    for before, after in ((148.0, 106.0), (10.0, 8.0), (3.0, 1.0)):
        saved, more, ratio = three(before, after)
        must(
            math.isclose(ratio, before / after),
            "the ratio says how many times as fast it is: the old time over the new one",
        )
        must(
            math.isclose(saved, 1 - after / before),
            "the time saved is a share of the old time, such as 0.2 for 10 s and 8 s",
        )
        must(
            math.isclose(more, before / after - 1),
            "how many more batches in the same time? 10 s and 8 s are 0.25",
        )


@checked
def scaled_rate(rule: Callable) -> None:
    """Check ``rule(rate, batch, larger)``, Adam's learning rate for a larger batch."""
    for rate, batch, larger in ((1e-3, 64, 256), (1e-3, 64, 128), (3e-4, 100, 25)):
        found = rule(rate, batch, larger)
        must(
            not math.isclose(found, rate * larger / batch),
            "that is the linear rule, which is used with SGD; Adam divides by the gradient's size",
        )
        must(
            math.isclose(found, rate * math.sqrt(larger / batch)),
            "four times the batch needs twice the rate",
        )


@checked
def shares(parts: Callable) -> None:
    """Check ``parts(seconds)``: the share of every step of a ladder in its whole speed-up."""
    for seconds in ([8.0, 4.0, 2.0], [9.0, 9.0, 3.0, 1.0], [10.0, 12.0, 5.0]):
        found = list(parts(seconds))
        must(len(found) == len(seconds) - 1, "one share for each step from one arm to the next")
        must(math.isclose(sum(found), 1, rel_tol=1e-6), "the shares of all steps add up to 1")
        whole = math.log(seconds[0] / seconds[-1])
        expected = [math.log(a / b) / whole for a, b in zip(seconds, seconds[1:])]
        must(
            np.allclose(found, expected),
            "ratios multiply: halving twice is two equal steps. Which function turns products into "
            "sums?",
        )


# Nine tips


@checked
def accumulate(gradients: Callable) -> None:
    """Check ``gradients(net, loss, x, y, parts)``, which leaves those of the mean loss."""
    random = np.random.RandomState(0)
    x, y = nd.array(random.normal(size=(10, 4))), nd.array(random.randint(0, 3, 10))
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    net = gluon.nn.Dense(3, in_units=4)
    net.initialize(init.Normal(1))
    with autograd.record():
        value = loss(net(x), y).mean()
    value.backward()
    expected = net.weight.grad().asnumpy()
    net.collect_params().setattr("grad_req", "add")
    for parts, number in (([5, 5], 2), ([4, 4, 2], 3)):
        net.collect_params().zero_grad()
        gradients(net, loss, x, y, parts)
        found = net.weight.grad().asnumpy()
        must(np.abs(found).max() > 0, "there is no gradient: call backward for every part")
        must(
            not np.allclose(found, expected * number, rtol=0.2),
            "times too large: it was not divided",
        )
        must(
            np.allclose(found, expected, rtol=1e-4, atol=1e-6),
            f"parts of {parts}: every sample has to count the same, also in a smaller part",
        )


@checked
def one_wait(train: Callable) -> None:
    """Check ``train(net, trainer, loss, batches)``: trains all, and returns the mean loss."""
    random = np.random.RandomState(0)
    batches = [
        (nd.array(random.normal(size=(size, 4))), nd.array(random.normal(size=size)))
        for size in (8, 8, 8)
    ]
    loss, waits = gluon.loss.L2Loss(), []

    def begun():
        net = gluon.nn.Dense(1, in_units=4)
        net.initialize(init.One())
        return net, gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})

    net, trainer = begun()
    expected = []
    for x, y in batches:
        with autograd.record():
            value = loss(net(x), y)
        value.backward()
        trainer.step(len(x))
        expected.append(value.mean().asscalar())
    other, trainer = begun()

    def counting(name):
        original = getattr(nd.NDArray, name)

        def counted(*arguments, **options):
            waits.append(name)
            return original(*arguments, **options)

        return mock.patch.object(nd.NDArray, name, counted)

    with counting("asnumpy"), counting("wait_to_read"):
        found = train(other, trainer, loss, batches)
    must(
        np.allclose(other.weight.data().asnumpy(), net.weight.data().asnumpy(), rtol=1e-5),
        "the weights differ from those after a step for each batch",
    )
    must(isinstance(found, (float, np.floating)), "return the mean loss as a number")
    must(math.isclose(found, float(np.mean(expected)), rel_tol=1e-4), "that is not the mean loss")
    must(len(waits) == 1, f"it waits {len(waits)} times; add up arrays, and read the sum once")


@checked
def waiting(share: Callable) -> None:
    """Check ``share(stages, micro_batches)``, in which a stage of a pipeline waits."""
    must(share(1, 4) == 0, "one stage never waits")
    must(math.isclose(share(2, 1), 0.5), "with two stages and one batch, one of them always waits")
    for stages, count in ((2, 4), (4, 4), (3, 8), (8, 1)):
        must(
            math.isclose(share(stages, count), (stages - 1) / (count + stages - 1)),
            f"draw {stages} rows, one for each stage, and {count} boxes in each, every row one box "
            "later than the one above: which part of a row is empty?",
        )


@checked
def largest_batch(search: Callable) -> None:
    """Check ``search(fits, first)``: doubling, then bisection, with few trials."""
    for largest, first in ((37, 1), (64, 4), (1000, 8), (1, 1)):
        tried = []

        def fits(size, largest=largest, tried=tried):
            tried.append(size)
            return size <= largest

        found = search(fits, first)
        must(
            found == largest, f"{largest} fits and {largest + 1} does not, your search says {found}"
        )
        allowed = (
            2 * math.ceil(math.log2(largest / first + 1)) + math.ceil(math.log2(first + 1)) + 2
        )
        must(
            len(tried) <= allowed,
            f"{len(tried)} trials to find {largest}: double while it fits, then halve the interval",
        )
