"""Gradient clipping by norm: limit the joint L2 norm of all gradients."""

from mxopt.methods.method import Method, exports


class GradientClipping(Method):
    """Clips the gradients summed over the devices, before the update."""

    switches = ("clip_norm",)

    def before_update(self, run, size):
        """Limit the norm of the gradient, divided by the number of samples."""
        if run.plan.clip_norm is not None:
            from mxopt.methods.gradient_clipping.clip import clip_gradients

            run.precision.unscale(run.trainer)
            fused = run.plan.updates == "fused"
            clip_gradients(run.trainer, run.plan.clip_norm * size, fused)


__getattr__ = exports(__name__, clip_gradients="clip", clip_by_norm="clip")
