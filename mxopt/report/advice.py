"""What may make a run faster: rules over its record, the most likely first.

Each rule reads figures that the run has recorded, says which, and names the method to try. They are
ordered by the share of the run's seconds that they are about. An advice is a guess until it is
measured, with ``mxopt compare``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mxopt.core.errors import RecordError
from mxopt.core.plan import Plan
from mxopt.core.records import Run

# Share of the seconds from which on something is worth changing.
WORTH = 0.1


class Advice(NamedTuple):
    """Something to try.

    Attributes:
        switches: to change, as the command line takes them; empty if there is none.
        why: the rule and the figures that it has read.
        method: name of the method's folder, whose card says more; empty if there is none.
        share: share of the run's seconds that this is about; ``WORTH`` if the record does not tell.
    """

    switches: str
    why: str
    method: str
    share: float


def advise(run: Run) -> list[Advice]:
    """Return what is likely to make a run faster, the largest share of its seconds first.

    Args:
        run: a run of a training that ended well.

    Raises:
        RecordError: the run did not end well, or trained nothing.
    """
    if not run.ok or not run.figures.get("seconds"):
        raise RecordError(f"{run.path} is no training that ended well ({run.status}): no advice")
    if "loading_seconds" not in run.figures:
        raise RecordError(f"{run.path} does not say how long it waited; run it again")
    found = [one for rule in RULES for one in rule(run)]
    return sorted((one for one in found if one.share >= WORTH), key=lambda one: -one.share)


def _data(run: Run) -> Iterator[Advice]:
    """The loop waits for batches, and hardly ever for the devices."""
    figures, plan = run.figures, run.plan
    share = figures["loading_seconds"] / figures["seconds"]
    waiting = _waiting(run)
    why = f"the loop waited {share:.0%} of the time for batches"
    if waiting is not None:
        why = f"{why}, and {waiting:.0%} for the devices"
    if plan.preprocess == "lazy" and plan.epochs > 1:
        said = f"{why}; every epoch prepares the same samples again"
        yield Advice("preprocess=cached", said, "input_pipeline", share)
    elif plan.preprocess == "lazy" and not plan.num_workers and _cores(run) > 1:
        said = f"{why}; the training process prepares them"
        yield Advice("num_workers=2", said, "input_pipeline", share)


def _threads(run: Run) -> Iterator[Advice]:
    """One core works where there are several."""
    cores, plan = _cores(run), run.plan
    busy = run.figures["cpu_seconds"] / run.figures["seconds"]
    if plan.device_kind == "cpu" and plan.cpu_threads is None and busy < 0.75 * cores:
        why = f"{busy:.1f} of {cores} cores were busy; MXNet's default is half of the threads"
        yield Advice(f"cpu_threads={cores}", why, "openmp", 1 - busy / cores)


def _graph(run: Run) -> Iterator[Advice]:
    """Python calls each operator."""
    waiting = _waiting(run)
    if run.plan.hybridize != "no":
        return
    if waiting is None:
        why = (
            "operators are called one by one; an older version has not recorded how long that took"
        )
        yield Advice("hybridize=static", why, "hybridize", WORTH)
        return
    share = max(0.0, 1 - waiting - run.figures["loading_seconds"] / run.figures["seconds"])
    why = (
        f"for {share:.0%} of the time the loop waited for neither batches nor the devices, but "
        "called operators one by one"
    )
    yield Advice("hybridize=static", why, "hybridize", max(WORTH, share))


def _allocator(run: Run) -> Iterator[Advice]:
    """Freed memory goes back to the system, and is cleared again for the next array."""
    if run.plan.allocator == "default" and run.plan.device_kind == "cpu":
        yield Advice("allocator=keep", "large arrays are returned to the system when they are "
                     "freed, which clears every page again", "memory_allocator", WORTH)  # fmt: skip


def _padding(run: Run) -> Iterator[Advice]:
    """Sentences of different lengths share a batch."""
    if run.plan.bucketing == "none" and "tokens" in run.figures:
        why = "sentences share a batch as they come, and are padded to the longest of them"
        yield Advice("bucketing=length", why, "bucketing", WORTH)


def _preparation(run: Run) -> Iterator[Advice]:
    """More time is spent before the first step than in all steps."""
    whole = run.figures["training_seconds"]
    share = 1 - run.figures["seconds"] / whole
    if run.plan.preprocess != "lazy":
        yield Advice("", f"{share:.0%} of the training seconds are the preparation of the samples, "
                     "which only pays over more epochs", "input_pipeline", share)  # fmt: skip


def _evaluation(run: Run) -> Iterator[Advice]:
    """Validation takes as long as training."""
    spent = sum(event.get("validation_seconds", 0.0) for event in run.events)
    share = spent / (spent + run.figures["seconds"])
    yield Advice("", f"{share:.0%} of the time of training and validation is validation; fewer "
                 "checks, or a part of the split, would do", "", share)  # fmt: skip


def _start(run: Run) -> Iterator[Advice]:
    """The first step, which compiles and allocates, is a large part of the run."""
    share = run.figures["first_step_seconds"] / run.figures["seconds"]
    if run.plan.hybridize != "no":
        yield Advice("", f"the first step took {share:.0%} of the time; so short a training says "
                     "little about a longer one", "", share)  # fmt: skip


RULES = (_data, _threads, _graph, _allocator, _padding, _preparation, _evaluation, _start)


def _waiting(run: Run) -> float | None:
    """Return the share of the seconds that the loop waited for the devices; None if unknown.

    Records of older versions have ``waiting_seconds``, which lacks the waits at the end of each
    part of an epoch: often most of the time.
    """
    waited = run.figures.get("device_waiting_seconds")
    return None if waited is None else waited / run.figures["seconds"]


def _cores(run: Run) -> int:
    return run.only("environment").get("cpu", {}).get("physical_cores", 1)


def improved(plan: Plan, found: list[Advice]) -> Plan:
    """Return a plan with all advised switches.

    Args:
        plan: the plan of the run.
        found: what :func:`advise` returned; of two advices on one switch the first counts.

    Raises:
        PlanError: two of the switches exclude each other.
    """
    words: dict[str, str] = {}
    for one in found:
        name = one.switches.partition("=")[0]
        if name:
            words.setdefault(name, one.switches)
    return Plan.parse(words.values(), plan)
