"""``mxopt launch --tune script.py``: in which environment a script trains fastest here.

The script is run several times in each environment, in turn, and stopped after some seconds. Steps
are counted where Gluon's ``Trainer`` makes them (``step`` or ``update``), and the first ones are
left out. Nothing but environment variables differs, and nothing is changed: the best command is
printed. It is chosen by these runs, so its ratio is a little too good; ``mxopt compare`` measures
what is to be published.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mxopt import machine, methods
from mxopt.core import progress_bar
from mxopt.core.errors import DeviceError, MxoptError
from mxopt.core.plan import Plan

ROUNDS = 4
WARM_UP = 3  # steps that are not counted: compiling, first memory
# Seconds after which a run that has made no step has failed.
PATIENCE = 120
SERIAL = {"cpu_threads": True, "copies": "serial"}
# Environments by name, each as switches of a plan; threads are those of the machine's cores.
CANDIDATES = {
    "MXNet's default": {},
    "one thread for each core": {"cpu_threads": True},
    "and serial copies": SERIAL,
    "and memory kept": {**SERIAL, "allocator": "keep"},
    "and huge pages": {**SERIAL, "allocator": "keep", "pages": "huge"},
    "or jemalloc": {**SERIAL, "allocator": "jemalloc"},
    "or tcmalloc": {**SERIAL, "allocator": "tcmalloc"},
    "and Intel's OpenMP": {**SERIAL, "allocator": "keep", "openmp": "intel"},
    "which sleeps at once": {**SERIAL, "allocator": "keep", "openmp": "intel", "blocktime": 0},
    "and threads pinned": {**SERIAL, "allocator": "keep", "affinity": "compact"},
    "and MKL": {**SERIAL, "allocator": "keep", "blas": "mkl"},
    "and a current OpenBLAS": {**SERIAL, "allocator": "keep", "blas": "openblas"},
    "and parameters updated one by one": {**SERIAL, "allocator": "keep", "aggregation": 1},
}


def tune(script: str, arguments: list[str], seconds: float = 8) -> int:
    """Measure a script in every environment, and print ratios and the best command.

    Args:
        script: path of a Python file that trains with a Gluon ``Trainer``.
        arguments: arguments of the script.
        seconds: of training in each environment; starting Python and importing MXNet come on top.

    Returns:
        The exit status, 0.

    Raises:
        DeviceError: there is no such file.
        MxoptError: the script failed in MXNet's default environment, or makes no training step.
    """
    from mxopt.measure.statistics import ratio

    if not Path(script).is_file():
        raise DeviceError(f"there is no script {script!r}; name a Python file")
    plans, variables = _possible()
    rates: dict[str, list[float]] = {name: [] for name in plans}
    failed: dict[str, MxoptError] = {}
    each = seconds / ROUNDS
    names = list(plans)
    with progress_bar.track(
        "tune", ROUNDS * len(names), expected=ROUNDS * len(names) * (each + 4)
    ) as step:
        for number in range(ROUNDS):
            shift = number % len(names)
            for name in names[shift:] + names[:shift]:
                step(name)
                if name in failed:
                    continue
                try:
                    rates[name].append(steps_a_second(script, arguments, variables[name], each))
                except MxoptError as error:
                    if name == names[0]:
                        raise
                    failed[name] = error
    baseline = names[0]
    best, chosen = 1.0, baseline
    for name in names:
        if name in failed:
            print(f"{name:28s} failed: {failed[name]}")
            continue
        found = ratio(rates[baseline], rates[name], better="higher") if name != baseline else None
        mean = sum(rates[name]) / ROUNDS
        print(
            f"{name:28s} {mean:8.2f} steps a second" + (f"   {found} times better" if found else "")
        )
        if found and found.low > 1 and found.value > best:
            best, chosen = found.value, name
    if chosen == baseline:
        print("no environment is shown to be faster than MXNet's default here")
        return 0
    defaults = Plan()
    words = " ".join(
        f"--switch {switch}={value}" for switch, (_, value) in defaults.diff(plans[chosen]).items()
    )
    print(f"best: mxopt launch {words} {' '.join([script, *arguments])}")
    return 0


def _possible() -> tuple[dict[str, Plan], dict[str, dict[str, str]]]:
    """Return plan and variables of each environment; print which are impossible here, and why."""
    plans, variables = {}, {}
    for name, switches in CANDIDATES.items():
        threads = {"cpu_threads": machine.cpu().physical_cores} if "cpu_threads" in switches else {}
        plan = Plan(**{**switches, **threads})
        try:
            variables[name] = methods.environment(plan)
        except DeviceError as error:
            print(f"{name}: not tried, {error}")
            continue
        plans[name] = plan
    return plans, variables


def steps_a_second(
    script: str, arguments: list[str], variables: dict[str, str], seconds: float
) -> float:
    """Run a script for some seconds of training, and return its steps a second.

    Args:
        script: path of a Python file.
        arguments: arguments of the script.
        variables: environment variables to add.
        seconds: after which it is stopped, counted from the first steps on.

    Raises:
        MxoptError: the script failed, or made no step.
    """
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "steps.json")
        command = [sys.executable, "-m", "mxopt.cli.tune", str(result), str(seconds), script]
        try:
            done = subprocess.run(
                [*command, *arguments],
                env={**os.environ, **variables},
                capture_output=True,
                text=True,
                timeout=seconds + PATIENCE,
            )
        except subprocess.TimeoutExpired:
            raise MxoptError(
                f"{script} made no training step within {PATIENCE} s; steps are counted where a "
                "gluon.Trainer makes them"
            ) from None
        if not result.exists():
            raise MxoptError(f"{script} made too few training steps to count: {_ending(done)}")
        found = json.loads(result.read_text())
    return found["steps"] / found["seconds"]


def _ending(done: subprocess.CompletedProcess) -> str:
    """Return how a script ended: by a signal, with its last error, or with its exit status."""
    if done.returncode < 0:
        return f"it was ended by {signal.Signals(-done.returncode).name}"
    # MXNet's log begins with a bracket.
    lines = [line for line in done.stderr.splitlines() if line.strip() and line[0] != "["]
    said = f"; its last line of errors: {lines[-1]}" if lines and done.returncode else ""
    return f"it ended with exit status {done.returncode}{said}"


def main(arguments: list[str]) -> None:
    """Run a script, count its steps, and end the process after some seconds; in the child."""
    result, seconds, script = Path(arguments[0]), float(arguments[1]), arguments[2]
    from mxnet import gluon, nd

    made, begin = 0, 0.0

    def write():
        elapsed = time.perf_counter() - begin
        result.write_text(json.dumps({"steps": made - WARM_UP, "seconds": elapsed}))

    def counting(function):
        def counted(*words, **options):
            nonlocal made, begin
            done = function(*words, **options)
            made += 1
            if made == WARM_UP:
                nd.waitall()
                begin = time.perf_counter()
            elif made > WARM_UP and time.perf_counter() - begin > seconds:
                nd.waitall()
                write()
                os._exit(0)
            return done

        return counted

    gluon.Trainer.step = counting(gluon.Trainer.step)
    gluon.Trainer.update = counting(gluon.Trainer.update)
    sys.argv = arguments[2:]
    sys.path[0] = str(Path(script).resolve().parent)
    runpy.run_path(script, run_name="__main__")
    nd.waitall()
    if made > WARM_UP:
        write()


if __name__ == "__main__":
    main(sys.argv[1:])
