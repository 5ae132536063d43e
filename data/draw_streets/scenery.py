"""Draw all of a street but the people: walls, pavement, trees, posts, cars, signs."""

from __future__ import annotations

import numpy as np

from draw_streets.canvas import Canvas, box, clouds, ellipse, limb, trapezium

WALLS = ((0.62, 0.42, 0.33), (0.78, 0.70, 0.58), (0.55, 0.54, 0.52), (0.84, 0.82, 0.78))
WALLS += ((0.42, 0.32, 0.27), (0.66, 0.60, 0.47), (0.36, 0.38, 0.42), (0.86, 0.68, 0.56))


def draw_sky(canvas: Canvas, random: np.random.RandomState) -> None:
    """Fill the canvas with sky: a vertical gradient, blue or overcast, with soft clouds.

    Args:
        canvas: to draw on.
        random: generator of the colours.
    """
    overcast = random.uniform()
    top = np.array([0.45, 0.60, 0.80]) * (1 - overcast) + 0.74 * overcast
    down = np.linspace(0, 1, canvas.height)[:, None, None]
    drift = clouds(random, canvas.height, canvas.width, 50)[:, :, None]
    canvas.image[:] = np.clip(top * (1 - down) + 0.92 * down + 0.15 * (drift - 0.4), 0, 1)


def draw_buildings(canvas: Canvas, random: np.random.RandomState, base: float) -> None:
    """Draw house fronts from left to right.

    Args:
        canvas: to draw on.
        random: generator of sizes and colours.
        base: row on which the houses stand, in pixels.
    """
    left = -random.uniform(0, 40)
    while left < canvas.width:
        width = random.uniform(60, 170)
        top = random.uniform(-30, 0.45 * base) if random.uniform() < 0.8 else 0.65 * base
        _draw_building(canvas, random, left, top, left + width, base)
        left += width if random.uniform() < 0.85 else width + random.uniform(5, 40)


def _draw_building(canvas, random, left, top, right, base):
    colour = np.array(WALLS[random.randint(len(WALLS))]) * random.uniform(0.75, 1.1)
    stains = clouds(random, canvas.height, canvas.width, random.uniform(8, 30))
    course = random.uniform(4, 7)
    brick = random.uniform() < 0.5

    def wall(x, y):
        light = 0.88 + 0.24 * stains[y.astype(int), x.astype(int)]
        if brick:
            shift = (np.floor(y / course) % 2) * course
            mortar = (y % course < 1) | ((x + shift) % (2 * course) < 1)
            light = light * (1 - 0.16 * mortar)
        return np.clip(colour * light[:, :, None], 0, 1)

    canvas.paint(box(left, top, right, base), wall)
    canvas.paint(box(left, base - 7, right, base), colour * 0.6)
    glass = np.array([0.25, 0.30, 0.36]) * random.uniform(0.6, 1.7)
    frame = np.clip(colour * random.uniform(0.6, 1.5), 0, 1)
    pane_width, pane_height = random.uniform(13, 26), random.uniform(22, 42)
    step_x, step_y = pane_width * random.uniform(1.5, 2.1), pane_height * random.uniform(1.4, 1.8)
    y = base - 16 - pane_height
    while y > top - pane_height:
        x = left + step_x * 0.35
        while x + pane_width < right - 4:
            kind = random.uniform()
            if kind < 0.75:
                tint = glass * random.uniform(0.7, 1.5)
                canvas.paint(box(x - 2, y - 2, x + pane_width + 2, y + pane_height + 2), frame)
                canvas.paint(box(x, y, x + pane_width, y + pane_height), np.clip(tint, 0, 1))
                middle = x + pane_width / 2
                canvas.paint(box(middle - 0.8, y, middle + 0.8, y + pane_height), frame)
            elif kind < 0.87 and y > base - 2 * step_y:  # A door with a round lamp above it.
                paint = np.clip(random.uniform(0.12, 0.6) + random.normal(0, 0.1, 3), 0.03, 0.9)
                canvas.paint(box(x, base - pane_height * 1.5, x + pane_width, base), paint)
                lamp = ellipse((x + pane_width / 2, base - pane_height * 1.7), 4, 5)
                canvas.paint(lamp, (0.9, 0.8, 0.65))
            x += step_x
        y -= step_y
    if random.uniform() < 0.4:  # An awning, often with stripes.
        y, first, second = base - random.uniform(48, 70), *_awning_colours(random)
        shape = trapezium(y, (left + 6, right - 6), y + 14, (left, right))
        canvas.paint(
            shape, lambda x, y: np.where((np.floor(x / 8) % 2)[:, :, None] > 0, first, second)
        )


