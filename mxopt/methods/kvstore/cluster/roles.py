"""Roles: the processes of a job, their hosts, and their environment variables.

The variables are those of MXNet's page "Distributed Training in MXNet" and of ps-lite, its
parameter server. ``MXOPT_WORKER``, a worker's number, is added because ps-lite ranks workers by
address and port, which are not known in advance.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from mxopt.core.errors import PlanError

LOOPBACK = "127.0.0.1"


class Role(NamedTuple):
    """One process of a job.

    Attributes:
        kind: ``scheduler``, ``server`` or ``worker``.
        number: number among the roles of this kind, from 0.
        host: host to start it on by ssh; empty for this machine.
        variables: environment variables of the process, in addition to those of all.
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

    The scheduler runs on the first host and a server on each. Workers are assigned to the hosts
    round-robin, so that the load of summing is distributed like that of training.

    Args:
        workers: number of workers.
        hosts: names for ssh, optionally with ``user@``; a host that is named twice gets two
            workers in each round. This machine if None or empty.
        port: a free port on the first host.
        address: function that returns the IP address of a host name.

    Raises:
        PlanError: a host has no address, or one that the others cannot reach.
    """
    assigned = [(hosts or [""])[worker % len(hosts or [""])] for worker in range(workers)]
    used = list(dict.fromkeys(assigned))
    addresses = addresses_of(used, address)
    root = addresses[used[0]]

    def role(kind, number, host):
        return Role(kind, number, host, variables(kind, number, workers, len(used), root, port,
                                                   addresses[host]))  # fmt: skip

    return [
        role("scheduler", 0, used[0]),
        *(role("server", number, host) for number, host in enumerate(used)),
        *(role("worker", number, host) for number, host in enumerate(assigned)),
    ]


def worker_number(environment: Mapping[str, str]) -> int:
    """Return the number of the worker with this environment; 0 for a single process."""
    return int(environment.get("MXOPT_WORKER", environment.get("HOROVOD_RANK", 0)))


def read_hosts(path: Path) -> list[str]:
    """Return the hosts in a file: one on each line, with comments after ``#``.

    Raises:
        PlanError: the file cannot be read, has no host, or a line is not a host name.
    """
    try:
        lines = [line.partition("#")[0].strip() for line in path.read_text("utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(f"cannot read the hosts in {path}: {error}") from None
    hosts = [line for line in lines if line]
    for host in hosts:
        # ssh would read a name that begins with a dash as an option.
        if not re.fullmatch(r"(\w[\w.-]*@)?\w[\w.:-]*", host):
            raise PlanError(f"{path}: {host!r} is not a host; write one name or address a line")
    if not hosts:
        raise PlanError(f"{path} names no host; write one name or address a line")
    return hosts


def addresses_of(hosts: list[str], address: Callable) -> dict[str, str]:
    """Return the IP address of each host; the loopback address for this machine.

    Args:
        hosts: names for ssh; empty for this machine.
        address: function that returns the IP address of a host name.

    Raises:
        PlanError: a host has no address, or one that the others cannot reach.
    """
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


def variables(
    kind: str, number: int, workers: int, servers: int, root: str, port: int, node: str
) -> dict[str, str]:
    """Return the environment variables of a role.

    Args:
        kind: ``scheduler``, ``server`` or ``worker``.
        number: number among the roles of this kind.
        workers: number of workers of the job.
        servers: number of servers of the job.
        root: IP address of the scheduler.
        port: port of the scheduler.
        node: IP address of this role's host.
    """
    own = {"MXOPT_WORKER": str(number)} if kind == "worker" else {}
    return {
        "DMLC_ROLE": kind,
        "DMLC_PS_ROOT_URI": root,
        "DMLC_PS_ROOT_PORT": str(port),
        "DMLC_NUM_WORKER": str(workers),
        "DMLC_NUM_SERVER": str(servers),
        # By default ps-lite takes the first interface that is not the loopback, if any.
        "DMLC_NODE_HOST": node,
        **own,
    }
