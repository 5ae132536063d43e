"""When the engine ran which operator, on which thread: a picture of MXNet's profiler trace.

The file is what ``mx.profiler.dump()`` writes, in the format of Chrome's trace viewer: a begin and
an end for each operator, with the number of the thread that ran it, in microseconds.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from mxopt.core.errors import RecordError
from mxopt.report.plots import COLOURS, tidy

# Operators with a colour of their own; all others are grey.
_NAMED = 6


class Span(NamedTuple):
    """One execution of an operator.

    Attributes:
        name: name of the operator.
        thread: 0 for the thread that was the first to begin an operator, then 1, 2, ...
        begin: seconds since the first operator of the trace began.
        end: the same for its end.
    """

    name: str
    thread: int
    begin: float
    end: float


def read(path: str | os.PathLike) -> list[Span]:
    """Return the operators of a trace in the order in which they began.

    Args:
        path: file that MXNet's profiler wrote.

    Raises:
        RecordError: the file cannot be read, is no trace, or holds no operator.
    """
    try:
        events = json.loads(Path(path).read_text(encoding="utf-8"))["traceEvents"]
        marks = [event for event in events if event.get("cat") == "operator"]
        marks.sort(key=lambda event: event["ts"])
        begun: dict[tuple, list] = {}
        spans, threads = [], {}
        for event in marks:
            key = event["tid"], event["name"]
            if event["ph"] == "B":
                threads.setdefault(event["tid"], len(threads))
                begun.setdefault(key, []).append(event["ts"])
            elif event["ph"] == "E" and begun.get(key):
                name, thread = event["name"].strip("[]"), threads[event["tid"]]
                spans.append(Span(name, thread, begun[key].pop(), event["ts"]))
    except OSError as error:
        raise RecordError(f"cannot read the trace {path}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RecordError(
            f"{path} is not a trace of MXNet's profiler ({error!r}); call mx.profiler.dump() after "
            'mx.profiler.set_state("stop")'
        ) from None
    if not spans:
        raise RecordError(
            f"{path} holds no operator; call mx.profiler.set_config(profile_all=True, ...) and "
            'mx.profiler.set_state("run") before the work, and wait before "stop"'
        )
    first = min(span.begin for span in spans)
    spans = [s._replace(begin=(s.begin - first) / 1e6, end=(s.end - first) / 1e6) for s in spans]
    return sorted(spans, key=lambda span: span.begin)


def busy(spans: list[Span]) -> dict[int, float]:
    """Return the seconds that each thread ran operators; operators within others count once.

    Args:
        spans: operators of one trace, in the order in which they began.
    """
    seconds: dict[int, float] = {}
    until: dict[int, float] = {}
    for span in spans:
        begin = max(span.begin, until.get(span.thread, 0.0))
        seconds[span.thread] = seconds.get(span.thread, 0.0) + max(0.0, span.end - begin)
        until[span.thread] = max(span.end, until.get(span.thread, 0.0))
    return seconds


def plot(traces: dict[str, list[Span]], begin: float = 0.0, length: float | None = None):
    """Plot operators as bars over time, one row for each thread, one panel for each trace.

    All panels have the same axis, so that lengths can be compared.

    Args:
        traces: operators by the title of their panel, as :func:`read` returns them.
        begin: milliseconds at which the plot begins.
        length: milliseconds shown; None for all.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    time: Counter = Counter()
    for spans in traces.values():
        for span in spans:
            time[span.name] += span.end - span.begin
    named = [name for name, _ in time.most_common(_NAMED)]
    colours = dict(zip(named, COLOURS))
    rows = {title: 1 + max(span.thread for span in spans) for title, spans in traces.items()}
    figure = Figure(figsize=(7.5, 0.45 * sum(rows.values()) + 0.8 * len(traces) + 0.7),
                    layout="constrained")  # fmt: skip
    panels = figure.subplots(len(traces), 1, sharex=True, squeeze=False,
                             height_ratios=list(rows.values()))[:, 0]  # fmt: skip
    for axes, (title, spans) in zip(panels, traces.items()):
        for span in spans:
            axes.barh(span.thread, 1000 * (span.end - span.begin), left=1000 * span.begin,
                      height=0.7, color=colours.get(span.name, "0.6"), edgecolor="white",
                      linewidth=0.4)  # fmt: skip
        end = max(span.end for span in spans)
        share = sum(busy(spans).values()) / end
        axes.set_yticks(range(rows[title]), [f"thread {row + 1}" for row in range(rows[title])])
        axes.set_ylim(rows[title] - 0.5, -0.5)
        tidy(axes, f"{title}: {1000 * end:.0f} ms, {share:.2f} operators at a time")
    last = max(span.end for spans in traces.values() for span in spans)
    panels[0].set_xlim(begin, begin + length if length else 1000 * last)
    panels[-1].set_xlabel("milliseconds since the first operator began")
    legend = [Patch(color=colour, label=name) for name, colour in colours.items()]
    figure.legend(handles=legend, loc="outside lower center", ncols=3, fontsize="small",
                  frameon=False)  # fmt: skip
    return figure
