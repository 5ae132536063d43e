"""Memory: an estimate of what training will use, before it begins.

The estimate is computed from the network's graph (:mod:`mxopt.train.tracing`) and the plan. It has

- on each device: the outputs of all operators for its share of a batch, because the backward pass
  may need them; weights and gradients that are not allocated yet; the optimizer's states; averaged
  weights; sums of gradients if there are several devices; and the samples that
  ``preprocess="device"`` keeps;
- on the host: the samples that ``cached`` and ``roundtrip`` keep, and the batches that loader
  workers have ready. With CPU contexts all of the above is on the host too.

It leaves out the short-lived gradients of activations, memory that a graph saves by sharing,
workspaces of oneDNN and cuDNN, and on the host freed memory that ``malloc`` keeps. The peak can
thus be lower or higher: the estimate finds what cannot fit, and does not help to fill a device
completely.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass

import mxnet as mx
import numpy as np
from mxnet import gluon

from mxopt import machine
from mxopt.core.errors import CapacityError
from mxopt.core.plan import Plan
from mxopt.data import ndarray_memory as host
from mxopt.methods import METHODS, TrainingRun
from mxopt.methods.data_parallel.parallel import split_sizes
from mxopt.methods.input_pipeline import pipeline
from mxopt.methods.input_pipeline.loading import one_sample
from mxopt.methods.input_pipeline.space import under_way
from mxopt.train.tracing import Traced, output_like, trace

MIB = 2**20
# Parts of the messages of MXNet, CUDA, oneDNN and C++ when memory runs out.
_NO_MEMORY = ("out of memory", "failed to allocate", "cudamalloc", "create a memory", "bad_alloc")


@dataclass(frozen=True)
class Need:
    """Memory that training will use in one place, beyond what is allocated already.

    Attributes:
        place: name of the place, such as ``gpu(0)`` or ``the host``.
        free: free bytes there.
        fixed: bytes that do not depend on the batch.
        sample: bytes for each sample of a batch.
        samples: number of samples of a batch in this place.
        places: number of places that a batch is split among.
    """

    place: str
    free: int
    fixed: int
    sample: int
    samples: int
    places: int = 1

    @property
    def total(self) -> int:
        """Bytes for a whole batch."""
        return self.fixed + self.samples * self.sample

    @property
    def most_samples(self) -> int:
        """The largest batch that fits, in samples over all places; 0 if none does."""
        return max(0, (self.free - self.fixed) // self.sample) * self.places


@dataclass(frozen=True)
class Estimate:
    """Memory that training will use.

    Attributes:
        needs: the memory in each place.
        unit: how much of ``plan.batch_size`` one sample takes: 1, or with ``bucketing="tokens"``
            the tokens of the longest sentence.
        note: what is not in the estimate, and why; empty if everything is.
    """

    needs: list[Need]
    unit: int
    note: str


def estimate(run: TrainingRun, evaluate: bool = True) -> Estimate:
    """Estimate the memory that training will use; reads and transforms one sample.

    Args:
        run: the training run, with its plan, recipe, data and network.
        evaluate: whether the validation and the test split are used too.
    """
    recipe, data, plan, contexts = run.recipe, run.data, run.plan, run.contexts
    arrays, unit = one_sample(data, plan)
    note, traced = "", Traced(0, 0, {})
    try:
        if run.frozen is not None:
            arrays[0] = output_like(run.frozen, arrays[0])
        inputs = run.precision.inputs(arrays[: recipe.inputs])
        traced = trace(run.learning, recipe, run.precision, [*inputs, *arrays[recipe.inputs :]])
    except Exception as error:  # a user's network may not accept symbols
        note = (
            f"activations are not counted, {type(run.learning).__name__} cannot be traced: {error}"
        )
    read = sum(array.nbytes for array in arrays)
    splits = (data.train, data.validation, data.test) if evaluate else (data.train,)
    small = read
    if plan.image_dtype == "uint8":
        small = host.sample_bytes(pipeline.halves(data.transform, plan)[0](*data.train[0]))
    kept = 0 if plan.preprocess == "lazy" else small * sum(map(len, splits))
    own = -(-plan.batch_size // plan.processes)  # each process has its part of a batch
    shares = split_sizes(max(1, own // unit), len(contexts))
    count, samples, loading = len(contexts), sum(shares), small * (1 + under_way(plan))
    fixed = traced.fixed + _weights(run.learning, traced.shapes, plan, count)
    free_on_host = machine.memory_available()
    if contexts[0].device_type == "cpu":
        taken = (count * fixed + kept, traced.sample + loading, samples)
        return Estimate([Need("the host", free_on_host, *taken)], unit, note)
    on_device = plan.preprocess == "device"
    fixed += -(-kept // count) if on_device else 0
    needs = [Need("the host", free_on_host, 0 if on_device else kept, loading, samples)]
    for context, share in zip(contexts, shares):
        free, _ = mx.context.gpu_memory_info(context.device_id)
        needs.append(Need(str(context), free, fixed, traced.sample + read, share, count))
    return Estimate(needs, unit, note)


def check(found: Estimate, plan: Plan) -> None:
    """Check that there is enough memory in every place.

    Args:
        found: the estimate.
        plan: the switches.

    Raises:
        CapacityError: there is not; the message gives what is needed, what is free, and the
            largest batch size that would fit by the estimate.
    """
    worst = max(found.needs, key=lambda need: need.total - need.free)
    if worst.total <= worst.free:
        return
    largest = min(need.most_samples for need in found.needs) * found.unit * plan.processes
    advice = f"by this estimate batch_size={largest} would fit"
    if not largest:
        keeping = plan.preprocess != "lazy"
        advice = "not one sample would fit: take a smaller network or smaller samples" + (
            ", or preprocess='lazy', which keeps none" if keeping else ""
        )
    raise CapacityError(
        f"training would take about {worst.total / MIB:,.0f} MiB on {worst.place}, which has "
        f"{worst.free / MIB:,.0f} MiB free: {worst.fixed / MIB:,.0f} MiB for any batch and "
        f"{worst.sample / MIB:,.2f} MiB for each of {worst.samples} samples; {advice}"
    )


@contextlib.contextmanager
def explained(plan: Plan):
    """Replace errors of a ``with`` block that runs out of memory by one that says what to do.

    Args:
        plan: the switches.

    Raises:
        CapacityError: MXNet or Python reported that memory ran out. The message suggests half the
            batch size, because the estimate, by which the run could begin, was too low.
    """
    try:
        yield
    except (mx.base.MXNetError, MemoryError) as error:
        said = (str(error).strip().splitlines() or ["no memory"])[-1]
        told = any(words in said.lower() for words in _NO_MEMORY)
        if not (told or isinstance(error, MemoryError)):
            raise
        half = plan.batch_size // 2
        advice = (
            f"take batch_size={half}, and grad_accumulation={2 * plan.grad_accumulation} if the "
            "updates are to stay the same"
            if half
            else "take a smaller network or smaller samples"
        )
        raise CapacityError(
            f"out of memory while training with batch_size={plan.batch_size} ({said}); {advice}"
        ) from error


def _weights(net: gluon.Block, shapes: dict, plan: Plan, devices: int) -> int:
    """Return the bytes for weights, gradients and optimizer states that a device still needs."""
    states = {"adam": 2, "lamb": 2}.get(plan.optimizer, int(plan.momentum > 0))
    states += sum(method.weight_copies(plan) for method in METHODS)
    total = 0
    for parameter in net.collect_params().values():
        size = max(0, math.prod(shapes.get(parameter.name) or parameter.shape or (0,)))
        itemsize, learns = np.dtype(parameter.dtype).itemsize, parameter.grad_req != "null"
        if parameter._data is None:
            total += size * itemsize * (1 + learns)
        if learns:
            total += size * (4 * states + itemsize * (devices > 1))
    return total
