"""The learning rate of every update."""

from __future__ import annotations

import math

from mxopt.core.plan import Plan


def learning_rate(plan: Plan, step: int, steps_per_epoch: int) -> float:
    """Return the learning rate of an update: linear warm-up, then the plan's schedule.

    ``poly`` is (1 - progress) ** 0.9 as in DeepLab (Chen et al., 2017), ``cosine`` is half a cosine
    (Loshchilov and Hutter, "SGDR", 2017); both reach 0 after the last update. ``inverse_sqrt``
    decreases with the square root of the step (Vaswani et al., 2017) and does not reach 0.

    Args:
        plan: the switches, for ``learning_rate``, ``schedule``, ``warmup_epochs`` and ``epochs``.
        step: number of updates before this one.
        steps_per_epoch: number of updates in each epoch.
    """
    warmup = plan.warmup_epochs * steps_per_epoch
    if step < warmup:
        return plan.learning_rate * (step + 1) / warmup
    if plan.schedule == "inverse_sqrt":
        return plan.learning_rate * math.sqrt(max(1, warmup) / max(1, warmup, step + 1))
    progress = (step - warmup) / max(1, plan.epochs * steps_per_epoch - warmup)
    shape = {
        "constant": 1.0,
        "poly": (1 - progress) ** 0.9,
        "cosine": (1 + math.cos(math.pi * progress)) / 2,
    }
    return plan.learning_rate * shape[plan.schedule]
