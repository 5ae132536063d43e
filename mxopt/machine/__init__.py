"""What this machine has, and what the installed MXNet can use of it.

Everything here is a fact that can be read without importing MXNet, because engine and thread
settings are fixed the moment MXNet loads. What only MXNet itself can tell (its features, the GPUs
it counts) is asked of a short child process, :func:`mxnet_build`.
"""

from mxopt.machine.build import Build, mxnet_build, openmp_runtimes
from mxopt.machine.facts import environment
from mxopt.machine.nvidia import KERNELS, Gpu, gpus, mxnet_packages, runs_on, survey_gpus
from mxopt.machine.processor import Cpu, SharedMemory, cpu, memory_available, shared_memory

__all__ = [
    "KERNELS",
    "Build",
    "Cpu",
    "Gpu",
    "SharedMemory",
    "cpu",
    "environment",
    "gpus",
    "memory_available",
    "mxnet_build",
    "mxnet_packages",
    "openmp_runtimes",
    "runs_on",
    "shared_memory",
    "survey_gpus",
]
