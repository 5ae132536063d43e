"""An erratum: a defect of somebody's method, and a program that shows how large it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Erratum:
    """A defect of a source's method.

    Attributes:
        title: the defect, in a few words.
        printed: what the source does.
        remedy: what this package does instead.
        show: function that does both and returns ``(as printed, corrected)``.
        unit: unit of the two numbers.
        exact: whether the two numbers are the same on every machine.
        figures: function that returns a sentence with measured figures from records; None if there
            are none.
    """

    title: str
    printed: str
    remedy: str
    show: Callable[[], tuple[float, float]]
    unit: str
    exact: bool = True
    figures: Callable[[], str] | None = None
