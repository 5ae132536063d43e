"""Batched transforms: prepare many samples in one call instead of one after the other."""

from mxopt.core.errors import PlanError
from mxopt.methods.method import Method


class BatchedTransforms(Method):
    """Asks the input pipeline to transform several samples at once where they are kept."""

    switches = ("transform_batch",)

    @classmethod
    def check(cls, plan):
        """Refuse placements that do not transform the whole data set before training."""
        if plan.transform_batch > 1 and plan.preprocess not in ("cached", "device"):
            raise PlanError(
                f"transform_batch={plan.transform_batch} needs samples that are transformed before "
                f"training, and preprocess={plan.preprocess!r} does not keep them so; set "
                "preprocess='cached' or 'device'"
            )

    def transform(self, run, transform):
        """Return the transform as it is, if it can transform several samples at once.

        Raises:
            PlanError: it has no method ``batched``.
        """
        if run.plan.transform_batch > 1 and not hasattr(transform, "batched"):
            name = getattr(transform, "__name__", type(transform).__name__)
            raise PlanError(
                f"transform_batch={run.plan.transform_batch} needs a transform with a method "
                f"batched(), as that of the recipe fashion_mnist has; {name} has none: take "
                "transform_batch=1"
            )
        return transform
