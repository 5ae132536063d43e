"""``mxopt doctor``: what works on this machine, what does not, and the command that fixes it.

MXNet, GluonCV and GluonNLP are imported in a child process only, so that the doctor itself works
when one of them is missing or crashes.
"""

from __future__ import annotations

import json as encoding
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mxopt import compat
from mxopt import machine as hardware
from mxopt.chapter import tiers
from mxopt.chapter.tiers import Tier
from mxopt.cli.doctor import machine, software
from mxopt.cli.doctor.check import NOTE, OK, PROBLEM, Check
from mxopt.compat import toolchain
from mxopt.core.errors import DeviceError
from mxopt.kernels import build as kernels
from mxopt.machine.nvidia import package_version

__all__ = ["NOTE", "OK", "PROBLEM", "Check", "as_json", "checks", "examine", "run", "table"]

_STYLES = {OK: "green", NOTE: "yellow", PROBLEM: "bold red"}


def checks(tier: str | None = None) -> list[Check]:
    """Check everything and return the rows.

    Args:
        tier: the requested tier; None to choose one.

    Raises:
        PlanError: there is no tier of that name.
    """
    return examine(tier)[0]


def examine(requested: str | None = None) -> tuple[list[Check], Tier | None]:
    """Check everything and return the rows and the tier.

    Args:
        requested: the requested tier; None to choose one.

    Returns:
        The rows, and the tier or None if the requested one is unavailable.

    Raises:
        PlanError: there is no tier of that name.
    """
    tiers.check_tier(requested)
    packages = hardware.mxnet_packages()
    build = hardware.mxnet_build(("gluoncv", "gluonnlp"))
    survey = hardware.survey_gpus(packages)
    data = _look_for_data()
    versions = {name: package_version(name) for name in ("numpy", "gluoncv", "gluonnlp")}
    try:
        tier = tiers.pick_tier(requested, survey=survey, real_data=data["penn-fudan"])
        last = Check("Tier", OK, f"{tier.name}: {tier.why}")
    except DeviceError as error:
        tier, last = None, Check("Tier", PROBLEM, str(error))
    return [
        software.check_python(sys.version_info),
        software.check_numpy(versions["numpy"]),
        *software.check_mxnet(packages, build),
        software.check_module("gluoncv", versions["gluoncv"], build),
        software.check_module("gluonnlp", versions["gluonnlp"], build),
        software.check_compiler(toolchain.missing(), versions["gluonnlp"]),
        software.check_kernels(_kernels_compiled(), kernels.compiler()),
        software.check_patches(compat.patches()),
        *software.check_system_libraries(build.libraries),
        *software.check_cuda_libraries(compat.cuda_libraries()),
        software.check_openmp(build),
        software.check_blas(build),
        *machine.check_gpus(survey, build),
        machine.check_cpu(hardware.cpu()),
        machine.check_threads(hardware.cpu(), os.environ),
        *machine.check_variables(hardware.cpu(), os.environ),
        machine.check_memory(hardware.memory_available()),
        machine.check_shared_memory(hardware.shared_memory()),
        *(machine.check_data(name, *found) for name, found in data.items()),
        last,
    ], tier


def _kernels_compiled() -> bool:
    try:
        return kernels.library().exists()
    except DeviceError:  # there is no MXNet
        return False


def _look_for_data() -> dict[str, tuple[bool, str]]:
    from mxopt import data as datasets

    names = list(datasets.SOURCES)
    try:
        with ThreadPoolExecutor(len(names)) as pool:  # each may wait for an unreachable address
            return dict(zip(names, pool.map(datasets.reachable, names)))
    except ImportError as error:  # a package is missing, which must not end the examination
        return dict.fromkeys(names, (False, f"{error}; pip install {error.name} first"))


def table(rows: list[Check]) -> Table:
    """Return the rows as a table; the status is text, so that colour is not needed to read it."""
    drawn = Table(show_lines=False, pad_edge=False, box=None, header_style="bold")
    drawn.add_column("Check", no_wrap=True)
    drawn.add_column("Status", no_wrap=True)
    drawn.add_column("Found, and how to fix it", overflow="fold")
    for row in rows:
        found = Text(row.found)
        if row.remedy:
            found.append(f"\nfix: {row.remedy}", style="bold")
        drawn.add_row(Text(row.name), Text(row.status, style=_STYLES[row.status]), found)
    return drawn


def as_json(rows: list[Check], tier: Tier | None) -> str:
    """Return the rows, the tier and whether it can run, as JSON.

    Args:
        rows: the rows.
        tier: the tier; None is written as ``null``.
    """
    facts = {
        "can_run": can_run(rows),
        "tier": tier and asdict(tier),
        "checks": [asdict(row) for row in rows],
    }
    return encoding.dumps(facts, indent=2)


def can_run(rows: list[Check]) -> bool:
    """Return whether the tier can run: no row is a problem."""
    return all(row.status != PROBLEM for row in rows)


def run(json: bool = False, tier: str | None = None) -> int:
    """Print the table, or JSON, and return the exit status: 0 when the tier can run, else 1.

    Args:
        json: print JSON instead of a table.
        tier: the requested tier; None to choose one.

    Raises:
        PlanError: there is no tier of that name.
    """
    rows, picked = examine(tier)
    problems = [row.name for row in rows if row.status == PROBLEM]
    if json:
        print(as_json(rows, picked))
    else:
        console = Console(soft_wrap=False)
        console.print(table(rows))
        name = picked.name if picked else tier
        verdict = (
            f"cannot run; fix first: {', '.join(problems)}"
            if problems
            else "can run on this machine"
        )
        console.print(Text(f"\nThe {name} tier {verdict}."))
    return 1 if problems else 0
