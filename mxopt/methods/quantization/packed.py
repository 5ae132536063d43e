"""Files of quantised networks: MXNet saves their weights as float32, this module as 8 bits."""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from pathlib import Path

import mxnet as mx
import numpy as np
from mxnet import gluon, nd

from mxopt import machine
from mxopt.core.atomic import replace_bytes
from mxopt.core.errors import DataError, PlanError

# oneDNN's operators that quantise their weights when they first run.
DENSE = "_sg_mkldnn_fully_connected"
_OPERATORS = ("_sg_mkldnn_conv", DENSE)
# MXNet divides a channel's range by 127.5 (kInt8Range in its source), and saturates at 127.
_HALF_RANGE = 127.5


def save_int8(net: gluon.SymbolBlock, path: str | Path) -> int:
    """Write a quantised network to a file, and return the bytes of the file.

    The file is a compressed ``.npz`` with the graph, the weights as int8 with a range for each
    channel, and everything else as float32. It has no pickled objects.

    Args:
        net: as :func:`mxopt.methods.quantization.quantize` returns it.
        path: path of the file, which should end with ``.npz``.

    Raises:
        PlanError: no layer of the network computes in int8.
    """
    inputs, output = net._cached_graph
    graph = output.tojson()
    quantized = quantized_weights(graph)
    if not quantized:
        raise PlanError("no layer of this network computes in int8; call quantize(net) first")
    kept = {"graph": np.frombuffer(graph.encode(), np.uint8)}
    kept["needs_vnni"] = np.array(getattr(net, "needs_vnni", False))
    kept["inputs"] = np.frombuffer(",".join(s.name for s in inputs).encode(), np.uint8)
    for name, parameter in net.collect_params().items():
        values = parameter.data().asnumpy()
        if name in quantized:
            kept[f"int8/{name}"], kept[f"range/{name}"] = _on_grid(values)
        else:
            kept[f"float32/{name}"] = values
    content = io.BytesIO()
    np.savez_compressed(content, **kept)
    replace_bytes(path, content.getvalue())
    return len(content.getvalue())


def load_int8(path: str | Path) -> gluon.SymbolBlock:
    """Return the network of a file of :func:`save_int8`; it computes exactly the same.

    On a processor without VNNI, a network from one with VNNI may not: a warning says so.

    Args:
        path: path of the file.

    Raises:
        DataError: the file is not one of ``save_int8``.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            kept = {name: file[name] for name in file.files}
        graph, names = (kept.pop(name).tobytes().decode() for name in ("graph", "inputs"))
        needs_vnni = bool(kept.pop("needs_vnni", False))
        inputs = [mx.sym.var(name) for name in names.split(",")]
        net = gluon.SymbolBlock(mx.sym.load_json(graph), inputs)
    except (OSError, KeyError, ValueError, zipfile.BadZipFile, mx.MXNetError) as error:
        raise DataError(f"{path} is no file of save_int8 ({error})") from None
    if needs_vnni and not machine.cpu().has_vnni:
        warnings.warn(
            f"{path} was quantised on a processor with VNNI, and this one cuts off large sums; "
            "score the network before you use it, or quantise it here",
            stacklevel=2,
        )
    values = {}
    for key, array in kept.items():
        kind, name = key.split("/", 1)
        if kind == "float32":
            values[name] = array
        elif kind == "int8":
            values[name] = _restored(array, kept[f"range/{name}"])
    for name, parameter in net.collect_params().items():
        if name not in values:
            raise DataError(f"{path} lacks the parameter {name}; save the network again")
        parameter.shape = values[name].shape
        parameter.initialize(ctx=mx.cpu())
        parameter.set_data(nd.array(values[name], dtype="float32"))
    net.needs_vnni = needs_vnni
    net.hybridize(static_alloc=True, static_shape=True)
    return net


def snapped(weights: np.ndarray) -> np.ndarray:
    """Return the weights that 8 bits can hold, next to those given.

    Args:
        weights: float32 (channels, ...).
    """
    return _restored(*_on_grid(weights))


def _on_grid(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the integers (int8) that oneDNN computes with, and each channel's range."""
    others = tuple(range(1, weights.ndim))
    ranges = np.abs(weights).max(axis=others, keepdims=True).astype(np.float32)
    scale = np.float32(_HALF_RANGE) / np.where(ranges > 0, ranges, np.float32(1))
    return np.clip(np.rint(weights * scale), -128, 127).astype(np.int8), ranges.ravel()


def _restored(integers: np.ndarray, ranges: np.ndarray) -> np.ndarray:
    """Return float32 weights that are quantised to exactly these integers and ranges."""
    ranges = ranges.reshape((-1,) + (1,) * (integers.ndim - 1))
    sizes = np.abs(integers.astype(np.int16) + (integers > 0))  # 127 and -128 are the ends
    largest = sizes == sizes.max(axis=tuple(range(1, integers.ndim)), keepdims=True)
    values = integers.astype(np.float32) * (ranges / np.float32(_HALF_RANGE))
    return np.where(largest, np.sign(integers) * ranges, values).astype(np.float32)


def quantized_weights(graph: str) -> set[str]:
    """Return the names of the weights of all layers that compute in int8.

    Args:
        graph: the symbol, as MXNet's JSON.
    """
    nodes = json.loads(graph)["nodes"]
    return {
        nodes[node["inputs"][1][0]]["name"]
        for node in nodes
        if node["op"] in _OPERATORS and in_int8(node)
    }


def in_int8(node: dict) -> bool:
    """Return whether a node of a graph computes in int8.

    Args:
        node: one of ``nodes`` in MXNet's JSON, a convolution or a dense layer.
    """
    return node.get("attrs", {}).get("quantized", "").lower() == "true"
