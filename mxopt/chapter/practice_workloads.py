"""Workloads of the guide to best practices, each run in its own process."""

from __future__ import annotations

import dataclasses
import functools
import resource
import tempfile

import numpy as np

from mxopt.chapter.deployment import once
from mxopt.core.errors import DeviceError
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
        more; ``trials``, those that were stopped early (``pruned``), and those that, at least, were
        not drawn at random (``guided``): without them, two samplers with one seed are the same
        search; ``seconds`` of the search, and ``cpu_seconds`` of its trials.
    """
    from mxopt import recipes
    from mxopt.measure import search
    from mxopt.measure.ranges import Range
    from mxopt.train import fit

    space = {name: Range.parse(text) for name, text in SPACE.items()}
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
        best, own = search.best_plan(plan, study)
        score, count = study.best_value, len(study.trials)
    figures = fit.fit(recipes.load("fashion_mnist", **{**options, **own}), best, once(write))
    return {
        "best_validation_accuracy": score,
        "test_accuracy": figures["test_accuracy"],
        "trials": count,
        "pruned": pruned,
        "guided": search.guided(sampler, pruner, plan.epochs, count),
        "seconds": clock.seconds,
        "cpu_seconds": spent,
    }


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# Members of an ensemble that differ only by their seeds, those that differ in kind, and those of
# which some are no networks: options of the recipe, or the name of an estimator in ``_TREES``.
SIMILAR = ({}, {}, {}, {}, {})
DIVERSE = (
    {},
    {"channels": [16, 32]},
    {"channels": [32, 128]},
    {"hidden": 0},
    {"bias": False, "hidden": 128},
)
TREES = ({}, {"hidden": 0}, {"bias": False, "hidden": 128}, "forest", "boosting")
MEMBERS = {"similar": SIMILAR, "diverse": DIVERSE, "trees": TREES, "one": ({},)}


def ensemble(
    plan: Plan, write, members: str = "similar", continued: bool = False, **options
) -> dict:
    """Train several networks and combine their probabilities in several ways.

    Args:
        plan: how each is trained; member n has the plan's seed plus 1,000 n.
        write: called with the name and the fields of each event; an event ``member`` for each.
        members: one of ``MEMBERS``.
        continued: whether a network begins with the weights of the one before, and its learning
            rate anew: members are then snapshots of one training (Huang et al., "Snapshot
            Ensembles", 2017).
        **options: options of the recipe ``fashion_mnist``.

    Returns:
        ``test_accuracy`` of the plain mean; ``mean_member`` and ``best_member`` (chosen on the
        validation split); ``by_score``, ``optimized``, ``greedy``, accuracies with these weights;
        ``disagreement``, the share of samples on which two members differ; ``seconds`` and
        ``cpu_seconds`` of all trainings.

    Raises:
        DeviceError: a member is of scikit-learn, which is not installed.
    """
    from mxopt import recipes
    from mxopt.methods import ensembles

    data = recipes.load("fashion_mnist", **options).data()
    images = {name: _images(data, name) for name in ("train", "validation", "test")}
    chosen, tested, silent = [], [], once(write)
    totals, net = {"seconds": 0.0, "cpu_seconds": 0.0}, None
    for number, own in enumerate(MEMBERS[members]):
        own_plan = plan.replace(seed=plan.seed + 1_000 * number)
        if isinstance(own, str):
            predict, spent = _tree(own, own_plan.seed, *images["train"])
        else:
            start = net if continued else None
            net, spent = _network(own_plan, silent, {**options, **own}, start)
            predict = functools.partial(_probabilities, net)
        totals = {name: value + spent[name] for name, value in totals.items()}
        chosen.append(predict(images["validation"][0]))
        tested.append(predict(images["test"][0]))
    chosen, tested = np.stack(chosen), np.stack(tested)
    truth, labels = images["validation"][1], images["test"][1]
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
        "disagreement": float(
            np.mean([(classes[a] != classes[b]).mean() for a, b in pairs]) if pairs else 0.0
        ),
        **totals,
    }


def _network(plan: Plan, write, options: dict, start=None) -> tuple:
    """Train a network, from the weights of ``start`` if given; return it, and what it took."""
    from mxopt import recipes
    from mxopt.train import fit

    nets: list = []
    made = recipes.load("fashion_mnist", **options)

    def from_start(contexts):
        net = made.network(contexts)
        for new, old in zip(net.collect_params().values(), start.collect_params().values()):
            new.set_data(old.data())
        return net

    chosen = made if start is None else dataclasses.replace(made, network=from_start)
    figures = fit.fit(chosen, plan, write, nets.append, evaluate=False)
    return nets[-1], figures


def _probabilities(net, images: np.ndarray) -> np.ndarray:
    """Return a network's probabilities (images, classes)."""
    from mxnet import nd

    parts = (nd.array(images[n : n + 500]) for n in range(0, len(images), 500))
    return np.concatenate([nd.softmax(net(part)).asnumpy() for part in parts])


def _tree(kind: str, seed: int, images: np.ndarray, labels: np.ndarray) -> tuple:
    """The same for trees of scikit-learn, with its own settings."""
    try:
        from sklearn import ensemble
    except ImportError:
        raise DeviceError(
            f"the member {kind!r} needs scikit-learn; install it with: pip install scikit-learn"
        ) from None

    made = {
        "forest": lambda: ensemble.RandomForestClassifier(n_jobs=-1, random_state=seed),
        "boosting": lambda: ensemble.HistGradientBoostingClassifier(random_state=seed),
    }[kind]()
    with timed() as clock:
        made.fit(images.reshape((len(images), -1)), labels)

    def predict(images):
        return made.predict_proba(images.reshape((len(images), -1)))

    return predict, {"seconds": clock.seconds, "cpu_seconds": clock.cpu_seconds}


def _images(data, split: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the images (samples, 1, 28, 28) and the labels of a split."""
    images, labels = data.transform.batched(*getattr(data, split).rows(slice(None)))
    return images.asnumpy(), labels


def _accuracy(probabilities: np.ndarray, labels: np.ndarray) -> float:
    return float((probabilities.argmax(axis=1) == labels).mean())
