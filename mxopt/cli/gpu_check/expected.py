"""What a step of the chapter's networks should take on several GPUs, and the memory it needs.

python -m mxopt.cli.gpu_check.expected --write docs/gpu.md
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from mxopt.core import atomic

BEGIN, END = "<!-- expected: begin -->", "<!-- expected: end -->"


@dataclass(frozen=True)
class Model:
    """A GPU, by NVIDIA's data sheet.

    Attributes:
        name: how NVML's names of it begin, without the maker.
        float32: operations a second in float32.
        half: operations a second of the tensor cores, float16 with float32 sums.
        memory: bandwidth of its memory, bytes a second.
        link: what it sends to another GPU, bytes a second: NVLink in one direction, or 80 % of
            PCI Express 3.0 x16.
    """

    name: str
    float32: float
    half: float
    memory: float
    link: float


# Data sheets: "NVIDIA T4" (2019), "NVIDIA V100" (2020, SXM2), "NVIDIA A100" (2021, SXM4 40 GB).
MODELS = (
    Model("T4", 8.1e12, 65e12, 320e9, 12.6e9),
    Model("V100", 15.7e12, 125e12, 900e9, 150e9),
    Model("A100", 19.5e12, 312e12, 1555e9, 300e9),
)


def rows() -> list[dict[str, str]]:
    """Return a row for each of the chapter's networks and each GPU."""
    from mxopt.cli.gpu_check import networks
    from mxopt.train import work

    found = []
    for name, graph, shapes, weights, kept in networks.at_chapters_sizes():
        operators = work.nodes(graph, shapes)
        operations = work.STEP * sum(node.operations for node in operators)
        for model in MODELS:
            whole = work.seconds(operators, model.float32, model.memory)
            half = work.seconds(operators, model.half, 2 * model.memory)
            summed = work.exchange_seconds(weights, 4, model.link)
            found.append({
                "step": name, "GPU": model.name, "TFLOP": f"{operations / 1e12:.2f}",
                "float32, at least": f"{1000 * whole:,.0f} ms",
                "float16, at least": f"{1000 * half:,.0f} ms",
                "sum over 4 GPUs, at least": f"{1000 * summed:,.1f} ms",
                "memory, estimate": f"{kept / 2**20:,.0f} MiB",
            })  # fmt: skip
    return found


def section() -> str:
    """Return the table in Markdown, between the marks of the page."""
    found = rows()
    lines = [f"| {' | '.join(found[0])} |", "|" + " --- |" * len(found[0])]
    lines += [f"| {' | '.join(row.values())} |" for row in found]
    return "\n".join([BEGIN, "", *lines, "", END])


def main(arguments: list[str]) -> None:
    """Print the table, or write it into a page."""
    if arguments[:1] != ["--write"]:
        print(section())
        return
    path = Path(arguments[1])
    head, _, rest = path.read_text().partition(BEGIN)
    atomic.replace_text(path, head + section() + rest.partition(END)[2])


if __name__ == "__main__":
    main(sys.argv[1:])
