"""A row of the doctor's table."""

from __future__ import annotations

from dataclasses import dataclass

OK, NOTE, PROBLEM = "ok", "note", "problem"


@dataclass(frozen=True)
class Check:
    """One row: what was looked at, what was found, and what mends it.

    Attributes:
        name: what was looked at.
        status: ``ok``; ``note``, worth knowing, stops nothing; ``problem``, stops the tier.
        found: what was found.
        remedy: the command or the step that mends it; empty where nothing has to be done.
    """

    name: str
    status: str
    found: str
    remedy: str = ""
