"""The recipes' networks in PyTorch, layer for layer.

Blocks have the same names as in MXNet, so that weights can be copied by name. Only the parameters
of norms have other names (``RENAMED``), and some projections are packed into one (``PACKED``).
These modules do not import MXNet or mxopt.
"""

import torch
from garments import GarmentNet
from mobilenet import MobileNetDeepLab
from resnet import ResNetDeepLab
from torch import nn
from translator import Translator

__all__ = ["GarmentNet", "MobileNetDeepLab", "ResNetDeepLab", "Translator", "carry_over"]

RENAMED = {"gamma": "weight", "beta": "bias"}
PACKED = {
    "proj_query_key_value": ("proj_query", "proj_key", "proj_value"),
    "proj_key_value": ("proj_key", "proj_value"),
}


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
    for name in net.state_dict():
        home, _, block = name.removesuffix(".weight").rpartition(".")
        if block in PACKED:
            parts = [state.pop(f"{home}.{part}.weight") for part in PACKED[block]]
            state[name] = torch.cat(parts)
    found = net.load_state_dict(state, strict=False)
    missing = [name for name in found.missing_keys if not name.endswith("num_batches_tracked")]
    if missing or found.unexpected_keys:
        raise RuntimeError(f"missing: {missing}; not in the peer: {found.unexpected_keys}")
