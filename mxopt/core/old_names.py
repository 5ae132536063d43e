"""Names of version 0.1: modules that were moved, and what records of that version hold.

Scripts that import a module by its old name get the module, and a warning that names the new one.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import sys
import warnings

MODULES = {
    "mxopt.engine": "mxopt.methods.engine.variables",
    "mxopt.precision": "mxopt.methods.precision.amp",
    "mxopt.parallel": "mxopt.methods.data_parallel.parallel",
    "mxopt.pipeline": "mxopt.methods.input_pipeline.pipeline",
    "mxopt.optimizing": "mxopt.methods.graph_rewrites",
    "mxopt.datasets": "mxopt.data",
    "mxopt.hardware": "mxopt.machine",
    "mxopt.task": "mxopt.core.recipe",
    "mxopt.plan": "mxopt.core.plan",
    "mxopt.errors": "mxopt.core.errors",
    "mxopt.records": "mxopt.core.records",
    "mxopt.training": "mxopt.train.fit",
    "mxopt.workloads": "mxopt.chapter.workloads",
    "mxopt.lab": "mxopt.chapter.lab",
    "mxopt.plots": "mxopt.report.plots",
}


def workload(name: str) -> str:
    """Return a workload's name, ``module:function``, with a module that was moved where it is."""
    module, colon, function = name.partition(":")
    return MODULES.get(module, module) + colon + function


def install() -> None:
    """Let Python find moved modules by their old names."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, fullname, path=None, target=None):
        if fullname in MODULES:
            return importlib.util.spec_from_loader(fullname, self)
        return None

    def create_module(self, spec):
        warnings.warn(f"{spec.name} is now {MODULES[spec.name]}", DeprecationWarning, stacklevel=2)
        return importlib.import_module(MODULES[spec.name])

    def exec_module(self, module):
        """Leave the module as its own import has made it."""
