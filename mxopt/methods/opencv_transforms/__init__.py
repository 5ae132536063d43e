"""OpenCV transforms: prepare images in the arrays' own memory, without MXNet's operators."""

from mxopt import kernels
from mxopt.core.errors import PlanError
from mxopt.methods.method import Method, exports


class OpenCVTransforms(Method):
    """Replaces the recipe's transform by its OpenCV version."""

    switches = ("transforms",)

    def transform(self, run, transform):
        """Return the transform that ``plan.transforms`` asks for; see :func:`select`."""
        return select(transform, run.plan)


def select(transform, plan):
    """Return the transform that a plan asks for.

    Args:
        transform: the recipe's transform. For another value than ``gluon`` it needs a method of
            that name, which returns a transform with the same results.
        plan: the switches, for ``transforms``.

    Raises:
        PlanError: the transform has no such method.
        DeviceError: ``transforms`` is ``kernels``, which cannot be compiled or loaded here.
    """
    if plan.transforms == "gluon":
        return transform
    if not hasattr(transform, plan.transforms):
        name = getattr(transform, "__name__", type(transform).__name__)
        raise PlanError(
            f"transforms={plan.transforms!r} needs a transform with a method {plan.transforms}(), "
            f"as mxopt.recipes.segmentation.transform.Transform has; {name} has none: "
            "take transforms='gluon'"
        )
    if plan.transforms == "kernels":
        kernels.load()  # before worker processes are forked
    return getattr(transform, plan.transforms)()


__getattr__ = exports(__name__, resize_and_crop="arrays", normalize="arrays")
