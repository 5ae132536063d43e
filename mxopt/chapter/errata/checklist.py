"""Errata of two more sources, as programs: see :mod:`mxopt.chapter.errata`.

Sources: the TensorFlow performance checklist of "Practical Deep Learning", chapter 6, and the best
practices of "Deep Learning with Python", third edition, chapter 18.
"""

from __future__ import annotations

import statistics

import numpy as np

from mxopt.chapter.errata.erratum import Erratum
from mxopt.methods.lr_range_test import rules


def utilisation_without_zeros() -> tuple[float, float]:
    """Return the utilisation of a device that waits three quarters of the time, in per cent."""
    samples = [0, 0, 0, 80] * 100
    return statistics.median(one for one in samples if one), statistics.mean(samples)


def _windowed(stream, window: int, count: int, random: np.random.RandomState) -> list[int]:
    """Return the first samples of a stream that is shuffled within a window, as tf.data does."""
    stream, buffer, found = iter(stream), [], []
    while len(found) < count:
        while len(buffer) < window:
            one = next(stream, None)
            if one is None:
                break
            buffer.append(one)
        found.append(buffer.pop(random.randint(len(buffer))))
    return found


def repeated_before_it_is_shuffled(samples: int = 60_000, window: int = 2_048) -> tuple:
    """Return the share of the samples that an epoch leaves out, in per cent.

    Args:
        samples: number of samples.
        window: size of the buffer that is shuffled.
    """
    missing = []
    for repeated in (True, False):
        order = np.arange(samples)
        stream = np.concatenate([order, order]) if repeated else order
        seen = _windowed(stream, window, samples, np.random.RandomState(0))
        missing.append(100 * (1 - len(set(seen)) / samples))
    return missing[0], missing[1]


def window_over_sorted_files(classes: int = 10, each: int = 6_000) -> tuple[int, int]:
    """Return how many classes are among the first 1,000 samples of files sorted by class.

    Args:
        classes: number of classes.
        each: number of samples of each class, which follow each other.
    """
    labels = np.repeat(np.arange(classes), each)
    random = np.random.RandomState(0)
    windowed = _windowed(labels, 2_048, 1_000, random)
    return len(set(windowed)), len(set(random.permutation(labels)[:1_000]))


def steepest_without_logarithm() -> tuple[float, float]:
    """Return the learning rate that two readings of a range test suggest.

    The curve falls fastest at 0.001 in the plot, whose axis is logarithmic; its steps differ by a
    thousandth or so, as those of a smoothed loss do.
    """
    rates = rules.growing(1e-6, 10, 141)
    losses = 2.3 - 2 / (1 + np.exp(-4 * np.log10(rates / 1e-3)))
    losses += np.random.RandomState(0).normal(0, 0.001, len(losses))
    return rules.steepest_in_rate(rates, losses), rules.steepest(rates, losses)


def values_of_eight_bits() -> tuple[int, int]:
    """Return how many numbers eight bits can stand for after dividing by the largest one."""
    numbers = np.linspace(-1, 1, 10_001)
    return 2**8, len(set(np.rint(numbers * 127).astype("int8").tolist()))


def more_data_and_more_epochs(more: float = 1.2) -> tuple[float, float]:
    """Return how many times as many updates a training on more data makes.

    Args:
        more: times the samples, and times the epochs.
    """
    return more, more * more


ERRATA = (
    Erratum(
        "A median of utilisation without its zeros",
        "The checklist takes the median of a GPU's utilisation after dropping all samples of 0 %.",
        "A record says which share of its seconds the loop waited for batches, and `mxopt advise` "
        "names it.",
        utilisation_without_zeros,
        "per cent of a device that is idle three quarters of the time, and at 80 % in the last one",
    ),
    Erratum(
        "Repeated, and then shuffled",
        "The checklist's pipeline calls `repeat()` before `shuffle(2048)`, so that the buffer "
        "mixes the end of one epoch with the beginning of the next.",
        "An epoch is a permutation: every sample is seen once.",
        repeated_before_it_is_shuffled,
        "per cent of 60,000 samples that the first epoch leaves out",
    ),
    Erratum(
        "A window over sorted files",
        "A shuffled buffer of 2,048 samples over files that hold one class after the other.",
        "The order is drawn over all samples.",
        window_over_sorted_files,
        "of 10 classes among the first 1,000 samples",
    ),
    Erratum(
        "The steepest fall, without the logarithm",
        "The learning rate is read where the loss falls fastest; with the slope against the rate "
        "itself, which implementations compute, that is among the smallest rates.",
        "`mxopt find-rate` takes the slope against the logarithm, as the plot shows it, and shows "
        "what other rules say.",
        steepest_without_logarithm,
        "the suggested rate for a curve that is steepest at 0.001",
    ),
    Erratum(
        "Eight bits are 255 values",
        "Numbers divided by the largest one and multiplied by 127 are said to have 256 values.",
        "-127 to 127 are 255; -128 is not used.",
        values_of_eight_bits,
        "values",
    ),
    Erratum(
        "A fifth more data, and a fifth more epochs",
        "After a search the best network is trained on all data, a fifth more, for a fifth more "
        "epochs, because there is more data.",
        "An epoch of more data already has more updates: for as many per sample the epochs stay.",
        more_data_and_more_epochs,
        "times the updates",
    ),
)
