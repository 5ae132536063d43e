"""Checks of the values of options, by the annotations of the function that takes them."""

from __future__ import annotations

import inspect
import math
import numbers
import os
from collections.abc import Callable

from mxopt.core.errors import PlanError

# By annotation: what a value must be, and whether it is.
_KINDS = {
    "bool": ("true or false", lambda value: isinstance(value, bool)),
    "int": ("a whole number", lambda value: _number(value, numbers.Integral)),
    "float": (
        "a finite number",
        lambda value: _number(value, numbers.Real) and math.isfinite(value),
    ),
    "str": ("text", lambda value: isinstance(value, (str, os.PathLike))),
}


def check_values(function: Callable, options: dict) -> None:
    """Check that options have the types that a function's annotations name.

    Only parameters with the annotation ``bool``, ``int``, ``float`` or ``str`` are checked; with
    ``| None``, None is allowed as well.

    Args:
        function: a recipe or a workload.
        options: options by name; those that are no parameter of the function are ignored.

    Raises:
        PlanError: a value has another type, or is a number that is not finite.
    """
    for name, parameter in inspect.signature(function).parameters.items():
        annotation = parameter.annotation
        text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
        kind, _, none = text.partition(" | ")
        if name not in options or kind not in _KINDS or none not in ("", "None"):
            continue
        value, (what, is_one) = options[name], _KINDS[kind]
        if not (is_one(value) or (none and value is None)):
            more = ", or null for none" if none else ""
            raise PlanError(f"{name}={value!r} must be {what}{more}")


def check_limit(limit: int | None) -> None:
    """Check the number of samples that a recipe is limited to.

    Args:
        limit: the number; None for all samples.

    Raises:
        PlanError: it is less than 1.
    """
    if limit is not None and limit < 1:
        raise PlanError(f"limit={limit} must be at least 1; leave it out for all samples")


def _number(value, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
