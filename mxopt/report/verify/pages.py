"""Pages that were written from records, computed again and compared."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from mxopt.core.errors import MxoptError
from mxopt.core.source import PACKAGE
from mxopt.report import cards, prose, results
from mxopt.report.verify import pictures


def check(folder: Path, readme: str | Path | None = None) -> list[str]:
    """Return the pages that differ from what the records give.

    Args:
        folder: the results folder, whose ``RESULTS.md`` is compared.
        readme: path of a README whose table is compared as well. If the folder that holds it has
            the source of this package, its other generated pages and the figures within its prose
            are compared, too.

    Returns:
        The problems; empty if there are none.
    """
    problems = []
    for path, text in results.pages(folder).items():
        problems += difference(path, lambda text=text: text)
    drawn = results.overview(folder)
    if drawn and not pictures.equal(folder / results.OVERVIEW, drawn):
        problems.append(f"{folder / results.OVERVIEW}: is not what the records give; draw it again")
    if not readme:
        return problems
    readme = Path(readme)
    problems += difference(readme, lambda: results.update_readme(readme, folder))
    root = readme.resolve().parent
    if root == PACKAGE.parent:
        problems += _repository(root)
    elif (root / "docs").exists():
        problems += prose.check(root)
    return problems


def _repository(root: Path) -> list[str]:
    problems = prose.check(root)
    try:
        for path, text in cards.pages(root):
            problems += difference(path, lambda text=text: text, "python -m mxopt.report.cards")
        for path, text in _benchmarks(root).items():
            again = "benchmarks.page.write(Path('benchmarks'))"
            problems += difference(path, lambda text=text: text, again)
    except MxoptError as error:
        problems.append(str(error))
    return problems


def _benchmarks(root: Path) -> dict[Path, str]:
    """Return the pages of the benchmarks, which are a package of their own beside this one."""
    if not (root / "benchmarks" / "page.py").exists():
        return {}
    sys.path.insert(0, str(root))
    try:
        page = importlib.import_module("benchmarks.page")
    finally:
        sys.path.remove(str(root))
    return page.pages(root / "benchmarks")


def difference(page: Path, compute, again: str = "mxopt report") -> list[str]:
    """Return the first line in which a page differs from its computed text.

    Args:
        page: path of the page.
        compute: returns the text that it should have.
        again: the command that writes it.

    Returns:
        One problem, or none.
    """
    try:
        printed, computed = page.read_text(encoding="utf-8"), compute()
    except OSError as error:
        return [f"{page}: cannot be read ({error.strerror})"]
    except MxoptError as error:
        return [f"{page}: cannot be computed ({error})"]
    if printed == computed:
        return []
    lines = zip(printed.splitlines(), computed.splitlines())
    number = next((n for n, (old, new) in enumerate(lines, 1) if old != new), None)
    where = f"line {number}" if number else "its end"
    return [f"{page}: {where} is not what the records give; run {again} to write it again"]
