"""Everything public in mxopt and benchmarks has a docstring, and its parameters are described."""

import ast
import doctest
import importlib
import inspect
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Called by MXNet, PyTorch or the import system, with parameters that these describe.
NOT_CHECKED = ("forward", "hybrid_forward", "find_spec")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def files_of(package):
    """Yield the sources of a package; for ``mxopt`` and ``benchmarks`` those of no sub-package."""
    folder = ROOT / package.replace(".", "/")
    yield from folder.rglob("*.py") if "." in package else folder.glob("*.py")


def packages():
    """Return the packages to check, one test each."""
    inner = [path.parent.name for path in (ROOT / "mxopt").glob("*/__init__.py")]
    return ["mxopt", *(f"mxopt.{name}" for name in sorted(inner)), "benchmarks", "benchmarks.peers"]


def parameters_of(function):
    """Return the names of a function's parameters, without self and cls."""
    own = function.args
    names = [arg.arg for arg in (*own.posonlyargs, *own.args, *own.kwonlyargs)]
    names += [arg.arg for arg in (own.vararg, own.kwarg) if arg]
    return [name for name in names if name not in ("self", "cls") and not name.startswith("_")]


def described_in(docstring):
    """Return the names that the ``Args:`` section of a docstring describes, each on its line."""
    _, heading, text = ("\n" + inspect.cleandoc(docstring)).partition("\nArgs:\n")
    section = re.split(r"\n\S", text)[0] if heading else ""
    return set(re.findall(r"^ {4}\*{0,2}(\w+)(?: \([^)]*\))?: ", section, re.MULTILINE))


def imports_of(module):
    """Return ``{name: dotted name}`` for what a module imports."""
    found = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                found[name] = alias.name if alias.asname else name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return found


def imported(dotted):
    """Return what a dotted name stands for; None where a package is missing."""
    module, _, attribute = dotted.rpartition(".")
    try:
        return getattr(importlib.import_module(module or "builtins"), attribute)
    except AttributeError:
        owner = imported(module)
        return getattr(owner, attribute, None)
    except ImportError:
        return None


def is_override(name, owner, module):
    """Return whether a base class of ``owner``, at any depth, has a method of this name."""
    here = {node.name: node for node in module.body if isinstance(node, ast.ClassDef)}
    names = imports_of(module)
    for base in owner.bases:
        text = ast.unparse(base)
        if text in here:
            inherited = [node.name for node in here[text].body if isinstance(node, FUNCTIONS)]
            if name in inherited or is_override(name, here[text], module):
                return True
            continue
        first, dot, rest = text.partition(".")
        if hasattr(imported(names.get(first, first) + dot + rest), name):
            return True
    return False


def problems_of(source, place):
    """Return a line for each docstring that is missing or leaves out a parameter."""
    module, found = ast.parse(source), []

    def check(node, name, described=True):
        docstring, parameters = ast.get_docstring(node), []
        if isinstance(node, FUNCTIONS) and described:
            parameters = parameters_of(node)
        where = f"{place}:{getattr(node, 'lineno', 1)}: {name}"
        if not docstring:
            found.append(f"{where} has no docstring")
        elif len(parameters) > 1:
            missing = [each for each in parameters if each not in described_in(docstring)]
            if missing:
                found.append(f"{where} does not describe {', '.join(missing)} under Args:")

    check(module, "the module")
    for node in module.body:
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef)) or node.name.startswith("_"):
            continue
        check(node, node.name)
        if not isinstance(node, ast.ClassDef):
            continue
        for method in node.body:
            if (
                isinstance(method, FUNCTIONS)
                and not method.name.startswith("_")
                and method.name not in NOT_CHECKED
                and not any(ast.unparse(d).endswith(".setter") for d in method.decorator_list)
            ):
                override = is_override(method.name, node, module)
                check(method, f"{node.name}.{method.name}", described=not override)
    return found


def with_examples():
    """Return the names of the modules whose docstrings have examples."""
    files = [path for package in ("mxopt", "benchmarks") for path in (ROOT / package).rglob("*.py")]
    found = [path.relative_to(ROOT).with_suffix("") for path in files if ">>>" in path.read_text()]
    return sorted(".".join(path.parts).removesuffix(".__init__") for path in found)


@pytest.mark.parametrize("module", with_examples())
def test_the_examples_of_docstrings_are_right(module):
    assert doctest.testmod(importlib.import_module(module)).failed == 0


@pytest.mark.parametrize("package", packages())
def test_everything_public_is_documented(package):
    problems = [
        problem
        for path in sorted(files_of(package))
        for problem in problems_of(path.read_text(encoding="utf-8"), path.relative_to(ROOT))
    ]
    assert not problems, f"{len(problems)} docstrings to complete:\n" + "\n".join(problems)


MADE = '''"""Made."""
import argparse
class Good(argparse.Action):
    """Made."""
    def format_usage(self, one, two):
        """An override of a base class's method."""
class Child(Good):
    """Made."""
    def format_usage(self, one, two):
        """The same."""
    def own(self, one, *two, three=3, **four):
        """Describe some.

        Args:
            one: the first;
                two: is no entry of its own.
            *two: the rest.
            three (int): a number.

        Returns:
            four: not under Args.
        """
def bare(): pass
def _private(one, two): pass
'''


def test_what_is_missing_is_listed():
    assert problems_of(MADE, "made.py") == [
        "made.py:11: Child.own does not describe four under Args:",
        "made.py:23: bare has no docstring",
    ]
    assert "made.py:11: Child.own does not describe two, four under Args:" in problems_of(
        MADE.replace("*two: the", "*deux: the"), "made.py"
    )
    assert problems_of("x = 1", "made.py") == ["made.py:1: the module has no docstring"]
