"""Operators of our own for MXNet on a CPU, compiled on the machine that they run on.

``load()`` registers them with MXNet (``mx.library.load``); they are then functions of ``mx.nd`` and
``mx.sym`` whose names begin with ``mxopt_``. Without a compiler everything else works as before.
"""

from __future__ import annotations

import ctypes

import numpy as np

from mxopt.core.errors import DeviceError

_library: ctypes.CDLL | None = None
_failure: DeviceError | None = None  # kept, for compiling takes half a minute


def load() -> None:
    """Compile the operators if necessary, and register them in this process.

    Raises:
        DeviceError: they cannot be compiled or loaded here; the message says why.
    """
    global _library, _failure
    if _library:
        return
    import mxnet as mx

    from mxopt.kernels import build

    try:
        if _failure:
            raise _failure
        path = build.build()
    except DeviceError as error:
        _failure = error
        raise
    try:
        mx.library.load(str(path), verbose=False)
    except mx.MXNetError as error:
        raise DeviceError(f"MXNet cannot load {path}; delete it and try again: {error}") from None
    _library = ctypes.CDLL(str(path))


def multiplies_bfloat16() -> bool:
    """Return whether ``mxopt_dense`` takes ``parts=1``, for which it needs AVX512-BF16."""
    return available() and bool(_library.mxopt_multiplies_bfloat16())


def multiplies_float32() -> bool:
    """Return whether ``mxopt_dense`` takes the place of ``FullyConnected`` for float32.

    It does where it multiplies by tiles of Intel's AMX, and on a processor without AVX-512.
    """
    return available() and bool(_library.mxopt_multiplies_float32())


def multiplies_by_tiles() -> bool:
    """Return whether products are computed by tiles of Intel's AMX."""
    return available() and bool(_library.mxopt_multiplies_by_tiles())


def normalize(pixels: np.ndarray, mean: tuple, deviation: tuple, planes: np.ndarray) -> None:
    """Write ``(pixels / 255 - mean) / deviation``, bit for bit as MXNet's operators.

    One thread computes it, so that processes forked after :func:`load` can call it.

    Args:
        pixels: (samples, height, width, 3) uint8.
        mean: mean of each channel.
        deviation: standard deviation of each channel.
        planes: (samples, 3, height, width) float32, contiguous; the result is written to it.

    Raises:
        DeviceError: the operators cannot be compiled or loaded here.
        ValueError: the arrays have other shapes or dtypes.
    """
    load()
    samples, height, width, channels = pixels.shape
    given = (pixels.dtype, planes.dtype, channels, planes.shape)
    whole = planes.flags.c_contiguous
    if not whole or given != (np.uint8, np.float32, 3, (samples, 3, height, width)):
        raise ValueError(
            f"pixels {pixels.shape} {pixels.dtype} cannot be written to planes {planes.shape} "
            f"{planes.dtype}{'' if whole else ' in pieces'}: these must be (samples, height, "
            "width, 3) uint8 and (samples, 3, height, width) float32 in one piece"
        )
    constants = [(ctypes.c_float * 3)(*values) for values in (mean, deviation)]
    for image, plane in zip(np.ascontiguousarray(pixels), planes):
        _library.mxopt_normalize(
            image.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(height * width), *constants,
            plane.ctypes.data_as(ctypes.c_void_p),
        )  # fmt: skip


def available() -> bool:
    """Return whether the operators can be used here; compile and register them if they can."""
    try:
        load()
    except DeviceError:
        return False
    return True
