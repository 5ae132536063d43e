"""Gives the memory of arrays back to the system, in the order of MXNet's engine.

The pages of an array's memory are returned by ``madvise(MADV_DONTNEED)``; the array keeps its
addresses. When it is written again, Linux clears a new page for each: see madvise(2).
"""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
from mxnet import nd
from mxnet.base import _LIB, check_call

_LIBC = ctypes.CDLL(None)
# What the engine calls: a function of its own context and of the parameter that was enqueued.
_Function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
# Enqueued arrays by handle; they must exist until the engine calls.
_enqueued: dict[int, list[nd.NDArray]] = {}


class _Context(ctypes.Structure):
    """MXNet's ``Context`` as it is in memory."""

    _fields_ = (("device_type", ctypes.c_int), ("device_id", ctypes.c_int32))


def give_back(array: nd.NDArray) -> None:
    """Enqueue that an array's memory is given back to the system.

    Operators that were enqueued before read the array's elements. Afterwards they are 0, but for up
    to a page at both ends, until they are written again. Nothing is given back of an array that is
    sparse, in a layout of oneDNN, or smaller than a page.

    Args:
        array: in memory of the process, on a CPU context.
    """
    if array.stype != "default":
        return
    handle = array.handle.value
    _enqueued.setdefault(handle, []).append(array)
    context = _Context(array.context.device_typeid, array.context.device_id)
    written = (ctypes.c_void_p * 1)(array.handle)
    check_call(
        _LIB.MXEnginePushSyncND(_release, array.handle, None, ctypes.byref(context), None, 0,
                                written, 1, None, 0, b"give_back")
    )  # fmt: skip


@_Function
def _release(_, handle: int) -> None:
    array = _enqueued[handle].pop()
    if not _enqueued[handle]:
        del _enqueued[handle]
    exchanged = ctypes.c_void_p()
    # MXNet refuses this of layouts of oneDNN; it does not wait for the engine.
    if _LIB.MXNDArrayToDLPack(array.handle, ctypes.byref(exchanged)):
        return
    address = ctypes.cast(exchanged, ctypes.POINTER(ctypes.c_void_p))[0]  # the first field: data
    _LIB.MXNDArrayCallDLPackDeleter(exchanged)
    if address is None:
        return
    end = address + array.size * np.dtype(array.dtype).itemsize
    first, last = -(-address // mmap.PAGESIZE), end // mmap.PAGESIZE
    if last > first:
        begin, size = first * mmap.PAGESIZE, (last - first) * mmap.PAGESIZE
        _LIBC.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(size), mmap.MADV_DONTNEED)
