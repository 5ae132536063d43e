"""Two programs side by side, with the lines that differ in colour.

The notebooks show with it what a feature changes in a program that uses MXNet only. The comparison
is made from the sources of the two functions, so it cannot differ from what is executed.
"""

from __future__ import annotations

import difflib
import html
import inspect
import textwrap
from collections.abc import Callable, Iterator

_STYLES = {
    "old": "background: rgba(220, 60, 60, .22)",
    "new": "background: rgba(40, 160, 80, .25)",
    "": "",
}
# Lines that are too long are broken, so that both columns are seen at once.
_CELL = (
    "padding: 0 .6em; text-align: left; vertical-align: top; white-space: pre-wrap; "
    "overflow-wrap: anywhere; font-family: monospace; font-size: .85em"
)


class SideBySide:
    """Two programs side by side; HTML in a notebook, a unified diff elsewhere.

    >>> print(SideBySide(["a = 1", "b = 2"], ["a = 1", "b = 3"]))
      a = 1
    - b = 2
    + b = 3

    Args:
        before: a function, its source, or lines.
        after: a function, its source, or lines.
        titles: headings of the two columns; by default the names of the functions.
    """

    def __init__(self, before: Callable | str | list, after: Callable | str | list, *titles: str):
        self.before, self.after = lines_of(before), lines_of(after)
        names = (getattr(one, "__name__", "") for one in (before, after))
        self.titles = titles or tuple(names)

    @property
    def changed(self) -> int:
        """Number of lines that are in one of the programs only."""
        return sum(bool(kind) for left, right in self.rows() for kind in (left[1], right[1]))

    def rows(self) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
        """Yield the rows: for both sides a line, and ``old``, ``new`` or nothing."""
        matcher = difflib.SequenceMatcher(None, self.before, self.after, autojunk=False)
        for kind, a, b, c, d in matcher.get_opcodes():
            old, new = self.before[a:b], self.after[c:d]
            for number in range(max(len(old), len(new))):
                left = (old[number], "old") if number < len(old) else ("", "")
                right = (new[number], "new") if number < len(new) else ("", "")
                if kind == "equal":
                    left, right = (left[0], ""), (right[0], "")
                yield left, right

    def __str__(self):
        found = difflib.ndiff(self.before, self.after)
        return "\n".join(line.rstrip() for line in found if not line.startswith("?"))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        heads = "".join(f"<th style='{_CELL}'>{html.escape(title)}</th>" for title in self.titles)
        body = "".join(
            "<tr>" + "".join(
                f"<td style='{_CELL}; {_STYLES[kind]}'>{html.escape(line)}</td>"
                for line, kind in sides
            ) + "</tr>"
            for sides in self.rows()
        )  # fmt: skip
        table = "display: table; table-layout: fixed; width: 100%"
        return f"<table style='{table}'><tr>{heads}</tr>{body}</table>"


def lines_of(program: Callable | str | list) -> list[str]:
    """Return the lines of a program; of a function its body, without indentation.

    Args:
        program: a function, its source, or lines.
    """
    if isinstance(program, list):
        return program
    if isinstance(program, str):
        return textwrap.dedent(program).strip("\n").splitlines()
    lines, _ = inspect.getsourcelines(program)
    start = next(n for n, line in enumerate(lines) if line.rstrip().endswith(":")) + 1
    return textwrap.dedent("".join(lines[start:])).strip("\n").splitlines()
