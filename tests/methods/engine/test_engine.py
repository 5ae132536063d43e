import os
import subprocess
import sys

import pytest

from mxopt import methods
from mxopt.core.errors import DeviceError
from mxopt.core.plan import Plan, choices


def test_only_what_the_plan_sets_is_in_the_environment():
    assert methods.environment(Plan()) == {"MXNET_ENGINE_TYPE": "ThreadedEnginePerDevice"}
    variables = methods.environment(Plan(engine_threads=3, cpu_threads=2, affinity="compact"))
    assert variables["MXNET_CPU_WORKER_NTHREADS"] == "3"
    assert variables["OMP_NUM_THREADS"] == "2"
    assert variables["OMP_PROC_BIND"] == "close"
    assert "MALLOC_MMAP_THRESHOLD_" in methods.environment(Plan(allocator="return"))
    assert "MALLOC_MMAP_MAX_" in methods.environment(Plan(allocator="keep"))


@pytest.mark.parametrize("name", choices("engine"))
def test_mxnet_starts_the_engine_of_the_plan(name):
    code = "import mxopt, mxnet as mx; mx.nd.ones(1).wait_to_read()"
    variables = {**methods.environment(Plan(engine=name)), "MXNET_ENGINE_INFO": "1"}
    child = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **variables},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert f"MXNet start using engine: {name}\n" in child.stderr


@pytest.mark.fault(
    "machine",
    "a process runs another engine than its plan's",
    sees="MXNET_ENGINE_TYPE=ThreadedEnginePerDevice",
)
def test_a_process_under_another_engine_is_refused(monkeypatch, sees):
    monkeypatch.setenv("MXNET_ENGINE_TYPE", "NaiveEngine")
    with sees.raised(DeviceError):
        methods.check_environment(Plan())
    methods.check_environment(Plan(engine="NaiveEngine"))
