"""Errata of the guides' sources, as programs: see :mod:`mxopt.chapter.errata`.

Sources: "Accelerate Model Training with PyTorch 2.X", chapter 2, and a list of nine tips on
training with PyTorch Lightning.
"""

from __future__ import annotations

import mxnet as mx
from mxnet import autograd, gluon, nd

from mxopt.chapter.errata.erratum import Erratum
from mxopt.chapter.settings.guides import PRINTED_FIGURES


def rate_that_is_not_printed(steps: int = 100) -> tuple[float, float]:
    """Return how far Adam takes a weight towards its best value, at two learning rates.

    The loss is (w - 1) ** 2, and w begins at 0; a step of Adam is about as long as its rate.

    Args:
        steps: number of updates.
    """
    reached = []
    for rate in (1e-5, 1e-3):
        weight = gluon.Parameter("weight", shape=(1,), init="zeros")
        weight.initialize()
        trainer = gluon.Trainer([weight], "adam", {"learning_rate": rate})
        for _ in range(steps):
            with autograd.record():
                loss = (weight.data() - 1).square()
            loss.backward()
            trainer.step(1)
        reached.append(float(weight.data().asscalar()))
    return reached[0], reached[1]


def two_meanings_of_faster() -> tuple[float, float]:
    """Return how much faster batches of 128 are, in per cent, by both meanings of the source."""
    before, after = (PRINTED_FIGURES[name][0] for name in ("baseline", "bias off, batch 128"))
    return 100 * (before / after - 1), 100 * (1 - after / before)


def two_linear_maps_in_a_row() -> tuple[int, int]:
    """Return the parameters of the source's dense layers, and of one that computes the same."""
    inputs, hidden, outputs = 64 * 7 * 7, 512, 10
    return (inputs + 1) * hidden + (hidden + 1) * outputs, (inputs + 1) * outputs


def gradients_not_divided(batches: int = 16, batch: int = 8) -> tuple[float, float]:
    """Return how many times too large an accumulated gradient is, as printed and divided.

    Args:
        batches: number of batches whose gradients are added.
        batch: number of samples in each.
    """
    mx.random.seed(0)
    inputs = nd.random.normal(shape=(batches * batch, 4))
    labels = nd.random.normal(shape=(batches * batch, 1))
    net, loss = gluon.nn.Dense(1, in_units=4), gluon.loss.L2Loss()
    net.initialize()

    def gradient(parts: int, divisor: int):
        net.weight.grad_req = "add"
        net.weight.zero_grad()
        for part in range(parts):
            rows = slice(part * len(inputs) // parts, (part + 1) * len(inputs) // parts)
            with autograd.record():
                value = loss(net(inputs[rows]), labels[rows]).mean() / divisor
            value.backward()
        return float(net.weight.grad().norm().asscalar())

    at_once = gradient(1, 1)
    return gradient(batches, 1) / at_once, gradient(batches, batches) / at_once


def decoder_that_is_never_trained() -> tuple[float, float]:
    """Return the share of a decoder's weights that get a gradient, as printed and corrected."""
    shares = []
    for printed in (True, False):
        encoder, decoder = gluon.nn.Dense(4, in_units=4), gluon.nn.Dense(4, in_units=4)
        for part in (encoder, decoder):
            part.initialize(mx.init.One())
        used = encoder if printed else decoder  # decoder = DataParallel(encoder)
        with autograd.record():
            loss = used(encoder(nd.ones((2, 4)))).sum()
        loss.backward()
        shares.append(float((decoder.weight.grad() != 0).mean().asscalar()))
    return shares[0], shares[1]


ERRATA = (
    Erratum(
        "A learning rate that is not printed",
        "The chapter on accelerating a training prints five times and five accuracies, and not the "
        "learning rate, which its notebook sets to 0.00001.",
        "A plan holds every switch, and every record holds the plan. "
        "[The guide](../guides/accelerate_training.ipynb) measures the rate alone.",
        rate_that_is_not_printed,
        "share of the way to the best weight after 100 steps of Adam, at this rate and at 0.001",
    ),
    Erratum(
        "Faster has two meanings",
        "Biases turned off are called 15 % faster, which is less time; larger batches 54 % faster, "
        "which is more work in the same time.",
        "A speed-up is a ratio, with its interval.",
        two_meanings_of_faster,
        "per cent that batches of 128 are faster, as printed and by the other meaning",
    ),
    Erratum(
        "Two linear layers in a row",
        "Between the two dense layers there is no activation, so both are one linear map.",
        "`mxopt.recipes.fashion_mnist.recipe.merged` multiplies them out; the outputs are equal.",
        two_linear_maps_in_a_row,
        "parameters of the dense layers",
    ),
    Erratum(
        "Accumulated gradients that are not divided",
        "The gradients of 16 batches are added, and the loss of each is a mean over its own batch.",
        "The sum is divided by the samples of all batches.",
        gradients_not_divided,
        "times the gradient of the large batch",
    ),
    Erratum(
        "A decoder that is never trained",
        "The encoder is placed on two devices under both names, `decoder = DataParallel(encoder)`.",
        "`mxopt.methods.model_parallel.Stages` has one part for each device, and a test compares "
        "the gradients of all parts with those of one device.",
        decoder_that_is_never_trained,
        "share of the decoder's weights with a gradient",
    ),
)
