"""Workloads of the guides: functions that their notebooks measure, each run in its own process."""

from __future__ import annotations

import contextlib

from mxopt import machine
from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan
from mxopt.methods.engine.clock import timed


def predict(plan: Plan, write, recipe: str, record: bool = False, **options) -> dict:
    """Compute the scores of a recipe's validation split with an untrained network.

    Args:
        plan: its devices, batch size and placement of the data.
        write: called with the name and the fields of each event.
        recipe: name of the recipe.
        record: whether MXNet keeps what a backward pass would need.
        **options: options of the recipe.

    Returns:
        ``seconds`` and ``cpu_seconds`` of one pass after a warm-up, ``peak_memory`` of the process
        in MiB, ``samples``, and ``checksum``, the same whether recorded or not.
    """
    from mxnet import autograd, nd

    from mxopt import recipes
    from mxopt.methods.data_parallel import parallel
    from mxopt.methods.input_pipeline.loading import make_loader
    from mxopt.methods.opencv_transforms import select
    from mxopt.train.setup import seed_everything

    seed_everything(plan.seed)
    [context] = parallel.contexts(plan)
    made = recipes.load(recipe, **options)
    data = made.data()
    net = made.network([context])
    loader = make_loader(data, "validation", select(data.transform, plan), plan, [context])
    write("data", kind=data.kind, origin=data.origin, samples=len(data.validation))

    def one_pass():
        sums, samples = [], 0
        for batch in loader:
            inputs = [shard[: made.inputs] for shard in batch.shards]
            with autograd.record() if record else contextlib.nullcontext():
                scores = net(*inputs[0])
            sums.append(nd.abs(scores).sum())
            samples += batch.size
        return sums, samples

    one_pass()
    with timed() as clock:
        sums, samples = one_pass()
    return {
        "seconds": clock.seconds,
        "cpu_seconds": clock.cpu_seconds,
        "peak_memory": machine.peak_memory() / 2**20,
        "samples": samples,
        "checksum": float(sum(one.asscalar() for one in sums)),
    }


