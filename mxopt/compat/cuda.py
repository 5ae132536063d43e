"""Find the CUDA 11 libraries that pip installed and load them before MXNet's CUDA build.

NVIDIA's wheels put their libraries under ``site-packages/nvidia/*/lib``, where the dynamic loader
does not search. After a library is loaded by path, the loader finds it by its soname when it loads
MXNet's own library.
"""

from __future__ import annotations

import ctypes
import importlib.machinery
import sys
from dataclasses import dataclass
from pathlib import Path

from mxopt.core.errors import CompatError

# The CUDA libraries that mxnet-cu112's libmxnet.so needs (`readelf -d`), and the wheel that has
# each, in an order in which each library's own dependencies come before it.
WHEELS = {
    "libcudart.so.11.0": "nvidia-cuda-runtime-cu11==11.8.89",
    "libcublas.so.11": "nvidia-cublas-cu11==11.11.3.6",
    "libcufft.so.10": "nvidia-cufft-cu11==10.9.0.58",
    "libcurand.so.10": "nvidia-curand-cu11==10.3.0.86",
    "libcusolver.so.11": "nvidia-cusolver-cu11==11.4.1.48",
    "libnvrtc.so.11.2": "nvidia-cuda-nvrtc-cu11==11.8.89",
    "libnvToolsExt.so.1": "nvidia-nvtx-cu11==11.8.86",
    "libcudnn.so.8": "nvidia-cudnn-cu11==8.9.6.50",
    "libnccl.so.2": "nvidia-nccl-cu11==2.21.5",
}
DRIVER = "libcuda.so.1"


@dataclass(frozen=True)
class CudaLibrary:
    """A library that MXNet's CUDA build needs.

    Attributes:
        soname: the name by which MXNet's own library requires it.
        path: where it was found; ``None`` if it was not.
        remedy: how to install it.
    """

    soname: str
    path: str | None
    remedy: str


def cuda_build() -> str | None:
    """Return the name of the installed CUDA build of MXNet (``"mxnet-cu112"``), else ``None``."""
    return next((name for name in mxnet_builds() if name != "mxnet"), None)


def mxnet_builds() -> tuple[str, ...]:
    """Return the distributions that pip installed as the package ``mxnet``, without importing it.

    More than one is a broken installation, because they have the same files.
    """
    spec = importlib.machinery.PathFinder.find_spec("mxnet")
    if spec is None or spec.origin is None:
        return ()
    beside = Path(spec.origin).parents[1].glob("mxnet*-*.dist-info")
    names = (entry.name.split("-")[0].replace("_", "-") for entry in beside)
    return tuple(sorted(name for name in names if name == "mxnet" or name.startswith("mxnet-cu")))


def cuda_libraries() -> tuple[CudaLibrary, ...]:
    """Return the CUDA libraries that the installed MXNet needs; none for a CPU build.

    To find a library that pip did not install, it is loaded from the system.
    """
    build = cuda_build()
    if build is None:
        return ()
    wheels = tuple(
        CudaLibrary(soname, _in_wheels(soname) or _in_system(soname), f"pip install {requirement}")
        for soname, requirement in WHEELS.items()
    )
    remedy = (
        "install NVIDIA's driver (version 450.80 or newer), or use the CPU build: "
        f"pip uninstall --yes {build} && pip install mxnet==1.9.1"
    )
    return (*wheels, CudaLibrary(DRIVER, _in_system(DRIVER), remedy))


def load_cuda_libraries() -> None:
    """Load the libraries of :func:`cuda_libraries`, with their symbols global.

    Raises:
        CompatError: a library is missing or cannot be loaded, or two builds of MXNet are installed;
            the message has the command that repairs it.
    """
    check_single_build()
    libraries = cuda_libraries()
    missing = [library for library in libraries if library.path is None]
    if missing:
        remedies = "; ".join(f"{library.soname}: {library.remedy}" for library in missing)
        raise CompatError(
            f"{cuda_build()} cannot be imported: libraries that it needs are missing. {remedies}."
        )
    for library in libraries:
        try:
            ctypes.CDLL(library.path, ctypes.RTLD_GLOBAL)
        except OSError as error:
            raise CompatError(
                f"{library.soname} at {library.path} cannot be loaded ({error}): {library.remedy}."
            ) from error


def check_single_build() -> None:
    """Check that at most one build of MXNet is installed.

    Raises:
        CompatError: two builds are installed over each other.
    """
    builds = mxnet_builds()
    if len(builds) > 1:
        raise CompatError(
            f"{' and '.join(builds)} are both installed and overwrite each other's files: run "
            f"'pip uninstall --yes {' '.join(builds)}', then install the one that you want."
        )


def _in_wheels(soname: str) -> str | None:
    # Not by importing: "nvidia" is a package in some wheels and a plain folder in others.
    found = (path for folder in sys.path for path in Path(folder).glob(f"nvidia/*/lib/{soname}"))
    return next((str(path) for path in found), None)


def _in_system(soname: str) -> str | None:
    try:
        ctypes.CDLL(soname)
    except OSError:
        return None
    if sys.platform.startswith("linux"):
        for line in Path("/proc/self/maps").read_text().splitlines():
            path = line.partition("/")[2]
            # The file of a soname has a longer name: libcuda.so.535.54.03 for libcuda.so.1.
            if path.rpartition("/")[2].startswith(soname.partition(".so")[0] + ".so"):
                return "/" + path
    return soname
