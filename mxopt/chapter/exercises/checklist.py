"""Checks of the exercises of the guide to the checklist, as :mod:`mxopt.chapter.exercises`."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from mxnet import gluon, nd

from mxopt.chapter.exercises import checked, must


@checked
def starved(most: Callable) -> None:
    """Check ``most(seconds, loading, waiting)``, the largest speed-up by faster loading."""
    for seconds, loading, waiting in ((10.0, 4.0, 5.0), (8.0, 2.0, 0.0), (4.0, 0.0, 3.0)):
        found = most(seconds, loading, waiting)
        must(
            loading == 0 or not math.isclose(found, seconds / loading),
            "that is how often the waiting fits into the whole; what is left without it?",
        )
        must(
            math.isclose(found, seconds / (seconds - loading)),
            "if nothing is waited for, the other seconds are left: what are they?",
        )


@checked
def windowed(order: Callable) -> None:
    """Check ``order(samples, window, epoch)``, a shuffle within a window."""
    for samples, window in ((50, 8), (20, 100), (7, 1)):
        found = list(order(samples, window, 0))
        must(sorted(found) == list(range(samples)), "every sample once, and no other")
        early = all(sample < place + window for place, sample in enumerate(found))
        must(early, "a sample cannot leave the buffer before it has entered it")
    must(list(order(9, 1, 0)) == list(range(9)), "a window of one sample shuffles nothing")
    must(list(order(50, 8, 0)) != list(order(50, 8, 1)), "every epoch has another order")


@checked
def folded(fold: Callable) -> None:
    """Check ``fold(weight, gamma, beta, mean, variance, epsilon)``: weight and bias."""
    random, epsilon = np.random.RandomState(0), 1e-5
    weight = nd.array(random.normal(size=(5, 3, 3, 3)))
    gamma, beta, mean = (nd.array(random.normal(size=5)) for _ in range(3))
    variance = nd.array(random.uniform(0.5, 2, size=5))
    images = nd.array(random.normal(size=(2, 3, 6, 6)))
    plain = nd.Convolution(images, weight, num_filter=5, kernel=(3, 3), no_bias=True)
    norm = gluon.nn.BatchNorm(epsilon=epsilon, in_channels=5)
    norm.initialize()
    parts = (norm.gamma, norm.beta, norm.running_mean, norm.running_var)
    for parameter, value in zip(parts, (gamma, beta, mean, variance)):
        parameter.set_data(value)
    expected = norm(plain)
    w, b = fold(weight, gamma, beta, mean, variance, epsilon)
    must(w.shape == weight.shape, f"the weight keeps its shape, {weight.shape}, not {w.shape}")
    found = nd.Convolution(images, w, b, num_filter=5, kernel=(3, 3))
    apart = (found - expected).mean(axis=(0, 2, 3))
    must(
        abs(found - expected - apart.reshape((1, -1, 1, 1))).max().asscalar() < 1e-4,
        "the filters are wrong: the norm multiplies each by gamma / sqrt(variance + epsilon)",
    )
    must(abs(apart).max().asscalar() < 1e-4, "the bias is wrong: the mean is scaled, too")


@checked
def by_channel(quantize: Callable) -> None:
    """Check ``quantize(weight)``, integers and a scale for each channel."""
    weight = np.array([[0.5, -1.0, 0.25], [20.0, 10.0, -5.0]], np.float32)
    integers, scales = quantize(weight)
    must(np.abs(np.asarray(integers)).max() <= 127, "integers lie between -127 and 127")
    back = np.asarray(integers) * np.asarray(scales)
    must(
        back.shape == weight.shape,
        f"integers times scales have to be of shape {weight.shape}, not {back.shape}",
    )
    half = np.abs(weight).max(axis=1, keepdims=True) / 254
    must(
        (np.abs(back - weight) <= half * 1.001).all(),
        "each channel has its own largest weight, which becomes 127 or -127; round to the nearest",
    )
