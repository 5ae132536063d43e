"""Recipes: what is trained. How it is trained is the plan's business.

A recipe is a :class:`mxopt.core.recipe.Recipe`: data, network, loss, metric. Your own is a function
that returns one; name it ``module:function`` wherever a recipe's name is asked for.
"""

from __future__ import annotations

import importlib
import inspect

from mxopt.core.errors import PlanError

BUILT_IN = {
    "segmentation": "mxopt.recipes.segmentation.recipe:segmentation",
    "translation": "mxopt.recipes.translation.recipe:translation",
}


def resolve(name: str) -> tuple[str, str]:
    """Return the module and the function behind a recipe's name, without importing them.

    Raises:
        PlanError: it is neither a built-in recipe nor of the form ``module:function``.
    """
    module, colon, function = BUILT_IN.get(name, name).partition(":")
    if not colon:
        raise PlanError(
            f"no recipe is called {name!r}; take one of {', '.join(BUILT_IN)}, "
            "or module:function for your own"
        )
    return module, function


def load(recipe: str, **options):
    """Return the recipe of that name.

    Args:
        recipe: a built-in recipe, or ``module:function`` for one of your own.
        options: passed to the function that makes it.

    Raises:
        PlanError: there is no such recipe, or it does not take such options.
    """
    module, function = resolve(recipe)
    try:
        make = getattr(importlib.import_module(module), function)
        inspect.signature(make).bind(**options)
    except (ModuleNotFoundError, AttributeError, TypeError) as error:
        raise PlanError(f"recipe {recipe!r} cannot be made: {error}") from None
    return make(**options)
