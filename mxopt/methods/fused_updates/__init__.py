"""Fused updates: all parameters updated by one operator, several elements at a time."""

from mxopt.core.errors import PlanError
from mxopt.methods.method import Method, exports


class FusedUpdates(Method):
    """Checks the switch; :func:`mxopt.train.optimizer.make_trainer` takes the optimizer."""

    switches = ("updates",)

    @classmethod
    def check(cls, plan):
        """Check that there is such an optimizer.

        Raises:
            PlanError: there is none for this optimizer, for float16, or on a GPU.
        """
        fused = plan.updates == "fused"
        if fused and plan.optimizer not in ("sgd", "adam"):
            raise PlanError(
                f"updates='fused' has no operator for optimizer={plan.optimizer!r}; "
                "take sgd or adam, or leave it out"
            )
        if fused and plan.precision == "float16":
            raise PlanError(
                "updates='fused' updates weights in float32, and precision='float16' has "
                "others; leave one of them out"
            )
        if fused and plan.device_kind == "gpu":
            raise PlanError(
                f"updates='fused' is for CPUs; with devices={plan.devices!r} leave it out"
            )


__getattr__ = exports(
    __name__, **dict.fromkeys(("FusedSGD", "FusedAdam", "OPTIMIZERS"), "optimizers")
)
