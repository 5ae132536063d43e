"""Resize, crop and normalise images in the memory of their arrays, with OpenCV and NumPy.

The results are bitwise those of MXNet's operators on a CPU: MXNet itself resizes with OpenCV, and
normalising looks up what MXNet's operators return for each of the 256 values of a pixel.
"""

from __future__ import annotations

import functools
import os

import cv2
import numpy as np
from mxnet import nd

from mxopt.data import ndarray_memory as host

# Loader workers already use all cores; MXNet limits its own OpenCV in the same way.
os.register_at_fork(after_in_child=lambda: cv2.setNumThreads(0))


def resize_and_crop(image: nd.NDArray, size: int, nearest: bool = False) -> nd.NDArray:
    """Resize the shorter side of an image and crop the centre.

    Args:
        image: (height, width, channels) uint8, on the host.
        size: side of the result in pixels.
        nearest: whether to take the nearest pixel instead of interpolating.

    Returns:
        (size, size, channels) uint8, on the image's context.
    """
    array = host.view(image)
    height, width, channels = array.shape
    shorter = min(height, width)
    sides = size * width // shorter, size * height // shorter
    array = cv2.resize(
        array, sides, interpolation=cv2.INTER_NEAREST if nearest else cv2.INTER_LINEAR
    )
    left, top = ((side - size) // 2 for side in sides)
    square = array[top : top + size, left : left + size]
    return host.copied(square.reshape((size, size, channels)), image.context)


def normalize(images: nd.NDArray, mean: tuple, deviation: tuple) -> nd.NDArray:
    """Scale images to [0, 1], subtract a mean and divide by a standard deviation.

    Args:
        images: (..., height, width, 3) uint8, on the host.
        mean: mean of each channel.
        deviation: standard deviation of each channel.

    Returns:
        (..., 3, height, width) float32, on the images' context.
    """
    *samples, height, width, channels = images.shape
    shape = (*samples, channels, height, width)
    result, planes = host.empty(shape, np.float32, images.context)
    planes, table = planes.reshape((-1, *shape[-3:])), _normalized(mean, deviation)
    for image, made in zip(host.view(images).reshape((-1, *images.shape[-3:])), planes):
        for row, (plane, target) in enumerate(zip(cv2.split(image), made)):
            cv2.LUT(plane, table[row : row + 1], target)
    return result


@functools.lru_cache(None)
def _normalized(mean: tuple, deviation: tuple) -> np.ndarray:
    """Return what MXNet's operators make of each value of a pixel, shape (3, 256) float32.

    Args:
        mean: mean of each of three channels.
        deviation: standard deviation of each channel.
    """
    values = nd.array(np.repeat(np.arange(256), 3).reshape((1, 256, 3)), dtype="uint8")
    tensor = nd.image.to_tensor(values)
    return nd.image.normalize(tensor, mean, deviation).asnumpy().reshape((3, 256))
