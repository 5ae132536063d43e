"""Plots of ratios with their intervals, on a logarithmic axis."""

from __future__ import annotations

from mxopt.measure import Ratio
from mxopt.report import plots


def intervals(ratios: dict[str, Ratio], title: str = ""):
    """Plot ratios with their intervals, one line each, on a logarithmic axis.

    Values above 1 are faster; an interval that contains 1 is not significant.

    Args:
        ratios: ratios, by the label of their line.
        title: title of the plot.
    """
    figure, axes = plots.new_axes(0.55 * len(ratios) + 1.1)
    for row, found in enumerate(ratios.values()):
        colour = {"faster": plots.COLOURS[2], "slower": plots.COLOURS[3]}.get(found.verdict, "0.5")
        _interval(axes, row, found, color=colour)
        axes.annotate(f"{found.value:.2f}", (found.value, row), xytext=(0, 6), ha="center",
                      textcoords="offset points", fontsize="small")  # fmt: skip
    _times_better(axes, list(ratios), title)
    return figure


def beside_each_other(names: list[str], ratios: dict[str, list[Ratio | None]], title: str = ""):
    """Plot the ratios of several machines with their intervals, one line for each label.

    Args:
        names: names of the machines.
        ratios: by the label of their line, a ratio for each machine, or None.
        title: title of the plot.
    """
    figure, axes = plots.new_axes((0.15 + 0.1 * len(names)) * len(ratios) + 1.3)
    for place, name in enumerate(names):
        label, apart = name, 0.6 / len(names) * (place - (len(names) - 1) / 2)
        for row, found in enumerate(ratios.values()):
            if found[place]:
                _interval(axes, row + apart, found[place], label=label, color=plots.COLOURS[place],
                          marker=plots.MARKERS[place], markersize=5)  # fmt: skip
                label = None
    figure.legend(fontsize="small", loc="outside lower right", ncols=2, frameon=False)
    _times_better(axes, list(ratios), title)
    return figure


def _interval(axes, row: float, found: Ratio, color: str, **how) -> None:
    """Plot one ratio; an interval of more than a decade on one side is cut off there."""
    low, high = max(found.low, found.value / 10), min(found.high, found.value * 10)
    axes.plot([low, high], [row, row], color=color, linewidth=3, alpha=0.6)
    axes.plot(found.value, row, color=color, **{"marker": "o", "linestyle": "none", **how})


def _times_better(axes, names: list[str], title: str) -> None:
    """Finish a plot of ratios: the line at 1, and a logarithmic axis."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    shortest, longest = axes.get_xlim()
    if longest < 5 * shortest:  # too short for more than two of 0.5, 1, 2, 5, ...
        axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_minor_formatter("")
    axes.set_yticks(range(len(names)), names, fontsize="small")
    axes.set_ylim(len(names) - 0.5, -0.8)
    axes.set_xlabel("times faster, with its 95 % interval")
    plots.tidy(axes, title)
