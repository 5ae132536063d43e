"""``mxopt launch script.py``: a Gluon script of yours, unchanged, in a faster environment.

What a plan's ``openmp``, ``cpu_threads``, ``affinity`` and ``allocator`` do for a measured run,
``mxopt.methods.environment``, does here for any script: the variables are
read when MXNet loads, so they are set before, and the script takes this process's place. What a
thread for every core and each of ``SWITCHES`` are worth on two imperative training loops, and what
huge pages are not, is in ``benchmarks/README.md``.

A variable that is set already stays as it is, and is named. MXNet imports on today's NumPy, too.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

from mxopt import machine, methods
from mxopt.core.errors import DeviceError
from mxopt.core.plan import Plan

SWITCHES = {"allocator": "keep"}


def variables(plan: Plan, existing: dict[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the variables to be set, and a line for each that says what becomes of it.

    Args:
        plan: whose environment it is.
        existing: the variables that are set already, which are kept.
    """
    chosen, lines = {}, []
    for name, value in methods.environment(plan).items():
        if existing.get(name, value) != value:
            lines.append(f"{name} stays {existing[name]}, as it was set (else: {value})")
        else:
            chosen[name] = value
            lines.append(f"{name}={value}")
    return chosen, lines


def plan_for(cpu: machine.Cpu, switches: list[str] = ()) -> Plan:
    """Return the plan whose environment suits a machine.

    Args:
        cpu: one OpenMP thread for each core that this process may use.
        switches: ``name=value``, in place of those in ``SWITCHES``.

    Raises:
        PlanError: as for ``Plan.parse``.
    """
    return Plan.parse(switches, Plan(cpu_threads=cpu.physical_cores, **SWITCHES))


def launch(script: str, arguments: list[str], switches: list[str] = ()):
    """Run a script in this process's place; returns only by an error.

    Args:
        script: a Python file; ``arguments`` are its own.
        switches: as for :func:`plan_for`.

    Raises:
        DeviceError: there is no such file, or something that a switch needs is missing.
    """
    if not Path(script).is_file():
        raise DeviceError(f"there is no script {script!r}; name a Python file")
    chosen, lines = variables(plan_for(machine.cpu(), switches), dict(os.environ))
    for line in lines:
        print(f"mxopt launch: {line}", file=sys.stderr)
    sys.stderr.flush()
    command = [sys.executable, "-m", "mxopt.cli.launch", script, *arguments]
    os.execve(sys.executable, command, {**os.environ, **chosen})


def main() -> None:
    """Be the script: in the environment that :func:`launch` has set."""
    del sys.argv[0]
    # As Python does for a script: its folder is searched first.
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
