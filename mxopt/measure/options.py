"""Checks of the names of options and switches, before anything runs."""

from __future__ import annotations

import dataclasses
import importlib
import inspect

from mxopt import recipes
from mxopt.core import old_names
from mxopt.core.plan import Plan, check_names

SWITCHES = [field.name for field in dataclasses.fields(Plan)]


def names_of(workload: str, options: dict) -> list[str] | None:
    """Return the names of the options that a workload takes.

    Args:
        workload: ``module:function``.
        options: the given options; ``recipe`` and its options determine which options a recipe has.

    Returns:
        The names; None if any name is allowed, or if the workload cannot be imported here.
    """
    module, _, name = old_names.workload(workload).partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        return None  # the process that runs it reports why
    parameters = dict(list(inspect.signature(function).parameters.items())[2:])  # plan, write
    names = [p.name for p in parameters.values() if p.kind is not p.VAR_KEYWORD]
    if len(names) == len(parameters):
        return names
    if "recipe" not in parameters:
        return None
    own = {key: value for key, value in options.items() if key not in names}
    recipe = options.get("recipe", parameters["recipe"].default)
    of_recipe = recipes.option_names(recipe, own)
    return None if of_recipe is None else [*names, *of_recipe]


def check(workload: str, options: dict, changes: dict | None = None) -> None:
    """Make sure that a workload takes these options.

    Args:
        workload: ``module:function``.
        options: options of the workload.
        changes: switches of the plan or options of the workload, as levers change them.

    Raises:
        PlanError: a name is unknown; the message suggests the nearest one.
    """
    names = names_of(workload, {**options, **(changes or {})})
    if names is None:
        return
    check_names(options, names, "option")
    check_names(changes or {}, [*SWITCHES, *names], "switch or option")
