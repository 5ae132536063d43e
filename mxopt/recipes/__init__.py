"""Recipes: what is trained. The plan says how it is trained.

A recipe is a :class:`mxopt.core.recipe.Recipe`: data, network, loss, metric. A custom recipe is a
function that returns one; write ``module:function`` wherever a recipe's name is expected.
"""

from __future__ import annotations

import importlib
import inspect

from mxopt.core.errors import PlanError
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
    make = _function(recipe)
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
        PlanError: there is no such recipe, or it does not take these options.
    """
    names = option_names(recipe, options)
    if names is not None:
        check_names(options, names, "option")
    make = _function(recipe)
    try:
        inspect.signature(make).bind(**options)
    except TypeError as error:
        raise PlanError(f"recipe {recipe!r} cannot be made: {error}") from None
    return make(**options)


def _function(recipe: str):
    module, function = resolve(recipe)
    try:
        return getattr(importlib.import_module(module), function)
    except (ModuleNotFoundError, AttributeError) as error:
        raise PlanError(f"recipe {recipe!r} cannot be made: {error}") from None
