"""Child process of a measured run: ``python -m mxopt.measure``, a job as JSON on standard input."""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import time
import traceback

from mxopt import methods
from mxopt.core.child import end_with_parent
from mxopt.core.errors import Diverged, MxoptError
from mxopt.core.plan import Plan
from mxopt.core.records import RecordWriter


def main() -> None:
    """Do one job, read from standard input."""
    job = json.load(sys.stdin)
    end_with_parent(job.pop("parent"))  # otherwise it would slow down later runs
    do(job)


def do(job: dict) -> str:
    """Run a job and write its record.

    Args:
        job: ``workload``, ``plan``, ``options`` and ``record``, as
            :func:`mxopt.measure.process.run` sends them.

    Returns:
        The reason if the run failed, was refused or diverged; empty if it succeeded.
    """
    # For workloads that write more files than the record, such as weights.
    os.environ["MXOPT_RECORD"] = job["record"]
    begin = time.monotonic()
    with RecordWriter(job.pop("record")) as writer:
        writer.begin(**job)
        figures, status, reason, error_class = {}, "ok", "", ""
        try:
            plan = Plan.from_dict(job["plan"])
            methods.check_environment(plan)
            import mxnet  # noqa: F401  (its version and threads are part of the environment)

            from mxopt import machine

            writer.write("environment", **machine.environment(methods.environment(plan)))
            module, _, function = job["workload"].partition(":")
            workload = getattr(importlib.import_module(module), function)
            figures = workload(plan, writer.write, **job["options"])
        except Diverged as error:
            status, reason, error_class = "diverged", str(error), type(error).__name__
        except MxoptError as error:
            status, reason, error_class = "refused", str(error), type(error).__name__
        except Exception as error:
            status, error_class = "failed", type(error).__name__
            reason = f"{error_class}: {error}"
            writer.write("traceback", text=traceback.format_exc())
        figures = {**figures, **_whole_process(begin)} if status == "ok" else figures
        writer.write("end", status=status, reason=reason, error=error_class, figures=figures)
    return reason


def _whole_process(begin: float) -> dict[str, float]:
    """Return wall seconds since ``begin``, and CPU seconds of the process and its children."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {
        "process_seconds": time.monotonic() - begin,
        "process_cpu_seconds": sum(one.ru_utime + one.ru_stime for one in used),
    }


if __name__ == "__main__":
    main()
