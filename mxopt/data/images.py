"""Decode image files with Pillow, and say which file is at fault where one is."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from mxopt.core.errors import DataError


def read_colour(path: str | Path) -> np.ndarray:
    """Return an image file as uint8 (H, W, 3), red green blue.

    Raises ``DataError`` naming the file if it is missing, cut off or not an image.
    """
    return _decode(path, "RGB")


def read_grey(path: str | Path) -> np.ndarray:
    """Return a mask file's stored values as uint8 (H, W).

    A palette image gives its indices, not its colours, since masks number things. Raises
    ``DataError`` naming the file if it is missing, cut off, not an image, or of another kind.
    """
    return _decode(path, "L")


def _decode(path: str | Path, mode: str) -> np.ndarray:
    # Imported here so that folders can be listed and annotations read without Pillow.
    from PIL import Image, ImageFile, UnidentifiedImageError

    # GluonCV tells Pillow, for the whole process, to fill up what is cut off with grey.
    lenient, ImageFile.LOAD_TRUNCATED_IMAGES = ImageFile.LOAD_TRUNCATED_IMAGES, False
    try:
        content = Path(path).read_bytes()  # at once: Pillow would ask for some hundred pieces
        with Image.open(io.BytesIO(content)) as image:
            image.verify()  # decoding a PNG alone would not look at the checksum of its pixels
        with Image.open(io.BytesIO(content)) as image:
            if mode == "RGB":
                return _pixels(image if image.mode == "RGB" else image.convert("RGB"))
            if image.mode not in ("L", "P", "1"):
                raise DataError(
                    f"The mask {path} has the pixel format {image.mode}: "
                    "one 8-bit channel with numbers is needed."
                )
            return np.asarray(image).astype(np.uint8) if image.mode == "1" else _pixels(image)
    except FileNotFoundError as error:
        raise DataError(f"The image {path} is missing.") from error
    # Pillow answers broken files with SyntaxError and ValueError as well as OSError, and a header
    # that claims more pixels than any photograph has with an error of its own.
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        unknown = isinstance(error, UnidentifiedImageError)  # its text has an address in memory
        said = "no known format" if unknown else error
        raise DataError(
            f"The image {path} cannot be decoded ({said}): it is cut off or not an image, "
            "fetch it again or take it away."
        ) from error
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = lenient


def _pixels(image) -> np.ndarray:
    # np.asarray(image) asks Pillow for the bytes more than once.
    shape = (image.height, image.width, *((3,) if image.mode == "RGB" else ()))
    return np.frombuffer(image.tobytes(), np.uint8).reshape(shape)
