"""``mxopt launch``: a script of the user's own, in the environment that measured runs have."""

import os
import subprocess
import sys

import pytest

from mxopt import machine, methods
from mxopt.chapter.settings import chapter
from mxopt.cli import launch, tune
from mxopt.core.errors import DeviceError, PlanError
from mxopt.core.plan import Plan
from mxopt.machine import Cpu

CPU = Cpu("a processor", physical_cores=3, logical_cores=6, instruction_sets=())


def run(*words, **variables):
    return subprocess.run(
        [sys.executable, "-m", "mxopt", "launch", *map(str, words)],
        env={**os.environ, **variables}, capture_output=True, text=True,
    )  # fmt: skip


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "import os, sys, neighbour\n"
        "import mxnet as mx\n"
        "print(__name__, sys.argv[1:], os.environ['OMP_NUM_THREADS'], mx.nd.ones(3).sum())\n"
        "sys.exit(7)\n"
    )
    (tmp_path / "neighbour.py").write_text("")
    return path


def test_a_script_runs_as_if_it_was_started_alone(script):
    done = run(script, "--epochs", 3)
    assert done.stdout.startswith("__main__ ['--epochs', '3']")
    assert done.returncode == 7
    assert "MALLOC_MMAP_MAX_=0" in done.stderr


def test_what_is_set_already_stays_and_is_named(script):
    others = machine.cpu().physical_cores + 1
    done = run(script, OMP_NUM_THREADS=str(others))
    assert f"[] {others} " in done.stdout
    assert f"keeping OMP_NUM_THREADS={others}" in done.stderr


def test_variables_already_set_are_never_overridden():
    plan = Plan(cpu_threads=2)
    chosen, lines = launch.variables(plan, {"OMP_NUM_THREADS": "5"})
    assert "OMP_NUM_THREADS" not in chosen
    assert "keeping OMP_NUM_THREADS=5, already set (default: 2)" in lines


def test_threads_are_the_cores_that_may_be_used():
    assert launch.plan_for(CPU).cpu_threads == 3
    given = ["cpu_threads=1", "copies=parallel", "allocator=default"]
    assert launch.plan_for(CPU, given) == Plan(cpu_threads=1)


def test_switches_that_do_not_exist_are_refused():
    with pytest.raises(PlanError, match="did you mean 'openmp'"):
        launch.plan_for(CPU, ["opnmp=intel"])


@pytest.mark.parametrize(
    "word", ["batch_size=3", "hybridize=static", "graph_rewrites=usual", "simulated_bits=8"]
)
def test_switches_that_cannot_change_a_script_are_refused(word):
    with pytest.raises(PlanError, match="is no environment variable, so it cannot change a script"):
        launch.plan_for(CPU, [word])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("engine", "NaiveEngine"), ("engine_threads", 2), ("cpu_threads", 1), ("pages", "huge"),
        ("affinity", "compact"), ("copies", "parallel"), ("allocator", "return"),
        ("aggregation", 1),
    ],
)  # fmt: skip
def test_switches_that_change_variables_are_taken(name, value):
    assert name in launch.VARIABLES
    assert getattr(launch.plan_for(CPU, [f"{name}={value}"]), name) == value


def test_what_is_tuned_can_be_launched():
    tuned = {name for switches in tune.CANDIDATES.values() for name in switches}
    assert tuned <= set(launch.VARIABLES)


def test_a_script_that_is_not_there_is_named():
    with pytest.raises(DeviceError, match=r"no script 'nowhere\.py'"):
        launch.launch("nowhere.py", [])


def test_the_chapter_measures_the_environment_of_launch():
    plan = Plan(**chapter.LAUNCH)
    assert methods.environment(plan) == methods.environment(launch.plan_for(machine.cpu()))
