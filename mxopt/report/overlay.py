"""Predictions laid over the photographs: what was found, what was missed, what is wrong."""

from __future__ import annotations

import numpy as np

# Okabe and Ito's palette, as in the plots; red and green would look the same to many readers.
FOUND, MISSED, WRONG = (0, 158, 115), (230, 159, 0), (204, 121, 167)


def overlay(
    image: np.ndarray, predicted: np.ndarray, truth: np.ndarray, opacity: float = 0.6
) -> np.ndarray:
    """Return a photograph with its predicted and its true pixels coloured.

    Green pixels are of the class and were found, orange ones were missed, and purple ones were
    predicted and are not of the class.

    Args:
        image: (height, width, 3) uint8.
        predicted: (height, width), 0 where there is background.
        truth: the same.
        opacity: of the colours, 0 to 1.

    Returns:
        (height, width, 3) uint8.
    """
    predicted, truth = predicted > 0, truth > 0
    colours = image.astype(np.float32)
    for where, colour in (
        (predicted & truth, FOUND),
        (truth & ~predicted, MISSED),
        (predicted & ~truth, WRONG),
    ):
        colours[where] = colour
    return np.round(image + opacity * (colours - image)).astype(np.uint8)


def plot(images: list, truths: list, predictions: dict[str, list], opacity: float = 0.6):
    """Plot photographs, and over them the predictions of several networks.

    Args:
        images: photographs, (height, width, 3) uint8 each.
        truths: (height, width) each, 0 where there is background.
        predictions: ``{network: predictions}``, of the same shapes as ``truths``.
        opacity: of the colours, 0 to 1.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    columns = 1 + len(predictions)
    figure = Figure(figsize=(2.5 * columns, 2.5 * len(images) + 0.6), layout="constrained")
    grid = figure.subplots(len(images), columns, squeeze=False)
    for row, image, truth, *found in zip(grid, images, truths, *predictions.values()):
        row[0].imshow(image)
        for axes, predicted in zip(row[1:], found):
            axes.imshow(overlay(image, predicted, truth, opacity))
    for axes, title in zip(grid[0], ["photograph", *predictions]):
        axes.set_title(title, fontsize="medium")
    for axes in grid.flat:
        axes.set_axis_off()
    names = {"found": FOUND, "missed": MISSED, "wrong": WRONG}
    legend = [Patch(color=np.divide(rgb, 255), label=name) for name, rgb in names.items()]
    figure.legend(handles=legend, loc="outside lower center", ncols=3, frameon=False)
    return figure
