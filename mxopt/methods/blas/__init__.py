"""BLAS: the library of matrix products behind ``dot``, ``batch_dot`` and linear algebra."""

from __future__ import annotations

from pathlib import Path

from mxopt.machine import libraries
from mxopt.methods.method import Method

# The files of each library, and how it is installed.
LIBRARIES = {
    "mkl": (("libmkl_rt.so.3", "libmkl_rt.so.2"), "pip install mkl"),
    "openblas": (("libopenblas.so.0",), "apt-get install libopenblas0-pthread"),
}
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
        DeviceError: it is not installed.
    """
    files, remedy = LIBRARIES[name]
    return libraries.find(files, f"blas={name!r}", remedy)
