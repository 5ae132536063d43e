"""Cross-entropy against smoothed labels."""

from __future__ import annotations

from collections.abc import Callable

from mxnet import nd


def uniform_cross_entropy(scores: nd.NDArray) -> nd.NDArray:
    """Return the cross-entropy with a uniform target, a mean over classes and positions.

    Args:
        scores: scores before the softmax, shape (samples, classes, ...).

    Returns:
        Losses of shape (samples,).
    """
    return -nd.log_softmax(scores, axis=1).mean(axis=0, exclude=True)


def smoothed(loss: Callable, smoothing: float) -> Callable:
    """Return a cross-entropy loss with smoothed labels (Szegedy et al., 2016, section 7).

    The target ``(1 - s) one_hot + s / classes`` makes the loss ``(1 - s) loss + s uniform``.

    Args:
        loss: ``loss(output, *labels)`` -> cross-entropies of shape (samples, ...), which are
            averaged over positions.
        smoothing: the share s, in [0, 1).
    """

    def with_smoothing(output, *labels):
        scores = output[0] if isinstance(output, (list, tuple)) else output
        hard = loss(output, *labels)
        hard = hard.reshape((len(hard), -1)).mean(axis=1)
        return (1 - smoothing) * hard + smoothing * uniform_cross_entropy(scores)

    return with_smoothing
