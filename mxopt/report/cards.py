"""Measurements of the methods, written into their cards and the pages that list the methods.

A card is ``mxopt/methods/<name>/README.md``. Its front matter names the switches of the method. The
method's measurements are all pairs of arms in the records that differ in these switches alone. They
are written into the card; one of them is also written into ``docs/methods.md`` and the README: one
on a data set before one on computed numbers; of these one whose first arm has the plan's
defaults before one whose arms both use the method, in two ways; of these one that was named as a
headline before measuring before others; the first in the order of the records.

    python -m mxopt.report.cards            # write the pages again
    python -m mxopt.report.cards --check    # compare them; status 1 if one is out of date
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from mxopt import methods, report
from mxopt.core import atomic
from mxopt.core.errors import MxoptError, RecordError
from mxopt.report.card import Card, read_cards
from mxopt.report.measured import Measured, link, measurements, own, table

PAGE = "docs/methods.md"
README = "README.md"
ABOUT = """# Methods

Every method is a folder below `mxopt/methods`; its card says how to use it, by a switch and by hand, what it costs, and what was measured.

- **kind**: *exact* methods compute the same up to rounding, those that *change learning* make other updates and have to be judged by the score that is reached, *inference* methods work on a trained network.
- **layer**: what is changed: the training program (*application*), what surrounds the process (*environment*), or how many devices and processes run it (*execution*).
- **measured**: how many times better, with its 95 % interval, of a pair of arms that differs in this method's switches alone: on a data set if there is one; of these one that begins with the plan's defaults, not one between two ways to use the method, if there is one; and of these the first that was named as a headline before measuring, or else the first in the records. The card has all of them.

"""  # noqa: E501


def why_none(card: Card, found: list[Measured]) -> str:
    """Return why a method has no measurement of its own.

    Args:
        card: card of the method.
        found: all measurements.
    """
    if any(card.names & measured.factors.keys() for measured in found):
        return "not measured: the records hold it only together with other methods"
    return "not measured: no record holds it"


def written(card: Card, found: list[Measured]) -> str:
    """Return the text of a card with its table of measurements written again.

    Args:
        card: the card.
        found: all measurements.
    """
    mine = own(card, found)
    content = str(table(card, mine)) if mine else f"{why_none(card, found).capitalize()}."
    return between(card.path, card.text, "measured", content)


def between(path: Path, text: str, mark: str, content: str) -> str:
    """Return the text of a page with other content between its two marks.

    Args:
        path: path of the page, for the error.
        text: text of the page.
        mark: name of the marks, ``<!-- mark: begin -->`` and ``<!-- mark: end -->``.
        content: the new content.

    Raises:
        RecordError: the page does not have both marks, each once.
    """
    begin, end = f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise RecordError(f"{path} needs the lines {begin} and {end}, each once, around its table")
    before, rest = text.split(begin)
    return f"{before}{begin}\n\n{content}\n\n{end}{rest.split(end)[1]}"


def listing(cards: list[Card], found: list[Measured], page: Path, short: bool) -> report.Table:
    """Return the table of all methods.

    Args:
        cards: cards of the methods.
        found: all measurements.
        page: path of the page that gets the table, for its links.
        short: whether to leave out kind, layer and summary, as for the README.
    """
    rows = []
    for card in cards:
        switches = (switch.partition(" ") for switch in card.switches)
        names = ", ".join(f"`{name}`{space}{recipe}" for name, space, recipe in switches)
        row = [f"[{card.title}]({link(card.path, page)})", names]
        if not short:
            row += [card.kind, card.layer, card.summary]
        rows.append([*row, _first(card, found, page, short)])
    columns = ["method", "switches", *([] if short else ["kind", "layer", "what it does"])]
    return report.Table([*columns, "measured: times better [95 %]"], rows)


def _first(card: Card, found: list[Measured], page: Path, short: bool) -> str:
    """Return the measurement that stands for a method, and how many more there are."""
    mine = own(card, found)
    known = [measured for measured in mine if measured.ratio]
    first = min(
        known,
        key=lambda each: (each.computed, not each.from_defaults(card), not each.named),
        default=None,
    )
    if short:
        return _brief(first, card)
    if first is None:
        return mine[0].verdict(card) if mine else why_none(card, found)
    verdict = first.verdict(card)
    what = f"{report.factors(first.factors)}: {first.times}, {verdict} ({first.title(page)})"
    more = f"; [{len(mine) - 1} more]({link(card.path, page)}#measured)" if len(mine) > 1 else ""
    return what + more


def _brief(first: Measured | None, card: Card) -> str:
    """Return a measurement in short form; the method's card has the details."""
    if first is None:
        return "not measured alone"
    ratio = first.times.partition(", n")[0]
    return f"{report.factors(first.factors)}: {ratio}, {first.verdict(card)}"


def pages(root: str | Path) -> Iterator[tuple[Path, str]]:
    """Yield the path of every generated page of a repository, and its text from the records.

    Args:
        root: the repository's root.

    Raises:
        RecordError: a card or a record is damaged, or a page lacks its marks.
    """
    root = Path(root).resolve()
    cards, found = read_cards(root / "mxopt" / "methods"), measurements(root)
    for card in cards:
        yield card.path, written(card, found)
    page, readme = root / PAGE, root / README
    yield page, f"{ABOUT}{listing(cards, found, page, short=False)}\n"
    table = str(listing(cards, found, readme, short=True))
    yield readme, between(readme, readme.read_text(encoding="utf-8"), "methods", table)


def main(words: list[str] | None = None) -> int:
    """Write the pages of the repository that contains this package, or compare them.

    Args:
        words: arguments of the command; those of the process if None.

    Returns:
        The exit status: 1 if a page that was compared is out of date, 2 after an error.
    """
    parser = argparse.ArgumentParser(prog="mxopt.report.cards", description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    parser.add_argument("--root", type=Path, default=Path(methods.__path__[0]).parents[1])
    chosen, status = parser.parse_args(words), 0
    try:
        for path, text in pages(chosen.root):
            if path.exists() and path.read_text(encoding="utf-8") == text:
                continue
            if chosen.check:
                print(f"{path} differs from the records; run python -m mxopt.report.cards")
                status = 1
            else:
                atomic.replace_text(path, text)
                print(path)
    except MxoptError as error:
        print(f"mxopt: {error}", file=sys.stderr)
        return 2
    return status


if __name__ == "__main__":
    raise SystemExit(main())
