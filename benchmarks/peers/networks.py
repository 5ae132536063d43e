"""The recipes' networks in PyTorch, layer for layer.

Blocks have the same names as in MXNet, so that weights can be copied by name; only the parameters
of norms have other names (``RENAMED``). These modules do not import MXNet or mxopt.
"""

import torch
from mobilenet import MobileNetDeepLab
from resnet import ResNetDeepLab
from torch import nn
from translator import Translator

__all__ = ["MobileNetDeepLab", "ResNetDeepLab", "Translator", "carry_over"]

RENAMED = {"gamma": "weight", "beta": "bias"}


def carry_over(net: nn.Module, weights: dict) -> None:
    """Copy MXNet's parameters into a network.

    Args:
        net: the network.
        weights: NumPy arrays, by their names in MXNet.

    Raises:
        RuntimeError: a name or a shape differs.
    """
    state = {}
    for name, array in weights.items():
        stem, _, last = name.rpartition(".")
        state[f"{stem}.{RENAMED.get(last, last)}"] = torch.from_numpy(array)
    found = net.load_state_dict(state, strict=False)
    missing = [name for name in found.missing_keys if not name.endswith("num_batches_tracked")]
    if missing or found.unexpected_keys:
        raise RuntimeError(f"missing: {missing}; not in the peer: {found.unexpected_keys}")
