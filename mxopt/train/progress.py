"""Positions: how far a run is, and the steps of an epoch at which it can be left.

An epoch is trained in parts, between *stops*. At a stop the losses since the last one are read, so
that a device never holds more of them; a checkpoint is written, if any are; and the random
generators begin anew, with a seed made of the plan's, the epoch and the step, whether the run was
interrupted there or not. So nothing random needs keeping. An epoch of no more steps than lie
between two stops has none.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan

# Steps between two stops: minutes of training, and more than an epoch of the chapter's has.
CHECKPOINT_STEPS = 1_000
# In one line of a record, so that a reader never has to hold a long epoch.
STEPS_A_LINE = 10_000
# Seeds of a run's later epochs, stops and other workers, far enough from the seeds of other runs.
EPOCH_SEEDS = 1_000_003
STEP_SEEDS = 32_452_843
WORKER_SEEDS = 15_485_863


@dataclass
class Position:
    """How far a run is, and its figures until there; every value is JSON-able.

    Attributes:
        totals: ``seconds`` and samples (or tokens) of the epochs that are done.
        epoch: how many these are.
        step: steps done of the epoch after them, and ``count`` of how many.
        steps: steps done of all epochs.
        seconds, loss, size: of the epoch in work until ``step``: seconds, the sum of its losses
            times their sizes, the sum of these sizes.
        first: seconds and size of the run's first step.
        train_loss, scores: of the last epoch that is done.
        skipped_steps: overflows under AMP.
    """

    totals: dict
    epoch: int = 0
    step: int = 0
    count: int = 0
    steps: int = 0
    seconds: float = 0.0
    loss: float = 0.0
    size: int = 0
    first: tuple | None = None
    train_loss: float | None = None
    scores: dict = field(default_factory=dict)
    skipped_steps: int = 0

    def add(self, losses: list[float], sizes: list[int]) -> None:
        """Add steps, each with its loss and its size, to the epoch's figures."""
        self.loss += float(np.multiply(losses, sizes).sum())
        self.size += sum(sizes)

    def end_epoch(self) -> None:
        """Count the epoch in work as done."""
        self.epoch += 1
        self.step, self.seconds, self.loss, self.size = 0, 0.0, 0.0, 0


def stops(count: int, every: int, accumulation: int = 1) -> range:
    """Return after which of an epoch's ``count`` steps, but the last, a run can be left.

    Args:
        count: steps of the epoch.
        every: steps between two stops, at least 1, rounded up to whole updates.
        accumulation: steps of an update.
    """
    every = -(-every // accumulation) * accumulation
    return range(every, count, every)


def check(every: int) -> None:
    """Make sure that stops can be so many steps apart.

    Raises:
        PlanError: that is no whole number from 1 to what a record's line takes.
    """
    if not isinstance(every, int) or not 1 <= every <= STEPS_A_LINE:
        raise PlanError(
            f"checkpoint_steps={every!r} must be a whole number from 1 to {STEPS_A_LINE:,}: the "
            "losses of so many steps are held until they are read together"
        )


def seed(plan: Plan, epoch: int, step: int, worker: int) -> int:
    """Return the seed of a worker's random generators from a step of an epoch on."""
    own = EPOCH_SEEDS * epoch + STEP_SEEDS * step + WORKER_SEEDS * worker
    return (plan.seed + own) % 2**31
