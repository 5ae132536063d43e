"""Read and check the text annotations of Penn-Fudan (PASCAL Annotation Version 1.00).

One text file per image: its size, and for every pedestrian a label and a bounding box. Boxes are
``(x_min, y_min, x_max, y_max)`` in pixels, counted from 1, both ends included, as in the files.
The masks say the same thing by pixels: pedestrian k is where the mask equals k.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mxopt.core.errors import DataError

Box = tuple  # (x_min, y_min, x_max, y_max), whole pixels from 1, ends included.

# Nine digits at most: a damaged file may claim numbers that Python itself refuses to read.
_SIZE = re.compile(
    r"^Image size \(X x Y x C\)\s*:\s*(\d{1,9})\s*x\s*(\d{1,9})\s*x\s*(\d{1,9})\b", re.MULTILINE
)
_COUNT = re.compile(r"^Objects with ground truth\s*:\s*(\d{1,9})\b", re.MULTILINE)
_BOX = re.compile(
    r'^Bounding box for object (\d{1,9}) "([^"]*)" \(Xmin, Ymin\) - \(Xmax, Ymax\)\s*:'
    r"\s*\((\d{1,9}),\s*(\d{1,9})\)\s*-\s*\((\d{1,9}),\s*(\d{1,9})\)",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Pedestrian:
    """One annotated person: the number its pixels have in the mask, its label, its box."""

    number: int
    label: str
    box: Box


@dataclass(frozen=True)
class Annotation:
    """One image's annotation: width and height in pixels, channels, and its pedestrians."""

    width: int
    height: int
    channels: int
    pedestrians: tuple[Pedestrian, ...]


def read_annotation(path: str | Path) -> Annotation:
    """Read one annotation file.

    Raises ``DataError`` naming the file if it cannot be read, lacks the image size or the number of
    objects, or announces another number of objects than it describes.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8", errors="strict")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"The annotation {path} cannot be read ({error}).") from error
    size, count = _SIZE.search(text), _COUNT.search(text)
    if size is None or count is None:
        lacking = "image size" if size is None else "number of objects"
        raise DataError(f"{path} is not a PASCAL 1.00 annotation: it states no {lacking}.")
    pedestrians = tuple(
        Pedestrian(int(number), label, tuple(int(edge) for edge in box))
        for number, label, *box in _BOX.findall(text)
    )
    if len(pedestrians) != int(count.group(1)):
        raise DataError(
            f"{path} announces {count.group(1)} objects and describes {len(pedestrians)}: "
            "the file is cut off or was edited."
        )
    return Annotation(*(int(number) for number in size.groups()), pedestrians)


def write_annotation(
    root: str | Path, name: str, shape: tuple[int, int, int], pedestrians: list[tuple[str, Box]]
) -> None:
    """Write ``root/Annotation/NAME.txt`` for an image of ``shape`` (H, W, C).

    ``pedestrians`` are (label, box), the first one being number 1 in the mask.
    """
    height, width, channels = shape
    labels = " ".join(f'"{label}"' for label, _ in pedestrians)
    lines = [
        "# Compatible with PASCAL Annotation Version 1.00",
        f'Image filename : "PNGImages/{name}.png"',
        f"Image size (X x Y x C) : {width} x {height} x {channels}",
        f"Objects with ground truth : {len(pedestrians)} {{ {labels} }}",
        "# Top left pixel co-ordinates : (1, 1)",
    ]
    for number, (label, (left, top, right, bottom)) in enumerate(pedestrians, start=1):
        lines += [
            f'# Details for pedestrian {number} ("{label}")',
            f'Bounding box for object {number} "{label}" (Xmin, Ymin) - (Xmax, Ymax) : '
            f"({left}, {top}) - ({right}, {bottom})",
            f'Pixel mask for object {number} "{label}" : "PedMasks/{name}_mask.png"',
        ]
    path = Path(root) / "Annotation" / f"{name}.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def mask_boxes(mask: np.ndarray) -> dict[int, Box]:
    """Return the box of every pedestrian in an instance mask (H, W), integer, 0 for background."""
    boxes = {}
    for number in np.unique(mask[mask > 0]):
        rows, columns = np.nonzero(mask == number)
        edges = (columns.min(), rows.min(), columns.max(), rows.max())
        boxes[int(number)] = tuple(int(edge) + 1 for edge in edges)
    return boxes


@dataclass(frozen=True)
class Difference:
    """Where one annotation and its mask disagree: ``annotated`` against ``masked``.

    ``pedestrian`` is 0 where the image size differs; a box is None where one side has no such
    pedestrian.
    """

    name: str
    pedestrian: int
    annotated: Box | None
    masked: Box | None

    @property
    def pixels(self) -> float:
        """The largest distance between two matching edges, in pixels (infinite if one is None)."""
        if self.annotated is None or self.masked is None:
            return float("inf")
        return float(max(abs(a - b) for a, b in zip(self.annotated, self.masked)))


def check_annotations(root: str | Path) -> list[Difference]:
    """Compare every annotation under ``root`` with its mask; return all differences, by name.

    Looks at ``Annotation/NAME.txt`` and ``PedMasks/NAME_mask.png``. Raises ``DataError`` naming the
    file if one cannot be read or an annotation has no mask.
    """
    from mxopt.data.images import read_grey

    root = Path(root)
    differences = []
    for path in sorted((root / "Annotation").glob("*.txt")):
        name, annotation = path.stem, read_annotation(path)
        mask = read_grey(root / "PedMasks" / f"{name}_mask.png")
        stated, actual = (annotation.width, annotation.height), mask.shape[::-1]
        if stated != actual:
            differences.append(Difference(name, 0, stated, actual))
        annotated = {person.number: person.box for person in annotation.pedestrians}
        masked = mask_boxes(mask)
        for number in sorted(set(annotated) | set(masked)):
            if annotated.get(number) != masked.get(number):
                difference = Difference(name, number, annotated.get(number), masked.get(number))
                differences.append(difference)
    return differences
