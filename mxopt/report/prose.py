"""Measured figures within sentences: marked, computed from the records, and written again.

A figure is marked by two comments, which Markdown does not show:

    Two workers are <!-- = docs/clusters times one workers-2 -->1.45<!-- / --> times as fast.

The first comment names the experiment, relative to the root of the repository and without its
ending, and what is shown of it:

    ratio BEFORE AFTER [FIGURE]     1.45 [1.34, 1.56]
    times BEFORE AFTER [FIGURE]     1.45
    target BEFORE AFTER             how many times sooner the goal is reached, with its interval
    median ARM [FIGURE]             0.524 s
    sum ARM FIGURE                  over the runs of an arm
    comparison                      the table of all pairs

Every other number with a unit of time, speed, memory or quality counts as an unmarked measurement,
unless a comment says what else it is. Within a line it is about this line, and in a line of its own
about the section that it is in:

    Docker provides only 64 MiB by default. <!-- not measured: Docker's documentation -->

    python -m mxopt.report.prose            # write the marked figures again
    python -m mxopt.report.prose --check    # compare them, and look for unmarked ones
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from mxopt.core import atomic
from mxopt.core.errors import MxoptError
from mxopt.core.source import PACKAGE
from mxopt.report.marks import evaluate

PAGES = ("README.md", "docs/*.md", "mxopt/methods/*/README.md", "ch08/*.ipynb", "guides/**/*.ipynb")
MARKED = re.compile(r"(<!-- = (.+?) -->)(.*?)(<!-- / -->)", re.DOTALL)
NOT_MEASURED = re.compile(r"<!-- not measured: .+? -->")
_UNITS = (
    r"times|\N{MULTIPLICATION SIGN}(?! ?\d)|%|(?:milli|micro)?seconds?|minutes?|hours?|m?s|µs|"
    r"[kMGT]i?B|G?FLOP/s|\w+/s|tokens a second|BLEU|chrF|mIoU|(?:times )?(?:faster|slower|sooner)"
)
MEASURED = re.compile(
    rf"(?<![\w.,-])\d(?:[\d.,]*\d)?(?: to \d[\d.]*)?[ \u00a0-]?(?:{_UNITS})(?![\w/])"
    r"|\b(?:BLEU|chrF|mIoU|accuracy)(?: of| is| below| above| at least)?(?: about)? \d(?:[\d.]*\d)?"
)
# 95 % is the level of every interval; code is no prose; blocks between marks are generated.
_NO_PROSE = re.compile(
    r"```.*?```|`[^`\n]*`|\]\([^)]*\)|(?<=\[)95 %(?=\])|95 % interval|"
    r"<!-- (\w+): begin -->.*?<!-- \1: end -->",
    re.DOTALL,
)
GENERATED = ("docs/methods.md", "docs/errata.md")


def updated(text: str, root: Path) -> str:
    """Return a text with every marked figure computed again.

    Args:
        text: the text of a page.
        root: the repository's root.

    Raises:
        RecordError: a mark cannot be evaluated.
    """
    return MARKED.sub(lambda m: f"{m[1]}{evaluate(m[2], root)}{m[4]}", text)


def unmarked(text: str) -> Iterator[tuple[int, str]]:
    """Yield figures of a text that look measured and are not marked, with the number of the line.

    Args:
        text: the text of a page, in Markdown.
    """
    for pattern in (MARKED, _NO_PROSE):
        text = pattern.sub(lambda m: re.sub(r"[^\n]", "_", m[0]), text)
    excused = 0  # level of the heading whose section is not measured
    level = 0
    for number, line in enumerate(text.splitlines(), 1):
        if heading := re.match("#+ ", line):
            level = len(heading[0]) - 1
            excused = 0 if level <= excused else excused
        if NOT_MEASURED.fullmatch(line):
            excused = level
        elif not excused and not NOT_MEASURED.search(line):
            yield from ((number, found[0]) for found in MEASURED.finditer(line))


def pages(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of every page with prose; of notebooks, that of each cell.

    Args:
        root: the repository's root.
    """
    for pattern in PAGES:
        for path in sorted(root.glob(pattern)):
            name, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
            if path.suffix == ".md":
                yield name, text
            elif path.suffix == ".ipynb":
                for number, cell in enumerate(json.loads(text)["cells"]):
                    if cell["cell_type"] == "markdown":
                        yield f"{name}, cell {number}", "".join(cell["source"])


def _files(root: Path) -> Iterator[Path]:
    yield from root.glob("**/*.md")
    for pattern in PAGES:
        yield from root.glob(pattern) if pattern.endswith(".ipynb") else ()


def _again(path: Path, text: str, root: Path) -> str:
    """Return the text of a file with every marked figure computed again."""
    if path.suffix == ".md" or not MARKED.search(text):
        return updated(text, root)
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = updated("".join(cell["source"]), root).splitlines(keepends=True)
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def check(root: Path) -> list[str]:
    """Return the marked figures that differ from the records, and the unmarked ones.

    Args:
        root: the repository's root.

    Returns:
        The problems, each a sentence that names the page; empty if there are none.
    """
    problems = []
    for name, text in pages(root):
        for mark in MARKED.finditer(text):
            line = text[: mark.start()].count("\n") + 1
            try:
                computed = evaluate(mark[2], root)
            except MxoptError as error:
                problems.append(f"{name}, line {line}: {error}")
                continue
            if mark[3] != computed:
                problems.append(f"{name}, line {line}: {mark[3]!r}, the records give {computed!r}")
        for line, figure in () if name in GENERATED else unmarked(text):
            problems.append(
                f"{name}, line {line}: {figure!r} has no record; mark it, or say in the same line "
                "<!-- not measured: where it comes from -->"
            )
    return problems


def main(words: list[str] | None = None) -> int:
    """Write the marked figures of the repository again, or compare them.

    Args:
        words: arguments of the command; those of the process if None.

    Returns:
        The exit status: 1 if there are problems, 2 after an error.
    """
    parser = argparse.ArgumentParser(prog="mxopt.report.prose", description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    parser.add_argument("--root", type=Path, default=PACKAGE.parent)
    chosen = parser.parse_args(words)
    try:
        for path in () if chosen.check else _files(chosen.root):
            text = path.read_text(encoding="utf-8")
            again = _again(path, text, chosen.root)
            if again != text:
                atomic.replace_text(path, again)
                print(path)
        problems = check(chosen.root)
    except MxoptError as error:
        print(f"mxopt: {error}", file=sys.stderr)
        return 2
    print(*problems, sep="\n", end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
