"""OpenMP: the number of threads in an operator, their cores, and the runtime library.

GNU's libgomp lets a waiting thread spin for some milliseconds before it sleeps, but only as long as
its teams have no more threads than there are cores (``config/linux/wait.h`` and ``team.c`` of GCC).
MXNet copies large arrays to and from NumPy in Python's own thread, with a team of its own, next to
that of the engine's thread. From then on, threads sleep at every barrier.
"""

from __future__ import annotations

from pathlib import Path

from mxopt.core.errors import PlanError
from mxopt.machine import libraries
from mxopt.methods.method import Method
from mxopt.methods.openmp import affinity

# More elements than any array that MXNet allows by default.
NEVER = 2**31 - 1

affinity.install()


class OpenMP(Method):
    """Sets the variables of the OpenMP standard and of Intel's runtime."""

    switches = ("cpu_threads", "affinity", "openmp", "blocktime", "copies")

    @classmethod
    def check(cls, plan):
        """Refuse a block time for GNU's runtime, which has none."""
        if plan.blocktime is not None and plan.openmp != "intel":
            raise PlanError(
                f"blocktime={plan.blocktime} is for Intel's OpenMP; add openmp=intel, or drop it"
            )

    @classmethod
    def environment(cls, plan):
        """Return the variables of OpenMP.

        Raises:
            DeviceError: ``openmp="intel"``, and the package ``intel-openmp`` is not installed.
        """
        variables = {}
        if plan.cpu_threads is not None:
            variables["OMP_NUM_THREADS"] = str(plan.cpu_threads)
        if plan.copies == "serial":
            variables["MXNET_CPU_PARALLEL_SIZE"] = str(NEVER)
        if plan.affinity == "compact" and plan.openmp != "intel":
            variables["OMP_PROC_BIND"] = "close"
            variables["OMP_PLACES"] = "cores"
        if plan.openmp == "intel":
            variables["LD_PRELOAD"] = str(intel_openmp())
            # Idle threads sleep after 1 ms; by default they spin for 200 ms, next to the engine's.
            variables["KMP_BLOCKTIME"] = str(1 if plan.blocktime is None else plan.blocktime)
            if plan.affinity == "compact":
                # Not OMP_PROC_BIND: the wheel's libgomp, which is loaded as well, would read it.
                variables["KMP_AFFINITY"] = "granularity=fine,compact,1,0"
        return variables


def intel_openmp() -> Path:
    """Return the path of Intel's OpenMP runtime from the ``intel-openmp`` package.

    Raises:
        DeviceError: the package is not installed.
    """
    return libraries.find(["libiomp5.so"], "openmp='intel'", "pip install intel-openmp")
