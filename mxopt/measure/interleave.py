"""Turns: every arm of an experiment is run once, then every arm again."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
from pathlib import Path

from mxopt.core import old_names, progress_bar
from mxopt.core.errors import RecordError
from mxopt.core.plan import Plan
from mxopt.core.records import Run, being_written, read_run
from mxopt.measure.experiment import Experiment, check_names
from mxopt.measure.files import packed_path
from mxopt.measure.options import check as check_options
from mxopt.measure.process import run

TRAIN = "mxopt.chapter.workloads:train"


def ladder(
    before: Plan, levers: dict[str, dict], options: dict, workload: str = TRAIN
) -> tuple[dict, dict]:
    """Return arms that climb from a plan, each with one lever more than the arm before it.

    Args:
        before: the plan of the first arm, which is called ``before``.
        levers: for each further arm what it changes: switches of the plan, and options of the
            workload under any other name.
        options: of the first arm.
        workload: what the arms run; it says which options there are.

    Returns:
        The arms for :func:`interleave`, and its ``arm_options``.

    Raises:
        PlanError: a lever changes what is neither a switch nor an option; the nearest name is
            suggested.
    """
    every_option = {k: v for changes in levers.values() for k, v in changes.items()}
    check_options(workload, options, every_option)
    arms, arm_options = {"before": before}, {"before": dict(options)}
    plan, options = before, dict(options)
    for name, changes in levers.items():
        switches = {key: value for key, value in changes.items() if key in before.as_dict()}
        plan = plan.replace(**switches)
        options = {**options, **{k: v for k, v in changes.items() if k not in switches}}
        arms[name], arm_options[name] = plan, options
    return arms, arm_options


def interleave(
    name: str,
    workload: str,
    arms: dict[str, Plan],
    *,
    repeats: int,
    folder: str | os.PathLike,
    options: dict | None = None,
    arm_options: dict | None = None,
    seeds: bool = False,
    resume: bool = False,
    **description,
) -> Experiment:
    """Run every arm once, then every arm again, ``repeats`` times, and keep all of it.

    Args:
        name: the experiment's name; its records go to ``folder/name``, as ``arm-01.jsonl``.
        workload: as for :func:`run`.
        arms: plans by name; the first is the baseline.
        repeats: runs of each arm.
        folder: where experiments are kept.
        options: arguments of the workload; ``arm_options`` replaces some for single arms.
        seeds: whether each repeat has a seed of its own, the same for every arm: the plan's, the
            one after it, and so on.
        resume: whether to go on where an interrupted measurement stopped: a run that ended is
            read and not run again; one that was killed is, and its record kept under another name.
        description: the other attributes of :class:`Experiment`, such as ``title``.

    Raises:
        RecordError: there is an experiment of that name already; or, to be resumed, one that is
            not the same.
        PlanError: an arm's name cannot be part of a file's name.
    """
    check_names(arms)
    home = Path(folder) / name
    if packed_path(home).exists():
        raise RecordError(
            f"{packed_path(home)} is this experiment already; delete it to measure anew"
        )
    experiment = Experiment(
        name, workload, arms, options=options or {}, arm_options=arm_options or {},
        runs={arm: [] for arm in arms}, **description,
    )  # fmt: skip
    label = experiment.title or name
    with progress_bar.track(label, repeats * len(arms)) as step:
        for repeat in range(1, repeats + 1):
            for arm, plan in arms.items():
                step(f"{arm}, run {repeat} of {repeats}")
                if repeat > 1 and experiment.runs[arm][0].status == "refused":
                    continue  # what this machine cannot do it cannot do the next time either
                both = {**experiment.options, **experiment.arm_options.get(arm, {})}
                if seeds:
                    plan = plan.replace(seed=plan.seed + repeat - 1)
                record = home / f"{arm}-{repeat:02d}.jsonl"
                done = left_over(record, workload, plan, both) if resume else None
                if done:
                    experiment = dataclasses.replace(experiment, resumed=experiment.resumed + 1)
                else:
                    done = run(workload, plan, record, both)
                experiment.runs[arm].append(done)
                if repeat == 1 or resume:
                    experiment.save(home)
    return experiment


def left_over(record: Path, workload: str, plan: Plan, options: dict) -> Run | None:
    """Return the run of a record that is there and ended; put one that was killed aside.

    Raises:
        RecordError: it is the record of another workload, plan or options, or of a run that is
            still at work.
    """
    if not record.exists():
        return None
    if being_written(record):
        raise RecordError(
            f"{record} is being written by another process; wait for it, or choose another results "
            "folder"
        )
    try:
        found = read_run(record)
    except RecordError:
        found = None
    if found is None or found.status == "killed":
        aside = (record.with_suffix(f".killed-{number}") for number in itertools.count(1))
        record.rename(next(path for path in aside if not path.exists()))
        return None
    # Through JSON, as the record has them: tuples become lists.
    asked = (old_names.workload(workload), plan, json.loads(json.dumps(options)))
    if (found.workload, found.plan, found.options) != asked:
        raise RecordError(
            f"{record} is a run of something else than what is to be resumed (its plan or its "
            "options differ); choose another results folder"
        )
    return found
