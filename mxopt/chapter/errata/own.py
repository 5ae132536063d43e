"""An erratum of this package's own: version 0.1 compared arms that did not start alike."""

from __future__ import annotations

from pathlib import Path

from mxnet import nd

from mxopt.chapter.errata.erratum import Erratum
from mxopt.measure import read_experiment, time_to_target

DOCS = Path(__file__).resolve().parents[3] / "docs"
# The record that version 0.1 published, and where today's is looked for.
FIRST = DOCS / "errata" / "segmentation-0.1.jsonl"
TODAY = "8_2/segmentation.jsonl"


def steps_to_goal(start: float, rate: float = 0.25, goal: float = 1e-3) -> int:
    """Return how many steps of gradient descent bring (w - 1) ** 2 below a goal.

    Args:
        start: initial value of w.
        rate: learning rate.
        goal: loss to be reached.
    """
    weight, steps = nd.array([start]), 0
    while float(((weight - 1) ** 2).asscalar()) > goal:
        weight, steps = weight - rate * 2 * (weight - 1), steps + 1
    return steps


def head_start() -> tuple[float, float]:
    """Return how many times sooner an arm reaches a goal than an equal one.

    Returns:
        The ratio if the arm starts close to the goal, and if both start alike.
    """
    before = steps_to_goal(0.0)
    return before / steps_to_goal(0.95), before / steps_to_goal(0.0)


def figures(docs: Path = DOCS) -> str:
    """Return a sentence with the figures of version 0.1 and of today, from their records.

    Args:
        docs: folder of the documentation, with the published records.
    """
    first = time_to_target(read_experiment(docs / "errata" / FIRST.name), "after")
    found = sorted((docs / "results").glob(f"**/{TODAY}"))
    today = [
        f"{time_to_target(read_experiment(path), 'after')} ({_processor(path, docs)})"
        for path in found
    ]
    now = " and ".join(today) or "not measured yet"
    return f"Printed by version 0.1: **{first}** times sooner. With the same start: **{now}**."


def _processor(path: Path, docs: Path) -> str:
    """Return the name of the processor that a record is filed under."""
    folders = path.relative_to(docs / "results").parts[:-2]
    return folders[0] if folders else "one processor"


ERRATA = (
    Erratum(
        "A head start that is called a speed-up (our own)",
        "Version 0.1 of this package timed *before* and *after* to the same mIoU, and replaced the "
        "network's last layer in *before* only. *After* kept scores that were as good before the "
        "first step as those of *before* at its end.",
        "Both arms start from the same weights, whose hash is in the record, scores at step 0 are "
        "recorded, and a pair that does not start alike is not called a speed-up.",
        head_start,
        "times sooner at a goal, for the same program",
        figures=figures,
    ),
)
