"""The checklist as a program: which of its lines a run has done, and which would help it.

After the lines of "Practical Deep Learning", chapter 6, as far as a plan has a switch for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mxopt.core.errors import PlanError
from mxopt.core.plan import Plan
from mxopt.core.records import Run
from mxopt.report.advice import Advice
from mxopt.report.card import Card, first_measured, processor_of

DONE, HELPS, TRY, NOT_APPLICABLE = "done", "would help", "not measured here", "not applicable"


class Line(NamedTuple):
    """A line of the checklist.

    Attributes:
        question: the line.
        method: name of the method's folder.
        change: the switch that does it, as the command line takes it.
        only: for which runs it has a meaning: those on a ``gpu``, of ``images``, of ``sentences``,
            of ``several epochs``; empty for all.
    """

    question: str
    method: str
    change: str
    only: str = ""


LINES = (
    Line("Are samples prepared once and kept?", "input_pipeline", "preprocess=cached"),
    Line("Are small samples prepared many at a time?", "batched_transforms",
         "transform_batch=1000", "images"),
    Line("Do other processes load?", "input_pipeline", "num_workers=2"),
    Line("Are images kept as bytes?", "input_pipeline", "image_dtype=uint8", "images"),
    Line("Do sentences of similar length share a batch?", "bucketing", "bucketing=tokens",
         "sentences"),
    Line("Is the network a graph?", "hybridize", "hybridize=static"),
    Line("Is the graph rewritten for a CPU?", "graph_rewrites", "graph_rewrites=usual"),
    Line("Is it trained in 16 bits?", "precision", "precision=amp", "gpu"),
    Line("Do all cores work?", "openmp", "cpu_threads=2"),
    Line("Is freed memory kept?", "memory_allocator", "allocator=keep"),
    Line("Does the learning rate follow a schedule?", "lr_schedule", "schedule=cosine"),
    Line("Do the first epochs have fewer samples?", "progressive_sampling", "sampling_start=0.25",
         "several epochs"),
    Line("Do the first epochs have smaller images?", "progressive_resizing",
         "progressive_resizing=96", "several epochs"),
)  # fmt: skip


class Status(NamedTuple):
    """What is known of a line for a run.

    Attributes:
        line: the line.
        state: one of ``DONE``, ``HELPS``, ``TRY`` and ``NOT_APPLICABLE``.
        why: the setting, the rule that advised it, what was measured elsewhere, or why it cannot
            be.
    """

    line: Line
    state: str
    why: str


def statuses(run: Run, found: Iterable[Advice], cards: dict[str, Card]) -> list[Status]:
    """Return the state of every line for a run.

    Args:
        run: a training that ended well.
        found: what :func:`mxopt.report.advice.advise` says of it.
        cards: the cards of all methods, by the names of their folders.
    """
    advised = {one.switches.partition("=")[0]: one for one in found}
    return [_status(run, line, advised, cards[line.method]) for line in LINES]


def _status(run: Run, line: Line, advised: dict[str, Advice], card: Card) -> Status:
    name = line.change.partition("=")[0]
    value = getattr(run.plan, name)
    if value != getattr(Plan(), name):
        return Status(line, DONE, f"{name}={value}")
    missing = _missing(run, line.only)
    if missing:
        return Status(line, NOT_APPLICABLE, missing)
    if name in advised:
        return Status(line, HELPS, f"{advised[name].switches}: {advised[name].why}")
    try:
        Plan.parse([line.change], run.plan)
    except PlanError as error:
        return Status(line, NOT_APPLICABLE, str(error))
    seen = first_measured(card, name, processor_of(run))
    return Status(line, TRY, f"measured elsewhere: {seen}" if seen else "measured nowhere yet")


def _missing(run: Run, only: str) -> str:
    """Return why a line has no meaning for a run; empty if it has one."""
    sentences = "tokens" in run.figures
    reasons = {
        "gpu": (run.plan.device_kind != "gpu", "the run was on a CPU"),
        "images": (sentences, "the samples are sentences"),
        "sentences": (not sentences, "the samples are no sentences"),
        "several epochs": (run.plan.epochs < 2, "the run has one epoch"),
    }
    applies, why = reasons.get(only, (False, ""))
    return why if applies else ""
