"""Penn-Fudan as a Gluon data set: photographs of streets, and where the people are.

    >>> train = PennFudan("train")               # doctest: +SKIP
    >>> image, mask = train[0]                   # doctest: +SKIP
    >>> image.shape, mask.shape, image.dtype     # doctest: +SKIP
    ((536, 559, 3), (536, 559, 1), numpy.uint8)

The split is the chapter's: names sorted, the first 120 for training, the next 25 for validation,
the last 25 for the test. Where the real set cannot be reached the stand-in takes its place, in the
same layout and the same proportions; ``train.location.kind`` says which it is.
"""

from __future__ import annotations

from pathlib import Path

import mxnet as mx
import numpy as np

from mxopt.datasets.images import read_colour, read_grey
from mxopt.datasets.sources import Location, locate
from mxopt.datasets.streets import STAND_IN_MARK
from mxopt.errors import DataError

SPLITS = ("train", "validation", "test")


def split_names(names: list[str], split: str) -> list[str]:
    """Return the part of ``names`` that belongs to ``split``, after sorting.

    170 names give the chapter's 120, 25 and 25. Another number n keeps those proportions:
    validation and test get the whole part of n * 25 / 170 each and training gets the rest. Raises
    ``DataError`` for another word than ``train``, ``validation`` or ``test``, and for a split
    without a single image.
    """
    if split not in SPLITS:
        raise DataError(f"There is no split {split!r}; there are: {', '.join(SPLITS)}.")
    ordered = sorted(names)
    held_out = len(ordered) * 25 // 170
    train_end = len(ordered) - 2 * held_out
    bounds = {
        "train": (0, train_end),
        "validation": (train_end, train_end + held_out),
        "test": (train_end + held_out, len(ordered)),
    }
    first, last = bounds[split]
    if first == last:
        raise DataError(
            f"The {split} split is empty: {len(ordered)} images are too few for three splits, "
            "at least 7 are needed."
        )
    return ordered[first:last]


def pair_names(root: Path) -> list[str]:
    """Return the sorted names that have both an image and a mask under ``root``.

    Compares the listings of ``PNGImages`` and ``PedMasks`` only, opening nothing. Raises
    ``DataError`` naming the images without a mask or the masks without an image, or a folder that
    is not there.
    """
    for folder in ("PNGImages", "PedMasks"):
        if not (root / folder).is_dir():
            raise DataError(f"The data folder {root} has no sub-folder {folder}.")
    images = {path.stem for path in (root / "PNGImages").glob("*.png")}
    masks = {path.stem[: -len("_mask")] for path in (root / "PedMasks").glob("*_mask.png")}
    for lonely, have, lack in (
        (sorted(images - masks), "image", "mask"),
        (sorted(masks - images), "mask", "image"),
    ):
        if lonely:
            named = ", ".join(lonely[:3]) + (", ..." if len(lonely) > 3 else "")
            raise DataError(
                f"{len(lonely)} {have}{'s' * (len(lonely) > 1)} under {root} without "
                f"{'its' if len(lonely) == 1 else 'their'} {lack}: {named}."
            )
    return sorted(images)


class PennFudan(mx.gluon.data.Dataset):
    """One split of Penn-Fudan or of its stand-in.

    Sample i is ``(image, mask)``: uint8 arrays (H, W, 3), red green blue, and (H, W, 1), 1 where a
    person is and 0 elsewhere. Images differ in size, so crop them before batching. ``names`` are
    the sorted names of the split and ``location`` says where the files come from.

    ``split`` is ``train``, ``validation`` or ``test``; ``root`` is a folder in Penn-Fudan's layout,
    or None to let :func:`mxopt.datasets.locate` find one. Raises ``DataError`` for an unknown or
    empty split and for images and masks that do not pair up; reading a sample raises it, naming the
    file, for a damaged image or a mask of another size than its image.
    """

    def __init__(self, split: str, root: str | Path | None = None):
        if root is None:
            self.location = locate("penn-fudan")
        else:
            made_here = (Path(root) / STAND_IN_MARK).is_file()
            kind = "stand-in" if made_here else "real"
            self.location = Location("penn-fudan", Path(root), kind, "given folder")
        self.names = split_names(pair_names(self.location.path), split)

    def __len__(self):
        """Return the number of images in the split."""
        return len(self.names)

    def __getitem__(self, index):
        """Return sample ``index`` as (image, mask), decoded anew at every call."""
        name, root = self.names[index], self.location.path
        image_path = root / "PNGImages" / f"{name}.png"
        mask_path = root / "PedMasks" / f"{name}_mask.png"
        image, pedestrians = read_colour(image_path), read_grey(mask_path)
        if image.shape[:2] != pedestrians.shape:
            raise DataError(
                f"The mask {mask_path} measures {_size(pedestrians)} pixels and "
                f"its image {image_path} {_size(image)}: they must be equal."
            )
        mask = (pedestrians > 0).astype(np.uint8)[:, :, None]
        return mx.nd.array(image, dtype="uint8"), mx.nd.array(mask, dtype="uint8")


def _size(array: np.ndarray) -> str:
    return f"{array.shape[1]} x {array.shape[0]}"
