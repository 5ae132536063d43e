"""Tables of the time that arms need to reach a target of quality."""

from __future__ import annotations

import statistics

from mxopt.measure import Experiment, Reach, TimeToTarget, time_to_target
from mxopt.measure.target import bounded, misses
from mxopt.report.table import Table, number
from mxopt.report.tables import DIFFERS, PAIRS, caption_of, factors, figure_name

TARGETS = [*PAIRS[:-1], "shorter steps [95 %]", "fewer steps [95 %]", "needed", PAIRS[-1]]


def targets(experiment: Experiment) -> Table:
    """Return a table of the times until an arm reaches the target, and of their two factors.

    The time is the seconds of a step, preparation included, times the steps needed. The table shows
    medians over the runs. A run that never reaches the target is censored at the seconds that it
    trained, and the ratio is then a bound.
    """
    rows = []
    for baseline, arm in experiment.compared():
        found = time_to_target(experiment, arm, baseline=baseline)
        if found.ratio:
            steps = found.steps and bounded(found.steps, found.bound)
            claim, missed = (
                experiment.judge(found.ratio, arm, baseline),
                misses(found, arm, baseline),
            )
            result = [
                bounded(found.ratio, found.bound),
                str(found.step or "not recorded"),
                steps or "not recorded",
                _needed(experiment, found),
                f"{claim}; {missed}" if missed else claim,
            ]
        else:
            result = ["no ratio", "", "", "", found.why]
        differing = factors(experiment.factors(arm, baseline))
        times = [_median_time(found.before), _median_time(found.after)]
        rows.append([f"{baseline} → {arm}", differing, *times, *result])
    goal = figure_name(experiment.target)
    if experiment.goal is None:
        about = (
            f"seconds until {goal} reaches its final value in the first arm's run of the same seed"
        )
    else:
        about = f"seconds until {goal} reaches {experiment.goal:g}, fixed before measuring"
    about += (
        "; the ratio is that of the seconds a step, preparation included, times that of the steps"
    )
    return Table(TARGETS, rows, caption_of(experiment, about)).with_notes(DIFFERS)


def target(found: TimeToTarget, name: str) -> Table:
    """Return a table of the times to the target of each pair of runs; its caption has the ratio.

    Args:
        found: the times.
        name: name of the metric, such as ``validation mIoU``.
    """
    rows = [
        [str(pair), number(goal), _reached(before), _reached(after)]
        for pair, (goal, before, after) in enumerate(
            zip(found.targets, found.before, found.after), start=1
        )
    ]
    caption = f"times sooner: {found} ({found.ratio.verdict})" if found.ratio else str(found)
    columns = ["pair", f"target ({name})", "reached by before", "reached by after"]
    return Table(columns, rows, caption)


def _median_time(runs: list[Reach]) -> str:
    """Return the median time to the target, or how long the median run trained without it."""
    if not runs:
        return "not measured"
    middle = sorted(runs, key=lambda run: (not run.reached, run.seconds))[len(runs) // 2]
    if not middle.reached:
        return f"not in {number(middle.seconds, 's')}"
    reached_all = all(run.reached for run in runs)
    seconds = statistics.median(run.seconds for run in runs) if reached_all else middle.seconds
    return number(seconds, "s")


def _needed(experiment: Experiment, found: TimeToTarget) -> str:
    """Return the median samples or tokens until the target, before → after."""
    medians = []
    for runs in (found.before, found.after):
        if not all(run.reached and run.size for run in runs):
            return "not reached by all" if any(found.missed) else "not recorded"
        medians.append(statistics.median(run.size for run in runs))
    epochs = (
        epoch for runs in experiment.runs.values() for run in runs for epoch in run.all("epoch")
    )
    unit = "tokens" if "tokens" in next(epochs, {}) else "samples"
    return f"{medians[0]:,.0f} → {medians[1]:,.0f} {unit}"


def _reached(run: Reach) -> str:
    seconds = number(run.seconds, "s")
    return seconds if run.reached else f"not in {seconds}"
