"""Shared libraries that a process can be started with, and which of them is called."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from mxopt.core.errors import DeviceError

# Where distributions install libraries; the environment's own folders come first.
FOLDERS = (
    "/usr/local/lib",
    "/usr/lib/*-linux-gnu/openblas-pthread",
    "/usr/lib/*-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
)


def find(files: Iterable[str], needed_by: str, remedy: str) -> Path:
    """Return the path of the first of some libraries that is installed.

    Args:
        files: names of the library's file, the preferred one first.
        needed_by: what needs it, for the message, such as ``openmp='intel'``.
        remedy: how to install it.

    Raises:
        DeviceError: none of them is in the environment's folder or in one of ``FOLDERS``.
    """
    files, prefix = list(files), Path(sys.prefix)
    for pattern in (str(prefix / "lib"), str(prefix / "local" / "lib"), *FOLDERS):
        for file in files:
            for path in sorted(Path("/").glob(f"{pattern.lstrip('/')}/{file}")):
                return path
    raise DeviceError(
        f"{needed_by} needs {files[0]}, which is neither under {prefix} nor in the system's "
        f"folders of libraries; install it with: {remedy}"
    )


class _Found(ctypes.Structure):
    """``Dl_info`` of glibc's ``dladdr``."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def answering(name: str, caller: ctypes.CDLL | None) -> str | None:
    """Return the path of the library whose function a library calls; None if none has it.

    The process's own libraries come first, preloaded ones before others, and then those that the
    caller brings.

    Args:
        name: name of the function, such as ``cblas_sgemm``.
        caller: the library that calls it; None if it is not known.
    """
    process, found = ctypes.CDLL(None), _Found()
    for place in (process, caller):
        if function := getattr(place, name, None):
            process.dladdr(ctypes.cast(function, ctypes.c_void_p), ctypes.byref(found))
            return os.fsdecode(found.file) if found.file else None
    return None
