"""A row of the doctor's table."""

from __future__ import annotations

from dataclasses import dataclass

OK, NOTE, PROBLEM = "ok", "note", "problem"


@dataclass(frozen=True)
class Check:
    """One row: what was checked, what was found, and how to fix it.

    Attributes:
        name: what was checked.
        status: ``ok``; ``note``: worth knowing, the tier can run; ``problem``: it cannot.
        found: what was found.
        remedy: the command or the step that fixes it; empty if nothing has to be done.
    """

    name: str
    status: str
    found: str
    remedy: str = ""
