"""Ratio of paired runs, with its interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

CONFIDENCE = 0.95
# With fewer pairs, the widest bootstrap interval covers less than 95 %: 1 - 2 ** (1 - n).
PAIRS_FOR_BOOTSTRAP = 6
RESAMPLES = 9999
# Numbers drawn at a time, so that a thousand pairs need no more memory than a hundred.
DRAWS = 1 << 20


@dataclass(frozen=True)
class Ratio:
    """How many times better the second of two arms is, from pairs of runs.

    Attributes:
        value: geometric mean of the pairs' ratios; above 1 means better.
        low: lower end of its 95 % interval.
        high: upper end of its 95 % interval.
        pairs: number of pairs of runs.
    """

    value: float
    low: float
    high: float
    pairs: int

    @property
    def verdict(self) -> str:
        """``faster``, ``slower``, or ``not significant`` if the interval contains 1."""
        if self.low > 1:
            return "faster"
        return "slower" if self.high < 1 else "not significant"

    def __str__(self):
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}], n = {self.pairs}"


def ratio(before, after, better: str = "lower") -> Ratio:
    """Return the ratio of paired figures with its 95 % interval.

    The logarithms of the ratios are averaged. From six pairs on, the interval is a percentile
    bootstrap (Efron, 1979). With fewer pairs, where a bootstrap cannot reach 95 %, it is Student's
    t on the same logarithms, which is wider. The interval of one pair is (0, inf).

    Args:
        before: figures of the baseline's runs, all above 0.
        after: figures of the other arm's runs, paired with ``before`` by position.
        better: ``lower`` for seconds, ``higher`` for throughput.

    Returns:
        The ratio; above 1 if ``after`` is better.

    Raises:
        ValueError: there are no pairs, or a figure is not a positive number.
    """
    from scipy import stats

    before, after = np.asarray(before, float), np.asarray(after, float)
    pairs = min(len(before), len(after))
    before, after = before[:pairs], after[:pairs]
    if not pairs or not (np.isfinite([before, after]).all() and (before > 0).all()
                         and (after > 0).all()):  # fmt: skip
        raise ValueError(f"a ratio needs pairs of positive figures, not {before} and {after}")
    logs = np.log(before / after) if better == "lower" else np.log(after / before)
    mean = logs.mean()
    if pairs == 1:
        low, high = -np.inf, np.inf
    elif pairs < PAIRS_FOR_BOOTSTRAP or np.ptp(logs) == 0:
        half = stats.t.ppf((1 + CONFIDENCE) / 2, pairs - 1) * stats.sem(logs)
        low, high = mean - half, mean + half
    else:
        low, high = stats.bootstrap(
            (logs,), np.mean, confidence_level=CONFIDENCE, n_resamples=RESAMPLES,
            method="percentile", random_state=0, batch=min(RESAMPLES, DRAWS // pairs),
        ).confidence_interval  # fmt: skip
    return Ratio(*(float(np.exp(value)) for value in (mean, low, high)), pairs)
