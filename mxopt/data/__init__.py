"""Data sets: the published one where it is available, else a stand-in that is named as one.

Ask for a data set by name and you are told where it was found and what it is:

    >>> from mxopt.data import locate
    >>> location = locate("penn-fudan")          # doctest: +SKIP
    >>> location.kind, location.origin           # doctest: +SKIP
    ('real', 'MXOPT_DATA')

The order is ``MXOPT_DATA``, the cache, the upstream address, the stand-in that mxopt ships (see
:mod:`mxopt.data.sources`). Nothing is ever half there: a download is checked by SHA-256 and
then put in place in one step; a folder of yours with files missing is reported, not replaced.

``PennFudan(split)`` is the chapter's segmentation data as a Gluon data set, ``MaskFolder`` one of
your own images and masks; ``FashionMNIST(split)`` is garments of ten classes; ``Multi30k(split)``
is English and German sentence by sentence, ``ParallelText`` and ``ParallelFolder`` two languages of
your own. They need MXNet, which is loaded only when you ask for them, so that everything else here
works without.
"""

from __future__ import annotations

import importlib

from mxopt.data.annotations import check_annotations, read_annotation
from mxopt.data.fetching import Fetched, fetch
from mxopt.data.registry import SOURCES
from mxopt.data.sources import Location, locate, reachable, verify

__all__ = [
    "SOURCES",
    "FashionMNIST",
    "Fetched",
    "Location",
    "MaskFolder",
    "Multi30k",
    "ParallelFolder",
    "ParallelText",
    "PennFudan",
    "check_annotations",
    "fetch",
    "locate",
    "reachable",
    "read_annotation",
    "verify",
]


def __getattr__(name: str):
    """Import data sets at first use: the engine's settings must be made before MXNet loads."""
    modules = {
        "FashionMNIST": "fashion_mnist",
        "MaskFolder": "mask_folder",
        "Multi30k": "multi30k",
        "ParallelFolder": "parallel_text",
        "ParallelText": "parallel_text",
        "PennFudan": "penn_fudan",
    }
    if name in modules:
        return getattr(importlib.import_module(f"mxopt.data.{modules[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
