"""``mxopt launch script.py``: run a Gluon script, unchanged, with faster environment settings.

The variables are those that a plan's switches, such as ``cpu_threads``, ``copies``, ``allocator``
and ``blas``, set for a measured run (:func:`mxopt.methods.environment`). MXNet reads them when it
is loaded, so they are set first, and then the script replaces this process.
The pages of the benchmarks (``benchmarks/records/*/README.md``) have the effect of one thread for
each core, of ``SWITCHES`` and of huge pages on an imperative training loop.

Variables that are already set stay as they are, and are printed. MXNet is made importable on
current NumPy as well.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

from mxopt import machine, methods
from mxopt.core.errors import DeviceError, PlanError
from mxopt.core.plan import Plan
from mxopt.methods.blas import BLAS
from mxopt.methods.engine import Engine
from mxopt.methods.memory_allocator import MemoryAllocator
from mxopt.methods.openmp import OpenMP
from mxopt.methods.optimizer_aggregation import OptimizerAggregation

SWITCHES = {"copies": "serial", "allocator": "keep"}
# Switches that environment variables set, whatever the script does.
VARIABLES = (
    *Engine.switches,
    *OpenMP.switches,
    *BLAS.switches,
    *MemoryAllocator.switches,
    *OptimizerAggregation.switches,
    "onednn",
)


def variables(plan: Plan, existing: dict[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the variables to set, and a line about each of them.

    Args:
        plan: the plan whose environment is wanted.
        existing: the variables that are already set; they are kept.

    Returns:
        ``{name: value}`` to set, and the lines to print.
    """
    chosen, lines = {}, []
    for name, value in methods.environment(plan).items():
        if existing.get(name, value) != value:
            lines.append(f"keeping {name}={existing[name]}, already set (default: {value})")
        else:
            chosen[name] = value
            lines.append(f"setting {name}={value}")
    return chosen, lines


def plan_for(cpu: machine.Cpu, switches: list[str] = ()) -> Plan:
    """Return the plan whose environment suits a machine.

    Args:
        cpu: the processor; the plan has one OpenMP thread for each core this process may use.
        switches: ``name=value``, overriding those in ``SWITCHES``.

    Raises:
        PlanError: a switch is unknown, does not take its value, or is no environment variable.
    """
    for word in switches:
        name = word.partition("=")[0]
        if name in Plan().as_dict() and name not in VARIABLES:
            raise PlanError(
                f"--switch {word!r}: {name} is no environment variable, so it cannot change a "
                f"script; change it in the script, or take one of {', '.join(VARIABLES)}"
            )
    return Plan.parse(switches, Plan(cpu_threads=cpu.physical_cores, **SWITCHES))


def launch(script: str, arguments: list[str], switches: list[str] = ()):
    """Replace this process by a script; return only if that fails.

    Args:
        script: path of a Python file.
        arguments: arguments of the script.
        switches: ``name=value``, overriding those in ``SWITCHES``.

    Raises:
        DeviceError: there is no such file, or something that a switch needs is missing.
        PlanError: as for :func:`plan_for`.
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
    """Run the script in the environment that :func:`launch` has set."""
    del sys.argv[0]
    # Python searches the folder of a script first.
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
