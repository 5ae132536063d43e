"""Penn-Fudan as a Gluon data set: photographs of streets, and masks of the people in them.

    >>> train = PennFudan("train")               # doctest: +SKIP
    >>> image, mask = train[0]                   # doctest: +SKIP
    >>> image.shape, mask.shape, image.dtype     # doctest: +SKIP
    ((536, 559, 3), (536, 559, 1), numpy.uint8)

The split is the chapter's: names sorted, the first 120 for training, the next 25 for validation,
the last 25 for the test. If the real set is unavailable, a stand-in with the same layout and
proportions takes its place; ``train.location.kind`` says which it is.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mxopt.data.images import Decoder
from mxopt.data.mask_folder import MaskFolder
from mxopt.data.sources import given_folder, locate


class PennFudan(MaskFolder):
    """One split of Penn-Fudan or of its stand-in: sample i is ``(image, mask)``.

    The image is an NDArray (H, W, 3) uint8, red, green and blue; the mask (H, W, 1) uint8, 1 for
    people and 0 elsewhere.

    Args:
        split: ``train``, ``validation`` or ``test``.
        root: a folder in Penn-Fudan's layout; ``None`` takes the one found by
            :func:`mxopt.data.locate`.
        decode: reads images and masks before Pillow does, see :mod:`mxopt.data.images`.

    Attributes:
        location: where the files were found.

    Raises:
        DataError: as for :class:`~mxopt.data.mask_folder.MaskFolder`.
    """

    def __init__(self, split: str, root: str | Path | None = None, decode: Decoder | None = None):
        self.location = locate("penn-fudan") if root is None else given_folder("penn-fudan", root)
        super().__init__(self.location.path, split, 2, "PNGImages", "PedMasks", "_mask", decode)

    def class_numbers(self, stored: np.ndarray) -> np.ndarray:
        """Return 1 for people and 0 elsewhere; in the files every pedestrian has a number."""
        return (stored > 0).view(np.uint8)
