"""People-shaped figures: heads, torsos, limbs in walking and standing poses, clothes, bags."""

from __future__ import annotations

import numpy as np

from draw_streets.canvas import Canvas, ellipse, limb, trapezium

SKIN = ((0.93, 0.78, 0.67), (0.85, 0.66, 0.52), (0.68, 0.49, 0.36), (0.45, 0.31, 0.23))
HAIR = ((0.12, 0.10, 0.09), (0.30, 0.20, 0.13), (0.62, 0.50, 0.32), (0.55, 0.54, 0.53))


def cloth(random: np.random.RandomState, surroundings: np.ndarray, lit_from: float):
    """Return a colour function for a garment: plain, striped or checked, lighter on the lit side.

    A third of all garments take the mean colour of their surroundings, so that people cannot be
    found by colour alone.

    Args:
        random: generator of the colours.
        surroundings: pixels around the person, (n, 3), from 0 to 1.
        lit_from: side of the light: -1 for the left, 1 for the right.
    """
    if random.uniform() < 0.35 and surroundings.size:
        colour = surroundings.mean(axis=0) + random.normal(0, 0.05, 3)
    else:
        grey = random.uniform(0.08, 0.85)
        colour = grey + random.normal(0, 0.13, 3)
    pattern, period = random.choice(["plain", "plain", "stripes", "checks"]), random.uniform(4, 9)
    depth, centre = random.uniform(0.08, 0.25), random.uniform(0, 100)

    def ink(x, y):
        light = 1 + lit_from * 0.22 * np.tanh((x - x.mean()) / (np.ptp(x) / 3 + 1))
        if pattern != "plain":
            light = light * (1 - depth * (np.sin((y + centre) * 2 * np.pi / period) > 0))
        if pattern == "checks":
            light = light * (1 - depth * (np.sin((x + centre) * 2 * np.pi / period) > 0))
        return np.clip(colour * light[:, :, None], 0.03, 1)

    return ink


