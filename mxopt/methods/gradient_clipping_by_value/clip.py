"""Clipping by value, on the device and without waiting for it."""

from mxnet import nd


def clip_by_value(gradients: list[nd.NDArray], bound: float) -> None:
    """Bring every number of the gradients into [-bound, bound], in place.

    Args:
        gradients: arrays of any shapes, dtypes and devices. A NaN stays one.
        bound: the largest absolute value allowed.
    """
    for gradient in gradients:
        nd.clip(gradient, -bound, bound, out=gradient)
