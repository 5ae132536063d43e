"""Operators of our own for MXNet on a CPU, compiled on the machine that they run on.

``load()`` registers them with MXNet (``mx.library.load``); they are then functions of ``mx.nd`` and
``mx.sym`` whose names begin with ``mxopt_``. Without a compiler everything else works as before.
"""

from __future__ import annotations

import ctypes
import os
import threading

import numpy as np

from mxopt.core.errors import DeviceError

_library: ctypes.CDLL | None = None
_failure: DeviceError | None = None  # kept, for compiling takes half a minute
_one_at_a_time = threading.Lock()

# From how many terms on MXNet adds them to a gradient one by one. Operators of a library cannot:
# they write over it. MXNet reads this at the first backward pass, so ``import mxopt`` sets it.
SUMS, NEVER = "MXNET_EXEC_INPLACE_GRAD_SUM_CAP", 2**31 - 1
_MXNETS_OWN = 8
# What operators that write into a model's arrays take: dense float32 on a CPU.
KIND = ("float32", "default", "cpu")


def load() -> None:
    """Compile the operators if necessary, and register them in this process.

    Raises:
        DeviceError: they cannot be compiled or loaded here, or their gradients would be wrong; the
            message says why.
    """
    global _library, _failure
    with _one_at_a_time:
        if _library:
            return
        if _failure:
            raise _failure
        try:
            _library = _loaded()
        except DeviceError as error:
            _failure = error
            raise


def _loaded() -> ctypes.CDLL:
    import mxnet as mx

    from mxopt.kernels import build

    path = build.build()
    try:
        mx.library.load(str(path), verbose=False)
    except mx.MXNetError as error:
        raise DeviceError(f"MXNet cannot load {path}; delete it and try again: {error}") from None
    _check_sums(mx)
    return ctypes.CDLL(str(path))


def _check_sums(mx) -> None:
    """Check that MXNet does not ask operators to add to a gradient, by one with as many terms."""
    x, weight = mx.sym.var("x"), mx.sym.var("weight")
    terms = [mx.sym.mxopt_pointwise(x, mx.sym.identity(weight)) for _ in range(_MXNETS_OWN)]
    graph = mx.nd.CachedOp(mx.sym.add_n(*terms), (("static_alloc", True),))
    one = mx.nd.ones((1, 1, 1, 1))
    one.attach_grad()
    with mx.autograd.record():
        total = graph(one, mx.nd.ones_like(one))
    total.backward()
    given = os.environ.get(SUMS, "")
    if one.grad.asscalar() != _MXNETS_OWN or not given.isdigit() or int(given) < NEVER:
        raise DeviceError(
            f"with {SUMS}={given or _MXNETS_OWN} MXNet would let mxopt's kernels write over "
            "gradients that have as many terms. Import mxopt before anything is trained, and leave "
            f"the variable out, or set it to {NEVER} before Python starts"
        )


def kind(array) -> tuple[str, str, str]:
    """Return dtype, storage and kind of device of an ``mxnet.nd.NDArray``; ``KIND`` is taken."""
    return np.dtype(array.dtype).name, array.stype, array.context.device_type


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
        ValueError: the arrays have other shapes or dtypes, or the constants are not three.
    """
    load()
    samples, height, width, channels = pixels.shape
    given = (pixels.dtype, planes.dtype, channels, planes.shape)
    whole = planes.flags.c_contiguous and planes.flags.writeable
    if not whole or given != (np.uint8, np.float32, 3, (samples, 3, height, width)):
        raise ValueError(
            f"pixels {pixels.shape} {pixels.dtype} cannot be written to planes {planes.shape} "
            f"{planes.dtype}{'' if whole else ' in pieces or read-only'}: these must be (samples, "
            "height, width, 3) uint8 and (samples, 3, height, width) float32, writable and in one "
            "piece"
        )
    if len(mean) != 3 or len(deviation) != 3:
        raise ValueError(f"mean {mean} and deviation {deviation} must have 3 numbers each")
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
