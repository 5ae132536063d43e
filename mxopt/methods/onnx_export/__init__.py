"""Export to ONNX: a trained network as a file that other runtimes read."""

from mxopt.methods.method import Method, exports


class OnnxExport(Method):
    """A step of deployment, without a switch of the plan: training is not changed."""

    options = {"mxopt.chapter.deployment:inference": ("runtime",)}


__getattr__ = exports(
    __name__, to_onnx="write", **dict.fromkeys(("OnnxNetwork", "quantize_onnx"), "runtime")
)
__all__ = ["OnnxExport", "OnnxNetwork", "quantize_onnx", "to_onnx"]
