"""What number formats of 8 and 16 bits hold, and what becomes of gradients in float16."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Format(NamedTuple):
    """A binary floating-point format.

    Attributes:
        name: its name.
        exponent: bits of the exponent.
        mantissa: bits of the mantissa, without the leading one.
        finite: whether the largest exponent is used for numbers, as in ``float8_e4m3``.
    """

    name: str
    exponent: int
    mantissa: int
    finite: bool = False

    @property
    def bias(self) -> int:
        """What is subtracted from a stored exponent."""
        return 2 ** (self.exponent - 1) - 1

    @property
    def largest(self) -> float:
        """The largest number."""
        if self.finite:  # only the mantissa of ones stands for NaN
            return 2.0 ** (self.bias + 1) * (2 - 2 * 2.0**-self.mantissa)
        return 2.0**self.bias * (2 - 2.0**-self.mantissa)

    @property
    def smallest_normal(self) -> float:
        """The smallest positive number with all bits of its mantissa."""
        return 2.0 ** (1 - self.bias)

    @property
    def smallest(self) -> float:
        """The smallest positive number."""
        return 2.0 ** (1 - self.bias - self.mantissa)

    @property
    def spacing(self) -> float:
        """The distance from 1 to the next larger number."""
        return 2.0**-self.mantissa


# The 8-bit formats are those of Micikevicius et al., "FP8 Formats for Deep Learning", 2022.
FORMATS = (
    Format("float32", 8, 23),
    Format("float16", 5, 10),
    Format("bfloat16", 8, 7),
    Format("float8_e5m2", 5, 2),
    Format("float8_e4m3", 4, 3, finite=True),
)


def rounded(values, form: Format) -> np.ndarray:
    """Return values rounded to the nearest of a format, ties to even, as float64.

    What is beyond the largest number becomes infinite, or NaN in a format without infinities.

    >>> rounded([1.1, 300.0, 1e-9], FORMATS[4]).tolist()
    [1.125, 288.0, 0.0]

    Args:
        values: numbers of any shape.
        form: the format.
    """
    values = np.asarray(values, np.float64)
    _, exponent = np.frexp(values)  # 2^(exponent - 1) <= |value| < 2^exponent
    exponent = np.maximum(exponent - 1, 1 - form.bias)
    step = 2.0 ** (exponent - form.mantissa)
    found = np.rint(values / step) * step
    beyond = np.sign(values) * np.inf if not form.finite else np.nan
    return np.where(np.abs(found) > form.largest, beyond, found)


def lost(gradients, scale: float = 1.0) -> tuple[float, float]:
    """Return the share of gradients that float16 turns into 0, and into infinity.

    Args:
        gradients: numbers of any shape; those that are 0 already are left out.
        scale: what the loss, and with it every gradient, is multiplied by.
    """
    values = np.asarray(gradients, np.float64).ravel()
    values = values[values != 0] * scale
    if not len(values):
        return 0.0, 0.0
    found = rounded(values, FORMATS[1])
    return float((found == 0).mean()), float(np.isinf(found).mean())
