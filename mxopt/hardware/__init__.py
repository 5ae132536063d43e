"""What this machine has, and what the installed MXNet can use of it.

Everything here is a fact that can be read without importing MXNet, because engine and thread
settings are fixed the moment MXNet loads. What only MXNet itself can tell (its features, the GPUs
it counts) is asked of a short child process, :func:`mxnet_build`.
"""

from mxopt.hardware.build import Build, mxnet_build, openmp_runtimes
from mxopt.hardware.facts import environment
from mxopt.hardware.nvidia import KERNELS, Gpu, gpus, mxnet_packages, runs_on, survey_gpus
from mxopt.hardware.processor import Cpu, SharedMemory, cpu, memory_available, shared_memory
from mxopt.hardware.tiers import TIERS, Tier, check_tier, find_real_data, pick_tier

__all__ = [
    "KERNELS",
    "TIERS",
    "Build",
    "Cpu",
    "Gpu",
    "SharedMemory",
    "Tier",
    "check_tier",
    "cpu",
    "environment",
    "find_real_data",
    "gpus",
    "memory_available",
    "mxnet_build",
    "mxnet_packages",
    "openmp_runtimes",
    "pick_tier",
    "runs_on",
    "shared_memory",
    "survey_gpus",
]
