"""A child process that goes when its parent goes, so that nothing computes unseen."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def end_with_parent(parent: int) -> None:
    """Have this process killed as soon as the thread that made it ends, whatever ends that.

    Linux does so (``man 2 prctl``, ``PR_SET_PDEATHSIG``), even if the parent is killed.

    Args:
        parent: the process id of the parent; if it is gone already, this process ends here.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("the process that started this one is gone")