def pipeline(
    plan: Plan,
    write,
    stages: int = 2,
    micro_batches: int = 1,
    layers: int = 8,
    units: int = 512,
    steps: int = 10,
) -> dict:
    """Train a chain of dense layers whose parts are on contexts of their own.

    Args:
        plan: batch size, learning rate and seed; contexts are ``cpu(0)`` to ``cpu(stages - 1)``, or
            GPUs if its devices are.
        write: called with the name and the fields of each event.
        stages: number of parts, each on its own context.
        micro_batches: number of parts of a batch.
        layers: number of layers, divided evenly among the stages.
        units: units of each layer.
        steps: number of steps after a first one, which is not timed.

    Returns:
        ``seconds`` of the steps, ``samples_per_second``, ``bubble`` (the share of the time that a
        stage waits by GPipe's arithmetic), ``waiting`` (the share that was measured: one minus the
        CPU seconds of a stage over the seconds, which holds with one thread for each stage, and is
        below 0 by the share of Python's own work), and
        ``train_loss``, equal for all numbers of stages and micro-batches up to rounding.

    Raises:
        PlanError: the layers cannot be divided among the stages.
    """
    import mxnet as mx
    from mxnet import gluon, nd

    from mxopt.methods.model_parallel import Stages, bubble
    from mxopt.train.setup import seed_everything

    if stages < 1 or layers % stages:
        raise PlanError(f"layers={layers} cannot be divided among stages={stages}")
    make = mx.gpu if plan.device_kind == "gpu" else mx.cpu
    contexts = [make(number) for number in range(stages)]
    seed_everything(plan.seed)
    weights = [nd.random.normal(0, (2 / units) ** 0.5, (units, units)) for _ in range(layers)]
    parts = []
    for number, context in enumerate(contexts):
        part = gluon.nn.HybridSequential()
        for weight in weights[number * layers // stages : (number + 1) * layers // stages]:
            layer = gluon.nn.Dense(units, activation="relu", in_units=units)
            layer.initialize(ctx=context)
            layer.weight.set_data(weight)
            part.add(layer)
        part.hybridize(static_alloc=True, static_shape=True)
        parts.append(part)
    inputs = nd.random.normal(shape=(plan.batch_size, units))
    labels = nd.random.normal(shape=(plan.batch_size, units))
    net = Stages(parts, contexts, "sgd", {"learning_rate": plan.learning_rate})
    loss = gluon.loss.L2Loss()
    net.step(inputs, labels, loss, micro_batches)
    nd.waitall()
    write("prepared")
    with timed() as clock:
        losses = [net.step(inputs, labels, loss, micro_batches) for _ in range(steps)]
    means = [float(value.mean().asscalar()) for value in losses]
    write("steps", seconds=clock.seconds, losses=means)
    return {
        "seconds": clock.seconds,
        "cpu_seconds": clock.cpu_seconds,
        "samples_per_second": steps * plan.batch_size / clock.seconds,
        "bubble": bubble(stages, micro_batches),
        "waiting": 1 - clock.cpu_seconds / (stages * clock.seconds),
        "train_loss": means[-1],
    }


# What is kept of a step's loss, by name; all but the last free the graph that made it.
KEPT = {
    "nothing": lambda loss: None,
    "number": lambda loss: loss.mean().asscalar(),
    "detached": lambda loss: loss.detach(),
    "array": lambda loss: loss,
    "retained": lambda loss: loss,
}


def kept_losses(plan: Plan, write, keep: str = "array", steps: int = 200, units: int = 512) -> dict:
    """Train a small network, keep something of every step's loss, and watch the memory.

    Args:
        plan: batch size, learning rate and seed.
        write: called with the name and the fields of each event; the event ``memory`` has the
            mebibytes in use by the process after each step.
        keep: one of ``KEPT``; with ``retained`` the backward pass keeps its graph
            (``retain_graph=True``), as it does for a second backward pass.
        steps: number of steps.
        units: units of the hidden layers.

    Returns:
        ``seconds``, ``step_memory`` (mebibytes that a step adds, over the second half of them), and
        ``train_loss``.

    Raises:
        PlanError: nothing of that name is kept.
    """
    import psutil
    from mxnet import autograd, gluon, nd

    from mxopt.methods.data_parallel import parallel
    from mxopt.train.setup import seed_everything

    if keep not in KEPT:
        raise PlanError(f"keep={keep!r} is not a choice; take one of {', '.join(KEPT)}")
    seed_everything(plan.seed)
    [context] = parallel.contexts(plan)
    net = gluon.nn.HybridSequential()
    for _ in range(4):
        net.add(gluon.nn.Dense(units, activation="relu", in_units=units))
    net.initialize(ctx=context)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": plan.learning_rate})
    inputs = nd.random.normal(shape=(plan.batch_size, units), ctx=context)
    process, memory, kept = psutil.Process(), [], []
    with timed() as clock:
        for _ in range(steps):
            with autograd.record():
                loss = net(inputs).square().mean(axis=1)
            loss.backward(retain_graph=keep == "retained")
            trainer.step(plan.batch_size)
            kept.append(KEPT[keep](loss))
            nd.waitall()
            memory.append(process.memory_info().rss / 2**20)
    write("memory", mebibytes=memory)
    half = len(memory) // 2
    return {
        "seconds": clock.seconds,
        "step_memory": (memory[-1] - memory[half]) / (len(memory) - 1 - half),
        "train_loss": float(loss.mean().asscalar()),
    }


# How a loop waits after every step, by name.
WAITS = {
    "not at all": lambda loss: None,
    "asscalar": lambda loss: loss.mean().asscalar(),
    "asnumpy": lambda loss: loss.asnumpy(),
    "waitall": lambda loss: _waitall(),
}


def _waitall() -> None:
    from mxnet import nd

    nd.waitall()


def waiting_steps(
    plan: Plan, write, wait: str = "not at all", steps: int = 200, units: int = 64, layers: int = 20
) -> dict:
    """Train a network of many small layers, and wait for the device after every step or not.

    Args:
        plan: batch size, learning rate, graph (``hybridize``) and seed.
        write: called with the name and the fields of each event.
        wait: one of ``WAITS``.
        steps: number of steps after a first one, which is not timed.
        units: units of the layers.
        layers: number of layers.

    Returns:
        ``seconds`` of all steps, ``cpu_seconds``, and ``train_loss``, equal however it waits.

    Raises:
        PlanError: there is no such way to wait.
    """
    from mxnet import autograd, gluon, nd

    from mxopt.methods.data_parallel import parallel
    from mxopt.train.setup import seed_everything

    if wait not in WAITS:
        raise PlanError(f"wait={wait!r} is not a choice; take one of {', '.join(WAITS)}")
    seed_everything(plan.seed)
    [context] = parallel.contexts(plan)
    net = gluon.nn.HybridSequential()
    for _ in range(layers):
        net.add(gluon.nn.Dense(units, activation="tanh", in_units=units))
    net.initialize(ctx=context)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": plan.learning_rate})
    inputs = nd.random.normal(shape=(plan.batch_size, units), ctx=context)

    def step():
        with autograd.record():
            loss = net(inputs).square().mean(axis=1)
        loss.backward()
        trainer.step(plan.batch_size)
        return loss

    step()
    nd.waitall()
    write("prepared")
    with timed() as clock:
        for _ in range(steps):
            loss = step()
            WAITS[wait](loss)
    write("steps", seconds=clock.seconds)
    return {
        "seconds": clock.seconds,
        "cpu_seconds": clock.cpu_seconds,
        "train_loss": float(loss.mean().asscalar()),
    }
