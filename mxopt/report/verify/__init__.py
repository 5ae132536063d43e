"""Verify published results: records, the pages and pictures made from them, and prose.

``mxopt verify`` computes again whatever follows from something else, and reports each difference:

- the figures of a run from its epochs, and those from its steps (:mod:`.figures`);
- the seconds of its parts from the time stamps between which they lie (:mod:`.clocks`);
- machine, number, seeds, order and start of the runs of an experiment (:mod:`.experiments`), and
  the code that made those of a notebook (:mod:`.code`);
- pages, pictures and the figures within sentences from the records (:mod:`.pages`,
  :mod:`.pictures`, :mod:`mxopt.report.prose`).

A forger therefore has to change everything that follows from a figure, in all records at once. A
whole record that was invented consistently is not found out, nor a test score that was raised in
the last event before the seal was computed again: for this, run the recorded plan again at the
recorded commit (``mxopt again``), on a machine of the same kind. To exclude it, someone else would
have to measure, or a trusted time stamp would have to be taken of each record while it is written.
"""

from __future__ import annotations

from pathlib import Path

from mxopt.core.errors import RecordError
from mxopt.core.events import Seal
from mxopt.core.records import Run
from mxopt.measure import Experiment, find_experiments, read_experiment
from mxopt.report import results
from mxopt.report.verify import clocks, code, experiments, figures, pages, pictures


def verify(folder: str | Path, readme: str | Path | None = None) -> list[str]:
    """Return the problems of a results folder, each a sentence that names the file.

    Args:
        folder: folder with run records, and the page written from them.
        readme: path of a README whose table is compared as well. If the folder that holds it has
            the source of this package, the other pages of the repository are compared, too.

    Returns:
        The problems; empty if there are none.

    Raises:
        RecordError: there are no experiments.
    """
    folder = Path(folder)
    found, problems = [], []
    for path in find_experiments(folder):
        try:
            found.append((path, read_experiment(path)))
        except RecordError as error:
            problems.append(str(error))
    if not found and not problems:
        raise results.none_found(folder)
    for path, experiment in found:
        problems += _plans(path, experiment)
        if any(run.source for run in _runs(experiment)):
            problems += _records(path, experiment)
            problems += pictures.check(path, experiment)
            problems += code.check(_runs(experiment))
        else:
            problems.append(f"{path}: made by version 0.2 or before, and cannot be verified")
    return problems if len(found) == 0 else problems + pages.check(folder, readme)


def _plans(path: Path, experiment: Experiment) -> list[str]:
    """Compare plans, options and status of runs with the experiment; any version has these."""
    problems = []
    most = max(map(len, experiment.runs.values()))
    for arm, runs in experiment.runs.items():
        refused = bool(runs) and runs[0].status == "refused"
        if len(runs) < most and not refused:
            problems.append(f"{path}: arm {arm} has {len(runs)} runs, others have {most}")
        for run in runs:
            options = {**experiment.options, **experiment.arm_options.get(arm, {})}
            plan = experiment.arms[arm]
            differing = sorted(run.plan.replace(seed=plan.seed).diff(plan))
            if differing or run.options != options or run.workload != experiment.workload:
                names = ", ".join(differing or ["its options or its workload"])
                problems.append(
                    f"{run.path}: ran under another plan than its experiment's: {names}"
                )
            if not run.ok and not run.reason:
                problems.append(f"{run.path}: ended as {run.status} without a reason")
            if run.ok and not run.source:
                problems += [f"{run.path}: {problem}" for problem in figures.work(run)]
    return problems


def _records(path: Path, experiment: Experiment) -> list[str]:
    problems = [
        problem if str(path) in problem else f"{path}: {problem}"
        for problem in experiments.check(experiment)
    ]
    for run in _runs(experiment):
        found = clocks.check(run) + (figures.check(run) if run.ok else []) + _seal(run)
        problems += [f"{run.path}: {problem}" for problem in found]
    return problems


def _seal(run: Run) -> list[str]:
    seal, last = Seal(), {}
    for last in run.replay():
        computed = seal.add(last)
    if last["event"] == "end" and last.get("seal") != computed:
        return ["was changed after it was written: its seal does not fit"]
    return []


def _runs(experiment: Experiment) -> list[Run]:
    return [run for runs in experiment.runs.values() for run in runs]
