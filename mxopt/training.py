"""The training loop: one, for every recipe and every plan.

A before and an after that differ in loop code compare two programs; here they differ in a plan.
The loop never waits for the devices inside an epoch: losses stay where they were computed and are
read once, at its end. The clock waits at both edges of every epoch.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd

from mxopt import (
    checkpoint,
    divergence,
    freezing,
    memory,
    parallel,
    pipeline,
    precision,
    sequences,
    sync,
)
from mxopt.averaging import Average
from mxopt.engine import timed
from mxopt.plan import Plan
from mxopt.task import Data, Recipe
from mxopt.updates import learning_rate, make_trainer

SPLITS = ("train", "validation", "test")
# Seeds of a run's later epochs and other workers, far enough from the seeds of other runs.
EPOCH_SEEDS = 1_000_003
WORKER_SEEDS = 15_485_863
# In one line of a record, so that a reader never has to hold a long epoch.
STEPS_A_LINE = 10_000


def fit(
    recipe: Recipe,
    plan: Plan,
    write: Callable,
    on_epoch: Callable | None = None,
    evaluate: bool = True,
    checks: int = 1,
    checkpoints: Path | None = None,
) -> dict:
    """Train a recipe under a plan and test it once, at the end.

    Args:
        recipe: the task.
        plan: the switches.
        write: called with an event's name and fields, as ``RecordWriter.write`` is.
        on_epoch: called with the whole network after each epoch, and when a checkpoint was put
            back, outside of every clock.
        evaluate: whether to validate after each epoch and test at the end; without, there are no
            such figures, and only the training split is read.
        checks: how often in an epoch to validate, the last time at its end. The others are written
            as ``check`` events, with ``progress`` in epochs and ``seconds`` since the epoch began;
            they change nothing of what is learned.
        checkpoints: a folder to write one into after each epoch, and to go on from if it holds one
            already (:mod:`mxopt.checkpoint`). The losses are then those of a run that was not
            interrupted; ``resumed_epochs`` says how many are from before, and the times of such a
            run are no evidence.

    Returns:
        The figures of the run: ``seconds`` (training, all epochs, no validation),
        ``training_seconds`` (these and the preparation of the training set), ``samples`` trained
        on, ``samples_per_second`` (steady state: without the first step; both are named after
        the recipe's unit),
        ``first_step_seconds``, ``setup_seconds`` (data, network), ``end_to_end_seconds``,
        ``train_loss``, ``validation_*`` and ``test_*`` (loss and every metric; where several
        processes train together, the first one's to find out), ``skipped_steps``
        (overflows under AMP).

    Raises:
        Diverged: a loss became NaN or infinite, or weights did, or gradients overflow whatever
            the loss scale; the message names the step, and the last good checkpoint if any are
            kept. The steps until then are in the record.
        CapacityError: training would not fit into memory (:mod:`mxopt.memory`), or did not; the
            message names a batch size that would.
        MxoptError: the plan cannot run here.
    """
    with memory.explained(plan), divergence.naming_checkpoint(checkpoints):
        return _fit(recipe, plan, write, on_epoch, evaluate, checks, checkpoints)


def _fit(recipe, plan, write, on_epoch, evaluate, checks, checkpoints) -> dict:
    begin = time.perf_counter()
    together = sync.for_plan(plan)
    evaluate = evaluate and not together.worker
    seed_everything(plan.seed)
    contexts = parallel.contexts(plan)
    numbers = precision.for_plan(plan, contexts)
    data = recipe.data()
    write("data", kind=data.kind, origin=data.origin, train=len(data.train),
          validation=len(data.validation), test=len(data.test))  # fmt: skip
    numbers.start()
    net = learner = numbers.prepare(recipe.network(contexts))
    transforms = {split: data.transform for split in SPLITS[: None if evaluate else 1]}
    early_epochs, transforms["early"] = data.early or (0, data.transform)
    front = None
    if plan.frozen:
        front, learner = freezing.split(net, plan.frozen)
    needs = memory.estimate(recipe, data, learner, numbers, plan, contexts, front, evaluate)
    write("memory", **dataclasses.asdict(needs))
    memory.check(needs, plan)
    loaders, preparation = {}, dict.fromkeys(SPLITS, 0.0)
    for name, transform in transforms.items():
        split = "train" if name == "early" else name
        if name == "early" and not early_epochs:
            continue
        with timed() as clock:
            if plan.frozen:
                transform = freezing.preprocessing(front, transform, plan)
            loaders[name] = make_loader(data, split, transform, plan, contexts, together.share)
        preparation[split] += clock.seconds
    if plan.hybridize != "no":
        static = plan.hybridize != "yes"
        learner.hybridize(static_alloc=static, static_shape=static)
    trainer = numbers.attach(make_trainer(learner, plan, numbers, together))
    average = Average(learner.collect_params())
    task = _Task(recipe, data, learner, numbers, trainer, plan, contexts, average, together)
    setup = time.perf_counter() - begin
    weights = sorted({np.dtype(p.dtype).name for p in net.collect_params().values()})
    write("setup", seconds=setup, preprocessing_seconds=preparation["train"],
          evaluation_preprocessing_seconds=sum(preparation.values()) - preparation["train"],
          weights=weights)  # fmt: skip

    units = f"{recipe.unit}s"
    totals = {"seconds": 0.0, units: 0}
    first, steps, done = None, 0, 0
    if checkpoints:
        kept = checkpoint.Training(net, trainer, average, plan, recipe.name, contexts)
        found = checkpoint.restore(checkpoints, kept)
        if found:
            totals, first, steps, done = (found[k] for k in ("totals", "first", "steps", "epoch"))
            train_loss, scores = found["train_loss"], found["scores"]
            numbers.skipped_steps = found["skipped_steps"]
            write("resumed", epoch=done)
            if on_epoch:
                on_epoch(net)
        together.check_equal(done, checkpoints)
    for epoch in range(done, plan.epochs):
        if epoch:
            seed_everything(_epoch_seed(plan, epoch, together.worker))
        seconds, losses, sizes, scores = 0.0, [], [], {}
        loader = loaders["early" if epoch < early_epochs else "train"]
        loader.epoch = epoch
        parts = task.train_epoch(loader, epoch, checks if evaluate else 1)
        while True:
            with timed() as clock:
                part = next(parts)
            seconds += clock.seconds
            found = part.losses.asnumpy().tolist()
            for start in range(0, len(found), STEPS_A_LINE):
                line = slice(start, start + STEPS_A_LINE)
                write("steps", epoch=epoch, losses=found[line], sizes=part.sizes[line])
            divergence.check_losses(found, steps)
            first = first or (part.first_seconds, part.sizes[0])
            steps += len(found)
            divergence.check_loss_scale(numbers, trainer, steps)
            losses += found
            sizes += part.sizes
            if part.progress == epoch + 1:
                break
            with average.in_place():
                scores = task.validate(loaders["validation"])
            write("check", progress=part.progress, seconds=seconds, **scores)
            divergence.check_scores(scores, steps)
        totals["seconds"] += seconds
        totals[units] += sum(sizes)
        train_loss = float(np.average(losses, weights=sizes))
        divergence.check_weights(net, steps)
        with average.in_place():
            scores = task.validate(loaders["validation"]) if evaluate else {}
            write("epoch", epoch=epoch, seconds=seconds, **{units: sum(sizes)},
                  train_loss=train_loss, **scores)  # fmt: skip
            divergence.check_scores(scores, steps)
            if on_epoch:
                on_epoch(net)
        if checkpoints and not together.worker:
            progress = {"epoch": epoch + 1, "totals": totals, "first": first, "steps": steps,
                        "train_loss": train_loss, "scores": scores,
                        "skipped_steps": numbers.skipped_steps}  # fmt: skip
            checkpoint.save(checkpoints, kept, progress)
    average.put()
    if evaluate:
        scores.update(task.evaluate(loaders["test"], "test"))
        divergence.check_scores(scores, steps)
    steady = totals["seconds"] - first[0]
    return {
        **totals,
        "training_seconds": preparation["train"] + totals["seconds"],
        f"{units}_per_second": (totals[units] - first[1]) / steady if steady > 0 else math.nan,
        "first_step_seconds": first[0],
        "setup_seconds": setup,
        "end_to_end_seconds": time.perf_counter() - begin,
        "train_loss": train_loss,
        **scores,
        "skipped_steps": numbers.skipped_steps,
        **({"resumed_epochs": done} if done else {}),
    }


def make_loader(
    data: Data,
    split: str,
    transform: Callable,
    plan: Plan,
    contexts: list,
    share: parallel.Share = parallel.WHOLE,
):
    """Return a split's loader: of ``mxopt.pipeline``, or of ``mxopt.sequences`` for sentences.

    Training batches are shared among processes; the other splits belong to one of them.
    """
    dataset, shuffle = getattr(data, split), split == "train"
    share = share if shuffle else parallel.WHOLE
    if data.collate:
        return sequences.SentenceLoader(
            dataset, transform, data.collate, plan, contexts, shuffle, share
        )
    return pipeline.make_loader(dataset, transform, plan, contexts, shuffle, share)


def seed_everything(seed: int) -> None:
    """Seed MXNet's and NumPy's generators: weights, augmentation, dropout."""
    mx.random.seed(seed)
    np.random.seed(seed)


def _epoch_seed(plan: Plan, epoch: int, worker: int) -> int:
    return (plan.seed + EPOCH_SEEDS * epoch + WORKER_SEEDS * worker) % 2**31


@dataclass(frozen=True)
class _Part:
    """Some steps of an epoch: the mean loss of each, on the device, and its size; the epochs done
    with them; and what the run's first step took, in seconds, None if it is in an earlier epoch."""

    losses: nd.NDArray
    sizes: list[int]
    progress: float
    first_seconds: float | None


@dataclass
class _Task:
    """A network in training, with all that one step needs."""

    recipe: Recipe
    data: Data
    net: gluon.Block
    numbers: precision.Float32
    trainer: gluon.Trainer
    plan: Plan
    contexts: list
    average: Average
    together: sync.Alone

    def train_epoch(self, loader, epoch: int, parts: int = 1):
        """Train an epoch in so many parts of about as many steps, and yield a :class:`_Part` after
        each; nothing is waited for, except for the run's first step."""
        sums, sizes, first_seconds = [], [], None
        count = len(loader)
        ends = {round(count * part / parts) for part in range(1, parts + 1)}
        updates = -(-count // self.plan.accumulation)
        start = time.perf_counter()
        pending = 0
        for number, batch in enumerate(loader):
            if not self.together.ready:
                self._agree_on_weights(batch, epoch)
            sums.append(self.together.total(self._backward(batch)))
            sizes.append(batch.size)
            pending += batch.size
            done = epoch + (number + 1) / count
            if (number + 1) % self.plan.accumulation == 0 or number + 1 == count:
                update = epoch * updates + number // self.plan.accumulation
                self.trainer.set_learning_rate(learning_rate(self.plan, update, updates))
                self.numbers.step(self.trainer, pending, self.plan.clip_norm)
                if self.plan.average_from is not None and done > self.plan.average_from:
                    self.average.add()
                if self.plan.accumulation > 1:
                    self.net.collect_params().zero_grad()
                pending = 0
            if epoch == number == 0:
                # Graph building and first touch are one-off costs: they get a line of their own.
                nd.waitall()
                first_seconds = time.perf_counter() - start
            if number + 1 in ends or self.numbers.exhausted(self.trainer):
                means = nd.concat(*sums, dim=0) / nd.array(sizes, ctx=sums[0].context)
                yield _Part(means, sizes, done, first_seconds)
                sums, sizes = [], []

    def _agree_on_weights(self, batch, epoch: int) -> None:
        """Give all processes the same weights, before the first gradient is computed."""
        if any(parameter._deferred_init for parameter in self.trainer._params):
            # Their shapes become known in a first pass. (In training's mode: a prediction leaves
            # convolutions' weights in a layout of oneDNN's, which cannot be sent.)
            with autograd.train_mode():
                self._forward(batch.shards[0])
        self.together.begin(self.trainer)
        if epoch == 0 and self.together.worker:
            seed_everything(_epoch_seed(self.plan, 0, self.together.worker))

    def _backward(self, batch) -> nd.NDArray:
        """Add a batch's gradient and return the sum of its losses, shape (1,)."""
        with autograd.record():
            losses = [self._losses(shard).sum() for shard in batch.shards]
            if batch.idle:
                losses = [0 * loss for loss in losses]
            self.numbers.backward(losses, self.trainer)
        busy = [shard[0].context for shard in batch.shards]
        idle = [context for context in self.contexts if context not in busy]
        if idle:
            parallel.mark_idle(self.trainer._params, idle)
        return parallel.gather([loss.detach() for loss in losses])

    def _losses(self, shard):
        output, labels = self._forward(shard)
        losses = self.recipe.loss(output, *labels)
        # A loss of shape (samples, height, width) is averaged to one number a sample.
        return losses.reshape((len(losses), -1)).mean(axis=1)

    def _forward(self, shard):
        inputs = self.numbers.inputs(shard[: self.recipe.inputs])
        return self.numbers.outputs(self.net(*inputs)), shard[self.recipe.inputs :]

    def validate(self, loader) -> dict[str, float]:
        """Return the figures of the validation split, and the seconds they took."""
        with timed() as clock:
            scores = self.evaluate(loader, "validation")
        return {**scores, "validation_seconds": clock.seconds}

    def evaluate(self, loader, split: str) -> dict[str, float]:
        """Return a split's mean loss and metrics, each sample visited once."""
        metric = self.recipe.metric() if self.recipe.metric else None
        sums, units = [], 0
        for batch in loader:
            for shard in batch.shards:
                output, labels = self._forward(shard)
                losses = self.recipe.loss(output, *labels)
                sums.append(losses.reshape((len(losses), -1)).mean(axis=1).sum())
                if metric:
                    metric.update(list(labels), [output])
            units += batch.size
        total = sum(float(value.asscalar()) for value in sums)
        scores = {"loss": total / units}
        if metric:
            names, values = metric.get()
            named = isinstance(names, str)
            scores.update(zip([names], [values]) if named else zip(names, values))
        if self.recipe.score:
            scores.update(self.recipe.score(self.net, self.data, split))
        return {
            f"{split}_{name}": value if isinstance(value, str) else float(value)
            for name, value in scores.items()
        }
