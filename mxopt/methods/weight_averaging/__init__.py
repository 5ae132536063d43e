"""Weight averaging: evaluate the mean of the weights of the last steps (SWA)."""

import contextlib

from mxopt.core.errors import PlanError
from mxopt.methods.method import Method, exports


class WeightAveraging(Method):
    """Averages the weights from ``swa_start`` on; training continues with the weights."""

    switches = ("swa_start",)

    def __init__(self):
        self.average = None

    @classmethod
    def check(cls, plan):
        """Refuse a start at or after the end of training."""
        if plan.swa_start is not None and plan.swa_start >= plan.epochs:
            raise PlanError(
                f"swa_start={plan.swa_start} must be less than epochs={plan.epochs}, or no step "
                "is averaged"
            )

    @classmethod
    def weight_copies(cls, plan):
        """Return 2: the mean, and the weights while the mean replaces them."""
        return 0 if plan.swa_start is None else 2

    def before_training(self, run):
        """Make the mean of the trained weights."""
        from mxopt.methods.weight_averaging.averaging import Average

        if run.plan.swa_start is not None:
            self.average = Average(run.learning.collect_params())

    def after_update(self, run):
        """Add the weights to the mean."""
        if self.average and run.progress > run.plan.swa_start:
            self.average.add()

    def evaluating(self, run):
        """Replace the weights by the mean during an evaluation."""
        return self.average.in_place() if self.average else contextlib.nullcontext()

    def after_training(self, run):
        """Replace the weights by the mean."""
        if self.average:
            self.average.put()

    def state(self):
        """Return the number of steps in the mean, and the mean."""
        return ({"steps": self.average.steps}, self.average.means) if self.average else ({}, [])

    def load(self, values, arrays):
        """Restore the mean."""
        if self.average:
            self.average.steps, self.average.means = values["steps"], arrays


__getattr__ = exports(__name__, Average="averaging")
