"""Predictions over photographs: each kind of pixel in its colour."""

import numpy as np
import pytest

from mxopt.report import overlay


@pytest.fixture
def parts():
    image = np.full((2, 2, 3), 100, np.uint8)
    predicted = np.array([[1, 0], [1, 0]])
    truth = np.array([[1, 1], [0, 0]])
    return image, predicted, truth


def test_found_missed_and_wrong_pixels_have_their_colours(parts):
    shown = overlay.overlay(*parts, opacity=1)
    assert shown.dtype == np.uint8
    assert shown[0, 0].tolist() == list(overlay.FOUND)
    assert shown[0, 1].tolist() == list(overlay.MISSED)
    assert shown[1, 0].tolist() == list(overlay.WRONG)
    assert shown[1, 1].tolist() == [100, 100, 100]


def test_the_photograph_shows_through(parts):
    half = overlay.overlay(*parts, opacity=0.5)
    assert half[0, 0].tolist() == [50, 129, 108]
    assert (overlay.overlay(*parts, opacity=0) == parts[0]).all()
    assert (parts[0] == 100).all()  # not written to


def test_the_plot_has_a_row_for_each_photograph_and_a_column_for_each_network(parts):
    image, predicted, truth = parts
    figure = overlay.plot([image] * 2, [truth] * 2, {"a": [predicted] * 2, "b": [truth] * 2})
    assert len(figure.axes) == 6
    assert [axes.get_title() for axes in figure.axes[:3]] == ["photograph", "a", "b"]
    shown = figure.axes[5].images[0].get_array()
    assert not (shown == overlay.overlay(image, predicted, truth)).all()
    assert (shown == overlay.overlay(image, truth, truth)).all()
