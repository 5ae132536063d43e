"""Divergence: a run whose numbers have gone wrong ends, says at which step, and keeps nothing bad.

A number that is not finite stays so: every step after it is wasted, and a checkpoint of it would
take the place of a good one. Signs are looked for where the numbers are on the host anyway, or once
an epoch outside of the clocks: in losses, in the loss scale, in weights, in scores.
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
    """Raise ``Diverged``, naming the step, if a loss is not finite; one loss a step."""
    bad = np.flatnonzero(~np.isfinite(losses))
    if len(bad):
        step = steps_before + bad[0] + 1
        raise Diverged(f"diverged at step {step}: loss {losses[bad[0]]}; {_ADVICE}")


def check_loss_scale(numbers: Float32, trainer: gluon.Trainer, steps: int) -> None:
    """Raise ``Diverged`` if the last of so many steps overflowed at the smallest loss scale."""
    if numbers.exhausted(trainer):
        raise Diverged(
            f"diverged at step {steps}: its gradients overflow without a loss scale too, after "
            f"{numbers.skipped_steps} skipped steps; {_ADVICE}, or take precision='float32'"
        )


def check_weights(net: gluon.Block, steps: int) -> None:
    """Raise ``Diverged`` if a weight is not finite after so many steps.

    The losses of an epoch do not show what its last step did to the weights.
    """
    arrays = [array for p in net.collect_params().values() for array in p._data or []]
    by_context: dict = {}
    for array in arrays:
        flag = by_context.setdefault(array.context, nd.ones((1,), ctx=array.context))
        nd.all_finite(array, init_output=False, out=flag)
    if not all(flag.asscalar() for flag in by_context.values()):
        raise Diverged(f"diverged at step {steps}: its update left weights not finite; {_ADVICE}")


def check_scores(scores: dict, steps: int) -> None:
    """Raise ``Diverged`` if the loss of a validation or test after so many steps is not finite."""
    for name, value in scores.items():
        if name.endswith("_loss") and not math.isfinite(value):
            raise Diverged(f"diverged by step {steps}: {name} is {value}; {_ADVICE}")


@contextlib.contextmanager
def naming_checkpoint(folder: Path | None):
    """Add to a divergence in a ``with`` block where its last good weights are, if any are kept."""
    try:
        yield
    except Diverged as error:
        if folder is None:
            raise
        last = checkpoint.newest(folder)
        kept = f"the last good weights are in {last}" if last else "none was written yet"
        raise Diverged(f"{error}. Checkpoints: {kept}") from None
