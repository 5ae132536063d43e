"""Writing of a network as a TensorFlow Lite file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from mxnet import gluon, nd

from mxopt.core.atomic import replace_bytes
from mxopt.core.errors import PlanError
from mxopt.methods.graph_rewrites import folded
from mxopt.methods.tflite_export.operators import Conversion

# Largest difference of the outputs, as a share of the largest output.
TOLERANCE = 1e-4


def to_tflite(net: gluon.HybridBlock, path: str | Path, example: nd.NDArray) -> Path:
    """Write a network as a TensorFlow Lite file for any number of samples, and check it.

    Batch norms are folded into convolutions. Images are (samples, height, width, channels) in the
    file. If ``ai-edge-litert`` is installed, its interpreter computes the outputs for the example;
    they have to be those of MXNet.

    Args:
        net: an initialised network of hybrid blocks with one input and one output; it is not
            changed.
        path: path of the file, which is written only if the check holds.
        example: inputs like those to come, on a CPU.

    Returns:
        The path.

    Raises:
        PlanError: an operator, or its setting, has no counterpart, or the outputs differ.
    """
    small = folded(net, example)
    [source], graph = small._cached_graph
    parameters = {name: p.data().asnumpy() for name, p in small.collect_params().items()}
    nodes = json.loads(graph.tojson())
    if len(nodes["heads"]) != 1:
        raise PlanError(f"{type(net).__name__} has several outputs; export a block that has one")
    made = Conversion(type(net).__name__, parameters)
    begin = made.input(source.name, example.shape)
    outputs: list = []
    for node in nodes["nodes"]:
        outputs.append(made.convert(node, [outputs[link[0]] for link in node["inputs"]]))
    end = outputs[nodes["heads"][0][0]]
    content = made.file.content([begin.number], [end.number])
    _check(net, content, example)
    replace_bytes(path, content)
    return Path(path)


def _check(net, content: bytes, example: nd.NDArray) -> None:
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ImportError:
        return
    interpreter = Interpreter(model_content=content)
    [begin], [end] = interpreter.get_input_details(), interpreter.get_output_details()
    for count in {1, len(example)}:
        images = example[:count].asnumpy()
        theirs = images.transpose((0, 2, 3, 1)) if images.ndim == 4 else images
        interpreter.resize_tensor_input(begin["index"], theirs.shape)
        interpreter.allocate_tensors()
        interpreter.set_tensor(begin["index"], np.ascontiguousarray(theirs))
        interpreter.invoke()
        found = interpreter.get_tensor(end["index"])
        found = found.transpose((0, 3, 1, 2)) if found.ndim == 4 else found
        expected = net(example[:count]).asnumpy()
        difference = np.abs(expected - found).max()
        if not difference <= TOLERANCE * max(1.0, np.abs(expected).max()):
            raise PlanError(
                f"the exported {type(net).__name__} differs by {difference:.2g} for {count} "
                "samples: a conversion is wrong, or the network depends on something else"
            )
