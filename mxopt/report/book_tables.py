"""Tables of every figure and every comparison that the chapter prints, next to ours.

*Reproduced*: the book's ratio lies within our interval. *Same direction*: both are faster, or both
slower, by different factors. *Not reproduced*: anything else. Machine, data and networks differ
from the book's, so only ratios are compared, never seconds.
"""

from __future__ import annotations

import math

from mxopt.measure import Experiment, Ratio
from mxopt.report import book
from mxopt.report.table import Table, number
from mxopt.report.tables import figure_name

ABSENT = "not measured (not among these results)"


def covers(experiments: list[Experiment]) -> bool:
    """Return whether the chapter prints a figure of any of the experiments; guides have none."""
    names = {one.experiment for one in (*book.FIGURES, *book.COMPARISONS)}
    return any(experiment.name in names for experiment in experiments)


def comparisons(experiments: list[Experiment]) -> Table:
    """Return the chapter's comparisons: its ratio, ours, and whether they agree."""
    known, rows = _by_name(experiments), []
    for compared in book.COMPARISONS:
        ours, verdict = _compare(known, compared)
        name, before, after, figure = compared
        what = f"{name}: {before} → {after}"
        if figure != "seconds":
            what += f", {figure_name(figure)}"
        rows.append([what, f"{_theirs(compared):.2f}", str(ours or ""), verdict])
    for name, metric, *theirs in book.QUALITIES:
        ours, verdict = _qualities(known.get(name), metric, theirs)
        shown = (" → ".join(map(number, pair)) for pair in (theirs, ours))
        rows.append([f"{name}: {figure_name(metric)}, before → after", *shown, verdict])
    columns = ["what the chapter compares", "the book", "ours [95 %]", "verdict"]
    return Table(
        columns, rows, f"Ratios are times faster; the last rows are quality. Book: {book.SOURCE}."
    )


def figures(experiments: list[Experiment]) -> Table:
    """Return every printed figure and ours; the verdict compares ratios to the baseline."""
    known, rows = _by_name(experiments), []
    compared = {(one.experiment, one.after, one.figure): one for one in book.COMPARISONS}
    for printed in book.FIGURES:
        name, arm = printed.experiment, printed.arm
        experiment = known.get(name)
        here = experiment is not None and arm in experiment.arms
        ours = experiment.median(arm, printed.figure) if here else math.nan
        if (name, arm, printed.figure) in compared:
            _, verdict = _compare(known, compared[name, arm, printed.figure])
        else:
            verdict = _why_not(experiment, arm) or "the baseline"
        shown = number(ours, printed.unit) if math.isfinite(ours) else ""
        what = [f"{name}: {arm}", figure_name(printed.figure)]
        rows.append([*what, f"{printed.value:,} {printed.unit}", shown, verdict, printed.note])
    for name, metric, *theirs in book.QUALITIES:
        ours, verdict = _qualities(known.get(name), metric, theirs)
        said = (verdict if not ours else "the baseline", verdict)
        shown = map(number, ours) if ours else ("", "")
        for arm, printed, value, judged in zip(("before", "after"), theirs, shown, said):
            what = [f"{name}: {arm}", figure_name(metric), str(printed), value, judged, ""]
            rows.append(what)
    columns = ["arm", "figure", "the book", "ours", "verdict", "how the book measured it"]
    return Table(columns, rows, f"Book: {book.SOURCE}, on its author's GPU machine.")


def _by_name(experiments):
    return {experiment.name: experiment for experiment in experiments}


def _theirs(compared: book.Comparison) -> float:
    printed = book.beside(compared.experiment, compared.figure)
    return printed[compared.before].value / printed[compared.after].value


def _compare(known: dict, compared: book.Comparison) -> tuple[Ratio | None, str]:
    """Return our ratio of a comparison (None without one), and the verdict or the reason."""
    name, before, after, figure = compared
    experiment, theirs = known.get(name), _theirs(compared)
    missing = next(filter(None, (_why_not(experiment, arm) for arm in (before, after))), "")
    if missing or not all(math.isfinite(experiment.median(a, figure)) for a in (before, after)):
        return None, missing or ABSENT
    ours = experiment.ratio(after, before, figure)
    if ours.low <= theirs <= ours.high:
        return ours, "reproduced"
    same = (theirs > 1 and ours.low > 1) or (theirs < 1 and ours.high < 1)
    return ours, "same direction" if same else "not reproduced"


def _qualities(experiment, metric, theirs) -> tuple[list[float], str]:
    arms = ("before", "after") if experiment else ()
    ours = [value for arm in arms if math.isfinite(value := experiment.median(arm, metric))]
    if len(ours) < 2:
        return [], ABSENT
    same = (theirs[1] > theirs[0]) == (ours[1] > ours[0])
    return ours, "same direction" if same else "not reproduced"


def _why_not(experiment: Experiment | None, arm: str) -> str:
    if experiment is None:
        return ABSENT
    if arm not in experiment.arms:
        return "not measured (not part of this tier)"
    why = experiment.why_not(arm)
    return f"not measured ({why})" if why else ""
