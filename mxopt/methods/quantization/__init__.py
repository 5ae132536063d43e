"""Quantisation: compute a trained network in 8-bit integers."""

from mxopt.methods.method import Method, exports


class Quantization(Method):
    """A step of deployment, without a switch of the plan: training is not changed."""

    options = {"mxopt.chapter.deployment:inference": ("form",)}


_QUANTIZE = ("CALIBRATIONS", "calibrated", "quantize")
__getattr__ = exports(
    __name__,
    **dict.fromkeys(_QUANTIZE, "convert"),
    **dict.fromkeys(("load_int8", "save_int8"), "packed"),
    **dict.fromkeys(("dequantized", "to_int8"), "by_hand"),
)
__all__ = [
    "CALIBRATIONS", "Quantization", "calibrated", "dequantized", "load_int8", "quantize",
    "save_int8", "to_int8",
]  # fmt: skip
