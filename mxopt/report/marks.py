"""Figures of experiments as text, for the marks within sentences (:mod:`mxopt.report.prose`)."""

from __future__ import annotations

from pathlib import Path

from mxopt import report
from mxopt.core.errors import RecordError
from mxopt.measure import Experiment, read_experiment, time_to_target
from mxopt.measure.files import packed_path


def evaluate(expression: str, root: Path) -> str:
    """Return what a mark shows, as text.

    Args:
        expression: the text of the mark after ``=``.
        root: the repository's root.

    Raises:
        RecordError: there is no such experiment, arm or kind of figure.
    """
    name, kind, *words = expression.split()
    packed = packed_path(root / name)
    experiment = read_experiment(packed if packed.exists() else root / name)
    shown = _KINDS.get(kind)
    arms = words[:1] if kind in ("median", "sum") else words
    unknown = [arm for arm in arms[:2] if arm not in experiment.arms]
    if shown is None or unknown:
        raise RecordError(
            f"{expression!r} cannot be shown; there are {', '.join(_KINDS)}, and the arms "
            f"{', '.join(experiment.arms)}"
        )
    try:
        return shown(experiment, *words)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RecordError(f"{expression!r} has no figure: {error}") from None


def _ratio(experiment: Experiment, before: str, after: str, figure: str | None = None) -> str:
    return str(experiment.ratio(after, before, figure)).partition(", n")[0]


def _times(experiment: Experiment, before: str, after: str, figure: str | None = None) -> str:
    return f"{experiment.ratio(after, before, figure).value:.2f}"


def _target(experiment: Experiment, before: str, after: str) -> str:
    return str(time_to_target(experiment, after, baseline=before).ratio).partition(", n")[0]


def _median(experiment: Experiment, arm: str, figure: str | None = None) -> str:
    seconds = (figure or experiment.figure).endswith("seconds")
    unit = experiment.unit if figure in (None, experiment.figure) else "s" if seconds else ""
    return report.number(experiment.median(arm, figure), unit)


def _sum(experiment: Experiment, arm: str, figure: str) -> str:
    return report.number(sum(run.figures[figure] for run in experiment.runs[arm]))


def _comparison(experiment: Experiment) -> str:
    return f"\n\n{report.comparison(experiment)}\n\n"


_KINDS = {"ratio": _ratio, "times": _times, "target": _target, "median": _median,
          "sum": _sum, "comparison": _comparison}  # fmt: skip
