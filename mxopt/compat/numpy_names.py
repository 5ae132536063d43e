"""NumPy names that MXNet, GluonCV and GluonNLP use and that newer NumPy releases removed.

A name is restored only if it is missing, with the value or behaviour it had in NumPy 1.23, the last
release with which MXNet 1.9.1 imports unpatched. The removals are in the release notes of NumPy
1.24 (the aliases of Python's own types), 2.0, 2.4 and 2.5 (the main name space, one parameter).
"""

from __future__ import annotations

import functools
import types
import warnings
from collections.abc import Callable
from functools import partial

import numpy

from mxopt.compat.patch import Patch


def _dispatched(function: Callable) -> Callable:
    """Return ``function`` with dispatch of MXNet's arrays to MXNet, as NumPy's own have (NEP 18).

    The keys of MXNet's dispatch table are functions. So a restored name must be a separate function
    and must pass itself, not the function that it calls.
    """

    @functools.wraps(function)
    def call(*args, **kwargs):
        for arg in (*args, *kwargs.values()):
            kind = type(arg)
            if kind.__module__ == "mxnet.numpy" and hasattr(kind, "__array_function__"):
                return kind.__array_function__(arg, call, (kind,), args, kwargs)
        return function(*args, **kwargs)

    return call


def _renamed(old: str, new: str) -> Callable:
    """Return a function named ``old`` that does what ``numpy.<new>`` does."""

    def call(*args, **kwargs):
        return getattr(numpy, new)(*args, **kwargs)

    call.__name__ = old
    call.__doc__ = f"Call ``numpy.{new}``, the current name."
    return _dispatched(call)


def _in1d(ar1, ar2, assume_unique=False, invert=False):
    """Return which entries of the flattened ``ar1`` are in ``ar2``."""
    return numpy.isin(numpy.ravel(ar1), ar2, assume_unique=assume_unique, invert=invert)


def _msort(a):
    """Return a copy of ``a`` sorted along its first axis."""
    return numpy.sort(a, axis=0)


def _financial(name: str) -> Callable:
    """Return a financial function that raises when called, as in NumPy 1.20 to 1.26."""

    def removed(*args, **kwargs):
        raise RuntimeError(
            f"numpy.{name} was removed in NumPy 1.20 (NEP 32): use the package numpy_financial."
        )

    removed.__name__ = name
    return removed


# name -> (release that removed it, function that makes its value, what uses it)
_MXNET_IMPORT = "mxnet/numpy/utils.py, fallback.py or numpy_dispatch_protocol.py reads it at import"
_PYTHON_TYPE = "former alias of a Python type, which upstream's own tests use"
_NAMES: dict[str, tuple[str, Callable[[], object], str]] = {
    "bool": ("1.24", lambda: bool, _MXNET_IMPORT),
    "int": ("1.24", lambda: int, "mxnet.test_utils and gluoncv's hrnet and kitti use it"),
    "float": ("1.24", lambda: float, "gluoncv's anchors, COCO metric and tracking use it"),
    "complex": ("1.24", lambda: complex, _PYTHON_TYPE),
    "object": ("1.24", lambda: object, _PYTHON_TYPE),
    "str": ("1.24", lambda: str, _PYTHON_TYPE),
    "PZERO": ("2.0", lambda: 0.0, _MXNET_IMPORT),
    "NZERO": ("2.0", lambda: -0.0, _MXNET_IMPORT),
    "PINF": ("2.0", lambda: numpy.inf, _MXNET_IMPORT),
    "NINF": ("2.0", lambda: -numpy.inf, _MXNET_IMPORT),
    "Inf": ("2.0", lambda: numpy.inf, "mxnet's estimator callbacks and gluoncv.auto use it"),
    "infty": ("2.0", lambda: numpy.inf, "a spelling of inf beside Inf"),
    "NaN": ("2.0", lambda: numpy.nan, _MXNET_IMPORT),
    "NAN": ("2.0", lambda: numpy.nan, _MXNET_IMPORT),
    "float_": ("2.0", lambda: numpy.float64, "former alias of float64"),
    "round_": ("2.0", partial(_renamed, "round_", "round"), _MXNET_IMPORT),
    "product": ("2.0", partial(_renamed, "product", "prod"), _MXNET_IMPORT),
    "cumproduct": ("2.0", partial(_renamed, "cumproduct", "cumprod"), "former name of cumprod"),
    "sometrue": ("2.0", partial(_renamed, "sometrue", "any"), _MXNET_IMPORT),
    "alltrue": ("2.0", partial(_renamed, "alltrue", "all"), _MXNET_IMPORT),
    "msort": ("2.0", lambda: _dispatched(_msort), _MXNET_IMPORT),
    "in1d": ("2.4", lambda: _dispatched(_in1d), _MXNET_IMPORT),
    "trapz": ("2.4", partial(_renamed, "trapz", "trapezoid"), _MXNET_IMPORT),
    "row_stack": ("2.5", partial(_renamed, "row_stack", "vstack"), "former name of vstack"),
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
        # NumPy 1.24 to 1.26 warns when some names are looked up, whether they exist or not.
        warnings.simplefilter("ignore")
        return not hasattr(numpy, name)


def _restore(name: str, make: Callable[[], object]) -> None:
    setattr(numpy, name, make())


def _with_interpolation(function: Callable) -> Callable:
    """Return ``function`` with ``interpolation`` accepted as the former name of ``method``."""

    @functools.wraps(function)
    def call(*args, interpolation=None, **kwargs):
        if interpolation is not None:
            kwargs["method"] = interpolation
        return function(*args, **kwargs)

    return _dispatched(call)


_QUANTILES = ("percentile", "quantile", "nanpercentile", "nanquantile")


def _interpolation_gone() -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            numpy.percentile([0.0], 50, interpolation="lower")
        except TypeError:
            return True
    return False


def _restore_interpolation() -> None:
    for name in _QUANTILES:
        setattr(numpy, name, _with_interpolation(getattr(numpy, name)))


PATCHES = (
    *(
        Patch(
            name=f"numpy.{name}",
            reason=reason,
            broken_since=f"NumPy {release}",
            applies=partial(_missing, name),
            apply=partial(_restore, name, make),
        )
        for name, (release, make, reason) in _NAMES.items()
    ),
    Patch(
        name="numpy.percentile(interpolation=...)",
        reason="mx.np.percentile, quantile and their nan- forms pass it to NumPy's",
        broken_since="NumPy 2.4",
        applies=_interpolation_gone,
        apply=_restore_interpolation,
    ),
)
