"""List every branch of the package that asks for a GPU, and whether tests have executed it.

Processes that pretend GPUs (``pretend_gpus.environment``) record what they execute. Of an ``if``
both outcomes must have been seen, of another condition its line.

    make test gpu-branches
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from coverage import CoverageData
from pretend_gpus import COVERED

PACKAGE = Path(__file__).parents[1] / "mxopt"
ASKS = re.compile(
    r"""['"]gpu['"]|device_kind|device_type|\bon_cpu\b|\bon_gpu\b|on_host\(|num_gpus|\busable\b"""
    r"|\.gpus\b|\bsurvey\b|nvml|own_kernels"
)
# What other tests execute, without pretended GPUs: answers of the driver, the doctor's rows, and
# advice, which reads the record of a run.
ELSEWHERE = (
    *("machine/nvidia.py", "machine/utilization.py", "cli/doctor/", "cli/gpu_check/"),
    *("chapter/errata/chapter.py", "report/advice.py"),
)


def branches(path: Path) -> Iterator[tuple[int, str, int | None]]:
    """Yield the line, the condition, and the first line of the body; None if it is no ``if``."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        test = getattr(node, "test", None)
        if test is None or not ASKS.search(ast.unparse(test)):
            continue
        body = node.body[0].lineno if isinstance(node, (ast.If, ast.While)) else None
        yield test.lineno, ast.unparse(test), body


def executed(files: list[Path]) -> tuple[dict[str, set[int]], dict[str, set[tuple]]]:
    """Return the lines and the jumps between lines that were executed, by file."""
    lines: dict = {}
    jumps: dict = {}
    for file in files:
        data = CoverageData(str(file))
        data.read()
        for name in data.measured_files():
            lines.setdefault(name, set()).update(data.lines(name) or ())
            jumps.setdefault(name, set()).update(data.arcs(name) or ())
    return lines, jumps


def main() -> int:
    """Print the list, and return 1 if something was not executed."""
    lines, jumps = executed(sorted(COVERED.glob("data.*")))
    if not lines:
        sys.exit("nothing was recorded: run `make test` first")
    count = missing = 0
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith(ELSEWHERE):
            continue
        for line, condition, body in branches(path):
            targets = {to for begin, to in jumps.get(str(path), ()) if begin == line}
            outcomes = [body in targets, bool(targets - {body})] if body else []
            seen = line in lines.get(str(path), ()) and all(outcomes)
            state = "executed" if seen else f"MISSING {outcomes or ''}"
            print(f"{state:24s} mxopt/{name}:{line}  {condition}")
            count, missing = count + 1, missing + (not seen)
    print(f"{count - missing} of {count} branches that ask for a GPU were executed")
    return int(missing > 0)


if __name__ == "__main__":
    sys.exit(main())
