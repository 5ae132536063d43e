"""Image decoder: PNG files decoded by kornia-rs instead of Pillow."""

from mxopt.core.errors import DeviceError, PlanError
from mxopt.methods.method import Method, exports

DECODERS = ("pillow", "kornia")


class ImageDecoder(Method):
    """Declares the option of the segmentation recipe."""

    options = {"segmentation": ("image_decoder",)}


def find(name: str):
    """Return what reads images before Pillow does, for :class:`mxopt.data.MaskFolder`.

    Args:
        name: ``pillow`` or ``kornia``.

    Returns:
        None for ``pillow``; :func:`mxopt.methods.image_decoder.decode_png` for ``kornia``.

    Raises:
        PlanError: there is no such decoder.
        DeviceError: it is not installed.
    """
    if name not in DECODERS:
        raise PlanError(f"image_decoder={name!r} is not a choice; take {' or '.join(DECODERS)}")
    if name == "pillow":
        return None
    try:
        from mxopt.methods.image_decoder.png import decode_png
    except ImportError as error:
        raise DeviceError(
            f"image_decoder='kornia' cannot be used ({error}): pip install 'kornia-rs>=0.2', or "
            "take image_decoder='pillow'"
        ) from None
    return decode_png


__getattr__ = exports(__name__, decode_png="png")
