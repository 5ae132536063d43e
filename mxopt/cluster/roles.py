"""Roles: which processes there are, where each runs, and the environment that tells it so.

The variables are those of MXNet's page "Distributed Training in MXNet" and of ps-lite, its
parameter server. ``MXOPT_WORKER`` is added, a worker's number: ps-lite ranks workers by address and
port, which nobody knows before.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from mxopt.errors import PlanError

LOOPBACK = "127.0.0.1"
STARTERS = ("slurm", "mpi")
# Below the ports that Linux hands out by itself (from 32768 on).
_FIRST_PORT, _PORTS = 20_000, 10_000


class Role(NamedTuple):
    """One process of a job.

    Attributes:
        kind: ``scheduler``, ``server`` or ``worker``; ``number`` counts from 0 within its kind.
        host: where to start it by ssh; empty for this machine.
        variables: its environment, beside what all have.
    """

    kind: str
    number: int
    host: str
    variables: dict[str, str]

    def __str__(self):
        name = self.kind if self.kind == "scheduler" else f"{self.kind} {self.number}"
        return f"{name} on {self.host or 'this machine'}"


def on_hosts(workers: int, hosts: list[str] | None, port: int,
             address: Callable = socket.gethostbyname) -> list[Role]:  # fmt: skip
    """Return the roles of a job that one launcher starts.

    The scheduler is on the first host, a server on each, and workers go round the hosts; so
    the work of adding up, and its traffic, is spread as evenly as the training.

    Args:
        workers: how many train.
        hosts: names for ssh, ``user@`` allowed; a host named twice takes two workers a round. This
            machine if there are none.
        port: a free one on the first host.
        address: turns a host's name into its IP address.

    Raises:
        PlanError: a host has no address, or one that the others cannot reach.
    """
    turns = [(hosts or [""])[worker % len(hosts or [""])] for worker in range(workers)]
    used = list(dict.fromkeys(turns))
    addresses = _addresses(used, address)
    root = addresses[used[0]]

    def role(kind, number, host):
        return Role(kind, number, host, _variables(kind, number, workers, len(used), root, port,
                                                   addresses[host]))  # fmt: skip

    return [
        role("scheduler", 0, used[0]),
        *(role("server", number, host) for number, host in enumerate(used)),
        *(role("worker", number, host) for number, host in enumerate(turns)),
    ]


def of_this_task(starter: str, workers: int, environment: Mapping[str, str],
                 address: Callable = socket.gethostbyname) -> list[Role]:  # fmt: skip
    """Return the roles that a task of SLURM or MPI starts: its worker, on every host's first task
    a server, and on the very first the scheduler.

    SLURM says in its environment where the first task is; MPI does not, so with several hosts
    ``DMLC_PS_ROOT_URI`` must hold its address. ``DMLC_PS_ROOT_PORT`` replaces the port.

    Args:
        starter: ``slurm`` (started by ``srun``) or ``mpi`` (Open MPI, MPICH, Intel MPI).
        workers: the plan's processes, which must be as many as the tasks.
        environment: of the task.
        address: turns a host's name into its IP address.

    Raises:
        PlanError: the task was not started so, or by another number of tasks.
    """
    task = _slurm(environment) if starter == "slurm" else _mpi(environment)
    if task.tasks != workers:
        raise PlanError(
            f"processes={workers}, and {starter} has started {task.tasks} tasks; make them equal"
        )
    root = environment.get("DMLC_PS_ROOT_URI")
    if not root and task.hosts == 1:
        root = LOOPBACK
    elif not root and task.first_host:
        root = _addresses([task.first_host], address)[task.first_host]
    elif not root:
        raise PlanError(
            f"{task.hosts} hosts need the first one's address: set DMLC_PS_ROOT_URI, as in "
            "mpirun -x DMLC_PS_ROOT_URI=10.0.0.1"
        )
    if task.hosts > 1 and root.startswith("127."):
        raise PlanError(
            f"{task.first_host or 'the first host'} calls itself {root}, where other hosts cannot "
            "reach it; set DMLC_PS_ROOT_URI to its address"
        )
    port = int(environment.get("DMLC_PS_ROOT_PORT", task.port))
    kinds = ["scheduler"] * (task.rank == 0) + ["server"] * (task.local_rank == 0) + ["worker"]
    return [
        Role(kind, task.rank, "", _variables(kind, task.rank, workers, task.hosts, root, port,
                                             _address_towards(root)))
        for kind in kinds
    ]  # fmt: skip


def worker_number(environment: Mapping[str, str]) -> int:
    """Return the number of the worker that has this environment; 0 for a process alone."""
    return int(environment.get("MXOPT_WORKER", environment.get("HOROVOD_RANK", 0)))


def task_number(starter: str, environment: Mapping[str, str]) -> int:
    """Return the rank of a task of SLURM or MPI.

    Raises:
        PlanError: it was not started so.
    """
    return (_slurm(environment) if starter == "slurm" else _mpi(environment)).rank


def read_hosts(path: Path) -> list[str]:
    """Return the hosts of a file: one a line, empty lines and those with ``#`` left out.

    Raises:
        PlanError: it cannot be read, has no host, or a line is not a host's name.
    """
    try:
        lines = [line.partition("#")[0].strip() for line in path.read_text("utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(f"cannot read the hosts in {path}: {error}") from None
    hosts = [line for line in lines if line]
    for host in hosts:
        # ssh would take a name that begins with a dash for an option.
        if not re.fullmatch(r"(\w[\w.-]*@)?\w[\w.:-]*", host):
            raise PlanError(f"{path}: {host!r} is not a host; write one name or address a line")
    if not hosts:
        raise PlanError(f"{path} names no host; write one name or address a line")
    return hosts


class _Task(NamedTuple):
    rank: int
    local_rank: int
    tasks: int
    hosts: int
    first_host: str
    port: int


def _slurm(environment) -> _Task:
    def of_step(name):  # the step's own, for an allocation may be larger
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
    """Return the first name of SLURM's short form of a list.

    >>> _first_host("node[007-012,20],login")
    'node007'
    """
    first = re.match(r"(?:[^,\[]|\[[^\]]*\])*", nodes)[0]
    return re.sub(r"\[(\w+)[^\]]*\]", r"\1", first)


def _addresses(hosts: list[str], address: Callable) -> dict[str, str]:
    found = {}
    for host in hosts:
        try:
            found[host] = address(host.rpartition("@")[2]) if host else LOOPBACK
        except OSError as error:
            raise PlanError(
                f"host {host!r} has no address here ({error}); write its IP address instead"
            ) from None
    local = [host for host in hosts if found[host].startswith("127.")]
    if local and len(local) < len(hosts):
        raise PlanError(
            f"host {local[0]!r} is {found[local[0]]} here, where other hosts cannot reach it; "
            "write its IP address instead"
        )
    return found


def _address_towards(root: str) -> str:
    """Return this machine's address on the way to another one; nothing is sent."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((root, 9))
            return probe.getsockname()[0]
    except OSError as error:
        raise PlanError(f"there is no way from here to the first host, {root}: {error}") from None


def _variables(kind, number, workers, servers, root, port, node) -> dict[str, str]:
    own = {"MXOPT_WORKER": str(number)} if kind == "worker" else {}
    return {
        "DMLC_ROLE": kind,
        "DMLC_PS_ROOT_URI": root,
        "DMLC_PS_ROOT_PORT": str(port),
        "DMLC_NUM_WORKER": str(workers),
        "DMLC_NUM_SERVER": str(servers),
        # Left to itself ps-lite takes the first interface that is not the loopback, if any.
        "DMLC_NODE_HOST": node,
        **own,
    }
