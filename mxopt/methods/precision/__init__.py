"""Precision: float32, float16, and automatic mixed precision."""

from mxopt.core.errors import PlanError
from mxopt.methods.method import Method, exports


class Precision(Method):
    """Prepares the network; the training loop calls the other steps of a precision."""

    switches = ("precision", "loss_scale")

    @classmethod
    def check(cls, plan):
        """Refuse a loss scale without automatic mixed precision."""
        if plan.loss_scale is not None and plan.precision not in ("amp", "bfloat16"):
            raise PlanError(
                f"loss_scale={plan.loss_scale:g} belongs to automatic mixed precision, and "
                f"precision={plan.precision!r} has none; set precision='amp' or 'bfloat16', or "
                "leave it out"
            )

    @classmethod
    def weight_copies(cls, plan):
        """Return 1 for float16, whose optimizer keeps a float32 copy of the weights."""
        return int(plan.precision == "float16")

    def network(self, run, net):
        """Cast the network, or check that AMP was started before it was made."""
        return run.precision.prepare(net)


_AMP = ("for_plan", "Float32", "Float16", "Amp", "BFloat16")
_FORMATS = ("FORMATS", "Format", "lost", "rounded")
__getattr__ = exports(__name__, **dict.fromkeys(_AMP, "amp"), **dict.fromkeys(_FORMATS, "formats"))
