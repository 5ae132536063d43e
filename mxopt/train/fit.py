"""The training loop, the same for all recipes and plans.

If two runs had different loops, comparing them would compare two programs; here only the plans
differ. Within a part of an epoch (``progress``) the loop never waits for the devices: losses are
read at the end of the part. The clock waits for the devices at the start and the end of each part.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from mxopt import machine
from mxopt.core.errors import DataError
from mxopt.core.plan import Plan
from mxopt.core.recipe import Recipe
from mxopt.methods import TrainingRun
from mxopt.methods.engine.clock import timed
from mxopt.methods.kvstore import stores
from mxopt.train import checkpoint, divergence, memory, progress
from mxopt.train.progress import CHECKPOINT_STEPS, Position
from mxopt.train.setup import prepare, seed_everything
from mxopt.train.step import evaluate as evaluate_split
from mxopt.train.step import train_epoch, validate


def fit(
    recipe: Recipe,
    plan: Plan,
    write: Callable,
    on_epoch: Callable | None = None,
    evaluate: bool = True,
    checks: int = 1,
    checkpoints: Path | None = None,
    checkpoint_steps: int = CHECKPOINT_STEPS,
) -> dict:
    """Train a recipe under a plan and test it once, at the end.

    Args:
        recipe: what is trained.
        plan: the switches.
        write: function that writes an event, called like ``RecordWriter.write``.
        on_epoch: function called with the whole network after each epoch, and after a checkpoint
            was restored; its time is not counted.
        evaluate: whether to validate after each epoch and to test at the end. If not, only the
            training split is read, and the result has no such figures.
        checks: number of validations in each epoch, the last one at its end. The others are
            written as ``check`` events, with ``progress`` in epochs, ``step`` of the whole run and
            ``seconds`` since the start of the epoch. They do not affect training. One more, before
            the first step, shows what the initial weights score.
        checkpoints: folder to write checkpoints to, after each epoch and every
            ``checkpoint_steps`` steps. If it has one already, the run resumes from it
            (``checkpoint``). The losses are then those of a run that was not interrupted.
            ``resumed_epochs`` and ``resumed_steps`` say how much was done before; the times of such
            a run must not be compared.
        checkpoint_steps: largest number of steps that a killed run loses, rounded up to whole
            updates. After each of these intervals within an epoch the random generators are seeded
            again, with or without checkpoints: in longer epochs, losses depend a little on this
            number if dropout or augmentation draw random numbers.

    Returns:
        The figures of the run: ``seconds`` and ``cpu_seconds`` (training, all epochs, no
        validation; CPU time of all threads of this process),
        ``loading_seconds`` and ``device_waiting_seconds`` (those of ``seconds`` in which the loop
        waited for batches, and for the devices, also at the end of each part of an epoch),
        ``training_seconds`` (``seconds`` and the preparation of
        the training set), ``samples`` trained on, ``samples_per_second`` (steady state: without the
        first step; both are named after the recipe's unit), ``first_step_seconds``,
        ``setup_seconds`` (data, network), ``end_to_end_seconds``, ``train_loss``, ``validation_*``
        ``gpu_utilization`` (on GPUs, in per cent, from NVML; with the checks within epochs),
        and ``test_*`` (loss and every metric; with several processes only in the first),
        ``skipped_steps`` (overflows under AMP).

    Raises:
        Diverged: a loss or a weight became NaN or infinite, or gradients overflow at every loss
            scale. The message names the step, and the last good checkpoint if any are kept. The
            steps until then are in the record.
        CapacityError: training would not fit into memory (``memory``), or ran out of it; the
            message suggests a batch size.
        DataError: an epoch has another number of steps than in the checkpoint.
        MxoptError: the plan cannot run here.
    """
    with memory.explained(plan), divergence.naming_checkpoint(checkpoints):
        return _fit(recipe, plan, write, on_epoch, evaluate, checks, checkpoints, checkpoint_steps)


def _fit(recipe, plan, write, on_epoch, evaluate, checks, checkpoints, checkpoint_steps) -> dict:
    begin = time.perf_counter()
    progress.check(checkpoint_steps)
    kvstore = stores.for_plan(plan)
    evaluate = evaluate and not kvstore.worker
    checks = checks if evaluate else 1
    run, preparation = prepare(recipe, plan, write, evaluate, kvstore)
    setup = time.perf_counter() - begin
    weights = sorted({np.dtype(p.dtype).name for p in run.network.collect_params().values()})
    write("setup", seconds=setup, preprocessing_seconds=preparation["train"],
          evaluation_preprocessing_seconds=sum(preparation.values()) - preparation["train"],
          weights=weights)  # fmt: skip

    units = f"{recipe.unit}s"
    clocks = ("seconds", "cpu_seconds", "loading_seconds", "device_waiting_seconds")
    at, resumed = Position({**dict.fromkeys(clocks, 0.0), units: 0}), {}
    if checkpoints:
        found = checkpoint.restore(checkpoints, run, checkpoint_steps)
        if found:
            at = Position.restored(found)
            run.precision.skipped_steps = at.skipped_steps
            resumed = {"resumed_epochs": at.epoch, "resumed_steps": at.step}
            write("resumed", epoch=at.epoch, step=at.step)
            if on_epoch:
                on_epoch(run.network)
        kvstore.check_equal(at.epoch, at.step, checkpoints)
    if not kvstore.ready:
        kvstore.begin(run.trainer)
    if evaluate and not resumed:
        with _evaluating(run):
            scores = validate(run)
        write("check", progress=0.0, step=0, seconds=0.0, **scores)

    def keep():
        if checkpoints and not kvstore.worker:
            at.skipped_steps = run.precision.skipped_steps
            checkpoint.save(checkpoints, run, checkpoint_steps, dataclasses.asdict(at))

    busy = machine.Utilization(plan.device_indices if plan.device_kind == "gpu" else [])
    while at.epoch < plan.epochs:
        with busy:
            _train_epoch(run, at, checks, checkpoint_steps, write, keep)
        for name in clocks:
            if name in at.totals:  # those of an older version's checkpoint lack some
                at.totals[name] += getattr(at, name)
        at.totals[units] += at.size
        at.train_loss = at.loss / at.size
        with _evaluating(run):
            at.scores = validate(run) if evaluate else {}
            write("epoch", epoch=at.epoch, step=at.steps, seconds=at.seconds,
                  cpu_seconds=at.cpu_seconds, **{units: at.size}, train_loss=at.train_loss,
                  **at.scores)  # fmt: skip
            divergence.check_scores(at.scores, at.steps)
            if on_epoch:
                on_epoch(run.network)
        at.end_epoch()
        keep()
    for method in run.methods:
        method.after_training(run)
    if evaluate:
        at.scores.update(evaluate_split(run, "test"))
        divergence.check_scores(at.scores, at.steps)
    first_seconds, first_size = at.first
    steady = at.totals["seconds"] - first_seconds
    return {
        **at.totals,
        "training_seconds": preparation["train"] + at.totals["seconds"],
        f"{units}_per_second": (at.totals[units] - first_size) / steady if steady > 0 else math.nan,
        "first_step_seconds": first_seconds,
        "setup_seconds": setup,
        "end_to_end_seconds": time.perf_counter() - begin,
        "train_loss": at.train_loss,
        **busy.figures(),
        **at.scores,
        "skipped_steps": run.precision.skipped_steps,
        **resumed,
    }


@contextlib.contextmanager
def _evaluating(run: TrainingRun):
    """Let methods change the network during an evaluation."""
    with contextlib.ExitStack() as stack:
        for method in run.methods:
            stack.enter_context(method.evaluating(run))
        yield


def _train_epoch(run: TrainingRun, at: Position, checks, every, write, keep) -> None:
    """Train the current epoch to its end; ``keep()`` is called at every stop."""
    plan, epoch = run.plan, at.epoch
    loader = run.loaders["train"]
    for method in run.methods:
        loader = method.training_loader(run, loader, epoch)
    count = len(loader)
    if at.step and at.count != count:
        raise DataError(
            f"the checkpoint was left at step {at.step} of {at.count}, and now an epoch has "
            f"{count}: the data has changed; restore it, or delete the checkpoints"
        )
    at.count = count
    stops = progress.stops(count, every, plan.grad_accumulation)
    checked = {round(count * number / checks) for number in range(1, checks)}

    def begin_anew():
        seed_everything(progress.seed(plan, epoch, at.step, run.kvstore.worker))

    begin_anew()
    parts = train_epoch(run, loader, epoch, at.step, {*stops, *checked, count})
    losses, sizes = [], []
    while at.step < count:
        with timed() as clock:
            part = next(parts)
        at.seconds += clock.seconds
        at.cpu_seconds += clock.cpu_seconds
        at.loading_seconds += part.loading_seconds
        # The clock has waited until all that was enqueued was computed.
        at.device_waiting_seconds += part.waiting_seconds + clock.seconds - clock.enqueued
        found = part.losses.asnumpy().tolist()
        write("steps", epoch=epoch, seconds=clock.seconds, losses=found, sizes=part.sizes)
        divergence.check_losses(found, at.steps)
        at.first = at.first or (part.first_seconds, part.sizes[0])
        at.steps += len(found)
        at.step += len(found)
        divergence.check_loss_scale(run.precision, run.trainer, at.steps)
        losses += found
        sizes += part.sizes
        if at.step in checked and at.step < count:
            with _evaluating(run):
                scores = validate(run)
            write("check", progress=epoch + at.step / count, step=at.steps, seconds=at.seconds,
                  **scores)  # fmt: skip
            divergence.check_scores(scores, at.steps)
        if at.step in stops or at.step == count:
            divergence.check_weights(run.network, at.steps)
            at.add(losses, sizes)
            losses, sizes = [], []
        if at.step in stops:
            keep()
            begin_anew()
