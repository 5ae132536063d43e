"""Workload: networks of any recipe, scored alone and together."""

from __future__ import annotations

from mxopt.chapter.deployment import once
from mxopt.core.plan import Plan


def averaged(plan: Plan, write, recipe: str = "segmentation", members: int = 3, **options) -> dict:
    """Train networks that differ by their seeds, and score the average of their probabilities.

    Args:
        plan: how each is trained; member n has the plan's seed plus 1,000 n.
        write: called with the name and the fields of each event.
        recipe: name of the recipe, or ``module:function``; its network's output has the classes
            along the second axis.
        members: number of networks.
        **options: options of the recipe.

    Returns:
        The figures of the test split with the average, and ``alone_*``, the means of those of the
        members; ``seconds`` and ``cpu_seconds`` of all trainings.
    """
    from mxopt import recipes
    from mxopt.methods.ensembles import Together
    from mxopt.methods.kvstore import stores
    from mxopt.train import fit
    from mxopt.train.setup import prepare
    from mxopt.train.step import evaluate

    made, silent, nets, scores = recipes.load(recipe, **options), once(write), [], []
    totals = {"seconds": 0.0, "cpu_seconds": 0.0}
    run, _ = prepare(made, plan, silent, True, stores.for_plan(plan))
    for number in range(members):
        own: list = []
        spent = fit.fit(made, plan.replace(seed=plan.seed + 1_000 * number), silent, own.append,
                        evaluate=False)  # fmt: skip
        totals = {name: value + spent[name] for name, value in totals.items()}
        nets.append(own[-1])
        run.learning = own[-1]
        scores.append(evaluate(run, "test"))
        write("member", number=number, **scores[-1])
    run.learning = Together(nets)
    means = {name: sum(one[name] for one in scores) / members for name in scores[0]}
    return {
        **evaluate(run, "test"),
        **{f"alone_{name}": value for name, value in means.items()},
        **totals,
    }
