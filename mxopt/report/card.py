"""The card of a method: ``mxopt/methods/<name>/README.md``.

Its front matter (YAML) has ``name``, ``switches``, ``kind`` and ``tested_on``, and may have
``layer`` and ``companions``. All cards have the same headings in the same order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

from mxopt import methods
from mxopt.core.errors import RecordError
from mxopt.core.records import Run
from mxopt.machine.processor import folder_name
from mxopt.report.tables import DIFFERS

KINDS = ("exact", "changes learning", "inference")
LAYERS = ("application", "environment", "execution")
HEADINGS = (
    "What it does",
    "Use it",
    "When it helps, when it does not",
    "What it costs",
    "Measured",
    "Source",
)

DATA = "data"  # the last column of the measured table before those of the processors
UNKNOWN = "unknown"  # the processor of a run that does not say it
LINK = r"\[([^\]]*)\]\([^)]*\)"


@dataclass(frozen=True)
class Card:
    """The description of a method.

    Attributes:
        path: path of its ``README.md``.
        text: text of that file.
        title: heading of the file.
        summary: first sentence of *What it does*.
        switches: switches as written, such as ``hybridize``, or ``loss (translation)`` for an
            option of one recipe; ``names`` has them without the recipe.
        kind: one of ``KINDS``; ``docs/methods.md`` explains them.
        tested_on: the devices that tests run it on.
        layer: one of ``LAYERS``, or empty; ``docs/methods.md`` explains them.
        companions: switches that have to change with the method's to keep the work equal.
    """

    path: Path
    text: str
    title: str
    summary: str
    switches: tuple[str, ...]
    kind: str
    tested_on: str
    layer: str = ""
    companions: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the method's folder."""
        return self.path.parent.name

    @property
    def names(self) -> set[str]:
        """The names of the switches, without recipes."""
        return {switch.split(" (")[0] for switch in self.switches}

    def owns(self, differing: Iterable[str]) -> bool:
        """Return whether two arms differ in this method alone.

        Args:
            differing: names of the switches and options in which they differ.
        """
        differing = set(differing)
        return bool(differing & self.names) and differing <= self.names | {*self.companions}


def read_card(path: Path) -> Card:
    """Read a card.

    Raises:
        RecordError: its front matter is damaged or lacks a field, or its headings are not
            ``HEADINGS``.
    """
    text = path.read_text(encoding="utf-8")
    parts = re.fullmatch(r"---\n(.*?)\n---\n\n# ([^\n]+)\n(.*)", text, re.DOTALL)
    if not parts:
        raise RecordError(f"{path} must begin with front matter between --- lines and a # title")
    try:
        front = dict(yaml.safe_load(parts[1]))
    except (yaml.YAMLError, TypeError, ValueError) as error:
        raise RecordError(f"{path}: its front matter is not a mapping in YAML: {error}") from None
    for field, choices in (("kind", KINDS), ("layer", (*LAYERS, ""))):
        if front.get(field, "") not in choices:
            raise RecordError(f"{path}: {field}={front.get(field)!r}; take one of {choices}")
    if front.pop("name", None) != path.parent.name or not isinstance(front.get("switches"), list):
        raise RecordError(f"{path}: name must be {path.parent.name}, and switches a list")
    plain = re.sub(r"^```.*?^```$", "", parts[3], flags=re.DOTALL | re.MULTILINE)
    headings = tuple(re.findall(r"^## (.+)$", plain, re.MULTILINE))
    if headings != HEADINGS:
        raise RecordError(f"{path} has the headings {headings}; take {HEADINGS}, in this order")
    what = parts[3].split(f"## {HEADINGS[0]}\n")[1].split("\n## ")[0].strip()
    summary = re.split(r"(?<=\.)\s", what)[0]
    lists = {field: tuple(front.pop(field, ())) for field in ("switches", "companions")}
    try:
        return Card(path, text, parts[2], summary, **lists, **front)
    except TypeError as error:
        raise RecordError(f"{path}: its front matter has a wrong field: {error}") from None


def first_measured(card: Card, switch: str, processor: str = "") -> str:
    """Return what a card's measured table first shows about a switch, or nothing.

    Args:
        card: the card.
        switch: name of the switch.
        processor: name of the processor whose figure is wanted, if there is one.
    """
    text = card.text.partition("<!-- measured: begin -->")[2].partition("<!-- measured: end -->")[0]
    lines = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("|")]
    columns, *rows = [[cell.strip() for cell in line] for line in lines] or [[]]
    found = [
        (row[columns.index(DIFFERS)], name, cell)
        for row in rows[1:]
        for name, cell in list(zip(columns, row))[columns.index(DATA) + 1 :]
        if row[columns.index(DIFFERS)].startswith(f"{switch}: ") and cell
    ]
    if not found:
        return ""
    differs, name, cell = min(found, key=lambda one: one[1] != processor)
    said = re.sub(LINK, r"\1", cell)
    return f"{differs}: {said} ({name})"


def processor_of(run: Run) -> str:
    """Return the name of a run's processor, as folders of records and measured tables have it.

    Args:
        run: the run.
    """
    return folder_name(run.only("environment").get("cpu", {}).get("model", UNKNOWN))


def read_cards(folder: str | Path = methods.__path__[0]) -> list[Card]:
    """Return the cards of all methods, by the names of their folders."""
    return [read_card(path) for path in sorted(Path(folder).glob("*/README.md"))]
