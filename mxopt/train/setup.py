"""Setup before the first step: the network, the optimizer and the loaders."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import mxnet as mx
import numpy as np

from mxopt.core.plan import Plan
from mxopt.core.recipe import Recipe
from mxopt.methods import METHODS, TrainingRun
from mxopt.methods.data_parallel import parallel
from mxopt.methods.engine.clock import timed
from mxopt.methods.kvstore import stores
from mxopt.methods.precision import amp
from mxopt.train import initial, memory
from mxopt.train.optimizer import make_trainer

SPLITS = ("train", "validation", "test")


def seed_everything(seed: int) -> None:
    """Seed the generators of MXNet and NumPy, used for weights, augmentation and dropout."""
    mx.random.seed(seed)
    np.random.seed(seed)


def prepare(
    recipe: Recipe, plan: Plan, write: Callable, evaluate: bool, kvstore: stores.SingleProcess
) -> tuple[TrainingRun, dict[str, float]]:
    """Return a training run that is ready for its first step.

    Args:
        recipe: what is trained.
        plan: the switches.
        write: function that writes an event, called like ``RecordWriter.write``.
        evaluate: whether the validation and the test split are used too.
        kvstore: how this process sums gradients with others.

    Returns:
        The run, and the seconds spent on preparing the samples of each split.

    Raises:
        CapacityError: training would not fit into memory.
        MxoptError: the plan cannot run here.
    """
    seed_everything(plan.seed)
    contexts = parallel.contexts(plan)
    run = TrainingRun(plan, recipe, contexts, amp.for_plan(plan, contexts), kvstore)
    run.methods = [method() for method in METHODS]
    data = run.data = recipe.data()
    write("data", kind=data.kind, origin=data.origin, train=len(data.train),
          validation=len(data.validation), test=len(data.test))  # fmt: skip
    run.precision.start()
    run.network, run.loss = recipe.network(contexts), recipe.loss
    initial.complete(run.network, run.example)
    start, count = initial.weights_hash(run.network)
    write("weights", hash=start, parameters=count)
    for method in run.methods:
        run.network = method.network(run, run.network)
        run.loss = method.loss(run, run.loss)
    run.learning = run.learning or run.network
    needs = memory.estimate(run, evaluate)
    write("memory", **dataclasses.asdict(needs))
    memory.check(needs, plan)
    preparation = dict.fromkeys(SPLITS, 0.0)
    for split in SPLITS[: None if evaluate else 1]:
        with timed() as clock:
            run.loaders[split] = run.make_loader(split, data.transform)
        preparation[split] += clock.seconds
    with timed() as clock:
        for method in run.methods:
            method.before_training(run)
    preparation["train"] += clock.seconds
    trainer = make_trainer(run.learning, plan, run.precision, kvstore)
    run.trainer = run.precision.attach(trainer)
    return run, preparation
