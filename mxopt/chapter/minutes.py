"""How long each section of the notebooks takes: from executed notebooks, for each tier.

The times are kept in ``minutes.json``, from which ``make reproduce`` foretells the time that is
left, and are written at the head of each notebook.

    python -m mxopt.chapter.minutes results/mine    # take over the times of a run
    python -m mxopt.chapter.minutes --check         # do the notebooks show what is kept?
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from mxopt.core import atomic
from mxopt.core.errors import RecordError
from mxopt.core.source import PACKAGE
from mxopt.machine.processor import cpu
from mxopt.report.results import description
from mxopt.report.table import Table

RECORD = Path(__file__).with_name("minutes.json")
# The chapter's notebooks, then the guides to the other sources.
FOLDERS = (PACKAGE.parent / "ch08", PACKAGE.parent / "guides")
BLOCK = re.compile(r"(<!-- minutes: begin -->\n).*?(<!-- minutes: end -->)", re.DOTALL)
_SHORT = 6  # seconds
_BEGIN, _END = "iopub.execute_input", "shell.execute_reply"


def known() -> dict:
    """Return what is kept: ``{"cpu": {"8_1": times}}``, for each tier and notebook.

    Its times have ``machine``, ``measured`` (a date) and ``seconds``, which are by section.
    """
    return json.loads(RECORD.read_text(encoding="utf-8"))


def key(path: Path) -> str:
    """Return the name of a notebook in settings and records: ``8_1``, or that of a guide."""
    return path.name[:3] if path.name.startswith("8_") else path.stem


def of_notebooks(tier: str) -> dict[str, float]:
    """Return the minutes of each notebook on a tier, by ``8_1`` and so on; empty if not timed.

    Args:
        tier: name of the tier.
    """
    timed = known().get(tier, {})
    return {name: sum(times["seconds"].values()) / 60 for name, times in timed.items()}


def of_sections(cells: Iterable[dict]) -> dict[str, float]:
    """Return the seconds of the sections of an executed notebook, in their order.

    Args:
        cells: of the notebook, with the times that nbclient notes in their metadata. The first cell
            is its head; what follows before the first section is a section called ``start``.

    Raises:
        RecordError: a cell was not executed.
    """
    seconds: dict[str, float] = {}
    section = "start"
    for number, cell in enumerate(cells):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown" and number:
            titles = re.findall(r"^## (.+)", source, re.MULTILINE)
            section = titles[-1] if titles else section
        elif cell["cell_type"] == "code":
            times = cell["metadata"].get("execution", {})
            if not {_BEGIN, _END} <= times.keys():
                raise RecordError(f"cell {number} was not executed; run the whole notebook")
            began, ended = (_moment(times[key]) for key in (_BEGIN, _END))
            seconds[section] = seconds.get(section, 0.0) + (ended - began).total_seconds()
    return {name: round(time, 1) for name, time in seconds.items()}


def take(folder: str | Path, machine: str) -> dict:
    """Keep the times of the notebooks in a results folder.

    Args:
        folder: a results folder of ``mxopt reproduce``, whole and uninterrupted.
        machine: processor and number of cores, for the readers.

    Returns:
        What is now kept.

    Raises:
        RecordError: the run was resumed, or a long one, or has no executed notebook.
    """
    facts = description(Path(folder))
    for kind in ("resumed", "long"):
        if facts.get(kind):
            raise RecordError(f"{folder}: a run that is {kind} does not tell how long one takes")
    executed = sorted(Path(folder).glob("*.ipynb"))
    if not executed or "tier" not in facts:
        raise RecordError(f"{folder} holds no executed notebook; run `mxopt reproduce` first")
    kept = known()
    tier = kept.setdefault(facts["tier"].split()[0], {})
    for path in executed:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        tier[key(path)] = {
            "machine": machine,
            "measured": facts["started"].split()[0],
            "seconds": of_sections(cells),
        }
    atomic.replace_text(RECORD, json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    return kept


def table(notebook: str, kept: dict) -> str:
    """Return the minutes of a notebook's sections as a Markdown table, a column for each tier.

    Sections of some seconds are left out.

    Args:
        notebook: such as ``8_1``.
        kept: what :func:`known` returns.
    """
    timed = {tier: notebooks[notebook] for tier, notebooks in kept.items() if notebook in notebooks}
    columns = [times["seconds"] for times in timed.values()]
    names = list(dict.fromkeys(name for column in columns for name in column))
    names = [name for name in names if max(column.get(name, 0) for column in columns) >= _SHORT]
    rows = [[name, *(_shown(column.get(name)) for column in columns)] for name in names]
    rows.append(["all", *(_shown(sum(column.values())) for column in columns)])
    notes = "; ".join(
        f"`{tier}`: {times['machine']}, {times['measured']}" for tier, times in timed.items()
    )
    shown = Table(["section", *(f"minutes, `{tier}`" for tier in timed)], rows)
    return f"{shown}\n\nMeasured on {notes}.\n"


def update(kept: dict, folders: Iterable[Path] = FOLDERS, write: bool = True) -> list[Path]:
    """Write the tables into the notebooks, between the comments that mark their places.

    Args:
        kept: what :func:`known` returns.
        folders: with the notebooks.
        write: whether to write; otherwise the notebooks are compared only.

    Returns:
        The notebooks that showed something else.
    """
    differ = []
    for path in (path for folder in folders for path in sorted(folder.glob("*.ipynb"))):
        text = path.read_text(encoding="utf-8")
        notebook = json.loads(text)
        head = notebook["cells"][0]
        source = "".join(head["source"])
        shown = table(key(path), kept)
        new = BLOCK.sub(lambda m, shown=shown: f"{m[1]}{shown}{m[2]}", source)
        if new != source:
            differ.append(path)
            head["source"] = new.splitlines(keepends=True)
            if write:
                text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
                atomic.replace_text(path, text)
    return differ


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def _shown(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds / 60:.1f}"


def main(words: list[str] | None = None) -> int:
    """Take over the times of a run, or compare the notebooks with what is kept.

    Args:
        words: arguments of the command; those of the process if None.

    Returns:
        The exit status: 1 if a notebook differs.
    """
    parser = argparse.ArgumentParser(
        prog="mxopt.chapter.minutes", description=__doc__.split("\n")[0]
    )
    parser.add_argument("results", nargs="?", type=Path, help="a results folder of this machine")
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    chosen = parser.parse_args(words)
    if chosen.results and not chosen.check:
        here = cpu()
        take(chosen.results, f"{here.model}, {here.physical_cores} cores")
    differ = update(known(), write=not chosen.check)
    print(*differ, sep="\n", end="\n" if differ else "")
    return int(chosen.check and bool(differ))


if __name__ == "__main__":
    raise SystemExit(main())
