"""Child processes that end with their parent, so that none is left running in the background."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def end_with_parent(parent: int) -> None:
    """Have Linux kill this process as soon as the thread that started it ends.

    This works even if the parent is killed (``man 2 prctl``, ``PR_SET_PDEATHSIG``).

    Args:
        parent: process id of the parent. If the parent has already ended, this process exits.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("the process that started this one is gone")
