"""The launcher: starts every role's process, watches them, and ends all when one has died.

In synchronous training a process that dies leaves the others waiting for ever. Here the others
have ``GRACE`` seconds to end by themselves and leave their records, and then are killed. The other
way round, a process whose launcher is gone ends itself: its standard input has come to an end,
which reaches it through ssh as well.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from mxopt.methods.kvstore.cluster.alarm import Alarm
from mxopt.methods.kvstore.cluster.roles import Role

GRACE = 5.0
# ssh notices after 15 seconds that a host no longer answers.
SSH = ("ssh", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3")
# What of the launcher's own environment a process on another host needs as well.
_CARRIED = ("MXOPT_DATA", "MXOPT_WEIGHTS", "OMP_NUM_THREADS")


def launch(
    roles: list[Role],
    program: list[str],
    environment: dict,
    inputs: list[str],
    alarm: Alarm | None = None,
) -> str:
    """Run a program in every role until all workers have ended, or one process has died.

    Args:
        roles: of the processes.
        program: the command, the same for all.
        environment: variables for all, beside the roles' own.
        inputs: for each role a line for its standard input, which stays open afterwards.
        alarm: to and from the launchers of the job's other tasks, if it has any.

    Returns:
        Who died, where, how, and with which last words; empty if all went well. Some ``GRACE``
        seconds later no process is left.
    """
    members, died = [], "a launcher was interrupted"
    try:
        for role, line in zip(roles, inputs):
            members.append(_start(role, program, environment, line))
        died = _watch(members, alarm)
        return died
    finally:
        for member in members:
            _end(member)
        if alarm:
            alarm.tell(died)


def command(role: Role, program: list[str], environment: dict) -> list[str]:
    """Return the words that start a role's process, through ssh if it is on another host."""
    variables = {**environment, **role.variables}
    if role.host:
        carried = {name: os.environ[name] for name in _CARRIED if name in os.environ}
        variables = {**carried, **variables}
    # ps-lite would listen on $PORT, and take $DMLC_RANK for its own.
    words = ["env", "-u", "PORT", "-u", "DMLC_RANK"]
    words += [f"{name}={value}" for name, value in variables.items()] + program
    if not role.host:
        return words
    line = f"cd {shlex.quote(str(Path.cwd()))} && exec {shlex.join(words)}"
    return [*SSH, role.host, line]


class _Member(NamedTuple):
    role: Role
    process: subprocess.Popen
    output: object  # a file with what the process says


def _start(role, program, environment, line) -> _Member:
    output = tempfile.TemporaryFile()  # noqa: SIM115  (closed by _end)
    process = subprocess.Popen(
        command(role, program, environment),
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # so that an interrupt ends the launcher first
    )
    with contextlib.suppress(BrokenPipeError):  # it is dead already, and will be found so
        process.stdin.write(line.encode() + b"\n")
        process.stdin.flush()
    return _Member(role, process, output)


def _watch(members: list[_Member], alarm: Alarm | None) -> str:
    workers = [member for member in members if member.role.kind == "worker"]
    while True:
        dead = next((member for member in members if member.process.poll()), None)
        heard = alarm.heard() if alarm and not dead else ""
        done = all(member.process.poll() is not None for member in workers)
        if dead or heard or done:
            _wait(workers if dead or heard else members)
            return _last_words(dead) if dead else heard
        time.sleep(0.05)


def _wait(members: list[_Member]) -> None:
    """Wait until all have ended, for ``GRACE`` seconds at most."""
    last = time.monotonic() + GRACE
    for member in members:
        try:
            member.process.wait(max(0, last - time.monotonic()))
        except subprocess.TimeoutExpired:
            return


def _end(member: _Member) -> None:
    if member.process.poll() is None:
        os.killpg(member.process.pid, signal.SIGKILL)
        member.process.wait()
    with contextlib.suppress(BrokenPipeError):
        member.process.stdin.close()
    member.output.close()


def _last_words(member: _Member) -> str:
    status = member.process.returncode
    how = f"ended with status {status}"
    if status < 0:
        how = f"was killed by {signal.Signals(-status).name}"
    member.output.seek(0)
    said = member.output.read().decode(errors="replace").strip().splitlines()
    return f"{member.role} {how}" + (f": {said[-1]}" if said else "")
