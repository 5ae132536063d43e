"""``RESULTS.md``: the page of a results folder, written from its records."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from mxopt import measure, report
from mxopt.core import atomic
from mxopt.core.errors import RecordError
from mxopt.measure import Experiment, find_experiments, read_experiment
from mxopt.measure.files import DESCRIPTION as EXPERIMENT
from mxopt.measure.files import packed_path, plots_folder
from mxopt.measure.statistics import CONFIDENCE
from mxopt.report import book, book_tables, heading, pairs, plots, ratio_plots

DESCRIPTION = "reproduce.json"
PAGE = "RESULTS.md"
OVERVIEW = "headlines.png"
# A ratio as tables show it, such as "1.52 [1.40, 1.65], n = 6", or a bound.
INTERVAL = re.compile(r"(?:\[[^\]]+\]|\(95 %: [^)]+\)), n = \d")
# The section of the chapter's notebooks in the README.
CHAPTER = "The chapter"
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


def describe(folder: Path, **facts) -> None:
    """Write facts that no record contains, such as the tier, into the results folder.

    Args:
        folder: the results folder.
        **facts: values that JSON can represent; they are added to those written before.
    """
    path = folder / DESCRIPTION
    known = description(folder)
    atomic.replace_text(path, json.dumps({**known, **facts}, indent=1) + "\n")


def description(folder: Path) -> dict:
    """Return the facts that :func:`describe` wrote; empty if there are none.

    Raises:
        RecordError: the file is damaged.
    """
    path = folder / DESCRIPTION
    try:
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}
    except (OSError, ValueError, TypeError) as error:
        raise RecordError(
            f"{path} cannot be read ({error}); delete it: it holds no measurements"
        ) from None


def read_experiments(folder: str | Path) -> list[tuple[Path, Experiment]]:
    """Return every experiment below a results folder, in the order in which they ran.

    Returns:
        Pairs of a path, the folder of the records or the file that they are packed into, and the
        experiment.

    Raises:
        RecordError: there are no experiments, or a record is damaged.
    """
    found = find_experiments(folder)
    if not found:
        raise none_found(folder)
    experiments = [(path, read_experiment(path)) for path in found]
    return sorted(experiments, key=lambda e: (e[0].parent.name, first_start(e[1]), e[1].name))


def none_found(folder: str | Path) -> RecordError:
    """Return the error for a folder without experiments.

    Args:
        folder: where they were looked for.
    """
    return RecordError(
        f"there are no experiments below {folder}: folders with {EXPERIMENT}, as `make reproduce`, "
        "`mxopt compare` and `mxopt ablate` write them; records of single runs are none"
    )


def pack(results: str | Path, destination: str | Path) -> list[Path]:
    """Pack every experiment of a results folder into a file, and copy its page and plots.

    Args:
        results: a results folder, or the folder of one experiment; it is not changed.
        destination: folder that gets a file ``name.jsonl`` for each experiment's folder ``name``.

    Returns:
        Paths of the packed files.

    Raises:
        RecordError: there are no experiments, or one cannot be packed; those before it have been.
    """
    results, destination = Path(results).absolute(), Path(destination).absolute()
    experiments = find_experiments(results)
    if not experiments:
        raise none_found(results)
    root = results.parent if experiments == [results] else results
    packed = []
    try:
        for path in filter(Path.is_dir, experiments):
            packed.append(packed_path(destination / path.relative_to(root)))
            packed[-1].parent.mkdir(parents=True, exist_ok=True)
            measure.pack(path, packed[-1])
        for pattern in (PAGE, DESCRIPTION, "*.png"):
            for path in results.rglob(pattern):
                copy = destination / path.relative_to(root)
                copy.parent.mkdir(parents=True, exist_ok=True)
                if not (copy.exists() and copy.samefile(path)):
                    shutil.copyfile(path, copy)
    except OSError as error:
        raise atomic.unwritable(destination, error) from None
    return packed


def processors(folder: str | Path) -> dict[str, Path]:
    """Return the folders of several processors, by their names.

    A folder holds the results of several processors if its experiments are two levels below its
    subfolders, as in ``results/epyc/8_1/engine.jsonl``.

    Args:
        folder: the results folder.

    Returns:
        Empty if the folder holds the results of one processor only.

    Raises:
        RecordError: there are experiments of both kinds.
    """
    folder = Path(folder)
    parts = [path.relative_to(folder).parts for path in find_experiments(folder) if path != folder]
    names = sorted({found[0] for found in parts if len(found) > 2})
    if names and any(len(found) <= 2 for found in parts):
        raise RecordError(
            f"{folder} holds experiments beside the folders of {', '.join(names)}; move them into "
            "a folder named after their processor"
        )
    return {name: folder / name for name in names}


def page(folder: str | Path, processor: str = "") -> str:
    """Return the Markdown of a results folder's page.

    It has the machine, then tables and plots of each experiment; for results of several processors,
    what held on all of them, and links to their own pages.

    Args:
        folder: the results folder.
        processor: name for the heading, where it is one of several.
    """
    folder = Path(folder)
    several = processors(folder)
    if several:
        links = "\n".join(f"- [{name}]({name}/{PAGE})" for name in several)
        return "\n\n".join(["# Results", links, "## What held on several processors",
                            str(pairs.held(experiments_by_processor(folder)))]) + "\n"  # fmt: skip
    experiments = read_experiments(folder)
    parts = []
    for path, experiment in experiments:
        parts += [f"## {experiment.title or experiment.name}"]
        parts += map(str, report.tables(experiment))
        plots = sorted(plots_folder(path).glob("*.png"))
        parts += [f"![{plot.stem}]({plot.relative_to(folder).as_posix()})" for plot in plots]
        if book.beside(experiment.name):
            parts += ["The book's figures, from another machine, and ours:",
                      str(report.beside_book(experiment))]  # fmt: skip
    measured = [experiment for _, experiment in experiments]
    top = [
        f"# Results: {processor}" if processor else "# Results",
        *heading.lines(description(folder), experiments),
        multiplicity("\n".join(parts)),
    ]
    if book_tables.covers(measured):
        parts += ["## Comparison with the book", str(book_tables.comparisons(measured))]
        parts += ["### Every figure that the chapter prints", str(book_tables.figures(measured))]
    return "\n\n".join([*top, *parts]) + "\n"


def multiplicity(text: str) -> str:
    """Return how many intervals a text shows, and how many would exclude 1 by chance."""
    count = len(INTERVAL.findall(text))
    if not count:
        return (
            "These experiments have no intervals: an interval takes a pair of arms with at least "
            "two runs each."
        )
    return (
        f"These experiments have {count} intervals. If nothing had any effect, about "
        f"{(1 - CONFIDENCE) * count:.0f} of them would still exclude 1 (or a difference of 0), "
        "by chance."
    )


def pages(folder: str | Path) -> dict[Path, str]:
    """Return the text of the page of a results folder, and of each processor's, by their paths."""
    folder = Path(folder)
    homes = {"": folder, **processors(folder)}
    return {home / PAGE: page(home, name) for name, home in homes.items()}


