"""Optimizer aggregation: how many parameters one call of an optimizer's operator updates."""

from mxopt.core.errors import PlanError
from mxopt.methods.method import Method

# MXNet's own limit for LAMB; the operators of SGD take 60.
MOST = 45


class OptimizerAggregation(Method):
    """Sets the number of parameters that SGD, LARS and LAMB update in one call."""

    switches = ("aggregation",)

    @classmethod
    def check(cls, plan):
        """Check the number, and that the optimizer has such calls.

        Raises:
            PlanError: the number is larger than MXNet takes, or the optimizer is Adam.
        """
        if plan.aggregation is None:
            return
        if plan.aggregation > MOST:
            raise PlanError(f"aggregation={plan.aggregation} is more than MXNet takes; the largest "
                            f"is {MOST}")  # fmt: skip
        if plan.optimizer == "adam" and plan.updates == "mxnet":
            raise PlanError(
                f"aggregation={plan.aggregation} does nothing with optimizer=adam, which updates "
                "one parameter at a time; leave it out, or take updates='fused', sgd, lars or "
                "lamb"
            )

    @classmethod
    def environment(cls, plan):
        """Return the variable that MXNet's optimizers read when they are made."""
        if plan.aggregation is None:
            return {}
        return {"MXNET_OPTIMIZER_AGGREGATION_SIZE": str(plan.aggregation)}
