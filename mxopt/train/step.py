"""A network in training: one step of it, an epoch in parts, and its validation.

Losses stay where they were computed until the part of an epoch that they belong to is over. Steps
are enqueued some ahead of the devices, which so never wait for one; further ahead, the batches that
wait for their turn would fill the memory.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd

from mxopt.core.plan import Plan
from mxopt.core.recipe import Data, Recipe
from mxopt.methods.data_parallel import parallel
from mxopt.methods.engine.variables import timed
from mxopt.methods.kvstore import stores
from mxopt.methods.precision import amp
from mxopt.methods.weight_averaging.averaging import Average
from mxopt.train import progress
from mxopt.train.optimizer import learning_rate

# Steps enqueued behind the one whose loss is waited for.
AHEAD = 2


def seed_everything(seed: int) -> None:
    """Seed MXNet's and NumPy's generators: weights, augmentation, dropout."""
    mx.random.seed(seed)
    np.random.seed(seed)


@dataclass(frozen=True)
class Part:
    """Some steps of an epoch, one after the other.

    Attributes:
        losses: the mean loss of each, on the device, shape (steps,).
        sizes: how many samples (or tokens) each had.
        first_seconds: what the run's first step took; None if it is in an earlier epoch.
    """

    losses: nd.NDArray
    sizes: list[int]
    first_seconds: float | None


@dataclass
class Learner:
    """A network in training, with all that one step needs.

    Attributes:
        whole: the whole network; ``net`` is the part of it that learns.
    """

    recipe: Recipe
    data: Data
    whole: gluon.Block
    net: gluon.Block
    numbers: amp.Float32
    trainer: gluon.Trainer
    plan: Plan
    contexts: list
    average: Average
    together: stores.Alone
    rehearsed: bool = False

    def train(self, loader, epoch: int, begin: int, ends: set[int]):
        """Train an epoch from a step on, and yield a :class:`Part` after each of some steps.

        Up to ``AHEAD`` steps are enqueued behind the one at work; the run's first is waited for.

        Args:
            loader: of the training set.
            epoch: its number, from 0.
            begin: steps of it that are done already.
            ends: the steps, counted from 1, after which a part ends; the largest is the last one.
        """
        sums, sizes, first_seconds = [], [], None
        count = max(ends)
        updates = -(-count // self.plan.accumulation)
        loader.epoch, loader.step = epoch, begin
        start = time.perf_counter()
        if not self.rehearsed and self.plan.hybridize not in ("no", "yes") and self.together.ready:
            self._rehearse(loader, progress.seed(self.plan, epoch, begin, self.together.worker))
        pending = 0
        for step, batch in enumerate(loader, begin + 1):
            first = epoch == 0 and step == 1
            if not self.together.ready:
                self._agree_on_weights(batch, first)
            sums.append(self.together.total(self._backward(batch)))
            sizes.append(batch.size)
            if len(sums) > AHEAD:
                sums[-1 - AHEAD].wait_to_read()
            pending += batch.size
            if step % self.plan.accumulation == 0 or step == count:
                update = epoch * updates + (step - 1) // self.plan.accumulation
                self.trainer.set_learning_rate(learning_rate(self.plan, update, updates))
                self.numbers.step(self.trainer, pending, self.plan.clip_norm)
                average_from = self.plan.average_from
                if average_from is not None and epoch + step / count > average_from:
                    self.average.add()
                if self.plan.accumulation > 1:
                    self.net.collect_params().zero_grad()
                pending = 0
            if first:
                # Graph building and first touch are one-off costs: they get a line of their own.
                nd.waitall()
                first_seconds = time.perf_counter() - start
            if step in ends or self.numbers.exhausted(self.trainer):
                means = nd.concat(*sums, dim=0) / nd.array(sizes, ctx=sums[0].context)
                yield Part(means, sizes, first_seconds)
                sums, sizes = [], []

    def _rehearse(self, loader, seed: int) -> None:
        """Compute the largest batch's gradient once, if batches differ in shape, and discard it.

        A static graph's buffers then serve all batches. Otherwise those of a small batch are still
        there when a larger one's are made, and the peak is both. No weight changes, and
        what was drawn at random does not count: the generators begin anew.
        """
        self.rehearsed = True
        largest = getattr(loader, "largest", None)
        if not largest:
            return
        with autograd.record(train_mode=False):
            losses = [self._losses(shard).sum() for shard in largest().shards]
        autograd.backward(losses)
        if self.plan.accumulation > 1:
            self.net.collect_params().zero_grad()
        seed_everything(seed)

    def _agree_on_weights(self, batch, first: bool) -> None:
        """Give all processes the same weights, before the first gradient is computed."""
        if any(parameter._deferred_init for parameter in self.trainer._params):
            # Their shapes become known in a first pass. (In training's mode: a prediction leaves
            # convolutions' weights in a layout of oneDNN's, which cannot be sent.)
            with autograd.train_mode():
                self._forward(batch.shards[0])
        self.together.begin(self.trainer)
        if first and self.together.worker:
            seed_everything(progress.seed(self.plan, 0, 0, self.together.worker))

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
