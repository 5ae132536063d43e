"""The GPUs of this machine, from NVML, and whether the installed MXNet can use them."""

from __future__ import annotations

import importlib.metadata
import os
import re
from dataclasses import dataclass

# Compute capabilities of the kernels in the MXNet 1.9.1 wheels for CUDA 11. The wheels have no PTX
# that the driver could compile for newer GPUs.
KERNELS = ((5, 0), (6, 0), (7, 0), (8, 0), (8, 6))
# Oldest Linux driver for CUDA 11: docs.nvidia.com/deploy/cuda-compatibility, minor version table.
OLDEST_DRIVER = (450, 80, 2)
CUDA_PACKAGES = tuple(f"mxnet-cu{version}" for version in (112, 117, 116, 115, 110, 102, 101, 100))


_FAMILIES = {
    **{(3,): "Kepler", (5,): "Maxwell", (6,): "Pascal", (7,): "Volta", (7, 5): "Turing"},
    **{(8,): "Ampere", (8, 9): "Ada", (9,): "Hopper"},
    **{(10,): "Blackwell", (11,): "Blackwell", (12,): "Blackwell"},
}


@dataclass(frozen=True)
class Gpu:
    """One NVIDIA GPU, as the driver describes it.

    Attributes:
        index: the driver's number, in PCI order. MXNet counts only visible GPUs and, unless
            ``CUDA_DEVICE_ORDER=PCI_BUS_ID`` is set, the fastest first.
        name: name, such as ``Tesla V100-SXM2-16GB``.
        capability: CUDA compute capability, (major, minor).
        memory: total memory in bytes.
        driver: version of the driver.
        usable: whether the installed MXNet can use the GPU.
        reason: why it cannot; empty if it can.
    """

    index: int
    name: str
    capability: tuple[int, int]
    memory: int
    driver: str
    usable: bool
    reason: str = ""


def runs_on(capability: tuple[int, int], kernels=KERNELS) -> bool:
    """Return whether compiled kernels run on a GPU of this compute capability.

    Kernels run on GPUs of the same major version and of the same or a later minor version (CUDA
    C++ Programming Guide, "Binary Compatibility").

    >>> runs_on((8, 9)), runs_on((9, 0))
    (True, False)

    Args:
        capability: compute capability of the GPU, (major, minor).
        kernels: compute capabilities that the kernels were compiled for.
    """
    return any(major == capability[0] and minor <= capability[1] for major, minor in kernels)


def gpus() -> list[Gpu]:
    """Return the GPUs that the driver lists, and whether the installed MXNet can use each."""
    return survey_gpus()[0]


def survey_gpus(packages: dict[str, str] | None = None, nvml=None) -> tuple[list[Gpu], str]:
    """Return the GPUs, and why there are none (empty if there are some).

    Args:
        packages: installed builds of MXNet; :func:`mxnet_packages` if not given.
        nvml: a replacement for the module ``pynvml``, for tests.
    """
    if nvml is None:
        try:
            import pynvml as nvml
        except ImportError:
            return [], "nvidia-ml-py is not installed, so GPUs cannot be looked for"
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        if isinstance(error, nvml.NVMLError_LibraryNotFound):
            return [], "no NVIDIA driver on this machine"
        return [], f"the NVIDIA driver does not answer ({error})"
    try:
        packages = mxnet_packages() if packages is None else packages
        found = [_read_gpu(nvml, i, packages) for i in range(nvml.nvmlDeviceGetCount())]
    except nvml.NVMLError as error:
        return [], f"the NVIDIA driver does not describe its GPUs ({error})"
    finally:
        nvml.nvmlShutdown()
    return found, "" if found else "the NVIDIA driver lists no GPU"


def _read_gpu(nvml, index: int, packages: dict[str, str]) -> Gpu:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    capability = tuple(nvml.nvmlDeviceGetCudaComputeCapability(handle))
    driver = nvml.nvmlSystemGetDriverVersion()
    reason = why_unusable(capability, driver, packages)
    if not visible(index, nvml.nvmlDeviceGetUUID(handle), os.environ.get("CUDA_VISIBLE_DEVICES")):
        reason = "hidden by CUDA_VISIBLE_DEVICES"
    memory = nvml.nvmlDeviceGetMemoryInfo(handle).total
    name = nvml.nvmlDeviceGetName(handle)
    return Gpu(index, name, capability, memory, driver, not reason, reason)


def why_unusable(capability: tuple[int, int], driver: str, packages: dict[str, str]) -> str:
    """Return why MXNet cannot use such a GPU; empty if it can.

    Args:
        capability: CUDA compute capability, (major, minor).
        driver: version of the driver, such as ``535.129.03``.
        packages: installed builds of MXNet, ``{package: version}``.
    """
    if not runs_on(capability):
        family = _FAMILIES.get(capability, _FAMILIES.get(capability[:1], "an unknown family"))
        newer = "no PTX to compile for newer GPUs" if capability > max(KERNELS) else "none older"
        kernels = ", ".join(f"{major}.{minor}" for major, minor in KERNELS)
        return (
            f"compute capability {capability[0]}.{capability[1]} ({family}): MXNet 1.9.1's wheels "
            f"hold kernels for {kernels} and {newer}, so they cannot run on it"
        )
    if tuple(int(part) for part in re.findall(r"\d+", driver)) < OLDEST_DRIVER:
        return f"its driver {driver} is too old for CUDA 11; install 450.80.02 or newer"
    if len(packages) > 1:
        return f"{' and '.join(packages)} are installed over each other; keep only one of them"
    if "mxnet" in packages or not packages:
        found = (
            "the installed MXNet is the CPU build" if packages else "no MXNet wheel is installed"
        )
        return f"{found}; pip uninstall mxnet, then pip install 'mxopt[cu112]'"
    return ""


def visible(index: int, uuid: str, setting: str | None) -> bool:
    """Return whether ``CUDA_VISIBLE_DEVICES`` makes a GPU visible to CUDA.

    CUDA accepts indices and prefixes of UUIDs, and ignores everything from the first invalid entry
    on (CUDA C++ Programming Guide, "CUDA Environment Variables"). Slices of a GPU (MIG) are assumed
    to be visible.

    Args:
        index: the driver's number of the GPU.
        uuid: its UUID, ``GPU-...``.
        setting: value of the variable; None if it is not set.
    """
    if setting is None or "MIG-" in setting:
        return True
    for word in setting.split(","):
        word = word.strip()
        if not re.fullmatch(r"\d+|GPU-[0-9a-fA-F-]*", word):
            return False
        if word == str(index) or (word.startswith("GPU-") and uuid.startswith(word)):
            return True
    return False


def mxnet_packages() -> dict[str, str]:
    """Return the installed distributions that contain the module ``mxnet``, with their versions."""
    return {
        name: version for name in ("mxnet", *CUDA_PACKAGES) if (version := package_version(name))
    }


def package_version(package: str) -> str | None:
    """Return the version of an installed distribution; None if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
