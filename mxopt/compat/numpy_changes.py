"""Changes in NumPy's behaviour, each detected by trying it and not by NumPy's version."""

from __future__ import annotations

import warnings

import numpy


def refuses_deep_nesting() -> bool:
    """Return whether too deeply nested sequences are an error, as since NumPy 1.24."""
    nested = [0]
    for _ in range(80):
        nested = [nested]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            numpy.array(nested)
    except ValueError:
        return True
    return False


def refuses_integers_out_of_range() -> bool:
    """Return whether a Python integer out of the dtype's range is an error, as since NumPy 2.0.

    Before, it wrapped around.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            numpy.array([-1], dtype=numpy.uint8)
        except OverflowError:
            return True
    return False


def writes_types() -> bool:
    """Return whether ``repr`` of a number includes its type, as since NumPy 2.0."""
    return repr(numpy.int64(3)) != "3"


def returns_named_tuples() -> bool:
    """Return whether eig, eigh, qr, slogdet and svd return named tuples, as since NumPy 1.25."""
    return hasattr(numpy.linalg.eigh(numpy.eye(1)), "_make")


def returns_tuples() -> bool:
    """Return whether several arrays are returned as a tuple and not a list, as since NumPy 2.0."""
    return isinstance(numpy.broadcast_arrays(0), tuple)


def refuses_arrays_of_one_as_numbers() -> bool:
    """Return whether ``int`` and ``float`` refuse arrays of shape (1,), as since NumPy 2.4."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            int(numpy.zeros(1))
        except TypeError:
            return True
    return False