def _awning_colours(random):
    colours = random.uniform(0.25, 0.7) + random.normal(0, 0.12, (2, 3))
    colours[1] += random.uniform(0, 0.3)
    return np.clip(colours, 0.03, 0.95)


def draw_ground(canvas: Canvas, random: np.random.RandomState, horizon: float, base: float):
    """Draw the pavement: slabs that become larger towards the viewer, and sometimes a road.

    Args:
        canvas: to draw on.
        random: generator of sizes and colours.
        horizon: row of the horizon, in pixels.
        base: row where the pavement begins, in pixels.
    """
    stone = np.array([0.56, 0.54, 0.51]) * random.uniform(0.7, 1.25) + random.normal(0, 0.02, 3)
    stains = clouds(random, canvas.height, canvas.width, 22)
    grain = clouds(random, canvas.height, canvas.width, 2.5)
    vanishing, slab = random.uniform(0.2, 0.8) * canvas.width, random.uniform(0.4, 0.8)
    road = random.uniform(base + 8, canvas.height * 0.85) if random.uniform() < 0.5 else None

    def paving(x, y):
        depth = 60 / np.maximum(y - horizon, 3)
        row, column = y.astype(int), x.astype(int)
        light = 0.8 + 0.3 * stains[row, column] + 0.14 * (grain[row, column] - 0.5)
        across = ((x - vanishing) * depth / 40) % slab < 0.02 + 0.02 * depth
        along = (depth * 2.2) % slab < depth**2 / 18  # About a pixel and a half, near or far.
        light = light * (1 - 0.14 * ((across | along) & (depth < 3)))
        if road is not None:
            light = np.where(y < road, light * 0.62, light)
            light = np.where(np.abs(y - road) < 2.5, light * 1.5, light)
        return np.clip(stone * light[:, :, None], 0, 1)

    canvas.paint(box(-5, base, canvas.width + 5, canvas.height + 5), paving)


def draw_thing(canvas, random, kind: str, foot: tuple, scale: float) -> None:
    """Draw one thing.

    Args:
        canvas: to draw on.
        random: generator of sizes and colours.
        kind: ``post``, ``sign``, ``lamp``, ``bin``, ``plant``, ``tree`` or ``car``.
        foot: (x, y) of its lower end, in pixels.
        scale: height of an adult at that place, in pixels.
    """
    x, y = foot
    colour = np.clip(random.uniform(0.12, 0.75) + random.normal(0, 0.12, 3), 0.04, 0.95)
    if kind == "post":  # As tall as a person, with a round top: easily taken for a person.
        tall = scale * random.uniform(0.5, 1.1)
        width = scale * random.uniform(0.025, 0.06)
        canvas.paint(limb((x, y), (x, y - tall), width, width * 0.8), colour)
        canvas.paint(ellipse((x, y - tall), width * 1.9, width * 2.1), np.clip(colour * 1.3, 0, 1))
    elif kind == "sign":
        tall = scale * random.uniform(1.1, 1.5)
        canvas.paint(limb((x, y), (x, y - tall), scale * 0.02, scale * 0.02), (0.5, 0.5, 0.5))
        board = np.clip(random.uniform(0.3, 0.8) + random.normal(0, 0.2, 3), 0.05, 0.95)
        if random.uniform() < 0.5:
            canvas.paint(ellipse((x, y - tall), scale * 0.13, scale * 0.13), board)
            canvas.paint(ellipse((x, y - tall), scale * 0.09, scale * 0.09), board * 0.6)
        else:
            half = scale * random.uniform(0.1, 0.22)
            canvas.paint(box(x - half, y - tall - half, x + half, y - tall + half * 0.6, 2), board)
    elif kind == "lamp":
        tall = scale * random.uniform(2.2, 3)
        canvas.paint(limb((x, y), (x, y - tall), scale * 0.045, scale * 0.025), colour * 0.6)
        canvas.paint(ellipse((x, y - tall), scale * 0.1, scale * 0.07), (0.92, 0.9, 0.8))
    elif kind == "bin":
        half, tall = scale * 0.14, scale * random.uniform(0.45, 0.6)
        shape = trapezium(y - tall, (x - half * 1.15, x + half * 1.15), y, (x - half, x + half))
        canvas.paint(shape, colour)
        canvas.paint(box(x - half * 1.3, y - tall - 3, x + half * 1.3, y - tall + 2), colour * 0.7)
    elif kind == "plant":  # A clipped tree in a tub, which has a head and a body like a person.
        half = scale * 0.12
        tub = trapezium(y - scale * 0.25, (x - half * 1.2, x + half * 1.2), y, (x - half, x + half))
        canvas.paint(tub, np.array([0.55, 0.36, 0.26]) * random.uniform(0.6, 1.3))
        trunk = limb((x, y - scale * 0.2), (x, y - scale * 0.6), scale * 0.025, scale * 0.02)
        canvas.paint(trunk, (0.3, 0.22, 0.16))
        _draw_leaves(canvas, random, (x, y - scale * 0.75), scale * 0.2, 12)
    elif kind == "tree":
        tall = scale * random.uniform(1.5, 2.2)
        bark = np.array([0.33, 0.27, 0.22]) * random.uniform(0.7, 1.4)
        canvas.paint(limb((x, y), (x, y - tall), scale * 0.09, scale * 0.05), bark)
        for side in (-1, 1):
            end = (x + side * scale * 0.3, y - tall * 1.15)
            canvas.paint(limb((x, y - tall * 0.75), end, scale * 0.04, scale * 0.02), bark * 0.9)
        _draw_leaves(canvas, random, (x, y - tall * 1.15), scale * 0.6, 40)
    elif kind == "car":
        _draw_car(canvas, random, foot, scale, colour)


