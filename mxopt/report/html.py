"""``report.html``: a results folder as one page, to read and to share.

The file contains everything, plots as well, and loads nothing. It supports light and dark mode and
small screens. Every figure is computed from the run records.
"""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass, field
from pathlib import Path

import jinja2

from mxopt import report
from mxopt.core import atomic
from mxopt.measure import Experiment
from mxopt.measure.files import plots_folder
from mxopt.report import book_tables, heading, pairs, plots, ratio_plots, results

NAME = "report.html"
TEMPLATE = Path(__file__).with_name("report.html.j2")
# Titles of the notebooks, by the name of the folder with their records.
TITLES = {
    "8_1": "Features",
    "8_2": "Image segmentation",
    "8_3": "Translation",
    "accelerate_training": "Accelerate training",
    "nine_tips": "Nine tips",
    "performance_checklist": "A performance checklist",
    "best_practices": "Best practices",
}


@dataclass(frozen=True)
class Section:
    """An experiment on the page.

    Attributes:
        title: heading of the section.
        tables: tables, as HTML.
        pictures: plots, as (name, data URL).
        records: path of the first record of each arm, which ``mxopt again`` can repeat.
    """

    title: str
    tables: list[str]
    pictures: list[tuple[str, str]] = field(default_factory=list)
    records: list[str] = field(default_factory=list)


def write(folder: str | Path) -> Path:
    """Write the page into a results folder and return its path.

    Raises:
        RecordError: there are no experiments in the folder, or one is damaged.
    """
    path = Path(folder) / NAME
    atomic.replace_text(path, page(folder))
    return path


def page(folder: str | Path) -> str:
    """Return the page's HTML."""
    folder = Path(folder)
    found = results.read_experiments(folder)
    experiments = [experiment for _, experiment in found]
    named = {_short(row.title): row.ratio for row in pairs.headlines(experiments) if row.ratio}
    overview = _address(ratio_plots.intervals(named, "Headline pairs")) if named else ""
    chapters: dict[str, list[Section]] = {}
    for path, experiment in found:
        section = _section(path, folder, experiment)
        chapters.setdefault(_chapter(path, folder), []).append(section)
    for name in chapters:
        chapters[name] += _pictures(folder / name)
    facts = results.description(folder)
    run = next((r for e in experiments for runs in e.runs.values() for r in runs if r.events), None)
    machine = heading.machine(run.only("environment")) if run else []
    facts.update(line.removeprefix("- **").split("**: ", 1) for line in machine)
    kinds = sorted({report.data_kind(experiment) for experiment in experiments})
    template = jinja2.Template(TEMPLATE.read_text(encoding="utf-8"), autoescape=True)
    return template.render(
        facts=facts, kinds=kinds, chapters=chapters, titles=TITLES, overview=overview,
        book=book_tables.covers(experiments),
        verdicts=book_tables.comparisons(experiments)._repr_html_(),
        printed=book_tables.figures(experiments)._repr_html_(),
        runs=sum(len(runs) for e in experiments for runs in e.runs.values()),
        tier=str(facts.get("tier", "cpu")).split()[0],
    )  # fmt: skip


def _section(path: Path, folder: Path, experiment: Experiment) -> Section:
    first = [
        runs[0].path.relative_to(folder).as_posix() for runs in experiment.runs.values() if runs
    ]
    pictures = sorted(plots_folder(path).glob("*.png"))
    return Section(
        experiment.title or experiment.name,
        [table._repr_html_() for table in report.tables(experiment)],
        [(picture.stem.replace("-", " "), _address(picture)) for picture in pictures],
        first,
    )


def _pictures(folder: Path) -> list[Section]:
    found = [(path.stem, _address(path)) for path in sorted(folder.glob("*.png"))]
    return [Section("Pictures", [], found)] if found else []


def _chapter(path: Path, folder: Path) -> str:
    path = plots_folder(path)
    return path.relative_to(folder).parts[0] if path != folder else ""


def _short(name: str) -> str:
    """Return the label of a line in a plot: the experiment, and below it the pair."""
    title, _, pair = name.rpartition(": ")
    return f"{title}\n{pair}"


def _address(picture) -> str:
    """Return a picture (the path of a PNG file, or a Matplotlib figure) as a data URL."""
    if isinstance(picture, Path):
        content = picture.read_bytes()
    else:
        buffer = io.BytesIO()
        picture.savefig(buffer, format="png", dpi=plots.DPI)
        content = buffer.getvalue()
    return "data:image/png;base64," + base64.b64encode(content).decode()
