"""Interleaved runs: every arm of an experiment is run once, then every arm again."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path

from mxopt.core import old_names, progress_bar
from mxopt.core.errors import PlanError, RecordError
from mxopt.core.plan import Plan
from mxopt.core.records import Run, being_written, read_run
from mxopt.measure.experiment import AGAIN, Experiment, check_names
from mxopt.measure.files import DESCRIPTION, packed_path
from mxopt.measure.options import check as check_options
from mxopt.measure.process import run

# Attributes of an experiment that must not be changed after a result could have been seen.
DECIDED = ("planned", "again", "seeds", "figure", "better", "quality", "margin", "target", "goal",
           "pairs", "headline")  # fmt: skip
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
        PlanError: a lever changes something that is neither a switch nor an option (the message
            suggests the nearest name), or to a value that an option does not take.
    """
    every_option = {k: v for changes in levers.values() for k, v in changes.items()}
    check_options(workload, options, every_option)
    arms, arm_options = {"before": before}, {"before": dict(options)}
    plan, options = before, dict(options)
    for name, changes in levers.items():
        switches = {key: value for key, value in changes.items() if key in before.as_dict()}
        plan = plan.replace(**switches)
        options = {**options, **{k: v for k, v in changes.items() if k not in switches}}
        check_options(workload, options)
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
    again: str = "",
    seeds: bool = False,
    resume: bool = False,
    seen: Callable[[str, Run], None] = lambda arm, run: None,
    **description,
) -> Experiment:
    """Run every arm once, then every arm again, ``repeats`` times, and write all records.

    Each repeat begins with the next arm, so that no arm is always the first. The description of the
    experiment is written with ``planned=repeats``: runs cannot be added afterwards.

    Args:
        name: name of the experiment; its records are ``folder/name/arm-01.jsonl`` and so on.
        workload: as for :func:`mxopt.measure.run`.
        arms: plans by name; the first is the baseline.
        repeats: number of runs of each arm, decided before anything is measured.
        folder: folder of experiments.
        options: options of the workload, for all arms.
        arm_options: ``{arm: options}``, which replace some of ``options`` for single arms.
        again: name of an arm that is measured twice; its second runs are those of an arm
            ``<arm>-again``, and the ratio of the two shows the noise of the measurement.
        seeds: whether each repeat has its own seed, the same for every arm: the plan's, then the
            next number, and so on.
        resume: whether to continue an interrupted measurement: runs that ended are read and not
            repeated; runs that were killed are repeated, and their records renamed.
        seen: called with the arm and the run after every run; an error that it raises ends the
            measurement.
        **description: other attributes of :class:`Experiment`, such as ``title``.

    Returns:
        The experiment with all its runs, whether they succeeded or not.

    Raises:
        RecordError: an experiment of that name exists; with ``resume``, one with other plans,
            options or repeats, or with another goal, margin or choice of pairs.
        PlanError: the name of an arm cannot be part of a file name, an option is unknown, there is
            no arm ``again``, or a headline pair is not compared.
    """
    arm_options = dict(arm_options or {})
    if again:
        if again not in arms:
            raise PlanError(f"no arm is called {again!r}; there are {', '.join(arms)}")
        twin = again + AGAIN
        arms = {**arms, twin: arms[again]}
        arm_options.update({twin: arm_options[again]} if again in arm_options else {})
    check_names(arms)
    home = Path(folder) / name
    if packed_path(home).exists():
        raise RecordError(
            f"{packed_path(home)} already holds this experiment; delete it to measure again"
        )
    experiment = Experiment(
        name, workload, arms, options=options or {}, arm_options=arm_options,
        again=again and twin, planned=repeats, seeds=seeds, runs={arm: [] for arm in arms},
        **description,
    )  # fmt: skip
    for pair in experiment.headline:
        if tuple(pair) not in experiment.compared():
            raise PlanError(f"the headline {' → '.join(pair)} is not a pair of {name}")
    _check_begun(home, experiment, resume)
    label = experiment.title or name
    with progress_bar.track(label, repeats * len(arms)) as step:
        for repeat in range(1, repeats + 1):
            for arm in rotated(list(arms), repeat - 1):
                plan = arms[arm]
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
                seen(arm, done)
    return experiment


def rotated(names: list[str], repeat: int) -> list[str]:
    """Return names in the order of a repeat, which begins one name later than the repeat before.

    Args:
        names: the names.
        repeat: number of the repeat, from 0.
    """
    first = repeat % len(names)
    return names[first:] + names[:first]


def _check_begun(home: Path, experiment: Experiment, resume: bool) -> None:
    """Make sure that a measurement is not begun twice, nor resumed with other decisions.

    Raises:
        RecordError: the folder holds an experiment, and ``resume`` is false, or it has another
            number of runs, goal, margin, ...
    """
    path = home / DESCRIPTION
    if not path.exists():
        return
    if not resume:
        raise RecordError(
            f"{home} already holds an experiment, and records are never overwritten; "
            "choose another results folder"
        )
    try:
        begun = dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise RecordError(f"{home} does not hold a readable experiment: {error}") from None
    asked = json.loads(json.dumps({name: getattr(experiment, name) for name in DECIDED}))
    for name, value in asked.items():
        if name in begun and begun[name] != value:
            raise RecordError(
                f"{home} was begun with {name} = {begun[name]} and cannot be resumed with {value}, "
                "for it is decided before measuring; measure a new experiment in another folder"
            )


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
        set_aside(record)
        return None
    # Through JSON, as in the record: tuples become lists.
    asked = (old_names.workload(workload), plan, json.loads(json.dumps(options)))
    if (found.workload, found.plan, found.options) != asked:
        raise RecordError(
            f"{record} is the record of another run (its workload, plan or options differ), so it "
            "cannot be resumed; choose another results folder"
        )
    return found


def set_aside(record: Path) -> None:
    """Rename the record of a run that is to be repeated; it then ends in ``.killed-1`` and so on.

    Args:
        record: path of the record.
    """
    aside = (record.with_suffix(f".killed-{number}") for number in itertools.count(1))
    record.rename(next(path for path in aside if not path.exists()))
