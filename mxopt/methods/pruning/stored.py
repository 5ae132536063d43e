"""Files of pruned networks: MXNet saves every zero, this module one bit for each weight."""

from __future__ import annotations

import io
import tempfile
import zipfile
import zlib
from pathlib import Path

import numpy as np
from mxnet import gluon, nd

from mxopt.core.atomic import replace_bytes
from mxopt.core.errors import DataError

_KINDS = ("shape", "places", "values")


def save_pruned(net: gluon.Block, path: str | Path) -> int:
    """Write the parameters of a network to a file, and return the bytes of the file.

    The file is a compressed ``.npz``, a zip. Of each parameter it has the shape, a bit for each
    element that says whether it is not zero, and those that are not. Three quarters of the weights
    pruned, it has 32 / (1 + 32 / 4) = 3.6 times fewer bits than an array before it is compressed.

    Args:
        net: an initialised network; parameters that layers share are stored once.
        path: path of the file, which should end with ``.npz``.
    """
    kept = {}
    for name, values in _saved(net).items():
        kept[f"shape/{name}"] = np.array(values.shape)
        kept[f"places/{name}"] = np.packbits(values != 0)
        kept[f"values/{name}"] = values[values != 0]
    content = io.BytesIO()
    np.savez_compressed(content, **kept)
    replace_bytes(path, content.getvalue())
    return len(content.getvalue())


def load_pruned(net: gluon.Block, path: str | Path, ctx=None) -> None:
    """Set the parameters of a network to those of a file of :func:`save_pruned`, exactly.

    Args:
        net: a network of the same structure; it need not be initialised.
        path: path of the file.
        ctx: context, or contexts, of the parameters; those of the network, or the CPU, if None.

    Raises:
        DataError: the file is not one of ``save_pruned``, or is of another network.
    """
    values = {}
    try:
        with np.load(path, allow_pickle=False) as file:
            for key in file.files:
                kind, name = key.split("/", 1)
                if kind == "shape":
                    values[name] = _restored(*(file[f"{k}/{name}"] for k in _KINDS))
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path} is no file of save_pruned ({error})") from None
    with tempfile.TemporaryDirectory() as folder:
        whole = str(Path(folder) / "whole.params")
        nd.save(whole, values)
        try:
            net.load_parameters(whole, ctx=ctx)
        except (AssertionError, ValueError) as error:
            reason = str(error).replace(whole, "it").splitlines()[0]
            raise DataError(f"{path} does not fit this network: {reason}") from None


def _saved(net: gluon.Block) -> dict[str, np.ndarray]:
    """Return the parameters of a network by the names that MXNet's files have."""
    with tempfile.TemporaryDirectory() as folder:
        whole = str(Path(folder) / "whole.params")
        net.save_parameters(whole, deduplicate=True)
        return {name: values.asnumpy() for name, values in nd.load(whole).items()}


def _restored(shape: np.ndarray, places: np.ndarray, values: np.ndarray) -> nd.NDArray:
    """Return the array of a shape with values at places, and zeros elsewhere."""
    whole = np.zeros(int(np.prod(shape)), values.dtype)
    whole[np.unpackbits(places, count=whole.size).astype(bool)] = values
    return nd.array(whole.reshape(shape), dtype=whole.dtype)
