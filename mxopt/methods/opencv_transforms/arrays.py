"""Resize, crop and normalise images in the memory of their arrays, with OpenCV and NumPy.

The results are bitwise those of MXNet's operators on a CPU: MXNet itself resizes with OpenCV.
Normalising looks up what MXNet's operators return for each of the 256 values of a pixel, or a
compiled function computes it.
"""

from __future__ import annotations

import functools
import os
from typing import Union

import cv2
import numpy as np
from mxnet import nd

from mxopt import kernels
from mxopt.data import ndarray_memory as host

Array = Union[nd.NDArray, np.ndarray]

# Loader workers already use all cores; MXNet limits its own OpenCV in the same way.
os.register_at_fork(after_in_child=lambda: cv2.setNumThreads(0))


def resize_and_crop(image: Array, size: int, nearest: bool = False) -> Array:
    """Resize the shorter side of an image and crop the centre.

    Args:
        image: (height, width, channels) uint8, on the host; an ``NDArray`` or a NumPy array.
        size: side of the result in pixels.
        nearest: whether to take the nearest pixel instead of interpolating.

    Returns:
        (size, size, channels) uint8: an ``NDArray`` on the image's context, or for a NumPy array
        another one, which may be a part of what was resized.
    """
    array = host.memory(image)
    height, width, channels = array.shape
    shorter = min(height, width)
    sides = size * width // shorter, size * height // shorter
    array = cv2.resize(
        array, sides, interpolation=cv2.INTER_NEAREST if nearest else cv2.INTER_LINEAR
    )
    left, top = ((side - size) // 2 for side in sides)
    square = array[top : top + size, left : left + size].reshape((size, size, channels))
    return square if isinstance(image, np.ndarray) else host.copied(square, image.context)


def normalize(images: Array, mean: tuple, deviation: tuple, compiled: bool = False) -> Array:
    """Scale images to [0, 1], subtract a mean and divide by a standard deviation.

    Args:
        images: (..., height, width, 3) uint8, on the host; an ``NDArray`` or a NumPy array.
        mean: mean of each channel.
        deviation: standard deviation of each channel.
        compiled: whether :func:`mxopt.kernels.normalize` computes it, instead of a table.

    Returns:
        (..., 3, height, width) float32: an ``NDArray`` on the images' context (``mx.cpu()`` if
        that is shared memory), or for a NumPy array another one.

    Raises:
        DeviceError: ``compiled``, and the kernels cannot be compiled or loaded here.
    """
    *samples, height, width, channels = images.shape
    shape = (*samples, channels, height, width)
    if isinstance(images, np.ndarray):
        result = planes = np.empty(shape, np.float32)
    else:
        result, planes = host.empty(shape, np.float32, host.beside(images))
    planes = planes.reshape((-1, *shape[-3:]))
    pixels = host.memory(images).reshape((-1, *images.shape[-3:]))
    if compiled:
        kernels.normalize(pixels, mean, deviation, planes)
        return result
    table = _normalized(mean, deviation)
    for image, made in zip(pixels, planes):
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
