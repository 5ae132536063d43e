"""BLAS: the library of matrix products behind ``dot``, ``batch_dot`` and linear algebra."""

from __future__ import annotations

import sys
from pathlib import Path

from mxopt.core.errors import DeviceError
from mxopt.methods.method import Method

# Where each library is looked for, below the environment's folder or the system's.
LIBRARIES = {
    "mkl": (("libmkl_rt.so.3", "libmkl_rt.so.2"), "pip install mkl"),
    "openblas": (("libopenblas.so.0",), "Debian, Ubuntu: apt-get install libopenblas0-pthread"),
}
FOLDERS = (
    "/usr/local/lib",
    "/usr/lib/*-linux-gnu/openblas-pthread",
    "/usr/lib/*-linux-gnu",
    "/usr/lib64",
)
# MKL's functions are called with GNU's OpenMP, that of MXNet, and with integers of 32 bits.
MKL = {"MKL_THREADING_LAYER": "GNU", "MKL_INTERFACE_LAYER": "LP64"}


class BLAS(Method):
    """Preloads another BLAS in front of MXNet's own, an OpenBLAS of 2021."""

    switches = ("blas",)

    @classmethod
    def environment(cls, plan):
        """Return the variables that make MXNet call another BLAS.

        Raises:
            DeviceError: the library is not installed.
        """
        if plan.blas == "default":
            return {}
        variables = {"LD_PRELOAD": str(library(plan.blas))}
        if plan.blas == "mkl":
            variables.update(MKL)
            if plan.openmp == "intel":
                variables["MKL_THREADING_LAYER"] = "INTEL"
        return variables


def library(name: str) -> Path:
    """Return the path of a BLAS.

    Args:
        name: a key of ``LIBRARIES``.

    Raises:
        DeviceError: it is in none of the usual folders.
    """
    files, remedy = LIBRARIES[name]
    for pattern in (str(Path(sys.prefix) / "lib"), *FOLDERS):
        for file in files:
            for path in sorted(Path("/").glob(f"{pattern.lstrip('/')}/{file}")):
                return path
    raise DeviceError(
        f"blas={name!r} needs {files[0]}, which is in none of the folders of libraries; {remedy}"
    )
