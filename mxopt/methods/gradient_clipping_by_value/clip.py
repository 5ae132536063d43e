"""Clipping by value, on the device and without synchronisation."""

from mxnet import nd


def clip_by_value(gradients: list[nd.NDArray], bound: float) -> None:
    """Clip every element of the gradients to [-bound, bound], in place; a NaN stays NaN.

    Args:
        gradients: arrays of any shapes and dtypes, on any devices.
        bound: largest absolute value allowed.
    """
    for gradient in gradients:
        nd.clip(gradient, -bound, bound, out=gradient)
