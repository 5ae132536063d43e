"""The figures of a run, computed again from its events."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable

from mxopt import report
from mxopt.core.records import Run

WORKLOADS = "mxopt.chapter.workloads:"
# Figures that are parts of a whole.
SHARES = ("mIoU", "PixAcc", "pixAcc", "accuracy")
# Figures that may be negative: the sum of normalised pixels.
# "waiting" is one minus a share that is computed from CPU seconds, Python's own among them.
SIGNED = ("checksum", "waiting")


def trained(run: Run) -> bool:
    """Return whether a run trained by the training loop, from its first step on."""
    return bool(run.only("weights")) and not run.all("resumed")


def check(run: Run) -> list[str]:
    """Return what is wrong with the figures of a run that succeeded.

    Args:
        run: the run; its workload determines how its figures follow from its events.

    Returns:
        The problems; empty if there are none.
    """
    problems = list(_ranges(run))
    if trained(run):
        problems += _epochs(run)
        if "train_loss" in run.figures:
            problems += _differing(run, _of_training(run)) + _start(run)
    problems += _differing(run, OTHERS.get(run.workload, lambda run: {})(run))
    return problems + work(run)


def _ranges(run: Run):
    for name, value in run.figures.items():
        if not isinstance(value, (int, float)):
            continue
        low, high = _limits(name)
        if not math.isfinite(value):
            yield f"counts as a success, and its {name} is {report.number(value)}"
        elif not low <= value <= high:
            yield f"its {name} is {value:g}, which is impossible"


def _limits(name: str) -> tuple[float, float]:
    """Return the smallest and the largest value that a figure can have."""
    if name.endswith(SHARES):
        return 0, 1
    if name.endswith(("bleu", "chrf")):
        return 0, 100
    return (-math.inf if name in SIGNED else 0), math.inf


def _epochs(run: Run) -> list[str]:
    """Compare each epoch with the parts that it consists of."""
    seconds: dict = {}
    for part in run.steps():
        seconds[part["epoch"]] = seconds.get(part["epoch"], 0.0) + part.get("seconds", math.nan)
    return [
        f"epoch {epoch['epoch']} took {epoch['seconds']:.6g} s, its parts "
        f"{seconds.get(epoch['epoch'], 0.0):.6g} s"
        for epoch in run.all("epoch")
        if not _same(epoch["seconds"], seconds.get(epoch["epoch"], 0.0))
    ]


def _of_training(run: Run) -> dict:
    """Return the figures that :func:`mxopt.train.fit.fit` computes from what it records."""
    epochs, setup = run.all("epoch"), run.only("setup")
    if not epochs:
        return {"seconds": math.nan}
    unit = "tokens" if "tokens" in epochs[-1] else "samples"
    total = sum(epoch["seconds"] for epoch in epochs)
    size = sum(epoch[unit] for epoch in epochs)
    loss = count = 0.0
    first = 0
    for part in run.steps():
        first = first or part["sizes"][0]
        if part["epoch"] == epochs[-1]["epoch"]:
            loss += math.fsum(mean * n for mean, n in zip(part["losses"], part["sizes"]))
            count += sum(part["sizes"])
    steady = total - run.figures.get("first_step_seconds", math.nan)
    return {
        "seconds": total,
        "cpu_seconds": sum(epoch.get("cpu_seconds", math.nan) for epoch in epochs),
        "training_seconds": total + setup.get("preprocessing_seconds", math.nan),
        "setup_seconds": setup.get("seconds"),
        unit: size,
        f"{unit}_per_second": (size - first) / steady if steady > 0 else None,
        "train_loss": loss / count if count else math.nan,
        **{name: value for name, value in epochs[-1].items() if name.startswith("validation_")},
    }


def _start(run: Run) -> list[str]:
    """Return what is missing at the start of a training run that evaluates."""
    scores = {name for epoch in run.all("epoch") for name in epoch if name[:11] == "validation_"}
    begun = [check for check in run.all("check") if check.get("progress") == 0]
    if scores and len(begun) != 1:
        return [f"has {len(begun)} checks before its first step, and needs one"]
    lacking = sorted(scores - begun[0].keys()) if scores else []
    return [f"its check before the first step lacks {', '.join(lacking)}"] if lacking else []


def _of_profile(run: Run) -> dict:
    epochs = run.all("epoch")
    return {"seconds": epochs[-1]["seconds"] if epochs else math.nan}


def _of_loading(run: Run) -> dict:
    seconds = [epoch["seconds"] for epoch in run.all("epoch")]
    if not seconds:
        return {"seconds": math.nan}
    return {
        "seconds": statistics.median(seconds[1:] or seconds),
        "first_epoch_seconds": run.figures.get("preparation_seconds", math.nan) + seconds[0],
    }


def _of_chains(run: Run) -> dict:
    options = {"size": 500, "count": 4, "length": 20, **run.options}  # the workload's defaults
    operations = options["count"] * options["length"] * 2 * options["size"] ** 3
    return {"gflop_per_second": operations / run.figures.get("seconds", math.nan) / 1e9}


OTHERS: dict[str, Callable[[Run], dict]] = {
    f"{WORKLOADS}profile": _of_profile,
    f"{WORKLOADS}load": _of_loading,
    f"{WORKLOADS}chains": _of_chains,
}


def _differing(run: Run, computed: dict) -> list[str]:
    return [
        f"its {name} is {run.figures.get(name)}, its events give {value}"
        for name, value in computed.items()
        if value is not None and not _same(run.figures.get(name), value)
    ]


def _same(one, other) -> bool:
    """Return whether two figures are equal but for the order in which they were summed."""
    try:
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-9)
    except TypeError:
        return one == other


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
        if "sizes" not in steps:
            continue  # of a workload with steps of its own
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
    if run.plan.sampling_start is not None:
        return problems  # epochs of a part of the samples
    wanted = run.plan.epochs * run.only("data").get("train", 0)
    if unit == "samples" and run.plan.processes == 1 and seen != wanted:
        problems.append(f"trained on {seen} samples, its plan asks for {wanted}")
    if len({epoch[unit] for epoch in epochs}) > 1:
        problems.append(f"its epochs hold different numbers of {unit}")
    return problems
