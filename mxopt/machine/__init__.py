"""The hardware of this machine, and what of it the installed MXNet can use.

Everything here works without importing MXNet, because engine and thread settings are fixed when
MXNet loads. What only MXNet can report (its features, the number of GPUs it counts) is read in a
short child process, :func:`mxnet_build`.
"""

from mxopt.machine.build import Build, mxnet_build, openmp_runtimes
from mxopt.machine.facts import environment
from mxopt.machine.nvidia import (
    KERNELS,
    Gpu,
    gpus,
    mxnet_packages,
    own_kernels,
    runs_on,
    show_only,
    survey_gpus,
)
from mxopt.machine.processor import (
    Cpu,
    SharedMemory,
    cpu,
    memory_available,
    memory_used,
    peak_memory,
    shared_memory,
)
from mxopt.machine.utilization import Utilization
from mxopt.machine.variables import warnings

__all__ = [
    "KERNELS",
    "Build",
    "Cpu",
    "Gpu",
    "SharedMemory",
    "Utilization",
    "cpu",
    "environment",
    "gpus",
    "memory_available",
    "memory_used",
    "mxnet_build",
    "mxnet_packages",
    "openmp_runtimes",
    "own_kernels",
    "peak_memory",
    "runs_on",
    "shared_memory",
    "show_only",
    "survey_gpus",
    "warnings",
]
