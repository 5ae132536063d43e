"""Quantisation: compute a trained network in 8-bit integers, and train it for that."""

from functools import partial

from mxopt.core.errors import PlanError
from mxopt.methods.method import Method, exports
from mxopt.methods.quantization import amx

amx.install()


class Quantization(Method):
    """Integers after training, a step of deployment; and training that sees their rounding."""

    switches = ("simulated_bits", "onednn")
    options = {"mxopt.chapter.deployment:inference": ("form",)}

    @classmethod
    def check(cls, plan):
        """Refuse other bits, and what a graph that is rewritten for rounding would lose."""
        if not plan.simulated_bits:
            return
        if plan.simulated_bits not in range(2, 9):
            raise PlanError(f"simulated_bits={plan.simulated_bits} must be 0, or from 2 to 8")
        if plan.graph_rewrites != "none":
            raise PlanError(
                f"simulated_bits={plan.simulated_bits} rounds the layers of the original graph, "
                f"not those of graph_rewrites={plan.graph_rewrites!r}; set graph_rewrites='none'"
            )
        if plan.precision != "float32":
            raise PlanError(
                f"simulated_bits={plan.simulated_bits} computes in float32 what it has rounded, "
                f"and not in precision={plan.precision!r}; set precision='float32'"
            )

    @classmethod
    def environment(cls, plan):
        """Return the variables of oneDNN.

        Raises:
            DeviceError: ``onednn="amx"``, and the processor has no AMX.
        """
        return amx.environment() if plan.onednn == "amx" else {}

    def network(self, run, net):
        """Return the network whose layers round their inputs, or the network itself."""
        from mxopt.methods.quantization.simulated import simulate

        bits = run.plan.simulated_bits
        return run.replace_trained(net, partial(simulate, bits=bits)) if bits else net


_QUANTIZE = ("CALIBRATIONS", "calibrated", "quantize")
__getattr__ = exports(
    __name__,
    **dict.fromkeys(_QUANTIZE, "convert"),
    **dict.fromkeys(("load_int8", "save_int8"), "packed"),
    **dict.fromkeys(("dequantized", "to_int8"), "by_hand"),
    simulate="simulated",
)
__all__ = [
    "CALIBRATIONS", "Quantization", "calibrated", "dequantized", "load_int8", "quantize",
    "save_int8", "simulate", "to_int8",
]  # fmt: skip
