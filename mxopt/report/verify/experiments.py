"""The runs of an experiment, compared with each other: machine, order, number and start."""

from __future__ import annotations

import json

from mxopt import methods
from mxopt.core.errors import DeviceError
from mxopt.core.records import Run
from mxopt.machine.variables import without_folders
from mxopt.measure import Experiment, claims
from mxopt.report.verify import clocks

# Parts of the environment that differ between runs on one machine.
VARYING = ("event", "at", "openmp", "variables", "warnings")
# The name of the record, which differs in every run, the number of a process among several, and
# whether the notebook was resumed.
OWN_VARIABLES = ("MXOPT_RECORD", "MXOPT_WORKER", "MXOPT_RESUME")
# Longest time between two runs, in seconds: Python starts, and the description is written.
PAUSE = 15.0
SLACK = 1.0  # seconds by which the system's clock may be set back during a run
SAME_SCORE = 1e-3  # of equal weights on equal data


def check(experiment: Experiment) -> list[str]:
    """Return what is wrong with the runs of an experiment taken together.

    Args:
        experiment: the experiment.

    Returns:
        The problems; empty if there are none.
    """
    return [
        *_numbers(experiment),
        *_machines(experiment),
        *_order(experiment),
        *_starts(experiment),
    ]


def _numbers(experiment: Experiment):
    if not experiment.planned:
        yield "does not say how many runs were planned"
    for arm, runs in experiment.runs.items():
        wanted = 1 if runs and runs[0].status == "refused" else experiment.planned
        if experiment.planned and len(runs) != wanted:
            yield f"arm {arm} has {len(runs)} runs, {wanted} were planned"
        for number, run in enumerate(runs):
            seed = experiment.arms[arm].seed + (number if experiment.seeds else 0)
            if run.plan.seed != seed:
                yield f"{run.path}: has the seed {run.plan.seed}, run {number + 1} needs {seed}"
    for before, after in experiment.compared():
        for one, other in zip(experiment.runs[before], experiment.runs[after]):
            if one.plan.seed != other.plan.seed and "seed" not in experiment.factors(after, before):
                yield f"{other.path}: is paired with another seed, that of {one.path}"


def _machines(experiment: Experiment):
    """Compare the environments of all runs, apart from what their plans set."""
    first = None
    for run in _runs(experiment):
        found = run.only("environment")
        if not found:
            if run.ok:
                yield f"{run.path}: has no environment"
            continue
        wanted, unknown = _chosen(run.plan)
        variables = dict(found.get("variables", {}))
        for name, value in wanted.items():
            if variables.get(name) != without_folders(value):
                yield f"{run.path}: ran with {name}={variables.get(name)}, its plan sets {value}"
        skipped = {*wanted, *unknown, *OWN_VARIABLES}
        if run.plan.processes > 1:
            skipped |= {name for name in variables if name.startswith("DMLC_")}
        facts = {name: value for name, value in found.items() if name not in VARYING}
        facts["memory"] = found.get("memory", {}).get("total")
        if first is None:
            first = run, facts, variables, skipped
            continue
        differing = [
            k for k in {*facts, *first[1]} if _json(facts.get(k)) != _json(first[1].get(k))
        ]
        names = {*variables, *first[2]} - skipped - first[3]
        differing += [name for name in names if variables.get(name) != first[2].get(name)]
        if differing:
            yield f"{run.path}: ran elsewhere than {first[0].path}: {', '.join(sorted(differing))}"


def _chosen(plan) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the variables that a plan sets, and names of those whose values are unknown here."""
    wanted, unknown = {}, ()
    for method in methods.METHODS:
        try:
            wanted = methods.combined(wanted, method.environment(plan))
        except DeviceError:  # this machine lacks what the other one had
            unknown = ("LD_PRELOAD", "KMP_BLOCKTIME", "KMP_AFFINITY", "GLIBC_TUNABLES")
    return wanted, unknown


def _order(experiment: Experiment):
    """Check that runs follow each other, repeat by repeat, without holes."""
    times = [
        (clocks.begin(run), number, run)
        for runs in experiment.runs.values()
        for number, run in enumerate(runs, 1)
    ]
    times.sort(key=lambda time: time[0])
    for (begun, number, run), (later, next_number, follower) in zip(times, times[1:]):
        ended = begun + clocks.last_stamp(run)
        if next_number < number:
            yield f"{follower.path}: ran after {run.path}; arms have to be interleaved"
        if not later >= ended - SLACK:
            yield f"{follower.path}: started {ended - later:.3g} s before {run.path} ended"
        elif later - ended > PAUSE and not experiment.resumed and run.plan.processes == 1:
            yield (
                f"{follower.path}: started {later - ended:.3g} s after {run.path} ended, and the "
                "measurement was not resumed"
            )


def _starts(experiment: Experiment):
    """Check that runs which have to start from the same point do."""
    metric = "validation_" + experiment.quality.removeprefix("test_")
    starts: dict = {}
    for arm, runs in experiment.runs.items():
        for run in runs:
            key = (arm.removesuffix("-again") if experiment.again else arm, run.plan.seed)
            found = run.only("weights").get("hash"), claims.score_at_start(run, metric)
            if not run.ok or not found[0]:
                continue
            other, path = starts.setdefault(key, (found, run.path))
            if found[0] != other[0]:
                yield f"{run.path}: starts with other weights than {path}, with the same seed"
            elif None not in (found[1], other[1]) and abs(found[1] - other[1]) > SAME_SCORE:
                yield f"{run.path}: has another score at step 0 than {path}, with the same weights"
    if experiment.target and experiment.planned and experiment.goal is None:
        yield f"compares the times to a {experiment.target} that was not fixed before"
    for before, after in map(tuple, experiment.headline):
        if experiment.quality and claims.trained(experiment, after):
            start = claims.start_of(experiment, after, before)
            if start:
                yield f"headline {before} → {after}: {start}"
        for run in (*experiment.runs[before], *experiment.runs[after]):
            score = claims.score_at_start(run, experiment.target) if experiment.target else None
            if None not in (score, experiment.goal) and score >= experiment.goal:
                yield f"{run.path}: starts at {score:g}, the goal is {experiment.goal:g}"


def _runs(experiment: Experiment) -> list[Run]:
    return [run for runs in experiment.runs.values() for run in runs]


def _json(value) -> str:
    return json.dumps(value, sort_keys=True)
