"""Before the first step: the network, the optimizer, and loaders of the samples."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable

from mxopt.core.plan import Plan
from mxopt.core.recipe import Data, Recipe
from mxopt.methods.bucketing import sequences
from mxopt.methods.data_parallel import parallel
from mxopt.methods.engine.variables import timed
from mxopt.methods.input_pipeline import pipeline
from mxopt.methods.kvstore import stores
from mxopt.methods.layer_freezing import freezing
from mxopt.methods.precision import amp
from mxopt.methods.weight_averaging.averaging import Average
from mxopt.train import memory
from mxopt.train.optimizer import make_trainer
from mxopt.train.step import Learner, seed_everything

SPLITS = ("train", "validation", "test")


def prepare(
    recipe: Recipe, plan: Plan, write: Callable, evaluate: bool, together: stores.Alone
) -> tuple[Learner, dict, dict]:
    """Make all that a run needs before its first step.

    Args:
        recipe, plan, write: as for :func:`mxopt.train.fit.fit`.
        evaluate: whether the validation and the test split will be read as well.
        together: how this process adds up gradients with others.

    Returns:
        The learner; the loaders of the splits, and ``early`` if the first epochs take another
        transform; the seconds that were spent on the samples of each split.

    Raises:
        CapacityError: training would not fit into memory.
        MxoptError: the plan cannot run here.
    """
    seed_everything(plan.seed)
    contexts = parallel.contexts(plan)
    numbers = amp.for_plan(plan, contexts)
    data = recipe.data()
    write("data", kind=data.kind, origin=data.origin, train=len(data.train),
          validation=len(data.validation), test=len(data.test))  # fmt: skip
    numbers.start()
    if plan.hybridize in ("static", "fused"):
        # Of several ways to share a static graph's buffers MXNet then takes the smallest.
        os.environ.setdefault("NNVM_AUTO_SEARCH_MATCH_RANGE", "1")
    net = learning = numbers.prepare(recipe.network(contexts))
    transforms = {split: data.transform for split in SPLITS[: None if evaluate else 1]}
    if data.early and data.early[0]:
        transforms["early"] = data.early[1]
    front = None
    if plan.frozen:
        front, learning = freezing.split(net, plan.frozen)
    needs = memory.estimate(recipe, data, learning, numbers, plan, contexts, front, evaluate)
    write("memory", **dataclasses.asdict(needs))
    memory.check(needs, plan)
    loaders, preparation = {}, dict.fromkeys(SPLITS, 0.0)
    for name, transform in transforms.items():
        split = "train" if name == "early" else name
        with timed() as clock:
            if plan.frozen:
                transform = freezing.preprocessing(front, transform, plan)
            loaders[name] = make_loader(data, split, transform, plan, contexts, together.share)
        preparation[split] += clock.seconds
    if plan.hybridize != "no":
        static = plan.hybridize != "yes"
        learning.hybridize(static_alloc=static, static_shape=static)
    trainer = numbers.attach(make_trainer(learning, plan, numbers, together))
    average = Average(learning.collect_params())
    learner = Learner(
        recipe, data, net, learning, numbers, trainer, plan, contexts, average, together
    )
    return learner, loaders, preparation


def make_loader(
    data: Data,
    split: str,
    transform: Callable,
    plan: Plan,
    contexts: list,
    share: parallel.Share = parallel.WHOLE,
):
    """Return a split's loader: of ``input_pipeline``, or of ``bucketing`` for sentences.

    Training batches are shared among processes; the other splits belong to one of them.
    """
    dataset, shuffle = getattr(data, split), split == "train"
    share = share if shuffle else parallel.WHOLE
    if data.collate:
        return sequences.SentenceLoader(
            dataset, transform, data.collate, plan, contexts, shuffle, share
        )
    return pipeline.make_loader(dataset, transform, plan, contexts, shuffle, share)
