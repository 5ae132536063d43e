"""The batch script with which SLURM trains one plan on several nodes."""

from __future__ import annotations

import math
import re
import shlex

from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan

# Switches that follow from the number of nodes and GPUs.
DERIVED = ("processes", "kvstore", "devices")


def on_nodes(plan: Plan, nodes: int, gpus: int = 0, process_per_gpu: bool = False) -> Plan:
    """Return a plan with the processes and devices of an allocation.

    >>> on_nodes(Plan(batch_size=32), nodes=2, gpus=4).devices
    'gpu:0-3'

    Args:
        plan: a plan for one process; its batch size stays that of all processes together.
        nodes: number of nodes.
        gpus: number of GPUs of each node; 0 trains on the CPU.
        process_per_gpu: whether each GPU has a process of its own; otherwise one process of each
            node uses all GPUs of it, which need no server between them.

    Raises:
        PlanError: a number is too small, a process for each of no GPUs is wanted, the plan sets one
            of ``DERIVED``, or does not allow several processes.
    """
    if nodes < 1 or gpus < 0:
        raise PlanError(f"nodes={nodes}, gpus={gpus}: at least 1 node, and 0 or more GPUs of each")
    if process_per_gpu and not gpus:
        raise PlanError("a process for each GPU needs GPUs; say how many a node has")
    given = [name for name in DERIVED if name in Plan().diff(plan)]
    if given:
        raise PlanError(f"{given[0]} follows from the nodes and their GPUs; leave it out")
    devices = f"gpu:0-{gpus - 1}" if gpus > 1 else "gpu:0"
    if process_per_gpu or gpus == 1:
        devices = "gpu:0"  # SLURM shows each task its own
    processes = nodes * (gpus if process_per_gpu else 1)
    return plan.replace(
        processes=processes,
        kvstore="dist_sync" if processes > 1 else "none",
        devices=devices if gpus else plan.devices,
    )


def batch_script(
    command: list[str],
    nodes: int,
    gpus: int = 0,
    process_per_gpu: bool = False,
    cores: int = 1,
    hours: float = 24,
    name: str = "mxopt",
    log: str = "%x-%j.log",
    more: list[str] = (),
) -> str:
    """Return the text of a script for ``sbatch``.

    SLURM starts the script again after a node has failed (``--requeue``); a command that writes
    checkpoints continues from the last one.

    Args:
        command: what every task runs.
        nodes: number of nodes.
        gpus: number of GPUs of each node.
        process_per_gpu: whether a node has a task for each GPU; otherwise it has one.
        cores: number of CPU cores of each task.
        hours: limit of the job's time; it is rounded up to minutes.
        name: name of the job.
        log: file for the output of all tasks, in SLURM's patterns.
        more: further options of ``sbatch`` without their dashes, such as ``partition=short``.

    Raises:
        PlanError: a number is too small, or one of ``more`` is no option.
    """
    if cores < 1 or not hours > 0:
        raise PlanError(f"cores={cores}, hours={hours}: both must be above 0")
    for option in more:
        if not re.fullmatch(r"[a-z][a-z-]*(=[^\n]*)?", option):
            raise PlanError(f"{option!r} is no option of sbatch; write such as partition=short")
    tasks = gpus if process_per_gpu else 1
    options = [
        f"job-name={name}",
        f"nodes={nodes}",
        f"ntasks-per-node={tasks}",
        f"cpus-per-task={cores}",
        *([f"gpus-per-task={1 if process_per_gpu else gpus}"] if gpus else []),
        f"time={math.ceil(hours * 60)}",
        f"output={log}",
        "open-mode=append",
        "requeue",
        *more,
    ]
    # srun no longer takes the cores of a task from sbatch (SLURM 22.05).
    srun = f"srun --kill-on-bad-exit=1 --cpus-per-task={cores}"
    return "\n".join(
        [
            "#!/bin/bash",
            *(f"#SBATCH --{option}" for option in options),
            "set -euo pipefail",
            f"{srun} {shlex.join(command)}",
            "",
        ]
    )
