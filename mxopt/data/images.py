"""Decode image files, with Pillow unless told otherwise; errors name the file."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np

from mxopt.core.errors import DataError

# decode(content, channels) returns uint8 (H, W, channels), or None for what Pillow should read.
Decoder = Callable[[bytes, int], "np.ndarray | None"]


def read_colour(path: str | Path, decode: Decoder | None = None) -> np.ndarray:
    """Return an image file as uint8 (H, W, 3): red, green and blue.

    Args:
        path: of the file.
        decode: tried before Pillow, ``decode(content, 3)``.

    Raises:
        DataError: the file is missing, cut off or not an image; the message names it.
    """
    return _decode(path, "RGB", decode)


def read_grey(path: str | Path, decode: Decoder | None = None) -> np.ndarray:
    """Return the stored values of a mask file as uint8 (H, W).

    A palette image gives its indices and not its colours, because masks hold class numbers.

    Args:
        path: of the file.
        decode: tried before Pillow, ``decode(content, 1)``.

    Raises:
        DataError: the file is missing, cut off, not an image, or not of one 8-bit channel; the
            message names it.
    """
    return _decode(path, "L", decode)


def _decode(path: str | Path, mode: str, decode: Decoder | None) -> np.ndarray:
    # Imported here so that folders can be listed and annotations read without Pillow.
    from PIL import Image, ImageFile, UnidentifiedImageError

    # GluonCV makes Pillow fill missing pixels with grey, for the whole process.
    lenient, ImageFile.LOAD_TRUNCATED_IMAGES = ImageFile.LOAD_TRUNCATED_IMAGES, False
    try:
        with open(path, "rb", buffering=0) as file:
            content = file.readall()  # in one call: Pillow would make some hundred
        pixels = decode(content, len(mode)) if decode else None
        if pixels is not None:
            return pixels if mode == "RGB" else pixels[:, :, 0]
        with Image.open(io.BytesIO(content)) as image:
            image.verify()  # decoding alone does not check the checksum of a PNG's pixels
        with Image.open(io.BytesIO(content)) as image:
            if mode == "RGB":
                return _pixels(image if image.mode == "RGB" else image.convert("RGB"))
            if image.mode not in ("L", "P", "1"):
                raise DataError(
                    f"The mask {path} has the pixel format {image.mode}: "
                    "one 8-bit channel of class numbers is needed; convert it."
                )
            return np.asarray(image).astype(np.uint8) if image.mode == "1" else _pixels(image)
    except FileNotFoundError as error:
        raise DataError(f"The image {path} is missing: add it to its folder.") from error
    # For broken files Pillow raises SyntaxError and ValueError as well as OSError, and another
    # error for a header with more pixels than any photograph has.
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        unknown = isinstance(error, UnidentifiedImageError)  # its text has a memory address
        reason = "no known format" if unknown else error
        raise DataError(
            f"The image {path} cannot be decoded ({reason}): it is cut off or not an image, "
            "fetch it again or remove it."
        ) from error
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = lenient


def _pixels(image) -> np.ndarray:
    # np.asarray(image) makes Pillow produce the bytes more than once.
    shape = (image.height, image.width, *((3,) if image.mode == "RGB" else ()))
    return np.frombuffer(image.tobytes(), np.uint8).reshape(shape)
