"""Precision: float32, float16, and automatic mixed precision."""

from mxopt.methods.method import Method, exports


class Precision(Method):
    """Prepares the network; the loop calls the rest of a precision's steps by itself."""

    switches = ("precision",)

    @classmethod
    def weight_copies(cls, plan):
        """Return 1 with float16, whose optimizer keeps the weights in float32 as well."""
        return int(plan.precision == "float16")

    def network(self, run, net):
        """Cast, or check that AMP was started before the network was made."""
        return run.precision.prepare(net)


__getattr__ = exports(
    __name__, **dict.fromkeys(("for_plan", "Float32", "Float16", "Amp", "BFloat16"), "amp")
)
