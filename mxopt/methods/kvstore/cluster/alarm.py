"""The alarm between the launchers of a job's tasks: what dies in one ends them all.

Under SLURM and MPI every task has a launcher, which sees its own processes only. MPI does not end
the others by itself, because they never call it: under MPICH 5 and Open MPI 5 they waited for ever.
So each launcher keeps a connection to the first task's, one port above the parameter server's. What
is said there, or a connection that ends with nothing said, is passed on to all.
"""

from __future__ import annotations

import contextlib
import socket
import time

from mxopt.core.errors import PlanError
from mxopt.methods.kvstore.cluster.roles import Role

# Seconds in which all tasks must have come.
PATIENCE = 120.0
WELL = "all is well"


class Alarm:
    """One launcher's end of it.

    Args:
        rank: of the task; the first, 0, listens.
        tasks: how many there are.
        address: host and port of the first task.
        patience: seconds in which all must have come.

    Raises:
        PlanError: the port is taken.
    """

    def __init__(self, rank: int, tasks: int, address: tuple, patience: float = PATIENCE):
        self._address, self._until = address, time.monotonic() + patience
        self._missing, self._others, self._listener = (tasks - 1 if rank == 0 else 1), [], None
        if rank == 0:
            try:
                self._listener = socket.create_server(("", address[1]))
            except OSError as error:
                raise PlanError(
                    f"port {address[1]} of the first host is not free ({error}); set "
                    "DMLC_PS_ROOT_PORT to one that is, as is the one above it"
                ) from None
            self._listener.setblocking(False)

    @classmethod
    def for_task(cls, roles: list[Role]) -> Alarm:
        """Return the alarm of the task that starts these roles, its worker last."""
        own = roles[-1].variables
        address = own["DMLC_PS_ROOT_URI"], int(own["DMLC_PS_ROOT_PORT"]) + 1
        return cls(roles[-1].number, int(own["DMLC_NUM_WORKER"]), address)

    def heard(self) -> str:
        """Return what has happened in another task; empty if nothing has. Does not wait."""
        with contextlib.suppress(OSError):  # nobody is there yet
            while self._missing:
                self._others.append(self._connected())
                self._missing -= 1
        if self._missing and time.monotonic() > self._until:
            return f"{self._missing} of the other tasks did not come to port {self._address[1]}"
        for other in list(self._others):
            try:
                said = other.recv(4096).decode(errors="replace")
            except BlockingIOError:
                continue
            except OSError:
                said = ""
            self._others.remove(other)
            other.close()
            if said != WELL:
                return said or "a task has gone without a word"
        return ""

    def tell(self, died: str) -> None:
        """Say how this task ended, and what was heard, to all others; then be gone.

        Args:
            died: what has died; empty if nothing has.
        """
        for other in self._others:
            with contextlib.suppress(OSError), other:
                other.sendall((died or WELL).encode())
        if self._listener:
            self._listener.close()

    def _connected(self) -> socket.socket:
        if self._listener:
            other, _ = self._listener.accept()
        else:
            other = socket.create_connection(self._address, timeout=1)
        other.setblocking(False)
        other.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 2)):
            if hasattr(socket, name):  # a host that has lost its power says nothing
                other.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        return other
