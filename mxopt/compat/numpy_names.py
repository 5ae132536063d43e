"""NumPy names that MXNet, GluonCV and GluonNLP read and that newer NumPy releases took away.

Each is given back only where it is missing, with the value or behaviour it had in NumPy 1.23, the
last release under which MXNet 1.9.1 imports unaided. The removals are in the release notes of NumPy
1.24 (the aliases of Python's own types), 2.0 and 2.4 (the main name space).
"""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable
from functools import partial

import numpy

from mxopt.compat.patch import Patch


def _in1d(ar1, ar2, assume_unique=False, invert=False, *, kind=None):
    """Tell which entries of the flattened ``ar1`` are in ``ar2`` (NumPy's former ``in1d``)."""
    return numpy.isin(numpy.ravel(ar1), ar2, assume_unique=assume_unique, invert=invert, kind=kind)


def _msort(a):
    """Return a copy of ``a`` sorted along its first axis (NumPy's former ``msort``)."""
    return numpy.sort(a, axis=0)


def _financial(name: str) -> Callable:
    """Return a financial function that raises when called, as it did in NumPy 1.20 to 1.26."""

    def removed(*args, **kwargs):
        raise RuntimeError(
            f"numpy.{name} left NumPy in 1.20 (NEP 32); the numpy_financial package has it."
        )

    removed.__name__ = name
    return removed


def _renamed(old: str, new: str) -> Callable:
    """Return a function of its own that calls ``numpy.<new>``.

    Not the same object: MXNet keys its ``__array_function__`` table by function, and an alias would
    replace the entry of the name that stayed.
    """

    def call(*args, **kwargs):
        return getattr(numpy, new)(*args, **kwargs)

    call.__name__ = old
    call.__doc__ = f"Call ``numpy.{new}``, the name that stayed."
    return call


# name -> (release that removed it, how its value is made, who reads it)
_MXNET_IMPORT = "mxnet/numpy/utils.py, fallback.py or numpy_dispatch_protocol.py reads it at import"
_NAMES: dict[str, tuple[str, Callable[[], object], str]] = {
    "bool": ("1.24", lambda: bool, _MXNET_IMPORT),
    "int": ("1.24", lambda: int, "mxnet.test_utils and gluoncv's hrnet and kitti use it"),
    "float": ("1.24", lambda: float, "gluoncv's anchors, COCO metric and tracking use it"),
    "complex": ("1.24", lambda: complex, "former alias of a Python type, used in upstream tests"),
    "object": ("1.24", lambda: object, "former alias of a Python type, used in upstream tests"),
    "str": ("1.24", lambda: str, "former alias of a Python type, used in upstream tests"),
    "PZERO": ("2.0", lambda: 0.0, _MXNET_IMPORT),
    "NZERO": ("2.0", lambda: -0.0, _MXNET_IMPORT),
    "PINF": ("2.0", lambda: numpy.inf, _MXNET_IMPORT),
    "NINF": ("2.0", lambda: -numpy.inf, _MXNET_IMPORT),
    "Inf": ("2.0", lambda: numpy.inf, "mxnet's estimator callbacks and gluoncv.auto use it"),
    "Infinity": ("2.0", lambda: numpy.inf, "a spelling of inf beside Inf"),
    "infty": ("2.0", lambda: numpy.inf, "a spelling of inf beside Inf"),
    "NaN": ("2.0", lambda: numpy.nan, _MXNET_IMPORT),
    "NAN": ("2.0", lambda: numpy.nan, _MXNET_IMPORT),
    "float_": ("2.0", lambda: numpy.float64, "former alias of float64"),
    "round_": ("2.0", partial(_renamed, "round_", "round"), _MXNET_IMPORT),
    "product": ("2.0", partial(_renamed, "product", "prod"), _MXNET_IMPORT),
    "cumproduct": ("2.0", partial(_renamed, "cumproduct", "cumprod"), "former name of cumprod"),
    "sometrue": ("2.0", partial(_renamed, "sometrue", "any"), _MXNET_IMPORT),
    "alltrue": ("2.0", partial(_renamed, "alltrue", "all"), _MXNET_IMPORT),
    "msort": ("2.0", lambda: _msort, _MXNET_IMPORT),
    "in1d": ("2.4", lambda: _in1d, _MXNET_IMPORT),
    "trapz": ("2.4", partial(_renamed, "trapz", "trapezoid"), _MXNET_IMPORT),
    "compat": (
        "2.0",
        lambda: types.SimpleNamespace(basestring=str, unicode=str, long=int),
        "mx.np.pad compares its mode with numpy.compat.basestring",
    ),
}
_NAMES.update(
    {
        name: ("2.0", partial(_financial, name), _MXNET_IMPORT)
        for name in ("mirr", "npv", "pmt", "ppmt", "pv", "rate")
    }
)


def _missing(name: str) -> bool:
    with warnings.catch_warnings():
        # NumPy 1.24 to 1.26 warns of some names when they are asked for, there or not.
        warnings.simplefilter("ignore")
        return not hasattr(numpy, name)


def _restore(name: str, make: Callable[[], object]) -> None:
    setattr(numpy, name, make())


PATCHES = tuple(
    Patch(
        name=f"numpy.{name}",
        reason=reason,
        broken_since=f"NumPy {release}",
        applies=partial(_missing, name),
        apply=partial(_restore, name, make),
    )
    for name, (release, make, reason) in _NAMES.items()
)
