"""Positions: the progress of a run, and the steps of an epoch at which it can be resumed.

An epoch is trained in parts, between *stops*. At a stop the losses since the last one are read,
which bounds how many a device keeps; a checkpoint is written, if checkpoints are wanted; and the
random generators are seeded from the plan's seed, the epoch and the step, whether the run was
interrupted or not. A checkpoint thus needs no state of generators. An epoch with no more steps than
the interval has no stops.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np

from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan

# Steps between two stops: minutes of training, and more than an epoch of the chapter has.
CHECKPOINT_STEPS = 1_000
# Most steps in one line of a record, so that a reader needs little memory for a long epoch.
STEPS_A_LINE = 10_000
# Seeds of a run's later epochs, stops and other workers, far enough from the seeds of other runs.
EPOCH_SEEDS = 1_000_003
STEP_SEEDS = 32_452_843
WORKER_SEEDS = 15_485_863


@dataclass
class Position:
    """The progress of a run, and its figures so far; every value is JSON-able.

    Attributes:
        totals: ``seconds``, ``cpu_seconds`` and samples (or tokens) of the finished epochs.
        epoch: number of finished epochs.
        step: number of finished steps of the current epoch.
        count: number of steps of the current epoch.
        steps: number of finished steps of all epochs.
        seconds: seconds of the current epoch until ``step``.
        cpu_seconds: CPU seconds of this process in the same time, all threads together.
        loading_seconds: seconds of them in which the loop waited for batches.
        device_waiting_seconds: seconds of them in which it waited for the devices.
        loss: sum of the losses of these steps, each times its size.
        size: sum of the sizes of these steps, in samples or tokens.
        first: seconds and size of the run's first step.
        train_loss: mean loss of the last finished epoch.
        scores: validation figures of the last finished epoch.
        skipped_steps: number of steps skipped because of overflows under AMP.
    """

    totals: dict
    epoch: int = 0
    step: int = 0
    count: int = 0
    steps: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    loading_seconds: float = 0.0
    device_waiting_seconds: float = 0.0
    loss: float = 0.0
    size: int = 0
    first: tuple | None = None
    train_loss: float | None = None
    scores: dict = field(default_factory=dict)
    skipped_steps: int = 0

    @classmethod
    def restored(cls, found: dict) -> Position:
        """Return the position that a checkpoint holds, also one of an older version.

        Figures that are no longer recorded are left out. Those that were not recorded then are left
        out of the totals, because they would lack the finished epochs.

        Args:
            found: the fields of a position.
        """
        names = {one.name for one in fields(cls)}
        position = cls(**{name: value for name, value in found.items() if name in names})
        for name in found.keys() - names:
            position.totals.pop(name, None)
        return position

    def add(self, losses: list[float], sizes: list[int]) -> None:
        """Add steps to the figures of the current epoch.

        Args:
            losses: mean loss of each step.
            sizes: number of samples (or tokens) of each step.
        """
        self.loss += float(np.multiply(losses, sizes).sum())
        self.size += sum(sizes)

    def end_epoch(self) -> None:
        """Count the current epoch as finished."""
        self.epoch += 1
        self.step, self.size = 0, 0
        self.seconds = self.cpu_seconds = self.loss = 0.0
        self.loading_seconds = self.device_waiting_seconds = 0.0


def stops(count: int, every: int, accumulation: int = 1) -> range:
    """Return the steps of an epoch after which a run can be resumed, without the last step.

    Args:
        count: number of steps of the epoch.
        every: steps between two stops, at least 1; rounded up to whole updates.
        accumulation: steps for each update.
    """
    every = -(-every // accumulation) * accumulation
    return range(every, count, every)


def check(every: int) -> None:
    """Check the number of steps between two stops.

    Raises:
        PlanError: it is not a whole number from 1 to ``STEPS_A_LINE``.
    """
    if not isinstance(every, int) or not 1 <= every <= STEPS_A_LINE:
        raise PlanError(
            f"checkpoint_steps={every!r} must be a whole number from 1 to {STEPS_A_LINE:,}: the "
            "losses of these steps are kept until they are read together"
        )


def seed(plan: Plan, epoch: int, step: int, worker: int) -> int:
    """Return the seed of a worker's random generators for the steps from a stop on.

    Args:
        plan: the switches, with the seed of the run.
        epoch: number of the epoch, from 0.
        step: number of finished steps of the epoch.
        worker: number of the process, from 0.
    """
    own = EPOCH_SEEDS * epoch + STEP_SEEDS * step + WORKER_SEEDS * worker
    return (plan.seed + own) % 2**31
