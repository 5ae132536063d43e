"""``make reproduce``: look at the machine, run the notebooks, leave one folder of results."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from mxopt.chapter import lab, tiers
from mxopt.core import atomic, progress_bar
from mxopt.core.errors import DataError, MxoptError, PlanError
from mxopt.report import html, results

NOTEBOOKS = Path(__file__).resolve().parents[2] / "ch08"
# Seconds a notebook's cell is allowed; measuring cells run for minutes on slow machines.
CELL_TIMEOUT = 4 * 60 * 60

# nbconvert's own page without the scripts that it would fetch from content networks.
PAGE_TEMPLATE = """
{%- extends 'classic/index.html.j2' -%}
{%- block html_head_js -%}{%- endblock -%}
{%- block html_head_js_mathjax -%}{%- endblock -%}
"""


class NotebookError(MxoptError):
    """A cell of a notebook failed; the notebook is kept as far as it came."""


def reproduce(
    tier: str | None = None,
    folder: str | os.PathLike | None = None,
    notebooks: str | os.PathLike = NOTEBOOKS,
    only: str = "",
    long: bool = False,
    resume: bool = False,
) -> Path:
    """Run every notebook on the tier that this machine can do, and return the results folder.

    The folder holds each notebook executed and as HTML, the run records, the plots,
    ``RESULTS.md``, and ``report.html`` to read.

    Args:
        tier: ``smoke``, ``cpu`` or ``gpu``; None picks one and says why.
        folder: where results go; a new folder in ``results`` otherwise.
        notebooks: the folder that holds the notebooks.
        only: the beginning of a notebook's name, such as ``8_2``; all of them otherwise.
        long: also measure what takes up to two hours.
        resume: go on in a folder where an earlier call was interrupted; what it measured stays.

    Raises:
        DataError: there are no notebooks there, or none of that name.
        NotebookError: a cell failed; the message names it.
        MxoptError: the tier cannot run here, or the folder cannot be written.
    """
    found = sorted(Path(notebooks).glob("*.ipynb"))
    if not found:
        raise DataError(
            f"there are no notebooks in {notebooks}; run this from a clone of the repository"
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
                     **{started: f"{datetime.now():%Y-%m-%d %H:%M}"})  # fmt: skip
    os.environ.update(MXOPT_TIER=picked.name, MXOPT_TIER_WHY=picked.why, MXOPT_RESULTS=str(home))
    for variable, wanted in (("MXOPT_LONG", long), ("MXOPT_RESUME", resume)):
        if wanted:
            os.environ[variable] = "1"
    times = {path: tiers.MINUTES.get(picked.name, {}).get(path.name[:3]) for path in chosen}
    expected = 60 * sum(times.values()) if all(times.values()) and not long else None
    if expected:
        print(f"time: about {progress_bar.duration(expected)} in all, going by other machines")
    else:
        print("time: nobody has timed this yet; what is left is estimated once a tenth is done")
    start = time.monotonic()
    parts = {path: 60 * times[path] if expected else 1 for path in chosen}
    with progress_bar.track("notebooks", sum(parts.values()), expected=expected) as step:
        for path in chosen:
            execute(path, home, step, parts[path])
    print(f"{results.write_page(home)} after {progress_bar.duration(time.monotonic() - start)}")
    print(f"to read: {html.write(home)}")
    return home


def execute(path: Path, home: Path, step: Callable, part: float) -> None:
    """Run one notebook; leave it in ``home`` with its outputs, and beside it as HTML.

    Args:
        path: of the notebook.
        home: the results folder.
        step: called as each cell begins, as :func:`mxopt.core.progress_bar.track` describes.
        part: what the costs of all its cells add up to.

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
    """Return a cell's share of its notebook's time: ``mxopt.cost`` of its metadata, or 1."""
    return int(cell.metadata.get("mxopt", {}).get("cost", 1)) if cell.cell_type == "code" else 0


def heading(cells, index: int) -> str:
    """Return the heading that stands over a cell."""
    for cell in reversed(cells[: index + 1]):
        title = next((line for line in cell.source.splitlines() if line.startswith("#")), "")
        if cell.cell_type == "markdown" and title:
            return title.lstrip("# ")
    return "start"


def to_html(notebook) -> str:
    """Return the executed notebook as one page that loads nothing from the network."""
    from nbconvert import HTMLExporter

    exporter = HTMLExporter(template_name="classic", raw_template=PAGE_TEMPLATE)
    return exporter.from_notebook_node(notebook)[0]
