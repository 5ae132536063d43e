"""Import hooks for MXNet, GluonCV and GluonNLP: hide warnings, apply patches, defer imports."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
import warnings
from collections.abc import Callable

PACKAGES = ("mxnet", "gluoncv", "gluonnlp")

# Warnings of future incompatibilities; present ones are patched, so users need not see these.
_NOTICES = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, SyntaxWarning)


_before: dict[str, list[Callable[[], None]]] = {}
_after: dict[str, list[Callable[[types.ModuleType], None]]] = {}


def before_import(name: str, prepare: Callable[[], None]) -> None:
    """Register a function to be called just before a module is loaded.

    Args:
        name: the module's full name.
        prepare: called without arguments.
    """
    _before.setdefault(name, []).append(prepare)


def after_import(name: str, callback: Callable[[types.ModuleType], None]) -> None:
    """Register a function to be called after a module is loaded; at once if it is loaded already.

    Args:
        name: the module's full name.
        callback: called with the module.
    """
    if name in sys.modules:
        callback(sys.modules[name])
    else:
        _after.setdefault(name, []).append(callback)


class DeferredModule(types.ModuleType):
    """Stands for a module until something of it is used; only then it is imported."""

    def __getattr__(self, name: str):
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


def lighten_import(package: str, *names: str) -> None:
    """Let a package's import do without modules that it needs little of.

    It gets :class:`DeferredModule` for these modules, and our ``distutils.version``: on some
    Pythons ``distutils`` imports all of setuptools. Everyone else imports them as ever, and the
    package, too, if they are imported already.

    Args:
        package: full name of the package.
        *names: full names of the modules.
    """
    placed: dict[str, types.ModuleType] = {}

    def place() -> None:
        placed.update({name: DeferredModule(name) for name in names if is_there(name)})
        placed.update(_our_distutils())
        for name in sys.modules.keys() & placed.keys():
            del placed[name]
        sys.modules.update(placed)

    def take_away(module: types.ModuleType) -> None:
        for name, stand_in in placed.items():
            if sys.modules.get(name) is stand_in:
                del sys.modules[name]

    before_import(package, place)
    after_import(package, take_away)


def is_there(name: str) -> bool:
    """Return whether a module's package is installed, without importing it or asking other finders.

    Args:
        name: full name of the module.
    """
    return importlib.machinery.PathFinder.find_spec(name.partition(".")[0]) is not None


def _our_distutils() -> dict[str, types.ModuleType]:
    """Return ``distutils`` and ``distutils.version``; the first finds its other modules."""
    found = {}
    for name in ("distutils", "distutils.version"):
        spec = DistutilsFinder().find_spec(name)
        found[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found[name])
    real = importlib.machinery.PathFinder.find_spec("distutils")
    found["distutils"].__path__ = real.submodule_search_locations if real else []
    return found


class _QuietLoader(importlib.machinery.SourceFileLoader):
    """Load a module without warnings of deprecation, and call the functions registered for it."""

    def exec_module(self, module: types.ModuleType) -> None:
        for prepare in _before.get(module.__name__, ()):
            prepare()
        with warnings.catch_warnings():
            for category in _NOTICES:
                warnings.simplefilter("ignore", category)
            super().exec_module(module)
        for callback in _after.get(module.__name__, ()):
            callback(module)


class PackageFinder(importlib.abc.MetaPathFinder):
    """Find the modules of :data:`PACKAGES` as Python does, and give them the quiet loader."""

    def find_spec(self, fullname, path=None, target=None):
        """Return the usual spec with a quiet loader, or ``None`` for any other package."""
        if fullname.partition(".")[0] not in PACKAGES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and type(spec.loader) is importlib.machinery.SourceFileLoader:
            spec.loader = _QuietLoader(spec.loader.name, spec.loader.path)
        return spec


class DistutilsFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Provide ``distutils.version`` if nothing else does: it is the last finder to be tried."""

    def find_spec(self, fullname, path=None, target=None):
        """Return a spec for ``distutils`` and ``distutils.version``, else ``None``."""
        if fullname not in ("distutils", "distutils.version"):
            return None
        return importlib.util.spec_from_loader(
            fullname, self, origin=__name__, is_package=fullname == "distutils"
        )

    def exec_module(self, module: types.ModuleType) -> None:
        """Fill the module."""
        if module.__name__ == "distutils.version":
            from mxopt.compat import versions

            module.LooseVersion = versions.LooseVersion
            module.StrictVersion = versions.StrictVersion


def installed(finder: type) -> bool:
    """Return whether a finder of this class is on ``sys.meta_path``."""
    return any(isinstance(known, finder) for known in sys.meta_path)
