"""Quantisation of a trained network to 8-bit integers, with MXNet's own operators of oneDNN.

``quantize(net, batches)`` traces a hybrid block, observes the outputs of its layers on a few
batches, and returns a block that computes convolutions and dense layers in int8.

>>> small = quantize(net, batches)                               # doctest: +SKIP
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Sequence
from unittest import mock

import mxnet as mx
import numpy as np
from mxnet import gluon, nd
from mxnet.contrib import quantization

from mxopt import machine
from mxopt.core.errors import PlanError
from mxopt.methods.graph_rewrites.fold_for_inference import folded
from mxopt.methods.quantization import packed

# How the range of a layer's outputs is chosen. ``entropy`` is the default of MXNet's function.
CALIBRATIONS = ("minmax", "percentile", "entropy")
_APPLY = quantization._calibrate_quantized_sym
_THEIRS = {"minmax": "naive", "percentile": "customize", "entropy": "entropy"}


class Percentiles:
    """Collects, for each layer, the range that holds a share of its outputs.

    It has the interface that ``quantize_net_v2`` asks of a collector. The range is the mean over
    the batches of each batch's own percentiles, so no outputs are kept.

    Args:
        share: percent of the outputs inside the range, such as 99.99.

    Attributes:
        min_max_dict: lower and upper end for each output, by name.
    """

    def __init__(self, share: float):
        self._ends = ((100 - share) / 2, 100 - (100 - share) / 2)
        self._found: dict[str, list] = {}

    def collect(self, name: bytes, handle) -> None:
        """Note an output, as MXNet's monitor passes it.

        Args:
            name: name of the output.
            handle: MXNet's handle of the array.
        """
        import ctypes

        array = nd.NDArray(ctypes.cast(handle, mx.base.NDArrayHandle), writable=False).asnumpy()
        ends = np.percentile(array, self._ends) if array.size else (0.0, 0.0)
        # Where all are positive, as behind a ReLU, the lower end is the smallest, zero.
        ends = (array.min() if array.min() >= 0 else ends[0], ends[1])
        self._found.setdefault(mx.base.py_str(name), []).append(ends)

    @property
    def min_max_dict(self) -> dict[str, tuple[float, float]]:
        """Lower and upper end for each output, by name."""
        return {
            name: tuple(float(end) for end in np.mean(ends, axis=0))
            for name, ends in self._found.items()
        }


def quantize(
    net: gluon.HybridBlock,
    batches: Sequence[nd.NDArray],
    calibration: str = "minmax",
    percentile: float = 99.99,
    reduce_range: bool | None = None,
) -> gluon.SymbolBlock:
    """Return a network that computes its convolutions and dense layers in 8-bit integers.

    Batch norms are folded into convolutions first. Weights are quantised for each channel, the
    outputs of layers with one scale that is fixed by what they are on ``batches``.

    Args:
        net: an initialised network of hybrid blocks, on a CPU, with one input; it is not changed.
        batches: inputs like those to come, float32, of equal shapes; some dozens of samples do.
        calibration: ``minmax`` (the range that was seen), ``percentile`` (the range that holds a
            share of the outputs) or ``entropy`` (the range with the smallest Kullback-Leibler
            divergence, as TensorRT chooses it).
        percentile: that share, in percent, for ``percentile``.
        reduce_range: whether outputs that are never negative use 7 of their 8 bits, and dense
            layers whose inputs may be negative stay in float32. Processors without VNNI add
            products in 16 bits, which sums of larger numbers exceed; whether a network has many of
            these is a matter of its weights. None: what is closer to float32 on ``batches``, which
            is not reduced with VNNI.

    Returns:
        A block for inputs of any number of samples.

    Raises:
        PlanError: the calibration does not exist, there are no batches, or the network cannot be
            traced.
    """
    if calibration not in CALIBRATIONS:
        raise PlanError(
            f"calibration={calibration!r} is not a choice; take one of {', '.join(CALIBRATIONS)}"
        )
    if not 50 < percentile <= 100:
        raise PlanError(f"percentile={percentile} must be above 50 and at most 100")
    batches = list(batches)
    if not batches:
        raise PlanError("no batch to calibrate with; give some inputs like those to come")
    traced = folded(net, batches[0])
    if reduce_range is None and not machine.cpu().has_vnni:
        both = [_in_int8(traced, batches, calibration, percentile, way) for way in (False, True)]
        return min(both, key=lambda made: _distance(made, traced, batches))
    return _in_int8(traced, batches, calibration, percentile, bool(reduce_range))


def _in_int8(traced, batches, calibration, percentile, reduced) -> gluon.SymbolBlock:
    """Return the network in int8, with ranges that are reduced or not."""

    def convert(excluded=()):
        collector = Percentiles(percentile) if calibration == "percentile" else None
        return _convert(traced, batches, calibration, collector, reduced, excluded)

    made = convert()
    signed = _dense_of_signed_inputs(made._cached_graph[1].tojson()) if reduced else []
    made = convert(signed) if signed else made
    names = packed.quantized_weights(made._cached_graph[1].tojson())
    for name, parameter in made.collect_params().items():
        if name in names:
            parameter.set_data(nd.array(packed.snapped(parameter.data().asnumpy())))
    made.needs_vnni = machine.cpu().has_vnni and not reduced  # which its file has to tell
    made.hybridize(static_alloc=True, static_shape=True)
    return made


def _convert(traced, batches, calibration, collector, reduced, excluded) -> gluon.SymbolBlock:
    """Return MXNet's quantised network, without the layers that are excluded."""

    def apply(symbol, ranges):
        # As numbers: NumPy 2 does not take arrays of one for them.
        numbers = {name: [np.asarray(end).item() for end in ends] for name, ends in ranges.items()}
        if reduced:
            numbers = {
                name: (low, high if low < 0 else 2 * high) for name, (low, high) in numbers.items()
            }
        return _APPLY(symbol, numbers)

    [name] = (symbol.name for symbol in traced._cached_graph[0])
    samples = mx.io.NDArrayIter(
        nd.concat(*batches, dim=0), batch_size=len(batches[0]), data_name=name
    )
    os.environ.setdefault("MXNET_SUBGRAPH_VERBOSE", "0")  # a line for each graph otherwise
    ranges = mock.patch.object(quantization, "_calibrate_quantized_sym", apply)
    with warnings.catch_warnings(), ranges:
        warnings.simplefilter("ignore")  # of MXNet's own code
        return quantization.quantize_net_v2(
            traced,
            quantize_mode="smart",
            quantize_granularity="channel-wise",
            calib_data=samples,
            calib_mode=_THEIRS[calibration],
            exclude_layers=list(excluded),
            LayerOutputCollector=collector,
        )


