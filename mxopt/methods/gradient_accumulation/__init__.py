"""Gradient accumulation: sum the gradients of several batches before one update."""

from mxopt.methods.method import Method


class GradientAccumulation(Method):
    """Makes MXNet add to gradients instead of replacing them; the loop counts the batches."""

    switches = ("grad_accumulation",)

    def before_training(self, run):
        """Set ``grad_req="add"`` on all trained parameters."""
        if run.plan.grad_accumulation > 1:
            for parameter in run.learning.collect_params().values():
                if parameter.grad_req != "null":
                    parameter.grad_req = "add"

    def after_update(self, run):
        """Set the gradients to zero for the next sum."""
        if run.plan.grad_accumulation > 1:
            run.learning.collect_params().zero_grad()
