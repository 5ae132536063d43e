"""Training steps by mxopt or by PyTorch, and what every workload needs that PyTorch runs too."""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from mxopt import machine
from mxopt.core.child import end_with_parent
from mxopt.core.errors import DeviceError
from mxopt.core.plan import Plan
from mxopt.methods.memory_allocator import KEEP_MEMORY

HERE = Path(__file__).parent
# A folder for what peers start from, which is the same in every repeat; made anew if not set.
EXCHANGE = "BENCHMARKS_EXCHANGE"


def step(
    plan: Plan, write, peer: dict | None = None, environment: dict | None = None, **options
) -> dict:
    """Train two epochs of a recipe and return the figures of the second.

    Args:
        plan: the switches.
        write: called with the name and the fields of each event.
        peer: if given, PyTorch trains instead of mxopt: its ``network``, the ``sizes`` of that,
            and what it is ``given`` (:mod:`benchmarks.given`), or ``count``.
        environment: variables that MXNet reads when it first trains.
        **options: ``recipe``, and options of the recipe.

    Returns:
        ``seconds``, ``samples_per_second`` or ``tokens_per_second``, ``train_loss``,
        ``first_epoch_seconds``, ``peak_memory_bytes`` of the process, ``cpu_seconds`` of all its
        threads.

    Raises:
        DeviceError: the peers' environment is missing, or the peer failed.
    """
    from mxopt import recipes
    from mxopt.train import fit

    if peer:
        return _peer(plan, write, options, **peer)
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
        **{name: last[name] for name in ("cpu_seconds",) if name in last},
        "peak_memory_bytes": machine.peak_memory(),
    }


def _peer(
    plan: Plan, write, options: dict, network: str, sizes: dict, given: dict = (), count=False
) -> dict:
    """Train the same epochs with PyTorch (``benchmarks/peers/step.py``).

    Raises:
        DeviceError: the peers' environment is missing, or the peer failed.
    """
    given = dict(given)
    parts = given.get("accumulation", 1)
    batches = plan.replace(batch_size=plan.batch_size // parts, grad_accumulation=parts)
    folder, own = exported(batches, {"recipe": "segmentation", **options})
    job = {
        "network": network, "sizes": {**own, **sizes}, "exchange": str(folder), "given": given,
        "count": count, "unit": "token" if options.get("recipe") == "translation" else "sample",
        "optimizer": plan.optimizer, "learning_rate": plan.learning_rate,
        "momentum": plan.momentum, "epochs": plan.epochs,
    }  # fmt: skip
    return run_peer("step.py", job, write)


def exported(plan: Plan, options: dict) -> tuple[Path, dict]:
    """Return a folder with what a peer starts from, and sizes of its network; export if necessary.

    Args:
        plan: as for :func:`benchmarks.exchange.export`.
        options: as for :func:`benchmarks.exchange.export`.
    """
    from benchmarks.exchange import export

    asked = json.dumps([plan.as_dict(), options], sort_keys=True)
    root = Path(os.environ.get(EXCHANGE) or tempfile.mkdtemp(prefix="exchange-"))
    if not os.environ.get(EXCHANGE):
        atexit.register(shutil.rmtree, root, ignore_errors=True)
    folder = root / hashlib.sha256(asked.encode()).hexdigest()[:16]
    sizes = folder / "sizes.json"
    if not sizes.exists():  # it is written last
        sizes.write_text(json.dumps(apart(export, folder, plan, options)))
    return folder, json.loads(sizes.read_text())


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

    own = {"initializer": end_with_parent, "initargs": (os.getpid(),)}
    with ProcessPoolExecutor(1, get_context("spawn"), **own) as pool:
        return pool.submit(function, *arguments).result()


def run_peer(script: str, job: dict, write) -> dict:
    """Run a script of ``benchmarks/peers`` in the peers' environment.

    The peer's processes end with this one, also if it is killed.

    Args:
        script: name of the script.
        job: its input, which JSON can represent.
        write: gets an event ``peer`` with the peer's versions, libraries and variables.

    Returns:
        The figures that it prints.

    Raises:
        DeviceError: the environment is missing, or the script failed.
    """
    python = Path(os.environ.get("MXOPT_PEERS", ".venv-peers/bin/python"))
    if not python.exists():
        raise DeviceError(f"{python} does not exist; create it with: make bench")
    command, surroundings = _started(python.absolute(), HERE / "peers" / script, job)
    child = subprocess.run(
        command, input=json.dumps(job), text=True, capture_output=True, env=surroundings
    )
    if child.returncode or not child.stdout.strip():
        last = (child.stderr.strip().splitlines() or ["no message"])[-1]
        raise DeviceError(f"the peer failed: {last}")
    figures = json.loads(child.stdout.splitlines()[-1])
    write("peer", given=job.get("given", {}), **figures.pop("facts", {}))
    return figures


def _started(python: Path, script: Path, job: dict) -> tuple[list[str], dict[str, str]]:
    """Return the command that runs a script with what the job is given, and its variables."""
    given, home = job.get("given", {}), python.parent.parent
    command = [str(python)]
    ours = {"PYTHONPATH", "LD_PRELOAD", "VIRTUAL_ENV", "CONDA_PREFIX"}
    surroundings = {name: value for name, value in os.environ.items() if name not in ours}
    surroundings["VIRTUAL_ENV"] = str(home)  # where the launcher looks for libraries
    surroundings["PATH"] = os.pathsep.join([str(python.parent), os.environ["PATH"]])
    if given.get("launcher"):
        command += ["-m", "torch.backends.xeon.run_cpu", "--ninstances", "1"]
    if given.get("huge_pages"):
        surroundings["THP_MEM_ALLOC_ENABLE"] = "1"
    if given.get("keep"):
        surroundings.update(KEEP_MEMORY)
    if given.get("one_thread"):
        surroundings["OMP_NUM_THREADS"] = "1"
    if given.get("mkl_intel_kernels"):
        surroundings["LD_PRELOAD"] = str(home / "lib" / "libmkl_intel_cpu.so")
    # The peer ends with its parent by itself; the launcher, if there is one, by this.
    attached = [str(python), str(HERE / "peers" / "child.py"), str(os.getpid())]
    return [*attached, *command, str(script)], surroundings
