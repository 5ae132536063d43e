"""Label smoothing: train on targets that give every class a small probability."""

from mxopt.core.errors import PlanError
from mxopt.methods.method import Method, exports


class LabelSmoothing(Method):
    """Wraps the training loss; validation and test use the recipe's loss."""

    switches = ("label_smoothing",)

    @classmethod
    def check(cls, plan):
        """Refuse a share of 1 or more, which leaves nothing for the labelled class."""
        if plan.label_smoothing >= 1:
            raise PlanError(f"label_smoothing={plan.label_smoothing} must be less than 1")

    def loss(self, run, loss):
        """Return the smoothed loss.

        Raises:
            PlanError: the recipe's network computes the losses, one for each token.
        """
        smoothing = run.plan.label_smoothing
        if not smoothing:
            return loss
        if run.recipe.unit != "sample":
            raise PlanError(
                f"label_smoothing={smoothing} needs a network that returns class scores, and that "
                f"of {run.recipe.name} returns losses; take the option smoothing={smoothing}"
            )
        from mxopt.methods.label_smoothing.smoothing import smoothed

        return smoothed(loss, smoothing)


__getattr__ = exports(__name__, smoothed="smoothing", uniform_cross_entropy="smoothing")
