"""Initial weights: all of them drawn before anything else happens, and hashed.

Gluon draws a weight of unknown shape in the first forward pass. The numbers would then depend on
what the pass does first, so two plans with the same seed could start from other weights. Here the
shapes are inferred from an example as soon as the recipe has made the network, and no switch has
changed it yet. The hash in the record shows that two runs did start from the same weights.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np
from mxnet import gluon


def complete(net: gluon.Block, example: Callable[[], list]) -> None:
    """Draw the weights whose shapes are not known yet.

    Args:
        net: an initialised network.
        example: returns inputs of the network; called only if it is needed.
    """
    parameters = net.collect_params().values()
    if not any(parameter._deferred_init for parameter in parameters):
        return
    if isinstance(net, gluon.HybridBlock):
        net.infer_shape(*example())  # a forward pass would leave weights in a layout of oneDNN
    else:
        net(*example())
    for parameter in parameters:
        if parameter._deferred_init:
            parameter._finish_deferred_init()


def weights_hash(net: gluon.Block) -> tuple[str, int]:
    """Return a hash of a network's parameters, and how many values they have.

    The names and the order of the parameters do not matter, so that networks that compute the same
    in different ways have the same hash if their weights are equal.

    Args:
        net: a network whose parameters all have values; those on its first device are read.

    Returns:
        The SHA-256 of the sorted hashes of all parameters (shape, and values as float32), and the
        number of their values.
    """
    hashes, count = [], 0
    for parameter in net.collect_params().values():
        if isinstance(parameter, gluon.Constant):
            continue
        values = parameter.list_data()[0].astype("float32").asnumpy()
        count += values.size
        shape = np.asarray(values.shape, np.int64).tobytes()
        hashes.append(hashlib.sha256(shape + values.tobytes()).hexdigest())
    return hashlib.sha256("".join(sorted(hashes)).encode()).hexdigest(), count
