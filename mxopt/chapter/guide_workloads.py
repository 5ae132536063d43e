"""Workloads of the guides: functions that their notebooks measure, each run in its own process."""

from __future__ import annotations

import contextlib
import resource

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
        "peak_memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "samples": samples,
        "checksum": float(sum(one.asscalar() for one in sums)),
    }
