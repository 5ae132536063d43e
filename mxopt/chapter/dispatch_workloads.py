"""Workload: what a call costs beside its arithmetic."""

from __future__ import annotations

import contextlib

from mxopt.core.plan import Plan
from mxopt.methods.engine.clock import timed


def dispatched(
    plan: Plan, write, together: int = 1, bulk: int | None = None, steps: int = 2_000,
    layers: int = 8, units: int = 16,
) -> dict:  # fmt: skip
    """Compute a small network many times, whose operators take less time than starting them.

    Args:
        plan: ``hybridize``, and the rows of the input as its batch size; devices and seed.
        write: called with the name and the fields of each event.
        together: number of steps that one call computes; the number of steps is rounded down to a
            multiple of it.
        bulk: number of operators that the engine gets at a time (``mx.engine.bulk``); None is
            MXNet's default, and without a graph only.
        steps: number of times that the network is computed.
        layers: number of its dense layers.
        units: units of each.

    Returns:
        ``seconds`` and ``cpu_seconds`` of all steps after a first call, and ``microseconds`` of
        one.
    """
    import mxnet as mx
    from mxnet import gluon, nd

    from mxopt.methods.data_parallel import parallel
    from mxopt.train.setup import seed_everything

    class Steps(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.net = gluon.nn.HybridSequential()
            for _ in range(layers):
                self.net.add(gluon.nn.Dense(units, activation="relu", in_units=units))

        def hybrid_forward(self, F, *inputs):
            return F.concat(*map(self.net, inputs), dim=0)

    seed_everything(plan.seed)
    [context] = parallel.contexts(plan)
    net = Steps()
    net.initialize(mx.init.Xavier(), ctx=context)
    if plan.hybridize != "no":
        static = plan.hybridize == "static"
        net.hybridize(static_alloc=static, static_shape=static)
    inputs = [nd.random.normal(shape=(plan.batch_size, units), ctx=context)] * together
    net(*inputs).wait_to_read()
    calls = steps // together
    at_a_time = contextlib.nullcontext() if bulk is None else mx.engine.bulk(bulk)
    with at_a_time, timed() as clock:
        for _ in range(calls):
            net(*inputs)
    write("calls", times=calls)
    return {
        "seconds": clock.seconds,
        "cpu_seconds": clock.cpu_seconds,
        "microseconds": 1e6 * clock.seconds / (calls * together),
    }
