"""Access the memory of arrays on the host as NumPy arrays, without MXNet's operators.

An MXNet operator takes tens of microseconds before it computes, and Gluon copies data several times
on its way from NumPy to an ``NDArray`` and into a batch. A loader does both for every sample. Here
NumPy and OpenCV read and write the memory of an ``NDArray`` directly.
"""

from __future__ import annotations

import ctypes
import math

import mxnet as mx
import numpy as np
from mxnet import nd
from mxnet.base import _LIB, check_call

from mxopt.core.errors import DataError

# The context of arrays that are passed between processes without a copy.
SHARED = mx.Context("cpu_shared", 0)


def on_host(array) -> bool:
    """Return whether ``array`` is an ``NDArray`` in the host's memory."""
    return isinstance(array, nd.NDArray) and array.context.device_type != "gpu"


def beside(array: nd.NDArray) -> mx.Context:
    """Return the context for what is computed from an array: its own, or for ``SHARED`` the CPU."""
    return mx.cpu() if array.context == SHARED else array.context


def view(array: nd.NDArray) -> np.ndarray:
    """Return an array's memory as a NumPy array of the same shape and dtype, without a copy.

    Waits until the array is computed. Write only to an array just made by :func:`empty`: MXNet's
    engine does not order its operators after such writes.

    Args:
        array: on the host.

    Raises:
        MXNetError: the array is not on the host.
    """
    array.wait_to_read()
    kind = np.dtype(array.dtype)
    address = ctypes.c_void_p()
    check_call(_LIB.MXNDArrayGetData(array.handle, ctypes.byref(address)))
    memory = (ctypes.c_char * (array.size * kind.itemsize)).from_address(address.value)
    memory.owner = array  # keeps the array as long as the view exists
    return np.frombuffer(memory, kind).reshape(array.shape)


def memory(array: nd.NDArray | np.ndarray) -> np.ndarray:
    """Return a NumPy array itself, and the memory of an ``NDArray``; see :func:`view`.

    Args:
        array: on the host.
    """
    return array if isinstance(array, np.ndarray) else view(array)


def empty(shape: tuple, dtype, context: mx.Context | None = None) -> tuple[nd.NDArray, np.ndarray]:
    """Return a new array on the host, not initialised, and its view.

    Args:
        shape: of the array.
        dtype: of the array.
        context: where on the host, such as ``SHARED``; ``mx.cpu()`` if not given.
    """
    array = nd.empty(shape, ctx=context or mx.cpu(), dtype=dtype)
    return array, view(array)


def copied(values: np.ndarray, context: mx.Context | None = None) -> nd.NDArray:
    """Return a copy on the host with the same shape and dtype.

    Args:
        values: the array to copy.
        context: where on the host, such as ``SHARED``; ``mx.cpu()`` if not given.
    """
    array, memory = empty(values.shape, values.dtype, context)
    memory[...] = values
    return array


def batchify(samples: list, context: mx.Context | None = None, into=None):
    """Make a batch of samples, as Gluon's ``default_batchify_fn`` does.

    Args:
        samples: arrays of equal shape or numbers, or tuples of them.
        context: where on the host, such as ``SHARED``; ``mx.cpu()`` if not given.
        into: an earlier batch, whose arrays are overwritten if shape and dtype are the same.

    Returns:
        An array (samples, ...); for tuples a list with one for each of their parts.

    Raises:
        DataError: the samples differ in shape.
    """
    if isinstance(samples[0], (tuple, list)):
        columns = list(zip(*samples))
        earlier = into or [None] * len(columns)
        return [batchify(list(parts), context, old) for parts, old in zip(columns, earlier)]
    parts = [view(part) if on_host(part) else _numbers(part) for part in samples]
    shapes = {part.shape for part in parts}
    if len(shapes) > 1:
        raise DataError(
            f"samples of a batch have the shapes {sorted(shapes)}; crop or pad them to one shape, "
            "or take batch_size=1"
        )
    shape, kind = (len(parts), *parts[0].shape), np.result_type(*parts)
    if into is None or shape_and_dtype(into) != (shape, kind):
        into, _ = empty(shape, kind, context)
    np.stack(parts, out=view(into))
    return into


def sample_bytes(sample) -> int:
    """Return the size in bytes of a sample: an array or a tuple of arrays."""
    parts = map(shape_and_dtype, sample if isinstance(sample, tuple) else (sample,))
    return sum(math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in parts)


def shape_and_dtype(part) -> tuple[tuple, type]:
    """Return the shape and the dtype of an array or a number."""
    array = part if isinstance(part, nd.NDArray) else np.asarray(part)
    return array.shape, array.dtype


def _numbers(part) -> np.ndarray:
    return part.asnumpy() if isinstance(part, nd.NDArray) else np.asarray(part)
