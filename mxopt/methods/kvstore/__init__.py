"""KVStore: train in several processes that sum their gradients."""

from mxopt.core.errors import PlanError
from mxopt.methods.method import Method, exports


class KVStore(Method):
    """Declares the switches; the classes in ``stores`` sum the gradients."""

    switches = ("kvstore", "processes")

    @classmethod
    def check(cls, plan):
        """Refuse several processes without a store, and Horovod with several devices."""
        if plan.processes > 1 and plan.kvstore == "none":
            raise PlanError(
                f"processes={plan.processes} need a way to sum their gradients; "
                "set kvstore='dist_sync'"
            )
        if plan.kvstore == "horovod" and len(plan.device_indices) > 1:
            raise PlanError(
                f"kvstore='horovod' takes one device a process, not devices={plan.devices!r}"
            )


__getattr__ = exports(__name__, for_plan="stores", SingleProcess="stores")
