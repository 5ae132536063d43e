"""Which weights are pruned, and how many at which time."""

from __future__ import annotations

from collections.abc import Iterable

from mxnet import gluon, nd


def mask(weight: nd.NDArray, share: float) -> nd.NDArray:
    """Return 0 for the smallest weights of an array and 1 for the others, in the weight's shape.

    Args:
        weight: an array of any shape.
        share: share of the weights that are pruned, from 0 to 1; rounded to whole weights.
    """
    size = abs(weight).reshape((-1,))
    count = round(share * len(size))
    if count == 0:
        return nd.ones_like(weight)
    smallest = nd.topk(size, k=count, ret_typ="mask", is_ascend=True)
    return (1 - smallest).reshape(weight.shape)


def scheduled(progress: float, begin: float, end: float, final: float) -> float:
    """Return the share of weights that are pruned at a time: fast at first, slowly at the end.

    final + (0 - final) (1 - p)^3, where p grows from 0 at ``begin`` to 1 at ``end`` (Zhu and Gupta,
    "To prune, or not to prune", 2017, equation 1).

    >>> [round(scheduled(epoch, 1, 3, 0.8), 3) for epoch in (0, 1, 2, 3, 9)]
    [0.0, 0.0, 0.7, 0.8, 0.8]

    Args:
        progress: trained epochs, with a fraction.
        begin: epoch at which pruning begins.
        end: epoch at which the final share is reached.
        final: the final share.
    """
    done = min(1.0, max(0.0, (progress - begin) / (end - begin)))
    return final * (1 - (1 - done) ** 3)


def share_of_zeros(parameters: Iterable[gluon.Parameter]) -> float:
    """Return the share of zeros among all elements of parameters.

    Args:
        parameters: initialised parameters.
    """
    arrays = [parameter.list_data()[0].asnumpy() for parameter in parameters]
    return sum((array == 0).sum() for array in arrays) / sum(array.size for array in arrays)
