"""Read the tables of a FlatBuffer by their fields' numbers, without running off its end.

Google's ``flatbuffers`` package decodes the format, as small and stable as the format itself; what
is added here is what it leaves out, since it trusts its files: lengths are checked before use.
"""

from __future__ import annotations

import struct

import numpy as np
from flatbuffers import number_types
from flatbuffers.table import Table

# What the flatbuffers package raises where an offset leads out of the file.
LEADS_ASTRAY = (struct.error, IndexError, TypeError, ValueError, OverflowError)

# A damaged length may claim a million items within a file of megabytes; no network has as many.
_MOST_ITEMS = 10_000


class Damaged(Exception):
    """What is wrong with a file, as the end of a sentence."""


class Record(Table):
    """A table of a FlatBuffer: of its bytes and the table's position in them.

    Every method raises :class:`Damaged` or one of ``LEADS_ASTRAY`` where the bytes make no sense.
    """

    def number(self, field: int, kind: str, absent: int = 0) -> int:
        """Return a number of a kind such as ``Int32``; what has its default value is left out."""
        return self.GetSlot(4 + 2 * field, absent, getattr(number_types, f"{kind}Flags"))

    def follow(self, position: int) -> Record:
        """Return the table that the offset at a position in the file leads to."""
        return Record(self.Bytes, self.Indirect(position))

    def record(self, field: int) -> Record | None:
        """Return the table in a field, or None if it is left out."""
        offset = self.Offset(4 + 2 * field)
        return self.follow(self.Pos + offset) if offset else None

    def records(self, field: int) -> list[Record]:
        """Return the tables in a field; none if it is left out."""
        start, length = self._vector(field, 4)
        if length > _MOST_ITEMS:
            raise Damaged(f"it claims {length} items in one list, more than any network has")
        return [self.follow(start + 4 * index) for index in range(length)]

    def array(self, field: int, dtype: str) -> np.ndarray:
        """Return the numbers in a field, read-only, shape (items,); none if it is left out."""
        kind = np.dtype(dtype).newbyteorder("<")
        start, length = self._vector(field, kind.itemsize)
        return np.frombuffer(self.Bytes, kind, length, start)

    def _vector(self, field: int, width: int) -> tuple[int, int]:
        """Return where a field's items start and how many there are, all within the file."""
        offset = self.Offset(4 + 2 * field)
        if not offset:
            return 0, 0
        start, length = self.Vector(offset), self.VectorLen(offset)
        if start + width * length > len(self.Bytes):
            raise Damaged(f"{length} items of {width} bytes at byte {start} are beyond its end")
        return start, length
