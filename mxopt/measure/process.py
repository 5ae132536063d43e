"""One run: a workload under a plan, in a process of its own, leaving a record."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from mxopt import engine
from mxopt.errors import DeviceError, RecordError
from mxopt.plan import Plan
from mxopt.records import RecordWriter, Run, read_run


def run(workload: str, plan: Plan, record: str | os.PathLike, options: dict | None = None) -> Run:
    """Run a workload under a plan in a process of its own and return its record.

    Args:
        workload: ``module:function``; called as ``function(plan, write, **options)`` and returns
            a dictionary of figures.
        plan: its engine and threads become the environment of the process.
        record: the file to be written; it must not exist.
        options: JSON-able arguments of the workload.

    The process downloads nothing: fetch data first (``mxopt.datasets.fetch``), or the run takes
    the stand-in where there is one.

    Returns:
        The run, whatever became of it: look at ``run.status``.

    Raises:
        RecordError: the record exists, or cannot be written, not even its first line.
    """
    job = {"workload": workload, "plan": plan.as_dict(), "options": options or {}}
    RecordWriter(record).close()
    Path(record).unlink()
    try:
        surroundings = engine.environment(plan)
    except DeviceError as error:
        return _without_a_child(record, job, "refused", str(error))
    asked = {**job, "record": os.fspath(Path(record).absolute()), "parent": os.getpid()}
    child = subprocess.run(
        [sys.executable, "-m", "mxopt.measure"],
        input=json.dumps(asked),
        env={**os.environ, **_surroundings(), **surroundings},
        text=True,
        capture_output=True,
    )
    if not Path(record).exists():
        return _without_a_child(record, job, "failed", _last_words(child))
    try:
        done = read_run(record)
    except RecordError as error:
        raise RecordError(f"{error} ({_ending(child)})") from None
    if done.status == "killed":
        done = dataclasses.replace(done, reason=f"{done.reason} ({_ending(child)})")
    return done


def _ending(child: subprocess.CompletedProcess) -> str:
    """Say how a process ended that left no result: by a signal, or with its last words."""
    by_signal = child.returncode < 0
    return signal.Signals(-child.returncode).name if by_signal else _last_words(child)


def _last_words(child: subprocess.CompletedProcess) -> str:
    """Return the last line of a process's errors; MXNet logs after it, each line with its time."""
    lines = [line for line in child.stderr.splitlines() if line and not line.startswith("[")]
    return lines[-1] if lines else "no message"


def _without_a_child(record, job: dict, status: str, reason: str) -> Run:
    with RecordWriter(record) as writer:
        writer.begin(**job)
        writer.write("end", status=status, reason=reason, figures={})
    return read_run(record)


def _surroundings() -> dict[str, str]:
    """Let the child import what this process can, and download nothing."""
    return {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "MXOPT_OFFLINE": "1"}
