"""Patches of MXNet, GluonCV and GluonNLP, applied after import, for newer Python and libraries."""

from __future__ import annotations

import importlib.machinery
import types
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy

from mxopt.compat import hooks, numpy_changes
from mxopt.compat.editing import convert_result, edit
from mxopt.compat.patch import Patch


def _as_numpy_array(self, dtype=None, copy=None):
    """Copy an MXNet array into a NumPy array: NumPy's ``__array__`` protocol."""
    if copy is False:
        raise ValueError(
            "copy=False: NumPy cannot read an MXNet array without a copy; leave it out."
        )
    array = self.asnumpy()
    return array if dtype is None else array.astype(dtype, copy=False)


def _offer_as_array(module: types.ModuleType) -> None:
    module.NDArray.__array__ = _as_numpy_array


def _wrapping_array(source, dtype=None):
    """Make a NumPy array; integers out of the dtype's range wrap around, as before NumPy 2."""
    try:
        return numpy.array(source, dtype=dtype)
    except OverflowError:
        return numpy.array(source).astype(dtype)


def _wrap_integers(name: str, call: str, module: types.ModuleType) -> None:
    module._wrapping_array = _wrapping_array
    edit("array", f"{name}.array({call}, dtype=dtype)", f"_wrapping_array({call}, dtype)", module)


def _parameter_text(value: object) -> str:
    """Return what ``str`` returned before NumPy 2: numbers in a tuple or list without their type.

    MXNet passes parameters to its operators as text; they parse ``(4, 3)``, but not
    ``(4, np.int64(3))``.
    """
    if not isinstance(value, (tuple, list)):
        return str(value)
    parts = [
        _parameter_text(part) if isinstance(part, (tuple, list, numpy.number)) else repr(part)
        for part in value
    ]
    if isinstance(value, list):
        return f"[{', '.join(parts)}]"
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


def _write_plain_parameters(function: str, variable: str, module: types.ModuleType) -> None:
    module._parameter_text = _parameter_text
    edit(function, f"str({variable})", f"_parameter_text({variable})", module)


def _remake_iterators(module: types.ModuleType) -> None:
    _write_plain_parameters("_make_io_iterator", "val", module)
    module._init_io_module()


def _list_to_tuple(result: object) -> object:
    return tuple(result) if isinstance(result, list) else result


def _eig_type(name: str) -> type:
    return type(getattr(numpy.linalg, name)(numpy.eye(1)))


def _name_eig_results(module: types.ModuleType) -> None:
    for name in ("eig", "eigh"):
        convert_result(name, _eig_type(name)._make, module)


def _tuples_of_at_least(module: types.ModuleType) -> None:
    for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
        convert_result(name, _list_to_tuple, module)


def _scipy_warns_of_its_modules() -> bool:
    # SciPy 1.8 added this file. SciPy is not imported: that is slow, and MXNet does not need it.
    spec = importlib.machinery.PathFinder.find_spec("scipy")
    return spec is not None and (Path(spec.origin).parent / "sparse" / "_csr.py").exists()


def _torch_is_there() -> bool:
    # It is not imported, because that is slow.
    return hooks.is_there("torch")


def _no_torch_wanted(*versions: str) -> None:
    raise ImportError("mxopt uses GluonCV with MXNet only")


def _leave_torch_alone(module: types.ModuleType) -> None:
    module._require_pytorch_version = _no_torch_wanted


def patch_of(
    name: str,
    reason: str,
    broken_since: str,
    applies: Callable[[], bool],
    module: str,
    change: Callable[[types.ModuleType], None],
) -> Patch:
    """Return a patch that changes a module after it was imported.

    Args:
        name: what is patched.
        reason: what needs the patch, and why it fails without.
        broken_since: the release that made it necessary.
        applies: returns whether the installed Python and libraries need it.
        module: full name of the module.
        change: changes the module.
    """
    return Patch(name, reason, broken_since, applies, partial(hooks.after_import, module, change))


