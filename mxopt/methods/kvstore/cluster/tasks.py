"""Tasks: the roles of a process that SLURM or MPI has started for a worker."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Mapping
from typing import NamedTuple

from mxopt.core.errors import PlanError
from mxopt.methods.kvstore.cluster.roles import LOOPBACK, Role, addresses_of, variables

# Below the ports that Linux assigns automatically (from 32768 on).
_FIRST_PORT, _PORTS = 20_000, 10_000


def of_this_task(starter: str, workers: int, environment: Mapping[str, str],
                 address: Callable = socket.gethostbyname) -> list[Role]:  # fmt: skip
    """Return the roles that a task of SLURM or MPI starts.

    Each task starts a worker, the first one of every host also a server, and the first task of the
    job also the scheduler. SLURM's environment has the host of the first task; MPI's has not, so
    with several hosts ``DMLC_PS_ROOT_URI`` must be set to its address. ``DMLC_PS_ROOT_PORT``
    replaces the default port.

    Args:
        starter: ``slurm`` (started by ``srun``) or ``mpi`` (Open MPI, MPICH, Intel MPI).
        workers: the plan's number of processes, which must equal the number of tasks.
        environment: environment variables of the task.
        address: function that returns the IP address of a host name.

    Raises:
        PlanError: the task was not started by ``starter``, the number of tasks differs, or the
            address of the first host is unknown or cannot be reached.
    """
    task = _slurm(environment) if starter == "slurm" else _mpi(environment)
    if task.tasks != workers:
        raise PlanError(
            f"processes={workers}, but {starter} has started {task.tasks} tasks; make them equal"
        )
    root = environment.get("DMLC_PS_ROOT_URI")
    if not root and task.hosts == 1:
        root = LOOPBACK
    elif not root and task.first_host:
        root = addresses_of([task.first_host], address)[task.first_host]
    elif not root:
        raise PlanError(
            f"{task.hosts} hosts need the first one's address: set DMLC_PS_ROOT_URI, as in "
            "mpirun -x DMLC_PS_ROOT_URI=10.0.0.1"
        )
    if task.hosts > 1 and root.startswith("127."):
        raise PlanError(
            f"{task.first_host or 'the first host'} has the address {root}, where other hosts "
            "cannot reach it; set DMLC_PS_ROOT_URI to its address in the network"
        )
    port = int(environment.get("DMLC_PS_ROOT_PORT", task.port))
    kinds = ["scheduler"] * (task.rank == 0) + ["server"] * (task.local_rank == 0) + ["worker"]
    return [
        Role(kind, task.rank, "", variables(kind, task.rank, workers, task.hosts, root, port,
                                             _address_towards(root)))
        for kind in kinds
    ]  # fmt: skip


def task_number(starter: str, environment: Mapping[str, str]) -> int:
    """Return the rank of a task of SLURM or MPI.

    Args:
        starter: ``slurm`` or ``mpi``.
        environment: environment variables of the task.

    Raises:
        PlanError: the task was not started by ``starter``.
    """
    return (_slurm(environment) if starter == "slurm" else _mpi(environment)).rank


class _Task(NamedTuple):
    rank: int
    local_rank: int
    tasks: int
    hosts: int
    first_host: str
    port: int


def _slurm(environment) -> _Task:
    def of_step(name):  # the step's value, because an allocation may be larger
        return environment.get(f"SLURM_STEP_{name}") or environment[f"SLURM_{name}"]

    try:
        rank, local_rank = environment["SLURM_PROCID"], environment["SLURM_LOCALID"]
        tasks = environment.get("SLURM_STEP_NUM_TASKS") or environment["SLURM_NTASKS"]
        hosts = environment.get("SLURM_STEP_NUM_NODES") or environment["SLURM_NNODES"]
        port = _FIRST_PORT + int(environment["SLURM_JOB_ID"]) % _PORTS
        first = _first_host(of_step("NODELIST"))
        return _Task(int(rank), int(local_rank), int(tasks), int(hosts), first, port)
    except KeyError as missing:
        raise PlanError(f"{missing} is not set: start this with srun") from None


def _mpi(environment) -> _Task:
    names = {
        "OMPI_COMM_WORLD_RANK": ("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE",
                                 "OMPI_COMM_WORLD_LOCAL_SIZE"),
        "PMI_RANK": ("MPI_LOCALRANKID", "PMI_SIZE", "MPI_LOCALNRANKS"),
    }  # fmt: skip
    found = next((name for name in names if name in environment), "PMI_RANK")
    try:
        values = (int(environment[name]) for name in (found, *names[found]))
        rank, local_rank, tasks, local_tasks = values
    except KeyError as missing:
        raise PlanError(f"{missing} is not set: start this with mpirun") from None
    return _Task(rank, local_rank, tasks, -(-tasks // local_tasks), "", _FIRST_PORT)


def _first_host(nodes: str) -> str:
    """Return the first host of SLURM's compressed list.

    >>> _first_host("node[007-012,20],login")
    'node007'
    """
    first = re.match(r"(?:[^,\[]|\[[^\]]*\])*", nodes)[0]
    return re.sub(r"\[(\w+)[^\]]*\]", r"\1", first)


def _address_towards(root: str) -> str:
    """Return the address of this machine that is used to reach another; sends nothing."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((root, 9))
            return probe.getsockname()[0]
    except OSError as error:
        raise PlanError(f"cannot reach the first host, {root}, from here: {error}") from None
