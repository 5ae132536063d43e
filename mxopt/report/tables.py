"""Tables of experiments: every figure is computed from run records.

In a notebook a :class:`Table` is displayed as HTML; :mod:`mxopt.report.results` writes the same
tables into ``RESULTS.md``.
"""

from __future__ import annotations

import math

from mxopt.measure import Ablation, Experiment
from mxopt.measure.claims import trained
from mxopt.report import book
from mxopt.report.table import Table, number

TIMES = " \N{MULTIPLICATION SIGN} "
# Columns of every table of pairs.
DIFFERS = "what differs"
PAIRS = ["pair", DIFFERS, "before", "after", "times better [95 %]", "verdict"]
# Figure of the CPU seconds of a training, all threads together.
CPU_SECONDS = "cpu_seconds"


def comparison(experiment: Experiment) -> Table:
    """Return a table of the experiment's pairs: what differs, medians, ratio with interval.

    Where the runs recorded the CPU seconds of all threads, their medians are shown as well.
    """
    rows, processor = [], []
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
        medians = [experiment.median(name, CPU_SECONDS) for name in (baseline, arm)]
        known = all(map(math.isfinite, medians))
        processor.append(" → ".join(number(m, "s") for m in medians) if known else "")
    columns = list(PAIRS)
    if any(processor):
        columns.insert(-1, "CPU seconds")
        rows = [[*row[:-1], cell, row[-1]] for row, cell in zip(rows, processor)]
    about = figure_name(experiment.figure)
    return Table(columns, rows, caption_of(experiment, about)).with_notes(DIFFERS)


def clocks(experiment: Experiment) -> Table:
    """Return each pair's ratio by a clock that waits for the engine and by one that does not.

    A *phantom* speed-up is shown only by the clock that does not wait, which times the enqueueing.
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
    columns = ["pair", "ratio without waiting", "ratio with waiting", "verdict"]
    return Table(
        columns, rows, caption_of(experiment, "times better, by two clocks in the same runs")
    )


def arms(experiment: Experiment, figures: dict[str, str] | None = None) -> Table:
    """Return a table with one row for each arm, medians of several figures.

    Args:
        experiment: the experiment.
        figures: units by the name of the figure, such as ``{"seconds": "s"}``; if None, the figure
            that the experiment compares, or all figures of runs that do not have it.
    """
    figures = figures or _own_figures(experiment)
    rows = []
    for arm in experiment.arms:
        cells = [number(experiment.median(arm, name), unit) for name, unit in figures.items()]
        rows.append([arm, *(["not measured"] * len(cells) if experiment.why_not(arm) else cells)])
    return Table(["arm", *map(figure_name, figures)], rows, caption_of(experiment, "medians"))


def beside_book(experiment: Experiment) -> Table:
    """Return a table of the book's figures and ours.

    The book's are from another machine and mostly from other work, so only the direction of the
    ratios can be compared.
    """
    rows = []
    for arm, printed in book.beside(experiment.name).items():
        known = arm in experiment.arms
        ours = _median(experiment, arm) if known else "not measured (not part of this tier)"
        rows.append([arm, number(printed.value, printed.unit), ours, printed.note])
    columns = ["arm", "the book", "ours", "how the book measured it"]
    source = f"book: {book.SOURCE}, on its author's GPU machine"
    return Table(columns, rows, caption_of(experiment, source))


def ablation(found: Ablation) -> Table:
    """Return a table of the effects of each lever: alone, added to all others, and its share."""
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
        f"{caption_of(found.experiment, figure_name(found.experiment.figure))} All columns are "
        f"times better. Shares are averaged over {how} and multiply to the whole: {product}. "
        f"The whole is {found.interaction():.2f} times the product of the levers alone."
    )
    return Table(["lever", "alone", "added to all others", "share [95 %]"], rows, caption)


def operators(experiment: Experiment, most: int = 10) -> Table:
    """Return a table of the seconds of an epoch by operator, the slowest first.

    Args:
        experiment: an experiment of the workload ``mxopt.chapter.workloads.profile``.
        most: number of operators shown; one more row has the sum of the others.
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
    about = "operators of the second epoch, run one by one, forward and backward pass together"
    return Table(["operator", *experiment.arms], rows, caption_of(experiment, about))


def factors(differing: dict[str, tuple]) -> str:
    """Return ``switch: before → after`` for everything that differs.

    Args:
        differing: ``{switch or option: (value before, value after)}``.
    """
    if not differing:
        return "nothing"
    plain = {name: map(_plain, values) for name, values in differing.items()}
    return ", ".join(f"{name}: {old} → {new}" for name, (old, new) in plain.items())


def figure_name(name: str) -> str:
    """Return the name of a figure as pages show it, with spaces."""
    return name.replace("_", " ")


def data_kind(experiment: Experiment) -> str:
    """Return ``real``, ``stand-in``, both joined, or ``computed`` if no data set was read."""
    kinds = {run.only("data").get("kind") for runs in experiment.runs.values() for run in runs}
    return " and ".join(sorted(kind for kind in kinds if kind)) or "computed"


def _plain(value):
    """Return a list or a dictionary as text, anything else unchanged."""
    if isinstance(value, dict):
        value = [f"{key}={one}" for key, one in value.items()]
    return " and ".join(map(str, value)) if isinstance(value, (list, tuple)) else value


def caption_of(experiment: Experiment, about: str) -> str:
    """Return the caption of a table: what it shows, the data, and what it does not show.

    Args:
        experiment: the experiment.
        about: what the table shows.
    """
    reasons: dict = {}
    for arm in experiment.arms:
        if experiment.why_not(arm):
            reasons.setdefault(experiment.why_not(arm), []).append(arm)
    missing = [f"Not measured: {', '.join(names)} ({why})." for why, names in reasons.items()]
    if experiment.resumed:
        missing.append(f"Resumed: {experiment.resumed} runs are from before an interruption.")
    if not experiment.quality and any(trained(experiment, arm) for arm in experiment.runs):
        missing.append("Quality is not compared: nothing here shows that an arm learns as much.")
    if experiment.same_arms and experiment.same_arms not in experiment.compared():
        arm, again = experiment.same_arms
        noise = experiment.ratio(again, arm) or "not measured"
        missing.append(f"The same arm twice ({arm} → {again}), the harness's own noise: {noise}.")
    return " ".join([f"{about}; data: {data_kind(experiment)}.", *missing])


def _own_figures(experiment):
    ended = [run.figures for runs in experiment.runs.values() for run in runs if run.ok]
    if not ended or any(experiment.figure in figures for figures in ended):
        return {experiment.figure: experiment.unit}
    names = [
        name
        for name, value in ended[0].items()
        if isinstance(value, (int, float)) and not name.startswith("process_")
    ]
    return {name: "s" if name.endswith("seconds") else "" for name in names}


def _median(experiment, arm):
    if experiment.why_not(arm):
        return "not measured"
    return number(experiment.median(arm), experiment.unit)
