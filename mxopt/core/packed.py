"""Packed experiments: an experiment and all its runs in one file of JSON lines.

Measuring writes a folder with ``experiment.json`` and one record ``arm-01.jsonl`` for each run.
Published experiments are packed (:func:`mxopt.measure.pack`): one file has the same content:

    {"event": "experiment", "format": 1, "lines": 38, "name": "chains", "arms": {...}, ...}
    {"event": "machine", "machine": 1, "python": "3.11.7", "cpu": {...}, ...}
    {"event": "start", "arm": "naive", "run": 1, "at": 3.2e-05, ...}
    {"event": "environment", "machine": 1, "at": 1.05, "memory": {"available": 24038084608}, ...}
    {"event": "end", "at": 2.13, ...}
    {"event": "start", "arm": "threaded", "run": 1, ...}

The first line is the content of ``experiment.json`` and the number of lines in the file. A
``machine`` line has what the ``environment`` events of several runs have in common; each of these
events has the number of its machine and whatever differs. All other lines are as recorded.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

from mxopt.core import records
from mxopt.core.errors import PlanError, RecordError
from mxopt.core.events import check_start, event_of
from mxopt.core.records import Run, run_of

FORMAT = 1


def read_packed(path: Path) -> tuple[dict, dict[str, list[Run]]]:
    """Read a packed experiment; ``steps`` events are not kept in memory.

    Returns:
        The description, as in ``experiment.json``, and each arm's runs in order.

    Raises:
        RecordError: the file cannot be read, is damaged, has too few or too many lines, or has a
            newer format; the message gives the line.
    """
    lines = _lines(path)
    description = _description(path, next(lines, (1, 0, {}))[2])
    wanted, machines, line = description.pop("lines", None), [], 1
    starts: list[tuple[int, int, str]] = []
    events: list[list[dict]] = []
    counts = dict.fromkeys(description["arms"], 0)
    for line, offset, event in lines:
        kind = event.pop("event")
        if kind == "start":
            arm, number = event.pop("arm", None), event.pop("run", None)
            _check_number(f"{path}, line {line}", arm, number, counts)
            check_start(f"{path}, line {line}", {"event": kind, **event})
            counts[arm] = number
            starts.append((line, offset, arm))
            events.append([])
        elif kind == "machine" and not starts:
            if event.pop("machine", None) != len(machines) + 1:
                raise RecordError(f"{path}, line {line}: machine {len(machines) + 1} expected")
            machines.append(event)
            continue
        elif not starts:
            raise RecordError(f"{path}, line {line}: {kind!r} comes before the start of a run")
        elif kind == "environment" and "machine" in event:
            number = event.pop("machine")
            if number not in range(1, len(machines) + 1):
                raise RecordError(f"{path}, line {line}: there is no machine {number!r}")
            event = joined(machines[number - 1], event)
        if kind != "steps":
            events[-1].append({"event": kind, **event})
    if line != wanted:
        raise RecordError(
            f"{path}, line {line}: the file ends here, and its first line announces {wanted} lines"
        )
    runs: dict[str, list[Run]] = {arm: [] for arm in counts}
    for (first, offset, arm), own in zip(starts, events):
        name = path / f"{arm}-{len(runs[arm]) + 1:02d}.jsonl"
        replay = functools.partial(_replay, path, offset, first, machines)
        try:
            runs[arm].append(run_of(name, own, replay))
        except PlanError as error:
            raise RecordError(f"{path}, line {first}: {error}") from None
    return description, runs


def read_run(path: str | os.PathLike) -> Run:
    """Read one run, from its own record or from a packed experiment.

    Args:
        path: path of a record, such as ``engine/naive-01.jsonl``; or of a packed experiment
            followed by the name of a run in it, such as ``engine.jsonl/naive-01.jsonl``.

    Raises:
        RecordError: the file cannot be read or is damaged (see
            :func:`mxopt.core.records.read_run` and :func:`read_packed`), or the experiment has
            no such run, or no run of it is named.
    """
    path = Path(path)
    if not path.parent.is_file():
        if _is_packed(path):
            raise RecordError(f"{path} is a packed experiment; name a run in it, {_such_as(path)}")
        return records.read_run(path)
    found = itertools.chain(*read_packed(path.parent)[1].values())
    run = next((run for run in found if run.path == path), None)
    if run is None:
        raise RecordError(
            f"{path.parent} holds no run {path.stem}; name one that it has, {_such_as(path.parent)}"
        )
    return run


def _is_packed(path: Path) -> bool:
    """Return whether a file begins as a packed experiment does."""
    try:
        with path.open("rb") as file:
            return event_of(file.readline())["event"] == "experiment"
    except (OSError, ValueError):
        return False


def _such_as(path: Path) -> str:
    """Return an example of a run in a packed experiment, and the names of its arms."""
    arms = list(_description(path, next(_lines(path))[2])["arms"])
    return f"such as {path}/{arms[0]}-01.jsonl (arms: {', '.join(arms)})"


def joined(common: dict, rest: dict) -> dict:
    """Merge two dictionaries recursively and return the result; the inputs are unchanged.

    Args:
        common: the first dictionary.
        rest: the second one; its values replace those of the first, except dictionaries, which
            are merged.
    """
    found = dict(common)
    for key, value in rest.items():
        inner = isinstance(value, dict) and isinstance(found.get(key), dict)
        found[key] = joined(found[key], value) if inner else value
    return found


def _lines(path: Path, offset: int = 0, first: int = 1) -> Iterator[tuple[int, int, dict]]:
    """Yield each line's number, its offset in bytes, and its event."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            for number, line in enumerate(file, first):
                try:
                    event = event_of(line)
                except ValueError:
                    raise RecordError(f"{path}, line {number}: not an event of a run") from None
                yield number, offset, event
                offset += len(line)
    except OSError as error:
        raise RecordError(f"cannot read the experiment {path}: {error}") from None


def _replay(path: Path, offset: int, first: int, machines: list[dict]) -> Iterator[dict]:
    """Yield the events of the run that starts at an offset, as in its own record."""
    for line, _, event in _lines(path, offset, first):
        if event["event"] == "start":
            if line > first:
                return
            event = {k: v for k, v in event.items() if k not in ("arm", "run")}
        elif event["event"] == "environment" and "machine" in event:
            event = joined(machines[event.pop("machine") - 1], event)
        yield event


def _description(path: Path, header: dict) -> dict:
    """Return the description of the experiment that the first line has."""
    written, arms = header.pop("format", None), header.get("arms")
    if header.pop("event", "") != "experiment" or not isinstance(arms, dict):
        raise RecordError(f"{path}, line 1: not the description of an experiment")
    if type(written) is not int or written > FORMAT:
        raise RecordError(
            f"{path} has format {written!r}, and this mxopt reads up to {FORMAT}; install a newer "
            "mxopt to read it"
        )
    return header


def _check_number(place: str, arm, number, counts: dict[str, int]) -> None:
    if not isinstance(arm, str) or arm not in counts:
        raise RecordError(f"{place}: a run of {arm!r}, which is not an arm")
    if type(number) is not int or number < 1:
        raise RecordError(f"{place}: a run of {arm} has the number {number!r}")
    if number <= counts[arm]:
        raise RecordError(f"{place}: run {number} of {arm} occurs twice")
    if number > counts[arm] + 1:
        raise RecordError(f"{place}: run {number} of {arm}, but run {counts[arm] + 1} is missing")
