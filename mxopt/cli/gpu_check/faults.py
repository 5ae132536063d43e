"""What a part of the check raises: a fault that it found, or that it has nothing to check."""

from __future__ import annotations


class Fault(Exception):
    """Something computes wrongly, or not at all.

    Attributes:
        rows: the table, which shows what.
    """

    def __init__(self, text: str, rows: list[dict] | None = None):
        super().__init__(text)
        self.rows = rows or []


class Skip(Exception):
    """This machine has not what the part would check."""
