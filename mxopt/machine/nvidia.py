"""The GPUs of this machine, from NVML, and whether the installed MXNet can use them."""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.metadata
import os
import re
from dataclasses import dataclass
from pathlib import Path

from mxopt.machine import fat_binary

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
        uuid: the driver's name for it, ``GPU-...``, the same whatever the order and what is hidden.
    """

    index: int
    name: str
    capability: tuple[int, int]
    memory: int
    driver: str
    usable: bool
    reason: str = ""
    uuid: str = ""


def runs_on(capability: tuple[int, int], kernels=KERNELS, ptx=()) -> bool:
    """Return whether compiled kernels run on a GPU of this compute capability.

    Kernels run on GPUs of the same major version and of the same or a later minor version; PTX runs
    on every later GPU, because the driver compiles it (CUDA C++ Programming Guide, "Binary
    Compatibility" and "PTX Compatibility").

    >>> runs_on((8, 9)), runs_on((9, 0)), runs_on((9, 0), ptx=[(8, 0)])
    (True, False, True)

    Args:
        capability: compute capability of the GPU, (major, minor).
        kernels: compute capabilities that the kernels were compiled for.
        ptx: compute capabilities that the build has PTX for.
    """
    same = any(major == capability[0] and minor <= capability[1] for major, minor in kernels)
    return same or any(tuple(older) <= tuple(capability) for older in ptx)


@functools.cache
def own_kernels() -> dict[str, tuple]:
    """Return the kernels in the library of an MXNet that was not installed from a CUDA wheel.

    Such a build has no package name that says so, for instance in NVIDIA's container for Hopper.

    Returns:
        As :func:`mxopt.machine.fat_binary.kernels`; empty if MXNet or its library is not found.
    """
    spec = importlib.machinery.PathFinder.find_spec("mxnet")
    if spec is None or spec.origin is None:
        return {}
    package = Path(spec.origin).parent
    # As mxnet/libinfo.py looks for it.
    named = os.environ.get("MXNET_LIBRARY_PATH")
    folders = [*filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":")), package,
               package / "../../lib", package / "../../build"]  # fmt: skip
    files = [Path(named)] if named else [Path(folder, "libmxnet.so") for folder in folders]
    found = next((file for file in files if file.is_file()), None)
    return fat_binary.kernels(found) if found else {}


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
    driver = nvml.nvmlSystemGetDriverVersion()
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        capability = tuple(nvml.nvmlDeviceGetCudaComputeCapability(handle))
        memory = nvml.nvmlDeviceGetMemoryInfo(handle).total
        name, uuid = nvml.nvmlDeviceGetName(handle), nvml.nvmlDeviceGetUUID(handle)
    except nvml.NVMLError as error:
        # One that fell off the bus; the others can be used if it is hidden from CUDA.
        return Gpu(index, "unknown", (0, 0), 0, driver, False, f"the driver lost it ({error})")
    wheel = any(name.startswith("mxnet-cu") for name in packages)
    reason = why_unusable(capability, driver, packages, {} if wheel else own_kernels())
    if not visible(index, uuid, os.environ.get("CUDA_VISIBLE_DEVICES")):
        reason = "hidden by CUDA_VISIBLE_DEVICES"
    return Gpu(index, name, capability, memory, driver, not reason, reason, uuid)


def show_only(found: list[Gpu]) -> dict[str, str]:
    """Return variables that make CUDA number exactly these GPUs, from 0 and in this order.

    Without them CUDA counts GPUs that MXNet cannot use, and the fastest first.

    Args:
        found: GPUs, such as the usable ones of :func:`gpus`.
    """
    names = ",".join(gpu.uuid or str(gpu.index) for gpu in found)
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": names}


def why_unusable(
    capability: tuple[int, int], driver: str, packages: dict[str, str], own: dict | None = None
) -> str:
    """Return why MXNet cannot use such a GPU; empty if it can.

    Args:
        capability: CUDA compute capability, (major, minor).
        driver: version of the driver, such as ``535.129.03``.
        packages: installed builds of MXNet, ``{package: version}``.
        own: kernels of a build that is not from a CUDA wheel, as :func:`own_kernels` returns them;
            nothing else is known of such a build, so nothing else is checked.
    """
    built, ptx = (own or {}).get("machine code", ()), (own or {}).get("ptx", ())
    if not runs_on(capability, built or KERNELS, ptx):
        family = _FAMILIES.get(capability, _FAMILIES.get(capability[:1], "an unknown family"))
        newest = max(built or KERNELS)
        newer = "no PTX to compile for newer GPUs" if capability > newest else "none older"
        kernels = ", ".join(f"{major}.{minor}" for major, minor in built or KERNELS)
        whose = "this build of MXNet holds" if built else "MXNet 1.9.1's wheels hold"
        return (
            f"compute capability {capability[0]}.{capability[1]} ({family}): {whose} kernels for "
            f"{kernels} and {newer}, so they cannot run on it"
        )
    if built or ptx:
        return ""
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
