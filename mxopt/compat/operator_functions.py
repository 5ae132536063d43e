"""Keep the functions of MXNet's operators: to write and compile them is half of its import.

MXNet 1.9 writes a Python function for each of its operators as text and compiles it, once for
arrays and once for symbols, thousands in all, whenever it is imported or loads a library of
operators. Apart from the operator's handle, a number, the text is the same each time. The first
import here keeps it in the user's cache, as one module for arrays and one for symbols with their
bytecode; later imports read these and put the handles in. A cache that cannot be written to or read
changes nothing but the time.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import inspect
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path

from mxopt.compat import hooks
from mxopt.core.atomic import replace_text
from mxopt.core.cache import cache_folder
from mxopt.core.errors import RecordError

# Each function of MXNet's that registers operators takes one that makes their functions.
_REGISTERING = ("_init_op_module", "_init_np_op_module")
_MAKER = "make_op_func"

_makers: dict[Callable, _Maker] = {}


def keep_functions() -> None:
    """Have MXNet, when it is imported, keep the functions of its operators or read those kept."""
    hooks.after_import("mxnet.base", _replace_makers)
    hooks.after_import("mxnet", _save)


def _save(module: types.ModuleType) -> None:
    for maker in _makers.values():
        maker.save()


def _replace_makers(base: types.ModuleType) -> None:
    for name in _REGISTERING:
        setattr(base, name, _registering(getattr(base, name), Path(base._LIB._name)))


def _registering(original: Callable, library: Path) -> Callable:
    """Return one of MXNet's functions that register operators, with a maker that reads first."""
    signature = inspect.signature(original)

    @functools.wraps(original)
    def register(*args, **kwargs):
        given = signature.bind(*args, **kwargs)
        make = given.arguments[_MAKER]
        if make not in _makers:
            _makers[make] = _Maker(make, library)
        given.arguments[_MAKER] = _makers[make]
        return original(*given.args, **given.kwargs)

    return register


class _Maker:
    """Returns the function of an operator: that which was kept, or else a new one of MXNet's.

    Args:
        make: MXNet's own maker, of ``mxnet.ndarray.register`` or ``mxnet.symbol.register``.
        library: path of MXNet's library, whose operators they are.
    """

    def __init__(self, make: Callable, library: Path) -> None:
        self.make = make
        self.namespace = make.__globals__
        module, source = self.namespace["__name__"], Path(self.namespace["__file__"])
        place = hashlib.sha256(str(library).encode()).hexdigest()[:16]
        self.path = cache_folder() / "operators" / f"{module.replace('.', '_')}_{place}.py"
        self.made_from = repr([_stamp(file) for file in (library, source, Path(__file__))])
        self.kept = _read(self.path, self.made_from, self.namespace["_Null"])
        self.texts: list[str] = []
        # _make_ndarray_function calls _generate_ndarray_function_code
        self.writer = f"{make.__name__.replace('make', 'generate')}_code"
        if not self.kept:
            self.write = self.namespace[self.writer]
            self.namespace[self.writer] = self._write_and_note

    def __call__(self, handle, name: str, func_name: str) -> types.FunctionType:
        if (name, func_name) not in self.kept:
            return self.make(handle, name, func_name)
        function, doc = self.kept[name, func_name]
        constants = (
            handle.value if constant is ... else constant
            for constant in function.__code__.co_consts
        )
        code = function.__code__.replace(co_consts=tuple(constants))
        made = types.FunctionType(code, self.namespace, func_name, function.__defaults__)
        made.__doc__ = doc
        made.__module__ = self.namespace["__package__"]
        return made

    def _write_and_note(self, handle, name: str, func_name: str) -> tuple[str, str]:
        code, doc = self.write(handle, name, func_name)
        text = code.replace(f"({handle.value}, ", "(..., ")
        self.texts.append(f"{text}\nKEPT[{name!r}, {func_name!r}] = {func_name}, {doc!r}\n")
        return code, doc

    def save(self) -> None:
        """Keep the functions that were made since MXNet's import began, if none could be read."""
        if not self.texts:
            return
        self.namespace[self.writer] = self.write
        text = "".join([f"MADE_FROM = {self.made_from!r}\n", *self.texts])
        self.texts = []
        with contextlib.suppress(OSError, RecordError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            replace_text(self.path, text)
            # In another process, for it would double the peak memory of this one, which may be
            # measured; and also where PYTHONDONTWRITEBYTECODE is set.
            command = [sys.executable, "-m", "py_compile", self.path]
            subprocess.run(command, capture_output=True)


def _stamp(file: Path) -> tuple[int, int]:
    found = file.stat()
    return found.st_size, found.st_mtime_ns


def _read(
    path: Path, made_from: str, null: object
) -> dict[tuple[str, str], tuple[types.FunctionType, str]]:
    """Return functions that were kept, with their texts for ``help``; none if they can't be read.

    Args:
        path: of their module.
        made_from: what its ``MADE_FROM`` must be.
        null: MXNet's default of parameters that have no value.
    """
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    module.KEPT, module._Null = {}, null
    try:
        spec.loader.exec_module(module)
    except Exception:  # whatever it is, MXNet's own way remains
        return {}
    return module.KEPT if getattr(module, "MADE_FROM", None) == made_from else {}
