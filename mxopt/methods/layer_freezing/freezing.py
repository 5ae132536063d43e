"""Frozen stages: the part of a network that is not trained runs in preprocessing.

Fine-tuning often changes the first stages of a network little, because they detect edges and
textures. ``plan.freeze_stages`` keeps the weights of that many stages. Their output for a sample is
then the same in every epoch, so they are appended to the transform: with ``preprocess="cached"`` or
``"device"`` they compute each sample once, and their outputs are kept.

Because they are not trained, ``hybridize="fused"`` can use oneDNN's graph fusion for them, which
combines convolution, bias, activation and sum in one kernel (``HybridBlock.optimize_for``). It
needs a CPU and gives the same numbers up to rounding.

When to use it: the network has weights from a similar task. What it costs: frozen stages cannot
adapt, so compare the quality; and augmentation must be applied before them.
"""

from __future__ import annotations

from collections.abc import Callable

from mxnet import autograd, gluon, nd

from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan


def split(net: gluon.Block, stages: int) -> tuple[gluon.nn.HybridSequential, gluon.Block]:
    """Split a network into its first stages and the rest, which share its parameters.

    Args:
        net: a network of the form ``head(stages(x))``: ``net.stages`` is a sequence of blocks,
            ``net.head`` a block.
        stages: number of stages in the first part.

    Raises:
        PlanError: the network is not of that form, or has fewer stages.
    """
    found = getattr(net, "stages", None)
    if found is None or not hasattr(net, "head") or getattr(net, "mirrored", False):
        raise PlanError(
            f"freeze_stages={stages} needs a network of stages and a head; {type(net).__name__} "
            "cannot be split in this configuration: take freeze_stages=0, or "
            "deeplab_mobilenetv2 with padding='grid'"
        )
    if not 0 < stages <= len(found):
        raise PlanError(
            f"freeze_stages={stages} must be 1 to {len(found)}, the number of stages of the network"
        )
    front, rest = gluon.nn.HybridSequential(prefix=""), gluon.nn.HybridSequential(prefix="")
    front.add(*found[:stages])
    rest.add(*found[stages:], net.head)
    return front, rest


def preprocessing(front: gluon.HybridBlock, transform: Callable, plan: Plan) -> Callable:
    """Return the transform followed by the frozen stages.

    Args:
        front: the frozen stages.
        transform: converts the arrays of a raw sample to (image, labels...), without a batch axis.
        plan: the switches, for ``hybridize``.

    Returns:
        A transform that returns the output of the stages, without a batch axis, in place of the
        image and on its context. The stages run there, or on their first context if they have no
        weights there.
    """
    [first, *_] = front.collect_params().values()
    static = plan.hybridize in ("static", "fused")
    options = {"static_alloc": static, "static_shape": static}
    compiled = plan.hybridize == "no"

    def with_stages(*sample):
        nonlocal compiled
        image, *labels = transform(*sample)
        places = first.list_ctx()
        place = image.context if image.context in places else places[0]
        batch = image.as_in_context(place).expand_dims(0)
        with autograd.pause():
            if not compiled and plan.hybridize == "fused":
                front.optimize_for(batch, backend="MKLDNN", **options)
            elif not compiled:
                front.hybridize(**options)
            compiled = True
            # Squeezed, not indexed: an index is a view, which oneDNN's layout does not support.
            kept = nd.squeeze(front(batch), axis=0)
            return (kept.as_in_context(image.context), *labels)

    return with_stages
