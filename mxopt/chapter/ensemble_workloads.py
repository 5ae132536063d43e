"""Workloads: networks of any recipe scored alone and together, and their weights averaged."""

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


def checkpoints(plan: Plan, write, recipe: str = "translation", last: int = 2, **options) -> dict:
    """Train one network, and score the mean of the weights of its last epochs beside the last one.

    As section 6.1 of "Attention Is All You Need" does with checkpoints. Statistics of batch
    normalisation are averaged, too.

    Args:
        plan: how it is trained.
        write: called with the name and the fields of each event; ``averaged`` has the figures of
            the mean of the last 1, 2, ... epochs, up to all of them.
        recipe: name of the recipe, or ``module:function``.
        last: number of epochs whose weights are averaged, at most those of the plan.
        **options: options of the recipe.

    Returns:
        The figures of the test split with the mean of the last epochs, ``alone_*``, those of the
        last epoch, and ``seconds`` and ``cpu_seconds`` of the training.

    Raises:
        PlanError: there are fewer epochs than are to be averaged.
    """
    from mxopt import recipes
    from mxopt.core.errors import PlanError
    from mxopt.methods.kvstore import stores
    from mxopt.train import fit
    from mxopt.train.setup import prepare
    from mxopt.train.step import evaluate

    if not 1 <= last <= plan.epochs:
        raise PlanError(f"last={last} epochs cannot be averaged of epochs={plan.epochs}")
    made, silent, kept, scores = recipes.load(recipe, **options), once(write), [], []
    run, _ = prepare(made, plan, silent, True, stores.for_plan(plan))
    spent = fit.fit(made, plan, silent, lambda net: kept.append(_weights(net)), evaluate=False)
    for number in range(1, plan.epochs + 1):
        for name, parameter in run.network._collect_params_with_prefix().items():
            parameter.set_data(sum(weights[name] for weights in kept[-number:]) / number)
        scores.append(evaluate(run, "test"))
        write("averaged", epochs=number, **scores[-1])
    return {
        **scores[last - 1],
        **{f"alone_{name}": value for name, value in scores[0].items()},
        "seconds": spent["seconds"],
        "cpu_seconds": spent["cpu_seconds"],
    }


def _weights(net) -> dict:
    """Return a copy of a network's parameters by their names within it."""
    return {name: p.data().copy() for name, p in net._collect_params_with_prefix().items()}
