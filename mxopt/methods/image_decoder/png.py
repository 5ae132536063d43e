"""Decode PNG files of 8 bits a channel with kornia-rs; everything else is left to Pillow."""

from __future__ import annotations

import struct

import numpy as np
from kornia_rs import io

_BEGIN = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
# Width, height, bits, type of colour, compression, filter, and whether it is interlaced.
_HEADER = struct.Struct(">IIBBBBB")
_COLOUR_TYPES = {1: 0, 3: 2}  # of the PNG format: grey; red, green and blue
_MODES = {1: "mono", 3: "rgb"}
# A header with more pixels than any photograph has is left to Pillow, which refuses it.
_PIXELS = 1 << 26


def decode_png(content: bytes, channels: int) -> np.ndarray | None:
    """Return the pixels of a PNG file that has 8 bits a channel.

    Args:
        content: the whole file.
        channels: 3 for red, green and blue, 1 for grey.

    Returns:
        (H, W, channels) uint8, the numbers that Pillow returns. None for a file of another format,
        with other channels or interlaced; and for a damaged one, which kornia-rs knows by the
        checksum of each chunk: Pillow then says what is wrong.
    """
    if not content.startswith(_BEGIN) or len(content) < len(_BEGIN) + _HEADER.size:
        return None
    width, height, *kind = _HEADER.unpack_from(content, len(_BEGIN))
    if kind != [8, _COLOUR_TYPES[channels], 0, 0, 0] or width * height > _PIXELS:
        return None
    try:
        return io.decode_image_png_u8(content, (height, width), _MODES[channels])
    except Exception:  # it raises nothing more special
        return None
