"""Shapes with soft edges, painted with NumPy alone so that every machine paints the same pixels.

A :class:`Shape` is a signed distance: negative inside, positive outside, in pixels. A pixel is
covered by ``0.5 - distance``, cut off at 0 and 1, which is what makes the edges smooth. (Drawing
libraries would do, but they change their rounding between versions, and the committed images have
to stay reproducible.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Point = tuple  # (x, y) in pixels from the image's top left corner.


class Shape(NamedTuple):
    """A region: its bounds (left, top, right, bottom) and its signed distance function."""

    bounds: tuple
    distance: Callable[[np.ndarray, np.ndarray], np.ndarray]


def limb(start: Point, end: Point, start_radius: float, end_radius: float) -> Shape:
    """Return a line with round ends whose radius changes evenly from one end to the other."""
    (x0, y0), (x1, y1) = start, end
    length2 = max((x1 - x0) ** 2 + (y1 - y0) ** 2, 1e-9)

    def distance(x, y):
        along = np.clip(((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / length2, 0, 1)
        away = np.hypot(x - x0 - along * (x1 - x0), y - y0 - along * (y1 - y0))
        return away - start_radius - along * (end_radius - start_radius)

    radius = max(start_radius, end_radius)
    bounds = (
        min(x0, x1) - radius,
        min(y0, y1) - radius,
        max(x0, x1) + radius,
        max(y0, y1) + radius,
    )
    return Shape(bounds, distance)


def ellipse(centre: Point, radius_x: float, radius_y: float) -> Shape:
    """Return an upright ellipse (its distance is exact on the edge, near enough beside it)."""
    x0, y0 = centre

    def distance(x, y):
        relative = np.hypot((x - x0) / radius_x, (y - y0) / radius_y)
        return (relative - 1) * min(radius_x, radius_y)

    bounds = (x0 - radius_x, y0 - radius_y, x0 + radius_x, y0 + radius_y)
    return Shape(bounds, distance)


def box(left: float, top: float, right: float, bottom: float, corner: float = 0.0) -> Shape:
    """Return an upright rectangle, its corners rounded by the radius ``corner``."""

    def distance(x, y):
        dx = np.abs(x - (left + right) / 2) - (right - left) / 2 + corner
        dy = np.abs(y - (top + bottom) / 2) - (bottom - top) / 2 + corner
        outside = np.hypot(np.maximum(dx, 0), np.maximum(dy, 0))
        return outside + np.minimum(np.maximum(dx, dy), 0) - corner

    return Shape((left, top, right, bottom), distance)


def trapezium(top_y: float, top: tuple, bottom_y: float, bottom: tuple) -> Shape:
    """Return a shape with level top and bottom; ``top`` and ``bottom`` are (left, right)."""
    height = bottom_y - top_y

    def distance(x, y):
        part = np.clip((y - top_y) / height, 0, 1)
        left = top[0] + part * (bottom[0] - top[0])
        right = top[1] + part * (bottom[1] - top[1])
        return np.maximum(np.maximum(left - x, x - right), np.maximum(top_y - y, y - bottom_y))

    bounds = (min(top[0], bottom[0]), top_y, max(top[1], bottom[1]), bottom_y)
    return Shape(bounds, distance)


def clouds(random: np.random.RandomState, height: int, width: int, scale: float) -> np.ndarray:
    """Return smooth noise (height, width) in 0 to 1 whose blobs are about ``scale`` pixels wide."""
    rows, columns = int(height / scale) + 2, int(width / scale) + 2
    grid = random.uniform(size=(rows, columns))
    y, x = np.arange(height) / scale, np.arange(width) / scale
    row, column = y.astype(int), x.astype(int)
    down, across = (y - row)[:, None], (x - column)[None, :]
    top = grid[row][:, column] * (1 - across) + grid[row][:, column + 1] * across
    bottom = grid[row + 1][:, column] * (1 - across) + grid[row + 1][:, column + 1] * across
    return top * (1 - down) + bottom * down


class Canvas:
    """A picture in the making: ``image`` float64 (H, W, 3) in 0 to 1, ``people`` uint8 (H, W)."""

    def __init__(self, height: int, width: int):
        self.height, self.width = height, width
        self.image = np.zeros((height, width, 3))
        self.people = np.zeros((height, width), np.uint8)

    def paint(self, shape: Shape, colour, person: int | None = 0, strength: float = 1.0) -> None:
        """Cover ``shape`` with ``colour``: three numbers, or a function of (x, y) that gives them.

        What is covered belongs to ``person`` from then on (0: to nobody, so things in front hide
        people; None: leave the owner, as for shadows). ``strength`` below 1 lets through what was
        there.
        """
        left, top, right, bottom = shape.bounds
        rows = slice(max(int(top) - 2, 0), min(int(bottom) + 3, self.height))
        columns = slice(max(int(left) - 2, 0), min(int(right) + 3, self.width))
        if rows.start >= rows.stop or columns.start >= columns.stop:
            return  # Wholly outside the picture.
        y, x = np.mgrid[rows, columns].astype(float)
        cover = np.clip(0.5 - shape.distance(x, y), 0, 1)
        ink = colour(x, y) if callable(colour) else np.asarray(colour, float)
        alpha = (cover * strength)[:, :, None]
        self.image[rows, columns] = self.image[rows, columns] * (1 - alpha) + ink * alpha
        if person is not None:
            self.people[rows, columns][cover > 0.5] = person
