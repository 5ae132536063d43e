"""One run: a workload under a plan, in its own process, which writes a record."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from mxopt import methods
from mxopt.core.atomic import by_number
from mxopt.core.errors import DeviceError, RecordError
from mxopt.core.plan import Plan
from mxopt.core.records import RecordWriter, Run, read_run
from mxopt.measure.options import check as check_options
from mxopt.methods.kvstore import cluster


def run(
    workload: str,
    plan: Plan,
    record: str | os.PathLike,
    options: dict | None = None,
    hosts: list[str] | None = None,
    starter: str = "",
) -> Run:
    """Run a workload under a plan, in one or several new processes.

    The processes download nothing: fetch data first (``mxopt.data.fetch``), otherwise the run uses
    the stand-in, if the data set has one.

    Args:
        workload: ``module:function``; called as ``function(plan, write, **options)``, it returns a
            dictionary of figures.
        plan: determines the environment of the processes (engine, threads, ...) and their number.
        record: path of the record; it must not exist. Workers after the first write their own
            beside it, ending in ``.worker-1`` and so on.
        options: arguments of the workload that JSON can represent.
        hosts: hosts on which several processes are started by ssh; None for this machine.
        starter: ``slurm`` or ``mpi`` if this process is one of several that they have started, each
            of which runs one worker; empty otherwise.

    Returns:
        The run, also if it did not succeed: see ``run.status``. If one of several processes died,
        ``run.reason`` says which one and how.

    Raises:
        RecordError: the record exists or cannot be written.
        PlanError: the workload or its recipe takes no such option, or the plan's processes cannot
            be distributed over the hosts.
    """
    check_options(workload, options or {})
    secret = Path(record).with_suffix(".secret")
    job = {"workload": workload, "plan": plan.as_dict(), "options": options or {}}
    roles = _roles(plan, hosts, starter) if plan.kvstore == "dist_sync" else []
    workers = [role.number for role in roles if role.kind == "worker"]
    records = [_record_of(record, n) for n in workers or [cluster.worker_number(os.environ)]]
    for path in records:
        if path != Path(record):
            path.unlink(missing_ok=True)  # of an earlier attempt; left_over renames the first one
    record = records[0]
    RecordWriter(record).close()
    record.unlink()
    try:
        environment = {**_surroundings(), **methods.environment(plan)}
    except DeviceError as error:
        return write_ended(record, job, "refused", str(error), type(error).__name__)
    asked = [{**job, "record": os.fspath(path.absolute())} for path in records]
    if roles:
        alarm = cluster.Alarm.for_task(roles, secret) if starter else None
        return _run_together(roles, asked, environment, job, alarm)
    child = subprocess.run(
        [sys.executable, "-m", "mxopt.measure"],
        input=json.dumps({**asked[0], "parent": os.getpid()}),
        env={**os.environ, **environment},
        text=True,
        capture_output=True,
    )
    if not record.exists():
        return write_ended(record, job, "failed", _last_words(child))
    try:
        done = read_run(record)
    except RecordError as error:
        raise RecordError(f"{error} ({_ending(child)})") from None
    if done.status == "killed":
        killed_by = signal.Signals(-child.returncode).name if child.returncode < 0 else ""
        said = f"{done.reason} ({_ending(child)})"
        done = dataclasses.replace(done, reason=said, error=killed_by)
    return done


def _run_together(roles: list[cluster.Role], asked, environment, job, alarm) -> Run:
    """Run all processes of a distributed run; the record of the first worker is the run's."""
    # Scheduler and servers come first; they do not use the job.
    inputs = [json.dumps(own) for own in [asked[0]] * (len(roles) - len(asked)) + asked]
    program = [sys.executable, "-m", "mxopt.measure.kvstore_process"]
    died = cluster.launch(roles, program, environment, inputs, alarm)
    record = Path(asked[0]["record"])
    if not record.exists():
        reason = died or f"{record} was not written; put it on a disk that all hosts share"
        return write_ended(record, job, "failed", reason)
    try:
        done = read_run(record)
    except RecordError as error:
        raise RecordError(f"{error} ({died})") from None
    if done.status == "killed":
        reason = f"{died}; the other processes were ended; {_what_is_left(record)}"
        done = dataclasses.replace(done, reason=reason)
    return done


def _ending(child: subprocess.CompletedProcess) -> str:
    """Return how a process without a result ended: the signal, or the last line of its errors."""
    by_signal = child.returncode < 0
    return signal.Signals(-child.returncode).name if by_signal else _last_words(child)


def _last_words(child: subprocess.CompletedProcess) -> str:
    """Return the last line of a process's errors, without MXNet's log, which begins with ``[``."""
    lines = [line for line in child.stderr.splitlines() if line and not line.startswith("[")]
    return lines[-1] if lines else "no message"


def _roles(plan: Plan, hosts, starter) -> list[cluster.Role]:
    """Return the roles of the processes that this one has to start, workers last."""
    if starter:
        return cluster.of_this_task(starter, plan.processes, os.environ)
    with socket.socket() as probe:
        probe.bind(("", 0))
        free_port = probe.getsockname()[1]
    return cluster.on_hosts(plan.processes, hosts, free_port)


def _record_of(record, worker: int) -> Path:
    record = Path(record)
    return record.with_suffix(f".worker-{worker}") if worker else record


def _what_is_left(record: Path) -> str:
    kept = by_number(record.with_suffix(".checkpoints").glob("epoch-*.json"))
    if not kept:
        return "there is no checkpoint to continue from; --checkpoints writes them"
    return f"the same command continues from the checkpoint {kept[-1]}"


def write_ended(record, job: dict, status: str, reason: str, error: str = "") -> Run:
    """Write the record of a run whose process has written none, and return the run.

    Args:
        record: path of the record; it must not exist.
        job: ``workload``, ``plan`` (as a dictionary) and ``options``.
        status: how the run ended.
        reason: why.
        error: class of the error; empty if unknown.
    """
    with RecordWriter(record) as writer:
        writer.begin(**job)
        writer.write("end", status=status, reason=reason, error=error, figures={})
    return read_run(record)


def _surroundings() -> dict[str, str]:
    """Return variables that let a child import what this process can, and forbid downloads."""
    return {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "MXOPT_OFFLINE": "1"}
