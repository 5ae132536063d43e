"""Resize, crop and normalise images and masks for segmentation, with Gluon's transforms."""

from __future__ import annotations

import numpy as np
from mxnet import nd
from mxnet.gluon.data.vision import transforms

from mxopt.core.errors import PlanError
from mxopt.data import ndarray_memory as host

# Of ImageNet, on whose images the networks' first layers were trained.
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_NEAREST = 0  # as MXNet's operators number it


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

    It has two steps: :meth:`compact` must be done image by image; :meth:`expand` can be done on a
    whole batch, and its results take four times the memory.

    Masks are the same on every device. Images are not: MXNet's bilinear operator maps the corners
    of the image to the corners of the result on a GPU (``align_corners``, ``resize.cu``), and
    OpenCV, which it calls on a CPU, does not.

    Args:
        size: side of the square that images are cropped to, in pixels.
        fixed: name of the network if it accepts one size only, else empty.

    Attributes:
        size: as above.
    """

    def __init__(self, size: int, fixed: str = ""):
        self.size, self._fixed = size, fixed
        crop = transforms.CenterCrop(size)
        self._image = transforms.Compose([transforms.Resize(size, keep_ratio=True), crop])
        # Nearest neighbour for masks: an interpolated class number would be a different class.
        self._mask = transforms.Compose([transforms.Resize(size, True, _NEAREST), crop])
        self._normalize = transforms.Compose(
            [transforms.ToTensor(), transforms.Normalize(MEAN, DEVIATION)]
        )

    def opencv(self) -> Transform:
        """Return the transform that computes the same with OpenCV, in the arrays' memory."""
        return OpenCVTransform(self.size, self._fixed)

    def kernels(self) -> Transform:
        """Return that transform, with images normalised by :mod:`mxopt.kernels`."""
        return CompiledTransform(self.size, self._fixed)

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
        return type(self)(size)

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
        resized = self._mask(mask) if host.on_host(mask) else nearest(mask, self.size)
        return self._image(image), resized.reshape((self.size, self.size))

    def expand(self, images, masks):
        """Normalise images and convert masks, on the context they are on.

        Args:
            images: (..., size, size, 3) uint8.
            masks: (..., size, size) uint8.

        Returns:
            Images (..., 3, size, size) float32 and masks (..., size, size) int32.
        """
        return self._normalize(images), masks.astype("int32")


def nearest(mask: nd.NDArray, size: int) -> nd.NDArray:
    """Resize the shorter side to ``size`` by nearest neighbour and crop the centre.

    For GPUs, where MXNet's resize operator is bilinear only (``resize-inl.h``: "interp should be 1
    for using Resize on GPU"). The results equal those of the operator on a CPU.

    Args:
        mask: (height, width, channels), on any context.
        size: side of the result in pixels.

    Returns:
        An array (size, size, channels) on the mask's context.
    """
    height, width, _ = mask.shape
    shorter = min(height, width)
    for axis, length in enumerate((height, width)):
        resized = length * size // shorter
        begin = (resized - size) // 2
        # As OpenCV's INTER_NEAREST: the scale is inverted twice, and the product rounded down.
        taken = np.arange(begin, begin + size) * (1 / (resized / length))
        index = np.minimum(np.floor(taken), length - 1)
        mask = nd.take(mask, nd.array(index, ctx=mask.context, dtype="int32"), axis=axis)
    return mask


class OpenCVTransform(Transform):
    """The same in the arrays' own memory; with MXNet's operators where arrays are on a GPU.

    It also takes NumPy arrays, and then returns such.
    """

    takes_numpy, compiled = True, False

    def compact(self, image, mask):
        """Resize and crop one sample; see :meth:`Transform.compact`."""
        from mxopt.methods.opencv_transforms.arrays import resize_and_crop

        if not (isinstance(image, np.ndarray) or host.on_host(image)):
            return super().compact(image, mask)
        square = resize_and_crop(mask, self.size, nearest=True)
        return resize_and_crop(image, self.size), square.reshape((self.size, self.size))

    compact.takes_numpy = True

    def expand(self, images, masks):
        """Normalise images and convert masks; see :meth:`Transform.expand`."""
        from mxopt.methods.opencv_transforms.arrays import normalize

        if isinstance(images, np.ndarray):
            return normalize(images, MEAN, DEVIATION, self.compiled), masks.astype(np.int32)
        if not host.on_host(images):
            return super().expand(images, masks)
        labels, values = host.empty(masks.shape, np.int32, host.beside(masks))
        values[...] = host.view(masks)
        return normalize(images, MEAN, DEVIATION, self.compiled), labels

    expand.reads_at_once = True


class CompiledTransform(OpenCVTransform):
    """The same, with images normalised by :mod:`mxopt.kernels` instead of a table."""

    compiled = True
