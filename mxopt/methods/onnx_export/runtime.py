"""Exported networks in ONNX Runtime: in float32, and quantised by its own functions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mxnet import nd

from mxopt import machine
from mxopt.core.errors import DeviceError, PlanError


class OnnxNetwork:
    """An ONNX file as a function of one MXNet array on a CPU.

    Args:
        path: path of the file, which has one input and one output.
        threads: threads inside an operator; 0 takes one for each core.

    Raises:
        DeviceError: ``onnxruntime`` is not installed.
    """

    def __init__(self, path: str | Path, threads: int = 0):
        onnxruntime = _onnxruntime()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self._session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
        [self._input] = [one.name for one in self._session.get_inputs()]

    def __call__(self, array: nd.NDArray) -> nd.NDArray:
        """Return the output for a batch of inputs.

        Args:
            array: (samples, ...), float32.
        """
        [output] = self._session.run(None, {self._input: array.asnumpy()})
        return nd.array(output, dtype=output.dtype)


def quantize_onnx(path: str | Path, written: str | Path, batches: Sequence[nd.NDArray]) -> Path:
    """Write an ONNX file in 8-bit integers, with ONNX Runtime's static quantisation.

    Weights get a scale for each channel, and outputs of layers the range that is seen (minimum and
    maximum). On processors without VNNI weights have 7 bits, as ONNX Runtime recommends.

    Args:
        path: path of the file in float32.
        written: path of the new file.
        batches: inputs like those to come, to calibrate with.

    Returns:
        The path of the new file.

    Raises:
        DeviceError: ``onnxruntime`` is not installed.
        PlanError: there are no batches.
    """
    _onnxruntime()
    from onnxruntime import quantization

    batches = list(batches)
    if not batches:
        raise PlanError("no batch to calibrate with; give some inputs like those to come")
    import onnx

    [name] = [one.name for one in onnx.load(path).graph.input]

    class Reader(quantization.CalibrationDataReader):
        def __init__(self):
            self._inputs = iter([{name: batch.asnumpy()} for batch in batches])

        def get_next(self):
            return next(self._inputs, None)

    # Without VNNI products are added in 16 bits, which needs weights of 7.
    reduce_range = not machine.cpu().has_vnni
    quantization.quantize_static(
        str(path), str(written), Reader(), per_channel=True, reduce_range=reduce_range
    )
    return Path(written)


def _onnxruntime():
    try:
        import onnxruntime
    except ImportError:
        raise DeviceError(
            "ONNX Runtime is not installed; install it with: pip install onnx onnxruntime"
        ) from None
    return onnxruntime
