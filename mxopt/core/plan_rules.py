"""Which of a plan's switches do not go with each other."""

from __future__ import annotations

from mxopt.core.errors import PlanError


def check(plan) -> None:
    """Make sure that the switches of a :class:`mxopt.core.plan.Plan` go together.

    Raises:
        PlanError: two do not; the message gives both, and what to take.
    """
    if plan.prefetch is not None and plan.workers == 0:
        raise PlanError(
            f"prefetch={plan.prefetch} needs worker processes to load ahead; set workers to "
            "at least 1, or leave prefetch out"
        )
    if plan.frozen and plan.workers:
        raise PlanError(f"frozen={plan.frozen} stages run in the training process; set workers=0")
    if plan.frozen and plan.precision == "float16":
        raise PlanError(
            f"frozen={plan.frozen} stages stay in float32; with them take precision='amp'"
        )
    if plan.frozen and plan.pixels == "uint8":
        raise PlanError(
            f"frozen={plan.frozen} stages make float32 of the pixels, which is what is kept; "
            "with them take pixels='float32'"
        )
    if plan.hybridize == "fused" and (plan.device_kind != "cpu" or not plan.frozen):
        raise PlanError(
            "hybridize='fused' is for frozen stages on a CPU; take 'static', or set frozen"
        )
    if plan.processes > 1 and plan.sync == "none":
        raise PlanError(
            f"processes={plan.processes} need a way to add up their gradients; set sync='dist_sync'"
        )
    if plan.sync == "horovod" and len(plan.device_indices) > 1:
        raise PlanError(f"sync='horovod' takes one device a process, not devices={plan.devices!r}")
    if plan.optimizer == "adam" and plan.momentum:
        raise PlanError(f"momentum={plan.momentum} is SGD's; with Adam leave it at 0")
    if plan.average_from is not None and plan.average_from >= plan.epochs:
        raise PlanError(
            f"average_from={plan.average_from} must be less than epochs={plan.epochs}, or no "
            "step is averaged"
        )
    if plan.warmup_epochs >= plan.epochs and plan.warmup_epochs:
        raise PlanError(
            f"warmup_epochs={plan.warmup_epochs} must be fewer than epochs={plan.epochs}"
        )
