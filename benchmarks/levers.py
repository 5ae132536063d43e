"""Section of the page on levers that change what a step is."""

from __future__ import annotations

from mxopt import report
from mxopt.measure import Experiment

MEBIBYTE = 2**20

# Levers that change what a step is: a pair of arms each, both with all levers of "mobilenet".
LEVERS = {
    "accumulation": {
        "arms": {
            "at-once": {"batch_size": 16, "grad_accumulation": 1, "limit": 32},
            "accumulated": {"batch_size": 4, "grad_accumulation": 4, "limit": 32},
        },
        "equal": "the images, the updates and, up to rounding, the weights after each, since this "
        "network has no batch normalisation",
        "unequal": "how many images are computed at the same time",
    },
    "resizing": {
        "arms": {"full": {}, "early": {"progressive_resizing": 320, "progressive_epochs": 2}},
        "equal": "the images, the images per update, the number of updates",
        "unequal": "what is learned: the network sees people at another scale, so losses are not "
        "comparable, and epochs at full size have to follow. The rewritten graph is for the full "
        "size; the early epochs run the original network",
    },
}


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
