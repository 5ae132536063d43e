"""Operators of our own for MXNet on a CPU, compiled on the machine that they run on.

``load()`` registers them with MXNet (``mx.library.load``); they are then functions of ``mx.nd`` and
``mx.sym`` whose names begin with ``mxopt_``. Without a compiler everything else works as before.
"""

from __future__ import annotations

import ctypes

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

    It does where it multiplies by tiles of Intel's AMX, or, on a processor without AVX-512, by the
    BLAS that answers MXNet.
    """
    return available() and bool(_library.mxopt_multiplies_float32())


def multiplies_by_tiles() -> bool:
    """Return whether products are computed by tiles of Intel's AMX."""
    return available() and bool(_library.mxopt_multiplies_by_tiles())


def available() -> bool:
    """Return whether the operators can be used here; compile and register them if they can."""
    try:
        load()
    except DeviceError:
        return False
    return True
