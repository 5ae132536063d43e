"""What a mended breakage looks like: one record per patch, kept as data so that it can be listed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Patch:
    """One thing that a newer Python or library broke, and how it is put right.

    ``broken_since`` names the release that broke it (``"NumPy 2.0"``). ``applies()`` tells whether it is
    broken here and now (after ``apply()`` it no longer is), ``apply()`` mends it in this process.
    """

    name: str
    reason: str
    broken_since: str
    applies: Callable[[], bool]
    apply: Callable[[], None]
