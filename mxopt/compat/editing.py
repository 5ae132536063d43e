"""The two ways in which a loaded module is mended: a line of a function, or what it returns.

An edit replaces text in one function and defines the function anew, so that nothing of the library
is copied here; it fails loudly where the text is not found.
"""

from __future__ import annotations

import functools
import inspect
import textwrap
import types
from collections.abc import Callable

from mxopt.core.errors import CompatError


def edit(function: str, old: str, new: str, module: types.ModuleType) -> None:
    """Replace ``old`` by ``new`` in ``function`` of ``module`` and define the function anew.

    Args:
        function: its name; ``"Class.method"`` for a method. It must not use ``super()`` without
            arguments.
        old: text of its source.
        new: what takes its place.
        module: the loaded module that has the function.

    Raises:
        CompatError: the text is not there; this is not the release that the edit was made for.
    """
    owner_name, _, name = function.rpartition(".")
    owner = getattr(module, owner_name) if owner_name else module
    original = getattr(owner, name)
    lines, start = inspect.getsourcelines(original)
    source = textwrap.dedent("".join(lines))
    if old not in source:
        raise CompatError(
            f"{module.__name__}.{function} is not the release that mxopt knows (no {old!r} in it): "
            "install the versions that requirements.txt names."
        )
    # Empty lines in front keep the line numbers of tracebacks true.
    code = compile("\n" * (start - 1) + source.replace(old, new), module.__file__, "exec")
    defined: dict[str, object] = {}
    exec(code, module.__dict__, defined)
    setattr(owner, name, defined[name])
    for alias, value in list(vars(module).items()):
        if value is original:  # another name for it, as Variable is for var
            setattr(module, alias, defined[name])


def convert_result(
    function: str, convert: Callable[[object], object], module: types.ModuleType
) -> None:
    """Apply a conversion to what a function returns.

    Args:
        function: its name.
        convert: takes the result and returns what callers get instead.
        module: the loaded module that has the function.
    """
    original = getattr(module, function)

    @functools.wraps(original)
    def call(*args, **kwargs):
        return convert(original(*args, **kwargs))

    setattr(module, function, call)
