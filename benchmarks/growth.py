"""Growth of time and memory with a size: tables, verdicts and plots."""

from __future__ import annotations

import math

from mxopt import report
from mxopt.measure import Experiment
from mxopt.report import plots

# Growth of a case's last arm with one size. ``time`` and ``memory`` are the powers of the size with
# which the time of a sample and the memory of the process grow if they grow linearly with the work;
# ``of`` is the unit in the verdict.
GROWTH = {
    "growth-batch": {
        "title": "MobileNetV2, images a batch",
        "case": "mobilenet",
        "across": "images a batch",
        "of": "an image",
        "time": 0,
        "memory": 1,
        "sizes": {str(n): {"batch_size": n, "grad_accumulation": 1} for n in (1, 2, 4, 8, 16)},
    },
    "growth-side": {
        "title": "MobileNetV2, side of the images in pixels",
        "case": "mobilenet",
        "across": "side of the images, pixels",
        "of": "a pixel",
        "time": 2,
        "memory": 2,
        "sizes": {str(n): {"size": n} for n in (240, 336, 480, 672)},
    },
    "growth-data": {
        "title": "MobileNetV2, images in the data set",
        "case": "mobilenet",
        "across": "images in the data set",
        "of": "an image",
        "time": 0,
        "memory": 1,
        "sizes": {str(n): {"limit": n} for n in (8, 16, 32, 64)},
    },
    "growth-devices": {
        "title": "MobileNetV2, CPU contexts that share a batch of 4",
        "case": "mobilenet",
        "across": "CPU contexts",
        "of": "an image",
        "time": 0,
        "memory": 0,
        # With preprocess="device" every batch needs a sample for each device; these have fewer.
        "sizes": {str(n): {"devices": f"cpu:0-{n - 1}", "preprocess": "cached"} for n in (1, 2, 4)},
    },
    "growth-length": {
        "title": "Transformer, longest sentence in subwords, batches of 2048 target tokens",
        "case": "transformer",
        "across": "longest sentence, subwords",
        "of": "a token",
        "time": 0,
        "memory": 0,
        "sizes": {str(n): {"longest": n} for n in (10, 20, 40)},
    },
    "growth-tokens": {
        "title": "Transformer, target tokens a batch",
        "case": "transformer",
        "across": "target tokens a batch",
        "of": "a token",
        "time": 0,
        "memory": 1,
        "sizes": {
            str(n): {"batch_size": n, "grad_accumulation": 1} for n in (512, 1024, 2048, 4096)
        },
    },
}

PLOT = "growth.png"
MEBIBYTE, MILLISECONDS = 2**20, 1e3
NEARLY = 1.05  # differences that medians of a few runs cannot show
ABOUT = """The last arm of a case at several sizes, medians. The dashed line is linear growth from
the smallest size: constant time per image, pixel or token, and memory in proportion to the content
of a batch or of the data set, or constant memory if that content is the same at every size.
(Attention is not linear: each word attends to every other word of its sentence.) Peak memory is
that of the process, including libraries and weights. Verdicts ignore differences of up to 5 %."""


def parts(grown: list[Experiment]) -> list[str]:
    """Return the page's paragraphs: the plot, then the table and verdict of every experiment.

    Args:
        grown: the experiments.
    """
    found = [ABOUT, f"![time and memory against size]({PLOT})"]
    for each in grown:
        found += [f"**{each.title}**\n\n{table(each)}", verdict(each)]
    return found


def table(found: Experiment) -> report.Table:
    """Return a table of the sizes: throughput, seconds of an epoch, peak memory."""
    rows = []
    for arm in found.arms:
        if found.why_not(arm):
            rows.append([arm, "not measured", found.why_not(arm), ""])
            continue
        seconds, memory = found.median(arm, "seconds"), found.median(arm, "peak_memory_bytes")
        rows.append([arm, report.number(found.median(arm)), report.number(seconds, "s"),
                     f"{memory / MEBIBYTE:,.0f} MiB"])  # fmt: skip
    columns = ["size", report.figure_name(found.figure), "an epoch", "peak memory"]
    return report.Table(columns, rows)


