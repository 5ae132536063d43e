"""Ensembles: the average of several networks' probabilities."""

from mxopt.methods.method import Method, exports


class Ensembles(Method):
    """Declares the options of workloads that compare: members are trained one by one."""

    options = {
        "mxopt.chapter.practice_workloads:ensemble": ("members", "continued"),
        "mxopt.chapter.ensemble_workloads:averaged": ("members",),
        "mxopt.chapter.ensemble_workloads:checkpoints": ("last",),
    }


_WEIGHTS = ("by_score", "combined", "greedy", "log_loss", "optimized")
__getattr__ = exports(__name__, **dict.fromkeys(_WEIGHTS, "weights"), Together="together")
__all__ = ["Ensembles", "Together", "by_score", "combined", "greedy", "log_loss", "optimized"]
