"""Verify published results: compare pages with the records, and the records with their plans.

``mxopt verify`` reports what would make a published figure wrong: a page that differs from its
records, a figure or a loss that is not finite in a run that counts as a success, a missing run, a
run under another plan than its experiment's, and a run that did other work than its plan specifies.
"""

from __future__ import annotations

import math
from pathlib import Path

from mxopt import report
from mxopt.core.records import Run
from mxopt.measure import Experiment
from mxopt.report import results


def verify(folder: str | Path, readme: str | Path | None = None) -> list[str]:
    """Return the problems of a results folder, each a sentence that names the file.

    Args:
        folder: folder with run records, and the page written from them.
        readme: path of a README whose table is compared as well.

    Returns:
        The problems; empty if there are none.

    Raises:
        RecordError: there are no records, or one is damaged.
    """
    folder = Path(folder)
    problems = []
    for path, experiment in results.read_experiments(folder):
        problems += _runs(path, experiment)
    pages = results.pages(folder)
    if readme:
        pages[Path(readme)] = results.update_readme(readme, folder)
    for page, text in pages.items():
        problems += _drift(page, text)
    return problems


def _runs(path: Path, experiment: Experiment) -> list[str]:
    problems = []
    most = max(map(len, experiment.runs.values()))
    for arm, runs in experiment.runs.items():
        refused = bool(runs) and runs[0].status == "refused"
        if len(runs) < most and not refused:
            problems.append(f"{path}: arm {arm} has {len(runs)} runs, others have {most}")
        for run in runs:
            options = {**experiment.options, **experiment.arm_options.get(arm, {})}
            found = _run(run, experiment.arms[arm], options)
            problems += [f"{run.path}: {problem}" for problem in found]
    return problems


def _run(run: Run, plan, options) -> list[str]:
    problems = []
    differing = sorted(run.plan.replace(seed=plan.seed).diff(plan))
    if differing or run.options != options:
        differing = differing or ["its options"]
        problems.append(f"ran under another plan than its experiment's: {', '.join(differing)}")
    if not run.ok:
        return problems if run.reason else [*problems, f"ended as {run.status} without a reason"]
    for name, value in run.figures.items():
        if isinstance(value, float) and not math.isfinite(value):
            problems.append(f"counts as a success, and its {name} is {report.number(value)}")
    return problems + work(run)


def work(run: Run) -> list[str]:
    """Return what differs between the training that a run records and what its plan specifies.

    The number of epochs and the samples or tokens of all steps are compared with the plan and the
    size of the training set. Losses that are not finite are reported as well.

    Args:
        run: a run that succeeded.

    Returns:
        The problems; empty if there are none, or if the run trained nothing.
    """
    epochs, problems = run.all("epoch"), []
    lines = seen = bad = 0
    for steps in run.steps():
        lines += 1
        seen += sum(steps["sizes"])
        bad += sum(not math.isfinite(loss) for loss in steps["losses"])
    if not lines or not {"samples", "tokens"} & run.figures.keys():
        return []  # it trained nothing, or is a profile, whose epochs differ from its plan's
    if bad:
        problems.append(f"counts as a success, and {bad} of its steps' losses are not finite")
    if len(epochs) != run.plan.epochs:
        problems.append(f"trained {len(epochs)} epochs, its plan asks for {run.plan.epochs}")
    unit = "tokens" if "tokens" in run.figures else "samples"
    if seen != run.figures.get(unit):
        problems.append(f"its steps hold {seen} {unit}, its last event has {run.figures.get(unit)}")
    wanted = run.plan.epochs * run.only("data").get("train", 0)
    if unit == "samples" and seen != wanted:
        problems.append(f"trained on {seen} samples, its plan asks for {wanted}")
    if len({epoch[unit] for epoch in epochs}) > 1:
        problems.append(f"its epochs hold different numbers of {unit}")
    return problems


def _drift(page: Path, computed: str) -> list[str]:
    try:
        printed = page.read_text(encoding="utf-8")
    except OSError as error:
        return [f"{page}: cannot be read ({error.strerror})"]
    if printed == computed:
        return []
    lines = zip(printed.splitlines(), computed.splitlines())
    number = next((n for n, (old, new) in enumerate(lines, 1) if old != new), None)
    where = f"line {number}" if number else "its end"
    return [f"{page}: {where} is not what the records give; run mxopt report to write it again"]
