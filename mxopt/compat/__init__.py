"""Lets MXNet 1.9.1, GluonCV 0.10.5 and GluonNLP 0.10 import and run on today's Python and NumPy.

``import mxopt`` calls :func:`activate` before anything else; MXNet itself is not imported by it.
Every patch is a :class:`~mxopt.compat.patch.Patch` with its reason and the release that broke what
it mends, applied only where that is broken; :func:`patches` lists those at work in this process.
"""

from __future__ import annotations

import importlib.util
import sys

from mxopt.compat import cuda, hooks, library_patches, numpy_names
from mxopt.compat.cuda import CudaLibrary, cuda_build, cuda_libraries
from mxopt.compat.patch import Patch
from mxopt.core.errors import CompatError

__all__ = [
    "CudaLibrary",
    "Patch",
    "activate",
    "cuda_build",
    "cuda_libraries",
    "patches",
    "require_mxnet",
]

_active: list[Patch] = []

_HOOK_PATCHES = (
    Patch(
        name="import hook",
        reason="MXNet and GluonCV raise notices of deprecation and invalid escapes when imported",
        broken_since="Python 3.6 (escapes), NumPy 1.20, distutils of Python 3.10",
        applies=lambda: not hooks.installed(hooks.PackageFinder),
        apply=lambda: sys.meta_path.insert(0, hooks.PackageFinder()),
    ),
    Patch(
        name="distutils.version",
        reason="mxnet/numpy_op_fallback.py and gluoncv/check.py compare release numbers with it",
        broken_since="Python 3.12",
        applies=lambda: importlib.util.find_spec("distutils") is None,
        apply=lambda: sys.meta_path.append(hooks.DistutilsFinder()),
    ),
    Patch(
        name="CUDA 11 libraries",
        reason="the dynamic loader does not look where NVIDIA's wheels put them",
        broken_since="always, for libraries installed by pip",
        applies=lambda: "mxnet" not in sys.modules and cuda_build() is not None,
        apply=lambda: hooks.before_import("mxnet", cuda.load_cuda_libraries),
    ),
)


def activate() -> None:
    """Mend what is broken for MXNet, GluonCV and GluonNLP here; calling it again changes nothing.

    MXNet need not be installed. If it was imported before and works, that is kept.

    Raises:
        CompatError: an earlier ``import mxnet`` failed half way; its remains cannot be mended here.
    """
    if "mxnet" not in sys.modules and any(name.startswith("mxnet.") for name in sys.modules):
        raise CompatError(
            "An earlier 'import mxnet' failed half way and its remains cannot be mended: "
            "start Python (or the notebook's kernel) again and import mxopt before mxnet."
        )
    for patch in _HOOK_PATCHES + numpy_names.PATCHES + library_patches.PATCHES:
        if patch not in _active and patch.applies():
            patch.apply()
            _active.append(patch)


def patches() -> tuple[Patch, ...]:
    """Return the patches at work in this process, in the order they were applied."""
    return tuple(_active)


def require_mxnet() -> None:
    """Raise :class:`CompatError`, with the command that helps, unless one MXNet is installed."""
    if importlib.util.find_spec("mxnet") is None:
        raise CompatError(
            "MXNet is not installed here: run \"pip install 'mxopt[cpu]'\", "
            "or \"pip install 'mxopt[cu112]'\" for NVIDIA GPUs."
        )
    cuda.check_single_build()
