"""Table of runs against a fixed goal: their scores at step 0, when they reached it, and at last."""

from __future__ import annotations

from mxopt.measure import Experiment, history
from mxopt.measure.target import reach
from mxopt.report.table import Table, number
from mxopt.report.tables import caption_of, figure_name


def goals(experiment: Experiment) -> Table:
    """Return a table with one row for each run of an experiment that has a goal.

    Args:
        experiment: an experiment with ``target`` and ``goal``.
    """
    rows = []
    for arm, runs in experiment.runs.items():
        for run in runs:
            scores = [score for _, score in history(run, experiment.target)]
            found = reach(run, experiment.goal, experiment.target)
            cells = ["not recorded"] * 2
            if scores:
                cells = [number(scores[0]), number(scores[-1])]
            when = [number(found.seconds, "s"), str(found.steps)]
            if not found.reached:
                when = [f"not within {when[0]}", f"not within {when[1]}"]
            rows.append([arm, str(run.plan.seed), cells[0], *when, cells[1]])
    name = figure_name(experiment.target)
    columns = ["arm", "seed", f"{name} at step 0", "goal reached after", "steps until then",
               "at the end"]  # fmt: skip
    about = f"goal: {name} of {number(experiment.goal)}, the same for all runs"
    return Table(columns, rows, caption_of(experiment, about))
