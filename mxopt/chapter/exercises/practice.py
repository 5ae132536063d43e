"""Checks of the exercises of the guide to best practices, as :mod:`mxopt.chapter.exercises`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mxopt.chapter.exercises import checked, must


@checked
def luck(excess: Callable) -> None:
    """Check ``excess(scores, n)``, by how much the best of n equal networks seems better."""
    random = np.random.RandomState(0)
    found = [excess(lambda n: random.normal(0.9, 0.01, n), n) for n in (1, 10, 100)]
    must(abs(found[0]) < 1e-9, "the best of one is that one: nothing is gained")
    must(found[0] < found[1] < found[2], "the more are drawn, the better the best one seems")
    # The largest of 10 and of 100 normal numbers is 1.54 and 2.51 deviations above the mean.
    close = np.allclose(found[1:], [0.0154, 0.0251], rtol=0.1)
    must(close, "average the excess over many draws, each with n scores of its own")


@checked
def combine(classes: Callable) -> None:
    """Check ``classes(probabilities, weights)``, what a weighted mean finds."""
    random = np.random.RandomState(1)
    probabilities = random.dirichlet(np.ones(4), (3, 50))
    weights = np.array([0.7, 0.2, 0.1])
    found = np.asarray(classes(probabilities, weights))
    must(found.shape == (50,), f"one class for each of 50 samples, not {found.shape}")
    mean = sum(w * member for w, member in zip(weights, probabilities))
    must(
        not (found == probabilities.mean(axis=0).argmax(axis=1)).all()
        or (found == mean.argmax(axis=1)).all(),
        "that is the mean with equal weights",
    )
    must((found == mean.argmax(axis=1)).all(), "average the probabilities, then take the largest")


@checked
def two_parts(halves: Callable) -> None:
    """Check ``halves(weight, bias)``, a dense layer's parts for two devices."""
    random = np.random.RandomState(2)
    weight, bias, x = random.normal(size=(6, 4)), random.normal(size=6), random.normal(size=(5, 4))
    parts = halves(weight, bias)
    must(len(parts) == 2, "two parts, each a weight and a bias")
    for part, _ in parts:
        must(part.shape == (3, 4), f"each part has half of the outputs: (3, 4), not {part.shape}")
    found = np.concatenate([x @ w.T + b for w, b in parts], axis=1)
    must(np.allclose(found, x @ weight.T + bias), "side by side the outputs are those of the layer")


@checked
def dynamic_scale(step: Callable) -> None:
    """Check ``step(scale, good, overflow)``, the next scale and the good steps in a row."""
    must(tuple(step(1024, 3, True)) == (512, 0), "an overflow halves the scale and counts anew")
    scale, good = 256, 0
    for number in range(1, 9):
        scale, good = step(scale, good, False)
        expected = 256 * 2 ** (number // 4)
        must(scale == expected, f"after {number} good steps the scale is {expected}, not {scale}")
