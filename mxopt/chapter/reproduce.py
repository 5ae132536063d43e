"""``make reproduce``: choose a tier, run the notebooks, and write one folder of results."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from mxopt.chapter import lab, minutes, tiers
from mxopt.core import atomic, progress_bar
from mxopt.core.errors import DataError, MxoptError, PlanError
from mxopt.report import html, results
from mxopt.report.explore import STATIC

# Seconds that a cell may take; cells that measure take many minutes on slow machines.
CELL_TIMEOUT = 4 * 60 * 60

# nbconvert's own page, without the scripts that it would load from the network.
PAGE_TEMPLATE = """
{%- extends 'classic/index.html.j2' -%}
{%- block html_head_js -%}{%- endblock -%}
{%- block html_head_js_mathjax -%}{%- endblock -%}
"""


class NotebookError(MxoptError):
    """A cell of a notebook failed; the cells before it are saved with their outputs."""


def reproduce(
    tier: str | None = None,
    folder: str | os.PathLike | None = None,
    notebooks: str | os.PathLike | None = None,
    only: str = "",
    long: bool = False,
    resume: bool = False,
) -> Path:
    """Run the notebooks on a tier, and return the results folder.

    The folder holds the executed notebooks, also as HTML, the run records, the plots,
    ``RESULTS.md``, and ``report.html``.

    Args:
        tier: ``smoke``, ``cpu`` or ``gpu``; None picks the best for this machine and prints why.
        folder: the results folder; None makes a new one in ``results``.
        notebooks: folder of the notebooks; None takes the chapter's, then the guides'.
        only: beginning of the name of the only notebook to run, such as ``8_2``; empty for all.
        long: whether to add measurements that take several hours.
        resume: whether to continue an interrupted call in ``folder``, keeping what it measured.

    Returns:
        Path of the results folder.

    Raises:
        DataError: there are no notebooks in the folder, or none of that name.
        NotebookError: a cell failed; the message has its error.
        MxoptError: the tier cannot run on this machine, or the folder cannot be written.
    """
    folders = [Path(notebooks)] if notebooks else minutes.FOLDERS
    found = [path for folder in folders for path in sorted(folder.glob("*.ipynb"))]
    if not found:
        raise DataError(
            f"there are no notebooks in {folders[0]}; run this from a clone of the repository"
        )
    chosen = [path for path in found if path.name.startswith(only)]
    if not chosen:
        names = ", ".join(path.stem for path in found)
        raise DataError(f"no notebook's name begins with {only!r}; there are {names}")
    picked = tiers.pick_tier(tier)
    print(f"tier: {picked.name} ({picked.why})")
    if resume and not folder:
        raise PlanError("to resume, name the results folder that was interrupted")
    home = lab.make_folder(Path(folder or lab.new_results_folder()).absolute(), resume)
    print(f"results: {home}")
    lab.find_data(picked.name)
    started = "resumed" if resume else "started"
    results.describe(home, tier=f"{picked.name} ({picked.why})",
                     **{started: f"{datetime.now():%Y-%m-%d %H:%M}"},
                     **({"long": True} if long else {}))  # fmt: skip
    os.environ.update({STATIC: "1", "MXOPT_TIER": picked.name, "MXOPT_TIER_WHY": picked.why,
                       "MXOPT_RESULTS": str(home)})  # fmt: skip
    for variable, wanted in (("MXOPT_LONG", long), ("MXOPT_RESUME", resume)):
        if wanted:
            os.environ[variable] = "1"
    timed = minutes.of_notebooks(picked.name)
    times = {path: timed.get(minutes.key(path)) for path in chosen}
    expected = 60 * sum(times.values()) if all(times.values()) and not long else None
    if resume:
        print("time: not known, because what was measured before is not measured again")
    elif expected:
        print(f"time: about {progress_bar.duration(expected)} in all, measured on another machine")
    else:
        print("time: not known for these settings; an estimate follows after a tenth of the work")
    if picked.name == "cpu" and not long:
        for path in chosen:
            if sections := only_long(path):
                print(f"only with LONG=1, in {minutes.key(path)}: {'; '.join(sections)}")
    start = time.monotonic()
    parts = {path: 60 * times[path] if expected else 1 for path in chosen}
    with progress_bar.track(
        "notebooks", sum(parts.values()), expected=expected, estimate=not resume
    ) as step:
        for path in chosen:
            execute(path, home, step, parts[path])
    print(f"{results.write_page(home)} after {progress_bar.duration(time.monotonic() - start)}")
    print(f"to read: {html.write(home)}")
    return home


def execute(path: Path, home: Path, step: Callable, part: float) -> None:
    """Run one notebook, and write it with its outputs and as HTML.

    Args:
        path: path of the notebook.
        home: the results folder, which gets both files.
        step: called when each cell begins, as :func:`mxopt.core.progress_bar.track` describes.
        part: the notebook's part of the progress bar, divided among its cells by their costs.

    Raises:
        NotebookError: a cell failed.
    """
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    notebook = nbformat.read(path, as_version=4)
    costs = [cost(cell) for cell in notebook.cells]

    def begin(cell, cell_index):
        what = f"{path.stem}: {heading(notebook.cells, cell_index)}"
        step(what, part * costs[cell_index] / sum(costs))

    client = NotebookClient(
        notebook, kernel_name="python3", extra_arguments=["--IPKernelApp.log_level=ERROR"],
        timeout=CELL_TIMEOUT, on_cell_execute=begin,
        resources={"metadata": {"path": str(path.parent)}},
    )  # fmt: skip
    failure = None
    try:
        client.execute()
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        failure = f"{getattr(error, 'ename', type(error).__name__)}: " + (
            getattr(error, "evalue", "") or str(error)
        )
    atomic.replace_text(home / path.name, nbformat.writes(notebook) + "\n")
    atomic.replace_text(home / f"{path.stem}.html", to_html(notebook))
    if failure:
        raise NotebookError(f"{path.name} stopped: {failure} (kept in {home / path.name})")


def cost(cell) -> int:
    """Return the relative time of a cell: ``mxopt.cost`` in its metadata, or 1; 0 for text."""
    return int(cell.metadata.get("mxopt", {}).get("cost", 1)) if cell.cell_type == "code" else 0


def heading(cells, index: int) -> str:
    """Return the heading above a cell.

    Args:
        cells: cells of the notebook.
        index: position of the cell.

    Returns:
        The text of the heading; ``start`` if there is none.
    """
    for cell in reversed(cells[: index + 1]):
        title = next((line for line in cell.source.splitlines() if line.startswith("#")), "")
        if cell.cell_type == "markdown" and title:
            return title.lstrip("# ")
    return "start"


def only_long(path: Path) -> list[str]:
    """Return the headings of a notebook's sections that measure something with LONG=1 only.

    Args:
        path: path of the notebook; its cells that do so name LONG=1 in what they print otherwise.
    """
    import nbformat

    cells = nbformat.read(path, as_version=4).cells
    found = [
        heading(cells, index)
        for index, cell in enumerate(cells)
        if cell.cell_type == "code" and "LONG=1" in cell.source
    ]
    return list(dict.fromkeys(found))


def to_html(notebook) -> str:
    """Return the executed notebook as one page that loads nothing from the network."""
    from nbconvert import HTMLExporter

    exporter = HTMLExporter(template_name="classic", raw_template=PAGE_TEMPLATE)
    return exporter.from_notebook_node(notebook)[0]
