"""Section of the page on levers that change what a step is."""

from __future__ import annotations

from benchmarks.cases import LEVERS
from mxopt import report
from mxopt.measure import Experiment

MEBIBYTE = 2**20


def parts(found: Experiment) -> list[str]:
    """Return the section's paragraphs: a table, and what is equal in each pair of arms."""
    rows, words = [], []
    for name, lever in LEVERS.items():
        before, after = lever["arms"]
        ratio = found.ratio(after, before)
        rows.append([
            f"{name}: {before} → {after}", report.factors(found.factors(after, before)),
            _both(found, before, after, "samples_per_second"),
            str(ratio or "not measured"), found.verdict(after, before),
            _both(found, before, after, "peak_memory_bytes", MEBIBYTE, "MiB"),
            _both(found, before, after, "train_loss"),
        ])  # fmt: skip
        words.append(f"- **{name}**. Equal: {lever['equal']}. Not equal: {lever['unequal']}.")
    columns = ["pair", "what differs", "images per second", "times faster [95 %]", "verdict",
               "peak memory", "training loss of the epoch"]  # fmt: skip
    about = f"Medians of the second epoch; data: {report.data_kind(found)}."
    return [str(report.Table(columns, rows, about)), "\n".join(words)]


def _both(found, before, after, figure, divisor=1, unit="") -> str:
    for arm in (before, after):
        if found.why_not(arm):
            return f"not measured ({found.why_not(arm)})"
    values = (found.median(arm, figure) / divisor for arm in (before, after))
    return " → ".join(report.number(value, unit) for value in values)
