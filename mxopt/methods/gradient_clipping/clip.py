"""Clipping by norm, on the device and without synchronisation."""

from __future__ import annotations

from mxnet import gluon, nd

from mxopt import kernels

# Elements whose squares are summed at once. Longer float32 sums lose digits: MXNet's multi_sum_sq,
# which clip_global_norm uses, stops growing at 2 ** 24 and gives 60 million ones a norm 47 % short.
CHUNK = 1 << 20
# Powers of two by which gradients are scaled where their squares would leave float32's range.
DOWN, UP = 2.0**-80, 2.0**80
# Sums of squares above this may have overflowed; bounds below the other may need scaling up.
_LARGE, _SMALL_BOUND = 2.0**120, 2.0**-40


def clip_by_norm(gradients: list[nd.NDArray], max_norm: float, fused: bool = False) -> None:
    """Scale gradients in place so that their joint L2 norm is at most ``max_norm``.

    ``gluon.utils.clip_global_norm`` reads the norm into Python, which waits for the device in every
    step; here the factor stays on the device. Finite gradients are clipped correctly also where
    their squares overflow or underflow float32, up to a norm of 1e38 times ``max_norm``: smaller
    factors lose digits. If any gradient is infinite or NaN, all become NaN.

    Args:
        gradients: gradients on one device, of any shapes and floating dtypes.
        max_norm: largest norm allowed.
        fused: whether to clip them by one operator of :mod:`mxopt.kernels`, which sums squares in
            float64, where all gradients are dense, float32 and on a CPU.

    Raises:
        DeviceError: with ``fused``, if the operator cannot be compiled here.
    """
    if fused and {kernels.kind(gradient) for gradient in gradients} == {kernels.KIND}:
        kernels.load()
        nd.mxopt_clip_by_norm(
            *gradients, out=gradients, arrays=len(gradients), max_norm=float(max_norm)
        )
        return
    squares, factor = _factor(gradients, max_norm, 1.0)
    factor = nd.where(squares < _LARGE, factor, _factor(gradients, max_norm, DOWN)[1])
    if max_norm < _SMALL_BOUND:  # otherwise a norm that underflows is within the bound
        squares, enlarged = _factor(gradients, max_norm, UP)
        factor = nd.where(squares < _LARGE, enlarged, factor)
    for gradient in gradients:
        gradient *= factor.astype(gradient.dtype)


def _factor(gradients, max_norm: float, scale: float) -> tuple[nd.NDArray, nd.NDArray]:
    """Return the sum of squares of the scaled gradients, and what to multiply these by.

    Returns:
        Two float32 arrays of shape (1,). The factor is NaN if the sum is infinite or NaN.
    """
    parts = []
    for gradient in gradients:
        flat = gradient.reshape((-1,))
        for begin in range(0, flat.size, CHUNK):
            chunk = flat[begin : begin + CHUNK].astype("float32", copy=False)
            chunk = chunk if scale == 1 else chunk * scale
            parts.append(nd.dot(chunk, chunk))
    squares = nd.concat(*parts, dim=0).sum()
    factor = nd.broadcast_minimum(
        max_norm * scale / (squares.sqrt() + 1e-30), nd.ones_like(squares)
    )
    return squares, factor + 0 * squares


def clip_gradients(trainer: gluon.Trainer, max_norm: float, fused: bool = False) -> None:
    """Clip the gradients of a trainer's parameters on each of its devices.

    Args:
        trainer: trainer made with ``update_on_kvstore=False``, whose gradients are summed already
            (``allreduce_grads``).
        max_norm: largest norm allowed.
        fused: as for :func:`clip_by_norm`.
    """
    for index in range(len(trainer._contexts)):
        parameters = (p for p in trainer._params if p.grad_req != "null")
        clip_by_norm([p.list_grad()[index] for p in parameters], max_norm, fused)
