"""Two ways to patch a loaded module: change a line of a function, or convert what it returns.

An edit replaces text in the source of one function and defines the function again. So no code of
the library is copied here. If the text is not found, it raises.
"""

from __future__ import annotations

import functools
import inspect
import textwrap
import types
from collections.abc import Callable

from mxopt.core.errors import CompatError


def edit(function: str, old: str, new: str, module: types.ModuleType) -> None:
    """Replace text in the source of a module's function and define the function again.

    Args:
        function: name of the function; ``"Class.method"`` for a method. It must not use ``super()``
            without arguments.
        old: text in its source.
        new: the text that replaces ``old``.
        module: the loaded module that has the function.

    Raises:
        CompatError: ``old`` is not found: the library is not the release that the edit is for.
    """
    owner_name, _, name = function.rpartition(".")
    owner = getattr(module, owner_name) if owner_name else module
    original = getattr(owner, name)
    if hasattr(original, "_edited"):  # the file has the source without that edit
        source, start = original._edited
    else:
        lines, start = inspect.getsourcelines(original)
        source = textwrap.dedent("".join(lines))
    if hasattr(original, "_edited") and old not in source and new in source:
        return  # this package was imported anew, and MXNet was not
    if old not in source:
        raise CompatError(
            f"{module.__name__}.{function} is from another release than expected (no {old!r} in "
            "it): install the versions in requirements.txt."
        )
    # Empty lines in front keep the line numbers of tracebacks correct.
    source = source.replace(old, new)
    code = compile("\n" * (start - 1) + source, module.__file__, "exec")
    defined: dict[str, object] = {}
    exec(code, module.__dict__, defined)
    defined[name]._edited = source, start
    setattr(owner, name, defined[name])
    for alias, value in list(vars(module).items()):
        if value is original:  # another name for it, as Variable is for var
            setattr(module, alias, defined[name])


def convert_result(
    function: str, convert: Callable[[object], object], module: types.ModuleType
) -> None:
    """Apply a conversion to what a function returns.

    Args:
        function: name of the function.
        convert: takes the result and returns the one that callers get.
        module: the loaded module that has the function.
    """
    original = getattr(module, function)

    @functools.wraps(original)
    def call(*args, **kwargs):
        return convert(original(*args, **kwargs))

    setattr(module, function, call)
