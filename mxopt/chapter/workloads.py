"""Workloads: the functions that the notebooks measure, each run in its own process.

A workload is called as ``workload(plan, write, **options)`` and returns its figures as a
dictionary. Any function with these arguments can be measured; it is named ``module:function``.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import tempfile
from pathlib import Path

from mxopt.core.plan import Plan
from mxopt.data import ndarray_memory
from mxopt.methods.engine.clock import timed
from mxopt.train.progress import CHECKPOINT_STEPS


def train(plan: Plan, write, recipe: str = "segmentation", evaluate: bool = True,
          checks: int = 1, keep: int | None = None, checkpoints: bool = False,
          checkpoint_steps: int = CHECKPOINT_STEPS, **options) -> dict:  # fmt: skip
    """Train a recipe.

    Args:
        plan: the switches.
        write: called with the name and the fields of each event, for the record.
        recipe: name of the recipe, or ``module:function``.
        evaluate: whether to validate after each epoch and test at the end.
        checks: validations in each epoch, the last one at its end.
        keep: seed of the run whose weights are written beside its record, as ``.params``, so that
            several runs of an arm leave one file; None for none.
        checkpoints: whether to write checkpoints beside the record, and continue from them.
        checkpoint_steps: steps between checkpoints within an epoch.
        **options: options of the recipe.

    Returns:
        The figures of :func:`mxopt.train.fit.fit`.
    """
    from mxopt import recipes
    from mxopt.methods.kvstore.cluster import worker_number
    from mxopt.train import fit

    nets: list = []
    record = Path(os.environ["MXOPT_RECORD"]) if "MXOPT_RECORD" in os.environ else None
    folder = record.with_suffix(".checkpoints") if record and checkpoints else None
    made = recipes.load(recipe, **options)
    figures = fit.fit(made, plan, write, nets.append, evaluate, checks, folder, checkpoint_steps)
    if worker_number(os.environ):
        return figures  # only the first worker writes weights and deletes checkpoints
    if keep == plan.seed and record:
        nets[-1].save_parameters(str(record.with_suffix(".params")))
    if folder:
        shutil.rmtree(folder, ignore_errors=True)  # not needed once the run has ended
    return figures


def profile(plan: Plan, write, recipe: str = "segmentation", **options) -> dict:
    """Train two epochs, the second one under MXNet's profiler.

    Operators are run one by one (``hybridize="no"``), because the profiler cannot tell apart those
    that a compiled graph runs as one; the time of each is about the same. Epochs and warm-up are
    set, and the other switches of the plan apply.

    Args:
        plan: the switches.
        write: called with the name and the fields of each event.
        recipe: name of the recipe, or ``module:function``.
        **options: options of the recipe.

    Returns:
        ``seconds`` of the second epoch, and ``operator_seconds``, ``{operator: seconds}`` summed
        over its steps, including the backward pass of each operator. Engine threads work in
        parallel, so the sum of all operators can exceed the seconds of the epoch.
    """
    from mxnet import profiler

    from mxopt import recipes
    from mxopt.train import fit

    operators, epochs = {}, []

    def keep(event, **fields):
        write(event, **fields)
        if event == "epoch":
            epochs.append(fields["seconds"])

    def on_epoch(net):
        if len(epochs) == 1:
            # By default a thread writes the file once a second, also while the folder is removed.
            profiler.set_config(profile_imperative=True, aggregate_stats=True, filename=unused,
                                continuous_dump=False)  # fmt: skip
            profiler.set_state("run")
            return
        profiler.set_state("stop")
        for name, found in json.loads(profiler.dumps(format="json"))["Time"]["operator"].items():
            name = name.replace("_backward_", "")
            operators[name] = operators.get(name, 0.0) + found["Total"] / 1000

    plan = plan.replace(hybridize="no", epochs=2, warmup_epochs=0)
    # The profiler needs the name of a file, and deletes that file first.
    with tempfile.TemporaryDirectory() as folder:
        unused = os.path.join(folder, "profile.json")
        fit.fit(recipes.load(recipe, **options), plan, keep, on_epoch, evaluate=False)
    return {"seconds": epochs[-1], "operator_seconds": operators}


def elementwise(plan: Plan, write, size: int = 1000, rounds: int = 10, wait: bool = False) -> dict:
    """Multiply matrices element by element in two independent chains, as in notebook 8_1.

    Args:
        plan: the process has its engine and threads.
        write: called with the name and the fields of each event.
        size: the matrices are (size, size), float32.
        rounds: how often the chains are run.
        wait: whether to wait for each intermediate result (``wait_to_read``), so that the engine
            cannot run the chains in parallel.

    Returns:
        ``seconds`` until everything is computed, ``enqueued_seconds``, when a clock that does not
        wait would stop, and ``checksum``, the mean of the result.
    """
    from mxnet import nd

    arrays = [nd.random.uniform(0.99, 1.01, shape=(size, size)) for _ in range(4)]
    for array in arrays:
        array.wait_to_read()

    def product(*factors):
        result = factors[0]
        for factor in factors[1:]:
            result = result * factor
        if wait:
            result.wait_to_read()
        return result

    def one_round():
        a, b, c, d = arrays
        left = product(a, a, a, a, b, b, b, b)
        right = product(c, c, c, c, d, d, d, d)
        left = product(*[left] * 8)
        right = product(*[right] * 8)
        return product(*[left * right] * 4)

    one_round().wait_to_read()  # warm-up: threads start and memory is allocated
    write("prepared")
    with timed() as clock:
        results = [one_round() for _ in range(rounds)]
    write("timed", seconds=clock.seconds)
    return {
        "seconds": clock.seconds,
        "enqueued_seconds": clock.enqueued,
        "checksum": float(results[-1].mean().asscalar()),
    }


def chains(plan: Plan, write, size: int = 500, count: int = 4, length: int = 20) -> dict:
    """Compute independent chains of matrix products, which an engine can run in parallel.

    Args:
        plan: the process has its engine and threads.
        write: called with the name and the fields of each event.
        size: the matrices are (size, size), float32.
        count: number of chains, which do not depend on each other.
        length: number of products in each chain, each of the previous result.

    Returns:
        ``seconds``, ``enqueued_seconds`` and ``checksum`` as for :func:`elementwise`, and
        ``gflop_per_second`` (a product of two (size, size) matrices has 2 size**3 operations).
    """
    from mxnet import nd

    matrices = [nd.random.uniform(0, 2 / size, shape=(size, size)) for _ in range(count)]

    def all_chains():
        results = list(matrices)
        for _ in range(length):
            results = [nd.dot(result, m) for result, m in zip(results, matrices)]
        return results

    nd.waitall()
    nd.dot(matrices[0], matrices[0]).wait_to_read()
    write("prepared")
    with timed() as clock:
        results = all_chains()
    write("timed", seconds=clock.seconds)
    return {
        "seconds": clock.seconds,
        "enqueued_seconds": clock.enqueued,
        "gflop_per_second": count * length * 2 * size**3 / clock.seconds / 1e9,
        "checksum": float(sum(result.mean() for result in results).asscalar()),
    }


def load(plan: Plan, write, stage: str = "batches", split: str = "train", epochs: int = 2,
         recipe: str = "segmentation", **options) -> dict:  # fmt: skip
    """Read a recipe's images and labels, and train nothing.

    Args:
        plan: determines transforms, where they run, loader, workers and batch size.
        write: called with the name and the fields of each event.
        stage: ``raw`` only decodes, sample by sample; ``transformed`` also transforms each sample,
            on the device if the plan preprocesses there; ``batches`` uses the plan's loader, as
            training does.
        split: ``train``, ``validation`` or ``test``.
        epochs: how often the split is read.
        recipe: name of the recipe, or ``module:function``.
        **options: options of the recipe.

    Returns:
        ``preparation_seconds`` (making the loader, when ``cached``, ``device`` and ``roundtrip``
        preprocess), ``seconds`` (median of the epochs after the first), ``first_epoch_seconds``
        (including preparation), ``samples`` (per epoch) and ``checksum`` (the same wherever
        preprocessing runs).
    """
    from mxopt import recipes
    from mxopt.methods.data_parallel import parallel
    from mxopt.methods.input_pipeline.loading import make_loader
    from mxopt.methods.opencv_transforms import select
    from mxopt.train.setup import seed_everything

    seed_everything(plan.seed)
    contexts = parallel.contexts(plan)
    data = recipes.load(recipe, **options).data()
    dataset, transform = getattr(data, split), select(data.transform, plan)
    write("data", kind=data.kind, origin=data.origin, samples=len(dataset))
    with timed() as preparation:
        if stage == "batches":
            loader = make_loader(data, split, transform, plan, contexts)
        else:
            loader = _Samples(dataset, transform, plan, contexts[0], stage)
    durations = []
    for _ in range(epochs):
        samples, sums = 0, []
        with timed() as clock:
            for batch in loader:
                samples += batch.size
                # A sum reads every value on its device, so that loading is complete.
                sums += [_sum(array) for shard in batch.shards for array in shard]
        durations.append(clock.seconds)
        write("epoch", seconds=clock.seconds, samples=samples)
    return {
        "seconds": statistics.median(durations[1:] or durations),
        "first_epoch_seconds": preparation.seconds + durations[0],
        "preparation_seconds": preparation.seconds,
        "samples": samples,
        # Read here, not in the loop, where a GPU would be waited for after every batch.
        "checksum": sum(map(_number, sums)),
    }


def _sum(array):
    # On a CPU, MXNet's sum takes twenty times as long as NumPy's, and most of the time measured.
    if ndarray_memory.on_host(array):
        values = ndarray_memory.view(array)
        # NumPy would convert int32, the dtype of labels, to int64 part by part.
        return values.sum(dtype="int32" if values.dtype == "int32" else None)
    return array.astype("float32").sum()


def _number(value) -> float:
    return float(value.asscalar() if hasattr(value, "asscalar") else value)


class _Samples:
    """Samples in order, each as a batch of one sample without a batch axis."""

    def __init__(self, dataset, transform, plan, context, stage):
        on_device = plan.preprocess == "device"
        self._dataset, self._context = dataset, context if on_device else None
        self._transform = transform if stage == "transformed" else lambda *arrays: arrays

    def __iter__(self):
        from mxopt.methods.input_pipeline.loaders import Batch

        for index in range(len(self._dataset)):
            arrays = self._dataset[index]
            if self._context is not None:
                arrays = [array.as_in_context(self._context) for array in arrays]
            yield Batch([self._transform(*arrays)], 1)
