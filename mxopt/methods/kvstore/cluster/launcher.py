"""The launcher: starts the processes of all roles, watches them, and ends all when one dies.

In synchronous training, if a process dies or a server ends too early, the others wait forever. The
launcher gives them ``GRACE`` seconds to end by themselves and write their records. Then it kills
them, with all processes that they started. Conversely, a process ends itself when its launcher has
ended, because its standard input is then closed, also through ssh.
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

import psutil

from mxopt.methods.kvstore.cluster.alarm import Alarm, printable
from mxopt.methods.kvstore.cluster.roles import Role

GRACE = 5.0
# Seconds for workers to end after a server has ended, which happens when they have finished.
LEAVING = 30.0
# Seconds for a killed process to end; one that hangs in a driver never does.
DYING = 30.0
# ssh notices after 15 seconds that a host no longer answers.
SSH = ("ssh", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3")
# Variables of the launcher's environment that processes on other hosts need too.
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
        roles: roles of the processes.
        program: command of the program, the same for all.
        environment: environment variables for all, in addition to the roles' own.
        inputs: for each role a line for its standard input, which stays open afterwards.
        alarm: connection to the launchers of the job's other tasks; None if there are none.

    Returns:
        Which process died, on which host, how, and the last line of its output; empty if none
        did. When this function returns, all processes on this machine have ended, with those that
        they started in their sessions. Those on other hosts end when their standard input is
        closed.
    """
    members, died = [], "a launcher was interrupted"
    try:
        for role, line in zip(roles, inputs):
            members.append(_start(role, program, environment, line))
        died = _watch(members, alarm)
        return died
    finally:
        _end(members)
        if alarm:
            alarm.tell(died)


def command(role: Role, program: list[str], environment: dict) -> list[str]:
    """Return the command that starts a role's process, through ssh if it is on another host.

    Args:
        role: the role.
        program: command of the program.
        environment: environment variables, in addition to the role's own.
    """
    variables = {**environment, **role.variables}
    if role.host:
        carried = {name: os.environ[name] for name in _CARRIED if name in os.environ}
        variables = {**carried, **variables}
    # ps-lite would listen on $PORT, and use $DMLC_RANK as its own rank.
    words = ["env", "-u", "PORT", "-u", "DMLC_RANK"]
    words += [f"{name}={value}" for name, value in variables.items()] + program
    if not role.host:
        return words
    line = f"cd {shlex.quote(str(Path.cwd()))} && exec {shlex.join(words)}"
    return [*SSH, role.host, line]


class _Member(NamedTuple):
    role: Role
    process: subprocess.Popen
    output: object  # a file with the process's output


def _start(role, program, environment, line) -> _Member:
    output = tempfile.TemporaryFile()  # noqa: SIM115  (closed by _end)
    process = subprocess.Popen(
        command(role, program, environment),
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # so that an interrupt ends the launcher first
    )
    with contextlib.suppress(BrokenPipeError):  # it has ended already, which _watch finds
        process.stdin.write(line.encode() + b"\n")
        process.stdin.flush()
    return _Member(role, process, output)


def _watch(members: list[_Member], alarm: Alarm | None) -> str:
    workers = [member for member in members if member.role.kind == "worker"]
    others = [member for member in members if member.role.kind != "worker"]
    until = None  # time at which the workers must have ended
    while True:
        dead = next((member for member in members if _status(member)), None)
        left = next((member for member in others if _status(member) == 0), None)
        heard = alarm.heard() if alarm and not dead else ""
        done = all(_status(member) is not None for member in workers)
        if left and until is None:
            until = time.monotonic() + LEAVING
        if left and not done and time.monotonic() > until:
            return f"{left.role} ended, and {LEAVING:g} s later the workers had not"
        if dead or heard or done:
            _wait(workers if dead or heard else members)
            return _last_words(dead) if dead else heard
        time.sleep(0.05)


def _status(member: _Member) -> int | None:
    """Return the exit status or the signal; None while the process runs.

    The process remains a zombie, so that its number, also that of its group, is not reused.
    """
    ended = os.waitid(os.P_PID, member.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    return ended.si_status if ended else None


def _wait(members: list[_Member]) -> None:
    """Wait until all have ended, or for ``GRACE`` seconds."""
    last = time.monotonic() + GRACE
    while any(_status(member) is None for member in members) and time.monotonic() < last:
        time.sleep(0.05)


def _end(members: list[_Member]) -> None:
    """Kill the remaining processes of every session, and wait until they have ended."""
    for member in members:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(member.process.pid, signal.SIGKILL)
    for member in members:
        member.process.wait()
        with contextlib.suppress(BrokenPipeError):
            member.process.stdin.close()
        member.output.close()
    # A killed process runs until the system schedules it to end.
    last = time.monotonic() + DYING
    groups = {member.process.pid for member in members}
    while any(map(_runs, groups)) and time.monotonic() < last:
        time.sleep(0.01)


def _runs(group: int) -> bool:
    """Return whether a process group has a process that is not a zombie, of any parent."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                return True
    return False


def _last_words(member: _Member) -> str:
    status = member.process.wait()
    how = f"ended with status {status}"
    if status < 0:
        how = f"was killed by {signal.Signals(-status).name}"
    member.output.seek(0)
    said = member.output.read().decode(errors="replace").strip().splitlines()
    return f"{member.role} {how}" + (f": {printable(said[-1])}" if said else "")
