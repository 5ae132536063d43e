"""A table of text, and figures as text.

In a notebook a :class:`Table` is displayed as HTML; pages have the same tables in Markdown.
"""

from __future__ import annotations

import html
import math
from dataclasses import dataclass, field, replace

# Longest cell, in characters; with longer ones the figures would not fit on the screen.
LONGEST_CELL = 100


@dataclass(frozen=True)
class Table:
    """A table of text: HTML in notebooks, Markdown in files.

    Attributes:
        columns: headings of the columns.
        rows: cells of each row, one for each column.
        caption: text below the table.
        notes: paragraphs below the caption; they are numbered, and cells refer to the numbers.
    """

    columns: list[str]
    rows: list[list[str]]
    caption: str = ""
    notes: list[str] = field(default_factory=list)

    def with_notes(self, column: str) -> Table:
        """Return the table with the long cells of a column moved into notes below it.

        Cells with the same text share a note.
        """
        place, notes, rows = self.columns.index(column), list(self.notes), []
        for row in self.rows:
            cell = row[place]
            if len(cell) > LONGEST_CELL:
                if cell not in notes:
                    notes.append(cell)
                cell = f"see note {notes.index(cell) + 1}"
            rows.append([*row[:place], cell, *row[place + 1 :]])
        return replace(self, rows=rows, notes=notes)

    def _repr_html_(self) -> str:
        def line(tag, cells):
            inside = "".join(
                f"<{tag} style='text-align:left'>{html.escape(cell)}</{tag}>" for cell in cells
            )
            return f"<tr>{inside}</tr>"

        caption = f"<caption>{html.escape(self.caption)}</caption>" if self.caption else ""
        body = "".join(line("td", row) for row in self.rows)
        notes = "".join(
            f"<p><b>Note {number}.</b> {html.escape(note)}</p>"
            for number, note in enumerate(self.notes, 1)
        )
        return f"<table>{caption}{line('th', self.columns)}{body}</table>{notes}"

    def markdown(self) -> str:
        """Return the table in Markdown, with its caption and its notes below."""
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        text = "\n".join(
            "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |"
            for line in lines
        )
        notes = [f"**Note {number}.** {note}" for number, note in enumerate(self.notes, 1)]
        return "\n\n".join([text, *([self.caption] if self.caption else []), *notes])

    __str__ = markdown


def number(value: float | str, unit: str = "") -> str:
    """Return a figure as text, with three significant digits and its unit.

    Args:
        value: the figure; text is returned unchanged, and times below 1 ms are shown in µs.
        unit: unit of the figure, such as ``s``; empty for none.
    """
    if isinstance(value, str):
        return value
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else "infinite"
    if unit == "s" and 0 < abs(value) < 1e-3:
        value, unit = value * 1e6, "µs"
    digits = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{digits} {unit}".strip()
