"""Export to TensorFlow Lite: a trained network as a file for phones and small boards."""

from mxopt.methods.method import Method, exports


class TFLiteExport(Method):
    """A step of deployment, without a switch of the plan: training is not changed."""


__getattr__ = exports(__name__, to_tflite="convert")
__all__ = ["TFLiteExport", "to_tflite"]
