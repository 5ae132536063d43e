"""The alarm between the launchers of a job's tasks: what dies in one ends them all.

Under SLURM and MPI every task has a launcher, which sees its own processes only. MPI does not end
the others by itself, because they never call it: under MPICH 5 and Open MPI 5 they waited for ever.
So each launcher keeps a connection to the first task's, one port above the parameter server's. What
is said there, or a connection that ends with nothing said, is passed on to all.

Both ends of a connection begin with a greeting and end with a message, both authenticated by HMAC
with the job's key. Until a connection has greeted, nothing it does is believed: a port scanner, or
a task of another job, is closed and forgotten.
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

# Seconds in which all tasks must have come, and in which a connection must have greeted.
PATIENCE, GREETING = 120.0, 10.0
WELL = "all is well"
TOKEN = "MXOPT_JOB_TOKEN"
_DIGEST = hashlib.sha256().digest_size
_LONGEST = 4096


class Alarm:
    """One launcher's end of it.

    Args:
        rank: of the task; the first, 0, listens: on the loopback interface only if that is its
            address, otherwise on all.
        tasks: how many there are.
        address: host and port of the first task.
        patience: seconds in which all must have come.
        key: authenticates what is said; the same for all tasks of a job (:func:`job_key`).

    Raises:
        PlanError: the port is taken.
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
                    "DMLC_PS_ROOT_PORT to one that is, as is the one above it"
                ) from None
            self._listener.setblocking(False)

    @classmethod
    def for_task(cls, roles: list[Role], environment: Mapping[str, str] = os.environ) -> Alarm:
        """Return the alarm of the task that starts these roles, its worker last."""
        own = roles[-1].variables
        address = own["DMLC_PS_ROOT_URI"], int(own["DMLC_PS_ROOT_PORT"]) + 1
        tasks, key = int(own["DMLC_NUM_WORKER"]), job_key(roles, environment)
        return cls(roles[-1].number, tasks, address, key=key)

    def heard(self) -> str:
        """Return what has happened in another task; empty if nothing has. Does not wait."""
        with contextlib.suppress(OSError):  # nobody is there yet
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
                return other.said() or "a task has gone without a word"
        if self._listener and not self._missing:
            self._listener.close()  # nobody else is to come
        if self._missing and time.monotonic() > self._until:
            return (
                f"{self._missing} of the other tasks did not come to port {self._address[1]}, or "
                f"came with another {TOKEN}"
            )
        return ""

    def tell(self, died: str) -> None:
        """Say how this task ended, and what was heard, to all others; then be gone.

        Args:
            died: what has died; empty if nothing has.
        """
        if died and not self._first and not self._others:  # so early that it had not come yet
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
    """A connection to another task, or to a stranger until it has greeted as such."""

    def __init__(self, connected: socket.socket, key: bytes, ours: bytes, theirs: bytes):
        self.socket, self.known, self._key, self._theirs = connected, False, key, theirs
        self._received, self._until = b"", time.monotonic() + GREETING
        connected.setblocking(False)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 2)):
            if hasattr(socket, name):  # a host that has lost its power says nothing
                connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        with contextlib.suppress(OSError):  # gone already, as reading will tell
            connected.sendall(self._digest(ours))

    def send(self, message: bytes) -> None:
        """Send the one message that there is."""
        with contextlib.suppress(OSError):
            self.socket.sendall(self._digest(message) + message)

    def read(self) -> bool:
        """Take what has come, without waiting, and return whether the connection is over."""
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
        """Return the message, without what would control a terminal; empty if there is none."""
        digest, message = self._received[_DIGEST:][:_DIGEST], self._received[2 * _DIGEST :]
        if not hmac.compare_digest(digest, self._digest(message)):
            return ""
        text = message.decode(errors="replace")
        return "".join(letter if letter.isprintable() else " " for letter in text)

    def _digest(self, message: bytes) -> bytes:
        return hmac.digest(self._key, message, "sha256")


def job_key(roles: list[Role], environment: Mapping[str, str]) -> bytes:
    """Return the key of the job that a task belongs to.

    It is made of ``MXOPT_JOB_TOKEN``, a secret if the user has set one, and of what tells jobs
    apart but is no secret: the first task's address and port, the number of workers, and SLURM's
    number of the job.

    Args:
        roles: that the task starts, its worker last.
        environment: of the task.
    """
    own = roles[-1].variables
    names = ("DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT", "DMLC_NUM_WORKER")
    parts = [own[name] for name in names]
    parts += [environment.get(name, "") for name in ("SLURM_JOB_ID", TOKEN)]
    return hashlib.sha256("\n".join(parts).encode()).digest()
