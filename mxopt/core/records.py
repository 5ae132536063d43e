"""Run records: the events of a run, written to disk while it runs.

A record is a text file of JSON lines. The first line is ``start`` (format, plan, workload), the
last one ``end`` (status and the measured figures). Between them are ``environment``, ``data``,
``steps``, ``epoch`` and other events of the workload. The record of a run that was killed has no
``end``. Every table, plot and sentence of a report is computed from such records.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from mxopt.core import old_names, source
from mxopt.core.atomic import unwritable
from mxopt.core.errors import RecordError
from mxopt.core.events import FORMAT, Seal, check_start, event_of, line_of
from mxopt.core.plan import Plan


class RecordWriter:
    """Writes events to a new record, one on each line, and flushes after each.

    A crash thus loses at most the line being written. A record is never overwritten. The file is
    locked while it is open, which tells a running process from a killed one
    (:func:`being_written`).

    Args:
        path: file to create; missing folders are made.

    Raises:
        RecordError: the file exists already or is a folder, or its folder cannot be written to.
    """

    def __init__(self, path: str | os.PathLike):
        self.path = Path(path)
        exists = self.path.is_file()
        if self.path.is_dir():
            raise RecordError(f"{self.path} is a folder; name a file for the record, in it")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("x", encoding="utf-8")
        except OSError as error:
            if not exists:
                raise RecordError(
                    f"cannot write to {self.path.parent} ({error.strerror}); "
                    "choose a results folder that can be written to"
                ) from None
            raise RecordError(
                f"{self.path} exists already, and records are never overwritten; "
                "choose another results folder"
            ) from None
        with contextlib.suppress(OSError):  # some network file systems have no locks
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._start, self._seal = time.monotonic(), Seal()

    def begin(self, workload: str, plan: dict, options: dict) -> None:
        """Write the ``start`` event, with the time, the commit and a hash of the package's source.

        Args:
            workload: name of the function that does the work, ``module:function``.
            plan: the switches, as :meth:`Plan.as_dict` returns them.
            options: the workload's arguments.
        """
        started = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        about = {"workload": workload, "plan": plan, "options": options}
        code = {"commit": source.commit(), "source": source.source_hash()}
        self.write("start", format=FORMAT, started=started, **about, **code)

    def write(self, event: str, **fields) -> None:
        """Append one event; its field ``at`` is the seconds since the record was opened.

        NaN and infinities are written as the strings ``nan``, ``inf`` and ``-inf``, because JSON
        cannot represent them and ``null`` would hide a divergence. The ``end`` event gets the
        field ``seal``, a hash of the whole record (:class:`mxopt.core.events.Seal`).

        Args:
            event: name of the event.
            **fields: its fields, JSON-able; NumPy scalars and paths are converted.

        Raises:
            RecordError: the file cannot be written, for example because the disk is full; earlier
                events are kept.
        """
        line = {"event": event, "at": round(time.monotonic() - self._start, 6), **fields}
        seal = self._seal.add(line)
        self._file.write(line_of({**line, "seal": seal} if event == "end" else line))
        try:
            self._file.flush()
        except OSError as error:
            raise unwritable(self.path, error) from None

    def close(self) -> None:
        """Close the file; safe to call twice."""
        with contextlib.suppress(OSError):  # of a full disk, which the last write has reported
            self._file.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


@dataclass(frozen=True)
class Run:
    """A run, as read from its record.

    Attributes:
        path: file it was read from; for a packed experiment ``experiment.jsonl/arm-01.jsonl``.
        plan: the switches of the run.
        workload: name of the function that did the work.
        options: arguments of that function.
        status: ``ok``, ``diverged``, ``refused`` (the plan cannot run on this machine), ``failed``
            or ``killed`` (no ``end`` event was written).
        reason: why the run did not end as ``ok``; empty if it did.
        error: class of the error of a run that was refused, diverged or failed, such as
            ``CapacityError``; signal of one that was killed and is not read again, such as
            ``SIGKILL``; empty if unknown, as in records of version 0.2 and before.
        figures: the measured figures of the ``end`` event, such as ``seconds``.
        events: all events between start and end, in order, except ``steps``, which may be too
            many to keep in memory (:meth:`steps`).
        started: start time in UTC, as ISO 8601.
        commit: commit of the package's checkout; empty if unknown.
        source: SHA-256 of the package's source (:func:`mxopt.core.source.source_hash`); empty in
            records of version 0.2 and before.
        read_all: function that yields all events; None if they are in the file ``path``.
    """

    path: Path
    plan: Plan
    workload: str
    options: dict = field(default_factory=dict)
    status: str = "killed"
    reason: str = ""
    error: str = ""
    figures: dict = field(default_factory=dict)
    events: list = field(default_factory=list)
    started: str = ""
    commit: str = ""
    source: str = ""
    read_all: Callable[[], Iterator[dict]] | None = field(default=None, compare=False, repr=False)

    @property
    def ok(self) -> bool:
        """Whether the run finished. A figure of it may yet be NaN, such as the rate of one step."""
        return self.status == "ok"

    def only(self, event: str) -> dict:
        """Return the first event of this name, or an empty dictionary."""
        return next((entry for entry in self.events if entry["event"] == event), {})

    def all(self, event: str) -> list[dict]:
        """Return all events of this name, in order."""
        return [entry for entry in self.events if entry["event"] == event]

    def steps(self) -> Iterator[dict]:
        """Yield the ``steps`` events in order; each is read from the file when it is needed."""
        return (entry for entry in self.replay() if entry["event"] == "steps")

    def replay(self) -> Iterator[dict]:
        """Yield all events in order, from ``start`` to ``end``, each read when it is needed."""
        return self.read_all() if self.read_all else read_events(self.path)


def being_written(path: str | os.PathLike) -> bool:
    """Return whether a running process has a record open for writing."""
    with open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
    return False


def read_events(path: str | os.PathLike) -> Iterator[dict]:
    """Yield the events of a record one by one, without reading the whole file into memory.

    A last line that a crash cut short is skipped; any other damaged line is an error.

    Raises:
        RecordError: the file cannot be read, is not a record, or has a newer format.
    """
    path = Path(path)
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                try:
                    event = event_of(line)
                except ValueError:
                    if not line.endswith("\n") and number > 1:
                        return
                    raise RecordError(f"{path}, line {number}: not an event of a run") from None
                if number == 1:
                    check_start(path, event)
                yield event
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"cannot read the run record {path}: {error}") from None


def read_run(path: str | os.PathLike) -> Run:
    """Read a record; ``steps`` events are not kept in memory.

    Raises:
        RecordError: the file cannot be read, is empty or not a record, or has a newer format.
    """
    return run_of(Path(path), read_events(path))


def run_of(
    path: Path, events: Iterable[dict], read_all: Callable[[], Iterator[dict]] | None = None
) -> Run:
    """Return the run that some events describe.

    Args:
        path: path of the run, also for messages.
        events: the events from ``start`` on; ``steps`` are skipped.
        read_all: function that yields all events; None if they are in the file ``path``.

    Raises:
        RecordError: there are no events.
    """
    events = [event for event in events if event["event"] != "steps"]
    if not events:
        raise RecordError(f"{path} is empty: the run ended before its first event")
    switches, options = old_names.renamed(events[0]["plan"], events[0].get("options", {}))
    start, end = events[0], events[-1] if events[-1]["event"] == "end" else {}
    return Run(
        path=path,
        plan=Plan.from_dict(switches),
        workload=old_names.workload(start["workload"]),
        options=options,
        status=end.get("status", "killed"),
        reason=end.get("reason", "" if end else "the process ended without writing its result"),
        error=end.get("error", ""),
        figures=end.get("figures", {}),
        events=events[1:-1] if end else events[1:],
        started=start.get("started", ""),
        commit=start.get("commit", ""),
        source=start.get("source", ""),
        read_all=read_all,
    )
