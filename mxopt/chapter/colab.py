"""The first cell of the notebooks, which on Colab installs mxopt and what Colab lacks.

The address that it installs from is set here, in :data:`SOURCE`, and nowhere else. Whoever
publishes a copy of this repository sets it to the address of the copy, and writes the cells again:

    python -m mxopt.chapter.colab
"""

from __future__ import annotations

import json
from pathlib import Path

from mxopt.chapter.minutes import FOLDERS
from mxopt.core import atomic

# A git repository, or the archive (.tar.gz) of a release.
SOURCE = "https://github.com/mxopt/mxopt"

CELL = """\
# On Colab this cell installs mxopt and what Colab lacks; elsewhere `make` has done so.
# SOURCE is yours to set: the git repository, or the archive (.tar.gz) of a release, to install.
SOURCE = "{source}"

import sys

if "google.colab" in sys.modules:
    if SOURCE.endswith(".tar.gz"):
        !mkdir -p /content/mxopt
        !curl -sSL "$SOURCE" | tar xz -C /content/mxopt --strip-components 1
    else:
        !git clone --quiet --depth 1 "$SOURCE" /content/mxopt
    !test -e /content/mxopt/Makefile || echo "No mxopt at $SOURCE: set SOURCE, and run this again"
    !make --silent -C /content/mxopt colab
    sys.path.insert(0, "/content/mxopt")"""


def cell(source: str = SOURCE) -> str:
    """Return the text of the first cell.

    Args:
        source: address of a git repository, or of an archive.
    """
    return CELL.format(source=source)


def update(folder: Path, source: str = SOURCE) -> list[Path]:
    """Write the first cell of code of every notebook again.

    Args:
        folder: with the notebooks.
        source: as for :func:`cell`.

    Returns:
        The notebooks that had another one.
    """
    changed = []
    for path in sorted(folder.rglob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        first = next(one for one in notebook["cells"] if one["cell_type"] == "code")
        lines = cell(source).splitlines(keepends=True)
        if first["source"] != lines:
            first["source"] = lines
            text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
            atomic.replace_text(path, text)
            changed.append(path)
    return changed


if __name__ == "__main__":
    print(*(path for folder in FOLDERS for path in update(folder)), sep="\n")
