"""Plots of ratios can be read: their axes have labels, also where all ratios are near 1."""

import pytest

from mxopt.measure import Ratio
from mxopt.report import ratio_plots


@pytest.mark.parametrize(
    "ends",
    [(0.97, 1.04), (0.86, 1.85), (0.99, 3.0), (1.2, 4.0), (0.5, 9.0), (0.3, 15.0), (0.5, 200.0)],
)
def test_an_axis_has_some_labels_that_lie_in_it(ends):
    figure = ratio_plots.intervals({"one": Ratio(*ends[:1], *ends, 6), "two": Ratio(1, 1, 1, 6)})
    figure.draw_without_rendering()
    [axes] = figure.axes
    low, high = axes.get_xlim()
    labels = [text.get_text() for text in axes.get_xticklabels()]
    shown = [float(text) for text in labels if text and low <= float(text) <= high]
    assert 1 in shown
    assert 3 <= len(shown) <= 10
