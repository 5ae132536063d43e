"""Figures printed in chapter 8 of the book, which are compared with measured ones.

Deep Learning with MXNet Cookbook (A. P. Torres, Packt, 2023), chapter 8, measured by its author on
a 4-core machine with NVIDIA GPUs (one GPU unless stated otherwise). They are quoted and never used
as results of this package.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

SOURCE = "Deep Learning with MXNet Cookbook, chapter 8"


@dataclass(frozen=True)
class Figure:
    """A printed figure.

    Attributes:
        experiment: name of our experiment that it is compared with.
        arm: arm of that experiment.
        value: the printed figure, in ``unit``.
        unit: unit of the figure.
        note: how the book measured it.
        figure: name of the figure in our records.
    """

    experiment: str
    arm: str
    value: float
    unit: str = "s"
    note: str = ""
    figure: str = "seconds"


class Comparison(NamedTuple):
    """A comparison made by the chapter: one figure in two arms of an experiment.

    Attributes:
        experiment: name of our experiment.
        before: name of the first arm.
        after: name of the second arm.
        figure: name of the figure.
    """

    experiment: str
    before: str
    after: str
    figure: str = "seconds"


FIGURES = (
    Figure("engine", "naive-waiting", 134.37),
    Figure("engine", "threaded-waiting", 135.27),
    Figure("engine", "naive", 134.47),
    Figure("engine", "threaded", 111.37),
    Figure("placement", "raw", 24.3, note="ADE20K validation set, 2,000 images, one by one"),
    Figure("placement", "transformed", 39.0, note="the same, transformed on the host"),
    Figure("placement", "on-device", 25.4, note="transformed on the GPU; labels stay on the host"),
    Figure("placement", "lazy", 67.7, note="DataLoader, batch 4, host, then copied to the GPU"),
    Figure("placement", "device", 23.2, note="DataLoader, batch 4, on the GPU"),
    Figure("placement", "roundtrip", 34.6, note="DataLoader, batch 4, GPU and back"),
    Figure("precision", "float32", 594.5, note="10 epochs; validation loss 0.68"),
    Figure("precision", "float16", 199.8, note="the loss was NaN from the first epoch on"),
    Figure("precision", "amp", 217.6, note="10 epochs; validation loss 0.71"),
    Figure("precision", "amp-double-batch", 218.8, note="10 epochs; validation loss 0.18"),
    Figure("precision", "amp-triple-epochs", 645.7, note="30 epochs, printed as 10"),
    Figure("parallel", "one", 647.8, note="1 GPU"),
    Figure("parallel", "many-scaled", 177.2, note="4 GPUs, batch times 4, learning rate times 5"),
    Figure("segmentation", "before", 639.0, note="1 GPU; PixAcc 0.9628, mIoU 0.9071"),
    Figure("segmentation", "after", 59.9, note="4 GPUs; PixAcc 0.9679, mIoU 0.9177"),
    Figure("segmentation-loading", "before", 0.409, note="1 GPU"),
    Figure("segmentation-loading", "after", 0.182, note="timed on the data set of before"),
    Figure("text-placement", "lazy", 27.3, note="text on the host"),
    Figure(
        "text-placement", "between", 72.8, note="printed between the other two; not one of our arms"
    ),
    Figure("text-placement", "device", 25.0, note="text on the GPU"),
    Figure("text-placement", "lazy", 2.70, figure="preparation_seconds"),
    Figure("text-placement", "device", 50.4, figure="preparation_seconds"),
    Figure("translation", "before", 11406.6, note="1 GPU; BLEU 27.05"),
    Figure("translation", "after", 1947.1, note="4 GPUs; BLEU 28.20"),
)

COMPARISONS = (
    Comparison("engine", "naive-waiting", "threaded-waiting"),
    Comparison("engine", "naive", "threaded"),
    Comparison("placement", "raw", "transformed"),
    Comparison("placement", "transformed", "on-device"),
    Comparison("placement", "lazy", "device"),
    Comparison("placement", "lazy", "roundtrip"),
    Comparison("precision", "float32", "float16"),
    Comparison("precision", "float32", "amp"),
    Comparison("precision", "amp", "amp-double-batch"),
    Comparison("precision", "amp", "amp-triple-epochs"),
    Comparison("parallel", "one", "many-scaled"),
    Comparison("segmentation", "before", "after"),
    Comparison("segmentation-loading", "before", "after"),
    Comparison("text-placement", "lazy", "device"),
    Comparison("text-placement", "lazy", "device", "preparation_seconds"),
    Comparison("translation", "before", "after"),
)

# Quality printed in the chapter: experiment, metric, before, after.
QUALITIES = (
    ("segmentation", "test_PixAcc", 0.9628, 0.9679),
    ("segmentation", "test_mIoU", 0.9071, 0.9177),
    ("translation", "test_bleu", 27.05, 28.20),
)


def beside(experiment: str, figure: str = "seconds") -> dict[str, Figure]:
    """Return the book's figures for an experiment, by arm.

    Args:
        experiment: name of the experiment.
        figure: name of the figure, such as ``seconds``.
    """
    found = (one for one in FIGURES if (one.experiment, one.figure) == (experiment, figure))
    return {one.arm: one for one in found}
