"""Time to target: how long an arm needs to become as good as the baseline ends up.

Seconds an epoch say nothing of how many epochs are needed. The target is the quality that the
baseline's run with the same seed ended with, on the validation split; both arms are timed until
they first reach it. As in MLPerf Training (Mattson et al., 2020), the clock of a run counts
training and preprocessing and stands still while quality is evaluated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from mxopt.core.records import Run
from mxopt.measure.experiment import Experiment
from mxopt.measure.statistics import Ratio, ratio


@dataclass(frozen=True)
class TimeToTarget:
    """What two arms needed, run by run.

    Attributes:
        targets: the quality that each of the baseline's runs ended with.
        before, after: seconds until each run reached it; infinite if it never did.
        ratio: how many times sooner the arm was there; None if one of its runs never was.
    """

    targets: list[float]
    before: list[float]
    after: list[float]
    ratio: Ratio | None

    @property
    def missed(self) -> int:
        """How many of the arm's runs never reached the target."""
        return sum(math.isinf(seconds) for seconds in self.after)


def history(run: Run, figure: str) -> list[tuple[float, float]]:
    """Return a figure of epochs, and of the checks within them, as (seconds of training, figure).

    The seconds do not contain the preparation of the training set.
    """
    points, before = [], 0.0
    for event in run.events:
        if event["event"] in ("check", "epoch") and figure in event:
            points.append((before + event["seconds"], event[figure]))
        if event["event"] == "epoch":
            before += event["seconds"]
    return points


def seconds_to(run: Run, target: float, metric: str) -> float:
    """Return the seconds until a validation found the metric at the target, or infinity."""
    preparation = run.only("setup").get("preprocessing_seconds", 0.0)
    reached = (seconds for seconds, found in history(run, metric) if found >= target)
    return preparation + next(reached, math.inf)


def time_to_target(
    experiment: Experiment, arm: str, metric: str | None = None, baseline: str | None = None
) -> TimeToTarget:
    """Compare two arms by the time they need to the baseline's final quality.

    Args:
        metric: a figure of ``epoch`` events, higher being better, such as ``validation_mIoU``;
            the experiment's ``target`` if not given.
        baseline: the first arm if not given.
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
