"""``mxopt gpu-check``: whether this machine's GPUs compute what this package needs.

No machine that the project is developed on can run MXNet's kernels. So the owner of a GPU runs this
once: ten minutes, no questions. Every part runs in a process of its own, so that one that crashes
or hangs is reported like one that finds a fault. All findings go into one file, to be passed on.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path

import jinja2

from mxopt import __version__, machine
from mxopt.chapter.colab import SOURCE
from mxopt.core import atomic, progress_bar
from mxopt.core.errors import DeviceError
from mxopt.machine.variables import recorded, without_folders

OK, FAILED, SKIPPED = "ok", "failed", "skipped"
TEMPLATE = Path(__file__).with_name("page.html.j2")
# The parts in order: title, what to do if it fails, and the seconds after which it has hung.
PARTS = {
    "libraries": ("Libraries", "run `mxopt doctor`, which names what to install", 120),
    "kernels": ("Kernels for this GPU", "docs/gpu.md, section Hopper and newer", 120),
    "operators": ("Operators, beside the CPU", "report the rows marked off", 300),
    "precision": ("Mixed precision", "report the figures of the table", 180),
    "devices": ("Gradients on several GPUs", "report the table and `nvidia-smi topo -m`", 180),
    "steps": ("A step of each recipe, and its memory", "report the row that failed", 420),
    "copies": ("Copies between host and GPU", "report the table and the kind of slot", 120),
    "resume": ("Kill and resume", "report both losses", 240),
}


@dataclass(frozen=True)
class Outcome:
    """What one part found.

    Attributes:
        part: its name in ``PARTS``.
        title: its title.
        status: ``ok``, ``failed`` or ``skipped``.
        found: one line: what was found, or why it failed or was skipped.
        seconds: how long it took.
        rows: a table, as one dictionary for each row, with the same keys.
        report: what to do or to report; empty unless it failed.
    """

    part: str
    title: str
    status: str
    found: str
    seconds: float
    rows: list[dict] = field(default_factory=list)
    report: str = ""


def run(folder: str | os.PathLike = ".", quick: bool = False, name: str = "") -> int:
    """Run all parts, write the two files, and return the exit status.

    Args:
        folder: where ``gpu-check-<name>.json`` and ``.html`` are written.
        quick: smaller sizes: a first look within two minutes, not the check.
        name: name of the machine in the files; if empty, that of its first GPU.

    Returns:
        0 if no part failed, else 1.

    Raises:
        DeviceError: the machine has no GPU at all.
    """
    survey, reason = machine.survey_gpus()
    if not survey:
        raise DeviceError(f"there is no GPU to check: {reason}")
    name = re.sub(r"[^\w.-]+", "-", name or survey[0].name).strip("-").lower()
    outcomes = []
    with progress_bar.track("gpu-check", len(PARTS), expected=120 if quick else 600) as step:
        for part, (title, _, _) in PARTS.items():
            step(title)
            outcomes.append(check(part, quick))
    facts = facts_of(survey, quick)
    path = Path(folder, f"gpu-check-{name}.json")
    written = {"facts": facts, "parts": [asdict(outcome) for outcome in outcomes]}
    atomic.replace_text(path, json.dumps(written, indent=1) + "\n")
    atomic.replace_text(path.with_suffix(".html"), page(facts, outcomes))
    for outcome in outcomes:
        print(f"{outcome.status:8s} {outcome.title}: {outcome.found}")
    print(f"to pass on: {path} and {path.with_suffix('.html')}")
    return int(any(outcome.status == FAILED for outcome in outcomes))


def facts_of(survey: list[machine.Gpu], quick: bool = False) -> dict[str, str]:
    """Return what a reader of the report must know of the machine; nothing that is private.

    Args:
        survey: the GPUs.
        quick: whether sizes were reduced.
    """
    variables = {
        n: v for n, v in recorded().items() if n.startswith(("MXNET", "CUDA", "NCCL", "NVIDIA"))
    }
    return {
        "date": f"{datetime.now():%Y-%m-%d}",
        "mxopt": __version__,
        "GPUs": "; ".join(
            f"{gpu.name} ({gpu.capability[0]}.{gpu.capability[1]}, {gpu.memory / 2**30:.0f} GiB)"
            + ("" if gpu.usable else f", not used: {gpu.reason}")
            for gpu in survey
        ),
        "driver": survey[0].driver,
        "MXNet": ", ".join(f"{n} {v}" for n, v in machine.mxnet_packages().items()) or "own build",
        "Python": sys.version.split()[0],
        "CPU": machine.cpu().model,
        "variables": ", ".join(f"{n}={v}" for n, v in variables.items()) or "none",
        "sizes": "quick" if quick else "full",
    }


def check(part: str, quick: bool = False) -> Outcome:
    """Run one part in a process of its own.

    Args:
        part: a name in ``PARTS``.
        quick: smaller sizes.
    """
    title, advice, limit = PARTS[part]
    begin = time.monotonic()
    command = [sys.executable, "-m", "mxopt.cli.gpu_check", part, *(["--quick"] if quick else [])]
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        said, errors = child.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        said, errors = child.communicate()
        found = {"status": FAILED, "found": f"not finished after {limit} s: it hangs"}
    else:
        last = (said.strip().splitlines() or [""])[-1]
        try:
            found = json.loads(last)
        except json.JSONDecodeError:
            found = {"status": FAILED, "found": _ending(child.returncode, errors)}
    failed = found["status"] == FAILED
    seconds = round(time.monotonic() - begin, 1)
    report = f"{advice}; {_last_lines(errors)}".rstrip("; ") if failed else ""
    return Outcome(part, title, seconds=seconds, report=report, **found)


def page(facts: dict[str, str], outcomes: list[Outcome]) -> str:
    """Return the HTML page: the verdict, what to report, and a table for each part.

    Args:
        facts: as :func:`facts_of` returns them.
        outcomes: of all parts.
    """
    template = jinja2.Template(TEMPLATE.read_text(), autoescape=True)
    return template.render(facts=facts, outcomes=outcomes, failed=FAILED, address=SOURCE)


def _ending(code: int, errors: str) -> str:
    lines = _words(errors)
    how = signal.Signals(-code).name if code < 0 else f"status {code}"
    return f"the process ended with {how}: {without_folders(lines[-1]) if lines else 'no message'}"


def _last_lines(errors: str, count: int = 6) -> str:
    lines = [without_folders(line) for line in _words(errors)]
    return "its last words were: " + " | ".join(lines[-count:]) if lines else ""


def _words(errors: str) -> list[str]:
    """Return the lines of a process's errors without MXNet's log, which begins with ``[``."""
    return [line for line in errors.strip().splitlines() if line and not line.startswith("[")]
