"""The cases at other sizes than those that mxopt was tuned at: what is measured, and its table."""

from __future__ import annotations

from benchmarks.beside import MEBIBYTE
from mxopt import report
from mxopt.measure import Experiment

# By size: what differs from the case. ``peers`` were among the fastest at the case's own size.
SIZES = {
    "sizes-resnet": {
        "title": "DeepLabv3-ResNet-50 at other sizes",
        "case": "resnet",
        "sizes": {
            "320px-batch2": {"size": 320, "batch_size": 2},
            "160px-batch8": {"size": 160, "batch_size": 8, "limit": 24},
        },
        "peers": ("tuned", "tuned-compile"),
    },
    "sizes-mobilenet": {
        "title": "DeepLabv3-MobileNetV2 at other sizes",
        "case": "mobilenet",
        "sizes": {
            "640px-batch2": {"size": 640, "batch_size": 2, "limit": 12},
            "320px-batch8": {"size": 320, "batch_size": 8, "limit": 48},
        },
        "peers": ("tuned", "tuned-halves"),
    },
    "sizes-transformer": {
        "title": "Transformer at other sizes",
        "case": "transformer",
        "sizes": {
            "1024-tokens": {"batch_size": 1024},
            "4-layers-of-192": {"layers": 4, "units": 192, "heads": 6, "hidden": 768},
        },
        "peers": ("best-halves", "best-unpadded"),
    },
    "sizes-garments": {
        "title": "One epoch of Fashion-MNIST with other batches",
        "sizes": {"batch-64": {"batch_size": 64}, "batch-1000": {"batch_size": 1000}},
        "peers": ("tuned", "tuned-compile"),
    },
}
ABOUT = """mxopt's last arm, unchanged, at sizes that were chosen before anything was measured at
them, beside two of the arms of PyTorch that were the fastest at the case's own size. Ratios are of
paired runs. Medians: images or tokens per second, and for a whole epoch its seconds."""


def parts(found: list[Experiment]) -> list[str]:
    """Return the page's paragraphs: what was measured, and a table of every size and peer.

    Args:
        found: the experiments.
    """
    rows = []
    for each in found:
        for peer, own in each.compared():
            ratio, memory = each.ratio(own, peer), "peak_memory_bytes"
            twice = (peer, own) == each.same_arms
            row = [each.title, own, "none: mxopt twice" if twice else peer.removeprefix(f"{own}-")]
            if ratio is None:
                rows.append([*row, "", "", "not measured", "", ""])
                continue
            unit = "s" if each.figure.endswith("seconds") else ""
            speeds = (report.number(each.median(arm), unit) for arm in (own, peer))
            sizes = (f"{each.median(arm, memory) / MEBIBYTE:,.0f}" for arm in (own, peer))
            rows.append(
                [*row, *speeds, str(ratio), each.verdict(own, peer), " / ".join(sizes) + " MiB"]
            )
    columns = ["what is trained", "size", "arm of PyTorch", "mxopt", "PyTorch",
               "times faster [95 %]", "verdict", "peak memory, mxopt / PyTorch"]  # fmt: skip
    return [ABOUT, str(report.Table(columns, rows))]
