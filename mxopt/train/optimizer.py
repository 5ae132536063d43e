"""How weights are updated: the optimizer of a plan, and its learning rate at every step."""

from __future__ import annotations

import math

from mxnet import gluon

from mxopt.core.plan import Plan
from mxopt.methods.kvstore import stores
from mxopt.methods.precision import amp


def make_trainer(
    net: gluon.Block, plan: Plan, numbers: amp.Float32, together: stores.Alone = stores.ALONE
) -> gluon.Trainer:
    """Return the plan's trainer; updates stay off the kvstore, as AMP and clipping need.

    Adam's decay rates and epsilon are those of Vaswani et al. (2017), section 5.3.
    """
    parameters = net.collect_params()
    for parameter in parameters.values():
        if plan.accumulation > 1 and parameter.grad_req != "null":
            parameter.grad_req = "add"
    own = {
        "sgd": {"momentum": plan.momentum},
        "adam": {"beta1": 0.9, "beta2": 0.98, "epsilon": 1e-9},
    }
    options = {"learning_rate": plan.learning_rate, "wd": plan.weight_decay}
    options.update(own[plan.optimizer], **numbers.optimizer_options)
    return together.trainer(parameters, plan.optimizer, options)


def learning_rate(plan: Plan, step: int, steps_per_epoch: int) -> float:
    """Return the learning rate of an update: linear warm-up, then the plan's schedule.

    ``poly`` is (1 - progress) ** 0.9 as in DeepLab (Chen et al., 2017), ``cosine`` half a cosine
    (Loshchilov and Hutter, "SGDR", 2017); both reach 0 after the last update. ``inverse_sqrt``
    falls with the square root of the step (Vaswani et al., 2017) and reaches 0 never.
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
