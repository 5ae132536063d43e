"""Fashion-MNIST as a Gluon data set: greyscale images of garments, ten classes, 28 x 28 pixels.

    >>> train = FashionMNIST("train")            # doctest: +SKIP
    >>> image, label = train[0]                  # doctest: +SKIP
    >>> len(train), image.shape, label           # doctest: +SKIP
    (54000, (28, 28, 1), 9)

The published set has no validation split. Here the last tenth of its 60,000 training images, 6,000,
is the validation split, the first 54,000 the training split, and the 10,000 test images the test
split. The stand-in, drawn garments of the same classes, has 1,350, 150 and 500 images.
"""

from __future__ import annotations

import copy
import gzip
import zlib
from pathlib import Path

import numpy as np
from mxnet import gluon, nd

from mxopt.core.errors import DataError
from mxopt.data import ndarray_memory
from mxopt.data.parallel_text import known_split
from mxopt.data.sources import given_folder, locate

CLASSES = (
    "T-shirt/top",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)
VALIDATION_SHARE = 10  # one image in ten of those for training
_FILES = {"train": "train", "validation": "train", "test": "t10k"}


class FashionMNIST(gluon.data.Dataset):
    """One split of Fashion-MNIST: sample i is ``(image, label)``.

    ``image`` is an NDArray (28, 28, 1), uint8, 0 for the background; ``label`` is an int, the index
    of its class in ``CLASSES``.

    Args:
        split: ``train``, ``validation`` or ``test``.
        root: a folder with the four published files; ``None`` takes the one found by
            :func:`mxopt.data.locate`.

    Attributes:
        location: where the files were found.

    Raises:
        DataError: the split is unknown, the data set is unavailable, or a file is damaged.
    """

    def __init__(self, split: str, root: str | Path | None = None):
        stem = known_split(split, _FILES)
        name = "fashion-mnist"
        self.location = locate(name) if root is None else given_folder(name, root)
        images = read_idx(self.location.path / f"{stem}-images-idx3-ubyte.gz")
        labels = read_idx(self.location.path / f"{stem}-labels-idx1-ubyte.gz")
        if images.shape != (len(labels), 28, 28):
            raise DataError(
                f"{self.location.path} has {stem} images of shape {images.shape} and "
                f"{len(labels)} labels; expected ({len(labels)}, 28, 28): fetch it again."
            )
        first = len(labels) - len(labels) // VALIDATION_SHARE  # of the validation split
        rows = {"train": slice(first), "validation": slice(first, None)}.get(split, slice(None))
        self._images, self._labels = images[rows], labels[rows]

    def __len__(self):
        """Return the number of images in the split."""
        return len(self._labels)

    def __getitem__(self, index):
        """Return sample ``index`` as (image, label)."""
        return ndarray_memory.copied(self._images[index][..., None]), int(self._labels[index])

    def rows(self, selection: slice) -> tuple[nd.NDArray, np.ndarray]:
        """Return some samples as two arrays: images (samples, 28, 28, 1) uint8, and labels.

        Args:
            selection: which samples.
        """
        images = np.ascontiguousarray(self._images[selection][..., None])
        return ndarray_memory.copied(images), self._labels[selection].astype("int32")

    def take(self, count: int) -> FashionMNIST:
        """Return a data set of the first samples.

        Args:
            count: number of samples; all of them if there are fewer.
        """
        fewer = copy.copy(self)
        fewer._images, fewer._labels = self._images[:count], self._labels[:count]
        return fewer


def read_idx(path: str | Path) -> np.ndarray:
    """Read a gzip-compressed IDX file of unsigned bytes, the format of MNIST.

    Args:
        path: of the file.

    Returns:
        The file's array, uint8.

    Raises:
        DataError: the file is missing, damaged, or of another format.
    """
    try:
        content = gzip.decompress(Path(path).read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read ({error}): fetch it again.") from error
    # Two zero bytes, the type (8: uint8), the number of dimensions, and each as a big-endian int32.
    dimensions = content[3] if content[:3] == b"\0\0\x08" and len(content) > 3 else 0
    start = 4 + 4 * dimensions
    shape = tuple(np.frombuffer(content[4:start], ">i4").tolist()) if dimensions else ()
    if not shape or len(shape) != dimensions or len(content) - start != np.prod(shape):
        raise DataError(f"{path} is not a complete IDX file of unsigned bytes: fetch it again.")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)
