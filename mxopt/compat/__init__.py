"""Make MXNet 1.9.1, GluonCV 0.10.5 and GluonNLP 0.10 import and run on current Python and NumPy.

``import mxopt`` calls :func:`activate` first; this does not import MXNet. Every patch is a
:class:`~mxopt.compat.patch.Patch`, with its reason and the release that made it necessary. It is
applied only where it is needed; :func:`patches` lists those applied in this process.
"""

from __future__ import annotations

import importlib.util
import sys

from mxopt.compat import (
    batch_patches,
    cuda,
    hooks,
    library_patches,
    numpy_names,
    operator_functions,
)
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
        reason="MXNet and GluonCV warn of deprecations and invalid escapes when imported",
        broken_since="Python 3.6 (escapes), NumPy 1.20, distutils of Python 3.10",
        applies=lambda: not hooks.installed(hooks.PackageFinder),
        apply=lambda: sys.meta_path.insert(0, hooks.PackageFinder()),
    ),
    Patch(
        name="distutils.version",
        reason="mxnet/numpy_op_fallback.py and gluoncv/check.py compare release numbers with it",
        broken_since="Python 3.12",
        # Not by importlib.util.find_spec: where setuptools answers, it would be imported.
        applies=lambda: not hooks.is_there("distutils"),
        apply=lambda: sys.meta_path.append(hooks.DistutilsFinder()),
    ),
    Patch(
        name="scipy.stats, requests and setuptools",
        reason="they take long to import, for calibration, downloads and a comparison of versions",
        broken_since="always, it is only slow",
        applies=lambda: "mxnet" not in sys.modules,
        apply=lambda: hooks.lighten_import("mxnet", "scipy.stats", "requests"),
    ),
    Patch(
        name="functions of operators",
        reason="MXNet writes and compiles them, thousands, whenever it is imported",
        broken_since="always, it is only slow",
        applies=lambda: "mxnet" not in sys.modules,
        apply=operator_functions.keep_functions,
    ),
    Patch(
        name="CUDA 11 libraries",
        reason="the dynamic loader does not search the folders of NVIDIA's wheels",
        broken_since="always, for libraries installed by pip",
        applies=lambda: "mxnet" not in sys.modules and cuda_build() is not None,
        apply=lambda: hooks.before_import("mxnet", cuda.load_cuda_libraries),
    ),
)


def activate() -> None:
    """Apply the patches that MXNet, GluonCV and GluonNLP need here; a second call does nothing.

    MXNet need not be installed. If it is already imported and works, it is left as it is.

    Raises:
        CompatError: an earlier ``import mxnet`` failed half way, which cannot be repaired in the
            same process.
    """
    if "mxnet" not in sys.modules and any(name.startswith("mxnet.") for name in sys.modules):
        raise CompatError(
            "An earlier 'import mxnet' failed half way and cannot be repeated in this process: "
            "restart Python (or the notebook's kernel) and import mxopt before mxnet."
        )
    every = (
        *_HOOK_PATCHES,
        *numpy_names.PATCHES,
        *library_patches.PATCHES,
        *batch_patches.PATCHES,
    )
    for patch in every:
        if patch not in _active and patch.applies():
            patch.apply()
            _active.append(patch)


def patches() -> tuple[Patch, ...]:
    """Return the patches applied in this process, in order."""
    return tuple(_active)


def require_mxnet() -> None:
    """Check that exactly one build of MXNet is installed.

    Raises:
        CompatError: there is none or more than one; the message has the command to run.
    """
    if importlib.util.find_spec("mxnet") is None:
        raise CompatError(
            "MXNet is not installed here: run \"pip install 'mxopt[cpu]'\", "
            "or \"pip install 'mxopt[cu112]'\" for NVIDIA GPUs."
        )
    cuda.check_single_build()
