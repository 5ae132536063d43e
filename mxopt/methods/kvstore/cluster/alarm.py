"""The alarm between the launchers of a job's tasks: a failure in one task ends all.

Under SLURM and MPI every task has a launcher, which watches its own processes only. MPI does not
end the other tasks, because the processes never call it: under MPICH 5 and Open MPI 5 they waited
forever. Each launcher therefore connects to that of the first task, one port above the parameter
server's. A message there, or a connection that closes without a message, is forwarded to all.

Both ends of a connection begin with a greeting and end with a message, both authenticated by HMAC
with the job's key. A connection without a valid greeting, such as that of a port scanner or of
another job's task, is closed and ignored.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import socket
import time
from collections.abc import Mapping

from mxopt.core.errors import PlanError
from mxopt.methods.kvstore.cluster.roles import Role

# Time limits in seconds: for all tasks to connect, and for the greeting of a connection.
PATIENCE, GREETING = 120.0, 10.0
WELL = "all is well"
TOKEN = "MXOPT_JOB_TOKEN"
_DIGEST = hashlib.sha256().digest_size
_LONGEST = 4096


class Alarm:
    """The alarm's connections of one launcher.

    Args:
        rank: number of the task. The first, 0, listens: on the loopback interface only if that is
            its address, otherwise on all interfaces.
        tasks: number of tasks.
        address: host and port of the first task.
        patience: seconds in which all tasks must connect.
        key: key that authenticates messages, the same for all tasks of a job (:func:`job_key`).

    Raises:
        PlanError: the port is in use.
    """

    def __init__(
        self, rank: int, tasks: int, address: tuple, patience: float = PATIENCE, key: bytes = b""
    ):
        self._address, self._until, self._key = address, time.monotonic() + patience, key
        self._missing, self._listener = (tasks - 1 if rank == 0 else 1), None
        self._others: list[_Connection] = []
        self._first = rank == 0
        if self._first:
            local = address[0] == "localhost" or address[0].startswith("127.")
            try:
                self._listener = socket.create_server((address[0] if local else "", address[1]))
            except OSError as error:
                raise PlanError(
                    f"port {address[1]} of the first host is not free ({error}); set "
                    "DMLC_PS_ROOT_PORT to a port that is free, like the next higher one"
                ) from None
            self._listener.setblocking(False)

    @classmethod
    def for_task(cls, roles: list[Role], environment: Mapping[str, str] = os.environ) -> Alarm:
        """Return the alarm of a task.

        Args:
            roles: roles that the task starts, with its worker last.
            environment: environment variables of the task.
        """
        own = roles[-1].variables
        address = own["DMLC_PS_ROOT_URI"], int(own["DMLC_PS_ROOT_PORT"]) + 1
        tasks, key = int(own["DMLC_NUM_WORKER"]), job_key(roles, environment)
        return cls(roles[-1].number, tasks, address, key=key)

    def heard(self) -> str:
        """Return what failed in another task; empty if nothing did. Does not wait."""
        with contextlib.suppress(OSError):  # the first task does not listen yet
            while self._missing and (self._first or not self._others):
                self._others.append(self._connected())
        for other in list(self._others):
            was_known = other.known
            ended = other.read()
            self._missing -= other.known and not was_known
            if not ended:
                continue
            self._others.remove(other)
            if other.known and other.said() != WELL:
                return other.said() or "a task ended without a message"
        if self._listener and not self._missing:
            self._listener.close()  # all tasks have connected
        if self._missing and time.monotonic() > self._until:
            return (
                f"{self._missing} of the other tasks did not connect to port {self._address[1]}, "
                f"or have another {TOKEN}"
            )
        return ""

    def tell(self, died: str) -> None:
        """Tell all other tasks how this one ended, and close the connections.

        Args:
            died: what failed, here or in another task; empty if nothing did.
        """
        if died and not self._first and not self._others:  # it failed before connecting
            with contextlib.suppress(OSError):
                self._others.append(self._connected())
        for other in self._others:
            if other.known or not self._first:
                other.send((died or WELL).encode()[: _LONGEST - _DIGEST])
            other.socket.close()
        if self._listener:
            self._listener.close()

    def _connected(self) -> _Connection:
        if self._first:
            return _Connection(self._listener.accept()[0], self._key, b"first", b"other")
        other = socket.create_connection(self._address, timeout=1)
        return _Connection(other, self._key, b"other", b"first")


class _Connection:
    """A connection to another task; to an unknown peer until its greeting is verified."""

    def __init__(self, connected: socket.socket, key: bytes, ours: bytes, theirs: bytes):
        self.socket, self.known, self._key, self._theirs = connected, False, key, theirs
        self._received, self._until = b"", time.monotonic() + GREETING
        connected.setblocking(False)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 2)):
            if hasattr(socket, name):  # detects hosts that lost power
                connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        with contextlib.suppress(OSError):  # closed already, which reading finds
            connected.sendall(self._digest(ours))

    def send(self, message: bytes) -> None:
        """Send the final message."""
        with contextlib.suppress(OSError):
            self.socket.sendall(self._digest(message) + message)

    def read(self) -> bool:
        """Read what has arrived, without waiting, and return whether the connection is over."""
        try:
            while part := self.socket.recv(_LONGEST):
                self._received += part
                if len(self._received) > _DIGEST + _LONGEST:
                    break
            over = True
        except BlockingIOError:
            over = False
        except OSError:
            over = True
        if len(self._received) >= _DIGEST and not self.known:
            self.known = hmac.compare_digest(self._received[:_DIGEST], self._digest(self._theirs))
            over = over or not self.known
        over = over or (not self.known and time.monotonic() > self._until)
        if over:
            self.socket.close()
        return over

    def said(self) -> str:
        """Return the message without control characters; empty if there is none."""
        digest, message = self._received[_DIGEST:][:_DIGEST], self._received[2 * _DIGEST :]
        if not hmac.compare_digest(digest, self._digest(message)):
            return ""
        text = message.decode(errors="replace")
        return "".join(letter if letter.isprintable() else " " for letter in text)

    def _digest(self, message: bytes) -> bytes:
        return hmac.digest(self._key, message, "sha256")


def job_key(roles: list[Role], environment: Mapping[str, str]) -> bytes:
    """Return the key of the job that a task belongs to.

    It is made of ``MXOPT_JOB_TOKEN``, a secret that the user may set, and of values that differ
    between jobs but are not secret: address and port of the first task, the number of workers, and
    SLURM's job number.

    Args:
        roles: roles that the task starts, with its worker last.
        environment: environment variables of the task.
    """
    own = roles[-1].variables
    names = ("DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT", "DMLC_NUM_WORKER")
    parts = [own[name] for name in names]
    parts += [environment.get(name, "") for name in ("SLURM_JOB_ID", TOKEN)]
    return hashlib.sha256("\n".join(parts).encode()).digest()
