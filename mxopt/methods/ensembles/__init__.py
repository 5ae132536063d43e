"""Ensembles: the average of several networks' probabilities."""

from mxopt.methods.method import Method, exports


class Ensembles(Method):
    """Declares no switch: members are trained one by one, and combined afterwards."""


_WEIGHTS = ("by_score", "combined", "greedy", "log_loss", "optimized")
__getattr__ = exports(__name__, **dict.fromkeys(_WEIGHTS, "weights"))
__all__ = ["Ensembles", "by_score", "combined", "greedy", "log_loss", "optimized"]
