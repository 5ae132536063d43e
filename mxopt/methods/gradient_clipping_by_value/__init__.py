"""Gradient clipping by value: limit every element of the gradients."""

from mxopt.methods.method import Method, exports


class GradientClippingByValue(Method):
    """Clips the gradients summed over the devices, before the update."""

    switches = ("clip_value",)

    def before_update(self, run, size):
        """Limit the elements of the gradient, divided by the number of samples."""
        if run.plan.clip_value is not None:
            from mxopt.methods.gradient_clipping_by_value.clip import clip_by_value

            run.precision.unscale(run.trainer)
            for parameter in run.trainer._params:
                if parameter.grad_req != "null":
                    clip_by_value(parameter.list_grad(), run.plan.clip_value * size)


__getattr__ = exports(__name__, clip_by_value="clip")
