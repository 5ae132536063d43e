"""What quantisation does to an array: one scale, and 8-bit integers."""

from __future__ import annotations

import numpy as np

# From -127 to 127: 255 of the 256 values of 8 bits, so that zero stays zero.
LARGEST = 127


def to_int8(values, axis: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return integers and the scale that turns them back: values are about integers x scale.

    The scale is the largest absolute value divided by 127 ("abs-max"). An array of zeros gets the
    scale 1.

    >>> integers, scale = to_int8([0.98, 0.41, -1.0, -3.2])
    >>> integers.tolist()
    [39, 16, -40, -127]

    Args:
        values: an array of any shape, finite.
        axis: an axis whose positions get a scale each, such as 0 for the channels of a layer; None
            for one scale.

    Returns:
        int8 in the shape of the values; float32, of a shape that multiplies with them.

    Raises:
        ValueError: a value is not finite.
    """
    values = np.asarray(values, np.float32)
    if not np.isfinite(values).all():
        raise ValueError("the array has values that are not finite; they have no 8-bit form")
    others = None if axis is None else tuple(n for n in range(values.ndim) if n != axis)
    largest = np.abs(values).max(axis=others, keepdims=True)
    scale = np.where(largest > 0, largest / np.float32(LARGEST), np.float32(1))
    return np.rint(values / scale).astype(np.int8), scale.astype(np.float32)


def dequantized(integers: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return the float32 values of 8-bit integers.

    >>> [round(float(v), 7) for v in dequantized(*to_int8([0.98, 0.41, -1.0, -3.2]))]
    [0.9826772, 0.4031496, -1.007874, -3.2]

    Args:
        integers: int8, of any shape.
        scale: as :func:`to_int8` returns it.
    """
    return integers.astype(np.float32) * scale
