"""Training the case ``transformer`` from new weights, to compare what it learns."""

from __future__ import annotations

from pathlib import Path

from benchmarks.cases import STEPS
from mxopt import measure
from mxopt.core.plan import Plan
from mxopt.measure.interleave import TRAIN

# All sentences, with settings chosen with another seed than those that are measured.
LEARNING = {
    "batch_size": 512,
    "epochs": 2,
    "schedule": "cosine",
    "warmup_epochs": 0.3,
    "learning_rate": 0.001,
    "clip_norm": 1.0,
    "preprocess": "cached",
}
TRAINING = {
    "training-bfloat16": {
        "title": "The same Transformer trained on all of Multi30k, products in bfloat16",
        "changes": {"float32": {}, "bfloat16": {"dense": "bfloat16"}},
        "quality": "test_chrf",
        "margin": 1.0,
    },
}
ABOUT = """Not a few steps as above but whole trainings, from the same new weights in both arms, and
each pair of runs with a seed of its own. Validation is not timed; at the end the test split is
translated by beam search."""


def part(name: str, repeats: int, folder: Path) -> measure.Experiment:
    """Measure training without and with one switch: its time, and the scores of its translations.

    Args:
        name: name of the part.
        repeats: number of runs of each arm, each with a seed that both arms have.
        folder: folder of experiments.
    """
    case, own = STEPS["transformer"], TRAINING[name]
    levers = {switch: value for lever in case["levers"].values() for switch, value in lever.items()}
    first, last = own["changes"]
    arms, options = measure.ladder(
        Plan(**case["plan"]),
        {first: {**levers, **LEARNING, "limit": None, **own["changes"][first]},
         last: own["changes"][last]},
        case["options"],
    )  # fmt: skip
    return measure.interleave(
        name, TRAIN, {arm: arms[arm] for arm in (first, last)}, repeats=repeats, folder=folder,
        arm_options={arm: options[arm] for arm in (first, last)}, again=last, seeds=True,
        title=own["title"], figure="training_seconds", quality=own["quality"],
        margin=own["margin"], pairs=[(first, last)], headline=[(first, last)],
    )  # fmt: skip
