"""Gradient clipping by value: bound every number of the gradient."""

from mxopt.methods.method import Method, exports


class GradientClippingByValue(Method):
    """Clips what the devices have summed, before the update."""

    switches = ("clip_value",)

    def before_update(self, run, size):
        """Bound the numbers of the gradient, divided by the number of samples."""
        if run.plan.clip_value is not None:
            from mxopt.methods.gradient_clipping_by_value.clip import clip_by_value

            run.precision.unscale(run.trainer)
            for parameter in run.trainer._params:
                if parameter.grad_req != "null":
                    clip_by_value(parameter.list_grad(), run.plan.clip_value * size)


__getattr__ = exports(__name__, clip_by_value="clip")
