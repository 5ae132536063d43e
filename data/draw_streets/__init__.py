"""Draw the stand-in of Penn-Fudan: small street scenes with people-shaped figures.

48 images in Penn-Fudan's layout (``PNGImages``, ``PedMasks``, ``Annotation``), about 320 by 240
pixels, the same pixels on every machine. They are for tests, CI and trials without a network.
Results computed from them are marked ``stand-in`` and say nothing about photographs.

People cannot be found by colour alone (clothes have the colours of the walls behind them, posts and
clipped trees have heads), so a network has to learn their shape.

``make data`` writes the archive that mxopt ships: ``PYTHONPATH=data python -m draw_streets``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from draw_streets.scene import draw_scene
from mxopt.data.annotations import mask_boxes, write_annotation
from mxopt.data.sources import STAND_IN_MARK

COUNT = 48
_MARK_TEXT = """Street scenes drawn by data/draw_streets of mxopt: a stand-in for the Penn-Fudan
pedestrian set in its layout, not photographs. Licence: Apache-2.0.
"""


def scene_names() -> list[str]:
    """Return the names of all scenes, sorted: ``Street00001`` to ``Street00048``."""
    return [f"Street{number:05d}" for number in range(1, COUNT + 1)]


def file_names() -> tuple[str, ...]:
    """Return the names of all files of the stand-in, relative to its folder."""
    scenes = scene_names()
    return (
        STAND_IN_MARK,
        *(f"PNGImages/{name}.png" for name in scenes),
        *(f"PedMasks/{name}_mask.png" for name in scenes),
        *(f"Annotation/{name}.txt" for name in scenes),
    )


def scene(name: str) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return one scene: its image, people and labels (see ``draw_scene``).

    Args:
        name: of the scene, from :func:`scene_names`.
    """
    return draw_scene(seed=scene_names().index(name) + 1)


def generate(folder: str | Path) -> None:
    """Write the whole stand-in into a folder.

    Args:
        folder: the folder; it is created if necessary, and files of the same name are replaced.

    Raises:
        OSError: the folder cannot be written to.
    """
    from PIL import Image

    folder = Path(folder)
    for part in ("PNGImages", "PedMasks", "Annotation"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    for name in scene_names():
        image, people, labels = scene(name)
        Image.fromarray(image).save(folder / "PNGImages" / f"{name}.png")
        Image.fromarray(people).save(folder / "PedMasks" / f"{name}_mask.png")
        boxes = mask_boxes(people)
        write_annotation(folder, name, image.shape, list(zip(labels, boxes.values())))
    (folder / STAND_IN_MARK).write_text(_MARK_TEXT, encoding="utf-8")
