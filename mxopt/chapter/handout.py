"""``make handout``: the notebooks for students, without solutions, and as slides.

    python -m mxopt.chapter.handout results/handout [--reveal FOLDER] [--executed results/mine]

``--reveal`` names a folder with reveal.js (its ``dist``), which is copied beside the slides; they
load nothing from the network. With ``--executed`` the slides show results.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbconvert.exporters import NotebookExporter, SlidesExporter
from traitlets.config import Config

from mxopt.chapter.minutes import FOLDERS
from mxopt.core import atomic

SOLUTION = "solution"
# nbconvert's slides without its loader, and without what it loads from other hosts. A slide that is
# higher than the screen scrolls.
SLIDES = """
{%- extends 'reveal/index.html.j2' -%}
{%- block html_head_js -%}{%- endblock -%}
{%- block html_head_js_mathjax -%}{%- endblock -%}
{%- block html_head_css -%}
<style>.reveal .slides section section { max-height: 700px; overflow-y: auto; }</style>
{%- endblock -%}
{%- block footer_js -%}
<script src="reveal.js/dist/reveal.js"></script>
<script>Reveal.initialize({hash: true, slideNumber: "c/t", center: false, width: 1100});</script>
{%- endblock -%}
"""


def write(folder: str | Path, reveal: str | Path = "", executed: str | Path = "") -> None:
    """Write a student's copy of every notebook, and slides if there is a reveal.js.

    Args:
        folder: where they are written.
        reveal: folder of reveal.js; without it there are no slides.
        executed: results folder, whose notebooks the slides are made of; without it, or if it lacks
            one, those that are not executed.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for path in (path for one in FOLDERS for path in sorted(one.glob("*.ipynb"))):
        copy, _ = NotebookExporter(config=_without_solutions()).from_filename(str(path))
        atomic.replace_text(folder / path.name, copy)
        if reveal:
            run = Path(executed, path.name)
            page = slides(run if executed and run.exists() else path)
            atomic.replace_text(folder / f"{path.stem}.slides.html", page)
    if reveal:
        shutil.copytree(Path(reveal, "dist"), folder / "reveal.js" / "dist", dirs_exist_ok=True)


def slides(path: Path) -> str:
    """Return a notebook as slides: a new one at every text, with the code that follows it.

    Args:
        path: the notebook.
    """
    notebook = nbformat.read(path, 4)
    for kind, cell in zip(kinds(notebook.cells), notebook.cells):
        cell.metadata["slideshow"] = {"slide_type": kind}
    config = _without_solutions()
    config.SlidesExporter.reveal_url_prefix = "reveal.js"
    config.SlidesExporter.reveal_theme = "white"  # whose fonts are in reveal.js's own folder
    exporter = SlidesExporter(config=config, raw_template=SLIDES)
    page, _ = exporter.from_notebook_node(notebook)
    return page


def kinds(cells: list) -> Iterator[str]:
    """Yield what each cell is to reveal.js: sections side by side, their texts below them.

    Args:
        cells: of a notebook.
    """
    before = ""
    for cell in cells:
        if "google.colab" in cell.source:
            yield "skip"
        elif cell.cell_type == "markdown":
            yield "slide" if cell.source.lstrip().startswith(("# ", "## ")) else "subslide"
        else:
            yield "subslide" if before == "code" else "-"  # a text introduces its code
        before = cell.cell_type


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
    parser.add_argument("--executed", type=Path, default="", help="results folder, for the slides")
    chosen = parser.parse_args()
    write(chosen.folder, chosen.reveal, chosen.executed)
    print(f"written: {chosen.folder}")


if __name__ == "__main__":
    main()
