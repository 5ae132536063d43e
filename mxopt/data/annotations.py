"""Read and check the text annotations of Penn-Fudan (PASCAL Annotation Version 1.00).

One text file per image: its size, and for every pedestrian a label and a bounding box. Boxes are
``(x_min, y_min, x_max, y_max)`` in pixels, counted from 1, both ends included, as in the files.
The masks give the same pedestrians by pixel: pedestrian k is where the mask equals k.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mxopt.core.errors import DataError

Box = tuple  # (x_min, y_min, x_max, y_max), whole pixels from 1, ends included.

# Nine digits at most: a damaged file may have numbers too long for Python to convert.
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
    """One annotated person.

    Attributes:
        number: value of its pixels in the mask.
        label: such as ``PASpersonWalking``.
        box: in pixels.
    """

    number: int
    label: str
    box: Box


@dataclass(frozen=True)
class Annotation:
    """The annotation of one image.

    Attributes:
        width: in pixels.
        height: in pixels.
        channels: number of colour channels.
        pedestrians: in the order of the file.
    """

    width: int
    height: int
    channels: int
    pedestrians: tuple[Pedestrian, ...]


def read_annotation(path: str | Path) -> Annotation:
    """Read one annotation file.

    Args:
        path: of the file.

    Raises:
        DataError: the file cannot be read, lacks the image size or the number of objects, or
            announces another number of objects than it describes; the message names it.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8", errors="strict")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"The annotation {path} cannot be read ({error}): fetch it again."
        ) from error
    size, count = _SIZE.search(text), _COUNT.search(text)
    if size is None or count is None:
        lacking = "image size" if size is None else "number of objects"
        raise DataError(
            f"{path} is not a PASCAL 1.00 annotation: it has no {lacking}; fetch it again."
        )
    pedestrians = tuple(
        Pedestrian(int(number), label, tuple(int(edge) for edge in box))
        for number, label, *box in _BOX.findall(text)
    )
    if len(pedestrians) != int(count.group(1)):
        raise DataError(
            f"{path} announces {count.group(1)} objects and describes {len(pedestrians)}: "
            "the file is cut off or was edited; fetch it again."
        )
    return Annotation(*(int(number) for number in size.groups()), pedestrians)


def write_annotation(
    root: str | Path, name: str, shape: tuple[int, int, int], pedestrians: list[tuple[str, Box]]
) -> None:
    """Write ``root/Annotation/NAME.txt``, the annotation of one image.

    Args:
        root: folder of the data set.
        name: name of the image, without ending.
        shape: of the image, (H, W, C).
        pedestrians: (label, box) of each; the first one is number 1 in the mask.
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
    """Return the box of every pedestrian, by number.

    Args:
        mask: instance mask (H, W), integers, 0 for the background.
    """
    boxes = {}
    for number in np.unique(mask[mask > 0]):
        rows, columns = np.nonzero(mask == number)
        edges = (columns.min(), rows.min(), columns.max(), rows.max())
        boxes[int(number)] = tuple(int(edge) + 1 for edge in edges)
    return boxes


@dataclass(frozen=True)
class Difference:
    """One difference between an annotation and its mask.

    Attributes:
        name: of the image.
        pedestrian: number of the pedestrian; 0 if the image sizes differ.
        annotated: box, or (width, height), in the annotation; ``None`` if it has no such
            pedestrian.
        masked: box, or (width, height), in the mask; ``None`` if it has no such pedestrian.
    """

    name: str
    pedestrian: int
    annotated: Box | None
    masked: Box | None

    @property
    def pixels(self) -> float:
        """The largest distance between two matching edges, in pixels; infinite if one is None."""
        if self.annotated is None or self.masked is None:
            return float("inf")
        return float(max(abs(a - b) for a, b in zip(self.annotated, self.masked)))


def check_annotations(root: str | Path) -> list[Difference]:
    """Compare every annotation of a folder with its mask.

    Reads ``Annotation/NAME.txt`` and ``PedMasks/NAME_mask.png``.

    Args:
        root: folder of the data set.

    Returns:
        All differences, sorted by name.

    Raises:
        DataError: a file cannot be read, or an annotation has no mask; the message names it.
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
