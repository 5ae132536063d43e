"""Workloads: training steps, loading, and matrix products, by mxopt or by PyTorch."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from mxopt.core.errors import DeviceError
from mxopt.core.plan import Plan
from mxopt.methods.engine.clock import timed

HERE = Path(__file__).parent
KIBIBYTE = 1024
TUNED = "tuned"  # channels_last, started by PyTorch's launcher as its guide recommends


def step(
    plan: Plan, write, peer: dict | None = None, environment: dict | None = None, **options
) -> dict:
    """Train two epochs of a recipe and return the figures of the second.

    Args:
        plan: the switches.
        write: called with the name and the fields of each event.
        peer: if given, PyTorch trains instead of mxopt: ``how`` it computes, its ``network`` and
            the ``sizes`` of that.
        environment: variables that MXNet reads when it first trains.
        **options: ``recipe``, and options of the recipe.

    Returns:
        ``seconds``, ``samples_per_second`` or ``tokens_per_second``, ``train_loss``,
        ``first_epoch_seconds``, ``peak_memory_bytes`` of the process.

    Raises:
        DeviceError: the peers' environment is missing, or the peer failed.
    """
    from mxopt import recipes
    from mxopt.train import fit

    if peer:
        return _peer(plan, options, **peer)
    os.environ.update(environment or {})
    epochs = []

    def keep(event, **fields):
        write(event, **fields)
        if event == "epoch":
            epochs.append(fields)

    recipe = recipes.load(options.pop("recipe", "segmentation"), **options)
    fit.fit(recipe, plan, keep, evaluate=False)
    first, last = epochs
    return {
        "seconds": last["seconds"],
        f"{recipe.unit}s_per_second": last[f"{recipe.unit}s"] / last["seconds"],
        "first_epoch_seconds": first["seconds"],
        "train_loss": last["train_loss"],
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIBIBYTE,
    }


def _peer(plan: Plan, options: dict, how: str, network: str, sizes: dict) -> dict:
    """Train the same epochs with PyTorch (``benchmarks/peers/step.py``).

    Raises:
        DeviceError: the peers' environment is missing, or the peer failed.
    """
    from benchmarks.exchange import export

    with tempfile.TemporaryDirectory() as folder:
        asked = {"recipe": "segmentation", **options}
        sizes = {**apart(export, Path(folder), plan, asked), **sizes}
        job = {
            "network": network, "sizes": sizes, "exchange": folder, "how": how,
            "unit": "token" if options.get("recipe") == "translation" else "sample",
            "optimizer": plan.optimizer, "learning_rate": plan.learning_rate,
            "momentum": plan.momentum, "epochs": plan.epochs,
        }  # fmt: skip
        return run_peer("step.py", job)


def load(plan: Plan, write, peer: dict | None = None, size: int = 480, epochs: int = 3) -> dict:
    """Read Penn-Fudan's training split through a loader, and train nothing.

    Args:
        plan: determines where preprocessing runs, workers and batch size.
        write: called with the name and the fields of each event.
        peer: if given, PyTorch's DataLoader reads instead, with ``workers`` processes.
        size: side of the square to which images are cropped, in pixels.
        epochs: how often the split is read; the first epoch is reported separately.

    Returns:
        ``samples_per_second`` of the median later epoch, ``first_epoch_seconds`` with preparation,
        ``peak_memory_bytes`` of the process without its workers.

    Raises:
        DeviceError: the peers' environment is missing, or the peer failed.
    """
    from mxopt import recipes
    from mxopt.chapter import workloads

    options = {"network": "tiny", "size": size}
    if not peer:
        found = workloads.load(plan, write, epochs=epochs, **options)
        return {
            "samples_per_second": found["samples"] / found["seconds"],
            "first_epoch_seconds": found["first_epoch_seconds"],
            "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIBIBYTE,
        }
    data = recipes.load("segmentation", **options).data()
    samples = [data.transform(*data.train[number]) for number in range(plan.batch_size)]
    with tempfile.TemporaryDirectory() as folder:
        expected = Path(folder) / "expected.npz"
        images, masks = (np.stack([part.asnumpy() for part in parts]) for parts in zip(*samples))
        np.savez(expected, images=images, masks=masks)
        job = {
            "root": str(data.train.location.path), "names": data.train.names, "size": size,
            "batch_size": plan.batch_size, "epochs": epochs, "expected": str(expected), **peer,
        }  # fmt: skip
        return run_peer("loader.py", job)


def multiply(plan: Plan, write, peer: bool = False, size: int = 2048, rounds: int = 20) -> dict:
    """Multiply square matrices, to find the highest rate that a library reaches on this machine.

    MXNet's ``FullyConnected`` is a matrix product by oneDNN. ``dot``, by OpenBLAS, is half as fast
    where OpenBLAS has no kernels for the processor.

    Args:
        plan: the process has its threads.
        write: not used.
        peer: whether PyTorch multiplies instead of MXNet.
        size: the matrices are (size, size), float32.
        rounds: number of products.

    Returns:
        ``gflop_per_second`` of the fastest product.

    Raises:
        DeviceError: the peers' environment is missing, or the peer failed.
    """
    if peer:
        return run_peer("multiply.py", {"size": size, "rounds": rounds})
    from mxnet import nd

    a, b = nd.random.uniform(shape=(size, size)), nd.random.uniform(shape=(size, size))
    durations = []
    for _ in range(rounds + 1):
        with timed() as clock:
            nd.FullyConnected(a, b, num_hidden=size, no_bias=True)
        durations.append(clock.seconds)
    return {"gflop_per_second": 2 * size**3 / min(durations[1:]) / 1e9}


def apart(function, *arguments):
    """Call a function in a new process, so that this one starts no threads and stays small.

    Args:
        function: a function defined at the top of a module.
        *arguments: its arguments, which pickle must support, like its result.

    Returns:
        The function's result.
    """
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def run_peer(script: str, job: dict) -> dict:
    """Run a script of ``benchmarks/peers`` in the peers' environment.

    Args:
        script: name of the script.
        job: its input, which JSON can represent.

    Returns:
        The figures that it prints.

    Raises:
        DeviceError: the environment is missing, or the script failed.
    """
    python = Path(os.environ.get("MXOPT_PEERS", ".venv-peers/bin/python"))
    if not python.exists():
        raise DeviceError(f"{python} does not exist; create it with: make bench")
    command = [str(python), str(HERE / "peers" / script)]
    ours = {"PYTHONPATH", "LD_PRELOAD"}
    surroundings = {name: value for name, value in os.environ.items() if name not in ours}
    if job.get("how") == TUNED:
        # PyTorch's launcher: Intel's OpenMP, threads bound to cores, the allocator it finds.
        command[1:1] = ["-m", "torch.backends.xeon.run_cpu", "--ninstances", "1"]
        surroundings["THP_MEM_ALLOC_ENABLE"] = "1"  # huge pages, by PyTorch's own allocator
    surroundings["PATH"] = os.pathsep.join([str(python.parent.absolute()), os.environ["PATH"]])
    child = subprocess.run(
        command, input=json.dumps(job), text=True, capture_output=True, env=surroundings
    )
    if child.returncode:
        last = (child.stderr.strip().splitlines() or ["no message"])[-1]
        raise DeviceError(f"the peer failed: {last}")
    return json.loads(child.stdout.splitlines()[-1])