def verdict(found: Experiment) -> str:
    """Return sentences that compare time and memory at the largest size with linear growth.

    If a size was measured twice, another sentence has what that shows.
    """
    how = GROWTH[found.name]
    (time, linear_time), (memory, linear_memory) = times(found), memories(found)
    proportional = f" {how['of']}" if how["memory"] else ""
    return (
        f"The time {how['of']} {_compared(time, linear_time, 'linear')}. "
        f"The memory{proportional} "
        f"{_compared(memory, linear_memory, 'linear' if how['memory'] else 'constant')}."
        f"{_noise(found)}"
    )


def _noise(found: Experiment) -> str:
    """Return a sentence on the size that was measured twice; empty without one."""
    if not found.again:
        return ""
    first, again = found.same_arms
    ratio = found.ratio(again, first)
    shown = f"{ratio} ({found.judge(ratio, again, first)})" if ratio else "not measured"
    return f" The speed at {first}, measured twice: {shown}."


def _sizes(found: Experiment) -> list[str]:
    """Return the arms of the sizes, without that of the size that was measured twice."""
    return [arm for arm in found.arms if arm != found.again]


def times(found: Experiment) -> tuple[dict, dict]:
    """Return the milliseconds per image or token by size: measured, and with linear growth."""
    measured = {int(arm): MILLISECONDS / found.median(arm) for arm in _sizes(found)}
    return _with_linear(measured, GROWTH[found.name]["time"])


def memories(found: Experiment) -> tuple[dict, dict]:
    """Return the peak memory in MiB by size: measured, and with linear growth."""
    measured = {
        int(arm): found.median(arm, "peak_memory_bytes") / MEBIBYTE for arm in _sizes(found)
    }  # fmt: skip
    return _with_linear(measured, GROWTH[found.name]["memory"])


def _with_linear(measured, power):
    """Return the sizes that have a figure, and linear growth from the smallest of them."""
    kept = {size: value for size, value in sorted(measured.items()) if math.isfinite(value)}
    first = next(iter(kept), None)
    return kept, {size: kept[first] * (size / first) ** power for size in kept}


def _compared(measured, linear, name) -> str:
    if len(measured) < 2:
        return "was measured at fewer than two sizes"
    costs = {size: measured[size] / linear[size] for size in measured}
    first, *between, last = costs
    ratio = costs[last] / costs[first]
    word = name if nearly(ratio) else f"{'worse' if ratio > 1 else 'better'} than {name}"
    words = f"at {last} is {ratio:.2f} times that at {first}: {word}"
    least, greatest = min(costs, key=costs.get), max(costs, key=costs.get)
    if least in between and not nearly(costs[last] / costs[least]):
        words += (
            f"; it is least at {least}, and at {last} {costs[last] / costs[least]:.2f} times it"
        )
    if greatest in between and not nearly(costs[greatest] / max(costs[first], costs[last])):
        times_first = costs[greatest] / costs[first]
        words += f"; it is greatest at {greatest}, {times_first:.2f} times that at {first}"
    return words


def nearly(ratio: float) -> bool:
    """Return whether a ratio of two medians cannot be distinguished from 1."""
    return 1 / NEARLY <= ratio <= NEARLY


def plot(grown: list[Experiment]):
    """Plot time (left) and peak memory (right) against size, one row for each experiment."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.5, 2.3 * len(grown)), layout="constrained")
    for row, found in zip(figure.subplots(len(grown), 2, squeeze=False), grown):
        how = GROWTH[found.name]
        counted = "a token" if found.figure.startswith("token") else "an image"
        labels = f"ms {counted}", "peak memory, MiB"
        for place, (measured, linear) in enumerate((times(found), memories(found))):
            axes = row[place]
            axes.plot(measured.keys(), measured.values(), color=plots.COLOURS[place],
                      marker=plots.MARKERS[place], label="measured")  # fmt: skip
            axes.plot(linear.keys(), linear.values(), "--", color="0.5", label="linear growth")
            axes.set_xscale("log", base=2)
            axes.minorticks_off()
            axes.set_xticks(list(measured), map(str, measured))
            axes.set_xlabel(how["across"])
            axes.set_ylabel(labels[place])
            axes.set_ylim(0, 1.15 * max(*measured.values(), *linear.values(), 0))
            plots.tidy(axes, "" if place else found.title)
            axes.legend(fontsize="x-small", frameon=False)
    return figure
