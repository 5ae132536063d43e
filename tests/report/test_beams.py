"""The picture of a beam search."""

import pytest

from mxopt.recipes.translation.beam_search import Hypothesis
from mxopt.report import beams

# The second beginning of step 1 leads to the best one of step 3.
STEPS = [
    [Hypothesis((5,), -0.1, 0, True), Hypothesis((6,), -0.2, 0, True)],
    [Hypothesis((6, 7), -0.3, 1, True), Hypothesis((5, 3), -0.4, 0, False)],
    [Hypothesis((6, 7, 3), -0.35, 0, False), Hypothesis((5, 3, 3), -0.4, 1, False)],
]


def test_the_path_to_the_best_hypothesis_is_followed_backwards():
    assert beams.path_of(STEPS) == [1, 0, 0]


@pytest.mark.parametrize("shown", [None, 2])
def test_every_hypothesis_has_a_box_and_a_line_to_its_parent(shown):
    figure = beams.plot(STEPS, lambda word: {5: "a", 6: "conspicuously", 7: ""}[word], shown)
    [axes] = figure.axes
    texts = [text.get_text() for text in axes.texts]
    assert texts[:3] == ["a\n-0.10", "conspicu…\n-0.20", "␣\n-0.30"]
    assert texts[3] == "(end)\n-0.40"
    steps = shown or 3
    assert len(texts) == 2 * steps
    assert len(axes.lines) == 2 * (steps - 1)
    bold = [line for line in axes.lines if line.get_linewidth() == 2]
    assert [list(line.get_ydata()) for line in bold] == [[1, 0], [0, 0]][: steps - 1]
