"""Magnitude pruning: set the smallest weights to zero while training."""

from mxopt.core.errors import PlanError
from mxopt.methods.method import Method, exports

# How often the weights that are zero are chosen anew while their share grows.
TIMES = 20


class Pruning(Method):
    """Sets a growing share of each layer's weights to zero, and keeps them there."""

    switches = ("sparsity", "prune_from", "prune_until")

    def __init__(self):
        self.weights, self.masks, self.chosen = [], [], -1

    @classmethod
    def check(cls, plan):
        """Refuse a share of 1 or more, and a schedule that does not end within the training."""
        if plan.sparsity >= 1:
            raise PlanError(
                f"sparsity={plan.sparsity} must be below 1, such as 0.75 for three quarters"
            )
        if plan.sparsity and not plan.prune_from < _until(plan) <= plan.epochs:
            raise PlanError(
                f"pruning from epoch {plan.prune_from} until epoch {_until(plan)} does not end "
                f"within epochs={plan.epochs}; change prune_from or prune_until"
            )

    @classmethod
    def weight_copies(cls, plan):
        """Return 1, for the masks."""
        return 1 if plan.sparsity else 0

    def before_training(self, run):
        """Find the weights that are pruned: those of layers, without biases and norms."""
        if run.plan.sparsity:
            found = run.learning.collect_params().values()
            self.weights = [p for p in found if p.grad_req != "null" and len(p.shape) > 1]

    def after_update(self, run):
        """Choose the weights that are zero, from time to time, and set them to zero."""
        if not self.weights:
            return
        from mxopt.methods.pruning import magnitude

        plan = run.plan
        begin, end = plan.prune_from, _until(plan)
        turn = int(TIMES * min(1.0, max(0.0, (run.progress - begin) / (end - begin))))
        if turn > self.chosen:
            share = magnitude.scheduled(run.progress, begin, end, plan.sparsity)
            self.masks = [magnitude.mask(p.list_data()[0], share) for p in self.weights]
            self.chosen = turn
        for parameter, mask in zip(self.weights, self.masks):
            for weight in parameter.list_data():
                weight *= mask.as_in_context(weight.context).astype(weight.dtype, copy=False)

    def state(self):
        """Return when the masks were chosen, and the masks."""
        return {"chosen": self.chosen}, list(self.masks)

    def load(self, values, arrays):
        """Restore the masks."""
        self.chosen, self.masks = values["chosen"], arrays


def _until(plan) -> float:
    """Return the epoch in which the schedule ends: half of the training if the plan has none."""
    return plan.epochs / 2 if plan.prune_until is None else plan.prune_until


_MODULES = {
    "load_pruned": "stored",
    "mask": "magnitude",
    "save_pruned": "stored",
    "scheduled": "magnitude",
    "share_of_zeros": "magnitude",
}
__getattr__ = exports(__name__, **_MODULES)
__all__ = ["Pruning", "load_pruned", "mask", "save_pruned", "scheduled", "share_of_zeros"]
