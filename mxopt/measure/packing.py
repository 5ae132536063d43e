"""Pack an experiment for publication: one file instead of a folder of records."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path

from mxopt.core import atomic
from mxopt.core.errors import RecordError
from mxopt.core.events import line_of
from mxopt.core.packed import FORMAT
from mxopt.core.records import Run, being_written, read_events
from mxopt.measure.experiment import Experiment
from mxopt.measure.files import DESCRIPTION, record_files
from mxopt.measure.reading import read_experiment

# Fields of an environment event that differ between runs on one machine.
VARYING = ("event", "at", "memory", "openmp", "variables", "warnings")


def pack(folder: str | os.PathLike, path: str | os.PathLike) -> None:
    """Write the records of an experiment into one file, and check that both read the same.

    The format is described in :mod:`mxopt.core.packed`.

    Args:
        folder: folder with ``experiment.json`` and the records; it is not changed.
        path: the file to be written; it must not exist.

    Raises:
        RecordError: the file exists, a record is damaged or still being written, or a run is
            missing between two others of its arm.
    """
    folder, path = Path(folder), Path(path)
    if path.exists():
        raise RecordError(f"{path} exists, and records are never overwritten; delete it first")
    experiment = read_experiment(folder)
    files = record_files(folder, experiment.arms)
    runs = [(arm, number, file) for arm, own in files.items() for number, file in own.items()]
    for _, _, file in runs:
        if being_written(file):
            raise RecordError(f"{file} is being written by another process; wait for it")
    started = {run.path: run.started for own in experiment.runs.values() for run in own}
    # Every arm's first run, every arm's second run, ..., each time in the order of measuring.
    runs.sort(key=lambda run: (run[1], started[run[2]]))
    lines = list(map(line_of, _events(runs)))
    description = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
    head = {"event": "experiment", "format": FORMAT, "lines": 1 + len(lines), **description}
    atomic.replace_text(path, "".join([line_of(head), *lines]))
    try:
        _check_same(experiment, read_experiment(path))
    except RecordError:
        path.unlink()
        raise


def _events(runs: list[tuple[str, int, Path]]) -> Iterator[dict]:
    """Yield the events after the first line: machines, then the events of run after run."""
    environments: dict[str, list[dict]] = {}
    for _, _, file in runs:
        for event in read_events(file):
            if event["event"] == "environment":
                environments.setdefault(_machine(event), []).append(event)
    machines = {}
    for number, (key, events) in enumerate(environments.items(), start=1):
        machines[key] = number, _common(events)
        yield {"event": "machine", "machine": number, **machines[key][1]}
    for arm, repeat, file in runs:
        for event in read_events(file):
            kind = event.pop("event")
            if kind == "start":
                event = {"arm": arm, "run": repeat, **event}
            elif kind == "environment":
                number, common = machines[_machine(event)]
                event = {"machine": number, **_rest(event, common)}
            yield {"event": kind, **event}


def _machine(environment: dict) -> str:
    return json.dumps({name: environment[name] for name in environment.keys() - set(VARYING)},
                      sort_keys=True)  # fmt: skip


def _common(events: list[dict]) -> dict:
    """Return the fields that are equal in all events, without their kind and time."""
    return _shared([{k: v for k, v in e.items() if k not in ("event", "at")} for e in events])


def _shared(dictionaries: list[dict]) -> dict:
    found = {}
    for name, value in dictionaries[0].items():
        values = [one[name] for one in dictionaries if name in one]
        if len(values) < len(dictionaries):
            continue
        if all(isinstance(one, dict) for one in values):
            found[name] = _shared(values)
        elif len({json.dumps(one) for one in values}) == 1:
            found[name] = value
    return found


def _rest(whole: dict, common: dict) -> dict:
    """Return what has to be added to the common part to get the whole dictionary back."""
    found = {}
    for name, value in whole.items():
        if name not in common:
            found[name] = value
        elif isinstance(value, dict):
            rest = _rest(value, common[name])
            found.update({name: rest} if rest else {})
    return found


def _check_same(measured: Experiment, packed: Experiment) -> None:
    """Make sure that a packed experiment reads the same as its folder, steps included.

    Raises:
        RecordError: a run or the description differs.
    """
    described = dataclasses.replace(packed, runs=measured.runs) == measured
    pairs = [
        pair
        for arm in measured.runs
        for pair in itertools.zip_longest(measured.runs[arm], packed.runs.get(arm, []))
    ]
    for before, after in pairs:
        if not (described and before and after and _same(before, after)):
            raise RecordError(
                f"{before and before.path} reads differently from the packed file; not packed"
            )


def _same(before: Run, after: Run) -> bool:
    steps = itertools.zip_longest(before.steps(), after.steps())
    return dataclasses.replace(after, path=before.path) == before and all(a == b for a, b in steps)
