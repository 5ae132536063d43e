"""Plots of experiments; each function returns a Matplotlib figure, computed from run records."""

from __future__ import annotations

import itertools
import math

from mxopt.core.plan import Plan
from mxopt.measure import Ablation, Experiment, history
from mxopt.report.tables import data_kind, figure_name

# Okabe and Ito's palette, which colour-blind readers can distinguish.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442", "#000000")
MARKERS = "os^Dv<>p"
DPI = 130  # of all pictures that are saved


def bars(experiment: Experiment):
    """Plot the median of each arm as a bar, and every run as a dot."""
    figure, axes = new_axes(0.5 * len(experiment.arms) + 1.2)
    names = list(experiment.arms)
    for row, arm in enumerate(names):
        runs = experiment.figures(arm)
        if not runs:
            axes.text(0, row, "  not measured", va="center", style="italic", color="0.4")
            continue
        axes.barh(row, experiment.median(arm), color=COLOURS[0], alpha=0.75, height=0.6)
        axes.plot(runs, [row] * len(runs), "o", color="black", markersize=3, alpha=0.7)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    direction = "shorter is better" if experiment.better == "lower" else "longer is better"
    axes.set_xlabel(f"{_with_unit(experiment)}, {direction}")
    return _finish(figure, axes, experiment)


def waterfall(found: Ablation):
    """Plot the shares of the levers as a waterfall, from before to after.

    The axis is logarithmic, so that equal factors have equal heights.
    """
    figure, axes = new_axes(3.6)
    names = [*found.levers, "all of them"]
    level, highest = 1.0, 1.0
    for place, name in enumerate(names):
        share = found.share(name) if name in found.levers else found.whole()
        if share is None:
            axes.text(place, level, "not measured", ha="center", style="italic", color="0.4")
            continue
        below = level if name in found.levers else 1.0
        level = below * share.value
        colour = COLOURS[0] if name not in found.levers else COLOURS[2 if share.value >= 1 else 3]
        axes.bar(place, level - below, bottom=below, width=0.7, color=colour)
        top = max(level, below)
        highest = max(highest, top)
        axes.annotate(f"{share.value:.2f}", (place, top), xytext=(0, 4), ha="center",
                      textcoords="offset points")  # fmt: skip
    axes.axhline(1, color="black", linewidth=1)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}")
    axes.set_ylim(top=highest**1.15 * 1.05)
    axes.set_xticks(range(len(names)), names)
    axes.set_ylabel("times better than before")
    return _finish(figure, axes, found.experiment)


def loader_name(plan: Plan) -> str:
    """Return who prepares and loads the samples of a plan, as a name for a line of a plot.

    Args:
        plan: the plan.
    """
    if plan.preprocess != "lazy":
        return plan.preprocess
    ours = {"OpenCV": plan.transforms != "gluon", "shared memory": plan.loader == "shared_memory"}
    workers = "1 worker" if plan.num_workers == 1 else f"{plan.num_workers} workers"
    return ", ".join([workers, *(name for name in ours if ours[name])])


def lines(experiment: Experiment, across: str, by):
    """Plot the median figure against a switch, one line for each group of arms.

    Args:
        experiment: the experiment.
        across: switch on the horizontal axis, such as ``batch_size``.
        by: function from an arm's plan to the name of its line.
    """
    figure, axes = new_axes(3.8)
    groups: dict = {}
    for arm, plan in experiment.arms.items():
        point = (getattr(plan, across), experiment.median(arm))
        if math.isfinite(point[1]):
            groups.setdefault(by(plan), []).append(point)
    for index, (name, points) in enumerate(groups.items()):
        axes.plot(*zip(*sorted(points)), label=name, marker=MARKERS[index % len(MARKERS)],
                  color=COLOURS[index % len(COLOURS)])  # fmt: skip
    ticks = sorted({getattr(plan, across) for plan in experiment.arms.values()})
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set_xlabel(figure_name(across))
    axes.set_ylabel(_with_unit(experiment))
    axes.set_ylim(bottom=0)
    axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    return _finish(figure, axes, experiment)


