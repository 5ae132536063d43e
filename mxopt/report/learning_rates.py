"""The plot of a learning-rate range test: losses, and what each rule suggests."""

from __future__ import annotations

from mxopt.core.records import Run
from mxopt.methods.lr_range_test import rules
from mxopt.report import plots


def plot(run: Run):
    """Plot the loss of every step over its rate, its average, and the rules' suggestions.

    Args:
        run: a run of :func:`mxopt.measure.learning_rate.range_test`.

    Returns:
        A Matplotlib figure.
    """
    from matplotlib.figure import Figure

    tried = run.only("range")
    rates, losses = tried["rates"], tried["losses"]
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.plot(rates, losses, ".", color="0.75", markersize=3, label="loss of a step")
    axes.plot(rates, rules.smoothed(losses), color="black", label="average")
    for number, (name, rate) in enumerate(rules.suggest(rates, losses).items()):
        style = {"linewidth": 2} if number == 0 else {"linewidth": 1, "linestyle": "--"}
        label = f"{name}: {rate:.2g}"
        axes.axvline(rate, color=plots.COLOURS[number], label=label, **style)
    least, first = min(losses), losses[0]
    axes.set_ylim(least - 0.1 * abs(first - least), first + 0.4 * abs(first - least))
    axes.set_xscale("log")
    axes.set_xlabel("learning rate")
    axes.set_ylabel("training loss")
    axes.legend(fontsize="small", loc="lower left")
    plots.tidy(axes, "Learning-rate range test")
    return figure