def _distance(made, reference, batches) -> float:
    """Return the mean absolute difference of two networks' outputs, over all batches."""

    def outputs(net, batch):
        found = net(batch)
        return found if isinstance(found, (list, tuple)) else [found]

    return sum(
        float((one - other).abs().mean().asscalar())
        for batch in batches
        for one, other in zip(outputs(made, batch), outputs(reference, batch))
    )


def _dense_of_signed_inputs(graph: str) -> list[str]:
    """Return the names of dense layers in int8 whose inputs may be negative.

    Args:
        graph: the symbol, as MXNet's JSON.
    """
    nodes = json.loads(graph)["nodes"]

    def lower_end(node):
        """Return the smallest input, by the range of the operator that it comes from."""
        while "min_calib_range" not in node.get("attrs", {}):
            if not node["inputs"]:
                return -np.inf
            node = nodes[node["inputs"][0][0]]
        return float(node["attrs"]["min_calib_range"])

    return [
        node["name"].removeprefix("quantized_")
        for node in nodes
        if node["op"] == packed.DENSE
        and packed.in_int8(node)
        and lower_end(nodes[node["inputs"][0][0]]) < 0
    ]


def calibrated(
    net: gluon.HybridBlock,
    batches: Sequence[nd.NDArray],
    score: Callable[[gluon.Block], float],
    margin: float,
    calibrations: Sequence[str] = CALIBRATIONS,
) -> tuple[gluon.SymbolBlock, dict[str, float]]:
    """Quantise with every calibration, and return the network with the best score.

    Args:
        net: as for :func:`quantize`.
        batches: as for :func:`quantize`.
        score: returns the quality of a network, higher is better; computed on samples that are not
            in ``batches``.
        margin: what the score may lose at most.
        calibrations: some of ``CALIBRATIONS``.

    Returns:
        The network, and the scores of all: of ``float32``, and by calibration.

    Raises:
        PlanError: every calibration loses more than the margin.
    """
    scores = {"float32": score(net)}
    made = {name: quantize(net, batches, name) for name in calibrations}
    scores.update((name, score(one)) for name, one in made.items())
    best = max(made, key=scores.__getitem__)
    if scores[best] < scores["float32"] - margin:
        lost = ", ".join(f"{name} {scores['float32'] - scores[name]:.4g}" for name in made)
        raise PlanError(
            f"int8 loses more than margin={margin:g} of {scores['float32']:.4g}: {lost}; calibrate "
            "with other samples, or with more of them"
        )
    return made[best], scores
