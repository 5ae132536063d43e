"""Hybridize: compile the network's Python code into a graph."""

import os

from mxopt.core.errors import PlanError
from mxopt.methods.method import Method


class Hybridize(Method):
    """Calls ``hybridize`` on the trained part of the network."""

    switches = ("hybridize",)
    options = {"mxopt.chapter.dispatch_workloads:dispatched": ("together",)}

    @classmethod
    def check(cls, plan):
        """Refuse ``fused`` without frozen stages on a CPU."""
        if plan.hybridize == "fused" and (plan.device_kind != "cpu" or not plan.freeze_stages):
            raise PlanError(
                "hybridize='fused' is for frozen stages on a CPU; take 'static', or set "
                "freeze_stages"
            )

    def network(self, run, net):
        """Make MXNet choose its smallest memory plan for a static graph."""
        if run.plan.hybridize in ("static", "fused"):
            os.environ.setdefault("NNVM_AUTO_SEARCH_MATCH_RANGE", "1")
        return net

    def before_training(self, run):
        """Hybridise the network, which compiles it at the first batch."""
        if run.plan.hybridize != "no":
            static = run.plan.hybridize != "yes"
            run.learning.hybridize(static_alloc=static, static_shape=static)
