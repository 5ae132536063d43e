"""A folder of images and a folder of masks as a Gluon data set for segmentation.

    >>> roads = MaskFolder("roads", "train", classes=4)      # doctest: +SKIP
    >>> image, mask = roads[0]                               # doctest: +SKIP

``roads/images`` contains the images (.png, .jpg, .jpeg), ``roads/masks`` a PNG with the same name
and size for each, with one 8-bit channel of class numbers.
"""

from __future__ import annotations

import copy
import os
from pathlib import Path

import mxnet as mx
import numpy as np

from mxopt.core.errors import DataError
from mxopt.data import ndarray_memory
from mxopt.data.images import Decoder, read_colour, read_grey

SPLITS = ("train", "validation", "test")
IMAGE_ENDINGS = (".png", ".jpg", ".jpeg")


def split_names(names: list[str], split: str) -> list[str]:
    """Return the names that belong to a split.

    The names are sorted; training takes the first ones, the test the last ones. 170 names give the
    chapter's 120, 25 and 25. Any other number n is divided in the same proportions: validation and
    test get n * 25 / 170 each, rounded down, and training gets the rest.

    Args:
        names: of all images.
        split: ``train``, ``validation`` or ``test``.

    Raises:
        DataError: there is no such split, or it has no images.
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


def pair_files(
    root: Path, images: str, masks: str, mask_suffix: str = ""
) -> dict[str, tuple[str, str]]:
    """Return the file names (image, mask) by name, sorted by name.

    Only the listings of the two sub-folders are compared; no file is opened.

    Args:
        root: folder of the data set.
        images: name of the sub-folder of images.
        masks: name of the sub-folder of masks.
        mask_suffix: what a mask's name has after its image's name.

    Raises:
        DataError: a sub-folder is missing, an image has no mask or a mask no image; the message
            names them.
    """
    for folder in (images, masks):
        if not (root / folder).is_dir():
            raise DataError(f"The data folder {root} has no sub-folder {folder}: add it.")
    # Names and not paths: paths of tens of thousands of files take seconds and tens of megabytes.
    found_images = {
        stem: stem + ending
        for stem, ending in map(os.path.splitext, os.listdir(root / images))
        if ending.lower() in IMAGE_ENDINGS
    }
    ending = f"{mask_suffix}.png"
    listed = (name for name in os.listdir(root / masks) if name.endswith(ending))
    found_masks = {name[: -len(ending)]: name for name in listed}
    for lonely, have, lack in (
        (sorted(found_images.keys() - found_masks), "image", "mask"),
        (sorted(found_masks.keys() - found_images), "mask", "image"),
    ):
        if lonely:
            named = ", ".join(lonely[:3]) + (", ..." if len(lonely) > 3 else "")
            raise DataError(
                f"{len(lonely)} {have}{'s' * (len(lonely) > 1)} under {root} without "
                f"{'its' if len(lonely) == 1 else 'their'} {lack}: {named}. Add or remove files."
            )
    return {name: (found_images[name], found_masks[name]) for name in sorted(found_images)}


class MaskFolder(mx.gluon.data.Dataset):
    """One split of a folder of images and masks: sample i is ``(image, mask)``.

    The image is an NDArray (H, W, 3) uint8, red, green and blue; the mask (H, W, 1) uint8, the
    class of each pixel. Images may differ in size, so crop them before batching.

    Args:
        root: folder of the data set.
        split: ``train``, ``validation`` or ``test`` (see :func:`split_names`).
        classes: number of classes.
        images: name of the sub-folder of images.
        masks: name of the sub-folder of masks.
        mask_suffix: what a mask's name has after its image's name.
        decode: reads images and masks before Pillow does, see :mod:`mxopt.data.images`.

    Attributes:
        classes: as above.
        names: sorted names of the split.

    Raises:
        DataError: the split is unknown or empty, or an image or a mask has no counterpart. Also
            when a sample is read, if its image is damaged, its mask has another size than its
            image, or a class number is ``classes`` or more; the message names the file.
    """

    def __init__(
        self,
        root: str | Path,
        split: str,
        classes: int,
        images: str = "images",
        masks: str = "masks",
        mask_suffix: str = "",
        decode: Decoder | None = None,
    ):
        self.classes, self._decode = classes, decode
        self._folders = str(Path(root) / images), str(Path(root) / masks)
        pairs = pair_files(Path(root), images, masks, mask_suffix)
        self.names = split_names(list(pairs), split)
        self._pairs = [pairs[name] for name in self.names]
        self._in_numpy = False

    def in_numpy(self) -> MaskFolder:
        """Return the same split with samples of NumPy arrays, which saves a copy of each."""
        split = copy.copy(self)
        split._in_numpy = True
        return split

    def files(self) -> list[tuple[Path, Path]]:
        """Return the paths (image, mask) of all samples, in their order."""
        images, masks = self._folders
        return [(Path(images, image), Path(masks, mask)) for image, mask in self._pairs]

    def __len__(self):
        """Return the number of images in the split."""
        return len(self.names)

    def __getitem__(self, index):
        """Return sample ``index`` as (image, mask), decoded at every call."""
        # As text: making a `Path` takes as long as opening its file.
        image_path, mask_path = map(os.path.join, self._folders, self._pairs[index])
        image = read_colour(image_path, self._decode)
        stored = read_grey(mask_path, self._decode)
        if image.shape[:2] != stored.shape:
            raise DataError(
                f"The mask {mask_path} has {_size(stored)} pixels and "
                f"its image {image_path} {_size(image)}: give them the same size."
            )
        mask = self.class_numbers(stored)
        if mask.max() >= self.classes:
            raise DataError(
                f"The mask {mask_path} has class {mask.max()}: with {self.classes} classes the "
                f"largest is {self.classes - 1}; give the right number of classes."
            )
        sample = image, mask[:, :, None]
        return sample if self._in_numpy else tuple(map(ndarray_memory.copied, sample))

    def class_numbers(self, stored: np.ndarray) -> np.ndarray:
        """Return the classes of a mask, (H, W) uint8; subclasses may convert them.

        Args:
            stored: the values in the file, (H, W) uint8.
        """
        return stored


def _size(array: np.ndarray) -> str:
    return f"{array.shape[1]} x {array.shape[0]}"
