"""The import hook: MXNet, GluonCV and GluonNLP load quietly and find what they lack."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
import warnings
from collections.abc import Callable

PACKAGES = ("mxnet", "gluoncv", "gluonnlp")

# Notices of what will break one day; what broke already is mended, so they tell a reader nothing.
_NOTICES = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, SyntaxWarning)


_before: dict[str, list[Callable[[], None]]] = {}
_after: dict[str, list[Callable[[types.ModuleType], None]]] = {}


def before_import(name: str, prepare: Callable[[], None]) -> None:
    """Register a call for just before a module is loaded.

    Args:
        name: the module's full name.
        prepare: called without arguments.
    """
    _before.setdefault(name, []).append(prepare)


def after_import(name: str, mend: Callable[[types.ModuleType], None]) -> None:
    """Register a call for when a module has been loaded; it is made now if it already is.

    Args:
        name: the module's full name.
        mend: called with the module.
    """
    if name in sys.modules:
        mend(sys.modules[name])
    else:
        _after.setdefault(name, []).append(mend)


class _QuietLoader(importlib.machinery.SourceFileLoader):
    """Loads a module with notices of deprecation held back, and calls what waits for it."""

    def exec_module(self, module: types.ModuleType) -> None:
        for prepare in _before.get(module.__name__, ()):
            prepare()
        with warnings.catch_warnings():
            for category in _NOTICES:
                warnings.simplefilter("ignore", category)
            super().exec_module(module)
        for mend in _after.get(module.__name__, ()):
            mend(module)


class PackageFinder(importlib.abc.MetaPathFinder):
    """Finds the modules of :data:`PACKAGES` where Python would, and has them loaded quietly."""

    def find_spec(self, fullname, path=None, target=None):
        """Return the usual spec with a quiet loader, or ``None`` for any other package."""
        if fullname.partition(".")[0] not in PACKAGES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and type(spec.loader) is importlib.machinery.SourceFileLoader:
            spec.loader = _QuietLoader(spec.loader.name, spec.loader.path)
        return spec


class DistutilsFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Offers ``distutils.version`` where nobody else does; it stands last, so others come first."""

    def find_spec(self, fullname, path=None, target=None):
        """Return a spec for ``distutils`` and ``distutils.version`` alone."""
        if fullname not in ("distutils", "distutils.version"):
            return None
        return importlib.util.spec_from_loader(
            fullname, self, origin=__name__, is_package=fullname == "distutils"
        )

    def exec_module(self, module: types.ModuleType) -> None:
        """Fill the stand-in module."""
        if module.__name__ == "distutils.version":
            from mxopt.compat import versions

            module.LooseVersion = versions.LooseVersion
            module.StrictVersion = versions.StrictVersion


def installed(finder: type) -> bool:
    """Tell whether a finder of this class is already asked by ``import``."""
    return any(isinstance(known, finder) for known in sys.meta_path)
