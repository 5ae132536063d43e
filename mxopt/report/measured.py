"""What the records show about one method: pairs of arms that differ in its switches alone."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mxopt import report
from mxopt.core.plan import Plan
from mxopt.measure import Experiment, Ratio
from mxopt.measure.ablation import AFTER, BEFORE, arm_name
from mxopt.report import results
from mxopt.report.card import DATA, UNKNOWN, Card, processor_of
from mxopt.report.pairs import brief, rows_of

RECORDS = ("docs/results", "benchmarks/records", "docs/clusters.jsonl")
# The columns of a card's table before those of the processors.
COLUMNS = ["experiment", *report.PAIRS[:2], DATA]
CAPTION = (
    "Times better, with 95 % intervals, on each processor; the links lead to the records. An empty "
    "cell: not measured there."
)


@dataclass(frozen=True)
class Measured:
    """A pair of arms of an experiment.

    Attributes:
        found: the experiment.
        path: path of its records.
        before: name of the first arm.
        after: name of the second arm.
        processor: name of the processor, as folders of records have it.
    """

    found: Experiment
    path: Path
    before: str
    after: str
    processor: str = ""

    @property
    def ratio(self) -> Ratio | None:
        """How many times better the second arm is; None if one of them has no figure."""
        return self.found.ratio(self.after, self.before)

    @property
    def named(self) -> bool:
        """Whether the pair was named as a headline before it was measured."""
        return (self.before, self.after) in map(tuple, self.found.headline)

    @property
    def computed(self) -> bool:
        """Whether the pair reads no data set, as products of random matrices do not."""
        return report.data_kind(self.found) == "computed"

    def from_defaults(self, card: Card) -> bool:
        """Return whether a method's switches of the plan have their defaults in the first arm.

        If not, both arms use the method, in two ways. Options of a recipe have no common default.

        Args:
            card: card of the method.
        """
        befores = {name: old for name, (old, _) in self.factors.items() if name in card.names}
        return all(old == getattr(Plan(), name, old) for name, old in befores.items())

    @property
    def to_goal(self) -> list[str] | None:
        """How many times sooner the second arm reaches the goal, and the verdict; None without one.

        Arms that are timed to a goal may do unequal work, so that their seconds compare nothing.
        """
        if self.found.goal is None:
            return None
        return rows_of(self.found, [(self.before, self.after)])[-1].cells[-2:]

    @property
    def times(self) -> str:
        """How many times better the second arm is, as text."""
        return self.to_goal[0] if self.to_goal else str(self.ratio or "not measured")

    def verdict(self, card: Card) -> str:
        """Return what the pair shows about a method, or why there is no figure."""
        why = (self.found.why_not(arm) for arm in (self.after, self.before))
        claim = self.to_goal[1] if self.to_goal else self.found.verdict(self.after, self.before)
        said = next(filter(None, why), None) or claim
        # The speed-up of a method that changes learning counts only where quality holds.
        unknown = said == "faster" and card.kind == "changes learning"
        return f"{said}, quality not compared" if unknown else said

    @cached_property
    def factors(self) -> dict[str, tuple]:
        """What differs between the two arms."""
        return self.found.factors(self.after, self.before)

    def title(self, page: Path) -> str:
        """Return the experiment's title as a link from a page to its records."""
        return f"[{self.found.title or self.found.name}]({link(self.path, page)})"

    def about(self) -> tuple[str, ...]:
        """Return what the table of a card says of the pair in its first columns, ``COLUMNS``."""
        figure = "time to target" if self.to_goal else report.figure_name(self.found.figure)
        return (
            f"{self.found.title or self.found.name}, {figure}",
            f"{self.before} → {self.after}",
            report.factors(self.factors),
            report.data_kind(self.found),
        )


def table(card: Card, found: list[Measured]) -> report.Table:
    """Return the table of a card: a row for each pair of arms, a column for each processor.

    Args:
        card: the card.
        found: its measurements; of two alike on one processor each has a row.
    """
    processors = list(dict.fromkeys(measured.processor for measured in found))
    rows: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for measured in found:
        alike = rows.setdefault(measured.about(), [{}])
        if measured.processor in alike[-1]:
            alike.append({})
        said = f"[{brief(measured.verdict(card))}]({link(measured.path, card.path)})"
        alike[-1][measured.processor] = f"{measured.times}: {said}"
    cells = [
        [*about, *(row.get(processor, "") for processor in processors)]
        for about, alike in rows.items()
        for row in alike
    ]
    return report.Table([*COLUMNS, *processors], cells, CAPTION)


def pairs(experiment: Experiment) -> list[tuple[str, str]]:
    """Return the pairs of arms that an experiment compares, as (before, after).

    In an ablation these are each lever alone, and each lever added to all others.
    """
    if not experiment.orders:
        return experiment.compared()
    levers = experiment.orders[0]
    alone = [(BEFORE, arm_name([lever], levers)) for lever in levers]
    added = [(arm_name({*levers} - {lever}, levers), AFTER) for lever in levers]
    return list(dict.fromkeys(alone + added))


def measurements(root: Path) -> list[Measured]:
    """Return all pairs of arms in a repository's records, in their order.

    Args:
        root: the repository's root.
    """
    found = []
    for folder in filter(Path.exists, (root / name for name in RECORDS)):
        for path, experiment in results.read_experiments(folder):
            where = _processor(experiment, path.relative_to(folder))
            found += [Measured(experiment, path, *pair, where) for pair in pairs(experiment)]
    return found


def _processor(experiment: Experiment, path: Path) -> str:
    """Return the processor of records: by a run, or by the folder, whose name may say more of it.

    Old runs do not name the family and model.
    """
    every = (processor_of(run) for runs in experiment.runs.values() for run in runs)
    known = next((name for name in every if name != UNKNOWN), UNKNOWN)
    folder = next(iter(path.parts), "")
    return folder if folder.startswith(known) else known


def own(card: Card, found: list[Measured]) -> list[Measured]:
    """Return the measurements that differ in one method alone, whatever they show.

    Args:
        card: card of the method.
        found: all measurements.
    """
    return [measured for measured in found if card.owns(measured.factors)]


def link(target: Path, page: Path) -> str:
    """Return the address of a file for a link on a page, relative to the page.

    Args:
        target: path of the file.
        page: path of the page.
    """
    return Path(os.path.relpath(target, page.parent)).as_posix()
