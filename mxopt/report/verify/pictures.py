"""Pictures of experiments, drawn again from the records and compared pixel by pixel."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from mxopt.measure import Ablation, Experiment
from mxopt.measure.files import plots_folder
from mxopt.report import plots

# Largest mean difference of pixel values, of 255, if another Matplotlib drew the picture: text
# then moves by parts of a pixel.
MOVED = 2.0


def _score(experiment: Experiment) -> str:
    return experiment.target or "validation_" + experiment.quality.removeprefix("test_")


# How the notebooks draw the picture of each name; others are validation_<metric>.
DRAWN: dict[str, Callable] = {
    "bars": plots.bars,
    "waterfall": lambda experiment: plots.waterfall(Ablation(experiment)),
    "chart": lambda experiment: plots.lines(experiment, "batch_size", by=plots.loader_name),
    "curves": plots.curves,
    "memory": plots.memory,
    "accuracy": lambda experiment: plots.scatter(
        experiment, "milliseconds", "test_accuracy", "multiply_adds"
    ),
    "training-loss": lambda experiment: plots.curves(experiment, "train_loss"),
    "validation-score": lambda experiment: plots.curves(experiment, _score(experiment)),
}


def check(path: Path, experiment: Experiment) -> list[str]:
    """Return which pictures of an experiment are not what its records give.

    Args:
        path: path of the experiment's records; the pictures are beside them.
        experiment: the experiment.

    Returns:
        The problems; empty if there are none.
    """
    problems = []
    for picture in sorted(plots_folder(path).glob("*.png")):
        draw = DRAWN.get(picture.stem)
        if draw is None and picture.stem.startswith("validation-"):
            draw = _curves(picture.stem.replace("-", "_"))
        if draw is None:
            problems.append(f"{picture}: no plot has this name, so it cannot be drawn again")
        elif not equal(picture, draw(experiment)):
            problems.append(f"{picture}: is not what the records give; draw it again")
    return problems


def _curves(figure: str) -> Callable:
    return lambda experiment: plots.curves(experiment, figure)


def equal(path: Path, figure) -> bool:
    """Return whether a picture's file shows what a Matplotlib figure shows.

    Args:
        path: path of the file; what cannot be read is not equal.
        figure: the figure.
    """
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=plots.DPI, format="png")
    try:
        with Image.open(path) as one, Image.open(drawn) as other:
            same_software = one.info.get("Software") == other.info.get("Software")
            if one.size != other.size:
                return not same_software and _scaled(one, other) <= MOVED
            return _scaled(one, other) <= (0 if same_software else MOVED)
    except (OSError, UnidentifiedImageError):
        return False


def _scaled(one: Image.Image, other: Image.Image) -> float:
    """Return the mean absolute difference of the pixels, both pictures at the size of the first."""
    pixels = [
        np.asarray(image.convert("RGB").resize(one.size), dtype=float) for image in (one, other)
    ]
    return float(np.abs(pixels[0] - pixels[1]).mean())
