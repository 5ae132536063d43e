"""The learning-rate range test of a recipe, in a process of its own.

One short training in which the rate grows by the same factor in every step (Smith, "Cyclical
Learning Rates for Training Neural Networks", 2017, section 3.3). The rules that read a rate from it
are in :mod:`mxopt.methods.lr_range_test`.
"""

from __future__ import annotations

import itertools

import numpy as np

from mxopt.core.plan import Plan
from mxopt.methods.lr_range_test import rules
from mxopt.methods.method import Method

RANGE_TEST = "mxopt.measure.learning_rate:range_test"


class _Rates(Method):
    """Sets the rate of each update, after the plan's schedule has."""

    def __init__(self, rates: np.ndarray):
        self._rates = iter(rates)

    def before_update(self, run, size):
        run.trainer.set_learning_rate(float(next(self._rates)))


def range_test(
    plan: Plan,
    write,
    recipe: str = "segmentation",
    lowest: float = 1e-7,
    highest: float = 10.0,
    steps: int = 120,
    **options,
) -> dict:
    """Train some steps at growing rates, and return the rate that each rule suggests.

    Args:
        plan: the switches; learning rate, schedule, warm-up and epochs have no effect.
        write: called with the name and the fields of each event; the event ``range`` has the rate
            and the loss of each step.
        recipe: name of the recipe, or ``module:function``.
        lowest: the first rate.
        highest: the last rate; the test ends earlier if the loss diverges.
        steps: number of updates from the first rate to the last.
        **options: options of the recipe.

    Returns:
        ``suggested_rate``, and the rate of every rule, such as ``steepest_rate``.

    Raises:
        PlanError: the rates do not grow, or the loss diverged too early for a suggestion.
    """
    from mxopt import recipes
    from mxopt.methods.kvstore import stores
    from mxopt.train.setup import prepare
    from mxopt.train.step import train_epoch

    rates = rules.growing(lowest, highest, steps)
    made = recipes.load(recipe, **options)
    plan = plan.replace(schedule="constant", warmup_epochs=0, epochs=1)
    run, _ = prepare(made, plan, write, evaluate=False, kvstore=stores.for_plan(plan))
    run.methods.append(_Rates(rates))
    losses: list[float] = []
    batches = plan.grad_accumulation
    for epoch in itertools.count():
        count = min(len(run.loaders["train"]), (steps - len(losses)) * batches)
        ends = {*range(batches, count, batches), count}
        for part in train_epoch(run, run.loaders["train"], epoch, 0, ends):
            losses.append(float(part.losses.mean().asscalar()))
            if _over(losses) or len(losses) == steps:
                break
        if _over(losses) or len(losses) == steps:
            break
    tried = rates[: len(losses)]
    write("range", rates=tried.tolist(), losses=losses)
    found = rules.suggest(tried, losses)
    figures = {f"{name.replace(' ', '_')}_rate": rate for name, rate in found.items()}
    return {"suggested_rate": next(iter(found.values())), **figures}


def _over(losses: list[float]) -> bool:
    """Return whether the losses have diverged, so that larger rates say nothing more."""
    if not np.isfinite(losses[-1]):
        return True
    means = rules.smoothed(losses)
    return bool(means[-1] > rules.DIVERGED * means.min()) and len(losses) > 1
