"""Products of 8-bit integers by the tile registers of Intel's AMX.

oneDNN 2.4, which MXNet 1.9 carries, has kernels for them. It uses them only if it is told to, and
does not ask Linux for the tile registers, without which the first such product ends the process.
They are asked for here, before MXNet is loaded.
"""

from __future__ import annotations

import os

from mxopt.compat import hooks
from mxopt.core.errors import DeviceError
from mxopt.kernels import build

VARIABLES = {"DNNL_MAX_CPU_ISA": "AVX512_CORE_AMX"}  # oneDNN's documentation, "CPU dispatcher"


def install() -> None:
    """Ask for the tile registers before every first import of MXNet, where oneDNN will use them."""
    hooks.before_import("mxnet", _allow)


def environment() -> dict[str, str]:
    """Return the variables that let oneDNN use AMX.

    Raises:
        DeviceError: the processor has no AMX for integers, or Linux does not let processes use it.
    """
    if "amx_int8" not in build.instructions():
        raise DeviceError("onednn='amx' needs a processor with AMX, which this one lacks; drop it")
    if not build.tiles_allowed():
        raise DeviceError(
            "onednn='amx' needs the processor's tile registers, which Linux does not let this "
            "process use (it can from version 5.16 on); drop it"
        )
    return VARIABLES


def _allow() -> None:
    if VARIABLES.items() <= os.environ.items():
        build.tiles_allowed()