PATCHES = (
    patch_of(
        "mxnet.ndarray.NDArray.__array__",
        "without it NumPy reads an array as nested sequences of unlimited depth, now an error",
        "NumPy 1.24",
        numpy_changes.refuses_deep_nesting,
        "mxnet.ndarray.ndarray",
        _offer_as_array,
    ),
    *(
        patch_of(
            f"{module}.array",
            "it converts lists with NumPy, where integers out of a dtype's range are now errors",
            "NumPy 2.0",
            numpy_changes.refuses_integers_out_of_range,
            module,
            partial(_wrap_integers, name, call),
        )
        for module, name, call in (
            ("mxnet.ndarray.ndarray", "np", "source_array"),
            ("mxnet.numpy.multiarray", "_np", "object"),
        )
    ),
    *(
        patch_of(
            name,
            "it writes parameters as text, in which NumPy's numbers now include their type",
            "NumPy 2.0",
            numpy_changes.writes_types,
            module,
            change,
        )
        for name, module, change in (
            (
                "mxnet.ndarray: operator parameters",
                "mxnet._ctypes.ndarray",
                partial(_write_plain_parameters, "_imperative_invoke", "s"),
            ),
            (
                "mxnet.symbol: operator parameters",
                "mxnet._ctypes.symbol",
                partial(_write_plain_parameters, "_symbol_creator", "v"),
            ),
            (
                "mxnet.symbol.var: shape",
                "mxnet.symbol.symbol",
                partial(_write_plain_parameters, "var", "shape"),
            ),
            ("mxnet.io: iterator parameters", "mxnet.io.io", _remake_iterators),
        )
    ),
    patch_of(
        "mxnet.numpy: named tuples",
        "functions that fall back to NumPy, such as mx.np.linalg.qr, fail on named tuples",
        "NumPy 1.25",
        numpy_changes.returns_named_tuples,
        "mxnet.numpy.multiarray",
        partial(
            edit,
            "_as_mx_np_array",
            "return object.__class__(tmp)",
            "return getattr(object, '_make', object.__class__)(tmp)",
        ),
    ),
    patch_of(
        "mxnet.numpy.linalg: eig, eigh",
        "they return the type that NumPy's return, now named tuples",
        "NumPy 1.25",
        numpy_changes.returns_named_tuples,
        "mxnet.numpy.linalg",
        _name_eig_results,
    ),
    patch_of(
        "mxnet.numpy: broadcast_arrays, meshgrid",
        "they return what NumPy's return, and NumPy's list became a tuple",
        "NumPy 2.0",
        numpy_changes.returns_tuples,
        "mxnet.numpy.stride_tricks",
        partial(convert_result, "broadcast_arrays", _list_to_tuple),
    ),
    patch_of(
        "mxnet.numpy: atleast_1d, atleast_2d, atleast_3d",
        "they return what NumPy's return, and NumPy's list became a tuple",
        "NumPy 2.0",
        numpy_changes.returns_tuples,
        "mxnet.numpy",
        _tuples_of_at_least,
    ),
    patch_of(
        "mxnet.ndarray.moveaxis",
        "it reads numpy.core, which warns at every use",
        "NumPy 2.0",
        lambda: hasattr(numpy.lib, "array_utils"),
        "mxnet.ndarray.ndarray",
        partial(edit, "moveaxis", "np.core.numeric.", "np.lib.array_utils."),
    ),
    patch_of(
        "mxnet.recordio: pack",
        "it calls ndarray.tostring, now tobytes",
        "NumPy 2.3",
        lambda: not hasattr(numpy.ndarray, "tostring"),
        "mxnet.recordio",
        partial(edit, "pack", ".tostring()", ".tobytes()"),
    ),
    patch_of(
        "mxnet.recordio: pack_img",
        "it calls ndarray.tostring, now tobytes",
        "NumPy 2.3",
        lambda: not hasattr(numpy.ndarray, "tostring"),
        "mxnet.recordio",
        partial(edit, "pack_img", ".tostring()", ".tobytes()"),
    ),
    patch_of(
        "gluoncv.check: PyTorch",
        "GluonCV refuses to be imported beside a PyTorch of 2.0 or later, as Colab has it",
        "PyTorch 2.0",
        _torch_is_there,
        "gluoncv.check",
        _leave_torch_alone,
    ),
    patch_of(
        "gluoncv CenterNetTargetGenerator",
        "it converts an array of one element to an integer",
        "NumPy 2.4",
        numpy_changes.refuses_arrays_of_one_as_numbers,
        "gluoncv.model_zoo.center_net.target_generator",
        partial(edit, "CenterNetTargetGenerator.forward", "int(cid)", "int(cid.item())"),
    ),
    patch_of(
        "gluonnlp SpacyTokenizer",
        "it compares spaCy's release with pkg_resources, and reports a missing spaCy without it",
        "Python 3.12, whose virtual environments have no setuptools",
        lambda: not hooks.is_there("pkg_resources"),
        "gluonnlp.data.transforms",
        partial(
            edit,
            "SpacyTokenizer.__init__",
            "from pkg_resources import parse_version",
            "from packaging.version import parse as parse_version",
        ),
    ),
    *(
        patch_of(
            f"{module}.{function}",
            "it looks for a name of SciPy that warns at every use",
            "SciPy 1.8",
            _scipy_warns_of_its_modules,
            module,
            partial(edit, function, "spsp.csr.csr_matrix)", "spsp.csr_matrix)"),
        )
        for module, function in (
            ("mxnet.ndarray.utils", "array"),
            ("mxnet.ndarray.sparse", "_prepare_default_dtype"),
            ("mxnet.ndarray.sparse", "csr_matrix"),
            ("mxnet.ndarray.sparse", "array"),
        )
    ),
)
