"""Training steps, the parts of an epoch, and the evaluation of a split.

Losses stay on the device until the end of their part of the epoch. Up to ``AHEAD`` steps are
enqueued before the loss of an earlier one is waited for, so that the devices are never idle; with
more, the enqueued batches would fill the memory.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from mxnet import autograd, nd

from mxopt.methods import TrainingRun
from mxopt.methods.data_parallel import parallel
from mxopt.methods.engine.clock import timed
from mxopt.train import progress
from mxopt.train.setup import seed_everything

# Steps enqueued behind the one whose loss is waited for.
AHEAD = 2


@dataclass(frozen=True)
class Part:
    """Consecutive steps of an epoch.

    Attributes:
        losses: mean loss of each step, on the device, shape (steps,).
        sizes: number of samples (or tokens) of each step.
        first_seconds: seconds of the run's first step; None if this call did not train it.
        loading_seconds: seconds in which the loop waited for batches of the loader.
        waiting_seconds: seconds in which it waited for the devices: for an earlier step's loss, for
            the run's first step, and for AMP's look for overflows. The wait at the end of the part
            is the clock's, and not among them.
    """

    losses: nd.NDArray
    sizes: list[int]
    first_seconds: float | None
    loading_seconds: float = 0.0
    waiting_seconds: float = 0.0


def train_epoch(run: TrainingRun, loader, epoch: int, begin: int, ends: set[int]):
    """Train an epoch from a step on, and yield a :class:`Part` after each of the steps ``ends``.

    Up to ``AHEAD`` steps are enqueued behind the current one; the run's first step is waited for.

    Args:
        run: the training run.
        loader: the epoch's training batches.
        epoch: number of the epoch, from 0.
        begin: number of its steps that are finished already.
        ends: steps, counted from 1, after which a part ends; the largest is the epoch's last.
    """
    sums, sizes, first_seconds, pending = [], [], None, 0
    count, batches = max(ends), run.plan.grad_accumulation
    run.updates_per_epoch = -(-count // batches)
    loader.epoch, loader.step = epoch, begin
    start = time.perf_counter()
    if run.trainer_is_new and run.plan.hybridize in ("static", "fused"):
        _rehearse(run, loader, progress.seed(run.plan, epoch, begin, run.kvstore.worker))
    run.trainer_is_new = False
    loaded = waited = 0.0
    for step, (batch, loading) in enumerate(_loaded(loader), begin + 1):
        first = epoch == 0 and step == 1
        loaded += loading
        sums.append(run.kvstore.total(_backward(run, batch)))
        sizes.append(batch.size)
        if len(sums) > AHEAD:
            waited += _seconds(sums[-1 - AHEAD].wait_to_read)
        pending += batch.size
        if step % batches == 0 or step == count:
            run.update = epoch * run.updates_per_epoch + (step - 1) // batches
            run.progress = epoch + step / count
            before = run.precision.waiting_seconds
            _update(run, pending)
            waited += run.precision.waiting_seconds - before
            pending = 0
        if first:
            # Graph building and first touch are one-off costs, reported separately.
            waited += _seconds(nd.waitall)
            first_seconds = time.perf_counter() - start
        if step in ends or run.precision.exhausted(run.trainer):
            means = nd.concat(*sums, dim=0) / nd.array(sizes, ctx=sums[0].context)
            yield Part(means, sizes, first_seconds, loaded, waited)
            sums, sizes, loaded, waited = [], [], 0.0, 0.0


def _loaded(loader):
    """Yield the batches of a loader, and the seconds that each was waited for."""
    batches = iter(loader)
    while True:
        begin = time.perf_counter()
        try:
            batch = next(batches)
        except StopIteration:
            return
        yield batch, time.perf_counter() - begin


def _seconds(wait) -> float:
    """Call a function that waits, and return how long it took."""
    before = time.perf_counter()
    wait()
    return time.perf_counter() - before


def validate(run: TrainingRun) -> dict[str, float]:
    """Return the figures of the validation split, and the seconds spent on them."""
    with timed() as clock:
        scores = evaluate(run, "validation")
    return {**scores, "validation_seconds": clock.seconds}


def evaluate(run: TrainingRun, split: str) -> dict[str, float]:
    """Return the mean loss and the metrics of a split, with each sample visited once.

    Args:
        run: the training run.
        split: ``validation`` or ``test``.

    Returns:
        The figures by name, such as ``validation_loss``.
    """
    recipe = run.recipe
    metric = recipe.metric() if recipe.metric else None
    sums, units = [], 0
    for batch in run.loaders[split]:
        for shard in batch.shards:
            output, labels = _forward(run, shard)
            sums.append(_per_sample(recipe.loss(output, *labels)).sum())
            if metric:
                metric.update(list(labels), [output])
        units += batch.size
    total = sum(float(value.asscalar()) for value in sums)
    scores = {"loss": total / units}
    if metric:
        names, values = metric.get()
        named = isinstance(names, str)
        scores.update(zip([names], [values]) if named else zip(names, values))
    if recipe.score:
        scores.update(recipe.score(run.network, run.data, split))
    return {
        f"{split}_{name}": value if isinstance(value, str) else float(value)
        for name, value in scores.items()
    }


def _update(run: TrainingRun, size: int) -> None:
    """Update the weights with the gradient of ``size`` samples, and call the methods' hooks."""

    def on_gradients():
        for method in run.methods:
            method.before_update(run, size)

    run.precision.step(run.trainer, size, on_gradients)
    for method in run.methods:
        method.after_update(run)


def _backward(run: TrainingRun, batch) -> nd.NDArray:
    """Add a batch's gradient and return the sum of its losses, shape (1,)."""
    with autograd.record():
        losses = [_losses(run, shard).sum() for shard in batch.shards]
        if batch.idle:
            losses = [0 * loss for loss in losses]
        run.precision.backward(losses, run.trainer)
    busy = [shard[0].context for shard in batch.shards]
    idle = [context for context in run.contexts if context not in busy]
    if idle:
        parallel.mark_idle(run.trainer._params, idle)
    return parallel.gather([loss.detach() for loss in losses])


def _losses(run: TrainingRun, shard) -> nd.NDArray:
    output, labels = _forward(run, shard)
    return _per_sample(run.loss(output, *labels))


def _per_sample(losses: nd.NDArray) -> nd.NDArray:
    """Return one loss for each sample, shape (samples,): the mean over all other axes."""
    return losses.reshape((len(losses), -1)).mean(axis=1)


def _forward(run: TrainingRun, shard):
    """Return the output of the part that is trained, and the labels."""
    inputs = run.precision.inputs(shard[: run.recipe.inputs])
    return run.precision.outputs(run.learning(*inputs)), shard[run.recipe.inputs :]


def _rehearse(run: TrainingRun, loader, seed: int) -> None:
    """Compute the gradient of the largest batch once and discard it, if batches differ in shape.

    The buffers of a static graph then fit all batches. Otherwise the buffers of a small batch are
    still allocated when those of a larger one are added. No weight changes, and the random
    generators are seeded again afterwards.
    """
    largest = getattr(loader, "largest", None)
    if not largest:
        return
    with autograd.record(train_mode=False):
        losses = [_losses(run, shard).sum() for shard in largest().shards]
    autograd.backward(losses)
    if run.plan.grad_accumulation > 1:
        run.learning.collect_params().zero_grad()
    seed_everything(seed)
