"""Export to ONNX: a trained network as a file that other runtimes read."""

from mxopt.methods.method import Method, exports


class OnnxExport(Method):
    """A step of deployment, without a switch of the plan: training is not changed."""


__getattr__ = exports(__name__, to_onnx="write")
__all__ = ["OnnxExport", "to_onnx"]
