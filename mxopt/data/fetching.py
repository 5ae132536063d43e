"""Make several data sets available and report in one row each what was found where."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mxopt.core.errors import DataError
from mxopt.data import pretrained
from mxopt.data.registry import Source, source
from mxopt.data.sources import Location, locate, verify


@dataclass(frozen=True)
class Fetched:
    """One row of ``mxopt fetch``.

    Attributes:
        name: of the data set.
        location: where it was found; ``None`` if it is unavailable.
        size: in bytes.
        hash_checked: whether SHA-256 was compared in this call.
        problem: why it is unavailable; empty if it is not.
    """

    name: str
    location: Location | None
    size: int = 0
    hash_checked: bool = False
    problem: str = ""

    def __str__(self) -> str:
        if self.location is None:
            return f"{self.name}: not available. {self.problem}"
        checked = "hash checked" if self.hash_checked else "hash not checked"
        row = (
            f"{self.name}: {self.location.kind}, {self.location.path} ({self.location.origin}), "
            f"{self.size / 1e6:.1f} MB, {checked}"
        )
        return f"{row}. {self.location.note}" if self.location.note else row


def fetch(
    names: Iterable[str], *, check: bool = False, report: Callable[[str], None] = print
) -> list[Fetched]:
    """Make data sets available and report one row for each when it is done.

    Args:
        names: of the data sets; names in ``pretrained.NAMES`` are GluonCV's weights.
        check: whether to hash local copies too; a download is always hashed.
        report: called with the text of each row.

    Returns:
        The rows. A data set that is unavailable has a row with its ``problem``.

    Raises:
        DataError: a name is unknown; nothing is fetched then.
    """
    rows = []
    for wanted in [name if name in pretrained.NAMES else source(name) for name in names]:
        if isinstance(wanted, str):
            row = _fetch_weights(wanted)
            report(str(row))
            rows.append(row)
            continue
        try:
            location = locate(wanted.name)
            if check and location.kind == "real" and location.origin != "upstream":
                verify(wanted.name)
            hashed = location.origin == "upstream" or (check and location.kind == "real")
            size = _size(wanted, location)
            row = Fetched(wanted.name, location, size=size, hash_checked=hashed)
        except DataError as error:
            row = Fetched(wanted.name, None, problem=str(error))
        report(str(row))
        rows.append(row)
    return rows


def _fetch_weights(name: str) -> Fetched:
    try:
        path = pretrained.gluoncv_weights(name)
    except DataError as error:
        return Fetched(name, None, problem=str(error))
    location = Location(name, path, "real", "GluonCV", "")
    return Fetched(name, location, size=path.stat().st_size, hash_checked=True)


def _size(wanted: Source, location: Location) -> int:
    if wanted.folder == "weights":
        return sum((location.path / name).stat().st_size for name in wanted.required)
    return sum(path.stat().st_size for path in location.path.rglob("*") if path.is_file())
