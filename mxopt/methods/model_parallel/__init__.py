"""Model parallelism: parts of a network on devices of their own, and a pipeline over them."""

from mxopt.methods.method import Method, exports


class ModelParallel(Method):
    """Declares the options of the workload ``pipeline``; the training loop has no such switch.

    The loop has one ``gluon.Trainer``, which refuses parameters on different devices; use
    :class:`mxopt.methods.model_parallel.stages.Stages` in a loop of your own.
    """

    options = {"mxopt.chapter.guide_workloads:pipeline": ("stages", "micro_batches")}


__getattr__ = exports(__name__, Stages="stages", bubble="stages")
__all__ = ["ModelParallel", "Stages", "bubble"]
