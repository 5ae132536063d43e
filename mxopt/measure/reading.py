"""Read experiments and their records, of this version and of older ones."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path

from mxopt.core import old_names, packed
from mxopt.core.errors import RecordError
from mxopt.core.plan import Plan
from mxopt.core.records import read_run
from mxopt.measure.experiment import AGAIN, Experiment, check_names
from mxopt.measure.files import DESCRIPTION, record_files


def read_experiment(path: str | os.PathLike) -> Experiment:
    """Read an experiment and the records of all its runs.

    Args:
        path: folder of its records, or the file that they are packed into.

    Returns:
        The experiment; names of switches and options in old records are replaced by today's. It is
        not to be changed: a packed file that did not change gives the same object again.

    Raises:
        RecordError: ``path`` holds no experiment, a record is damaged, a run between two others is
            missing (the pairs would not match), or there are more runs than planned.
    """
    path = Path(path)
    if not path.is_file():
        return _read(path, is_packed=False)
    state = path.stat()
    return _packed(path, state.st_mtime_ns, state.st_size)


# Pages and prose read the same file again and again.
@functools.lru_cache(maxsize=256)
def _packed(path: Path, changed: int, size: int) -> Experiment:
    return _read(path, is_packed=True)


def _read(path: Path, is_packed: bool) -> Experiment:
    description, runs = packed.read_packed(path) if is_packed else ({}, {})
    try:
        if not is_packed:
            description = json.loads((path / DESCRIPTION).read_text(encoding="utf-8"))
        arms = _renamed(description)
        check_names(arms)
        if description.get("again", "").removesuffix(AGAIN) not in {"", *arms}:
            raise ValueError(f"no arm is repeated by {description['again']!r}")
        description["workload"] = old_names.workload(description["workload"])
        experiment = Experiment(**description, arms=arms, runs=runs)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise RecordError(f"{path} does not hold a readable experiment: {error}") from None
    if not is_packed:
        for arm, records in record_files(path, arms).items():
            if missing := set(range(1, len(records) + 1)) - records.keys():
                raise RecordError(f"{path}: run {min(missing)} of {arm} is missing")
            runs[arm] = [read_run(record) for record in records.values()]
    _check_planned(path, experiment)
    return experiment


def _check_planned(path: Path, experiment: Experiment) -> None:
    """Make sure that no runs were added after the number of runs had been planned."""
    for arm, runs in experiment.runs.items():
        if experiment.planned and len(runs) > experiment.planned:
            raise RecordError(
                f"{path} has {len(runs)} runs of {arm}, and {experiment.planned} were planned; "
                "for more runs, measure a new experiment"
            )


def _renamed(description: dict) -> dict[str, Plan]:
    """Replace old names in an experiment's description, and return the plans of its arms."""
    options, own = description.get("options", {}), description.get("arm_options", {})
    arms = {}
    for name, plan in description.pop("arms").items():
        switches, _ = old_names.renamed(plan, {**options, **own.get(name, {})})
        arms[name] = Plan.from_dict(switches)
    description["options"] = old_names.renamed({}, options)[1]
    description["arm_options"] = {arm: old_names.renamed({}, o)[1] for arm, o in own.items()}
    return arms
