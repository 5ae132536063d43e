"""Shapes with smooth edges, painted with NumPy alone so that every machine paints the same pixels.

A :class:`Shape` is a signed distance: negative inside, positive outside, in pixels. The covered
part of a pixel is ``0.5 - distance``, clipped to 0 and 1, which makes the edges smooth. (Drawing
libraries change their rounding between versions, and the committed images must be reproducible.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Point = tuple  # (x, y) in pixels from the image's top left corner.


class Shape(NamedTuple):
    """A region of the image.

    Attributes:
        bounds: (left, top, right, bottom), in pixels.
        distance: ``distance(x, y)`` -> signed distance to the edge, in pixels.
    """

    bounds: tuple
    distance: Callable[[np.ndarray, np.ndarray], np.ndarray]


def limb(start: Point, end: Point, start_radius: float, end_radius: float) -> Shape:
    """Return a line with round ends, whose radius changes linearly from start to end.

    Args:
        start: of the line.
        end: of the line.
        start_radius: radius at the start, in pixels.
        end_radius: radius at the end, in pixels.
    """
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
    """Return an upright ellipse; its distance is exact on the edge and approximate elsewhere.

    Args:
        centre: of the ellipse.
        radius_x: horizontal radius, in pixels.
        radius_y: vertical radius, in pixels.
    """
    x0, y0 = centre

    def distance(x, y):
        relative = np.hypot((x - x0) / radius_x, (y - y0) / radius_y)
        return (relative - 1) * min(radius_x, radius_y)

    bounds = (x0 - radius_x, y0 - radius_y, x0 + radius_x, y0 + radius_y)
    return Shape(bounds, distance)


def box(left: float, top: float, right: float, bottom: float, corner: float = 0.0) -> Shape:
    """Return an upright rectangle.

    Args:
        left: x of its left edge, in pixels.
        top: y of its top edge, in pixels.
        right: x of its right edge, in pixels.
        bottom: y of its bottom edge, in pixels.
        corner: radius of its corners, in pixels.
    """

    def distance(x, y):
        dx = np.abs(x - (left + right) / 2) - (right - left) / 2 + corner
        dy = np.abs(y - (top + bottom) / 2) - (bottom - top) / 2 + corner
        outside = np.hypot(np.maximum(dx, 0), np.maximum(dy, 0))
        return outside + np.minimum(np.maximum(dx, dy), 0) - corner

    return Shape((left, top, right, bottom), distance)


def trapezium(top_y: float, top: tuple, bottom_y: float, bottom: tuple) -> Shape:
    """Return a trapezium with horizontal top and bottom.

    Args:
        top_y: y of the top, in pixels.
        top: x of its ends, (left, right), in pixels.
        bottom_y: y of the bottom, in pixels.
        bottom: x of its ends, (left, right), in pixels.
    """
    height = bottom_y - top_y

    def distance(x, y):
        part = np.clip((y - top_y) / height, 0, 1)
        left = top[0] + part * (bottom[0] - top[0])
        right = top[1] + part * (bottom[1] - top[1])
        return np.maximum(np.maximum(left - x, x - right), np.maximum(top_y - y, y - bottom_y))

    bounds = (min(top[0], bottom[0]), top_y, max(top[1], bottom[1]), bottom_y)
    return Shape(bounds, distance)


def clouds(random: np.random.RandomState, height: int, width: int, scale: float) -> np.ndarray:
    """Return smooth noise, (height, width) float64 from 0 to 1.

    Args:
        random: generator of the noise.
        height: in pixels.
        width: in pixels.
        scale: width of its blobs, in pixels.
    """
    rows, columns = int(height / scale) + 2, int(width / scale) + 2
    grid = random.uniform(size=(rows, columns))
    y, x = np.arange(height) / scale, np.arange(width) / scale
    row, column = y.astype(int), x.astype(int)
    down, across = (y - row)[:, None], (x - column)[None, :]
    top = grid[row][:, column] * (1 - across) + grid[row][:, column + 1] * across
    bottom = grid[row + 1][:, column] * (1 - across) + grid[row + 1][:, column + 1] * across
    return top * (1 - down) + bottom * down


class Canvas:
    """A picture that shapes are painted on.

    Args:
        height: in pixels.
        width: in pixels.

    Attributes:
        height: as above.
        width: as above.
        image: float64 (H, W, 3), from 0 to 1.
        people: uint8 (H, W), number of the person at each pixel, 0 for none.
    """

    def __init__(self, height: int, width: int):
        self.height, self.width = height, width
        self.image = np.zeros((height, width, 3))
        self.people = np.zeros((height, width), np.uint8)

    def paint(self, shape: Shape, colour, person: int | None = 0, strength: float = 1.0) -> None:
        """Paint a shape over the picture.

        Args:
            shape: the region to paint.
            colour: three numbers from 0 to 1, or a function of (x, y) that returns them.
            person: number of the person that the pixels now belong to. 0 for none, so that things
                in front hide people; ``None`` leaves the number unchanged, as for shadows.
            strength: opacity, from 0 to 1.
        """
        left, top, right, bottom = shape.bounds
        rows = slice(max(int(top) - 2, 0), min(int(bottom) + 3, self.height))
        columns = slice(max(int(left) - 2, 0), min(int(right) + 3, self.width))
        if rows.start >= rows.stop or columns.start >= columns.stop:
            return  # Completely outside the picture.
        y, x = np.mgrid[rows, columns].astype(float)
        cover = np.clip(0.5 - shape.distance(x, y), 0, 1)
        ink = colour(x, y) if callable(colour) else np.asarray(colour, float)
        alpha = (cover * strength)[:, :, None]
        self.image[rows, columns] = self.image[rows, columns] * (1 - alpha) + ink * alpha
        if person is not None:
            self.people[rows, columns][cover > 0.5] = person
