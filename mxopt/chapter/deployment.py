"""Workload: predict with a trained network in one of several forms, timed and scored."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np

from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan
from mxopt.methods.engine.clock import timed


def inference(
    plan: Plan,
    write,
    recipe: str,
    form: str = "float32",
    runtime: str = "mxnet",
    batch: int = 1,
    times: int = 50,
    calibration: int = 64,
    train: bool = False,
    **options,
) -> dict:
    """Score a network on the test split, and time its predictions.

    Args:
        plan: how the network is trained, with ``train``; batch size and placement of the scoring.
        write: called with the name and the fields of each event.
        recipe: name of the recipe, or ``module:function``.
        form: one of ``FORMS``.
        runtime: what computes the network, one of ``RUNTIMES``, each of which has some forms.
        batch: samples in each timed prediction.
        times: number of timed predictions.
        calibration: samples of the training split that int8 is calibrated with.
        train: whether the network is trained by the plan first, without validation; it is used as
            the recipe makes it if not.
        **options: options of the recipe.

    Returns:
        ``milliseconds`` of a prediction, waited for each time, ``seconds`` and ``cpu_seconds`` of
        all; ``bytes`` of the network's file; ``multiply_adds`` of the network for one sample; and
        the figures of the test split.

    Raises:
        PlanError: there is no such form or runtime.
        DeviceError: the runtime is not installed.
    """
    from mxnet import nd

    from mxopt import recipes
    from mxopt.measure.operations import multiply_adds
    from mxopt.methods.kvstore import stores
    from mxopt.train import fit
    from mxopt.train.setup import prepare
    from mxopt.train.step import evaluate

    if runtime not in RUNTIMES:
        raise PlanError(f"runtime={runtime!r} is not a choice; take one of {', '.join(RUNTIMES)}")
    forms = RUNTIMES[runtime]
    if form not in forms:
        raise PlanError(
            f"form={form!r} is not a choice with runtime={runtime!r}; take one of "
            f"{', '.join(forms)}"
        )
    nets: list = []
    made = recipes.load(recipe, **options)
    write = once(write)
    if train:
        fit.fit(made, plan, write, nets.append, evaluate=False)
    run, _ = prepare(made, plan, write, True, stores.for_plan(plan))
    chosen = np.random.default_rng(plan.seed).permutation(len(run.data.train))
    samples = nd.stack(*(_input(run, index) for index in chosen[: max(calibration, batch)]))
    net = nets[-1] if train else run.network
    count = multiply_adds(net, samples[:1])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network"
        run.learning = forms[form](net, samples[:calibration], path)
        size = os.path.getsize(path)
    inputs = samples[:batch]
    for _ in range(3):
        run.learning(inputs).wait_to_read()
    with timed() as clock:
        for _ in range(times):
            run.learning(inputs).wait_to_read()
    return {
        "milliseconds": 1000 * clock.seconds / times,
        "seconds": clock.seconds,
        "cpu_seconds": clock.cpu_seconds,
        "bytes": size,
        "multiply_adds": count,
        **evaluate(run, "test"),
    }


def once(write):
    """Return a function that writes which data and which initial weights there were, and no more.

    For workloads that train several times: their record is not one of a single training.

    Args:
        write: called with the name and the fields of each event.
    """
    left = {"data", "weights"}

    def first(event, **fields):
        if event in left:
            left.remove(event)
            write(event, **fields)

    return first


def _input(run, index):
    """Return the network's input for a sample of the training split."""
    from mxnet import nd

    array = run.data.transform(*run.data.train[int(index)])[0]
    return array if isinstance(array, nd.NDArray) else nd.array(array)


def _float32(net, samples, path, hybridize=True):
    net.save_parameters(str(path))
    net.hybridize(hybridize, static_alloc=hybridize, static_shape=hybridize)
    return net


def _rewritten(net, samples, path):
    from mxopt.methods.graph_rewrites import optimize

    return _float32(optimize(net, samples[:1]), samples, path)


def _fused(net, samples, path):
    """Folded batch norms, and oneDNN's operators of a convolution with what follows it."""
    from mxopt.methods.graph_rewrites import folded

    made = folded(net, samples[:1])
    made.save_parameters(str(path))
    os.environ.setdefault("MXNET_SUBGRAPH_VERBOSE", "0")
    made.optimize_for(samples[:1], backend="MKLDNN", static_alloc=True, static_shape=True)
    return made


def _int8(calibration):
    def make(net, samples, path):
        from mxopt.methods.quantization import load_int8, quantize, save_int8

        size = min(8, len(samples))
        batches = [samples[n : n + size] for n in range(0, len(samples) - size + 1, size)]
        written = path.with_suffix(".npz")
        save_int8(quantize(net, batches, calibration), written)
        written.rename(path)
        return load_int8(path)

    return make


def _rounded(bits):
    def make(net, samples, path):
        from mxopt.methods.quantization import simulate

        return _float32(simulate(net, samples[:1], bits=bits), samples, path)

    return make


# Functions that turn (network, samples, path) into the network that predicts, and save it there.
FORMS = {
    "eager": lambda net, samples, path: _float32(net, samples, path, hybridize=False),
    "float32": _float32,
    "rewritten": _rewritten,
    "fused": _fused,
    **{f"int8-{name}": _int8(name) for name in ("minmax", "percentile", "entropy")},
    # Computed in float32, from what integers of fewer bits can hold: for the score, not the time.
    **{f"rounded-{bits}": _rounded(bits) for bits in (4, 3, 2)},
}


def _onnxruntime(int8):
    def make(net, samples, path):
        from mxopt.methods.onnx_export import OnnxNetwork, quantize_onnx, to_onnx

        exported = to_onnx(net, path, samples[:1])
        if int8:
            floats = exported.rename(path.with_suffix(".float32"))
            quantize_onnx(floats, path, [samples[n : n + 1] for n in range(len(samples))])
        # As many threads as the plan gives MXNet; 0 is its own choice, one for each core.
        return OnnxNetwork(path, int(os.environ.get("OMP_NUM_THREADS", 0)))

    return make


# The same for each runtime.
RUNTIMES = {
    "mxnet": FORMS,
    "onnxruntime": {"float32": _onnxruntime(int8=False), "int8-minmax": _onnxruntime(int8=True)},
}
