"""Resize, crop and normalise images and masks for segmentation.

On a CPU context this is done by OpenCV and a lookup table in the arrays' own memory, on a GPU by
MXNet's operators. Both give bitwise the same numbers: MXNet itself resizes with OpenCV, and the
table holds what MXNet's operators return for each of the 256 values of a pixel.
"""

from __future__ import annotations

import functools
import os

import cv2
import numpy as np
from mxnet import nd

from mxopt.core.errors import PlanError
from mxopt.data import ndarray_memory as host

_MEAN, _DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_NEAREST, _BILINEAR = cv2.INTER_NEAREST, cv2.INTER_LINEAR  # 0 and 1, for MXNet as well

# Loader workers already use all cores; MXNet limits its own OpenCV in the same way.
os.register_at_fork(after_in_child=lambda: cv2.setNumThreads(0))


def check_side(name: str, side: int) -> None:
    """Check that images can have a side of this length.

    Args:
        name: name of the option, for the error message.
        side: length in pixels.

    Raises:
        PlanError: the side is not a multiple of 16, or less than 16.
    """
    if side < 16 or side % 16:
        raise PlanError(f"{name}={side} must be a multiple of 16, at least 16")


class Transform:
    """Resize the shorter side, crop the centre, normalise; on the context the arrays are on.

    A class and not a closure, because loader workers need to pickle it. It has two steps:
    :meth:`compact` must be done image by image; :meth:`expand` can be done on a whole batch, and
    its results take four times the memory.

    Args:
        size: side of the square that images are cropped to, in pixels.
        fixed: name of the network if it accepts one size only, else empty.

    Attributes:
        size: as above.
    """

    def __init__(self, size: int, fixed: str = ""):
        self.size, self._fixed = size, fixed

    def resized(self, size: int) -> Transform:
        """Return the transform for another side (progressive resizing).

        Args:
            size: side in pixels, a multiple of 16.

        Raises:
            PlanError: the network accepts one size only, or the side is not a multiple of 16.
        """
        if self._fixed:
            raise PlanError(
                f"progressive_resizing={size}: {self._fixed} takes one size only; leave it out"
            )
        check_side("progressive_resizing", size)
        return Transform(size)

    def __call__(self, image, mask):
        """Resize, crop and normalise one sample.

        Args:
            image: (height, width, 3) uint8.
            mask: (height, width, 1) uint8, class numbers.

        Returns:
            The image (3, size, size) float32, normalised with ImageNet's mean and standard
            deviation, and the mask (size, size) int32.
        """
        return self.expand(*self.compact(image, mask))

    def compact(self, image, mask):
        """Resize and crop one sample.

        Args:
            image: (height, width, 3) uint8.
            mask: (height, width, 1) uint8.

        Returns:
            The image (size, size, 3) and the mask (size, size), both uint8.
        """
        image, mask = self._square(image, _BILINEAR), self._square(mask, _NEAREST)
        return image, mask.reshape((self.size, self.size))

    @staticmethod
    def expand(images, masks):
        """Normalise images and convert masks, on the context they are on.

        Args:
            images: (..., size, size, 3) uint8.
            masks: (..., size, size) uint8.

        Returns:
            Images (..., 3, size, size) float32 and masks (..., size, size) int32.
        """
        if not host.on_host(masks):
            return normalize(images), masks.astype("int32")
        labels, values = host.empty(masks.shape, np.int32, masks.context)
        values[...] = host.view(masks)
        return normalize(images), labels

    def _square(self, array, interpolation):
        # Nearest neighbour for masks: an interpolated class number would be a different class.
        if host.on_host(array):
            return host.copied(self._cropped(host.view(array), interpolation), array.context)
        array = nd.image.resize(array, size=self.size, keep_ratio=True, interp=interpolation)
        height, width = array.shape[:2]
        left, top = (width - self.size) // 2, (height - self.size) // 2
        return nd.image.crop(array, x=left, y=top, width=self.size, height=self.size)

    def _cropped(self, array, interpolation):
        height, width, channels = array.shape
        shorter = min(height, width)
        sides = self.size * width // shorter, self.size * height // shorter
        array = cv2.resize(array, sides, interpolation=interpolation)
        left, top = ((side - self.size) // 2 for side in sides)
        array = array[top : top + self.size, left : left + self.size]
        return array.reshape((self.size, self.size, channels))


def normalize(images: nd.NDArray) -> nd.NDArray:
    """Normalise images with ImageNet's mean and standard deviation, on the context they are on.

    Args:
        images: (..., height, width, 3) uint8.

    Returns:
        (..., 3, height, width) float32.
    """
    if not host.on_host(images):
        return _by_operators(images)
    *samples, height, width, channels = images.shape
    shape = (*samples, channels, height, width)
    result, planes = host.empty(shape, np.float32, images.context)
    planes = planes.reshape((-1, *shape[-3:]))
    for image, made in zip(host.view(images).reshape((-1, *images.shape[-3:])), planes):
        for row, (plane, target) in enumerate(zip(cv2.split(image), made)):
            cv2.LUT(plane, _table()[row : row + 1], target)
    return result


def _by_operators(images):
    return nd.image.normalize(nd.image.to_tensor(images), mean=_MEAN, std=_DEVIATION)


@functools.lru_cache(None)
def _table() -> np.ndarray:
    """Return the normalised value of each pixel value in each channel, (3, 256) float32."""
    values = np.repeat(np.arange(256, dtype=np.uint8), 3).reshape((1, 256, 3))
    return _by_operators(nd.array(values, dtype="uint8")).asnumpy().reshape((3, 256))
