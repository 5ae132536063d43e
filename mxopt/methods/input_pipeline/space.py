"""The number of batches that workers have under way, and the space that these need."""

from __future__ import annotations

from mxopt.core.errors import CapacityError
from mxopt.core.plan import Plan
from mxopt.machine import shared_memory
from mxopt.methods.shared_memory_loader.workers import slots_each


def loaded_ahead(plan: Plan) -> int:
    """Return how many further batches workers load while one is waited for."""
    return 2 * plan.num_workers if plan.prefetch is None else plan.prefetch


def under_way(plan: Plan) -> int:
    """Return the largest number of batches in ``/dev/shm``; 0 without workers.

    Args:
        plan: the switches, for ``loader``, ``num_workers`` and ``prefetch``.
    """
    if not plan.num_workers:
        return 0
    if plan.loader == "shared_memory":
        return plan.num_workers * slots_each(plan.num_workers, loaded_ahead(plan))
    # The batch that was used last, the one that is waited for, and those ahead.
    return loaded_ahead(plan) + 2


def check_shared_memory(batch: int, batches: int) -> None:
    """Check that ``/dev/shm`` has space for the batches that workers keep there.

    Without it a worker dies, or hangs (apache/mxnet #18224).

    Args:
        batch: size of one batch in bytes.
        batches: number of batches.

    Raises:
        CapacityError: it has not, or does not exist; the message gives both sizes.
    """
    shared = shared_memory()
    needed, free = batch * batches, shared.free if shared else 0
    if needed > free:
        raise CapacityError(
            f"{batches} batches under way need {needed / 2**20:,.1f} MiB of /dev/shm, which has "
            f"{free / 2**20:,.1f} MiB free: set num_workers=0, take less prefetch or "
            "smaller batches, or enlarge it (docker run --shm-size=2g)"
        )
