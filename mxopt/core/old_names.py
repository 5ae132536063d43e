"""Names of version 0.1: modules that were moved, and switches and options in old records.

Importing a module by its old name works and gives a warning with the new name.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import sys
import warnings

MODULES = {
    "mxopt.engine": "mxopt.methods.engine",
    "mxopt.precision": "mxopt.methods.precision",
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

# Switches of the plan, and options of a recipe.
NAMES = {
    "frozen": "freeze_stages",
    "average_from": "swa_start",
    "pixels": "image_dtype",
    "accumulation": "grad_accumulation",
    "workers": "num_workers",
    "sync": "kvstore",
    "early_size": "progressive_resizing",
    "early_epochs": "progressive_epochs",
    "optimized": "graph_rewrites",
    "fast": "cpu_operators",
    "bounded": "relu6_stages",
    "interleaved": "space_to_batch",
    "new_scores": "reset_head",
}
# Options of a recipe that are now switches of the plan.
_MOVED = ("early_size", "early_epochs", "optimized")
_REWRITES = {
    "folding": "fold_batch_norm",
    "taps": "dead_taps",
    "channels": "pad_channels",
    "bounds": "relu6",
}


def renamed(switches: dict, options: dict | None = None) -> tuple[dict, dict]:
    """Return a record's switches and options under their current names.

    Args:
        switches: switches of the plan, as the record has them.
        options: options of the workload; some of them are now switches.
    """
    switches = {NAMES.get(name, name): value for name, value in switches.items()}
    kept = {}
    for name, value in (options or {}).items():
        if name not in _MOVED:
            kept[NAMES.get(name, name)] = value
        elif value is not None:
            switches[NAMES[name]] = _rewrites(value) if name == "optimized" else value
    return switches, kept


def _rewrites(value) -> str:
    if isinstance(value, bool):
        return "usual" if value else "none"
    return "+".join(_REWRITES.get(name, name) for name in value) or "none"


def workload(name: str) -> str:
    """Return a workload's name, ``module:function``, with the module's current name."""
    module, colon, function = name.partition(":")
    return (_current(module) or module) + colon + function


def _current(module: str) -> str | None:
    """Return the current name of a module that was moved, or is in a package that was."""
    for old, new in MODULES.items():
        if module == old or module.startswith(f"{old}."):
            return new + module.removeprefix(old)
    return None


def install() -> None:
    """Make moved modules importable by their old names."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        # Before Python's own, which would find modules of a moved package once more, by its path.
        sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, fullname, path=None, target=None):
        current = _current(fullname)
        if current and importlib.util.find_spec(current):
            return importlib.util.spec_from_loader(fullname, self)
        return None

    def create_module(self, spec):
        current = _current(spec.name)
        warnings.warn(f"{spec.name} is now {current}", DeprecationWarning, stacklevel=2)
        module = importlib.import_module(current)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module):
        """Leave the module as its own import has made it, with the spec that it had."""
        module.__spec__ = module.__spec__.loader_state
