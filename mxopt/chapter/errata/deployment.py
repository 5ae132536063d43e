"""Errata of the checklist's and the best practices' parts on graphs, precision and deployment.

Sources as for :mod:`mxopt.chapter.errata.checklist`.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import mxnet as mx
import numpy as np
from mxnet import gluon, nd

from mxopt.chapter.errata.erratum import Erratum
from mxopt.methods.precision import lost
from mxopt.methods.pruning import mask, save_pruned
from mxopt.methods.quantization import quantize, save_int8


def products_that_nobody_uses(products: int = 10) -> tuple[int, int]:
    """Return how many matrix products a graph has whose result is not used, and used.

    Args:
        products: products in the function.
    """
    counts = []
    for used in (False, True):
        matrix = found = mx.sym.var("matrix")
        for _ in range(products):
            found = mx.sym.tanh(mx.sym.dot(found, matrix))
        graph = found if used else mx.sym.identity(matrix)
        counts.append(sum("dot" in name for name in graph.get_internals().list_outputs()))
    return counts[0], counts[1]


def block_of_channels(channels: int = 24, vector: int = 16) -> tuple[float, float]:
    """Return the per cent of a vector's work that is padding, for 24 channels and for 32.

    Args:
        channels: a multiple of eight.
        vector: float32 numbers in a vector of 512 bits.
    """
    padded = [-count % vector for count in (channels, 32)]
    return tuple(100 * pad / (pad + count) for pad, count in zip(padded, (channels, 32)))


def _dense():
    mx.random.seed(0)
    net = gluon.nn.Dense(256, in_units=256)
    net.initialize(mx.init.Normal(1))
    return net


def file_of_a_pruned_network(share: float = 0.75) -> tuple[float, float]:
    """Return the size of a pruned network's file, as MXNet saves it and without zeros, in per cent.

    Args:
        share: share of the weights that are zero.
    """
    net = _dense()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.params"
        net.save_parameters(str(path))
        before = path.stat().st_size
        net.weight.data()[:] *= mask(net.weight.data(), share)
        net.save_parameters(str(path))
        saved = path.stat().st_size
        compressed = save_pruned(net, path.with_suffix(".npz"))
    return 100 * saved / before, 100 * compressed / before


def file_of_a_quantized_network() -> tuple[float, float]:
    """Return the size of an int8 network's file, as MXNet saves it and packed, in per cent."""
    net = gluon.nn.HybridSequential()
    net.add(_dense())
    small = quantize(net, [nd.random.uniform(shape=(4, 256))])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "net")
        net.save_parameters(path)
        before = os.path.getsize(path)
        small.save_parameters(path)
        saved = os.path.getsize(path)
        packed = save_int8(small, path + ".npz")
    return 100 * saved / before, 100 * packed / before


def fixed_scale_of_a_loss(numbers: int = 10_000) -> tuple[float, float]:
    """Return the per cent of small gradients that float16 loses at the scales 10 and 65,536.

    The gradients are spread over the sizes that Micikevicius et al., "Mixed Precision Training",
    2018, figure 3, shows: powers of two from -40 to -5.

    Args:
        numbers: how many gradients.
    """
    random = np.random.RandomState(0)
    gradients = 2.0 ** random.uniform(-40, -5, numbers)
    return tuple(100 * sum(lost(gradients, scale)) for scale in (10, 2**16))


def best_of_many(trials: int = 50, images: int = 1_000) -> tuple[float, float]:
    """Return the best validation accuracy of equally good networks, and its test accuracy.

    Args:
        trials: networks, each of which is right with a probability of 0.9.
        images: images of the validation split, and of the test split.
    """
    random = np.random.RandomState(0)
    draws = random.binomial(images, 0.9, (1_000, trials)) / images
    return 100 * float(draws.max(axis=1).mean()), 90.0


ERRATA = (
    Erratum(
        "A speed-up of what nobody uses",
        "The checklist shows that `tf.function` is ten times as fast, with products of matrices "
        "whose result the function does not return.",
        "What is timed returns its result, and the guide measures both.",
        products_that_nobody_uses,
        "matrix products in the graph of a function with 10",
    ),
    Erratum(
        "Eight is a GPU's number",
        "Sizes are to be multiples of eight; a processor with vectors of 512 bits computes sixteen "
        "numbers at once.",
        "`graph_rewrites=pad_channels` rounds up to sixteen where that is cheaper.",
        block_of_channels,
        "per cent of the work that is padding, with 24 and with 32 channels",
    ),
    Erratum(
        "A pruned network's file is as large as before",
        "Pruning is said to make a network smaller; zeros are saved like any other number.",
        "`save_pruned` stores one bit for each weight, and those that are not zero.",
        file_of_a_pruned_network,
        "per cent of the file before, with three quarters of the weights pruned",
        exact=False,
    ),
    Erratum(
        "A file of int8 with four bytes for each weight",
        "Quantised networks are said to be four times smaller; MXNet saves them as float32, and "
        "quantises when they first run.",
        "`save_int8` keeps 8 bits, and the loaded network computes exactly the same.",
        file_of_a_quantized_network,
        "per cent of the float32 file",
        exact=False,
    ),
    Erratum(
        "A loss scale of 10",
        "The best practices set `loss_scale_factor=10`, fixed for all of the training.",
        "MXNet's scaler begins at 65,536 and follows the gradients.",
        fixed_scale_of_a_loss,
        "per cent of gradients between 2^-40 and 2^-5 that become 0 or infinite in float16",
    ),
    Erratum(
        "The best of fifty",
        "A search's best validation score is reported as what the network is worth.",
        "`mxopt search` never reads the test split; the plan that it prints reads it once.",
        best_of_many,
        "per cent: the best validation accuracy of 50 equal networks, and what they are worth",
    ),
)
