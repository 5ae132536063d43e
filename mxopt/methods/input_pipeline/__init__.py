"""Input pipeline: where samples are transformed, and where the results are kept."""

from mxopt.core.errors import PlanError
from mxopt.methods.method import Method, exports


class InputPipeline(Method):
    """Declares the switches; the training loop makes the loaders (``loading``)."""

    switches = ("preprocess", "image_dtype", "num_workers", "prefetch")

    @classmethod
    def check(cls, plan):
        """Refuse ``prefetch`` without worker processes."""
        if plan.prefetch is not None and plan.num_workers == 0:
            raise PlanError(
                f"prefetch={plan.prefetch} needs worker processes to load ahead; set num_workers "
                "to at least 1, or leave prefetch out"
            )


__getattr__ = exports(__name__, make_loader="pipeline", HostLoader="loaders", Batch="loaders")
