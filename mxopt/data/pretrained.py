"""Pre-trained weights that GluonCV downloads into ``~/.mxnet/models`` (or ``MXNET_HOME``)."""

from __future__ import annotations

import os
from pathlib import Path

from mxopt.core.errors import DataError
from mxopt.data.download import FETCH_ERRORS

NAMES = ("deeplab_resnet101_coco",)


def gluoncv_weights(name: str) -> Path:
    """Return GluonCV's file of pre-trained weights, whose SHA-1 GluonCV checks.

    It is downloaded if it is missing, but never in a measured process (``MXOPT_OFFLINE``).

    Args:
        name: of the network in GluonCV's zoo.

    Raises:
        DataError: the weights are missing and cannot or must not be downloaded.
    """
    from gluoncv.model_zoo import model_store

    home = os.environ.get("MXNET_HOME", os.path.join("~", ".mxnet"))
    folder = Path(home, "models").expanduser()
    path = folder / f"{name}-{model_store.short_hash(name)}.params"
    if os.environ.get("MXOPT_OFFLINE"):
        if path.exists() and model_store.check_sha1(str(path), model_store._model_sha1[name]):
            return path
        raise DataError(
            f"the weights of {name} are not at {path}, or are damaged, and a measured process "
            f"downloads nothing; run `mxopt fetch {name}` first"
        )
    try:
        return Path(model_store.get_model_file(name, root=str(folder)))
    except FETCH_ERRORS as error:
        raise DataError(
            f"GluonCV could not download the weights of {name} ({error}). Connect to the network "
            f"and run `mxopt fetch {name}`, or put GluonCV's file at {path}."
        ) from error
