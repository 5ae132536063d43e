"""Data sets: the published one where it is available, else a stand-in that is named as one.

:func:`locate` tells where a data set was found and whether it is the real one:

    >>> from mxopt.data import locate
    >>> location = locate("penn-fudan")          # doctest: +SKIP
    >>> location.kind, location.origin           # doctest: +SKIP
    ('real', 'MXOPT_DATA')

The order is ``MXOPT_DATA``, the cache, the upstream address, the stand-in that mxopt ships (see
:mod:`mxopt.data.sources`). A data set is never installed partially: a download is checked by
SHA-256 and then renamed into place in one step. A folder under ``MXOPT_DATA`` with files missing is
an error and is not replaced.

Gluon data sets: ``PennFudan(split)`` is the chapter's segmentation data and ``MaskFolder`` any
folder of images and masks; ``FashionMNIST(split)`` has garments of ten classes; ``Multi30k(split)``
has pairs of English and German sentences, ``ParallelText`` and ``ParallelFolder`` sentences of any
two languages. They need MXNet, which is imported when one of them is first used; the rest of this
package works without MXNet.
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
    """Import data sets at first use: the engine must be configured before MXNet is imported."""
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
