"""Finds the CUDA 11 libraries that pip installed and loads them before MXNet's CUDA build.

NVIDIA's wheels put their libraries under ``site-packages/nvidia/*/lib``, where the dynamic loader
does not look. Once loaded by path, each answers to its soname, and MXNet's own library finds it.
"""

from __future__ import annotations

import ctypes
import importlib.machinery
import sys
from dataclasses import dataclass
from pathlib import Path

from mxopt.core.errors import CompatError

# What mxnet-cu112's libmxnet.so needs of CUDA (`readelf -d`) and the wheel that has it, in an order
# in which each finds what it needs itself.
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
        soname: the name by which MXNet's own library asks for it.
        path: where it was found, ``None`` if nowhere.
        remedy: what puts it there.
    """

    soname: str
    path: str | None
    remedy: str


def cuda_build() -> str | None:
    """Return the name of the installed CUDA build of MXNet (``"mxnet-cu112"``), else ``None``."""
    return next((name for name in mxnet_builds() if name != "mxnet"), None)


def mxnet_builds() -> tuple[str, ...]:
    """Return the distributions that pip installed as the package ``mxnet``, which is not imported.

    More than one is a broken installation: they write the same files.
    """
    spec = importlib.machinery.PathFinder.find_spec("mxnet")
    if spec is None or spec.origin is None:
        return ()
    beside = Path(spec.origin).parents[1].glob("mxnet*-*.dist-info")
    names = (entry.name.split("-")[0].replace("_", "-") for entry in beside)
    return tuple(sorted(name for name in names if name == "mxnet" or name.startswith("mxnet-cu")))


def cuda_libraries() -> tuple[CudaLibrary, ...]:
    """Return each library that the installed MXNet needs of CUDA; none for a CPU build.

    Libraries that are not among pip's are asked of the system, which loads them.
    """
    build = cuda_build()
    if build is None:
        return ()
    wheels = tuple(
        CudaLibrary(soname, _in_wheels(soname) or _in_system(soname), f"pip install {requirement}")
        for soname, requirement in WHEELS.items()
    )
    remedy = (
        "install NVIDIA's driver (version 450.80 or newer), or take the CPU build: "
        f"pip uninstall --yes {build} && pip install mxnet==1.9.1"
    )
    return (*wheels, CudaLibrary(DRIVER, _in_system(DRIVER), remedy))


def load_cuda_libraries() -> None:
    """Load what :func:`cuda_libraries` finds, for all libraries loaded later to see.

    Raises:
        CompatError: some are missing, or one cannot be loaded, or the CPU build was installed over
            the CUDA build; the message has the command that mends it.
    """
    check_single_build()
    libraries = cuda_libraries()
    missing = [library for library in libraries if library.path is None]
    if missing:
        remedies = "; ".join(f"{library.soname}: {library.remedy}" for library in missing)
        raise CompatError(
            f"{cuda_build()} cannot be imported, it needs libraries not found here. {remedies}."
        )
    for library in libraries:
        try:
            ctypes.CDLL(library.path, ctypes.RTLD_GLOBAL)
        except OSError as error:
            raise CompatError(
                f"{library.soname} at {library.path} cannot be loaded ({error}): {library.remedy}."
            ) from error


def check_single_build() -> None:
    """Raise :class:`CompatError` where two builds of MXNet were installed over each other."""
    builds = mxnet_builds()
    if len(builds) > 1:
        raise CompatError(
            f"{' and '.join(builds)} are both installed, over each other's files: run "
            f"'pip uninstall --yes {' '.join(builds)}', then install the one that you want."
        )


def _in_wheels(soname: str) -> str | None:
    # Not by importing: some wheels make "nvidia" a package and some a mere folder, on any path.
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
            # A file behind a soname carries a longer name: libcuda.so.535.54.03 for libcuda.so.1.
            if path.rpartition("/")[2].startswith(soname.partition(".so")[0] + ".so"):
                return "/" + path
    return soname
