"""Label smoothing: train on targets that leave every class a little."""

from mxopt.core.errors import PlanError
from mxopt.methods.method import Method, exports


class LabelSmoothing(Method):
    """Wraps the loss that is trained; validation and test have the recipe's own."""

    switches = ("label_smoothing",)

    @classmethod
    def check(cls, plan):
        """Refuse targets that no longer prefer the labelled class."""
        if plan.label_smoothing >= 1:
            raise PlanError(f"label_smoothing={plan.label_smoothing} must be less than 1")

    def loss(self, run, loss):
        """Return the smoothed loss.

        Raises:
            PlanError: the recipe's losses are of tokens, computed within its network.
        """
        smoothing = run.plan.label_smoothing
        if not smoothing:
            return loss
        if run.recipe.unit != "sample":
            raise PlanError(
                f"label_smoothing={smoothing} needs a network that puts out class scores, and that "
                f"of {run.recipe.name} puts out losses; take the option smoothing={smoothing}"
            )
        from mxopt.methods.label_smoothing.smoothing import smoothed

        return smoothed(loss, smoothing)


__getattr__ = exports(__name__, smoothed="smoothing", uniform_cross_entropy="smoothing")
