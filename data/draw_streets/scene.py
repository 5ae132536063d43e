"""Draw one street: light, background, then people and things from far to near."""

from __future__ import annotations

import numpy as np

from draw_streets.canvas import Canvas, clouds, limb
from draw_streets.people import draw_person
from draw_streets.scenery import draw_buildings, draw_ground, draw_sky, draw_thing

THINGS = ("post", "post", "sign", "lamp", "bin", "plant", "plant", "tree")
# Colours are rounded to multiples of this (of 255): noise stays visible, and files stay small.
COLOUR_STEP = 8


def draw_scene(seed: int) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Draw the street of a seed; the same seed gives the same pixels on every machine.

    Args:
        seed: of the random generator.

    Returns:
        The image, uint8 (H, W, 3) with H from 224 to 272 and W from 288 to 352; the people, uint8
        (H, W), 0 for none and 1 to n for n visible people; and the label of each of the n,
        ``PASpersonWalking`` or ``PASpersonStanding``.
    """
    random = np.random.RandomState(seed)
    height, width = 8 * random.randint(28, 35), 8 * random.randint(36, 45)
    canvas = Canvas(height, width)
    horizon = height * random.uniform(0.26, 0.4)
    base = horizon + height * random.uniform(0.06, 0.14)
    lit_from = random.choice([-1.0, 1.0])
    draw_sky(canvas, random)
    draw_buildings(canvas, random, base)
    draw_ground(canvas, random, horizon, base)

    placed = _place(random, height, width, horizon, base)
    for _, (x, y), scale in placed:
        _draw_shadow(canvas, (x, y), scale, lit_from)
    labels = []
    for kind, foot, scale in placed:
        if kind == "person":
            size = scale * random.uniform(0.88, 1.08) * (0.7 if random.uniform() < 0.12 else 1)
            labels.append(draw_person(canvas, random, len(labels) + 1, foot, size, lit_from))
        else:
            draw_thing(canvas, random, kind, foot, scale)
    image = _photograph(canvas.image, random)
    people, visible = _renumber(canvas.people)
    return image, people, [labels[number - 1] for number in visible]


def _place(random, height, width, horizon, base):
    """Return (kind, foot, a person's height there) for everyone and everything, far to near."""
    tall = random.uniform(1.0, 1.4)
    people, things = random.randint(3, 7), random.randint(3, 7)
    kinds = ["person"] * people + [THINGS[random.randint(len(THINGS))] for _ in range(things)]
    kinds += ["car"] * random.binomial(2, 0.35)
    placed, taken = [], []
    for kind in kinds:
        for _ in range(12):  # A few attempts, to keep people from overlapping.
            near = 0.72 if kind == "car" else 0.99  # Cars are far away.
            y = random.uniform(base + 0.08 * height, near * height)
            x = random.uniform(-0.02, 1.02) * width
            scale = (y - horizon) * tall
            reach = 0.2 * scale if kind == "person" else 0.12 * scale
            if all(abs(x - other) > reach + 0.3 * size for other, size in taken):
                break
        if kind == "person":
            taken.append((x, 0.5 * scale))
        placed.append((kind, (x, y), scale))
    return sorted(placed, key=lambda item: item[1][1])


def _draw_shadow(canvas, foot, scale, lit_from):
    x, y = foot
    end = (x - lit_from * scale * 0.45, y - scale * 0.05)
    canvas.paint(limb((x, y), end, scale * 0.07, scale * 0.05), (0.1, 0.1, 0.13), None, 0.45)
    contact = limb((x - scale * 0.08, y), (x + scale * 0.08, y), scale * 0.03, scale * 0.03)
    canvas.paint(contact, (0.08, 0.08, 0.1), None, 0.5)


def _photograph(image, random):
    """Return the image as uint8, with uneven light, blur, sensor noise and few colours."""
    height, width, _ = image.shape
    slope = random.uniform(-0.2, 0.2) * np.linspace(-1, 1, width)[None, :]
    patches = 0.3 * (clouds(random, height, width, 90) - 0.5)
    image = image * (1 + slope + patches)[:, :, None] * random.uniform(0.8, 1.1)
    for axis in (0, 1):
        image = 0.2 * np.roll(image, 1, axis) + 0.6 * image + 0.2 * np.roll(image, -1, axis)
    grain = random.normal(0, random.uniform(0.006, 0.014), (height, width, 1))
    steps = np.round((image + grain) * 255 / COLOUR_STEP) * COLOUR_STEP
    return np.clip(steps, 0, 255).astype(np.uint8)


def _renumber(people):
    """Return the people numbered 1 to n without gaps, and the old number of each."""
    visible = [int(number) for number in np.unique(people) if number > 0]
    renumbered = np.zeros_like(people)
    for new, old in enumerate(visible, start=1):
        renumbered[people == old] = new
    return renumbered, visible