def overview(folder: str | Path):
    """Return the picture of the chapter's headline pairs; None for one processor alone."""
    chapter = sections(folder).get(CHAPTER) if processors(folder) else None
    if not chapter:
        return None
    rows = {name: pairs.headlines(found) for name, found in chapter.items()}
    ratios = {title: [row and row.ratio for row in found] for title, *found in pairs.beside(rows)}
    measured = {title: found for title, found in ratios.items() if any(found)}
    return ratio_plots.beside_each_other(list(rows), measured)


def write_page(folder: str | Path) -> Path:
    """Write the page into the results folder, and those of its processors; return its path.

    If there are several processors, the picture of the headline pairs is drawn as well.
    """
    for path, text in pages(folder).items():
        atomic.replace_text(path, text)
    drawn = overview(folder)
    if drawn:
        drawn.savefig(Path(folder) / OVERVIEW, dpi=plots.DPI)
    return Path(folder) / PAGE


def experiments_by_processor(folder: str | Path) -> dict[str, list[Experiment]]:
    """Return the experiments of each processor; the name is empty if there is only one."""
    homes = processors(folder) or {"": Path(folder)}
    return {name: [e for _, e in read_experiments(home)] for name, home in homes.items()}


def sections(folder: str | Path) -> dict[str, dict[str, list[Experiment]]]:
    """Return the experiments by the README's sections and, within each, by processor.

    The chapter's notebooks are one section, and each guide is one of its own.
    """
    homes = processors(folder) or {"": Path(folder)}
    found: dict[str, dict[str, list[Experiment]]] = {}
    for name, home in homes.items():
        for path, experiment in read_experiments(home):
            section = found.setdefault(_section(path.parent.name), {n: [] for n in homes})
            section[name].append(experiment)
    return found


def headline(folder: str | Path) -> report.Table | str:
    """Return the README's tables (:func:`mxopt.report.pairs.headline`), one for each section.

    A section's heading names the processor where only one of several was measured. A guide's table
    is folded: HTML's ``details``, which show it when they are clicked.
    """
    tables = {_on(name, found): pairs.headline(found) for name, found in sections(folder).items()}
    named = {section: table for section, table in tables.items() if table != pairs.NO_HEADLINE}
    if len(named) < 2:
        return next(iter(named.values()), pairs.NO_HEADLINE)
    return "\n\n".join(
        f"### {section}\n\n{table if section.startswith(CHAPTER) else _folded(table)}"
        for section, table in named.items()
    )


def _folded(table: report.Table) -> str:
    count = len(table.rows)
    summary = f"{count} pair{'s' * (count > 1)}"
    return f"<details>\n<summary>{summary}</summary>\n\n{table}\n\n</details>"


def _on(section: str, experiments: dict[str, list[Experiment]]) -> str:
    """Return a section's heading, with the processor if others were measured but not for it."""
    named = [name for name, found in experiments.items() if pairs.headlines(found)]
    alone = len(experiments) > 1 and len(named) == 1
    return f"{section} (on {named[0]} only)" if alone else section


def _section(notebook: str) -> str:
    """Return the heading of a notebook's results, by the name of its folder."""
    guide = notebook.replace("_", " ")
    return CHAPTER if notebook.startswith("8_") else f"Guide: {guide}"


def update_readme(readme: str | Path, folder: str | Path) -> str:
    """Return the text of a README with the table between its two marks written again.

    Args:
        readme: path of the README; it is not changed.
        folder: the results folder.

    Raises:
        RecordError: the README cannot be read or does not have both marks, the folder has no
            experiments, or a record is damaged.
    """
    try:
        text = Path(readme).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"cannot read the README {readme}: {error}; name a page") from None
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise RecordError(
            f"{readme} needs the lines {BEGIN} and {END}, each once, around the results table"
        )
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n\n{headline(folder)}\n\n{END}{after}"


def first_start(experiment: Experiment) -> str:
    """Return when the first of an experiment's runs started, in UTC as ISO 8601.

    Args:
        experiment: the experiment.
    """
    return min((run.started for runs in experiment.runs.values() for run in runs), default="")
