"""Pin the threads of OpenMP only, not those of Python and of MXNet's engine.

GNU's libgomp, loaded with MXNet, pins the thread that loads it to the first place of
``OMP_PLACES`` at once. Every thread and process that this one starts later inherits that single
core: Python's own, MXNet's engine, and loader workers. Here their mask is restored when the import
of MXNet ends, before the engine has started threads. libgomp still pins a thread that runs a
parallel region, and those of its team, when the region begins.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from mxopt.compat import hooks

_before: dict[str, set[int]] = {}


def install() -> None:
    """Restore the masks of this process's threads after every first import of MXNet."""
    if hasattr(os, "sched_setaffinity"):
        hooks.before_import("mxnet", _remember)
        hooks.after_import("mxnet", lambda module: restore(_before.pop("mask", set())))


def _remember() -> None:
    _before["mask"] = os.sched_getaffinity(0)


def restore(mask: set[int], threads: Path = Path("/proc/self/task")) -> None:
    """Let every thread of this process run on these cores, if the calling thread may not.

    Args:
        mask: numbers of the logical CPUs; nothing is done if it is empty.
        threads: folder with one entry for each thread.
    """
    if not mask or os.sched_getaffinity(0) == mask:
        return
    for thread in threads.iterdir():
        with contextlib.suppress(OSError):  # it has ended
            os.sched_setaffinity(int(thread.name), mask)
