"""Checks of the names of options and switches, before anything runs."""

from __future__ import annotations

import dataclasses
import importlib
import inspect

from mxopt import recipes
from mxopt.core import old_names
from mxopt.core.option_values import check_values
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
    function = _function(workload)
    if function is None:
        return None  # the process that runs it reports why
    parameters = dict(list(inspect.signature(function).parameters.items())[2:])  # plan, write
    names = _own_names(function)
    if len(names) == len(parameters):
        return names
    if "recipe" not in parameters:
        return None
    own = {key: value for key, value in options.items() if key not in names}
    recipe = options.get("recipe", parameters["recipe"].default)
    of_recipe = recipes.option_names(recipe, own)
    return None if of_recipe is None else [*names, *of_recipe]


def of_recipe(workload: str, options: dict) -> dict:
    """Return those options of a run that are its recipe's, not the workload's own.

    Args:
        workload: ``module:function``.
        options: the run's options.
    """
    function = _function(workload)
    own = () if function is None else _own_names(function)
    return {name: value for name, value in options.items() if name not in ("recipe", *own)}


def check(workload: str, options: dict, changes: dict | None = None) -> None:
    """Make sure that a workload takes these options, and that their values have its types.

    Args:
        workload: ``module:function``.
        options: options of the workload.
        changes: switches of the plan or options of the workload, as levers change them; only their
            names are checked.

    Raises:
        PlanError: a name is unknown (the message suggests the nearest one), or a value has another
            type than the workload or its recipe takes.
    """
    names = names_of(workload, {**options, **(changes or {})})
    if names is not None:
        check_names(options, names, "option")
        check_names(changes or {}, [*SWITCHES, *names], "switch or option")
    _check_values(workload, options)


def _check_values(workload: str, options: dict) -> None:
    function = _function(workload)
    if function is None:
        return
    check_values(function, options)
    parameters = inspect.signature(function).parameters
    if "recipe" in parameters:
        own = {name: value for name, value in options.items() if name not in _own_names(function)}
        check_values(recipes.function(options.get("recipe", parameters["recipe"].default)), own)


def _own_names(function) -> list[str]:
    """Return the names of a workload's own options, without those of its recipe."""
    parameters = list(inspect.signature(function).parameters.values())[2:]  # plan, write
    return [p.name for p in parameters if p.kind is not p.VAR_KEYWORD]


def _function(workload: str):
    """Return the function of a workload; None if it cannot be imported here."""
    module, _, name = old_names.workload(workload).partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        return None
