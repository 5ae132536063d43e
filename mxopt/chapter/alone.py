"""Run a function of a notebook in a process of its own, as a script would be run.

Engine type, threads and mixed precision are fixed for a process when MXNet is imported or AMP is
started. A cell that shows them in MXNet's own lines needs a fresh process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

from mxopt.core.errors import MxoptError
from mxopt.report.side_by_side import lines_of


class AloneError(MxoptError):
    """The process ended with an error; the message has its last words."""


def alone(function: Callable, **environment: str) -> None:
    """Run the body of a function in a new Python process, and print what it prints.

    Args:
        function: takes no arguments, and imports all that it uses, except ``mxopt``.
        **environment: further environment variables of the process.

    Raises:
        AloneError: the process failed.
    """
    source = "\n".join(["import mxopt", *lines_of(function)])
    paths = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-c", source],
        env={**os.environ, "PYTHONPATH": paths, **environment},
        capture_output=True,
        text=True,
    )
    print(done.stdout, end="")
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        raise AloneError(f"{function.__name__} failed in its own process: {lines[-1]}")