def _draw_leaves(canvas, random, centre, radius, count):
    green = np.array([0.24, 0.36, 0.15]) * random.uniform(0.7, 1.4)
    for _ in range(count):
        angle, reach = random.uniform(0, 2 * np.pi), radius * np.sqrt(random.uniform())
        middle = (centre[0] + reach * np.cos(angle), centre[1] + 0.8 * reach * np.sin(angle))
        size = radius * random.uniform(0.2, 0.38)
        light = random.uniform(0.65, 1.35) * (1 - 0.25 * np.sin(angle))
        canvas.paint(ellipse(middle, size, size * 0.8), np.clip(green * light, 0, 1))


def _draw_car(canvas, random, foot, scale, colour):
    x, y = foot
    length, tall = scale * random.uniform(2.2, 2.7), scale * random.uniform(0.8, 0.95)
    left, right = x - length / 2, x + length / 2
    dark = box(left + length * 0.06, y - tall * 0.2, right - length * 0.06, y + tall * 0.02, 3)
    canvas.paint(dark, (0.07, 0.07, 0.08))
    body = box(left, y - tall * 0.62, right, y - tall * 0.14, scale * 0.1)
    roof = (left + length * 0.3, right - length * 0.22)
    sill = (left + length * 0.14, right - length * 0.06)
    canvas.paint(trapezium(y - tall, roof, y - tall * 0.58, sill), colour)
    inner = (roof[0] + length * 0.02, roof[1] - length * 0.02)
    lower = (sill[0] + length * 0.05, sill[1] - length * 0.05)
    window = trapezium(y - tall * 0.94, inner, y - tall * 0.62, lower)
    canvas.paint(window, np.array([0.2, 0.24, 0.28]) * random.uniform(0.7, 1.6))
    post = (inner[0] + inner[1]) / 2
    canvas.paint(box(post - 1.5, y - tall * 0.95, post + 1.5, y - tall * 0.6), colour * 0.9)
    canvas.paint(
        body,
        lambda px, py: np.clip(colour * (1.15 - 0.5 * (py - y + tall) / tall)[..., None], 0, 1),
    )
    for wheel in (left + length * 0.2, right - length * 0.2):
        canvas.paint(ellipse((wheel, y - tall * 0.15), tall * 0.2, tall * 0.2), (0.08, 0.08, 0.09))
        canvas.paint(ellipse((wheel, y - tall * 0.15), tall * 0.1, tall * 0.1), (0.6, 0.6, 0.62))
