"""One beam search, token by token: which beginnings of a translation it held after each step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mxopt.report.plots import COLOURS


def plot(steps: Sequence[Sequence], text: Callable[[int], str], shown: int | None = None):
    """Plot the steps of a search from left to right, and the hypotheses of each, the best on top.

    A box shows the word that a hypothesis ends with, and its score: the log-probability divided by
    the length penalty. A line leads to the hypothesis that it continues. The path to the best one
    of the last step is blue.

    Args:
        steps: what :func:`mxopt.recipes.translation.beam_search.search_steps` returns.
        text: returns the text of a word's id.
        shown: number of steps; None for all.
    """
    from matplotlib.figure import Figure

    steps = steps[:shown]
    rows = max(map(len, steps))
    figure = Figure(figsize=(0.95 * len(steps) + 0.6, 0.55 * rows + 0.8), layout="constrained")
    axes = figure.subplots()
    chosen = path_of(steps)
    for column, step in enumerate(steps):
        for row, one in enumerate(step):
            best = chosen[column] == row
            colour = COLOURS[0] if best else "0.45"
            if column:
                axes.plot([column - 0.62, column - 0.36], [one.parent, row], color=colour,
                          linewidth=2 if best else 0.8, zorder=1)  # fmt: skip
            ended = not one.alive
            word = "(end)" if ended else text(one.words[-1]) or "\N{OPEN BOX}"
            axes.text(column, row, f"{_short(word)}\n{one.score:.2f}", ha="center",
                      va="center", fontsize=8, color="white" if best else "black",
                      bbox={"boxstyle": "round,pad=0.25", "facecolor": colour if best else "0.92",
                            "edgecolor": colour, "linestyle": ":" if ended else "-"})  # fmt: skip
    axes.set_xlim(-0.6, len(steps) - 0.4)
    axes.set_ylim(rows - 0.4, -0.6)
    axes.set_xticks(range(len(steps)), [str(step + 1) for step in range(len(steps))])
    axes.set_yticks([])
    axes.set_xlabel("step of the search")
    axes.spines[["top", "right", "left"]].set_visible(False)
    return figure


def path_of(steps: Sequence[Sequence]) -> list[int]:
    """Return the place, in each step, of the hypothesis that leads to the best one of the last.

    Args:
        steps: as for :func:`plot`.
    """
    places, place = [], 0
    for step in reversed(steps):
        places.append(place)
        place = step[place].parent
    return places[::-1]


def _short(word: str, longest: int = 9) -> str:
    return word if len(word) <= longest else word[: longest - 1] + "\N{HORIZONTAL ELLIPSIS}"
