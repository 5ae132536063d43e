"""Reports: tables and plots, every figure of them computed from run records.

In a notebook a :class:`Table` shows itself; ``results_page`` writes the same tables into
``RESULTS.md`` by reading the records again.
"""

from __future__ import annotations

import html
import math
import statistics
from dataclasses import dataclass, field, replace

from mxopt.measure import Ablation, Experiment, TimeToTarget, time_to_target
from mxopt.report import book

TIMES = " \N{MULTIPLICATION SIGN} "
# What every table of pairs shows.
DIFFERS = "what differs"
PAIRS = ["pair", DIFFERS, "before", "after", "times better [95 %]", "verdict"]
# Characters of a cell; a longer one would make its column push the figures out of sight.
LONGEST_CELL = 100


@dataclass(frozen=True)
class Table:
    """A table of text that notebooks show as HTML and files keep as Markdown.

    Attributes:
        columns: the headings.
        rows: for each row a cell for each column.
        caption: a sentence below the table.
        notes: numbered paragraphs below the caption, which cells refer to.
    """

    columns: list[str]
    rows: list[list[str]]
    caption: str = ""
    notes: list[str] = field(default_factory=list)

    def with_notes(self, column: str) -> Table:
        """Return the table with the long cells of a column moved into notes below it.

        Cells with the same text share a note.
        """
        place, notes, rows = self.columns.index(column), list(self.notes), []
        for row in self.rows:
            cell = row[place]
            if len(cell) > LONGEST_CELL:
                if cell not in notes:
                    notes.append(cell)
                cell = f"see note {notes.index(cell) + 1}"
            rows.append([*row[:place], cell, *row[place + 1 :]])
        return replace(self, rows=rows, notes=notes)

    def _repr_html_(self) -> str:
        def line(tag, cells):
            inside = "".join(
                f"<{tag} style='text-align:left'>{html.escape(cell)}</{tag}>" for cell in cells
            )
            return f"<tr>{inside}</tr>"

        caption = f"<caption>{html.escape(self.caption)}</caption>" if self.caption else ""
        body = "".join(line("td", row) for row in self.rows)
        notes = "".join(
            f"<p><b>Note {number}.</b> {html.escape(note)}</p>"
            for number, note in enumerate(self.notes, 1)
        )
        return f"<table>{caption}{line('th', self.columns)}{body}</table>{notes}"

    def markdown(self) -> str:
        """Return the table in Markdown, with its caption and its notes below."""
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        text = "\n".join(
            "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |"
            for line in lines
        )
        notes = [f"**Note {number}.** {note}" for number, note in enumerate(self.notes, 1)]
        return "\n\n".join([text, *([self.caption] if self.caption else []), *notes])

    __str__ = markdown


def number(value: float, unit: str = "") -> str:
    """Return a figure with three significant digits and its unit; short times in µs."""
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else "infinite"
    if unit == "s" and abs(value) < 1e-3:
        value, unit = value * 1e6, "µs"
    digits = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{digits} {unit}".strip()


def comparison(experiment: Experiment) -> Table:
    """Return the experiment's pairs: what differs, both medians, the ratio with its interval."""
    rows = []
    for baseline, arm in experiment.compared():
        ratio = experiment.ratio(arm, baseline)
        rows.append(
            [
                f"{baseline} → {arm}",
                factors(experiment.factors(arm, baseline)),
                _median(experiment, baseline),
                _median(experiment, arm),
                "not measured" if ratio is None else str(ratio),
                experiment.verdict(arm, baseline),
            ]
        )  # fmt: skip
    about = figure_name(experiment.figure)
    return Table(PAIRS, rows, _caption(experiment, about)).with_notes(DIFFERS)


