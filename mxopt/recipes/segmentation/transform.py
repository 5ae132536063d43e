"""What a photograph and its mask go through before a network of segmentation sees them.

On a CPU context OpenCV and a table do it in the arrays' own memory, on a GPU MXNet's operators.
Both give the same numbers, bit for bit: OpenCV is what MXNet resizes with, and the table is what
its operators make of each of the 256 values that a pixel can have.
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

# The workers of a loader share the processor already; MXNet does so with its own OpenCV.
os.register_at_fork(after_in_child=lambda: cv2.setNumThreads(0))


def check_side(name: str, side: int) -> None:
    """Make sure that images can have a side of so many pixels.

    Raises:
        PlanError: it is not a multiple of 16.
    """
    if side < 16 or side % 16:
        raise PlanError(f"{name}={side} must be a multiple of 16, at least 16")


class Transform:
    """Resize the shorter side, crop the centre, normalise; on the context the arrays are on.

    A class rather than a closure, so that loader workers can receive it. Its two halves are what
    has to be done image by image (:meth:`compact`) and what can be done to a batch
    (:meth:`expand`), four times as large.
    """

    def __init__(self, size: int, fixed: str = ""):
        self.size, self._fixed = size, fixed

    def resized(self, size: int) -> Transform:
        """Return the transform for another side (progressive resizing).

        Raises:
            PlanError: the network takes one size only, or not that one.
        """
        if self._fixed:
            raise PlanError(
                f"progressive_resizing={size}: {self._fixed} takes one size only; leave it out"
            )
        check_side("progressive_resizing", size)
        return Transform(size)

    def __call__(self, image, mask):
        """Turn an image (height, width, 3) and a mask (height, width, 1), both uint8, into the
        image (3, size, size) float32, normalised with ImageNet's mean and deviation, and the mask
        (size, size) int32."""
        return self.expand(*self.compact(image, mask))

    def compact(self, image, mask):
        """Resize and crop: image (size, size, 3) and mask (size, size), both uint8."""
        image, mask = self._square(image, _BILINEAR), self._square(mask, _NEAREST)
        return image, mask.reshape((self.size, self.size))

    @staticmethod
    def expand(images, masks):
        """Normalise images (..., size, size, 3) into (..., 3, size, size) float32, and make masks
        (..., size, size) int32, where they are."""
        if not host.on_host(masks):
            return normalize(images), masks.astype("int32")
        labels, values = host.empty(masks.shape, np.int32, masks.context)
        values[...] = host.view(masks)
        return normalize(images), labels

    def _square(self, array, interpolation):
        # Nearest neighbour for masks: an interpolated class number would be another class.
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
    """Return images (..., height, width, 3) uint8 as (..., 3, height, width) float32, normalised
    with ImageNet's mean and deviation; on the context they are on."""
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
    """Return what becomes of every value of a pixel in each of the channels, (3, 256)."""
    values = np.repeat(np.arange(256, dtype=np.uint8), 3).reshape((1, 256, 3))
    return _by_operators(nd.array(values, dtype="uint8")).asnumpy().reshape((3, 256))
