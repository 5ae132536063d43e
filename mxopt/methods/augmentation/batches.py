"""Change batches of images, and what belongs to their pixels, with operators of their device."""

from __future__ import annotations

import numpy as np
from mxnet import nd

from mxopt.methods.input_pipeline.wrapped import Wrapped

# At full strength: a half of the images is mirrored; images are shifted by an eighth of a side, as
# 4 of 32 pixels in He et al., "Deep Residual Learning" (2016); contrast and brightness of
# normalised images change by a fifth.
MIRRORED, SHIFT, COLOUR = 0.5, 1 / 8, 0.2


def strength(epoch: int, epochs: int) -> float:
    """Return how strong augmentation is in an epoch: from 0 in the first one up to 1.

    >>> [strength(epoch, 2) for epoch in range(4)]
    [0.0, 0.5, 1.0, 1.0]

    Args:
        epoch: number of the epoch, from 0.
        epochs: number of the first epoch of full strength; 0 for all.
    """
    return min(1.0, epoch / epochs) if epochs else 1.0


def flipped(array: nd.NDArray, chosen: np.ndarray) -> nd.NDArray:
    """Mirror some samples left to right.

    Args:
        array: (samples, ..., width), of any dtype.
        chosen: (samples,) bool, those to mirror.
    """
    condition = nd.array(chosen, ctx=array.context, dtype="float32")
    return nd.where(condition, array.flip(axis=array.ndim - 1), array)


def shifted(array: nd.NDArray, down: int, right: int) -> nd.NDArray:
    """Shift samples; what comes in at a border repeats the border's pixels.

    Args:
        array: (samples, ..., height, width), of any dtype.
        down: pixels, negative for up.
        right: pixels, negative for left.
    """
    for axis, pixels in ((array.ndim - 2, down), (array.ndim - 1, right)):
        length = array.shape[axis]
        index = nd.arange(-pixels, length - pixels, ctx=array.context, dtype="int32")
        array = nd.take(array, index, axis=axis, mode="clip")
    return array


def recoloured(images: nd.NDArray, contrast: np.ndarray, brightness: np.ndarray) -> nd.NDArray:
    """Multiply each image by its contrast, and add its brightness.

    Args:
        images: (samples, channels, height, width), normalised.
        contrast: (samples,) factors.
        brightness: (samples,) summands, in standard deviations of the data set.
    """
    factors, summands = (
        nd.array(values.reshape(-1, 1, 1, 1), ctx=images.context, dtype=images.dtype)
        for values in (contrast, brightness)
    )
    return nd.broadcast_add(nd.broadcast_mul(images, factors), summands)


def augmented(arrays: tuple, inputs: int, kinds: list[str], strength: float = 1.0) -> tuple:
    """Change a batch at random, with NumPy's global generator.

    Labels whose last two dimensions are those of the images, such as masks, are mirrored and
    shifted like them. The shift is the same for the whole batch.

    Args:
        arrays: the images (samples, channels, height, width), further inputs, and the labels.
        inputs: number of arrays that are not labels.
        kinds: ``flip``, ``shift`` and ``colour``, or some of them.
        strength: from 0, nothing changes, to 1.

    Returns:
        The arrays, on the same context.
    """
    images = arrays[0]
    count, height, width = len(images), *images.shape[-2:]
    pixels = [array.ndim > 2 and array.shape[-2:] == (height, width) for array in arrays]

    def everywhere(change):
        return tuple(change(a) if has else a for a, has in zip(arrays, pixels))

    if "flip" in kinds:
        chosen = np.random.uniform(size=count) < MIRRORED * strength
        arrays = everywhere(lambda array: flipped(array, chosen))
    if "shift" in kinds:
        down, right = (
            round(np.random.uniform(-1, 1) * strength * SHIFT * side) for side in (height, width)
        )
        arrays = everywhere(lambda array: shifted(array, down, right))
    if "colour" in kinds:
        contrast, brightness = np.random.uniform(-COLOUR, COLOUR, (2, count)) * strength
        coloured = recoloured(arrays[0], 1 + contrast, brightness)
        arrays = (coloured, *arrays[1:])
    return arrays


class AugmentedBatches(Wrapped):
    """The batches of a loader, changed at random.

    Args:
        loader: a loader of :mod:`mxopt.methods.input_pipeline`.
        inputs: as for :func:`augmented`.
        kinds: as for :func:`augmented`.
        strength: as for :func:`augmented`.
    """

    def __init__(self, loader, inputs: int, kinds: list[str], strength: float):
        super().__init__(loader)
        self._inputs, self._kinds, self._strength = inputs, kinds, strength

    def __iter__(self):
        for batch in self._loader:
            shards = [
                augmented(arrays, self._inputs, self._kinds, self._strength)
                for arrays in batch.shards
            ]
            yield batch._replace(shards=shards)
