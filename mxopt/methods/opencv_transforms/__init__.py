"""OpenCV transforms: prepare images in the arrays' own memory, without MXNet's operators."""

from mxopt.core.errors import PlanError
from mxopt.methods.method import Method, exports


class OpenCVTransforms(Method):
    """Replaces the recipe's transform by its OpenCV version."""

    switches = ("transforms",)

    def transform(self, run, transform):
        """Return the transform that ``plan.transforms`` asks for.

        Raises:
            PlanError: the plan asks for OpenCV, and the recipe's transform has no such version.
        """
        return select(transform, run.plan)


def select(transform, plan):
    """Return the transform that a plan asks for.

    Args:
        transform: the recipe's transform. For ``transforms="opencv"`` it needs a method
            ``opencv()``, which returns a transform with the same results.
        plan: the switches, for ``transforms``.

    Raises:
        PlanError: ``transforms`` is ``opencv``, and the transform has no method ``opencv``.
    """
    if plan.transforms == "gluon":
        return transform
    if not hasattr(transform, "opencv"):
        name = getattr(transform, "__name__", type(transform).__name__)
        raise PlanError(
            f"transforms={plan.transforms!r} needs a transform with a method opencv(), as "
            f"mxopt.recipes.segmentation.transform.Transform has; {name} has none: "
            "take transforms='gluon'"
        )
    return transform.opencv()


__getattr__ = exports(__name__, resize_and_crop="arrays", normalize="arrays")
