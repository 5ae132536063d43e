"""Workloads: what a call costs beside its arithmetic, and where images are augmented."""

from __future__ import annotations

import contextlib

import numpy as np

from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan
from mxopt.methods.engine.clock import timed

WHERE = ("host", "device")


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


def augmented(
    plan: Plan, write, where: str = "device", images: int = 64, rounds: int = 10, **options
) -> dict:
    """Mirror, shift and recolour photographs, and mirror and shift their masks, batch by batch.

    Args:
        plan: batch size, device and seed.
        write: called with the name and the fields of each event.
        where: ``host``, sample by sample with NumPy, and the batch goes to the device; or
            ``device``, as batches that lie there already (:mod:`mxopt.methods.augmentation`), whose
            samples are all shifted alike.
        images: number of photographs, which are prepared before.
        rounds: number of passes over them.
        **options: options of the recipe ``segmentation``.

    Returns:
        ``seconds``, ``cpu_seconds`` and ``images_per_second`` of all passes but a first one.

    Raises:
        PlanError: there is no such place.
    """
    from mxnet import nd

    from mxopt import recipes
    from mxopt.methods.augmentation import augmented as on_device
    from mxopt.methods.data_parallel import parallel
    from mxopt.train.setup import seed_everything

    if where not in WHERE:
        raise PlanError(f"where={where!r} is not a choice; take one of {', '.join(WHERE)}")
    seed_everything(plan.seed)
    [context] = parallel.contexts(plan)
    data = recipes.load("segmentation", **options).data()
    write("data", kind=data.kind, origin=data.origin, samples=images)
    samples = [data.transform(*data.train[n]) for n in range(min(images, len(data.train)))]
    size, firsts = plan.batch_size, range(0, len(samples), plan.batch_size)
    if where == "host":
        pairs = [[array.asnumpy() for array in sample] for sample in samples]

        def batches():
            for first in firsts:
                some = [_on_host(*pair) for pair in pairs[first : first + size]]
                yield [nd.array(np.stack(parts), ctx=context) for parts in zip(*some)]
    else:
        whole = [nd.stack(*parts).as_in_context(context) for parts in zip(*samples)]

        def batches():
            for first in firsts:
                some = tuple(array[first : first + size] for array in whole)
                yield on_device(some, 1, ["flip", "shift", "colour"])

    def one_pass():
        for batch in batches():
            for array in batch:
                array.wait_to_read()

    one_pass()
    with timed() as clock:
        for _ in range(rounds):
            one_pass()
    return {
        "seconds": clock.seconds,
        "cpu_seconds": clock.cpu_seconds,
        "images_per_second": rounds * len(samples) / clock.seconds,
    }


def _on_host(image: np.ndarray, mask: np.ndarray) -> tuple:
    """Change one photograph (channels, height, width) and its mask (height, width) at random."""
    height, width = mask.shape
    if np.random.uniform() < 0.5:
        image, mask = image[..., ::-1], mask[..., ::-1]
    down, right = (round(np.random.uniform(-1, 1) * side / 8) for side in (height, width))
    rows = np.clip(np.arange(height) - down, 0, height - 1)
    columns = np.clip(np.arange(width) - right, 0, width - 1)
    contrast, brightness = np.random.uniform(-0.2, 0.2, 2).astype(image.dtype)
    image = image[:, rows][:, :, columns] * (1 + contrast) + brightness
    return image, mask[rows][:, columns]
