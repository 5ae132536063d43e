"""Workload: the rates that the rules of a range test suggest, beside trainings at many rates."""

from __future__ import annotations

from mxopt.chapter.deployment import once
from mxopt.core.errors import Diverged
from mxopt.core.plan import Plan

# Two in each power of ten.
GRID = tuple(float(f"{10 ** (power / 2):.1g}") for power in range(-10, 2))
# "Within" is at most so many times too large or too small.
WITHIN = 3.0


def suggested(
    plan: Plan, write, recipe: str = "fashion_mnist", rates=GRID, lowest: float = 1e-7, **options
) -> dict:
    """Compare what each rule suggests with the best of many rates.

    Args:
        plan: the switches, whose learning rate has no effect.
        write: called with the name and the fields of each event; an event ``rate`` for each
            training, with its rate and its score, None if it diverged.
        recipe: name of the recipe, or ``module:function``.
        rates: learning rates that are trained with, from the same start.
        lowest: the first rate of the range test.
        **options: options of the recipe.

    Returns:
        ``best_rate`` (that of the highest validation accuracy), its ``best_accuracy``, and for
        each rule ``NAME_factor``, by how much its rate is too large or too small, at least 1.
        ``within`` is 1 if that of the suggested rate is at most ``WITHIN``, else 0.
    """
    from mxopt import recipes
    from mxopt.measure.learning_rate import range_test
    from mxopt.train import fit

    write_once = once(write)
    found = range_test(plan, write_once, recipe, lowest=lowest, **options)
    scores = {}
    for rate in rates:
        try:
            figures = fit.fit(
                recipes.load(recipe, **options), plan.replace(learning_rate=rate), write_once
            )
            score = figures["validation_accuracy"]
        except Diverged:
            score = None
        write("rate", rate=rate, score=score)
        scores[rate] = score if score is not None else -1.0
    best = max(scores, key=scores.__getitem__)
    factors = {
        f"{name.removesuffix('_rate')}_factor": max(rate / best, best / rate)
        for name, rate in found.items()
    }
    return {
        "best_rate": best,
        "best_accuracy": scores[best],
        "within": int(factors["suggested_factor"] <= WITHIN),
        **factors,
    }
