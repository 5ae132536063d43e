"""One record per mended breakage, kept as data so that ``mxopt doctor`` can list them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Patch:
    """One thing that a newer Python or library broke, and how it is put right.

    Attributes:
        name: what is mended.
        reason: who needs it, and why it fails without.
        broken_since: the release that broke it, such as ``"NumPy 2.0"``.
        applies: tells whether it is broken with the Python and the libraries at hand.
        apply: mends it in this process.
    """

    name: str
    reason: str
    broken_since: str
    applies: Callable[[], bool]
    apply: Callable[[], None]
