"""Workloads of the guide to best practices, each run in its own process."""

from __future__ import annotations

import resource
import tempfile

import numpy as np

from mxopt.chapter.deployment import once
from mxopt.core.plan import Plan
from mxopt.methods.engine.clock import timed

# What is searched: the source's units, depth, rate and optimiser, in this network's words.
SPACE = {
    "learning_rate": "float:1e-5:1e-1:log",
    "batch_size": "choice:32,64,128,256",
    "optimizer": "choice:adam,sgd",
    "hidden": "choice:0,64,256,512",
    "weight_decay": "float:1e-6:1e-2:log",
}


def searched(
    plan: Plan,
    write,
    sampler: str = "tpe",
    pruner: str = "hyperband",
    minutes: float = 1.0,
    trials: int = 1_000,
    **options,
) -> dict:
    """Search the hyper-parameters of the garments' network for some minutes.

    Args:
        plan: the switches that are not searched; its seed is the sampler's.
        write: called with the name and the fields of each event; an event ``trial`` for each trial.
        sampler: as for :func:`mxopt.measure.search.search`.
        pruner: as for :func:`mxopt.measure.search.search`.
        minutes: no trial begins later.
        trials: number of trials at most.
        **options: options of the recipe ``fashion_mnist``.

    Returns:
        ``best_validation_accuracy``, the ``test_accuracy`` of the best trial's plan, trained once
        more; ``trials``, ``pruned``; ``seconds`` of the search, and ``cpu_seconds`` of its trials.
    """
    from mxopt import recipes
    from mxopt.measure import search
    from mxopt.train import fit

    space = {name: search.Range.parse(text) for name, text in SPACE.items()}
    pruned, before = 0, _children()

    def seen(number, run):
        nonlocal pruned
        pruned += search.PRUNED in run.reason
        write("trial", number=number, score=run.figures.get("validation_accuracy"),
              cpu_seconds=_children() - before)  # fmt: skip

    with tempfile.TemporaryDirectory() as folder:
        with timed() as clock:
            study = search.search(
                "fashion_mnist", plan, space, folder, options=options, minutes=minutes,
                trials=trials, sampler=sampler, pruner=pruner, seed=plan.seed, seen=seen,
            )  # fmt: skip
        spent = _children() - before
        # Read before the folder of the journal goes.
        score, count = study.best_value, len(study.trials)
        best, own = search.best_plan(plan, study)
    figures = fit.fit(recipes.load("fashion_mnist", **{**options, **own}), best, once(write))
    return {
        "best_validation_accuracy": score,
        "test_accuracy": figures["test_accuracy"],
        "trials": count,
        "pruned": pruned,
        "seconds": clock.seconds,
        "cpu_seconds": spent,
    }


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# Members of an ensemble that differ only by their seeds, and those that differ in kind.
SIMILAR = ({}, {}, {}, {}, {})
DIVERSE = (
    {},
    {"channels": [16, 32]},
    {"channels": [32, 128]},
    {"hidden": 0},
    {"bias": False, "hidden": 128},
)
MEMBERS = {"similar": SIMILAR, "diverse": DIVERSE}


def ensemble(plan: Plan, write, members: str = "similar", **options) -> dict:
    """Train several networks and combine their probabilities in several ways.

    Args:
        plan: how each is trained; member n has the plan's seed plus 1,000 n.
        write: called with the name and the fields of each event; an event ``member`` for each.
        members: one of ``MEMBERS``.
        **options: options of the recipe ``fashion_mnist``.

    Returns:
        ``test_accuracy`` of the plain mean; ``mean_member`` and ``best_member`` (chosen on the
        validation split); ``by_score``, ``optimized``, ``greedy``, accuracies with these weights;
        ``disagreement``, the share of samples on which two members differ; ``seconds`` and
        ``cpu_seconds`` of all trainings.
    """
    from mxopt import recipes
    from mxopt.methods import ensembles
    from mxopt.train import fit

    nets, silent = [], once(write)
    totals = {"seconds": 0.0, "cpu_seconds": 0.0}
    for number, own in enumerate(MEMBERS[members]):
        made = recipes.load("fashion_mnist", **{**options, **own})
        figures = fit.fit(
            made, plan.replace(seed=plan.seed + 1_000 * number), silent, nets.append, evaluate=False
        )
        totals = {name: value + figures[name] for name, value in totals.items()}
    data = recipes.load("fashion_mnist", **options).data()
    last = [nets[(n + 1) * plan.epochs - 1] for n in range(len(MEMBERS[members]))]
    found = {
        name: _probabilities(last, getattr(data, name), data) for name in ("validation", "test")
    }
    chosen, truth = found["validation"]
    tested, labels = found["test"]
    scores = [_accuracy(member, truth) for member in chosen]
    singles = [_accuracy(member, labels) for member in tested]
    for number, (score, single) in enumerate(zip(scores, singles)):
        write("member", number=number, validation_accuracy=score, test_accuracy=single)
    weights = {
        "test_accuracy": None,
        "by_score": ensembles.by_score(scores),
        "optimized": ensembles.optimized(chosen, truth),
        "greedy": ensembles.greedy(chosen, truth),
    }
    classes = tested.argmax(axis=2)
    pairs = [(a, b) for a in range(len(classes)) for b in range(a)]
    return {
        **{name: _accuracy(ensembles.combined(tested, w), labels) for name, w in weights.items()},
        "mean_member": float(np.mean(singles)),
        "best_member": singles[int(np.argmax(scores))],
        "disagreement": float(np.mean([(classes[a] != classes[b]).mean() for a, b in pairs])),
        **totals,
    }


def _probabilities(nets, split, data) -> tuple[np.ndarray, np.ndarray]:
    """Return (members, samples, classes) and the labels of a split."""
    from mxnet import nd

    raw, labels = split.rows(slice(None))
    images, _ = data.transform.batched(raw, labels)
    parts = [images[n : n + 500] for n in range(0, len(images), 500)]
    found = [np.concatenate([nd.softmax(net(part)).asnumpy() for part in parts]) for net in nets]
    return np.stack(found), labels


def _accuracy(probabilities: np.ndarray, labels: np.ndarray) -> float:
    return float((probabilities.argmax(axis=1) == labels).mean())
