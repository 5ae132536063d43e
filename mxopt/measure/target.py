"""Time to target: how long an arm needs to reach a quality that was fixed before measuring.

The seconds of an epoch do not tell how many epochs are needed. As in MLPerf Training (Mattson et
al., 2020), training and preprocessing are timed, and evaluation is not.

- A run that never reaches the target, for whatever reason, is censored at the seconds that it
  trained: the ratio is then a bound.
- A run that starts at the target has learned nothing: its time is 0 s, and there is no ratio.
- The time is the product of the seconds of a step, preparation included, and the steps needed.
  The ratio is therefore the product of two ratios: a faster program, and fewer steps.

Old experiments have no fixed target; there it is the final value of the baseline's run.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

from mxopt.core.records import Run
from mxopt.measure.claims import score_at_start
from mxopt.measure.experiment import Experiment
from mxopt.measure.statistics import Ratio, ratio


@dataclass(frozen=True)
class Reach:
    """When one run first reached the target.

    Attributes:
        seconds: of preprocessing and training until then, 0 if it started there; until the end of
            the run if it never did.
        steps: steps until then; None if the record does not have them.
        size: samples or tokens of these steps; None if the record does not have them.
        reached: whether it reached the target.
    """

    seconds: float
    steps: int | None
    size: int | None
    reached: bool


@dataclass(frozen=True)
class TimeToTarget:
    """The times to the target of two arms, by pair of runs.

    Attributes:
        targets: the target of each pair.
        before: when each run of the baseline reached it.
        after: when each run of the other arm reached it.
        ratio: how many times sooner the other arm reached it; None if nothing is known of it. With
            a bound, the interval is open to one side.
        step: how many times shorter a step is, preparation included; None if not recorded.
        steps: how many times fewer steps are needed, a bound if ``ratio`` is one; None if not
            recorded.
        bound: ``at least`` if runs of the baseline never reached the target, ``at most`` if runs of
            the other arm did not; empty if all did.
        why: why there is no ratio; empty if there is one.
    """

    targets: list[float]
    before: list[Reach]
    after: list[Reach]
    ratio: Ratio | None = None
    step: Ratio | None = None
    steps: Ratio | None = None
    bound: str = ""
    why: str = ""

    @property
    def missed(self) -> tuple[int, int]:
        """Number of runs that never reached the target, of the baseline and of the other arm."""
        return tuple(sum(not run.reached for run in runs) for runs in (self.before, self.after))

    def __str__(self):
        return bounded(self.ratio, self.bound) if self.ratio else f"no ratio: {self.why}"


def bounded(found: Ratio, bound: str) -> str:
    """Return a ratio as text; for a bound, with the end of its interval that is known.

    Args:
        found: the ratio.
        bound: ``at least``, ``at most``, or empty.
    """
    if not bound or found.pairs == 1:
        return f"{bound} {found}".lstrip()
    end = found.low if bound == "at least" else found.high
    value, end = (format(number, found.digits) for number in (found.value, end))
    return f"{bound} {value} (95 %: {end}), n = {found.pairs}"


def history(run: Run, figure: str) -> list[tuple[float, float]]:
    """Return the values of a figure over the epochs of a run and the checks within them.

    Args:
        run: the run.
        figure: a figure of ``epoch`` and ``check`` events, such as ``validation_mIoU``.

    Returns:
        ``[(seconds of training, value), ...]``, without the time of preparing the training set. The
        first point is that before the first step, if it is recorded.
    """
    return [(seconds, event[figure]) for seconds, event in _scored(run) if figure in event]


def reach(run: Run, target: float, metric: str) -> Reach:
    """Return when a metric first reached a target in a validation.

    Args:
        run: the run; one that did not end well has not reached it.
        target: the value to be reached, or exceeded.
        metric: name of the metric, higher being better.
    """
    start = score_at_start(run, metric)
    if start is not None and start >= target:
        return Reach(0.0, 0, 0, True)
    preparation = run.only("setup").get("preprocessing_seconds", 0.0)
    found = None
    for seconds, event in _scored(run):
        found = seconds, event.get("step")
        if run.ok and event.get(metric, -math.inf) >= target:
            return Reach(preparation + seconds, found[1], _size(run, found[1]), True)
    trained = _trained(run)
    if trained:
        return Reach(preparation + trained[0], *trained[1:], False)
    seconds, steps = found or (0.0, None)
    return Reach(preparation + seconds, steps, _size(run, steps), False)


def time_to_target(
    experiment: Experiment, arm: str, metric: str | None = None, baseline: str | None = None
) -> TimeToTarget:
    """Compare two arms by the time they need to reach the experiment's target.

    Args:
        experiment: the experiment.
        arm: name of the arm.
        metric: a figure of ``epoch`` events, higher being better, such as ``validation_mIoU``;
            the experiment's ``target`` if None.
        baseline: name of the arm it is compared with; the first one if None.

    Returns:
        The times of both arms, their ratio, and its two factors.
    """
    metric, baseline = metric or experiment.target, baseline or experiment.baseline
    pairs = list(zip(experiment.runs.get(baseline, []), experiment.runs.get(arm, [])))
    targets = [_target(experiment, before, metric) for before, _ in pairs]
    arms = [
        [reach(run, target, metric) for run, target in zip(runs, targets)] for runs in zip(*pairs)
    ] or [[], []]
    found = TimeToTarget(targets, *arms)
    why = _why_none(experiment, found, arm, baseline)
    return replace(found, why=why) if why else _compared(found)


def _target(experiment: Experiment, baseline: Run, metric: str) -> float:
    if experiment.goal is not None:
        return experiment.goal
    epochs = baseline.all("epoch")
    return epochs[-1].get(metric, math.nan) if baseline.ok and epochs else math.nan


def _why_none(experiment: Experiment, found: TimeToTarget, arm: str, baseline: str) -> str:
    """Return why two arms have no ratio; empty if they have one."""
    for name in (baseline, arm):
        runs = experiment.runs.get(name, [])
        if not runs or runs[0].status == "refused":
            return f"{name} {runs[0].status if runs else 'was not run'}"
        if any(run.all("resumed") for run in runs):
            return f"a run of {name} was resumed: its times are no evidence"
    if experiment.unfinished(arm, baseline):
        return experiment.unfinished(arm, baseline)
    if experiment.planned and experiment.goal is None:
        return "no goal was fixed before measuring"
    for name, runs in ((baseline, found.before), (arm, found.after)):
        if any(run.reached and run.seconds == 0 for run in runs):
            return f"{name} starts above the target"
        if any(run.seconds == 0 for run in runs):
            return f"a run of {name} ended before its first step"
    if all(found.missed):  # a pair says nothing, or the bounds point in both directions
        return misses(found, arm, baseline)
    return ""


def misses(found: TimeToTarget, arm: str, baseline: str) -> str:
    """Return how many runs of each arm never reached the target; empty if all did.

    Args:
        found: the times of both arms.
        arm: name of the arm.
        baseline: name of the arm it is compared with.
    """
    said = [
        f"{name} missed the target in {missed} of {len(found.targets)} runs"
        for name, missed in zip((baseline, arm), found.missed)
        if missed
    ]
    return ", ".join(said)


def _compared(found: TimeToTarget) -> TimeToTarget:
    """Return the times with their ratio and its factors."""
    missed_before, missed_after = found.missed
    bound = "at least" if missed_before else "at most" if missed_after else ""
    both = found.before, found.after

    def open_to_one_side(known: Ratio) -> Ratio:
        if bound == "at least":
            return replace(known, high=math.inf)
        return replace(known, low=0.0) if bound else known

    whole = ratio(*([run.seconds for run in runs] for runs in both))
    step = steps = None
    if all(run.steps for runs in both for run in runs):
        step = ratio(*([run.seconds / run.steps for run in runs] for runs in both))
        steps = open_to_one_side(ratio(*([run.steps for run in runs] for runs in both)))
    return replace(found, ratio=open_to_one_side(whole), step=step, steps=steps, bound=bound)


def _scored(run: Run):
    """Yield each validation, as (seconds of training until then, event)."""
    before = 0.0
    for event in run.events:
        if event["event"] in ("check", "epoch"):
            yield before + event["seconds"], event
        if event["event"] == "epoch":
            before += event["seconds"]


def _trained(run: Run) -> tuple[float, int, int] | None:
    """Return seconds, steps and samples or tokens of all that a run trained, awaited and recorded.

    Returns:
        None if the record does not have the seconds of its parts.
    """
    parts = list(run.steps())
    if not parts or not all("seconds" in part for part in parts):
        return None
    sizes = [size for part in parts for size in part["sizes"]]
    return sum(part["seconds"] for part in parts), len(sizes), sum(sizes)


def _size(run: Run, steps: int | None) -> int | None:
    """Return the samples or tokens of a run's first steps; None if their number is unknown."""
    if steps is None:
        return None
    sizes = itertools.chain.from_iterable(part["sizes"] for part in run.steps())
    return sum(itertools.islice(sizes, steps))
