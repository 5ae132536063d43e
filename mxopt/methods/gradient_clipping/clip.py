"""Clipping by norm, on the device and without synchronisation."""

from mxnet import gluon, nd


def clip_by_norm(gradients: list[nd.NDArray], max_norm: float) -> None:
    """Scale gradients in place so that their joint L2 norm is at most ``max_norm``.

    ``gluon.utils.clip_global_norm`` reads the norm into Python, which waits for the device in every
    step; here the factor stays on the device. The squares are summed in float32: finite gradients
    whose squared norm exceeds 3.4e38 are scaled to zero, and a NaN makes all gradients NaN.

    Args:
        gradients: gradients on one device, of any shapes and dtypes.
        max_norm: largest norm allowed.
    """
    singles = [g.astype("float32", copy=False) for g in gradients]
    norm = nd.multi_sum_sq(*singles, num_arrays=len(singles)).sum().sqrt()
    factor = nd.broadcast_minimum(max_norm / (norm + 1e-12), nd.ones_like(norm))
    for gradient in gradients:
        gradient *= factor.astype(gradient.dtype)


def clip_gradients(trainer: gluon.Trainer, max_norm: float) -> None:
    """Clip the gradients of a trainer's parameters on each of its devices.

    Args:
        trainer: trainer made with ``update_on_kvstore=False``, whose gradients are summed already
            (``allreduce_grads``).
        max_norm: largest norm allowed.
    """
    for index in range(len(trainer._contexts)):
        parameters = (p for p in trainer._params if p.grad_req != "null")
        clip_by_norm([p.list_grad()[index] for p in parameters], max_norm)
