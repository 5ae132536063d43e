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

import numpy as np

from mxopt.data.mask_folder import MaskFolder
from mxopt.data.sources import given_folder, locate


class PennFudan(MaskFolder):
    """One split of Penn-Fudan or of its stand-in.

    Sample i is ``(image, mask)``: uint8 arrays (H, W, 3), red green blue, and (H, W, 1), 1 where a
    person is and 0 elsewhere. ``location`` says where the files come from.

    ``split`` is ``train``, ``validation`` or ``test``; ``root`` is a folder in Penn-Fudan's layout,
    or None to let :func:`mxopt.data.locate` find one. Raises ``DataError`` as
    :class:`MaskFolder` does.
    """

    def __init__(self, split: str, root: str | Path | None = None):
        self.location = locate("penn-fudan") if root is None else given_folder("penn-fudan", root)
        super().__init__(self.location.path, split, 2, "PNGImages", "PedMasks", "_mask")

    def class_numbers(self, stored: np.ndarray) -> np.ndarray:
        """Every pedestrian has a number of their own; all of them are people."""
        return (stored > 0).astype(np.uint8)
