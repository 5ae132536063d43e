"""The progress of a run in another process, read from its record while it is being written."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mxopt.core import progress_bar
from mxopt.core.events import event_of

# Seconds between two looks at the record.
EVERY = 0.5


@dataclass
class Progress:
    """How far a training has come, from the events of its record.

    Attributes:
        total: epochs of the plan.
        epochs: finished epochs.
        step: finished steps of the current epoch that are recorded.
        count: steps of an epoch; 0 until one has ended.
        begun: epochs done, and seconds since the start of the process, when training began.
        now: the same at the last event; None before training began.
    """

    total: int
    epochs: int = 0
    step: int = 0
    count: int = 0
    begun: tuple[float, float] | None = None
    now: tuple[float, float] | None = None

    def add(self, event: dict) -> None:
        """Take an event into account.

        Args:
            event: the next event of the record.
        """
        kind = event["event"]
        if kind == "steps":
            self.step += len(event["losses"])
        elif kind == "epoch":
            self.epochs, self.count, self.step = event["epoch"] + 1, self.step, 0
        elif kind == "resumed":
            self.epochs, self.step, self.begun = event["epoch"], event["step"], None
        elif kind not in ("setup", "check"):
            return
        self.now = (self.done, event["at"])
        if self.begun is None or (kind == "check" and event["step"] == 0):
            self.begun = self.now  # steps come after the score of the start

    @property
    def done(self) -> float:
        """Epochs done, with the part of the current one if the steps of an epoch are known."""
        part = self.step / self.count if self.count else 0
        return min(self.epochs + part, self.total)

    def left(self) -> float | None:
        """Return the seconds that are left from the last event on; None if nothing is known."""
        if self.now is None or self.now[0] <= self.begun[0]:
            return None
        (before, begin), (done, at) = self.begun, self.now
        return (at - begin) / (done - before) * (self.total - done)

    def __str__(self):
        if self.now is None:
            return "starting"
        if self.epochs >= self.total:
            return "testing"
        step = f", step {self.step:,}" if self.step else ""
        return f"epoch {self.epochs + 1} of {self.total}{step}"


@contextlib.contextmanager
def shown(record: Path, epochs: int, file=None):
    """Show the progress of a training on a terminal, while another process writes its record.

    Args:
        record: path of the record, which may not exist yet.
        epochs: epochs of the plan.
        file: text file to write to, by default standard error; nothing is written if it is no
            terminal.
    """
    file = file or sys.stderr
    if not file.isatty():
        yield
        return
    ended = threading.Event()
    with progress_bar.gauge("train", epochs, file) as at:
        thread = threading.Thread(target=_follow, args=(record, Progress(epochs), at, ended))
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def _follow(record: Path, progress: Progress, at: Callable, ended: threading.Event) -> None:
    """Show the progress at once, and then at regular intervals until the event is set."""
    offset, seen = 0, time.monotonic()
    while True:
        for event, end in _events(record, offset):
            progress.add(event)
            offset, seen = end, time.monotonic()
        left = progress.left()
        said = str(progress)
        if left is not None:
            left = max(left - (time.monotonic() - seen), 0)
            said += f", about {progress_bar.duration(left)} left"
        at(progress.done, said)
        if ended.wait(EVERY):
            return


def _events(record: Path, offset: int) -> Iterator[tuple[dict, int]]:
    """Yield the events behind an offset, each with the offset of the next one."""
    with contextlib.suppress(OSError, ValueError), open(record, "rb") as file:
        file.seek(offset)
        for line in file:
            if not line.endswith(b"\n"):
                return  # it is being written
            offset += len(line)
            yield event_of(line), offset
