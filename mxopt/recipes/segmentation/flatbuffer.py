"""Read the tables of a FlatBuffer by their fields' numbers, without running off its end.

Google's ``flatbuffers`` package decodes the format and trusts its files. What is added here is what
becomes of a damaged one: a few kinds of error, and never a long wait or a large allocation.
"""

from __future__ import annotations

import struct

import numpy as np
from flatbuffers import number_types
from flatbuffers.table import Table

# What the flatbuffers package raises where an offset leads out of the file.
LEADS_ASTRAY = (struct.error, IndexError, TypeError, ValueError, OverflowError)

# A damaged length may claim a million tables within a file of megabytes; no network has as many.
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
        start, length = self._vector(field)
        if length > _MOST_ITEMS:
            raise Damaged(f"it claims {length} items in one list, more than any network has")
        return [self.follow(start + 4 * index) for index in range(length)]

    def array(self, field: int, dtype: str) -> np.ndarray:
        """Return the numbers in a field, read-only, shape (items,); none if it is left out."""
        start, length = self._vector(field)
        # A view, not a copy: whatever the length claims, no more memory is taken than the file's.
        return np.frombuffer(self.Bytes, np.dtype(dtype).newbyteorder("<"), length, start)

    def _vector(self, field: int) -> tuple[int, int]:
        """Return where a field's items start and how many there are said to be."""
        offset = self.Offset(4 + 2 * field)
        return (self.Vector(offset), self.VectorLen(offset)) if offset else (0, 0)
