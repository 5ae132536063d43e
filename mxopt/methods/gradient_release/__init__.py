"""Gradient release: give the memory of each gradient back as soon as its update is done."""

from mxopt.core.errors import PlanError
from mxopt.methods.method import Method, exports


class GradientRelease(Method):
    """Enqueues the release of every gradient behind its update."""

    switches = ("gradients",)

    @classmethod
    def check(cls, plan):
        """Refuse what the memory cannot be given back from, or would be written again at once.

        Raises:
            PlanError: gradients are on a GPU, or the sums of several batches.
        """
        released = plan.gradients == "released"
        if released and plan.device_kind == "gpu":
            raise PlanError(
                f"gradients={plan.gradients!r} gives memory of the host back, and gradients are on "
                f"devices={plan.devices!r}; set gradients='kept'"
            )
        if released and plan.grad_accumulation > 1:
            raise PlanError(
                f"gradients={plan.gradients!r} with grad_accumulation={plan.grad_accumulation}: "
                "sums of gradients are needed from batch to batch; set gradients='kept', or "
                "grad_accumulation=1"
            )

    @classmethod
    def environment(cls, plan):
        """Return the variable that makes every operator of a graph one entry of MXNet's engine.

        By default 15 are one, and no update begins before all of them are computed.
        """
        released = plan.gradients == "released"
        return {"MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN": "1"} if released else {}

    def before_training(self, run):
        """Release what Gluon filled with zeros when it made the gradients."""
        self._release(run, run.learning.collect_params().values())

    def after_update(self, run):
        """Release each gradient when the update has read it."""
        self._release(run, run.trainer._params)

    @staticmethod
    def _release(run, parameters):
        if run.plan.gradients == "released":
            from mxopt.methods.gradient_release.release import give_back

            for parameter in parameters:
                if parameter.grad_req != "null":
                    for gradient in parameter.list_grad():
                        give_back(gradient)


__getattr__ = exports(__name__, give_back="release")
