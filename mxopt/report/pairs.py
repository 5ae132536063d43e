"""Pairs of arms across experiments: the README's table, and what held on several processors."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mxopt import report
from mxopt.measure import Experiment, Ratio, time_to_target

NO_HEADLINE = "No experiment in these records named a headline pair before it was measured."
UNLIKE = "†"  # marks pairs whose arms differ in other switches or values on some processor


@dataclass(frozen=True)
class Row:
    """A pair of arms, by the experiment's figure or by the time to its target.

    Attributes:
        title: title of the experiment and names of the arms.
        differing: what differs between them: ``{switch or option: (value before, value after)}``.
        cells: the cells *before*, *after*, *times better* and *verdict* of the pair's table.
        ratio: the ratio; None if there is none.
    """

    title: str
    differing: dict[str, tuple]
    cells: list[str]
    ratio: Ratio | None


def rows_of(experiment: Experiment, pairs: list[tuple[str, str]]) -> list[Row]:
    """Return the rows of some pairs of an experiment, whatever they show.

    Args:
        experiment: the experiment; with a fixed target, its pairs have a second row.
        pairs: the pairs, as (baseline, arm).
    """
    title, rows = experiment.title or experiment.name, []
    tables = [(title, report.comparison(experiment), Experiment.ratio)]
    if experiment.target and experiment.goal is not None:
        tables.append((f"{title}, time to target", report.targets(experiment), _target_ratio))
    for about, table, ratio_of in tables:
        places = [table.columns.index(name) for name in report.PAIRS[2:]]
        for (baseline, arm), row in zip(experiment.compared(), table.rows):
            if (baseline, arm) in pairs:
                differing = experiment.factors(arm, baseline)
                cells = [row[place] for place in places]
                ratio = ratio_of(experiment, arm, baseline)
                rows.append(Row(f"{about}: {baseline} → {arm}", differing, cells, ratio))
    return rows


def headlines(experiments: list[Experiment]) -> list[Row]:
    """Return the rows of the pairs that experiments name as headlines, whatever they show."""
    return [
        row
        for experiment in experiments
        for row in rows_of(experiment, [tuple(pair) for pair in experiment.headline])
    ]


def headline(experiments: dict[str, list[Experiment]]) -> report.Table | str:
    """Return the README's table: the pairs that were named as headlines before measuring.

    Args:
        experiments: the experiments of each processor; if several have named pairs, the table has a
            column for each, with ratio and verdict.

    Returns:
        The table; a sentence if no experiment names a pair.
    """
    every = {name: headlines(found) for name, found in experiments.items()}
    named = {name: rows for name, rows in every.items() if rows}
    if len(named) > 1:
        rows = [
            [title, differs(dict(zip(named, found))), *map(_claim, found)]
            for title, *found in beside(named)
        ]
        columns = ["experiment", report.DIFFERS, *named]
    else:
        rows = [
            [row.title, report.factors(row.differing), *row.cells]
            for found in named.values()
            for row in found
        ]
        columns = ["experiment", *report.PAIRS[1:]]
    return report.Table(columns, rows).with_notes(report.DIFFERS) if rows else NO_HEADLINE


def differs(rows: dict[str, Row | None]) -> str:
    """Return what differs in a pair: on all processors, and what else on some of them.

    Args:
        rows: the pair's row on each processor; None where it was not measured.
    """
    differing = {name: row.differing.items() for name, row in rows.items() if row}
    first, *others = differing.values()
    common = dict(item for item in first if all(item in other for other in others))
    only: dict[str, list[str]] = {}
    for name, items in differing.items():
        if more := dict(item for item in items if item not in common.items()):
            only.setdefault(report.factors(more), []).append(name)
    everywhere = [report.factors(common)] if common or not only else []
    some = [f"on {' and '.join(names)} also {more}" for more, names in only.items()]
    return "; ".join(everywhere + some)


def held(experiments: dict[str, list[Experiment]]) -> report.Table:
    """Return the table of the pairs with a ratio on two processors or more.

    The last column says whether those processors agree: on ratio and claim, on the direction of the
    ratio only, or not. Pairs for which what differs is not the same on all of them are marked.

    Args:
        experiments: the experiments of each processor.
    """
    every = {
        name: [row for one in found for row in rows_of(one, one.compared()) if row.ratio]
        for name, found in experiments.items()
    }
    together = beside(every)
    shared = [(title, found) for title, *found in together if len(list(filter(None, found))) > 1]
    places = [place for place in range(len(every)) if any(found[place] for _, found in shared)]
    rows = [
        [
            title if _alike(found) else f"{title} {UNLIKE}",
            *_ratios([found[place] for place in places]),
            _agree(list(filter(None, found))),
        ]
        for title, found in shared
    ]
    columns = ["pair", *_columns([list(every)[place] for place in places]), "agree"]
    note = f"On one processor only: {len(together) - len(shared)} more, on its own page."
    if not all(_alike(found) for _, found in shared):
        note += f" {UNLIKE}: what differs is not the same on all processors; their pages say what."
    return report.Table(columns, rows, note)


def _alike(rows: list[Row | None]) -> bool:
    """Return whether the arms differ in the same switches and values on all processors."""
    return len({report.factors(row.differing) for row in rows if row}) == 1


def _agree(rows: list[Row]) -> str:
    if len({row.ratio.verdict for row in rows}) > 1:
        return "no"
    claims = {row.cells[-1].partition(":")[0] for row in rows}  # without the figures
    return "yes" if len(claims) == 1 else "on the ratio only"


def beside(rows: dict[str, list[Row]]) -> list[tuple]:
    """Return the rows of several processors by title: (title, row or None of each processor)."""
    titles = dict.fromkeys(row.title for found in rows.values() for row in found)
    known = [{row.title: row for row in found} for found in rows.values()]
    return [(title, *(found.get(title) for found in known)) for title in titles]


def brief(verdict: str) -> str:
    """Return a verdict without the difference that it rests on.

    Args:
        verdict: the verdict.
    """
    return re.sub(": difference [^;]*", "", verdict)


def _claim(row: Row | None) -> str:
    """Return ratio and verdict as one cell."""
    if row is None:
        return "not measured"
    times, verdict = row.cells[-2:]
    return f"{times}: {brief(verdict)}"


def _columns(processors) -> list[str]:
    return [f"{name}: {column}" for name in processors for column in report.PAIRS[-2:]]


def _ratios(rows: list[Row | None]) -> list[str]:
    return [cell for row in rows for cell in (row.cells[-2:] if row else ("not measured", ""))]


def _target_ratio(experiment: Experiment, arm: str, baseline: str) -> Ratio | None:
    return time_to_target(experiment, arm, baseline=baseline).ratio
