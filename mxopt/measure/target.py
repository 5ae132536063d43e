"""Time to target: how long an arm needs to reach the final quality of the baseline.

The seconds of an epoch do not tell how many epochs are needed. The target is the final quality, on
the validation split, of the baseline's run with the same seed; both arms are timed until they first
reach it. As in MLPerf Training (Mattson et al., 2020), training and preprocessing are timed, and
evaluation is not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from mxopt.core.records import Run
from mxopt.measure.experiment import Experiment
from mxopt.measure.statistics import Ratio, ratio


@dataclass(frozen=True)
class TimeToTarget:
    """The times to the target of two arms, by pair of runs.

    Attributes:
        targets: final quality of each run of the baseline.
        before: seconds until each run of the baseline first reached it.
        after: seconds until each run of the other arm reached it; infinite if it never did.
        ratio: how many times sooner the other arm reached it; None if one of its runs never did.
    """

    targets: list[float]
    before: list[float]
    after: list[float]
    ratio: Ratio | None

    @property
    def missed(self) -> int:
        """Number of runs of the other arm that never reached the target."""
        return sum(math.isinf(seconds) for seconds in self.after)


def history(run: Run, figure: str) -> list[tuple[float, float]]:
    """Return the values of a figure over the epochs of a run and the checks within them.

    Args:
        run: the run.
        figure: a figure of ``epoch`` and ``check`` events, such as ``validation_mIoU``.

    Returns:
        ``[(seconds of training, value), ...]``, without the time of preparing the training set.
    """
    points, before = [], 0.0
    for event in run.events:
        if event["event"] in ("check", "epoch") and figure in event:
            points.append((before + event["seconds"], event[figure]))
        if event["event"] == "epoch":
            before += event["seconds"]
    return points


def seconds_to(run: Run, target: float, metric: str) -> float:
    """Return the seconds until a metric first reached a target in a validation.

    Args:
        run: the run.
        target: the value to be reached, or exceeded.
        metric: name of the metric, higher being better.

    Returns:
        Seconds of preprocessing and training; infinite if the target was never reached.
    """
    preparation = run.only("setup").get("preprocessing_seconds", 0.0)
    reached = (seconds for seconds, found in history(run, metric) if found >= target)
    return preparation + next(reached, math.inf)


def time_to_target(
    experiment: Experiment, arm: str, metric: str | None = None, baseline: str | None = None
) -> TimeToTarget:
    """Compare two arms by the time they need to reach the baseline's final quality.

    Pairs with a run that did not succeed or was resumed are left out.

    Args:
        experiment: the experiment.
        arm: name of the arm.
        metric: a figure of ``epoch`` events, higher being better, such as ``validation_mIoU``;
            the experiment's ``target`` if None.
        baseline: name of the arm it is compared with; the first one if None.

    Returns:
        The times of both arms, and their ratio.
    """
    metric = metric or experiment.target
    pairs = list(zip(experiment.runs[baseline or experiment.baseline], experiment.runs[arm]))
    pairs = [pair for pair in pairs if all(run.ok and not run.all("resumed") for run in pair)]
    targets = [before.all("epoch")[-1][metric] for before, _ in pairs]
    times = [
        [seconds_to(run, target, metric) for run, target in zip(runs, targets)]
        for runs in zip(*pairs)
    ] or [[], []]
    found = None
    if pairs and all(map(math.isfinite, times[1])):
        found = ratio(*times)
    return TimeToTarget(targets, *times, found)
