"""Draw the stand-in of Fashion-MNIST: small garments of the same ten classes, in the same files.

2,000 images of 28 by 28 grey pixels, 1,500 of them for training and validation, the same on every
machine. They are for tests, CI and trials without a network. Results computed from them are marked
``stand-in`` and say nothing about photographs of garments.

``make data`` writes the archive that mxopt ships: ``PYTHONPATH=data python -m draw_garments``.
"""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
from draw_streets.canvas import Canvas, box, clouds, ellipse, limb, trapezium

from mxopt.data.sources import STAND_IN_MARK

COUNTS = {"train": 1_500, "t10k": 500}
SIDE = 28
_LEVELS = 16  # of grey: finer noise would not compress
_MARK_TEXT = """Garments drawn by data/draw_garments of mxopt: a stand-in for Fashion-MNIST in its
files, not photographs. Licence: Apache-2.0.
"""


def generate(folder: str | Path) -> None:
    """Write the whole stand-in into a folder.

    Args:
        folder: the folder; it is created if necessary, and files of the same name are replaced.

    Raises:
        OSError: the folder cannot be written to.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (name, count) in enumerate(COUNTS.items()):
        random = np.random.RandomState(seed)
        labels = random.permutation(np.arange(count, dtype=np.uint8) % 10)
        images = np.stack([garment(int(label), random) for label in labels])
        for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
            # Of unsigned bytes (8), as Fashion-MNIST's files are; without the time of packing.
            header = struct.pack(f">{1 + array.ndim}i", 0x800 + array.ndim, *array.shape)
            packed = gzip.compress(header + array.tobytes(), 9, mtime=0)
            (folder / f"{name}-{kind}-ubyte.gz").write_bytes(packed)
    (folder / STAND_IN_MARK).write_text(_MARK_TEXT, encoding="utf-8")


def garment(label: int, random: np.random.RandomState) -> np.ndarray:
    """Return a garment, (28, 28) uint8, 0 for the background.

    Args:
        label: its class, as in Fashion-MNIST.
        random: generator of its size, place, brightness and texture.
    """
    canvas = Canvas(SIDE, SIDE)
    wide, high = random.uniform(0.8, 1.1, 2)
    right, down = random.uniform(-1.5, 1.5, 2)
    bright = random.uniform(0.35, 0.95)

    def x(value):
        return 14 + (value - 14) * wide + right

    def y(value):
        return 14 + (value - 14) * high + down

    def line(*points, width=1.0, grey=bright):
        for (x0, y0), (x1, y1) in zip(points, points[1:]):
            canvas.paint(limb((x(x0), y(y0)), (x(x1), y(y1)), width, width), [grey] * 3)

    def body(top, bottom, top_x, bottom_x):
        edges = (x(top_x[0]), x(top_x[1])), (x(bottom_x[0]), x(bottom_x[1]))
        canvas.paint(trapezium(y(top), edges[0], y(bottom), edges[1]), [bright] * 3)

    _CLASSES[label](x, y, line, body, canvas, bright, random)
    texture = clouds(random, SIDE, SIDE, 4) - 0.5
    grey = canvas.image[..., 0]
    grey = grey * (1 + 0.5 * texture) + (grey > 0.05) * random.normal(0, 0.04, grey.shape)
    grey = np.round(np.clip(grey, 0, 1) * (_LEVELS - 1)) / (_LEVELS - 1)
    return (255 * grey).astype(np.uint8)


def _top(sleeve_x, sleeve_y, sleeve, bottom=24, hem=(9, 19)):
    """Return a function that draws a garment with two sleeves that end at the given point."""

    def draw(x, y, line, body, canvas, bright, random):
        body(5, bottom, (9, 19), hem)
        for side in (-1, 1):
            line((14 + side * 4, 7), (14 + side * (14 - sleeve_x), sleeve_y), width=sleeve)
        neck = random.uniform(1.5, 2.5)
        canvas.paint(ellipse((x(14), y(5)), neck, neck / 1.5), [0] * 3)

    return draw


def _coat(x, y, line, body, canvas, bright, random):
    _top(5, 23, 2.0, 26, (8, 20))(x, y, line, body, canvas, bright, random)
    line((14, 6), (14, 26), width=0.5, grey=0.05)


def _shirt(x, y, line, body, canvas, bright, random):
    _top(*((6, 16, 1.8) if random.uniform() < 0.5 else (5, 21, 1.6)))(
        x, y, line, body, canvas, bright, random
    )
    for height in range(8, 23, 4):
        canvas.paint(ellipse((x(14), y(height)), 0.7, 0.7), [0.05] * 3)


def _trouser(x, y, line, body, canvas, bright, random):
    body(3, 8, (10, 18), (10, 18))
    spread = random.uniform(0, 1.5)
    for side in (-1, 1):
        line((14 + side * 2.5, 6), (14 + side * (2.5 + spread), 25), width=1.6)


def _dress(x, y, line, body, canvas, bright, random):
    hem = random.uniform(5, 8)
    body(3, 12, (11.5, 16.5), (12, 16))
    body(12, 26, (12, 16), (14 - hem, 14 + hem))


def _sandal(x, y, line, body, canvas, bright, random):
    heel = random.uniform(12, 18)
    line((4, 21), (14, 20), (24, heel), width=0.9)
    line((6, 20), (10, 14), (13, 20), width=0.6)
    line((18, 18), (21, 11), (24, heel), width=0.6)


def _sneaker(x, y, line, body, canvas, bright, random):
    line((5, 19), (12, 17), (23, 15), width=2.4)
    line((22, 12), (23, 16), width=1.8)
    line((3, 22), (25, 21), width=0.8, grey=min(1.0, bright + 0.3))


def _bag(x, y, line, body, canvas, bright, random):
    handle = random.uniform(4, 7)
    canvas.paint(ellipse((x(14), y(13)), handle + 1, 8), [bright] * 3)
    canvas.paint(ellipse((x(14), y(13)), handle - 0.5, 6.5), [0] * 3)
    canvas.paint(box(x(5), y(12), x(23), y(24), 1.5), [bright] * 3)


def _boot(x, y, line, body, canvas, bright, random):
    shaft = random.uniform(3, 8)
    line((19, shaft), (19, 19), width=3.2)
    line((7, 20), (19, 19), width=2.2)
    line((5, 23), (22, 23), width=0.8, grey=min(1.0, bright + 0.3))


_CLASSES = (
    _top(4, 12, 2.2), _trouser, _top(5, 21, 2.0), _dress, _coat, _sandal, _shirt, _sneaker, _bag,
    _boot,
)  # fmt: skip
