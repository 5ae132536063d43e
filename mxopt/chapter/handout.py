"""``make handout``: the notebooks for students, without solutions, and as slides.

    python -m mxopt.chapter.handout results/handout [--reveal FOLDER]

``--reveal`` names a folder with reveal.js (its ``dist``), which is copied beside the slides; they
load nothing from the network.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbconvert.exporters import NotebookExporter, SlidesExporter
from traitlets.config import Config

from mxopt.chapter.reproduce import NOTEBOOKS
from mxopt.core import atomic

SOLUTION = "solution"


def write(folder: str | Path, notebooks: str | Path = NOTEBOOKS, reveal: str | Path = "") -> None:
    """Write a student's copy of every notebook, and slides if there is a reveal.js.

    Args:
        folder: where they are written.
        notebooks: folder of the notebooks.
        reveal: folder of reveal.js; without it there are no slides.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(Path(notebooks).glob("*.ipynb")):
        copy, _ = NotebookExporter(config=_without_solutions()).from_filename(str(path))
        atomic.replace_text(folder / path.name, copy)
        if reveal:
            atomic.replace_text(folder / f"{path.stem}.slides.html", slides(path))
    if reveal:
        shutil.copytree(Path(reveal, "dist"), folder / "reveal.js" / "dist", dirs_exist_ok=True)
        plugins = Path(reveal, "plugin")
        if plugins.is_dir():
            shutil.copytree(plugins, folder / "reveal.js" / "plugin", dirs_exist_ok=True)


def slides(path: Path) -> str:
    """Return a notebook as slides: a new one at every heading and at every cell of code.

    Args:
        path: the notebook.
    """
    notebook = nbformat.read(path, 4)
    for kind, cell in zip(kinds(notebook.cells), notebook.cells):
        cell.metadata["slideshow"] = {"slide_type": kind}
    config = _without_solutions()
    config.SlidesExporter.reveal_url_prefix = "reveal.js"
    config.SlidesExporter.reveal_scroll = True  # long cells
    config.SlidesExporter.require_js_url = config.SlidesExporter.mathjax_url = ""
    config.SlidesExporter.jquery_url = config.SlidesExporter.font_awesome_url = ""
    page, _ = SlidesExporter(config=config).from_notebook_node(notebook)
    return page


def kinds(cells: list) -> Iterator[str]:
    """Yield the kind of slide that each cell is: sections side by side, their cells below them.

    Args:
        cells: of a notebook.
    """
    for cell in cells:
        heading = cell.cell_type == "markdown" and cell.source.lstrip().startswith(("# ", "## "))
        yield "slide" if heading else "subslide"


def _without_solutions() -> Config:
    config = Config()
    config.TagRemovePreprocessor.enabled = True
    config.TagRemovePreprocessor.remove_cell_tags = (SOLUTION,)
    return config


def main() -> None:
    """Write the handout that the command line asks for."""
    parser = argparse.ArgumentParser(description="Write the notebooks for students.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--reveal", type=Path, default="", help="folder of reveal.js")
    chosen = parser.parse_args()
    write(chosen.folder, reveal=chosen.reveal)
    print(f"written: {chosen.folder}")


if __name__ == "__main__":
    main()
