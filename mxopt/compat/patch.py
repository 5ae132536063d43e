"""The record of one patch; patches are data so that ``mxopt doctor`` can list them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Patch:
    """A patch for one incompatibility with a newer Python or library.

    Attributes:
        name: what is patched.
        reason: what needs the patch, and why it fails without.
        broken_since: the release that made it necessary, such as ``"NumPy 2.0"``.
        applies: returns whether the installed Python and libraries need it.
        apply: applies it in this process.
    """

    name: str
    reason: str
    broken_since: str
    applies: Callable[[], bool]
    apply: Callable[[], None]
