"""The alarm between the launchers of a job's tasks: a failure in one task ends all.

Under SLURM and MPI every task has a launcher, which watches its own processes only. MPI does not
end the other tasks, because the processes never call it: under MPICH 5 and Open MPI 5 they waited
forever. Each launcher therefore connects to that of the first task, one port above the parameter
server's. A message there, or a connection that closes without a message, is forwarded to all.

Both ends of a connection begin with a greeting and end with a message, both authenticated by HMAC
with the job's key (``keys``). A connection without a valid greeting, such as that of a port scanner
or of another job's task, is closed and ignored.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import hmac
import os
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from mxopt.core.errors import PlanError
from mxopt.methods.kvstore.cluster.keys import TOKEN, job_key, read_secret, write_secret
from mxopt.methods.kvstore.cluster.roles import Role

# Time limits in seconds: for all tasks to connect, and for the greeting of a connection.
PATIENCE, GREETING = 120.0, 10.0
WELL = "all is well"
# Connections without a greeting that are kept open; of more, the oldest is closed.
STRANGERS = 32
_DIGEST = hashlib.sha256().digest_size
_LONGEST = 4096


def printable(text: str) -> str:
    """Return the text with a space for every character that would control a terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


class Alarm:
    """The alarm's connections of one launcher.

    Args:
        rank: number of the task. The first, 0, listens at its address, and there only.
        tasks: number of tasks.
        address: host and port of the first task.
        patience: seconds in which all tasks must connect.
        key: returns the key that authenticates messages, the same for all tasks of a job
            (:func:`~mxopt.methods.kvstore.cluster.keys.job_key`), and raises ``OSError`` while it
            is unknown. It is called for every connection.
        on_end: called when the key is no longer needed.

    Raises:
        PlanError: the port is in use, or the address is not one of this host.
    """

    def __init__(
        self,
        rank: int,
        tasks: int,
        address: tuple,
        patience: float = PATIENCE,
        key: Callable[[], bytes] = bytes,
        on_end: Callable[[], None] = lambda: None,
    ):
        self._address, self._until, self._key = address, time.monotonic() + patience, key
        self._missing, self._listener = (tasks - 1 if rank == 0 else 1), None
        self._others: list[_Connection] = []
        self._first, self._on_end = rank == 0, on_end
        if self._first:
            try:
                self._listener = socket.create_server(address)
            except OSError as error:
                on_end()
                raise PlanError(_advice(address, error)) from None
            self._listener.setblocking(False)

    @classmethod
    def for_task(
        cls, roles: list[Role], secret: Path, environment: Mapping[str, str] = os.environ
    ) -> Alarm:
        """Return the alarm of a task.

        Args:
            roles: roles that the task starts, with its worker last.
            secret: file for the job's secret, the same for all tasks; it is not used if
                ``MXOPT_JOB_TOKEN`` is set.
            environment: environment variables of the task.

        Raises:
            PlanError: the first task cannot listen.
            RecordError: the first task cannot write the secret.
        """
        own, rank = roles[-1].variables, roles[-1].number
        address = own["DMLC_PS_ROOT_URI"], int(own["DMLC_PS_ROOT_PORT"]) + 1
        tasks = int(own["DMLC_NUM_WORKER"])
        if environment.get(TOKEN):
            return cls(rank, tasks, address, key=lambda: job_key(roles, environment))
        if rank:
            return cls(
                rank, tasks, address, key=lambda: job_key(roles, environment, read_secret(secret))
            )
        key = job_key(roles, environment, write_secret(secret))
        return cls(
            rank, tasks, address, key=lambda: key, on_end=lambda: secret.unlink(missing_ok=True)
        )

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
        unknown = [other for other in self._others if self._first and not other.known]
        for other in unknown[:-STRANGERS]:
            other.socket.close()
            self._others.remove(other)
        if self._listener and not self._missing:
            self._close()  # all tasks have connected
        if self._missing and time.monotonic() > self._until:
            return (
                f"{self._missing} of the other tasks did not connect to port {self._address[1]}, "
                "or lack the job's secret: put the record on a disk that all tasks share, or set "
                f"{TOKEN} to the same secret for all of them"
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
            self._close()

    def _close(self) -> None:
        self._listener.close()
        self._on_end()

    def _connected(self) -> _Connection:
        key = self._key()
        if self._first:
            return _Connection(self._listener.accept()[0], key, b"first", b"other")
        other = socket.create_connection(self._address, timeout=1)
        return _Connection(other, key, b"other", b"first")


def _advice(address: tuple, error: OSError) -> str:
    host, port = address
    if error.errno in (errno.EADDRINUSE, errno.EACCES):
        return (
            f"port {port} of the first host is not free ({error}); set DMLC_PS_ROOT_PORT to a "
            "port that is free, like the next higher one"
        )
    return (
        f"{host} is not an address of the first host ({error}); set DMLC_PS_ROOT_URI to one at "
        "which the other hosts reach it"
    )


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
        return printable(message.decode(errors="replace"))

    def _digest(self, message: bytes) -> bytes:
        return hmac.digest(self._key, message, "sha256")
