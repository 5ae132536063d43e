"""Ratios and differences of paired runs, with their intervals.

All intervals are Student's t of the pairs' differences; those of ratios are computed on logarithms.
With 2 to 24 pairs a percentile bootstrap covers too little (86 % instead of 95 % with six pairs).
``tests/measure/test_statistics.py`` simulates the coverage: at least 93 % with heavy tails and with
occasional slow runs of both arms. If one arm alone has rare slow runs, it is 80 to 86 %.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean over pairs of runs, with its interval.

    Attributes:
        value: the mean.
        low: lower end of its 95 % interval.
        high: upper end of its 95 % interval.
        pairs: number of pairs of runs.
        digits: how the numbers are formatted.
    """

    value: float
    low: float
    high: float
    pairs: int
    digits: ClassVar[str]

    def __str__(self):
        value, low, high = (format(end, self.digits) for end in (self.value, self.low, self.high))
        if self.pairs == 1:
            return f"{value} (no interval), n = 1"
        return f"{value} [{low}, {high}], n = {self.pairs}"


class Ratio(Estimate):
    """How many times better the second of two arms is: a geometric mean; above 1 means better."""

    @property
    def digits(self) -> str:
        """Two decimals, or three or four if an end that is not 1 would be rounded to 1."""
        for digits in (".2f", ".3f", ".4f"):
            if all(end == 1 or float(format(end, digits)) != 1 for end in (self.low, self.high)):
                return digits
        return ".2f"

    @property
    def verdict(self) -> str:
        """``faster``, ``slower``, or ``not significant`` if the interval contains 1."""
        if self.low > 1:
            return "faster"
        return "slower" if self.high < 1 else "not significant"


class Difference(Estimate):
    """By how much the figures of two arms differ: second arm minus first, in the figure's unit."""

    digits = "+.4f"


def ratio(before, after, better: str = "lower") -> Ratio:
    """Return the ratio of paired figures with its 95 % interval.

    Args:
        before: figures of the baseline's runs, all above 0.
        after: figures of the other arm's runs, paired with ``before`` by position.
        better: ``lower`` for seconds, ``higher`` for throughput.

    Returns:
        The ratio; above 1 if ``after`` is better. The interval of one pair is (0, inf).

    Raises:
        ValueError: there are no pairs, or a figure is not a positive number.
    """
    before, after = _pairs(before, after)
    if not before.size or not (np.isfinite([before, after]).all() and (before > 0).all()
                               and (after > 0).all()):  # fmt: skip
        raise ValueError(f"a ratio needs pairs of positive figures, not {before} and {after}")
    logs = np.log(before / after) if better == "lower" else np.log(after / before)
    return Ratio(*(float(np.exp(value)) for value in interval(logs)), before.size)


def difference(before, after) -> Difference:
    """Return the mean difference of paired figures with its 95 % interval.

    Args:
        before: figures of the baseline's runs.
        after: figures of the other arm's runs, paired with ``before`` by position.

    Returns:
        The difference; above 0 if ``after`` is larger. The interval of one pair is (-inf, inf).

    Raises:
        ValueError: there are no pairs, or a figure is not a finite number.
    """
    before, after = _pairs(before, after)
    if not before.size or not np.isfinite([before, after]).all():
        raise ValueError(f"a difference needs pairs of finite figures, not {before} and {after}")
    return Difference(*map(float, interval(after - before)), before.size)


def interval(values: np.ndarray) -> tuple:
    """Return the mean of values with its 95 % interval by Student's t.

    Args:
        values: float array of shape (..., n); the mean is taken over the last axis.

    Returns:
        Mean, lower and upper end, each of shape (...); the ends are infinite if n is 1.
    """
    from scipy import stats

    count, mean = values.shape[-1], values.mean(-1)
    if count == 1:
        half = np.full_like(mean, np.inf)
    else:
        error = values.std(-1, ddof=1) / np.sqrt(count)
        half = stats.t.ppf((1 + CONFIDENCE) / 2, count - 1) * error
    return mean, mean - half, mean + half


def _pairs(before, after) -> tuple[np.ndarray, np.ndarray]:
    """Return both as float arrays, cut to the length of the shorter one."""
    before, after = np.asarray(before, float), np.asarray(after, float)
    pairs = min(len(before), len(after))
    return before[:pairs], after[:pairs]