def clocks(experiment: Experiment) -> Table:
    """Return each pair's ratio by a clock that waits for the engine and by one that does not.

    A *phantom* is a speed-up that only the clock without waiting sees: it timed the enqueueing.
    """
    rows = []
    for baseline, arm in experiment.compared():
        runs = [run for name in (baseline, arm) for run in experiment.runs.get(name, [])]
        if not all({"seconds", "enqueued_seconds"} <= run.figures.keys() for run in runs):
            continue
        waiting = experiment.ratio(arm, baseline, "seconds")
        without = experiment.ratio(arm, baseline, "enqueued_seconds")
        if waiting and without:
            phantom = without.verdict == "faster" and without.low > waiting.high
            verdict = "phantom speed-up" if phantom else "both clocks agree"
            if not phantom and without.verdict != waiting.verdict:
                verdict = "the clocks disagree"
            rows.append([f"{baseline} → {arm}", str(without), str(waiting), verdict])
    columns = ["pair", "by a clock that does not wait", "by one that waits", "verdict"]
    return Table(columns, rows, _caption(experiment, "times better by two clocks of the same runs"))


def targets(experiment: Experiment) -> Table:
    """Return the experiment's pairs by the time to the quality that the first of them ended with.

    Medians over the pairs; a run that never got there makes the time infinite.
    """
    rows = []
    for baseline, arm in experiment.compared():
        found = time_to_target(experiment, arm, baseline=baseline)
        times = [
            number(statistics.median(seconds), "s") if seconds else "not measured"
            for seconds in (found.before, found.after)
        ]
        if found.ratio:
            result = [str(found.ratio), experiment.judge(found.ratio, arm, baseline)]
        else:
            count = len(found.targets)
            result = ["no ratio", f"{found.missed} of {count} runs never reached the target"]
        differing = factors(experiment.factors(arm, baseline))
        rows.append([f"{baseline} → {arm}", differing, *times, *result])
    about = f"seconds until the {figure_name(experiment.target)} that before ended with"
    return Table(PAIRS, rows, _caption(experiment, about)).with_notes(DIFFERS)


def arms(experiment: Experiment, figures: dict[str, str] | None = None) -> Table:
    """Return one row an arm with medians of several figures.

    Args:
        figures: names of figures and their units, such as ``{"seconds": "s"}``; the one that
            the experiment compares if none are given.
    """
    figures = figures or {experiment.figure: experiment.unit}
    rows = []
    for arm in experiment.arms:
        cells = [number(experiment.median(arm, name), unit) for name, unit in figures.items()]
        rows.append([arm, *(["not measured"] * len(cells) if experiment.why_not(arm) else cells)])
    return Table(["arm", *map(figure_name, figures)], rows, _caption(experiment, "medians"))


def beside_book(experiment: Experiment) -> Table:
    """Return the book's figures beside ours: another machine and other work, so only the
    direction of the ratios can be compared."""
    rows = []
    for arm, printed in book.beside(experiment.name).items():
        known = arm in experiment.arms
        ours = _median(experiment, arm) if known else "not measured (not part of this tier)"
        rows.append([arm, number(printed.value, printed.unit), ours, printed.note])
    columns = ["arm", "the book's figure", "ours", "how the book took it"]
    source = f"book: {book.SOURCE}, on its author's GPU machine"
    return Table(columns, rows, _caption(experiment, source))


def target(found: TimeToTarget, name: str) -> Table:
    """Return each pair of runs with the time it took to the target, and the ratio below."""
    rows = [
        [str(pair), number(goal), number(before, "s"), _reached(after)]
        for pair, (goal, before, after) in enumerate(
            zip(found.targets, found.before, found.after), start=1
        )
    ]
    if found.ratio:
        caption = f"{found.ratio} times sooner: {found.ratio.verdict}"
    else:
        caption = f"no ratio: {found.missed} of {len(rows)} runs never reached the target"
    columns = ["pair", f"target ({name})", "before reached it", "after reached it"]
    return Table(columns, rows, caption)


def tables(experiment: Experiment) -> list[Table]:
    """Return the tables that say what an experiment found, as a page shows them."""
    if experiment.orders:
        return [ablation(Ablation(experiment))]
    if experiment.workload == "mxopt.chapter.workloads:profile":
        return [operators(experiment)]
    found = [comparison(experiment) if experiment.compared() else arms(experiment)]
    two = clocks(experiment)
    return (
        found + ([two] if two.rows else []) + ([targets(experiment)] if experiment.target else [])
    )


