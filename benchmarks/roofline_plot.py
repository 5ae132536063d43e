"""The rates of operators under the roof of a machine, as a plot."""

from __future__ import annotations

import math

from benchmarks.roofline import GIGA, PASSES, counts_its_graph
from mxopt.measure import Experiment
from mxopt.report import plots


def plot(experiment: Experiment):
    """Plot the rates of all operators that have arithmetic, under the machine's roof.

    Arms whose own graph is not counted are left out.

    Args:
        experiment: an experiment of :func:`benchmarks.roofline.work`.
    """
    from matplotlib.figure import Figure

    measured = [
        arm
        for arm in experiment.arms
        if not experiment.why_not(arm) and counts_its_graph(experiment, arm)
    ]
    figure = Figure(figsize=(8.5, 4.2), layout="constrained")
    axes, peak, rate, named = figure.subplots(), 0.0, 0.0, {}
    for number, arm in enumerate(measured):
        figures = experiment.runs[arm][0].figures
        peak = max(peak, figures["gflop_per_second"])
        rate = max(rate, figures["gigabytes_per_second"])
        seconds = figures["operator_seconds"]
        for name, count in figures["multiply_adds"].items():
            if not count or name not in seconds:
                continue
            place = (
                2 * count / figures["bytes"][name],
                PASSES * 2 * count / seconds[name] / GIGA,
            )
            axes.scatter(
                *place,
                s=20 + 400 * seconds[name] / sum(seconds.values()),
                color=plots.COLOURS[number % len(plots.COLOURS)],
                alpha=0.6,
                label=arm,
            )
            named.setdefault(name, []).append(place)
    # Once for all arms, beside its fastest point: at its left if another is close at its right.
    fastest = {name: max(places, key=lambda place: place[1]) for name, places in named.items()}
    for name, place in fastest.items():
        label = name.removeprefix("mxopt_")
        left = any(_close_at_right(label, place, other) for other in fastest.values())
        axes.annotate(label, place, xytext=(-9 if left else 9, -3),
                      ha="right" if left else "left", fontsize="x-small",
                      textcoords="offset points")  # fmt: skip
    low, high = axes.get_xlim()
    intensities = [min(low, 1), peak / rate, max(high, 2 * peak / rate)]
    roof = [min(peak, rate * x) for x in intensities]
    axes.plot(intensities, roof, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("")
    axes.set_xlim(axes.get_xlim()[0] / 1.5, None)  # a label at the left of the first operator
    axes.set_ylim(10 ** math.floor(math.log10(axes.get_ylim()[0])), None)  # two labels at least
    axes.set_xlabel("operations for each byte of the arrays")
    axes.set_ylabel("GFLOP/s")
    labelled = dict(zip(*reversed(axes.get_legend_handles_labels())))  # one for each arm
    legend = axes.legend(labelled.values(), labelled.keys(), fontsize="x-small", frameon=False)
    for marker in legend.legend_handles:
        marker.set_sizes([30])  # the area has a meaning only where an operator is
    plots.tidy(axes, f"{experiment.title}; area: share of the epoch")
    return figure


def _close_at_right(label: str, place: tuple[float, float], other: tuple[float, float]) -> bool:
    """Return whether a label at the right of one point would cover the other, on log axes."""
    across, up = (math.log(b / a) for a, b in zip(place, other))
    return 0 < across < 0.06 + 0.045 * len(label) and abs(up) < 0.1
