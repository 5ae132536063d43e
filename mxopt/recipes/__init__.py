"""Recipes: what is trained. The plan says how it is trained.

A recipe is a :class:`mxopt.core.recipe.Recipe`: data, network, loss, metric. A custom recipe is a
function that returns one; write ``module:function`` wherever a recipe's name is expected.
"""

from __future__ import annotations

import importlib
import inspect

from mxopt.core.errors import PlanError
from mxopt.core.option_values import check_values
from mxopt.core.plan import check_names

BUILT_IN = {
    "segmentation": "mxopt.recipes.segmentation.recipe:segmentation",
    "translation": "mxopt.recipes.translation.recipe:translation",
    "fashion_mnist": "mxopt.recipes.fashion_mnist.recipe:fashion_mnist",
}


def resolve(name: str) -> tuple[str, str]:
    """Return the module and the function of a recipe, as names; nothing is imported.

    Args:
        name: as for :func:`load`.

    Raises:
        PlanError: the name is neither a built-in recipe nor of the form ``module:function``.
    """
    module, colon, function = BUILT_IN.get(name, name).partition(":")
    if not colon:
        raise PlanError(
            f"no recipe is called {name!r}; take one of {', '.join(BUILT_IN)}, "
            "or module:function for your own"
        )
    return module, function


def option_names(recipe: str, options: dict) -> list[str] | None:
    """Return the names of the options that a recipe takes, or None if it accepts any name.

    Args:
        recipe: as for :func:`load`.
        options: the options given; which others a recipe takes may depend on them, for instance on
            ``network``.

    Raises:
        PlanError: there is no such recipe.
    """
    return _names(function(recipe), options)


def _names(make, options: dict) -> list[str] | None:
    parameters = inspect.signature(make).parameters.values()
    names = [p.name for p in parameters if p.kind is not p.VAR_KEYWORD]
    if len(names) == len(parameters):
        return names
    more = getattr(make, "more_options", None)
    return [*names, *more(**options)] if more else None


def load(recipe: str, **options):
    """Return the recipe with this name.

    Args:
        recipe: a built-in recipe, or ``module:function`` for a custom one.
        options: passed to the function that makes the recipe.

    Raises:
        PlanError: there is no such recipe, it does not take these options or a value of one, or
            what it returns is no :class:`mxopt.core.recipe.Recipe`.
    """
    from mxopt.core.recipe import Recipe

    make = function(recipe)
    names = _names(make, options)
    if names is not None:
        check_names(options, names, "option")
    check_values(make, options)
    try:
        inspect.signature(make).bind(**options)
    except TypeError as error:
        raise PlanError(f"recipe {recipe!r} cannot be made: {error}") from None
    made = make(**options)
    if not isinstance(made, Recipe):
        raise PlanError(
            f"{recipe} is no recipe: it returned {type(made).__name__}, and has to return a "
            "mxopt.core.recipe.Recipe"
        )
    return made


def function(recipe: str):
    """Return the function that makes a recipe.

    Args:
        recipe: as for :func:`load`.

    Raises:
        PlanError: there is no such recipe, or it is no function with readable parameters.
    """
    module, name = resolve(recipe)
    try:
        found = getattr(importlib.import_module(module), name)
    except (ModuleNotFoundError, AttributeError) as error:
        raise PlanError(f"recipe {recipe!r} cannot be made: {error}") from None
    try:
        inspect.signature(found)
    except (TypeError, ValueError):
        raise PlanError(f"{recipe} is no recipe: it has to be a function of the options") from None
    return found
