"""What every peer's process does first: end with its parent, and read its job.

PyTorch's launcher knows nothing of its parent. It is started through this file, which asks Linux to
kill the process that it becomes: ``python child.py PARENT COMMAND ...``.
"""

import ctypes
import json
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def end_with_parent(parent: int | None = None) -> None:
    """Have Linux kill this process as soon as the thread that started it ends.

    As ``mxopt.core.child``, which the peers' environment cannot import.

    Args:
        parent: process id of the parent, if known. If it has already ended, this process exits.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent and os.getppid() != parent:
        sys.exit("the process that started this one is gone")


def read_job() -> dict:
    """Return the job on standard input, in a process that ends with its parent."""
    end_with_parent()
    return json.load(sys.stdin)


if __name__ == "__main__":
    end_with_parent(int(sys.argv[1]))
    os.execv(sys.argv[2], sys.argv[2:])
