"""What NumPy changed in behaviour, each asked of the NumPy at hand and not of its version."""

from __future__ import annotations

import warnings

import numpy


def refuses_deep_nesting() -> bool:
    """Since 1.24: sequences nested deeper than an array can be are an error."""
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
    """Since 2.0: a Python integer that the dtype cannot hold is an error, it does not wrap."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            numpy.array([-1], dtype=numpy.uint8)
        except OverflowError:
            return True
    return False


def writes_types() -> bool:
    """Since 2.0: ``repr`` of a number names its type."""
    return repr(numpy.int64(3)) != "3"


def returns_named_tuples() -> bool:
    """Since 1.25: eig, eigh, qr, slogdet and svd return named tuples."""
    return hasattr(numpy.linalg.eigh(numpy.eye(1)), "_make")


def returns_tuples() -> bool:
    """Since 2.0: functions that return several arrays do so in a tuple, not a list."""
    return isinstance(numpy.broadcast_arrays(0), tuple)


def refuses_arrays_of_one_as_numbers() -> bool:
    """Since 2.4: ``int`` and ``float`` take arrays of no dimension only, not of one element."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            int(numpy.zeros(1))
        except TypeError:
            return True
    return False
