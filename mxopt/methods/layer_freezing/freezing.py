"""Frozen stages: what does not learn is preprocessing.

Fine-tuning often changes little in the first stages of a network, which see edges and textures.
``plan.freeze_stages`` keeps the weights of that many stages as they are. What such stages make of a
sample is then the same in every epoch, so they join the transform: with ``preprocess="cached"`` or
``"device"`` they see each sample once, and what is kept are their outputs.

They only ever infer, so ``hybridize="fused"`` may hand them to oneDNN's graph fusion, which joins
convolution, bias, activation and sum in one kernel (``HybridBlock.optimize_for``). That needs a CPU
and gives the same numbers up to rounding.

When to use it: the network comes with weights from a like task. What it costs: frozen stages cannot
adapt, so compare the quality, and augmentation has to happen before them.
"""

from __future__ import annotations

from collections.abc import Callable

from mxnet import autograd, gluon, nd

from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan


def split(net: gluon.Block, stages: int) -> tuple[gluon.nn.HybridSequential, gluon.Block]:
    """Split a network into its first stages and the rest; both share its parameters.

    Args:
        net: a network that is ``head(stages(x))``: ``net.stages`` is a sequence of blocks,
            ``net.head`` a block.
        stages: how many go to the first part.

    Raises:
        PlanError: the network is not of that form, or has no so many stages.
    """
    found = getattr(net, "stages", None)
    if found is None or not hasattr(net, "head") or getattr(net, "mirrored", False):
        raise PlanError(
            f"freeze_stages={stages} needs a network of stages and a head; {type(net).__name__} "
            "as it is set up cannot be split: take freeze_stages=0, or deeplab_mobilenetv2 with "
            "padding='grid'"
        )
    if not 0 < stages <= len(found):
        raise PlanError(
            f"freeze_stages={stages} must be 1 to {len(found)}, the stages of the network"
        )
    front, rest = gluon.nn.HybridSequential(prefix=""), gluon.nn.HybridSequential(prefix="")
    front.add(*found[:stages])
    rest.add(*found[stages:], net.head)
    return front, rest


def preprocessing(front: gluon.HybridBlock, transform: Callable, plan: Plan) -> Callable:
    """Return the transform followed by the frozen stages.

    Args:
        front: the stages.
        transform: turns a raw sample's arrays into (image, labels...), no batch axis.
        plan: how the stages are compiled (``hybridize``).

    Returns:
        A transform that gives the stages' output, no batch axis, in place of the image.
    """
    static = plan.hybridize in ("static", "fused")
    options = {"static_alloc": static, "static_shape": static}
    compiled = plan.hybridize == "no"

    def with_stages(*sample):
        nonlocal compiled
        image, *labels = transform(*sample)
        batch = image.expand_dims(0)
        with autograd.pause():
            if not compiled and plan.hybridize == "fused":
                front.optimize_for(batch, backend="MKLDNN", **options)
            elif not compiled:
                front.hybridize(**options)
            compiled = True
            # Squeezed, not indexed: an index is a view, which oneDNN's own layout does not have.
            return (nd.squeeze(front(batch), axis=0), *labels)

    return with_stages
