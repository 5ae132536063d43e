"""Exponential moving average (EMA) of weights: evaluate an average with decaying old weights."""

from mxopt.core.errors import PlanError
from mxopt.methods.method import exports
from mxopt.methods.weight_averaging import WeightAveraging


class ExponentialMovingAverage(WeightAveraging):
    """Averages the weights from the first update on, with exponential decay."""

    switches = ("ema_decay",)

    @classmethod
    def check(cls, plan):
        """Refuse a decay of 1 or more, and two averages at once."""
        if plan.ema_decay is not None and plan.ema_decay >= 1:
            raise PlanError(f"ema_decay={plan.ema_decay} must be less than 1, such as 0.99")
        if plan.ema_decay is not None and plan.swa_start is not None:
            raise PlanError(
                f"ema_decay={plan.ema_decay} and swa_start={plan.swa_start} both replace the "
                "weights by an average; take one of them"
            )

    @classmethod
    def weight_copies(cls, plan):
        """Return 2: the average, and the weights while the average replaces them."""
        return 0 if plan.ema_decay is None else 2

    def before_training(self, run):
        """Make the average of the trained weights."""
        from mxopt.methods.exponential_moving_average.ema import MovingAverage

        if run.plan.ema_decay is not None:
            self.average = MovingAverage(run.learning.collect_params(), run.plan.ema_decay)

    def after_update(self, run):
        """Update the average with the new weights."""
        if self.average:
            self.average.add()


__getattr__ = exports(__name__, MovingAverage="ema", warm_decay="ema", move="ema")
