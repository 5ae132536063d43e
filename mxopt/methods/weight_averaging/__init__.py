"""Weight averaging: evaluate the mean of the weights of the last steps (SWA)."""

import contextlib

from mxopt.core.errors import PlanError
from mxopt.methods.method import Method, exports


class WeightAveraging(Method):
    """Follows the weights from ``swa_start`` on; the loop trains on with the weights themselves."""

    switches = ("swa_start",)

    def __init__(self):
        self.average = None

    @classmethod
    def check(cls, plan):
        """Refuse a start at which training is over."""
        if plan.swa_start is not None and plan.swa_start >= plan.epochs:
            raise PlanError(
                f"swa_start={plan.swa_start} must be less than epochs={plan.epochs}, or no step "
                "is averaged"
            )

    @classmethod
    def weight_copies(cls, plan):
        """Return 2: the mean, and the weights while the mean is in their place."""
        return 0 if plan.swa_start is None else 2

    def before_training(self, run):
        """Look at the weights that learn."""
        from mxopt.methods.weight_averaging.averaging import Average

        if run.plan.swa_start is not None:
            self.average = Average(run.learning.collect_params())

    def after_update(self, run):
        """Take the weights into the mean."""
        if self.average and run.progress > run.plan.swa_start:
            self.average.add()

    def evaluating(self, run):
        """Put the mean in place of the weights for a while."""
        return self.average.in_place() if self.average else contextlib.nullcontext()

    def after_training(self, run):
        """Put the mean in place of the weights."""
        if self.average:
            self.average.put()

    def state(self):
        """Return the number of steps in the mean, and the mean."""
        return ({"steps": self.average.steps}, self.average.means) if self.average else ({}, [])

    def load(self, values, arrays):
        """Put the mean back."""
        if self.average:
            self.average.steps, self.average.means = values["steps"], arrays


__getattr__ = exports(__name__, Average="averaging")
