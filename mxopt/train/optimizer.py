"""The optimizer of a plan."""

from __future__ import annotations

from mxnet import gluon

from mxopt.core.plan import Plan
from mxopt.methods import fused_updates
from mxopt.methods.kvstore import stores
from mxopt.methods.precision.amp import Float32


def make_trainer(
    net: gluon.Block,
    plan: Plan,
    precision: Float32,
    kvstore: stores.SingleProcess = stores.SINGLE_PROCESS,
) -> gluon.Trainer:
    """Return the plan's trainer, with ``update_on_kvstore=False`` as AMP and clipping need.

    Adam's first decay rate and its epsilon are those of Vaswani et al. (2017), section 5.3.

    Args:
        net: the block that is trained.
        plan: optimizer, learning rate, momentum and weight decay.
        precision: the precision, which may add optimizer options such as ``multi_precision``.
        kvstore: how gradients are summed over processes.
    """
    own = {
        "sgd": {"momentum": plan.momentum},
        "adam": {"beta1": 0.9, "beta2": plan.beta2, "epsilon": 1e-9},
        "lars": {"momentum": plan.momentum},
        "lamb": {"beta1": 0.9, "beta2": plan.beta2},
    }
    options = {"learning_rate": plan.learning_rate, "wd": plan.weight_decay}
    options.update(own[plan.optimizer], **precision.optimizer_options)
    name = plan.optimizer
    if plan.updates == "fused":
        name = fused_updates.OPTIMIZERS[name].__name__
    return kvstore.trainer(net.collect_params(), name, options)
