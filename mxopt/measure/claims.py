"""What a pair of arms may claim: a speed-up needs the same start, and quality that holds.

Quality is judged as non-inferiority: the 95 % interval of the paired difference has to lie above
minus the margin. A difference that is only not significant proves nothing with few runs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mxopt.core.records import Run
from mxopt.measure.statistics import Ratio, difference

if TYPE_CHECKING:
    from mxopt.measure.experiment import Experiment

NOISE = "A/A: the harness's own noise"
NOT_RECORDED = "start not recorded"
# Figures that say how well a network does, and not how fast something is, begin with one of these.
SCORES = ("test_", "validation_", "best_validation_")
_OF_SCORES = {"faster": "better", "slower": "worse"}


def judge(experiment: Experiment, found: Ratio, arm: str, baseline: str) -> str:
    """Return what a ratio of two arms shows.

    Args:
        experiment: the experiment of both arms.
        found: the ratio.
        arm: name of the arm.
        baseline: name of the arm it is compared with.

    Returns:
        The ratio's verdict; if it is ``faster``, also what is known of start and quality, or only
        that the arms do not start from the same point. For scores it is ``better``, ``worse`` or
        ``not significant``.
    """
    is_score = experiment.figure.startswith(SCORES)
    said = _OF_SCORES.get(found.verdict, found.verdict) if is_score else found.verdict
    if (baseline, arm) == experiment.same_arms:
        if found.verdict == "not significant":
            return NOISE
        return f"A/A: the same arm twice comes out {said}; smaller effects show nothing"
    if is_score:
        return said
    if found.verdict != "faster" or not trained(experiment, arm):
        return found.verdict + _quality(experiment, found, arm, baseline)
    if not experiment.quality:
        return "faster, quality not compared"
    start = start_of(experiment, arm, baseline)
    if start == NOT_RECORDED:
        return f"faster, {NOT_RECORDED}"
    return start or "faster" + _quality(experiment, found, arm, baseline)


def _quality(experiment, found, arm, baseline) -> str:
    """Return what is known of the quality of a faster arm, to be added to the verdict."""
    figure, margin = experiment.quality, experiment.margin
    if not figure or found.verdict != "faster":
        return ""
    scores = [experiment.figures(name, figure) for name in (baseline, arm)]
    if not all(math.isfinite(score) for found in scores for score in found):
        return f", {figure} not measured"
    lost = difference(*scores)
    if lost.low >= -margin:
        return f", {figure} holds"
    how = "lost" if lost.high < -margin else "not shown to hold"
    return f", {figure} {how}: difference {lost}, margin {margin:g}"


def trained(experiment: Experiment, arm: str) -> bool:
    """Return whether the runs of an arm trained a network: their epochs have a training loss.

    Args:
        experiment: the experiment.
        arm: name of the arm.
    """
    return any("train_loss" in epoch for run in experiment.runs[arm] for epoch in run.all("epoch"))


def start_of(experiment: Experiment, arm: str, baseline: str) -> str:
    """Return in what the runs of two arms differ before their first step.

    Compared are the validation scores at step 0, which may differ by the margin of the quality,
    and, if the networks have equally many parameters and the runs the same seed, the hash of the
    initial weights.

    Args:
        experiment: the experiment; its ``quality`` is a ``test_`` figure of the metric.
        arm: name of the arm.
        baseline: name of the arm it is compared with.

    Returns:
        Empty if they start the same; ``NOT_RECORDED`` if a run has no score at step 0.
    """
    figure = "validation_" + experiment.quality.removeprefix("test_")
    apart, weights = [], []
    for before, after in zip(experiment.runs[baseline], experiment.runs[arm]):
        scores = score_at_start(before, figure), score_at_start(after, figure)
        if None in scores:
            return NOT_RECORDED
        gap = abs(scores[1] - scores[0])
        if not gap <= experiment.margin:  # also if a score is NaN
            apart.append((gap, scores))
        if _other_weights(before, after):
            weights.append(before.plan.seed)
    if apart:
        _, (one, other) = max(apart, key=lambda pair: pair[0])
        return f"not the same start: {figure} {one:.3f} and {other:.3f} at step 0"
    if weights:
        return f"not the same start: other initial weights with the same seed, {weights[0]}"
    return ""


def score_at_start(run: Run, figure: str) -> float | None:
    """Return a validation score before the first step; None if it is not recorded.

    Args:
        run: the run.
        figure: name of the score, such as ``validation_mIoU``.
    """
    # In older records of PyTorch's runs, checks have a step and no progress.
    checks = [check for check in run.all("check") if check.get("progress", check.get("step")) == 0]
    return next((check[figure] for check in checks if figure in check), None)


def _other_weights(before: Run, after: Run) -> bool:
    first, second = before.only("weights"), after.only("weights")
    comparable = (
        first and second and before.plan.seed == after.plan.seed
        and first["parameters"] == second["parameters"]
    )  # fmt: skip
    return bool(comparable) and first["hash"] != second["hash"]