def draw_person(
    canvas: Canvas,
    random: np.random.RandomState,
    number: int,
    foot: tuple,
    height: float,
    lit_from: float,
) -> str:
    """Draw a person.

    Args:
        canvas: to draw on.
        random: generator of pose, clothes and colours.
        number: of the person, from 1.
        foot: (x, y) of the feet, in pixels.
        height: of the person, in pixels.
        lit_from: side of the light: -1 for the left, 1 for the right.

    Returns:
        Penn-Fudan's label for the pose: ``PASpersonWalking`` or ``PASpersonStanding``.
    """
    walking = random.uniform() < 0.8
    sideways = walking and random.uniform() < 0.6
    facing = random.choice([-1, 1])
    stride = random.uniform(0.25, 0.5) if sideways else random.uniform(0.03, 0.14)
    girth = random.uniform(0.85, 1.25)
    child = height * random.uniform(0.012, 0.02) if random.uniform() < 0.15 else 0.0
    lean = facing * random.uniform(0, 0.03) if sideways else 0.0

    def at(x, y):
        """Return the pixel of a point given relative to the foot, in heights, y upwards."""
        return foot[0] + height * (x + lean * y), foot[1] - height * y

    def part(start, end, start_radius, end_radius, ink):
        shape = limb(at(*start), at(*end), height * start_radius, height * end_radius)
        canvas.paint(shape, ink, number)

    nearby = _surroundings(canvas, at(0, 0.6), height)
    upper, lower = (cloth(random, nearby, lit_from) for _ in range(2))
    skin = np.array(SKIN[random.randint(len(SKIN))]) * random.uniform(0.8, 1.05)
    hair = np.array(HAIR[random.randint(len(HAIR))])
    shoes = np.full(3, random.uniform(0.05, 0.5))
    dress = random.choice(["trousers", "trousers", "trousers", "skirt", "coat"])
    shoulder = (0.055 if sideways else 0.095) * girth
    hip = 0.03 * girth if sideways else 0.045 * girth
    if dress != "trousers":
        stride = min(stride, 0.32)  # Skirts and coats limit the stride.
    leg_ink = (lambda x, y: np.broadcast_to(skin, (*x.shape, 3))) if dress == "skirt" else lower

    def leg(side, swing, shaded):
        knee_x = side * hip + facing * swing * 0.26
        bend = 0.12 * max(-swing, 0) + 0.01
        ankle = (knee_x + facing * (swing * 0.2 - bend), 0.045 + bend * 0.5)
        ink = (lambda x, y: leg_ink(x, y) * 0.75) if shaded else leg_ink
        part((side * hip, 0.5), (knee_x, 0.275), 0.055 * girth, 0.04 * girth, ink)
        part((knee_x, 0.275), ankle, 0.038 * girth, 0.024, ink)
        toe = 0.06 if sideways else 0.015
        part(ankle, (ankle[0] + facing * toe, ankle[1] - 0.022), 0.024, 0.02, shoes)

    def arm(side, swing, shaded):
        ink = (lambda x, y: upper(x, y) * 0.8) if shaded else upper
        elbow = (side * (shoulder + 0.015) - facing * swing * 0.16, 0.63)
        hand = (elbow[0] + facing * (0.04 - swing * 0.12), 0.49 + abs(swing) * 0.06)
        part((side * shoulder, 0.78), elbow, 0.034, 0.03, ink)
        part(elbow, hand, 0.028, 0.021, ink)
        part(hand, (hand[0], hand[1] - 0.015), 0.02, 0.018, skin)

    far = -1 if facing > 0 else 1
    arm(far, stride, True)
    leg(far, -stride, True)
    leg(-far, stride, False)
    if dress != "trousers":
        hem = random.uniform(0.24, 0.36)
        flare = 0.10 * girth + (0.05 * stride if dress == "skirt" else 0.02)
        left, right = at(-flare, hem), at(flare, hem)
        waist_left, waist_right = at(-0.065 * girth, 0.56), at(0.065 * girth, 0.56)
        shape = trapezium(
            waist_left[1], (waist_left[0], waist_right[0]), left[1], (left[0], right[0])
        )
        canvas.paint(shape, upper if dress == "coat" else lower, number)
    part((0, 0.74), (0, 0.53), shoulder * 0.95 + 0.02, 0.068 * girth, upper)
    part((-shoulder * 0.8, 0.785), (shoulder * 0.8, 0.785), 0.038, 0.038, upper)
    if random.uniform() < 0.45:
        _draw_bag(canvas, random, number, at, height, -facing * (shoulder + 0.03))
    arm(-far, -stride, False)
    part((0, 0.85), (facing * 0.005, 0.81), 0.027, 0.03, skin)
    tilt = facing * 0.012 if sideways else 0.0
    head = at(tilt, 0.925)
    radius = height * 0.062 + child
    canvas.paint(ellipse(head, radius * 0.86, radius * 1.12), skin, number)
    back = -facing * radius * (0.35 if sideways else random.choice([0, 0]))
    cap = ellipse((head[0] + back, head[1] - radius * 0.42), radius * 0.88, radius * 0.78)
    canvas.paint(cap, hair, number)
    if random.uniform() < 0.3:  # Long hair, or seen from behind.
        fall = ellipse((head[0] + back * 1.6, head[1] + radius * 0.3), radius * 0.7, radius * 1.2)
        canvas.paint(fall, hair * 0.9, number)
    return "PASpersonWalking" if walking else "PASpersonStanding"


def _draw_bag(canvas, random, number, at, height, x):
    colour = np.clip(random.uniform(0.1, 0.8) + random.normal(0, 0.1, 3), 0.05, 0.95)
    if random.uniform() < 0.5:  # Carried by the hand.
        shape = limb(at(x, 0.42), at(x, 0.36), height * 0.045, height * 0.05)
    else:  # Over the shoulder.
        shape = limb(at(x * 0.8, 0.72), at(x * 0.8, 0.6), height * 0.045, height * 0.05)
    canvas.paint(shape, colour, number)


def _surroundings(canvas: Canvas, centre: tuple, height: float) -> np.ndarray:
    column, row, reach = int(centre[0]), int(centre[1]), int(height * 0.2) + 2
    rows = slice(max(row - reach, 0), max(row + reach, 1))
    columns = slice(max(column - reach, 0), max(column + reach, 1))
    return canvas.image[rows, columns].reshape(-1, 3)
