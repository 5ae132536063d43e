"""The engine: how MXNet orders operators, and how many threads it gives them.

MXNet enqueues an operator and returns at once; its engine runs the queue. ``NaiveEngine`` runs
each operator inside the call, ``ThreadedEnginePerDevice`` on a pool of threads for each device.
The choice, and every thread count, is read from the environment when MXNet loads and never again,
so a plan's engine is set by starting the process with :func:`environment`.

What asynchrony means for a clock: a clock stopped before the queue is empty has measured the
enqueueing. :func:`timed` waits at both edges.
"""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import time
from pathlib import Path

from mxopt.core.errors import DeviceError
from mxopt.core.plan import Plan

# glibc's malloc maps blocks from 128 KiB (growing to 32 MiB) on anew, and unmaps them when they are
# freed: the kernel clears every page again for the next array. See mallopt(3). One arena, because
# the others, which the engine's threads would have, are made of mapped blocks.
KEEP_MEMORY = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(2**40),
    "MALLOC_TOP_PAD_": str(2**26),
}

# A threshold that is set no longer grows with the largest block that was freed.
RETURN_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**22)}

# What malloc maps it offers to the kernel for transparent huge pages: a 512th of the page faults,
# and of the entries that the processor has to look up. See "Memory Allocation Tunables" of glibc's
# manual, and the kernel's "Transparent Hugepage Support".
HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
_KERNEL = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def environment(plan: Plan) -> dict[str, str]:
    """Return the variables that make a new process run under the plan's engine and threads.

    The names are those of MXNet's "Environment Variables" page (1.9.1), the OpenMP standard and
    Intel's OpenMP runtime. A value of the plan that is ``None`` sets nothing.

    Raises:
        DeviceError: ``openmp="intel"`` is asked for and the ``intel-openmp`` package is missing, or
            ``pages="huge"`` and this system has none to give.
    """
    variables = {"MXNET_ENGINE_TYPE": plan.engine}
    if plan.engine_threads is not None:
        variables["MXNET_CPU_WORKER_NTHREADS"] = str(plan.engine_threads)
    if plan.cpu_threads is not None:
        variables["OMP_NUM_THREADS"] = str(plan.cpu_threads)
    if plan.affinity == "compact":
        variables["OMP_PROC_BIND"] = "close"
        variables["OMP_PLACES"] = "cores"
    if plan.allocator == "keep":
        variables.update(KEEP_MEMORY)
    if plan.allocator == "return":
        variables.update(RETURN_MEMORY)
    if plan.pages == "huge":
        if why := no_huge_pages():
            raise DeviceError(f"pages='huge' does nothing here: {why}; take pages='default'")
        variables.update(HUGE_PAGES)
    if plan.openmp == "intel":
        variables["LD_PRELOAD"] = str(intel_openmp())
        # Idle threads sleep after a millisecond instead of spinning for 200 beside the engine's.
        variables["KMP_BLOCKTIME"] = "1"
        if plan.affinity == "compact":
            variables["KMP_AFFINITY"] = "granularity=fine,compact,1,0"
    return variables


def no_huge_pages() -> str | None:
    """Return why this system gives a process no huge pages, in words; None if it does."""
    library, version = platform.libc_ver()
    if library != "glibc" or tuple(map(int, version.split(".")[:2])) < (2, 35):
        return (
            f"it needs glibc 2.35 or newer, not {library or 'another C library'} {version}".strip()
        )
    if not _KERNEL.exists() or "[never]" in _KERNEL.read_text():
        return f"the kernel gives none ({_KERNEL} says never, or is not there)"
    return None


def intel_openmp() -> Path:
    """Return the path of Intel's OpenMP runtime as the ``intel-openmp`` package installs it.

    Raises:
        DeviceError: the package is not installed.
    """
    for folder in (Path(sys.prefix) / "lib", Path(sys.prefix) / "local" / "lib"):
        if (folder / "libiomp5.so").exists():
            return folder / "libiomp5.so"
    raise DeviceError(
        f"openmp='intel' needs libiomp5.so, which is not under {sys.prefix}; "
        "install it with: pip install intel-openmp"
    )


def check(plan: Plan) -> None:
    """Make sure that this process runs under the plan's engine and threads.

    Raises:
        DeviceError: a variable differs from the plan's; it cannot be changed any more.
    """
    for name, value in environment(plan).items():
        if os.environ.get(name) != value:
            raise DeviceError(
                f"the plan wants {name}={value}, this process has {os.environ.get(name)!r}, and "
                "MXNet reads it only once, when it loads; run the plan in a process of its own "
                "with mxopt.measure.run"
            )


@contextlib.contextmanager
def timed():
    """Time a block, waiting for the engine before the clock starts and before it stops.

    Yields a :class:`Stopwatch` whose ``seconds`` is there when the block has ended, and whose
    ``enqueued`` is the time until the last operator was merely enqueued: what a clock that does
    not wait would have shown.
    """
    from mxnet import nd

    nd.waitall()
    watch = Stopwatch()
    start = time.perf_counter()
    yield watch
    watch.enqueued = time.perf_counter() - start
    nd.waitall()
    watch.seconds = time.perf_counter() - start


class Stopwatch:
    """The two readings of :func:`timed`, in seconds."""

    enqueued: float = float("nan")
    seconds: float = float("nan")
