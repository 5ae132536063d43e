"""``RESULTS.md``: the page of a results folder, written from its records."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from mxopt import measure, report
from mxopt.core import atomic
from mxopt.core.errors import RecordError
from mxopt.core.records import Run
from mxopt.measure import Experiment, Ratio, find_experiments, read_experiment, time_to_target
from mxopt.measure.files import packed_path, plots_folder
from mxopt.report import book, book_tables

DESCRIPTION = "reproduce.json"
PAGE = "RESULTS.md"
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
        raise RecordError(f"there are no run records below {folder}; run `make reproduce` first")
    experiments = [(path, read_experiment(path)) for path in found]
    return sorted(experiments, key=lambda e: (e[0].parent.name, _first_start(e[1]), e[1].name))


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
        raise RecordError(f"there are no run records below {results}")
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


def page(folder: str | Path) -> str:
    """Return the Markdown of the page: the machine, then tables and plots of each experiment."""
    folder = Path(folder)
    experiments = read_experiments(folder)
    runs = [run for _, e in experiments for arm in e.runs.values() for run in arm]
    parts = ["# Results", *_heading(folder, runs)]
    for path, experiment in experiments:
        parts += [f"## {experiment.title or experiment.name}"]
        parts += map(str, report.tables(experiment))
        plots = sorted(plots_folder(path).glob("*.png"))
        parts += [f"![{plot.stem}]({plot.relative_to(folder).as_posix()})" for plot in plots]
        if book.beside(experiment.name):
            parts += ["The book's figures, from another machine, and ours:",
                      str(report.beside_book(experiment))]  # fmt: skip
    measured = [experiment for _, experiment in experiments]
    parts += ["## Comparison with the book", str(book_tables.comparisons(measured))]
    parts += ["### Every figure that the chapter prints", str(book_tables.figures(measured))]
    return "\n\n".join(parts) + "\n"


def write_page(folder: str | Path) -> Path:
    """Write the page into the results folder and return its path."""
    path = Path(folder) / PAGE
    atomic.replace_text(path, page(folder))
    return path


def headline(folder: str | Path) -> report.Table:
    """Return the README's table: for every experiment the pair with the largest ratio.

    Pairs whose quality fell are left out, unless an experiment has no others.
    """
    rows = [row for _, row in best_pairs([e for _, e in read_experiments(folder)])]
    return report.Table(["experiment", *report.PAIRS[1:]], rows).with_notes(report.DIFFERS)


def best_pairs(experiments: list[Experiment]) -> list[tuple[Ratio, list[str]]]:
    """Return for every experiment the pair with the largest ratio.

    Returns:
        Pairs of the ratio and its row of the table. An experiment with a target has two: one for
        its figure, and one for the time to the target.
    """
    found = []
    for experiment in experiments:
        table, title = report.comparison(experiment), experiment.title or experiment.name
        found += _best(title, experiment, table, Experiment.ratio)
        if experiment.target:
            title = f"{title}, time to target"
            found += _best(title, experiment, report.targets(experiment), _target_ratio)
    return found


def _best(title, experiment, table, ratio) -> list[tuple[Ratio, list[str]]]:
    found = []
    for (baseline, arm), (pair, _, *cells) in zip(experiment.compared(), table.rows):
        better = ratio(experiment, arm, baseline)
        if better is None:
            continue
        differing = report.factors(experiment.factors(arm, baseline))
        found.append((better, [f"{title}: {pair}", differing, *cells]))
    # A pair that lost quality is taken only if there is no other.
    held = [pair for pair in found if " lost:" not in pair[1][-1]]
    return [max(held or found, key=lambda pair: pair[0].value)] if found else []


def _target_ratio(experiment: Experiment, arm: str, baseline: str):
    return time_to_target(experiment, arm, baseline=baseline).ratio


def update_readme(readme: str | Path, folder: str | Path) -> str:
    """Return the text of a README with the table between its two marks written again.

    Args:
        readme: path of the README; it is not changed.
        folder: the results folder.

    Raises:
        RecordError: the README does not have both marks, the folder has no experiments, or a
            record is damaged.
    """
    text = Path(readme).read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise RecordError(
            f"{readme} needs the lines {BEGIN} and {END}, each once, around the results table"
        )
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n\n{headline(folder)}\n\n{END}{after}"


def _first_start(experiment: Experiment) -> str:
    return min((run.started for runs in experiment.runs.values() for run in runs), default="")


def _heading(folder: Path, runs: list[Run]) -> list[str]:
    facts = description(folder)
    lines = [f"- **{name}**: {value}" for name, value in facts.items()]
    lines += machine(next((run.only("environment") for run in runs if run.events), {}))
    kinds = sorted({run.only("data").get("kind", "") for run in runs} - {""})
    counts = {status: sum(run.status == status for run in runs) for status in
              ("ok", "refused", "diverged", "failed", "killed")}  # fmt: skip
    ended = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    lines.append(f"- **data**: {' and '.join(kinds) or 'none read'}")
    lines.append(f"- **runs**: {len(runs)}, each in a process of its own ({ended})")
    return [
        "\n".join(lines),
        "Every figure below is computed from the run records in this folder. A ratio is the "
        "geometric mean over pairs of interleaved runs, with its 95 % interval; above 1 is better. "
        "A speed-up is claimed only if the interval excludes 1 and quality holds. An option that "
        "an arm does not set is shown as `default`.",
    ]


def machine(environment: dict) -> list[str]:
    """Return processor, GPUs and software of an ``environment`` event, as Markdown items."""
    if not environment:
        return []
    cpu, packages = environment.get("cpu", {}), environment.get("packages", {})
    gpus = [gpu.get("name", "?") for gpu in environment.get("gpus", [])]
    shown = ("mxnet", "mxnet-cu112", "gluoncv", "gluonnlp", "numpy", "mxopt")
    versions = ", ".join(f"{name} {packages[name]}" for name in shown if name in packages)
    sets = ", ".join(cpu.get("instruction_sets", []))
    return [
        f"- **processor**: {cpu.get('model')}, {cpu.get('logical_cores')} cores, {sets}",
        f"- **GPUs**: {', '.join(gpus) or 'none'}",
        f"- **software**: Python {environment.get('python')}, {versions}",
    ]
