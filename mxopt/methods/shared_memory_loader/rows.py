"""Batches of samples that are kept in memory, made by one operator for each array."""

from __future__ import annotations

from mxopt.data import ndarray_memory as host


class TakeRows:
    """Makes batches from row numbers, with one operator for each array.

    Args:
        arrays: arrays on the host, each of shape (samples, ...).
    """

    def __init__(self, arrays: tuple):
        self._kept = [host.view(array) for array in arrays]

    def __call__(self, rows: list[int]) -> list:
        """Return these rows of each array, shape (len(rows), ...)."""
        taken = []
        for kept in self._kept:
            array, memory = host.empty((len(rows), *kept.shape[1:]), kept.dtype)
            kept.take(rows, axis=0, out=memory, mode="clip")  # other modes make a copy in between
            taken.append(array)
        return taken