def ablation(found: Ablation) -> Table:
    """Return what each lever gives alone, on top of all others, and as its share of the whole."""
    rows = [
        [lever, *(str(ratio or "not measured") for ratio in
                  (found.alone(lever), found.left_out(lever), found.share(lever)))]
        for lever in found.levers
    ]  # fmt: skip
    rows.append(["all of them", "", "", str(found.whole() or "not measured")])
    shares = [found.share(lever) for lever in found.levers]
    product = TIMES.join(f"{share.value:.2f}" for share in shares) if all(shares) else ""
    how = "every order" if found.exact else f"{len(found.orders)} sampled orders"
    caption = (
        f"{_caption(found.experiment, figure_name(found.experiment.figure))} Times better. Shares "
        f"are averaged over {how} and multiply to the whole: {product}. That is "
        f"{found.interaction():.2f} times the product of all levers alone."
    )
    return Table(["lever", "alone", "added to all others", "share [95 %]"], rows, caption)


def operators(experiment: Experiment, most: int = 10) -> Table:
    """Return where the time goes: seconds of an epoch by operator, the slowest first.

    Args:
        experiment: of the workload ``mxopt.chapter.workloads.profile``.
        most: rows; what is left is summed up in one more.
    """
    seconds = {
        arm: {} if experiment.why_not(arm) else experiment.runs[arm][0].figures["operator_seconds"]
        for arm in experiment.arms
    }
    totals: dict = {}
    for found in seconds.values():
        for name, value in found.items():
            totals[name] = totals.get(name, 0.0) + value
    names = sorted(totals, key=totals.get, reverse=True)
    rows = [
        [name, *(number(f[name], "s") if name in f else "none" for f in seconds.values())]
        for name in names[:most]
    ]
    left = (sum(found.get(name, 0.0) for name in names[most:]) for found in seconds.values())
    rows.append([f"{len(names[most:])} others", *(number(value, "s") for value in left)])
    rows.append(["the epoch", *(_median(experiment, arm) for arm in experiment.arms)])
    about = "operators of the second epoch, one by one, forwards and backwards together"
    return Table(["operator", *experiment.arms], rows, _caption(experiment, about))


def _reached(seconds: float) -> str:
    return number(seconds, "s") if math.isfinite(seconds) else "never"


def factors(differing: dict[str, tuple]) -> str:
    """Return ``switch: before → after`` for everything that differs."""
    if not differing:
        return "nothing"
    plain = {name: map(_plain, values) for name, values in differing.items()}
    return ", ".join(f"{name}: {old} → {new}" for name, (old, new) in plain.items())


def figure_name(name: str) -> str:
    """Return a figure's name as a person would write it."""
    return name.replace("_", " ")


def data_kind(experiment: Experiment) -> str:
    """Return ``real``, ``stand-in`` or, where no data set was read, ``computed``."""
    kinds = {run.only("data").get("kind") for runs in experiment.runs.values() for run in runs}
    return " and ".join(sorted(kind for kind in kinds if kind)) or "computed"


def _plain(value):
    """Return a list or a dictionary as words, anything else as it is."""
    if isinstance(value, dict):
        value = [f"{key}={one}" for key, one in value.items()]
    return " and ".join(map(str, value)) if isinstance(value, (list, tuple)) else value


def _caption(experiment, about):
    """Return what stands under a table: what it shows, the data, and why arms have no figure."""
    reasons: dict = {}
    for arm in experiment.arms:
        if experiment.why_not(arm):
            reasons.setdefault(experiment.why_not(arm), []).append(arm)
    missing = [f"Not measured: {', '.join(names)} ({why})." for why, names in reasons.items()]
    if experiment.resumed:
        missing.append(f"Resumed: {experiment.resumed} runs are from before an interruption.")
    return " ".join([f"{about}; data: {data_kind(experiment)}.", *missing])


def _median(experiment, arm):
    if experiment.why_not(arm):
        return "not measured"
    return number(experiment.median(arm), experiment.unit)
