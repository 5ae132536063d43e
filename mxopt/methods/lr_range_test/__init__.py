"""Learning-rate range test: a rate that suits a network, from one short training."""

from mxopt.methods.method import Method, exports


class LRRangeTest(Method):
    """Declares the options of the range test; the training loop has no such switch."""

    options = {"mxopt.measure.learning_rate:range_test": ("lowest", "highest", "steps")}


_RULES = ("RULES", "growing", "minimum", "smoothed", "steepest", "suggest", "usable", "valley")
__getattr__ = exports(__name__, restored="restore", **dict.fromkeys(_RULES, "rules"))
__all__ = [
    "RULES",
    "LRRangeTest",
    "growing",
    "minimum",
    "restored",
    "smoothed",
    "steepest",
    "suggest",
    "usable",
    "valley",
]
