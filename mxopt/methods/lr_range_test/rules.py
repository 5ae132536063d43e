"""Rules that read a learning rate from the losses of a range test."""

from __future__ import annotations

import numpy as np

from mxopt.core.errors import PlanError

# The test ends when the smoothed loss exceeds its smallest value so many times.
DIVERGED = 4.0
# Share of the steps that rules leave out at the start, where the average is of few losses, and
# number of those at the end, where the loss explodes.
_FIRST, _LAST = 0.1, 5


def growing(lowest: float, highest: float, steps: int) -> np.ndarray:
    """Return rates that grow by a constant factor: float64, (steps,).

    Args:
        lowest: the first rate.
        highest: the last rate.
        steps: number of rates.

    Raises:
        PlanError: the rates do not grow, or are too few for a rule.
    """
    if not 0 < lowest < highest:
        raise PlanError(f"lowest={lowest} and highest={highest}: rates must be above 0 and grow")
    if steps < 20:
        raise PlanError(f"steps={steps} are too few for a range test; take 100 or so")
    return np.geomspace(lowest, highest, steps)


def smoothed(losses, decay: float = 0.98) -> np.ndarray:
    """Return the exponential moving average of losses, corrected for its start: (steps,).

    The correction is that of Adam (Kingma and Ba, 2015, section 3).

    Args:
        losses: the loss of each step, (steps,).
        decay: weight of the average before, against a new loss.
    """
    average, found = 0.0, []
    for step, loss in enumerate(losses, 1):
        average = decay * average + (1 - decay) * float(loss)
        found.append(average / (1 - decay**step))
    return np.array(found)


def usable(rates, losses) -> tuple[np.ndarray, np.ndarray]:
    """Return rates and smoothed losses that a rule may look at.

    Left out are the first tenth, where the average is of few losses, and everything from the step
    on at which the loss has diverged, with five steps before it.

    Args:
        rates: the rate of each step, (steps,).
        losses: the loss of each step, (steps,); the last ones may be NaN or infinite.

    Raises:
        PlanError: too few steps are left; begin at a lower rate, or take more steps.
    """
    losses = np.asarray(losses, float)
    finite = np.flatnonzero(~np.isfinite(losses))
    count = finite[0] if len(finite) else len(losses)
    means = smoothed(losses[:count])
    beyond = np.flatnonzero(means > DIVERGED * np.minimum.accumulate(means))
    end = (beyond[0] if len(beyond) else count) - _LAST
    begin = int(_FIRST * len(rates))
    if end - begin < 10:
        raise PlanError(
            f"the loss diverged after {count} of {len(rates)} steps, which leaves too few to "
            "choose from; begin at a lower rate, or take more steps"
        )
    return np.asarray(rates, float)[begin:end], means[begin:end]


def steepest(rates: np.ndarray, losses: np.ndarray) -> float:
    """Return the rate at which the loss falls fastest with the logarithm of the rate.

    Args:
        rates: as :func:`usable` returns them.
        losses: as :func:`usable` returns them.
    """
    slopes = np.gradient(losses, np.log(rates))
    return float(rates[slopes.argmin()])


def minimum(rates: np.ndarray, losses: np.ndarray) -> float:
    """Return a tenth of the rate at which the loss is smallest.

    Args:
        rates: as :func:`usable` returns them.
        losses: as :func:`usable` returns them.
    """
    return float(rates[losses.argmin()]) / 10


def valley(rates: np.ndarray, losses: np.ndarray) -> float:
    """Return the rate in the middle of the longest falling part of the losses.

    That is the longest decreasing subsequence, so a few steps upwards do not end it.

    Args:
        rates: as :func:`usable` returns them.
        losses: as :func:`usable` returns them.
    """
    # For every step, the length of the longest decreasing subsequence that ends there, and its
    # first step.
    lengths, firsts = np.ones(len(losses), int), np.arange(len(losses))
    for step in range(1, len(losses)):
        before = np.flatnonzero(losses[:step] > losses[step])
        if len(before):
            best = before[lengths[before].argmax()]
            lengths[step], firsts[step] = lengths[best] + 1, firsts[best]
    last = lengths.argmax()
    return float(rates[(firsts[last] + last) // 2])


def between(rates: np.ndarray, losses: np.ndarray) -> float:
    """Return the geometric mean of :func:`steepest` and :func:`minimum`.

    Args:
        rates: as :func:`usable` returns them.
        losses: as :func:`usable` returns them.
    """
    return float(np.sqrt(steepest(rates, losses) * minimum(rates, losses)))


def steepest_in_rate(rates: np.ndarray, losses: np.ndarray) -> float:
    """Return the rate at which the loss falls fastest with the rate itself.

    This is what "the steepest descent" of a plot with a logarithmic axis is not. Rates grow by a
    factor, so that small ones lie close together, and the rule finds a slope among them.

    Args:
        rates: as :func:`usable` returns them.
        losses: as :func:`usable` returns them.
    """
    return float(rates[np.gradient(losses, rates).argmin()])


# The first is the one that is used.
RULES = {
    "between": between,
    "steepest": steepest,
    "minimum": minimum,
    "valley": valley,
    "steepest in rate": steepest_in_rate,
}


def suggest(rates, losses) -> dict[str, float]:
    """Return the rate that each rule suggests, the one that is used first.

    Args:
        rates: the rate of each step of a range test, (steps,).
        losses: the loss of each step, (steps,).

    Raises:
        PlanError: the loss diverged too early.
    """
    kept = usable(rates, losses)
    return {name: rule(*kept) for name, rule in RULES.items()}
