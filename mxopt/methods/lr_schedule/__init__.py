"""Learning-rate schedule: linear warm-up, then a curve."""

from mxopt.core.errors import PlanError
from mxopt.methods.lr_schedule.schedule import learning_rate
from mxopt.methods.method import Method


class LRSchedule(Method):
    """Sets the learning rate of every update."""

    switches = ("schedule", "warmup_epochs")

    @classmethod
    def check(cls, plan):
        """Refuse a warm-up that is not shorter than the training."""
        if plan.warmup_epochs and plan.warmup_epochs >= plan.epochs:
            raise PlanError(
                f"warmup_epochs={plan.warmup_epochs} must be fewer than epochs={plan.epochs}"
            )

    def before_update(self, run, size):
        """Set the learning rate of this update."""
        rate = learning_rate(run.plan, run.update, run.updates_per_epoch)
        run.trainer.set_learning_rate(rate)
