"""Writing of a network as an ONNX file, with MXNet's own converters on today's ``onnx``."""

from __future__ import annotations

import os
import tempfile
import types
from pathlib import Path
from unittest import mock

import numpy as np
from mxnet import gluon, nd

from mxopt.core.atomic import replace_bytes
from mxopt.core.errors import DeviceError, PlanError
from mxopt.methods.graph_rewrites import folded

# The newest version of ONNX's operators that MXNet 1.9.1 converts to.
OPSET = 13
# Largest difference of the outputs, as a share of the largest output.
TOLERANCE = 1e-4


def to_onnx(net: gluon.HybridBlock, path: str | Path, *example: nd.NDArray) -> Path:
    """Write a network as an ONNX file for any number of samples, and check it.

    Batch norms are folded into convolutions. If ``onnxruntime`` is installed, it computes the
    outputs for the example, and for its first sample alone; they have to be those of MXNet.

    Args:
        net: an initialised network of hybrid blocks; it is not changed.
        path: path of the file, which is written only if the check holds.
        *example: inputs like those to come, on a CPU.

    Returns:
        The path.

    Raises:
        DeviceError: the package ``onnx`` is not installed.
        PlanError: an operator has no converter, or the outputs differ.
    """
    onnx = _onnx()
    small = folded(net, *example)
    inputs, graph = small._cached_graph
    shapes = [array.shape for array in example]
    parameters = {name: p.data() for name, p in small.collect_params().items()}
    newest = mock.patch.object(onnx.defs, "onnx_opset_version", return_value=OPSET)
    with tempfile.TemporaryDirectory() as folder, newest:
        from mxnet import onnx as exporter

        _register(onnx)
        written = os.path.join(folder, "network.onnx")
        try:
            exporter.export_model(
                graph, parameters, shapes, [array.dtype for array in example], written,
                dynamic=True, dynamic_input_shapes=[(None, *shape[1:]) for shape in shapes],
            )  # fmt: skip
        except (AttributeError, NotImplementedError) as error:
            raise PlanError(f"{type(net).__name__} cannot be exported: {error}") from None
        model = onnx.load(written)
    model.ir_version = min(model.ir_version, 8)  # that of the operators' time, for older runtimes
    # MXNet lists weights among the inputs too, and a runtime does not optimise what may change.
    weights = {tensor.name for tensor in model.graph.initializer}
    for one in [one for one in model.graph.input if one.name in weights]:
        model.graph.input.remove(one)
    content = model.SerializeToString()
    _check(net, content, [symbol.name for symbol in inputs], example)
    replace_bytes(path, content)
    return Path(path)


def _onnx():
    """Return the package ``onnx``, with the table that it had when MXNet's exporter was written."""
    try:
        import onnx
    except ImportError:
        raise DeviceError(
            "an export needs the package onnx; install it with: pip install onnx onnxruntime"
        ) from None
    if not hasattr(onnx, "mapping"):
        names = ("float16", "float32", "float64", "int8", "int32", "int64", "uint8", "bool")
        numbers = {np.dtype(n): onnx.helper.np_dtype_to_tensor_dtype(np.dtype(n)) for n in names}
        onnx.mapping = types.SimpleNamespace(
            NP_TYPE_TO_TENSOR_TYPE=numbers,
            TENSOR_TYPE_TO_NP_TYPE={number: dtype for dtype, number in numbers.items()},
        )
    return onnx


def _register(onnx) -> None:
    """Add the converter of an operator that MXNet's exporter lacks."""
    from mxnet.onnx.mx2onnx._export_onnx import MXNetGraph

    if "_image_normalize" in MXNetGraph.registry_.get(OPSET, {}):
        return

    @MXNetGraph.register("_image_normalize", OPSET)
    def normalize(node, **kwargs):
        name, attributes = node["name"], node.get("attrs", {})
        [source] = (kwargs["outputs_lookup"][number][output].name
                    for number, output, *_ in node["inputs"])  # fmt: skip
        for label in ("mean", "std"):
            text = attributes.get(label, "0" if label == "mean" else "1").strip("()[] ")
            values = np.array([float(word) for word in text.split(",") if word.strip()], "float32")
            kwargs["initializer"].append(
                onnx.numpy_helper.from_array(values.reshape(-1, 1, 1), f"{name}_{label}")
            )
        return [
            onnx.helper.make_node("Sub", [source, f"{name}_mean"], [f"{name}_centred"]),
            onnx.helper.make_node("Div", [f"{name}_centred", f"{name}_std"], [name], name=name),
        ]


def _check(net, content: bytes, names: list[str], example) -> None:
    try:
        import onnxruntime
    except ImportError:
        return
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    for count in {1, len(example[0])}:
        arrays = [array[:count] for array in example]
        expected = net(*arrays)
        expected = expected if isinstance(expected, (list, tuple)) else [expected]
        found = session.run(None, dict(zip(names, (array.asnumpy() for array in arrays))))
        for ours, theirs in zip(expected, found):
            ours = ours.asnumpy()
            difference = np.abs(ours - theirs).max()
            if not difference <= TOLERANCE * max(1.0, np.abs(ours).max()):
                raise PlanError(
                    f"the exported {type(net).__name__} differs by {difference:.2g} for {count} "
                    "samples: a converter is wrong, or the network depends on something else"
                )
