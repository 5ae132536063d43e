"""Run records: what happened, as events on disk, written while it happens.

A record is a text file of JSON lines. The first line is ``start`` (format, plan, workload), the
last one ``end`` (status and the measured figures); between them stand ``environment``, ``data``,
``steps``, ``epoch`` and whatever else the workload had to say. A run that was killed has no
``end``, which is how a reader knows. Every table, plot and sentence of a report is computed from
such records.
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

from mxopt.core import old_names
from mxopt.core.atomic import unwritable
from mxopt.core.errors import RecordError
from mxopt.core.events import FORMAT, check_start, event_of, line_of
from mxopt.core.plan import Plan


class RecordWriter:
    """Writes one event a line and flushes it, so that a crash loses at most the line in work.

    The file is created exclusively: a record is never overwritten. It is locked while it is open,
    so that others can tell a run at work from one that was killed (:func:`being_written`).

    Raises:
        RecordError: the file exists already, or its folder cannot be written to.
    """

    def __init__(self, path: str | os.PathLike):
        self.path = Path(path)
        exists = self.path.is_file()
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
        self._start = time.monotonic()

    def begin(self, workload: str, plan: dict, options: dict) -> None:
        """Write the first event: what is about to run, and when."""
        started = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        about = {"workload": workload, "plan": plan, "options": options}
        self.write("start", format=FORMAT, started=started, **about)

    def write(self, event: str, **fields) -> None:
        """Append one event; ``at`` is the seconds since the record was opened.

        NaN and infinities are kept as the strings ``nan``, ``inf`` and ``-inf``, because JSON has
        no word for them and a silent ``null`` would hide a divergence.

        Raises:
            RecordError: the disk takes no more; what was written before stays.
        """
        line = {"event": event, "at": round(time.monotonic() - self._start, 6), **fields}
        self._file.write(line_of(line))
        try:
            self._file.flush()
        except OSError as error:
            raise unwritable(self.path, error) from None

    def close(self) -> None:
        """Close the file; safe to call twice."""
        with contextlib.suppress(OSError):  # of a full disk, which the last write has said already
            self._file.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


@dataclass(frozen=True)
class Run:
    """A record read back.

    Attributes:
        path: where it was read from; of a packed experiment, ``experiment.jsonl/arm-01.jsonl``.
        started: when, in UTC, as ISO 8601.
        plan: the switches it ran under.
        workload: the name of the function that did the work, and ``options`` its arguments.
        status: ``ok``, ``diverged``, ``failed`` (with ``reason``) or ``killed`` (no end was
            written).
        figures: the measured figures of the ``end`` event, such as ``seconds``.
        events: every event between start and end but ``steps``, in order; of those there may be
            too many to hold (:meth:`steps`).
        read_steps: yields its ``steps`` events, if ``path`` is not a file of its own.
    """

    path: Path
    plan: Plan
    workload: str
    options: dict = field(default_factory=dict)
    status: str = "killed"
    reason: str = ""
    figures: dict = field(default_factory=dict)
    events: list = field(default_factory=list)
    started: str = ""
    read_steps: Callable[[], Iterator[dict]] | None = field(default=None, compare=False, repr=False)

    @property
    def ok(self) -> bool:
        """Whether the run finished and no figure of it is NaN."""
        return self.status == "ok"

    def only(self, event: str) -> dict:
        """Return the first event of that name, or an empty dictionary."""
        return next((entry for entry in self.events if entry["event"] == event), {})

    def all(self, event: str) -> list[dict]:
        """Return all events of that name, in order."""
        return [entry for entry in self.events if entry["event"] == event]

    def steps(self) -> Iterator[dict]:
        """Yield the ``steps`` events in order, read from the file again, one held at a time."""
        if self.read_steps:
            return self.read_steps()
        return (entry for entry in read_events(self.path) if entry["event"] == "steps")


def being_written(path: str | os.PathLike) -> bool:
    """Whether a process that is alive has a record open for writing."""
    with open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
    return False


def read_events(path: str | os.PathLike) -> Iterator[dict]:
    """Yield the events of a record one by one, without holding the file in memory.

    A last line cut short by a crash is left out; a damaged line anywhere else is an error.

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
    """Read a record, all but its steps, however many there are.

    Raises:
        RecordError: as for :func:`read_events`, or the file is empty.
    """
    return run_of(Path(path), read_events(path))


def run_of(
    path: Path, events: Iterable[dict], read_steps: Callable[[], Iterator[dict]] | None = None
) -> Run:
    """Return the run that its events describe.

    Args:
        path: what messages call the run.
        events: from ``start`` on; ``steps`` are passed over.
        read_steps: yields the ``steps`` events, if ``path`` is not a file of its own.

    Raises:
        RecordError: there are no events.
    """
    events = [event for event in events if event["event"] != "steps"]
    if not events:
        raise RecordError(f"{path} is empty: the run ended before it began")
    switches, options = old_names.renamed(events[0]["plan"], events[0].get("options", {}))
    start, end = events[0], events[-1] if events[-1]["event"] == "end" else {}
    return Run(
        path=path,
        plan=Plan.from_dict(switches),
        workload=old_names.workload(start["workload"]),
        options=options,
        status=end.get("status", "killed"),
        reason=end.get("reason", "" if end else "the process ended without writing its result"),
        figures=end.get("figures", {}),
        events=events[1:-1] if end else events[1:],
        started=start.get("started", ""),
        read_steps=read_steps,
    )
