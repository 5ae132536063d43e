"""The largest batch that fits: doubling, then bisection, each trial a process of its own.

A trial trains some steps. It ends early if the estimate of its memory does not fit
(:mod:`mxopt.train.memory`), if the device runs out of it, or if the system kills the process; none
of these harms the search. A trial that was interrupted is repeated. What learns best is another
question: larger batches make fewer updates.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from mxopt import machine
from mxopt.core.errors import MxoptError, PlanError
from mxopt.core.plan import Plan
from mxopt.core.records import Run
from mxopt.measure.interleave import left_over, set_aside
from mxopt.measure.process import run, write_ended

TRIAL = "mxopt.measure.batch_size:trial"
STEPS = 4  # of a trial; the first one is not timed
# Errors of a trial whose batch does not fit: into memory, or into the host's shared memory.
NO_MEMORY = ("CapacityError", "MemoryError")


def largest(fits: Callable[[int], bool], first: int = 1, most: int | None = None) -> int:
    """Return the largest number for which a test holds, or 0.

    >>> largest(lambda size: size <= 37)
    37

    Args:
        fits: the test; if it fails for a number, it must fail for all larger ones.
        first: the first number to test; it is doubled until the test fails, then the interval is
            halved.
        most: the largest number to test; None for no limit.
    """
    size, low, high = first, 0, None
    while high is None:
        if most is not None and size >= most:
            size = most
        if not fits(size):
            high = size
        elif size == most:
            return size
        else:
            low, size = size, 2 * size
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def search(
    recipe: str,
    plan: Plan,
    folder: str | Path,
    options: dict | None = None,
    most: int | None = None,
    seen: Callable[[Run], None] = lambda run: None,
) -> int:
    """Return the largest batch size with which a recipe trains on this machine, or 0.

    Args:
        recipe: name of the recipe, or ``module:function``.
        plan: the switches; its batch size is the first that is tried.
        folder: folder of the trials' records; trials that are there already are not repeated.
        options: options of the recipe.
        most: the largest batch size to try; None stops at the number of training samples.
        seen: called with each trial's run.

    Raises:
        PlanError: ``most`` is less than 1.
        RecordError: the folder holds trials of another plan or recipe.
        MxoptError: a trial failed for another reason than memory.
    """
    if most is not None and most < 1:
        raise PlanError(f"most={most} must be at least 1")
    samples: list[int] = []
    job = {"recipe": recipe, **(options or {})}

    def fits(size: int) -> bool:
        if samples and size > samples[0]:
            return False
        record = Path(folder) / f"batch-{size}.jsonl"
        done = _again(record, plan.replace(batch_size=size), job)
        seen(done)
        if done.ok:
            samples.append(int(done.figures["training_samples"]))
            return size <= samples[0]
        if done.error in NO_MEMORY:
            return False
        raise MxoptError(f"the trial with batch_size={size} ended as {done.status}: {done.reason}")

    return largest(fits, plan.batch_size, most)


def _again(record: Path, plan: Plan, job: dict) -> Run:
    """Return the run of a trial, which is not repeated if its record is there and has an end.

    Raises:
        RecordError: the record is of another search, or another process is writing it.
    """
    done = left_over(record, TRIAL, plan, job)
    if done and (done.ok or done.error):
        return done
    if done:
        set_aside(record)  # older versions did not record the class of an error
    return _explained(run(TRIAL, plan, record, job), job)


def _explained(done: Run, job: dict) -> Run:
    """Return a trial's run; if the system killed its process, record that the batch does not fit.

    The process wrote no end, and neither does one that is interrupted together with the search: in
    the record alone, the two could not be told apart.
    """
    # The system's way to end a process when memory runs out. Of several processes, only the reason
    # says which one died and how.
    by_system = done.error == "SIGKILL" or done.plan.processes > 1
    if done.status != "killed" or not by_system:
        return done
    set_aside(done.path)
    again = {"workload": TRIAL, "plan": done.plan.as_dict(), "options": job}
    reason = f"taken for a lack of memory: {done.reason}"
    return write_ended(done.path, again, "failed", reason, "CapacityError")


def trial(plan: Plan, write, recipe: str, **options) -> dict:
    """Train some steps of a recipe.

    Args:
        plan: the switches; of its epochs, one is trained.
        write: called with the name and the fields of each event.
        recipe: name of the recipe, or ``module:function``.
        **options: options of the recipe.

    Returns:
        The figures of :func:`mxopt.train.fit.fit`, ``training_samples`` (of the whole split), and
        ``peak_memory`` of the process in MiB.
    """
    from mxopt import recipes
    from mxopt.train import fit

    made, whole = recipes.load(recipe, **options), []

    def some():
        data = made.data()
        whole.append(len(data.train))
        count = min(len(data.train), STEPS * plan.batch_size)
        return dataclasses.replace(data, train=data.train.take(count))

    short = dataclasses.replace(made, data=some)
    figures = fit.fit(short, plan.replace(epochs=1, warmup_epochs=0), write, evaluate=False)
    peak = machine.peak_memory() / 2**20
    return {**figures, "training_samples": whole[0], "peak_memory": peak}
