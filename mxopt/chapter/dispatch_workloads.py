"""Workloads: what a call costs beside its arithmetic, of a network and of an optimizer."""

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


def updated(
    plan: Plan, write, network: str | None = None, layers: int = 150, units: int = 64,
    steps: int = 10,
) -> dict:  # fmt: skip
    """Update the parameters of a network some times; its gradients are computed outside the clock.

    Args:
        plan: the optimizer, and how many parameters it updates in one call; devices and seed.
        write: called with the name and the fields of each event.
        network: name of a network in Gluon's model zoo; None is a row of dense layers.
        layers: number of these.
        units: units of each, and of its input.
        steps: number of updates after a first one.

    Returns:
        ``seconds`` of all updates, ``milliseconds`` of one, and ``weights``, the sum of the
        absolute values of all parameters after the last one.
    """
    import mxnet as mx
    from mxnet import autograd, gluon, nd

    from mxopt.methods.data_parallel import parallel
    from mxopt.methods.precision.amp import Float32
    from mxopt.train.optimizer import make_trainer
    from mxopt.train.setup import seed_everything

    seed_everything(plan.seed)
    [context] = parallel.contexts(plan)
    if network is None:
        net, shape = gluon.nn.HybridSequential(), (2, units)
        for _ in range(layers):
            net.add(gluon.nn.Dense(units, in_units=units))
    else:
        net, shape = gluon.model_zoo.vision.get_model(network), (1, 3, 224, 224)
    net.initialize(mx.init.Xavier(), ctx=context)
    x = nd.random.normal(shape=shape, ctx=context)
    net(x)  # infers the shapes of parameters
    trainer = make_trainer(net, plan, Float32())
    seconds = 0.0
    for step in range(steps + 1):
        with autograd.record():
            error = net(x).square().mean()
        error.backward()
        with timed() as clock:
            trainer.update(1)
        seconds += clock.seconds if step else 0.0  # the first one makes the optimizer's state
    write("updates", times=steps)
    sums = [parameter.data().abs().sum().asscalar() for parameter in net.collect_params().values()]
    return {"seconds": seconds, "milliseconds": 1e3 * seconds / steps, "weights": float(sum(sums))}
