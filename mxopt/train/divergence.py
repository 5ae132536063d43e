"""Divergence: a run with NaN or infinite numbers ends with an error that names the step.

A weight that is not finite stays so: all further steps are wasted, and a checkpoint would replace a
good one. Losses, the loss scale, weights and scores are checked where they are on the host anyway,
or once an epoch outside of the timed parts.
"""

from __future__ import annotations

import contextlib
import math
from pathlib import Path

import numpy as np
from mxnet import gluon, nd

from mxopt.core.errors import Diverged
from mxopt.methods.precision.amp import Float32
from mxopt.train import checkpoint

_ADVICE = "lower learning_rate, or set clip_norm"


def check_losses(losses: list[float], steps_before: int) -> None:
    """Check that all losses are finite.

    Args:
        losses: one loss for each step.
        steps_before: number of steps before the first of these.

    Raises:
        Diverged: a loss is NaN or infinite.
    """
    bad = np.flatnonzero(~np.isfinite(losses))
    if len(bad):
        step = steps_before + bad[0] + 1
        raise Diverged(f"diverged at step {step}: loss {losses[bad[0]]}; {_ADVICE}")


def check_loss_scale(numbers: Float32, trainer: gluon.Trainer, steps: int) -> None:
    """Check that the last step did not overflow at the smallest loss scale.

    Args:
        numbers: the precision.
        trainer: the trainer with the loss scale.
        steps: number of steps so far.

    Raises:
        Diverged: it did.
    """
    if numbers.exhausted(trainer):
        raise Diverged(
            f"diverged at step {steps}: its gradients overflow without a loss scale too, after "
            f"{numbers.skipped_steps} skipped steps; {_ADVICE}, or take precision='float32'"
        )


def check_weights(net: gluon.Block, steps: int) -> None:
    """Check that all weights are finite.

    The losses of an epoch do not show the effect of its last update.

    Args:
        net: the network.
        steps: number of steps so far.

    Raises:
        Diverged: a weight is NaN or infinite.
    """
    arrays = [array for p in net.collect_params().values() for array in p._data or []]
    by_context: dict = {}
    for array in arrays:
        flag = by_context.setdefault(array.context, nd.ones((1,), ctx=array.context))
        nd.all_finite(array, init_output=False, out=flag)
    if not all(flag.asscalar() for flag in by_context.values()):
        raise Diverged(f"diverged at step {steps}: its update left weights not finite; {_ADVICE}")


def check_scores(scores: dict, steps: int) -> None:
    """Check that the losses of a validation or a test are finite.

    Args:
        scores: figures by name; those that end with ``_loss`` are checked.
        steps: number of steps so far.

    Raises:
        Diverged: a loss is NaN or infinite.
    """
    for name, value in scores.items():
        if name.endswith("_loss") and not math.isfinite(value):
            raise Diverged(f"diverged by step {steps}: {name} is {value}; {_ADVICE}")


@contextlib.contextmanager
def naming_checkpoint(folder: Path | None):
    """Add the file of the last good weights to a ``Diverged`` error in a ``with`` block.

    Args:
        folder: folder of the checkpoints; None if none are kept.
    """
    try:
        yield
    except Diverged as error:
        if folder is None:
            raise
        last = checkpoint.newest(folder)
        kept = f"the last good weights are in {last}" if last else "none was written yet"
        raise Diverged(f"{error}. Checkpoints: {kept}") from None
