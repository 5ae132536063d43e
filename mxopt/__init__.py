"""Audited training-speed switches for MXNet: chapter 8 of the MXNet Cookbook, measured honestly.

``import mxopt`` comes before ``import mxnet``: it makes MXNet importable on today's Python. The
names below are imported at first use, because engine and threads are fixed when MXNet loads.
"""

import importlib
import os

from mxopt import compat, kernels
from mxopt.core import old_names
from mxopt.core.plan import Plan
from mxopt.core.version import VERSION
from mxopt.methods import METHODS  # each adds its rule to the plan

os.environ.setdefault(kernels.SUMS, str(kernels.NEVER))
compat.activate()
old_names.install()

__version__ = VERSION

_LAZY = {
    "bucketing": "mxopt.methods.bucketing.bucketing",
    "data": "mxopt.data",
    "engine": "mxopt.methods.engine",
    "lab": "mxopt.chapter.lab",
    "machine": "mxopt.machine",
    "measure": "mxopt.measure",
    "parallel": "mxopt.methods.data_parallel.parallel",
    "plots": "mxopt.report.plots",
    "precision": "mxopt.methods.precision",
    "recipes": "mxopt.recipes",
    "report": "mxopt.report",
}

__all__ = ["METHODS", "Plan", "compat", *_LAZY]


def __getattr__(name: str):
    """Import a public module at first use."""
    if name in _LAZY:
        return importlib.import_module(_LAZY[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
