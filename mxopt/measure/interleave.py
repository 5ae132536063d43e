"""Interleaved runs: every arm of an experiment is run once, then every arm again."""

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
    """Return arms that each have one lever more than the arm before.

    Args:
        before: plan of the first arm, which is called ``before``.
        levers: ``{arm: {name: value}}``, what each further arm changes: switches of the plan, and
            options of the workload.
        options: options of the first arm.
        workload: what the arms run, ``module:function``; it determines which options exist.

    Returns:
        ``arms`` and ``arm_options`` for :func:`interleave`.

    Raises:
        PlanError: a lever changes something that is neither a switch nor an option; the message
            suggests the nearest name.
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
    """Run every arm once, then every arm again, ``repeats`` times, and write all records.

    Args:
        name: name of the experiment; its records are ``folder/name/arm-01.jsonl`` and so on.
        workload: as for :func:`mxopt.measure.run`.
        arms: plans by name; the first is the baseline.
        repeats: number of runs of each arm.
        folder: folder of experiments.
        options: options of the workload, for all arms.
        arm_options: ``{arm: options}``, which replace some of ``options`` for single arms.
        seeds: whether each repeat has its own seed, the same for every arm: the plan's, then the
            next number, and so on.
        resume: whether to continue an interrupted measurement: runs that ended are read and not
            repeated; runs that were killed are repeated, and their records renamed.
        **description: other attributes of :class:`Experiment`, such as ``title``.

    Returns:
        The experiment with all its runs, whether they succeeded or not.

    Raises:
        RecordError: an experiment of that name exists; with ``resume``, one with other plans or
            options.
        PlanError: the name of an arm cannot be part of a file name, or an option is unknown.
    """
    check_names(arms)
    home = Path(folder) / name
    if packed_path(home).exists():
        raise RecordError(
            f"{packed_path(home)} already holds this experiment; delete it to measure again"
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
                    continue  # this machine would refuse it again
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
    """Return the run of an earlier measurement, if it ended; rename the record of a killed run.

    Args:
        record: path of the record, which may not exist.
        workload: the workload that the run must have.
        plan: the plan that it must have.
        options: the options that it must have.

    Returns:
        The run; None if it has to be run (again).

    Raises:
        RecordError: the record has another workload, plan or options, or another process is still
            writing it.
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
    # Through JSON, as in the record: tuples become lists.
    asked = (old_names.workload(workload), plan, json.loads(json.dumps(options)))
    if (found.workload, found.plan, found.options) != asked:
        raise RecordError(
            f"{record} is the record of another run (its workload, plan or options differ), so it "
            "cannot be resumed; choose another results folder"
        )
    return found
