"""Patches of batches and hashes, for NumPy's stricter arrays and a stricter SciPy.

Two habits of MXNet's time are errors now: an array made of arrays of unequal length (NumPy 1.24),
and an integer that does not fit the dtype it is written to (NumPy 2.0).
"""

from __future__ import annotations

import importlib.metadata
import inspect
import types
import warnings
from functools import partial

import numpy

from mxopt.compat import numpy_changes
from mxopt.compat.editing import edit
from mxopt.compat.library_patches import patch_of


def array_of(parts) -> numpy.ndarray:
    """Return ``np.asarray(parts)``; an array of objects if the parts differ in shape.

    Args:
        parts: a sequence of arrays, lists or numbers.
    """
    parts = list(parts)
    if len({numpy.shape(part) for part in parts}) <= 1:
        return numpy.asarray(parts)
    array = numpy.empty(len(parts), dtype=object)
    for index, part in enumerate(parts):
        array[index] = part
    return array


def full(shape, fill_value, dtype=None) -> numpy.ndarray:
    """Return ``np.full(...)``; an integer out of the dtype's range wraps around.

    Args:
        shape: shape of the array.
        fill_value: the value.
        dtype: dtype of the array; that of the value if None.
    """
    with numpy.errstate(all="ignore"):
        value = numpy.asarray(fill_value)
        return numpy.full(shape, value if dtype is None else value.astype(dtype), dtype)


def _edit_batchify(function: str, module: types.ModuleType) -> None:
    module._array_of, module._full = array_of, full
    edit(function, "np.asarray(data)", "_array_of(data)", module)
    if "np.full(" in inspect.getsource(getattr(module, function)):
        edit(function, "np.full(", "_full(", module)


def _edit_pad(module: types.ModuleType) -> None:
    module._full = full
    edit("_pad_arrs_to_max_length", "np.full(", "_full(", module)


def _edit_hash(module: types.ModuleType) -> None:
    # Numba compiles it where it is installed, and its int8 wraps around.
    if inspect.isfunction(module._fasttext_hash):
        edit("_fasttext_hash", "np.int8(c)", "np.uint8(c).view(np.int8)", module)


def _compares_sums() -> bool:
    # Found out by its release, because importing it is slow.
    try:
        release = importlib.metadata.version("scipy")
    except importlib.metadata.PackageNotFoundError:
        return False
    return tuple(int(part) for part in release.split(".")[:2]) >= (1, 7)


def refuses_arrays_of_unequal_length() -> bool:
    """Return whether sequences of unequal length are an error, as since NumPy 1.24."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            numpy.asarray([[1], [1, 2]])
        except ValueError:
            return True
    return False


PATCHES = (
    *(
        patch_of(
            f"gluoncv.data.dataloader.{function}",
            "it makes an array of labels of unequal length, and pads unsigned ones with -1",
            "NumPy 1.24 (unequal length), 2.0 (-1)",
            refuses_arrays_of_unequal_length,
            "gluoncv.data.dataloader",
            partial(_edit_batchify, function),
        )
        for function in (
            "default_pad_batchify_fn",
            "default_mp_pad_batchify_fn",
            "tsn_mp_batchify_fn",
        )
    ),
    patch_of(
        "gluonnlp.data.batchify.Pad",
        "it pads unsigned integers with negative values, which NumPy warned of before",
        "NumPy 2.0",
        numpy_changes.refuses_integers_out_of_range,
        "gluonnlp.data.batchify.batchify",
        _edit_pad,
    ),
    patch_of(
        "gluonnlp.vocab.subwords: hashes",
        "it reads the bytes of words that are not ASCII as int8",
        "NumPy 1.24 (a warning for each byte), 2.0",
        refuses_arrays_of_unequal_length,
        "gluonnlp.vocab.subwords",
        _edit_hash,
    ),
    patch_of(
        "mxnet.test_utils.chi_square_check",
        "it rounds expected frequencies, whose sum SciPy now compares with that of the observed",
        "SciPy 1.7",
        _compares_sums,
        "mxnet.test_utils",
        partial(
            edit,
            "chi_square_check",
            "f_exp=expected_freq",
            "f_exp=expected_freq * (obs_freq.sum() / expected_freq.sum())",
        ),
    ),
)