def curves(experiment: Experiment, event_figure: str = "train_loss"):
    """Plot a figure of epochs, and of the checks within them, against seconds of training.

    The curves begin at step 0 where its score is recorded; a fixed target is a dashed line. The arm
    that repeats another one is left out: its curves would cover the other's.

    Args:
        experiment: the experiment.
        event_figure: name of the figure, such as ``train_loss`` or ``validation_mIoU``.
    """
    figure, axes = new_axes(3.4)
    for index, (arm, runs) in enumerate(experiment.runs.items()):
        if arm == experiment.again:
            continue
        label = arm
        for run in runs:
            points = history(run, event_figure)
            if not points:
                continue
            axes.plot(*zip(*points), label=label, color=COLOURS[index % len(COLOURS)],
                      marker=MARKERS[index % len(MARKERS)], markersize=3, alpha=0.8)  # fmt: skip
            label = None
    if event_figure == experiment.target and experiment.goal is not None:
        axes.axhline(experiment.goal, color="0.4", linestyle="--", linewidth=1, label="target")
    axes.set_xlabel("seconds of training")
    axes.set_ylabel(figure_name(event_figure))
    axes.legend(fontsize="small", frameon=False)
    return _finish(figure, axes, experiment)


def scatter(experiment: Experiment, across: str, up: str, size: str = ""):
    """Plot each arm as a point, at the medians of two figures.

    Args:
        experiment: the experiment.
        across: figure on the horizontal axis, which is logarithmic.
        up: figure on the vertical axis.
        size: figure that the points' areas grow with; all have one size if not given.
    """
    figure, axes = new_axes(4.0)
    arms = [arm for arm in experiment.arms if experiment.figures(arm, across)]
    largest = max((experiment.median(arm, size) for arm in arms), default=1) if size else 1
    for arm, colour in zip(arms, itertools.cycle(COLOURS)):
        area = 300 * experiment.median(arm, size) / largest if size else 60
        place = experiment.median(arm, across), experiment.median(arm, up)
        axes.scatter(*place, s=max(area, 10), color=colour, alpha=0.75)
        axes.annotate(arm, place, xytext=(0, 9), textcoords="offset points", ha="center",
                      fontsize="small")  # fmt: skip
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("{x:g}")
    axes.margins(0.15)
    axes.set_xlabel(across.replace("_", " "))
    axes.set_ylabel(up.replace("_", " ") + (f"; area: {size.replace('_', ' ')}" if size else ""))
    return _finish(figure, axes, experiment)


def over_steps(lines: dict[str, list[float]], label: str, title: str = "", steps: str = "step"):
    """Plot figures of every step, one line for each name.

    Args:
        lines: ``{name: figures}``, of the steps from the first on.
        label: what the figures are, with their unit.
        title: title of the plot.
        steps: what the steps are.
    """
    figure, axes = new_axes(3.4)
    for index, (name, values) in enumerate(lines.items()):
        axes.plot(
            range(1, len(values) + 1), values, label=name, color=COLOURS[index % len(COLOURS)]
        )
    axes.set_xlabel(steps)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_ylabel(label)
    axes.legend(fontsize="small", frameon=False)
    tidy(axes, title)
    return figure


def memory(experiment: Experiment):
    """Plot the memory of a process after each step, one line for each arm.

    Args:
        experiment: an experiment whose runs have an event ``memory`` with ``mebibytes``.
    """
    found = {arm: runs[0].only("memory")["mebibytes"] for arm, runs in experiment.runs.items()}
    return over_steps(found, "memory of the process (MiB)", experiment.title)


def pictures(columns: dict[str, list]):
    """Plot a grid of images, one row for each sample and one column for each kind.

    Args:
        columns: ``{title: images}``, lists of equal length of NumPy arrays: uint8 of shape
            (height, width, 3), or class numbers of shape (height, width).
    """
    from matplotlib.figure import Figure

    rows = max(len(images) for images in columns.values())
    figure = Figure(figsize=(2.5 * len(columns), 2.5 * rows + 0.3), layout="constrained")
    grid = figure.subplots(rows, len(columns), squeeze=False)
    for column, (title, images) in zip(grid.T, columns.items()):
        column[0].set_title(title, fontsize="medium")
        for axes, image in zip(column, images):
            axes.imshow(image, **({"cmap": "viridis"} if image.ndim == 2 else {}))
        for axes in column:
            axes.set_axis_off()
    return figure


def _with_unit(experiment):
    unit = f" ({experiment.unit})" if experiment.unit else ""
    return figure_name(experiment.figure) + unit


def new_axes(height: float):
    """Return a figure of the common width, and its axes.

    Args:
        height: in inches.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, height), layout="constrained")
    return figure, figure.add_subplot()


def tidy(axes, title: str = "") -> None:
    """Apply the common style to Matplotlib's axes: a title on the left, a faint grid.

    Args:
        axes: Matplotlib's axes.
        title: title of the plot.
    """
    axes.set_title(title, fontsize="medium", loc="left")
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def _finish(figure, axes, experiment):
    tidy(axes, f"{experiment.title or experiment.name}  (data: {data_kind(experiment)})")
    return figure
