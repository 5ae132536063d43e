"""What a run cost until it reached a goal, beside entries of public benchmarks.

DAWNBench's cost of an entry was the time of its training multiplied by the public price of its
machines. Its last entries are of March 2020.
"""

from __future__ import annotations

from typing import NamedTuple

from mxopt.core.errors import PlanError, RecordError
from mxopt.core.records import Run
from mxopt.measure.target import reach
from mxopt.report.table import Table, number

NOTE = (
    "The rows cannot be compared: tasks, data, goals and years differ, entries of benchmarks were "
    "tuned by whole teams, and ran on machines of another size."
)
# Fields of an epoch that nobody trains for.
NO_GOALS = {"event", "at", "epoch", "step"}


class Entry(NamedTuple):
    """An entry of a public benchmark.

    Attributes:
        task: what was trained, to which goal.
        who: date, network and framework.
        machines: what it ran on.
        seconds: until the goal was reached; None if only the cost is known.
        dollars: cost; None if only the time is known.
    """

    task: str
    who: str
    machines: str
    seconds: float | None = None
    dollars: float | None = None


_IMAGENET = "ImageNet to 93 % in the top 5"
# https://dawn.cs.stanford.edu/benchmark, "Training Time" and "Training Cost", and the page on its
# results of April 2018 for the first entry.
ENTRIES = (
    Entry(_IMAGENET, "the first entries", "public cloud", 902_520, 1_112.64),
    Entry(_IMAGENET, "September 2018, ResNet-50, PyTorch", "16 p3.16xlarge", 1_086),
    Entry(_IMAGENET, "December 2018, ResNet-50, MXNet", "128 V100", 562),
    Entry(_IMAGENET, "March 2020, ResNet-50, TensorFlow", "16 ecs.gn6e-c12g1.24xlarge", 158),
    Entry(_IMAGENET, "March 2020, ResNet-50", "public cloud", None, 7.43),
)


def cost(run: Run, price: float, goal: tuple[str, float] | None = None) -> tuple[float, float]:
    """Return the seconds of a training and its cost.

    Args:
        run: a training that ended well.
        price: price of an hour of the machine, in any currency.
        goal: name of a validation figure, and the value until which the seconds count; without it
            they are those of the whole training, preparation included.

    Raises:
        PlanError: the price is not above 0.
        RecordError: the run is no training, its epochs have no such figure, or it did not reach
            the goal.
    """
    if not price > 0:
        raise PlanError(f"price={price:g} must be above 0, the price of an hour of the machine")
    if not run.ok or "training_seconds" not in run.figures:
        raise RecordError(f"{run.path} is no training that ended well ({run.status})")
    seconds = run.figures["training_seconds"]
    if goal:
        name, value = goal
        known = sorted({key for event in run.all("epoch") for key in event} - NO_GOALS)
        if name not in known:
            raise RecordError(
                f"epochs of {run.path} have no {name!r}; there are {', '.join(known)}"
            )
        found = reach(run, value, name)
        if not found.reached:
            raise RecordError(f"{run.path} never reached a {name} of {value:g}")
        seconds = found.seconds
    return seconds, price * seconds / 3600


def table(
    run: Run, price: float, goal: tuple[str, float] | None = None, currency: str = "USD"
) -> Table:
    """Return a table of a run's time and cost, and those of public entries.

    Args:
        run: as for :func:`cost`.
        price: as for :func:`cost`.
        goal: as for :func:`cost`.
        currency: that of the price.
    """
    seconds, spent = cost(run, price, goal)
    cpu = run.only("environment")["cpu"]
    what = str(run.options.get("recipe", "segmentation"))
    what += f" to {goal[0].replace('_', ' ')} {goal[1]:g}" if goal else ", the whole training"
    rows = [[what, "this run", cpu["model"], number(seconds, "s"), f"{spent:.4g} {currency}"]]
    for one in ENTRIES:
        time = "" if one.seconds is None else number(one.seconds, "s")
        dollars = "" if one.dollars is None else f"{one.dollars:,.2f} USD"
        rows.append([one.task, one.who, one.machines, time, dollars])
    return Table(["task", "entry", "machine", "time", "cost"], rows, NOTE)
